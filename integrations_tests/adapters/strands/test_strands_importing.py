"""What Strands' own session manager wrote, brought over: agents go on as they would there."""

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="pip install 'commonplace-memory[strands]'")

from strands import Agent
from strands.multiagent import GraphBuilder
from strands.session.file_session_manager import FileSessionManager
from strands.session.repository_session_manager import RepositorySessionManager

from commonplace import InvalidRecordError, InvalidScopeError, Memory, Scope
from commonplace_strands import CommonplaceSessionRepository
from commonplace_strands.migrate import (
    AGENTS,
    MESSAGES,
    MULTI_AGENTS,
    SESSIONS,
    import_sessions,
)

from ..import_command import import_command, opened
from .conftest import ScriptedModel

NUMBER = int(os.environ.get("IMPORT_SESSIONS", "40"))


def agent_of(manager: Any, *script: Any) -> Agent:
    return Agent(
        model=ScriptedModel(script),
        agent_id="cook",
        session_manager=manager,
        callback_handler=None,
        state={"meals": 1},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions of agents and of a graph, with an image and a redacted message."""
    found = tmp_path_factory.mktemp("strands")
    for number in range(NUMBER):
        manager = FileSessionManager(f"s {number}", storage_dir=str(found))
        agent = agent_of(manager, f"answer {number}")
        agent(f"question {number} 茶")
        agent.state.set("meals", number)
        image = {"image": {"format": "png", "source": {"bytes": b"\x89\xff"}}}
        agent([image, {"text": "what is it?"}])
    manager.redact_latest_message({"role": "assistant", "content": [{"text": "[no]"}]}, agent)
    graph = GraphBuilder()
    graph.add_node(Agent(model=ScriptedModel(), name="a", callback_handler=None), "a")
    graph.set_session_manager(FileSessionManager("graph", storage_dir=str(found)))
    graph.set_execution_timeout(60)
    graph.build()("go")
    return found


def everything(sessions: Any, names: list[str]) -> dict[str, Any]:
    """What a repository reads of sessions."""
    found = {}
    for name in names:
        agent = sessions.read_agent(name, "cook")
        messages = sessions.list_messages(name, "cook") if agent else []
        graph = sessions.read_multi_agent(name, "default_graph")
        found[name] = (sessions.read_session(name), agent, messages, graph)
    return found


@pytest.fixture
def stock(folder: Path) -> dict[str, Any]:
    reader = FileSessionManager("s 0", storage_dir=str(folder))
    found = everything(reader, names_in(folder))
    assert found["graph"][3] is not None
    assert any(message.redact_message for message in found[f"s {NUMBER - 1}"][2])
    return found


def names_in(folder: Path) -> list[str]:
    return [place.name.removeprefix("session_") for place in folder.iterdir()]


def test_all_sessions_come_over_and_go_on(
    folder: Path, stock: dict[str, Any], memory: Memory
) -> None:
    counted = import_sessions(memory, folder, user_id="alice", dry_run=True)
    ours = CommonplaceSessionRepository(memory, user_id="alice")
    assert ours.read_session("s 0") is None
    tally = import_sessions(memory, folder, user_id="alice")

    assert everything(ours, names_in(folder)) == stock
    assert counted == tally
    assert tally.reasons == {}
    assert tally.taken[SESSIONS] == NUMBER + 1
    assert tally.taken[MESSAGES] == 4 * NUMBER
    assert tally.taken[MULTI_AGENTS] == 1
    agent = agent_of(RepositorySessionManager("s 3", session_repository=ours), "on")
    assert agent.state.get("meals") == 3
    agent("and now?")
    texts = [part.get("text") for message in agent.messages for part in message["content"]]
    assert texts == [
        "question 3 茶",
        "answer 3",
        None,
        "what is it?",
        "All right.",
        "and now?",
        "on",
    ]
    other = CommonplaceSessionRepository(memory, user_id="bob")
    assert other.read_session("s 3") is None
    memory.forget(Scope(user_id="alice"))
    assert ours.read_session("s 3") is None


@pytest.mark.parametrize("lost", ["create_session", "create_agent", "create_message"])
def test_an_interrupted_import_goes_on_and_doubles_nothing(
    folder: Path,
    stock: dict[str, Any],
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    lost: str,
) -> None:
    whole, calls = getattr(CommonplaceSessionRepository, lost), []

    def stop(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 7:
            raise KeyboardInterrupt
        whole(*given)

    with monkeypatch.context() as patched:
        patched.setattr(CommonplaceSessionRepository, lost, stop)
        with pytest.raises(KeyboardInterrupt):
            import_sessions(memory, folder, user_id="alice")
    ours = CommonplaceSessionRepository(memory, user_id="alice")
    changed = ours.list_messages("s 0", "cook")[0]
    changed.redact_message = {"role": "user", "content": [{"text": "changed here"}]}
    ours.update_message("s 0", "cook", changed)
    rest = import_sessions(memory, folder, user_id="alice")
    again = import_sessions(memory, folder, user_id="alice")

    assert rest.known[SESSIONS] > 0
    assert again.taken.total() == 0
    assert again.known[MESSAGES] == 4 * NUMBER
    found = everything(ours, names_in(folder))
    assert found["s 0"][2][0].redact_message == changed.redact_message
    found["s 0"][2][0] = stock["s 0"][2][0]
    assert found == stock


def test_what_cannot_be_read_is_told_and_stops_nothing(tmp_path: Path, memory: Memory) -> None:
    for name in ("good", "broken", "linked"):
        agent_of(FileSessionManager(name, storage_dir=str(tmp_path)))("hello")
    messages = tmp_path / "session_good" / "agents" / "agent_cook" / "messages"
    (messages / "message_0.json").write_text("{", "utf-8")
    (tmp_path / "session_broken" / "session.json").write_text("[]", "utf-8")
    agent = tmp_path / "session_linked" / "agents" / "agent_cook" / "agent.json"
    agent.rename(tmp_path / "elsewhere.json")
    agent.symlink_to(tmp_path / "elsewhere.json")
    tally = import_sessions(memory, tmp_path, agent_id="cook")

    assert {kind: tally.refused(kind) for kind in tally.kinds} == {
        SESSIONS: 1, AGENTS: 1, MESSAGES: 1,
    }  # fmt: skip
    assert tally.reasons[AGENTS] == {"is a symbolic link": ["linked/cook"]}
    ours = CommonplaceSessionRepository(memory, agent_id="cook")
    assert [one.message_id for one in ours.list_messages("good", "cook")] == [1]
    for wrong, problem in ((tmp_path / "none", InvalidRecordError), (messages, InvalidRecordError)):
        with pytest.raises(problem, match="FileSessionManager"):
            import_sessions(memory, wrong, user_id="alice")
    with pytest.raises(InvalidScopeError, match="give user_id"):
        import_sessions(memory, tmp_path)


def test_the_command_counts_then_imports(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = import_command(monkeypatch, "strands")
    counted = run(folder, "memory", "--user", "alice", "--dry-run")
    assert (counted.exit_code, (tmp_path / "memory").exists()) == (0, False)
    done = run(folder, "memory", "--user", "alice")
    assert done.stdout.splitlines()[0] == "taken\there already\trefused\twhat"
    assert f"{4 * NUMBER}\t0\t0\tmessages" in done.stdout
    assert f"0\t{4 * NUMBER}\t0\tmessages" in run(folder, "memory", "--user", "alice").stdout
    assert run(folder, "memory").exit_code == 2
    with opened("memory") as memory:
        ours = CommonplaceSessionRepository(memory, user_id="alice")
        assert ours.read_agent("s 1", "cook").state == {"meals": 1}
