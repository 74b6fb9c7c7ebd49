"""Strands' sessions on a memory: exact, one user's alone, and gone when they are forgotten."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("strands", reason="pip install 'commonplace-memory[strands]'")

from strands import Agent
from strands.multiagent import GraphBuilder
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import CommonplaceSessionRepository

ALICE = Scope(user_id="alice")


def said(text: str, number: int = 0) -> SessionMessage:
    return SessionMessage.from_message({"role": "user", "content": [{"text": text}]}, number)


def state_of(agent: str = "cook", /, **state: Any) -> SessionAgent:
    return SessionAgent(agent_id=agent, state=state, conversation_manager_state={})


class SessionContract:
    """What a repository of sessions promises, on any store; `kept` is a memory."""

    @pytest.fixture
    def sessions(self, kept: Memory) -> CommonplaceSessionRepository:
        made = CommonplaceSessionRepository(kept, user_id="alice")
        made.create_session(Session(session_id="s", session_type=SessionType.AGENT))
        made.create_agent("s", state_of())
        return made

    def test_a_session_comes_back_as_it_was(self, sessions):
        held = sessions.read_session("s")

        assert (held.session_id, held.session_type) == ("s", SessionType.AGENT)
        assert sessions.read_session("t") is None
        with pytest.raises(SessionException, match="s already exists"):
            sessions.create_session(held)

    def test_an_agent_is_replaced_but_for_when_it_was_made(self, sessions):
        first = sessions.read_agent("s", "cook")
        later = state_of(n=1)
        sessions.update_agent("s", later)

        assert sessions.read_agent("s", "cook").state == {"n": 1}
        assert sessions.read_agent("s", "cook").created_at == first.created_at
        assert sessions.read_agent("s", "waiter") is None

    def test_messages_come_in_the_order_of_their_numbers(self, sessions):
        numbers = [0, 1, 2, 10, 9, 100, 600, *range(200, 500)]
        for number in numbers:
            sessions.create_message("s", "cook", said(f"text {number}", number))
        sessions.create_agent("s", state_of("cook 2"))
        sessions.create_message("s", "cook 2", said("of another"))

        def listed(**asked: int) -> list[int]:
            return [one.message_id for one in sessions.list_messages("s", "cook", **asked)]

        numbers.sort()
        assert listed() == numbers
        assert listed(offset=4) == numbers[4:]
        assert listed(limit=2) == numbers[:2]
        assert listed(limit=3, offset=300) == numbers[300:303]
        assert listed(offset=999) == listed(limit=0) == []
        assert sessions.read_message("s", "cook", 10).message["content"] == [{"text": "text 10"}]
        assert sessions.read_message("s", "cook", 11) is None

    def test_agents_of_one_session_have_their_own_messages(self, sessions):
        sessions.create_agent("s", state_of("waiter"))
        sessions.create_message("s", "cook", said("of the cook"))
        sessions.create_message("s", "waiter", said("of the waiter"))

        assert sessions.list_messages("s", "cook")[0].message == said("of the cook").message
        assert sessions.read_message("s", "waiter", 0).message == said("of the waiter").message

    def test_a_page_reads_no_more_than_it_lists(self, sessions, kept, monkeypatch):
        for number in range(30):
            sessions.create_message("s", "cook", said(f"text {number}", number))
        read, page = [], kept.admin.checkpoints.page

        def note(*given: Any, **options: Any) -> Any:
            found = page(*given, **options)
            read.extend(one.address.id for one in found)
            return found

        monkeypatch.setattr(kept.admin.checkpoints, "page", note)
        for asked in ({"limit": 4, "offset": 26}, {"offset": 26}, {"limit": 4}):
            read.clear()
            found = sessions.list_messages("s", "cook", **asked)
            assert [int(name) for name in read] == [one.message_id for one in found]
            assert len(found) == 4

    def test_a_message_that_is_redacted_is_read_so(self, sessions):
        sessions.create_message("s", "cook", said("my password is x"))
        one = sessions.read_message("s", "cook", 0)
        made, one.redact_message = one.created_at, {"role": "user", "content": [{"text": "[no]"}]}
        one.created_at = "another day"
        sessions.update_message("s", "cook", one)

        [held] = sessions.list_messages("s", "cook")
        assert held.to_message()["content"] == [{"text": "[no]"}]
        assert held.created_at == made

    @pytest.mark.parametrize("text", ["", "猫 \U0001f63c", "\ud800 alone", "\x00", "a" * 300_000])
    def test_any_text_and_bytes_come_back(self, sessions, text: str):
        image = {"image": {"format": "png", "source": {"bytes": b"\x00\xff"}}}
        message = {"role": "user", "content": [{"text": text}, image]}
        sessions.create_message("s", "cook", SessionMessage.from_message(message, 0))

        assert sessions.read_message("s", "cook", 0).to_message() == message

    def test_what_is_not_there_is_told(self, sessions):
        gone: list[Callable[[], object]] = [
            lambda: sessions.update_agent("s", state_of("waiter")),
            lambda: sessions.create_agent("t", state_of()),
            lambda: sessions.create_message("s", "waiter", said("x")),
            lambda: sessions.update_message("s", "cook", said("x", 7)),
            lambda: sessions.list_messages("s", "waiter"),
            lambda: sessions.delete_session("t"),
        ]
        for call in gone:
            with pytest.raises(SessionException, match="does not exist"):
                call()
        for number in ("1", None, -1, True):
            with pytest.raises(ValueError, match="message_id"):
                sessions.read_message("s", "cook", number)

    def test_a_deleted_session_is_gone_and_its_name_is_free(self, sessions, kept):
        sessions.create_message("s", "cook", said("x"))
        sessions.delete_session("s")

        assert sessions.read_session("s") is sessions.read_agent("s", "cook") is None
        assert set(kept.admin.checkpoints.count(ALICE).values()) == {0}
        sessions.create_session(Session(session_id="s", session_type=SessionType.AGENT))

    def test_sessions_of_one_name_are_apart(self, sessions, kept):
        others = [{"user_id": "bob"}, {"agent_id": "alice"}, {"user_id": "alice", "agent_id": "g"}]
        for owner in others:
            other = CommonplaceSessionRepository(kept, **owner)
            assert other.read_session("s") is None
            assert other.read_agent("s", "cook") is None
            other.create_session(Session(session_id="s", session_type=SessionType.AGENT))
            other.create_agent("s", state_of(whose=str(owner)))
            other.delete_session("s")

        assert sessions.read_agent("s", "cook").state == {}

    def test_any_name_is_a_session_of_its_own(self, sessions):
        names = ["t", " t", "T", "t/../s", "e\u0301", "\u00e9", "x" * 300, "x" * 301, "\ud800"]
        for name in names:
            sessions.create_session(Session(session_id=name, session_type=SessionType.AGENT))
            sessions.create_agent(name, state_of(name=name))

        assert [sessions.read_agent(one, "cook").state["name"] for one in names] == names

    def test_forgetting_takes_the_sessions_it_covers(self, sessions, kept):
        other = CommonplaceSessionRepository(kept, user_id="bob")
        for one, name in ((sessions, "t"), (other, "s")):
            one.create_session(Session(session_id=name, session_type=SessionType.AGENT))
        receipt = kept.forget(Scope(user_id="alice", session_id="s"))

        assert receipt.removed["checkpoints.threads"] == 1
        assert sessions.read_session("s") is None
        assert sessions.read_session("t") is not None
        kept.forget(ALICE)
        assert sessions.read_session("t") is None
        assert other.read_session("s") is not None


class TestSessions(SessionContract):
    @pytest.fixture
    def kept(self, memory: Memory) -> Memory:
        return memory


def manager(memory: Memory, session_id: str = "s", user_id: str = "alice") -> Any:
    repository = CommonplaceSessionRepository(memory, user_id=user_id)
    return RepositorySessionManager(session_id=session_id, session_repository=repository)


def test_an_agent_goes_on_with_its_conversation_after_a_restart(model, tmp_path):
    for turn in range(2):
        with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
            agent = Agent(
                model=(scripted := model()), agent_id="cook", session_manager=manager(memory),
                callback_handler=None,
            )  # fmt: skip
            assert agent.state.get("turns") == (turn or None)
            agent.state.set("turns", turn + 1)
            agent(f"This is turn {turn}.")

    assert "turn 0" in scripted.shown()
    assert len(agent.messages) == 4


def test_users_at_once_on_several_loops_have_their_own_conversations(model, memory):
    def talk(number: int) -> str:
        scripted = model()
        agent = Agent(
            model=scripted, agent_id="cook", callback_handler=None,
            session_manager=manager(memory, user_id=f"user {number}"),
        )  # fmt: skip
        for turn in range(5):
            asyncio.run(agent.invoke_async(f"user {number} turn {turn}"))
        return scripted.shown()

    with ThreadPoolExecutor(8) as threads:
        shown = list(threads.map(talk, range(8)))

    for number, text in enumerate(shown):
        assert [f"user {number} turn {turn}" in text for turn in range(5)] == [True] * 5
        assert not [other for other in range(8) if other != number and f"user {other} " in text]


def test_a_graph_goes_on_where_it_was(model, memory):
    def build() -> Any:
        builder = GraphBuilder()
        builder.add_node(Agent(model=model(["done"]), name="a", callback_handler=None), "a")
        builder.set_graph_id("graph")
        builder.set_max_node_executions(9)
        builder.set_session_manager(manager(memory))
        return builder.build()

    build()("go")
    repository = CommonplaceSessionRepository(memory, user_id="alice")
    state = repository.read_multi_agent("s", "graph")

    assert state["completed_nodes"] == ["a"]
    assert repository.read_multi_agent("s", "other") is None
    build()
    assert repository.read_multi_agent("s", "graph") == state


async def test_the_path_of_a_memory_is_enough(model, tmp_path):
    for _ in range(2):
        agent = Agent(
            model=model(), agent_id="cook", session_manager=manager(tmp_path),
            callback_handler=None,
        )  # fmt: skip
        await agent.invoke_async("Good morning.")

    assert len(agent.messages) == 4
    with Memory.open(tmp_path) as memory:
        assert set(memory.admin.checkpoints.count(ALICE).values()) != {0}
