"""Long-term memory of agents of AgentScope 1.x; `nox -s agentscope_v1` runs it on a real one."""

import asyncio
import inspect
import json
import logging
import subprocess
import sys
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    Policy,
    SchemaMismatchError,
    Scope,
    StoreUnavailableError,
)
from commonplace.testing.contracts.adapter import (
    AdapterContract,
    PolicyContract,
    PolicyFieldsContract,
)
from commonplace.testing.fakes import HashEmbedder

pytest.importorskip("agentscope.memory", reason="needs AgentScope 1.x: nox -s agentscope_v1")

from agentscope.agent import ReActAgent
from agentscope.embedding import EmbeddingModelBase, EmbeddingResponse
from agentscope.formatter import OpenAIChatFormatter
from agentscope.memory import LongTermMemoryBase
from agentscope.message import Msg, TextBlock, ToolUseBlock
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.session import JSONSession
from pydantic import BaseModel

from commonplace_agentscope.v1 import (
    AgentScopeV1Chat,
    AgentScopeV1Embedder,
    LongTermMemory,
)
from commonplace_agentscope.v1 import memory as v1_memory
from commonplace_agentscope.v1.migrate import import_sessions

from ..isolation.asking import Asker, ask, check, word_of
from ..isolation.poison import TEXTS, check_note, fill, owner_of
from .import_command import import_command

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
COMPRESSES = hasattr(ReActAgent, "CompressionConfig")


def say(text):
    return [TextBlock(type="text", text=text)]


def use(name, call_id="c1", /, **arguments: Any):
    return [ToolUseBlock(type="tool_use", id=call_id, name=name, input=arguments)]


class ScriptedModel(ChatModelBase):
    """Answers from its script, then always the same; keeps what was on the wire."""

    def __init__(self, script=(), *, stream=False) -> None:
        super().__init__("scripted", stream)
        self.script, self.seen, self.tools = list(script), [], []

    async def __call__(self, messages, tools=None, tool_choice=None, **kwargs: Any) -> Any:
        self.seen.append(json.dumps(messages, ensure_ascii=False))
        self.tools.append([one["function"]["name"] for one in tools or []])
        answer = self.script.pop(0) if self.script else say("All right.")
        if isinstance(answer, BaseException):
            raise answer
        return self._streamed(answer) if self.stream else ChatResponse(content=answer)

    async def _streamed(self, blocks) -> Any:
        text = blocks[0]["text"]
        for part in (text[: len(text) // 2], text):
            yield ChatResponse(content=[TextBlock(type="text", text=part)])


class FakeEmbedding(EmbeddingModelBase):
    def __init__(self) -> None:
        super().__init__("fake", 16)

    async def __call__(self, texts, **kwargs: Any) -> Any:
        return EmbeddingResponse(embeddings=HashEmbedder(16).embed(texts, purpose="document"))


def make(long_term_memory, script=(), *, mode="both", name="bot", **more: Any):
    agent = ReActAgent(
        name=name,
        sys_prompt="sys",
        model=ScriptedModel(script),
        formatter=OpenAIChatFormatter(),
        long_term_memory=long_term_memory,
        long_term_memory_mode=mode,
        **more,
    )
    agent.set_console_output_enabled(False)
    return agent


def user(text, name="Alice"):
    return Msg(name, text, "user")


def told(memory, scope=ALICE):
    found = memory.list(scope).records
    return sorted(found, key=lambda one: (one.occurred_at, one.role != "user"))


def texts(memory, scope=ALICE):
    return [one.text for one in told(memory, scope)]


def noted(agent, call=-1):
    """What the model was shown of the memory."""
    return agent.model.seen[call].partition("## Relevant memories")[2]


@pytest.fixture
def long_term(memory):
    return LongTermMemory(user_id="alice", client=memory)


def failing(memory, monkeypatch):
    def fail(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError(store="test", reason="down")

    for name in ("asearch", "aadd", "add"):
        monkeypatch.setattr(memory, name, fail)


class TestAgentScopeV1(AdapterContract, PolicyContract, PolicyFieldsContract):
    without_effect: ClassVar[dict[str, str]] = {
        "mode": "it is the agent's `long_term_memory_mode`",
        "inject": "AgentScope 1.x keeps every note",
        "summaries": "AgentScope 1.x has no sessions of its own",
        "tools": "they are those of AgentScope 1.x",
        "tool_instructions": "AgentScope 1.x adds none",
    }

    @pytest.fixture
    def turn_with(self, memory):
        def turn(policy, *, agent_id=None, conversation=None):
            who: ContextVar[str] = ContextVar("who")
            shared = LongTermMemory(memory, user_id=who.get, agent_id=agent_id, policy=policy)

            async def run(name, text) -> Any:
                who.set(name)
                agent = make(shared)
                await agent(user(text, name))
                shown = json.loads(agent.model.seen[-1])
                return "\n".join(message["content"][0]["text"] for message in shown)

            return run

        return turn

    @pytest.fixture
    def turn(self, turn_with):
        return turn_with(Policy())

    @pytest.fixture
    def turn_without_memory(self, memory, monkeypatch, turn):
        failing(memory, monkeypatch)
        return turn


# -- the interface ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["record", "retrieve", "record_to_memory", "retrieve_from_memory"])
def test_a_method_takes_what_agentscopes_takes(name):
    def parameters(kind):
        found = inspect.signature(getattr(kind, name)).parameters.values()
        return [(one.name, one.kind) for one in found]

    assert parameters(LongTermMemory) == parameters(LongTermMemoryBase)
    assert issubclass(LongTermMemory, LongTermMemoryBase)


@pytest.mark.parametrize(
    ("mode", "recalls", "tools"),
    [
        ("static_control", True, []),
        ("agent_control", False, ["record_to_memory", "retrieve_from_memory"]),
        ("both", True, ["record_to_memory", "retrieve_from_memory"]),
    ],
)
async def test_each_mode_does_its_part(memory, long_term, mode, recalls, tools):
    memory.add("Alice likes green tea.", ALICE)
    agent = make(long_term, mode=mode)
    await agent(user("Which tea do I like?"))

    assert ("Alice likes green tea." in noted(agent)) is recalls
    assert agent.model.tools[0] == tools
    assert texts(memory)[1:] == (["Which tea do I like?", "All right."] if recalls else [])


async def test_the_tools_add_and_search(memory, long_term):
    script = [
        use("record_to_memory", thinking="", content=["Alice has a dog called Rex."]),
        use("retrieve_from_memory", "c2", keywords=["dog"]),
        say("Rex."),
    ]
    agent = make(long_term, script, mode="agent_control")
    await agent(user("Remember my dog Rex. What is it called?"))

    assert texts(memory) == ["Alice has a dog called Rex."]
    assert "] Alice has a dog called Rex." in agent.model.seen[-1]


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("record_to_memory", {"thinking": "", "content": []}, "content"),
        ("record_to_memory", {"thinking": "", "content": "text"}, "list of strings"),
        ("retrieve_from_memory", {"keywords": ["a"], "limit": 1_000}, "limit"),
        ("retrieve_from_memory", {"keywords": ["a"] * 50}, "keywords"),
    ],
)
async def test_a_wrong_call_of_a_tool_is_an_error_that_the_model_reads(
    long_term, name, arguments, named
):
    answer = await getattr(long_term, name)(**arguments)

    assert answer.content[0]["text"].startswith("Error re")
    assert named in answer.content[0]["text"]


@pytest.mark.parametrize("limit", [None, 1, 0, 10_000])
async def test_a_limit_bounds_the_note(memory, long_term, limit):
    memory.add([f"Alice likes tea number {one}." for one in range(9)], ALICE)
    note = await long_term.retrieve(user("Which tea do I like?"), limit)
    lines = [line for line in note.splitlines() if line.startswith("- ")]

    assert len(lines) == {None: 5, 0: 1, 1: 1, 10_000: 9}[limit]


@pytest.mark.parametrize("given", [None, [], [None], [Msg("system", "tea", "system")]])
async def test_nothing_to_recall_for_recalls_nothing(memory, long_term, given):
    memory.add("Alice likes green tea.", ALICE)

    assert await long_term.retrieve(given) == ""
    assert await long_term.record(given or []) == {"results": []}
    assert texts(memory) == ["Alice likes green tea."]


async def test_what_is_recorded_is_returned_as_mem0s_memory_does(memory, long_term):
    said = [user("My cat is called Miso."), user("She is black.")]
    recorded = await long_term.record(said)

    ids = {record.text: record.id for record in told(memory)}
    assert recorded == {
        "results": [
            {"id": ids[text], "memory": text, "event": "ADD"}
            for text in ("My cat is called Miso.", "She is black.")
        ]
    }
    assert await long_term.record(said) == {"results": []}


async def test_the_names_of_mem0s_memory_are_taken(memory, tmp_path):
    model = ScriptedModel()
    long_term = LongTermMemory(
        user_name="alice", agent_name="bot", run_name="monday", path=str(tmp_path), model=model,
        embedding_model=FakeEmbedding(),
    )  # fmt: skip
    await long_term.record([user("My cat is called Miso.")])
    opened = await long_term._memory.lazy.aget()
    await opened.aflush(60)  # on a busy machine it is accepted, and written when there is time
    [record] = opened.list(ALICE).records
    await long_term.aclose()

    assert record.scope == Scope(user_id="alice", agent_id="bot", session_id="monday")


@pytest.mark.parametrize(
    "names",
    [
        {"user_id": "alice", "user_name": "alice"},
        {"user_id": "alice", "agent_id": "bot", "agent_name": "bot"},
        {"user_id": "alice", "session_id": "monday", "run_name": "monday"},
    ],
)
def test_a_name_that_is_given_twice_is_refused(memory, names):
    with pytest.raises(InvalidRecordError, match="must not be given beside"):
        LongTermMemory(memory, **names)


# -- each message once -----------------------------------------------------------------------------


async def test_a_history_that_is_handed_over_each_time_is_stored_once(memory):
    events: list[Any] = []
    long_term = LongTermMemory(user_id="alice", client=memory, on_event=events.append)
    agent = make(long_term)
    for number in range(4):
        await agent(user(f"My cat number {number} is called Miso {number}."))

    cats = [f"My cat number {number} is called Miso {number}." for number in range(4)]
    assert texts(memory) == [text for cat in cats for text in (cat, "All right.")]
    assert [one.count for one in events if one.operation == "write"] == [2] * 4
    assert [(one.role, one.name) for one in told(memory)[:2]] == [
        ("user", "Alice"),
        ("assistant", "bot"),
    ]


async def test_a_history_that_was_restored_is_known(memory, long_term):
    agent = make(long_term)
    await agent(user("I like tea"))
    state = json.loads(json.dumps(agent.state_dict()))
    events: list[Any] = []
    again = make(LongTermMemory(user_id="alice", client=memory, on_event=events.append))
    again.load_state_dict(state)
    await again(user("I like coffee"))

    assert texts(memory) == ["I like tea", "All right.", "I like coffee", "All right."]
    assert [one.count for one in events if one.operation == "write"] == [2]


@pytest.mark.parametrize("forgets_all", [True, False])
async def test_a_history_that_was_restored_brings_nothing_back(memory, long_term, forgets_all):
    agent = make(long_term)
    await agent(user("I like tea"))
    if forgets_all:
        memory.forget(ALICE)
    else:
        for one in told(memory):
            memory.delete(one.id, ALICE)
    again = make(LongTermMemory(user_id="alice", client=memory))
    again.load_state_dict(json.loads(json.dumps(agent.state_dict())))
    await again(user("I like coffee"))

    assert texts(memory) == ["I like coffee", "All right."]


async def test_a_restored_history_stays_its_users(memory, long_term):
    agent = make(long_term)
    await agent(user("I like tea"))
    again = make(LongTermMemory(user_id="bob", client=memory))
    again.load_state_dict(agent.state_dict())
    await again(user("I like coffee", "Bob"))

    assert texts(memory, BOB) == ["I like coffee", "All right."]


@pytest.mark.parametrize("state", [{}, {"recorded": None}, {"other": 1}])
async def test_the_state_of_another_memory_is_taken(memory, long_term, state):
    agent = make(long_term)
    await agent(user("I like tea"))
    again = make(LongTermMemory(user_id="alice", client=memory))
    again.load_state_dict({**agent.state_dict(), "long_term_memory": state})
    await again(user("I like coffee"))

    assert texts(memory) == ["I like tea", "All right.", "I like coffee", "All right."]


async def test_what_an_outage_lost_is_stored_with_the_next_reply(memory, long_term, monkeypatch):
    agent = make(long_term)
    with monkeypatch.context() as outage:
        failing(memory, outage)
        await agent(user("I like tea"))
    assert texts(memory) == []
    await agent(user("I like coffee"))

    assert texts(memory) == ["I like tea", "All right.", "I like coffee", "All right."]


async def test_words_said_twice_are_two_messages(memory, long_term):
    agent = make(long_term)
    for _ in range(2):
        await agent(user("I like tea"))

    assert texts(memory) == ["I like tea", "All right."] * 2


async def test_two_messages_with_one_id_are_both_stored(memory, long_term):
    messages = [user("I like tea"), user("I like coffee")]
    messages[1].id = messages[0].id
    await long_term.record(messages)
    await long_term.record(messages)

    assert sorted(texts(memory)) == ["I like coffee", "I like tea"]


async def test_a_history_of_thousands_of_messages_is_stored(memory, long_term):
    await long_term.record([user(f"This is number {number}.") for number in range(1_200)])

    found = memory.list(ALICE, limit=1_000)
    rest = memory.list(ALICE, limit=1_000, cursor=found.cursor)
    assert len(found.records) + len(rest.records) == 1_200


# -- what a history holds --------------------------------------------------------------------------


async def test_notes_and_tool_results_and_steps_are_not_stored(memory, long_term):
    memory.add("Alice likes green tea.", ALICE)
    script = [
        [*say("Let me see."), *use("retrieve_from_memory", keywords=["tea"])],
        say("Green tea."),
    ]
    agent = make(long_term, script)
    await agent(user("Which tea do I like?"))

    assert "Alice likes green tea." in noted(agent, 0)
    assert texts(memory)[1:] == ["Which tea do I like?", "Green tea."]


@pytest.mark.parametrize(
    "text",
    [
        "<system-hint>Now generate a text response</system-hint>",
        "<system-info>Here is a summary of your previous work\nTea.</system-info>",
        "<retrieved_knowledge>Use the following content:\nTea.\n</retrieved_knowledge>",
        " \n ",
    ],
)
async def test_what_agentscope_writes_in_the_users_name_is_not_stored(memory, long_term, text):
    await long_term.record([user(text, "user"), user("I like tea"), None])

    assert texts(memory) == ["I like tea"]


@pytest.mark.skipif(not COMPRESSES, reason="needs AgentScope 1.0.12, which can compress")
async def test_the_summary_of_a_compressed_history_is_not_stored(memory, long_term):
    agent = make(long_term)
    await agent(user("I like tea"))
    await agent.memory.update_compressed_summary("They spoke of tea.")
    ids = [one.id for one in await agent.memory.get_memory(prepend_summary=False)]
    await agent.memory.update_messages_mark(new_mark="compressed", msg_ids=ids)
    await agent(user("I like coffee"))

    assert texts(memory) == ["I like tea", "All right.", "I like coffee", "All right."]


async def test_saved_conversations_are_imported_once(memory, monkeypatch, tmp_path):
    agent, saved = make(None), JSONSession(save_dir=str(tmp_path))
    for text in ("I like tea", "I like coffee"):
        await agent(user(text))
    said = await agent.memory.get_memory(prepend_summary=False)
    await agent.memory.update_compressed_summary("<system-info>They spoke of tea.</system-info>")
    await agent.memory.update_messages_mark(
        new_mark="compressed", msg_ids=[one.id for one in said[:2]]
    )
    await saved.save_session_state(session_id="alice_monday", agent=agent)
    (tmp_path / "broken.json").write_text('{"memory": {"content": [1]}}')
    (tmp_path / "none.json").write_text("{}")
    files = sorted(tmp_path.glob("*.json"))
    counted = import_sessions(memory, files, user_id="alice", dry_run=True)
    before = texts(memory)
    first = import_sessions(memory, files, user_id="alice")
    again = import_sessions(memory, files, user_id="alice")

    assert before == []
    assert counted.taken == first.taken == {"sessions": 1, "messages": 4, "summaries": 1}
    assert +again.taken == {}
    assert again.known == first.taken
    assert [one.refused("sessions") for one in (counted, first, again)] == [2, 2, 2]
    session = memory.session(Scope(user_id="alice", session_id="monday"))
    assert [one.text for one in session.messages()] == [
        "I like tea", "All right.", "I like coffee", "All right.",
    ]  # fmt: skip
    assert session.summary().text == "They spoke of tea."
    assert session.summary().sources == tuple(one.id for one in session.messages()[:2])
    await LongTermMemory(memory, user_id="alice", session_id="monday").record(said)
    assert len(session.messages()) == 4
    gone = session.messages()[0].id
    for record_id in (gone, session.summary().id):
        memory.delete(record_id, session.scope)
    after = import_sessions(memory, files[:1], user_id="alice")
    assert after.reasons == {"messages": {"deleted here since": [gone]}}
    assert (len(session.messages()), session.summary()) == (3, None)
    run = import_command(monkeypatch, "agentscope")
    done = run(*files, tmp_path / "other", "--user", "alice")
    assert "4\t0\t0\tmessages" in done.stdout
    assert "broken" in done.stderr


async def test_of_an_interrupted_reply_only_the_users_words_are_stored(memory, long_term):
    agent = make(long_term, [asyncio.CancelledError()])
    await agent(user("I like tea"))
    await agent(user("I like coffee"))

    assert texts(memory) == ["I like tea", "I like coffee", "All right."]


async def test_a_reply_that_failed_keeps_the_users_words_for_the_next(memory, long_term):
    agent = make(long_term, [RuntimeError("refused")])
    with pytest.raises(RuntimeError):
        await agent(user("I like tea"))
    await agent(user("I like coffee"))

    assert texts(memory) == ["I like tea", "I like coffee", "All right."]


async def test_a_structured_answer_is_stored_with_its_text(memory, long_term):
    class City(BaseModel):
        name: str

    script = [use("generate_response", name="Lyon"), say("It is Lyon.")]
    agent = make(long_term, script)
    answer = await agent(user("Which city?"), structured_model=City)

    assert answer.metadata == {"name": "Lyon"}
    assert texts(memory) == ["Which city?", "It is Lyon."]


async def test_what_another_agent_said_is_kept_under_its_name(memory, long_term):
    memory.add("The train to Lyon is full in May.", ALICE)
    agent = make(long_term)
    await agent(Msg("planner", "Alice takes the train to Lyon in May.", "assistant"))

    assert "The train to Lyon is full in May." in noted(agent)
    assert [(one.role, one.name) for one in told(memory)[1:]] == [
        ("assistant", "planner"),
        ("assistant", "bot"),
    ]


@pytest.mark.parametrize("forgets", [False, True])
async def test_a_note_repeats_nothing_that_the_conversation_holds(memory, long_term, forgets):
    agent = make(long_term)
    await agent(user("My cat is called Miso."))
    if forgets:
        await agent.memory.clear()
    await agent(user("How is my cat called?"))

    assert ("Miso" in noted(agent)) is forgets


# -- users -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_one_memory_serves_several_users_at_once(memory, is_async):
    who: ContextVar[str] = ContextVar("who")

    async def find():
        await asyncio.sleep(0)
        return who.get()

    shared = LongTermMemory(user_id=find if is_async else who.get, client=memory)

    async def talk(name):
        who.set(name)
        fact = use("record_to_memory", thinking="", content=[f"{name} is here."])
        agent = make(shared, [fact, say(f"Hello {name}.")])
        await agent(user(f"I am {name}.", name))

    await asyncio.gather(talk("alice"), talk("bob"))

    for name in ("alice", "bob"):
        expected = {f"I am {name}.", f"{name} is here.", f"Hello {name}."}
        assert set(texts(memory, Scope(user_id=name))) == expected


async def test_an_agent_that_serves_another_user_does_not_give_him_the_first_ones_words(memory):
    who = ["alice"]
    agent = make(LongTermMemory(user_id=lambda: who[0], client=memory))
    await agent(user("I like tea"))
    who[0] = "bob"
    await agent(user("I like coffee", "Bob"))
    who[0] = "alice"
    await agent(user("I like cocoa"))

    assert texts(memory) == ["I like tea", "All right.", "I like cocoa", "All right."]
    assert texts(memory, BOB) == ["I like coffee", "All right."]


def nobody():
    raise LookupError("nobody is logged in")


@pytest.mark.parametrize("find", [lambda: None, nobody])
async def test_a_user_who_is_not_named_has_no_memory(memory, caplog, find):
    long_term = LongTermMemory(user_id=find, client=memory)
    agent = make(long_term, [use("retrieve_from_memory", keywords=["tea"]), say("No idea.")])
    for _ in range(2):
        answer = await agent(user("I like tea"))

    assert answer.get_text_content() == "All right."
    assert texts(memory) == []
    assert "Error retrieving memory: user_id=None must be known" in agent.model.seen[1]
    assert len([one for one in caplog.records if "memory scope" in one.message]) == 1


async def test_an_id_that_no_scope_can_hold_is_refused_before_the_model_is_asked(memory):
    agent = make(LongTermMemory(user_id=lambda: "*", client=memory))
    with pytest.raises(InvalidScopeError):
        await agent(user("I like tea"))

    assert agent.model.seen == []


async def test_turns_belong_to_the_session_and_facts_to_the_user(memory):
    long_term = LongTermMemory(user_id="alice", agent_id=7, session_id="s1", client=memory)
    fact = use("record_to_memory", thinking="", content=["Alice is a pilot."])
    await make(long_term, [fact, say("Noted.")])(user("I am a pilot."))
    memory.forget(Scope(user_id="alice", session_id="s1"))

    (left,) = told(memory)
    assert (left.text, left.scope) == ("Alice is a pilot.", Scope(user_id="alice", agent_id="7"))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"user_id": None}, InvalidScopeError),
        ({"user_id": " "}, InvalidScopeError),
        ({"top_k": 5}, TypeError),
        ({"policy": "both"}, InvalidRecordError),
        ({"user_name": "bob"}, InvalidRecordError),
        ({"client": object()}, TypeError),
        ({"chat_model": object()}, TypeError),
        ({"embedding_model": object()}, TypeError),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(given, error):
    with pytest.raises(error):
        LongTermMemory(**{"user_id": "alice", **given})


# -- health ----------------------------------------------------------------------------------------


async def test_a_failing_memory_is_logged_once_and_the_reply_comes(
    memory, long_term, monkeypatch, caplog
):
    caplog.set_level(logging.WARNING, "commonplace_agentscope")
    failing(memory, monkeypatch)
    agent = make(long_term)
    for _ in range(3):
        answer = await agent(user("Which tea do I like?"))

    ours = [one.message for one in caplog.records if one.name == "commonplace_agentscope"]
    assert answer.get_text_content() == "All right."
    assert sorted(one.split()[1] for one in ours) == ["recall", "write"]
    assert (long_term.counters().failed, long_term.counters().waiting) == (3, 3)


async def test_a_hung_memory_is_left_behind(memory, monkeypatch):
    async def hang(*args: Any, **options: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(memory, "asearch", hang)
    long_term = LongTermMemory(memory, user_id="alice", policy=Policy(recall_timeout=0.1))
    long_term._memory._first_recall_timeout = None
    answer = await make(long_term)(user("Which tea do I like?"))

    assert answer.get_text_content() == "All right."
    assert long_term.counters().timed_out == 1


async def test_a_folder_of_another_embedder_is_raised_by_the_first_reply(tmp_path):
    Memory.open(str(tmp_path), embedder=HashEmbedder()).close()
    long_term = LongTermMemory(
        user_id="alice", path=str(tmp_path), embedding_model=HashEmbedder(16)
    )
    agent = make(long_term)
    for _ in range(2):
        with pytest.raises(SchemaMismatchError):
            await agent(user("Which tea do I like?"))
    with pytest.raises(SchemaMismatchError):
        await long_term.record([user("I like tea")])

    assert agent.model.seen == []


def test_a_second_loop_recalls_what_the_first_learned(tmp_path):
    long_term = LongTermMemory(user_id="alice", path=str(tmp_path), embedding_model=HashEmbedder())

    async def run(text) -> Any:
        agent = make(long_term)
        await agent(user(text))
        return noted(agent)

    asyncio.run(run("My cat is called Miso"))
    shown = asyncio.run(run("How is my cat called?"))
    asyncio.run(long_term.aclose())

    assert "Miso" in shown


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_one_model_of_agent_and_memory_extracts_facts(tmp_path, stream):
    facts = [{"text": "Alice's cat is called Miso.", "kind": "fact"}]
    fenced = f"```json\n{json.dumps({'facts': facts})}\n```"
    model = ScriptedModel([say("Nice."), say(fenced)], stream=stream)
    long_term = LongTermMemory(
        user_id="alice",
        path=str(tmp_path),
        chat_model=model,
        embedding_model=FakeEmbedding(),
    )
    agent = make(long_term)
    agent.model = model
    await agent(user("My cat is called Miso."))
    memory = await long_term._memory.lazy.aget()
    await memory.aflush()

    assert "Alice's cat is called Miso." in texts(memory)
    assert not model.script
    await long_term.aclose()


async def test_a_restored_history_is_not_extracted_again(tmp_path):
    def new(model):
        return LongTermMemory(
            user_id="alice",
            path=str(tmp_path),
            chat_model=AgentScopeV1Chat(model),
            embedding_model=AgentScopeV1Embedder(FakeEmbedding()),
        )

    empty = say('{"facts": []}')
    model = ScriptedModel([say("Nice."), empty])
    first = new(model)
    agent = make(first)
    agent.model = model
    await agent(user("My cat is called Miso."))
    await first.aclose()
    model.script = [say("Nice, too."), empty]
    second = new(model)
    again = make(second)
    again.load_state_dict(agent.state_dict())
    again.model = model
    await again(user("My dog is called Rex."))
    await (await second._memory.lazy.aget()).aflush()
    await second.aclose()

    assert not model.script
    assert "Rex" in model.seen[-1]
    assert len(model.seen) == 4


# -- who calls -------------------------------------------------------------------------------------


async def test_of_an_agent_that_keeps_its_memory_elsewhere_nothing_is_stored(
    memory, long_term, monkeypatch, caplog
):
    monkeypatch.setattr(v1_memory, "_MEMORY", "memory_of_long_ago")
    agent = make(long_term)
    for text in ("I like tea", "I like coffee"):
        answer = await agent(user(text))

    assert answer.get_text_content() == "All right."
    assert texts(memory) == []
    warned = "memory write failed; the agent continues without it: It cannot be told who calls"
    assert caplog.text.count(f"{warned}, as ReActAgent has no memory_of_long_ago") == 1
    assert agent.state_dict()["long_term_memory"]["recorded"] == {}


async def test_of_an_agentscope_without_the_module_of_its_agents_nothing_is_stored(
    memory, long_term, monkeypatch
):
    changed = replace(v1_memory._CALLERS, modules=("agentscope.agents",))
    monkeypatch.setattr(v1_memory, "_CALLERS", changed)
    await make(long_term)(user("I like tea"))

    assert texts(memory) == []


# -- releases --------------------------------------------------------------------------------------


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )


def test_it_imports_nothing_of_2():
    code = """
import commonplace_agentscope.v1, sys
print(sorted(one for one in sys.modules if one.startswith("commonplace_agentscope.")))
"""

    assert run(code).stdout.strip() == str(
        [
            f"commonplace_agentscope.{name}"
            for name in (
                "shared_models",
                "v1",
                "v1.convert",
                "v1.memory",
                "v1.models",
            )
        ]
    )


def test_a_name_for_2_says_what_to_install():
    found = run("from commonplace_agentscope import CommonplaceMiddleware")

    assert found.returncode == 1
    assert "MissingExtraError: 'agentscope>=2' is not installed" in found.stderr


def test_no_call_hands_out_what_is_of_another_user_and_no_note_is_closed(memory):
    def of(asker: Asker) -> LongTermMemory:
        return LongTermMemory(user_id=asker.user, client=memory)

    async def record(asker: Asker) -> Any:
        return await of(asker).record([user(asker.text)])

    async def retrieve(asker: Asker) -> Any:
        return await of(asker).retrieve(user(asker.query))

    async def record_to_memory(asker: Asker) -> Any:
        return repr(await of(asker).record_to_memory("", [asker.text]))

    async def retrieve_from_memory(asker: Asker) -> Any:
        return repr(await of(asker).retrieve_from_memory([word_of(asker.other), "tea"]))

    cases = [record, retrieve, record_to_memory, retrieve_from_memory]
    seen = ask({one.__name__: one for one in cases}, 300)

    check(seen, "record")

    fill(memory)
    with asyncio.Runner() as runner:
        for number in range(len(TEXTS)):
            found = LongTermMemory(user_id=owner_of(number).user_id, client=memory)
            note = runner.run(found.retrieve(user("What do you know about me?")))
            check_note(note, Policy(), f"zebra{number}x")


# -- accepted before the model is called ---------------------------------------------------------


async def test_what_a_user_said_is_there_while_the_model_thinks(memory, long_term):
    class Thinking(ScriptedModel):
        async def __call__(self, *args: Any, **kwargs: Any) -> Any:
            memory.flush()
            kept.append(texts(memory))
            return await super().__call__(*args, **kwargs)

    kept: list[list[str]] = []
    agent = make(long_term, [use("retrieve_from_memory", keywords=["tea"]), say("So do I.")])
    agent.model = Thinking(agent.model.script)
    await agent(user("I like tea"))

    assert kept[0] == ["I like tea"]
    assert "no relevant memories" in agent.model.seen[-1]
    assert texts(memory) == ["I like tea", "So do I."]


async def test_who_only_retrieves_stores_nothing(memory, long_term):
    await long_term.retrieve(user("I like tea"))
    memory.flush()

    assert texts(memory) == []
