import asyncio
import copy
import gc
import logging
import re
import subprocess
import sys
import threading
import weakref

import pytest
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeInvocationEvent
from strands.memory import MemoryManager
from strands.multiagent import GraphBuilder
from strands.session import FileSessionManager
from strands.tools.executors import SequentialToolExecutor
from strands.types.agent import ConcurrentInvocationMode

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    Message,
    Policy,
    SchemaMismatchError,
    Scope,
    StoreUnavailableError,
)
from commonplace.agents import await_within
from commonplace.agents.note import FOOTER
from commonplace.testing.contracts.adapter import (
    AdapterContract,
    PolicyContract,
    PolicyFieldsContract,
)
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import CommonplaceMemoryStore, MemoryPlugin

ALICE = Scope(user_id="alice")
STATIC = Policy(mode="static_control")
AGENT = Policy(mode="agent_control")
FORGETS = Policy(tools=("forget_memory",))


def of(user, **more):
    return {"invocation_state": {"user_id": user, **more}}


@tool(context=True)
def gate(number: int, tool_context: ToolContext) -> str:
    """Ask the person behind the agent."""
    return str(tool_context.interrupt(f"gate {number}", reason="May I?"))


@tool(name="gate")
def no_gate(number: int) -> str:
    """Ask nobody."""
    return str(number)


def yes(result):
    asked = [one.id for one in result.interrupts]
    return [{"interruptResponse": {"interruptId": one, "response": "yes"}} for one in asked]


class TestStrands(AdapterContract, PolicyContract, PolicyFieldsContract):
    @pytest.fixture
    def turn_with(self, memory, make):
        def turn(policy, *, agent_id=None, conversation=None):
            shared = MemoryPlugin(memory, policy=policy, agent_id=agent_id)
            lasting = conversation and make(shared)

            async def run(user, text):
                agent = lasting or make(shared)
                await agent.invoke_async(text, **of(user))
                return f"{agent.model.prompts[-1]}\n{agent.model.shown()}"

            return run

        return turn

    @pytest.fixture
    def turn(self, turn_with):
        return turn_with(Policy())

    @pytest.fixture
    def turn_without_memory(self, broken, make):
        shared = MemoryPlugin(broken)

        async def run(user, text):
            agent = make(shared)
            await agent.invoke_async(text, **of(user))
            return agent.model.shown()

        return run


class TestOneTurn:
    def test_a_turn_is_kept_word_by_word(self, memory, make, told):
        agent = make(MemoryPlugin(memory), script=["Noted."])
        agent("My cat is called Miso.", **of("alice"))

        assert told("alice") == ["My cat is called Miso.", "Noted."]

    def test_the_note_never_enters_the_history(self, memory, make):
        plugin = MemoryPlugin(memory)
        make(plugin)("My cat is called Miso.", **of("alice"))
        agent = make(plugin)
        agent("How is my cat called?", **of("alice"))

        assert FOOTER in agent.model.shown()
        assert FOOTER not in str(agent.messages)
        assert "metadata" not in agent.messages[0]

    def test_the_note_is_never_saved_with_a_session(self, memory, make, tmp_path):
        session = FileSessionManager(session_id="s", storage_dir=str(tmp_path / "sessions"))
        make(MemoryPlugin(memory))("My cat is called Miso.", **of("alice"))
        agent = make(MemoryPlugin(memory), session_manager=session)
        agent("How is my cat called?", **of("alice"))

        saved = [one.read_text("utf-8") for one in (tmp_path / "sessions").rglob("*.json")]
        assert FOOTER in agent.model.shown()
        assert [one for one in saved if FOOTER in one] == []

    def test_the_note_is_never_remembered(self, memory, make, told):
        plugin = MemoryPlugin(memory)
        make(plugin)("My cat is called Miso.", **of("alice"))
        for _ in range(3):
            agent = make(plugin)
            agent("How is my cat called?", **of("alice"))

        assert FOOTER in agent.model.shown()
        assert [one for one in told("alice") if "Relevant memories" in one] == []

    def test_the_note_stands_at_the_end_where_caches_do_not_reach(self, memory, make):
        make(MemoryPlugin(memory))("My cat is called Miso.", **of("alice"))
        agent = make(MemoryPlugin(memory))
        agent("How is my cat called?", **of("alice"))

        question, note = agent.model.seen[-1][-1]["content"]
        assert question == {"text": "How is my cat called?"}
        assert note["text"].endswith(FOOTER)
        assert agent.model.kept[-1].get("dynamic_trailing_blocks", 1) == 1

    def test_a_turn_with_tools_recalls_once_and_shows_its_note_each_time(
        self, memory, make, use, monkeypatch
    ):
        make(MemoryPlugin(memory))("My cat is called Miso.", **of("alice"))
        asked = []
        search = memory.asearch
        monkeypatch.setattr(
            memory,
            "asearch",
            lambda text, *rest, **more: asked.append(text) or search(text, *rest, **more),
        )

        @tool
        def look() -> str:
            """Look."""
            return "a cat"

        agent = make(MemoryPlugin(memory, policy=STATIC), script=[use("look")], tools=[look])
        agent("How is my cat called?", **of("alice"))

        assert asked == ["How is my cat called?"]
        assert [agent.model.shown(call).count("Miso") for call in (0, 1)] == [1, 1]
        assert "toolResult" in agent.model.seen[1][-1]["content"][0]

    def test_only_the_last_words_of_a_turn_are_its_answer(self, memory, make, use, told):
        script = [["Let me see.", use("search_memory", keywords=["cat"])], "No idea."]
        make(MemoryPlugin(memory), script=script)("How is my cat called?", **of("alice"))

        assert told("alice") == ["How is my cat called?", "No idea."]

    def test_a_structured_answer_is_kept_as_json(self, memory, make, use, told):
        class Cat(BaseModel):
            """A cat."""

            name: str

        agent = make(MemoryPlugin(memory), script=[use("Cat", name="Miso")])
        agent("My cat is called Miso.", structured_output_model=Cat, **of("alice"))

        assert told("alice") == ["My cat is called Miso.", '{"name":"Miso"}']

    def test_a_turn_that_failed_leaves_the_user_s_own_words(self, memory, make, told):
        agent = make(MemoryPlugin(memory), script=[ValueError("no model")])
        with pytest.raises(ValueError, match="no model"):
            agent("My cat is called Miso.", **of("alice"))

        assert told("alice") == ["My cat is called Miso."]

    def test_a_turn_that_was_cancelled_leaves_the_user_s_own_words(self, memory, make, told):
        agent = make(MemoryPlugin(memory), script=[lambda _: agent.cancel() or "Noted."])
        agent("My cat is called Miso.", **of("alice"))

        assert told("alice") == ["My cat is called Miso."]

    def test_a_conversation_that_is_handed_in_whole_is_not_kept_again(self, memory, make, told):
        history = [
            {"role": "user", "content": [{"text": "An old question."}]},
            {"role": "assistant", "content": [{"text": "An old answer."}]},
            {"role": "user", "content": [{"text": "A new question."}]},
        ]
        make(MemoryPlugin(memory), script=["A new answer."])(history, **of("alice"))

        assert told("alice") == ["A new question.", "A new answer."]

    def test_what_another_hook_redacts_is_not_kept(self, memory, make, told):
        agent = make(MemoryPlugin(memory))

        def redact(event: BeforeInvocationEvent) -> None:
            event.messages = [{"role": "user", "content": [{"text": "[redacted]"}]}]

        agent.add_hook(redact)
        agent("My number is 4242.", **of("alice"))

        assert told("alice") == ["[redacted]", "All right."]

    def test_a_program_s_own_tool_call_is_no_conversation(self, memory, make, told):
        agent = make(MemoryPlugin(memory, extra_tools=("list_memories",)))
        agent.tool.list_memories(user_id="alice")
        agent("Hello there.", **of("alice"))

        assert told("alice") == ["Hello there.", "All right."]

    def test_a_turn_that_an_interrupt_cuts_in_two_is_kept_once(self, memory, make, use, told):
        memory.add("A fact.", Scope(user_id="alice"), key="k")
        (record,) = memory.list(Scope(user_id="alice")).records
        script = [use("list_memories"), use("forget_memory", memory_id=record.id), "Deleted."]
        agent = make(
            MemoryPlugin(memory, policy=FORGETS, extra_tools=("list_memories",)), script=script
        )

        result = agent("Forget it.", **of("alice"))
        assert result.stop_reason == "interrupt"
        response = {"interruptId": result.interrupts[0].id, "response": "yes"}
        agent([{"interruptResponse": response}], **of("alice"))

        assert told("alice") == ["Forget it.", "Deleted."]

    def test_whoever_goes_on_with_another_s_turn_has_no_memory_in_it(self, memory, make, use, told):
        memory.add("A fact.", Scope(user_id="alice"), key="k")
        (record,) = memory.list(Scope(user_id="alice")).records
        script = [
            use("list_memories"),
            use("forget_memory", memory_id=record.id),
            "Alice, it is gone.",
        ]
        agent = make(
            MemoryPlugin(memory, policy=FORGETS, extra_tools=("list_memories",)), script=script
        )
        result = agent("Forget it.", **of("alice"))
        response = {"interruptId": result.interrupts[0].id, "response": "yes"}
        agent([{"interruptResponse": response}], **of("bob"))

        assert told("bob") == []
        assert told("alice") == ["A fact.", "Forget it."]

    def test_going_on_with_another_s_turn_twice_does_not_make_it_one_s_own(
        self, memory, make, use, told
    ):
        script = [use("gate", number=1), use("gate", number=2), "Alice's secret."]
        agent = make(MemoryPlugin(memory), script=script, tools=[gate])
        result = agent("Keep a secret.", **of("alice"))
        result = agent(yes(result), **of("bob"))
        agent(yes(result), **of("bob"))

        assert told("bob") == []

    def test_nobody_goes_on_with_a_turn_of_another_s_that_failed(self, memory, make, told):
        agent = make(MemoryPlugin(memory), script=[OSError("down"), OSError("down"), "A secret."])
        with pytest.raises(OSError, match="down"):
            agent("Keep a secret.", **of("alice"))
        with pytest.raises(OSError, match="down"):
            agent(None, **of("bob"))
        agent(None, **of("bob"))

        assert told("bob") == []

    @pytest.mark.parametrize(("user", "kept"), [("alice", ["Secret.", "Done."]), ("bob", [])])
    def test_a_session_tells_another_process_whose_turn_goes_on(
        self, memory, make, use, told, tmp_path, user, kept
    ):
        def restored(*script):
            session = FileSessionManager(session_id="one", storage_dir=str(tmp_path))
            plugin = MemoryPlugin(memory)
            return make(
                plugin, script=script, tools=[gate], session_manager=session, agent_id="one"
            )

        result = restored(use("gate", number=1))("Secret.", **of("alice"))
        restored("Done.")(yes(result), **of(user))

        assert told(user) == kept

    @pytest.mark.parametrize(("user", "is_deleted"), [("alice", True), ("bob", False)])
    def test_only_whoever_was_asked_within_a_tool_s_agent_consents(
        self, memory, make, use, user, is_deleted
    ):
        memory.add("A fact.", Scope(user_id="alice"), key="k")
        (record,) = memory.list(Scope(user_id="alice")).records
        plugin = MemoryPlugin(memory, policy=FORGETS, extra_tools=("list_memories",))
        inner = make(
            plugin,
            script=[use("list_memories"), use("forget_memory", memory_id=record.id)],
            name="inner",
        )
        outer = make(MemoryPlugin(memory), script=[use("inner", input="Forget.")], tools=[inner])
        result = outer("Forget it.", **of("alice"))
        outer(yes(result), **of(user))

        assert (memory.get(record.id, Scope(user_id="alice")) is None) == is_deleted

    def test_a_turn_that_was_answered_leaves_no_trace_in_the_agent_s_state(self, memory, make, use):
        agent = make(MemoryPlugin(memory), script=[use("gate", number=1)], tools=[gate])
        result = agent("Ask me.", **of("alice"))
        assert agent.state.get()
        agent(yes(result), **of("alice"))

        assert not agent.state.get()

    @pytest.mark.filterwarnings("ignore:Agent.structured_output")
    def test_a_call_for_structured_output_is_no_turn(self, memory, make, told, model, monkeypatch):
        class Cat(BaseModel):
            name: str

        async def answer(self, *_args, **_options):
            yield {"output": Cat(name="Miso")}

        monkeypatch.setattr(model, "structured_output", answer)
        plugin = MemoryPlugin(memory, user_id="alice")
        make(plugin).structured_output(Cat, "Which cat?")

        assert told("alice") == []
        assert plugin._turns._running == {}

    def test_turns_of_one_agent_are_neighbours_in_a_session(self, memory, make):
        agent = make(MemoryPlugin(memory))
        agent("One.", **of("alice"))
        agent("Two.", **of("alice"))
        agent("Three.", **of("alice", session_id="mine"))

        records = memory.list(Scope(user_id="alice")).records
        places = {one.text: (one.scope.session_id, one.position) for one in records}
        session, first = places["One."]
        assert (session, first + 2) == places["Two."]
        assert places["Three."] == ("mine", 0)


class TestWhose:
    def test_a_function_reads_who_asks_where_the_caller_names_nobody(self, memory, make, told):
        plugin = MemoryPlugin(memory, user_id=lambda state: state.get("login"))
        make(plugin)("One.", invocation_state={"login": "alice"})
        make(plugin)("Two.", invocation_state={"login": "alice", "user_id": "bob"})
        make(plugin)("Three.")

        assert told("alice") == ["One.", "All right."]
        assert told("bob") == ["Two.", "All right."]
        assert plugin.counters().written == 2

    def test_a_turn_of_nobody_has_no_memory(self, memory, make, caplog):
        agent = make(MemoryPlugin(memory))
        with caplog.at_level(logging.WARNING, "commonplace_strands"):
            agent("My cat is called Miso.")
            agent("How is my cat called?")

        assert FOOTER not in agent.model.shown()
        assert len(caplog.records) == 1
        assert "user_id=None is unknown" in caplog.text

    def test_a_user_id_of_none_is_nobody_s_and_not_the_default_user_s(self, memory, make, told):
        make(MemoryPlugin(memory, user_id="alice"))("My cat is called Miso.", **of(None))

        assert told("alice") == []

    def test_a_turn_without_a_user_is_the_default_user_s(self, memory, make, told):
        make(MemoryPlugin(memory, user_id="alice"))("My cat is called Miso.")

        assert told("alice") == ["My cat is called Miso.", "All right."]

    def test_the_caller_s_state_is_left_as_it_was(self, memory, make):
        state = {"user_id": "alice", "other": object()}
        before = copy.copy(state)
        make(MemoryPlugin(memory))("Hello.", invocation_state=state)

        assert {key: state[key] for key in before} == before
        assert [key for key in state if "commonplace" in str(key)] == []

    @pytest.mark.filterwarnings("ignore:.*kwargs")
    def test_a_state_that_was_mixed_with_keywords_is_read_all_the_same(self, memory, make, told):
        agent = make(MemoryPlugin(memory))
        agent("My cat is called Miso.", other=1, **of("alice"))

        assert told("alice") == ["My cat is called Miso.", "All right."]

    def test_an_agent_s_own_memory_needs_an_agent_id_with_the_call(self, memory, make):
        agent = make(MemoryPlugin(memory, agent_id="bot"))
        agent("Nobody says this.")
        agent("The agent says this.", invocation_state={"agent_id": "bot"})

        records = memory.list(Scope(agent_id="bot")).records
        assert {one.text for one in records} == {"The agent says this.", "All right."}

    def test_agents_of_a_user_keep_apart_unless_the_policy_shares(self, memory, make):
        make(MemoryPlugin(memory, agent_id="a"))("My cat is called Miso.", **of("alice"))
        apart = make(MemoryPlugin(memory, agent_id="b"))
        apart("How is my cat called?", **of("alice"))
        sharing = Policy(scope_search_by_agent=False)
        shared = make(MemoryPlugin(memory, agent_id="b", policy=sharing))
        shared("How is my cat called?", **of("alice"))

        assert "Miso" not in apart.model.shown()
        assert "Miso" in shared.model.shown()

    def test_an_agent_that_is_a_tool_serves_the_user_of_its_caller(self, memory, make, use, told):
        plugin = MemoryPlugin(memory, policy=STATIC)
        clerk = make(plugin, script=["The clerk's word."], name="clerk")
        agent = make(plugin, script=[use("clerk", input="Look it up.")], tools=[clerk.as_tool()])
        agent("Ask the clerk.", **of("alice"))
        clerk("Who is there?")

        assert told("alice") == ["Ask the clerk.", "All right."]

    @pytest.mark.parametrize("use_id", ["model call", "call_0"])
    def test_no_id_that_a_model_makes_up_changes_whose_turn_it_is(
        self, memory, make, use, told, use_id
    ):
        plugin = MemoryPlugin(memory, user_id="root")
        first = make(plugin, script=[use("gate", number=1).named(use_id)], tools=[no_gate])
        second = make(plugin)

        @tool
        def ask(text: str) -> str:
            """Ask two agents."""
            return f"{first(text)} {second(text)}"

        agent = make(plugin, script=[use("ask", text="Well?").named(use_id)], tools=[ask])
        agent("Ask them.", **of("alice"))

        assert told("root") == []
        assert told("alice") == ["Ask them.", "All right."]

    def test_a_default_user_does_not_take_the_caller_s_user_s_turn(self, memory, make, use, told):
        plugin = MemoryPlugin(memory, policy=STATIC, user_id="guest")
        clerk = make(plugin, script=["The clerk's word."], name="clerk")
        agent = make(plugin, script=[use("clerk", input="Look it up.")], tools=[clerk.as_tool()])
        agent("Ask the clerk.", **of("alice"))

        assert told("guest") == []

    def test_a_tool_s_agent_with_a_memory_of_its_own_keeps_it(self, memory, make, use, told):
        clerk = make(MemoryPlugin(memory, policy=STATIC, user_id="clerk"), name="clerk")
        plugin = MemoryPlugin(memory, policy=STATIC)
        agent = make(plugin, script=[use("clerk", input="Look it up.")], tools=[clerk.as_tool()])
        agent("Ask the clerk.", **of("alice"))

        assert told("alice") == ["Ask the clerk.", "All right."]
        assert told("clerk") == []

    def test_nobody_s_turn_does_not_become_the_default_user_s_inside_a_tool(
        self, memory, make, use, told
    ):
        plugin = MemoryPlugin(memory, policy=STATIC, user_id="guest")
        clerk = make(plugin, name="clerk")
        agent = make(plugin, script=[use("clerk", input="Look it up.")], tools=[clerk.as_tool()])
        agent("Ask the clerk.", **of(None))

        assert told("guest") == []

    def test_an_agent_that_a_plain_tool_calls_serves_the_same_user(self, memory, make, use, told):
        plugin = MemoryPlugin(memory, policy=STATIC)

        @tool
        def clerk(question: str) -> str:
            """Ask the clerk."""
            return str(make(plugin)(question))

        agent = make(
            plugin,
            script=[use("clerk", question="Look it up.")],
            tools=[clerk],
            tool_executor=SequentialToolExecutor(),
        )
        agent("Ask the clerk.", **of("alice"))
        agent("And I am nobody.")

        assert told("alice") == ["Ask the clerk.", "All right."]

    def test_agents_of_a_graph_share_the_state_and_not_the_turn(self, memory, make, told):
        plugin = MemoryPlugin(memory, policy=STATIC)
        builder = GraphBuilder()
        for name in ("a", "b", "c"):
            builder.add_node(make(plugin, name=name, script=[f"I am {name}."]), name)
        builder.add_edge("a", "b")
        builder.add_edge("a", "c")
        builder.set_max_node_executions(9).build()(
            "Who is there?", invocation_state={"user_id": "alice"}
        )

        assert told("alice") == ["Who is there?"]
        assert plugin._turns._running == {}

    async def test_no_user_outlives_his_turn(self, memory, make, told):
        agent = make(MemoryPlugin(memory))
        await agent.invoke_async("My cat is called Miso.", **of("alice"))
        await agent.invoke_async("And I am nobody.")

        assert told("alice") == ["My cat is called Miso.", "All right."]

    async def test_no_user_outlives_a_stream_that_is_left(self, memory, make, told):
        plugin = MemoryPlugin(memory)
        agent = make(plugin)
        stream = agent.stream_async("My cat is called Miso.", **of("alice"))
        async for event in stream:
            if "data" in event:
                break
        await stream.aclose()
        await agent.invoke_async("And I am nobody.")
        await plugin._agent_memory.wait_for_writes(10)  # who leaves a stream waits for nothing
        await memory.aflush()

        assert told("alice") == ["My cat is called Miso."]

    async def test_streams_that_one_task_reads_in_turn_do_not_mix(self, memory, make, told, use):
        plugin = MemoryPlugin(memory, policy=Policy(tools=("add_memory",)))
        users = [f"user{number}" for number in range(4)]
        agents = {
            user: make(plugin, script=[use("add_memory", thinking="", content=[f"fact of {user}"])])
            for user in users
        }
        streams = [agents[user].stream_async(f"I am {user}.", **of(user)) for user in users]
        while streams:
            for stream in list(streams):
                if await anext(stream, None) is None:
                    streams.remove(stream)

        for user in users:
            assert sorted(told(user)) == sorted([f"I am {user}.", f"fact of {user}", "All right."])

    async def test_one_agent_serves_users_at_once(self, memory, make, told):
        mode = ConcurrentInvocationMode.UNSAFE_REENTRANT
        agent = make(MemoryPlugin(memory), concurrent_invocation_mode=mode)
        users = [f"user{number}" for number in range(8)]
        await asyncio.gather(*(agent.invoke_async(f"I am {one}.", **of(one)) for one in users))

        for user in users:
            assert told(user) == [f"I am {user}.", "All right."]


class TestModes:
    def test_static_control_has_no_tools(self, memory, make):
        agent = make(MemoryPlugin(memory, policy=STATIC), system_prompt="Be kind.")
        agent("Hello.", **of("alice"))

        assert agent.tool_names == []
        assert agent.model.prompts == ["Be kind."]

    def test_agent_control_leaves_all_to_the_tools(self, memory, make, told):
        memory.add("My cat is called Miso.", Scope(user_id="alice"))
        agent = make(MemoryPlugin(memory, policy=AGENT), system_prompt="Be kind.")
        agent("How is my cat called?", **of("alice"))

        assert agent.tool_names == ["search_memory", "add_memory"]
        assert "Miso" not in agent.model.shown()
        assert told("alice") == ["My cat is called Miso."]
        assert agent.model.prompts[0].startswith("Be kind.\n## Long-term memory")

    def test_the_hint_is_never_kept_in_the_agent(self, memory, make):
        agent = make(MemoryPlugin(memory, tool_prefix="my_"), system_prompt="Be kind.")
        agent("Hello.", **of("alice"))
        agent("Hello.", **of("alice"))

        assert agent.system_prompt == "Be kind."
        assert agent.model.prompts[1].count("`my_search_memory`") == 1

    def test_a_prompt_of_blocks_stays_one(self, memory, make):
        blocks = [{"text": "Be kind."}, {"cachePoint": {"type": "default"}}]
        agent = make(MemoryPlugin(memory), system_prompt=blocks)
        agent("Hello.", **of("alice"))

        assert agent.model.kept[0]["system_prompt_content"][:2] == blocks

    def test_a_plugin_takes_no_tool_s_name_away(self, memory, make):
        @tool
        def search_memory() -> str:
            """Search elsewhere."""
            return "elsewhere"

        agent = make(MemoryPlugin(memory), tools=[search_memory])

        assert agent.tool.search_memory()["content"] == [{"text": "elsewhere"}]

    def test_two_plugins_on_one_agent_keep_apart_by_prefix(self, memory, make, use):
        work, home = (
            MemoryPlugin(memory, policy=AGENT, user_id=one, tool_prefix=f"{one}_")
            for one in ("work", "home")
        )
        script = [use("work_add_memory", thinking="", content=["The desk is oak."])]
        make(work, home, script=script)("Remember.")

        assert [one.text for one in memory.list(Scope(user_id="work")).records] == [
            "The desk is oak."
        ]

    def test_a_turn_without_waiting_is_kept_all_the_same(self, memory, make, told):
        agent = make(MemoryPlugin(memory, policy=Policy(await_write=False)))
        agent("My cat is called Miso.", **of("alice"))
        memory.flush()

        assert told("alice") == ["My cat is called Miso.", "All right."]


class TestPath:
    """A memory that is named by its folder."""

    @pytest.fixture(autouse=True)
    def hashed(self, monkeypatch):
        monkeypatch.setattr("commonplace.models.sentence_encoder.SentenceEncoder", HashEmbedder)

    async def test_plugins_and_stores_of_one_folder_share_it(self, tmp_path, make):
        plugin = MemoryPlugin(tmp_path)
        await make(plugin).invoke_async("My cat is called Miso.", **of("alice"))
        later = make(
            MemoryPlugin(str(tmp_path)),
            memory_manager=MemoryManager([CommonplaceMemoryStore(tmp_path)]),
        )
        await later.invoke_async("How is my cat called?", **of("alice"))

        assert later.model.shown().count("Miso") == 1
        with Memory.open(tmp_path) as memory:
            assert memory.flush().pending == 0
            assert {one.scope.user_id for one in memory.list(ALICE).records} == {"alice"}

    def test_no_path_is_the_environment_s(self, tmp_path, make, monkeypatch):
        monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path / "mine"))
        make(MemoryPlugin())("My cat is called Miso.", **of("alice"))

        with Memory.open(tmp_path / "mine") as memory:
            assert len(memory.list(ALICE).records) == 2

    async def test_it_is_opened_on_no_event_loop(self, tmp_path, make, monkeypatch):
        threads, open_memory = [], Memory.open

        def note(*given, **options):
            threads.append(threading.current_thread())
            return open_memory(*given, **options)

        monkeypatch.setattr(Memory, "open", note)
        agent = make(MemoryPlugin(tmp_path))
        await agent.invoke_async("My cat is called Miso.", **of("alice"))

        assert len(threads) == 1
        assert threading.current_thread() not in threads

    @pytest.mark.parametrize("policy", [STATIC, AGENT])
    def test_one_that_cannot_be_opened_as_configured_raises_until_it_is_mended(
        self, tmp_path, make, monkeypatch, policy
    ):
        with Memory.open(tmp_path, embedder=HashEmbedder(32)) as memory:
            memory.add("Miso is a cat.", ALICE)
        plugin = MemoryPlugin(tmp_path, policy=policy)
        for _ in range(2):
            agent = make(plugin)
            with pytest.raises(SchemaMismatchError, match="hash-32"):
                agent("Hello.", **of("alice"))
            assert agent.model.seen == []

        encoder = "commonplace.models.sentence_encoder.SentenceEncoder"
        monkeypatch.setattr(encoder, lambda: HashEmbedder(32))
        assert str(make(plugin)("Hello.", **of("alice"))) == "All right.\n"

    def test_one_that_fails_for_another_reason_is_told_to_the_log(
        self, tmp_path, make, monkeypatch, caplog
    ):
        def fail(*_given, **_options):
            raise StoreUnavailableError(store="test", reason="down")

        monkeypatch.setattr(Memory, "open", fail)
        plugin = MemoryPlugin(tmp_path)
        assert str(make(plugin)("Hello.", **of("alice"))) == "All right.\n"

        assert (plugin.counters().failed, plugin.counters().waiting) == (1, 1)
        assert "down" in caplog.text


class TestHazards:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"user_id": "*"},
            {"user_id": True},
            {"agent_id": ""},
            {"extra_tools": ("burn_memory",)},
        ],
    )
    def test_an_argument_that_cannot_be_used_is_refused(self, memory, arguments):
        with pytest.raises((InvalidScopeError, InvalidRecordError)):
            MemoryPlugin(memory, **arguments)

    def test_what_is_no_memory_is_refused(self):
        with pytest.raises(TypeError, match=r"Memory\.open"):
            MemoryPlugin(3)

    def test_a_memory_that_fails_is_told_to_the_log_once(self, broken, make, caplog):
        agent = make(MemoryPlugin(broken))
        with caplog.at_level(logging.WARNING, "commonplace_strands"):
            for _ in range(3):
                agent("Hello.", **of("alice"))

        own = [one for one in caplog.records if one.name == "commonplace_strands"]
        assert [" ".join(one.message.split()[:3]) for one in own] == [
            "memory recall failed;",
            "memory write waits",
        ]

    def test_a_closed_memory_does_not_break_the_agent(self, memory, make):
        agent = make(MemoryPlugin(memory))
        memory.close()

        assert str(agent("Hello.", **of("alice"))).strip() == "All right."

    async def test_a_memory_that_hangs_holds_no_turn_up(self, memory, make, monkeypatch):
        never = asyncio.Event()

        async def hang(*_args, **_options):
            await never.wait()

        for name in ("asearch", "alist", "aadd"):
            monkeypatch.setattr(memory, name, hang)
        monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.01)
        agent = make(MemoryPlugin(memory, policy=Policy(recall_timeout=0.01)))

        async with asyncio.timeout(5):
            result = await agent.invoke_async("Hello.", **of("alice"))
        assert str(result).strip() == "All right."

    def test_one_agent_serves_many_loops_and_threads(self, memory, make, told):
        agent = make(MemoryPlugin(memory))
        agent("One.", **of("alice"))
        asyncio.run(agent.invoke_async("Two.", **of("alice")))
        thread = threading.Thread(target=lambda: agent("Three.", **of("alice")))
        thread.start()
        thread.join()

        assert [one for one in told("alice") if one != "All right."] == ["One.", "Two.", "Three."]

    @pytest.mark.parametrize(
        "content",
        [
            [],
            [{"text": ""}],
            [{"text": " \u200b "}],
            [{"image": {"format": "png", "source": {"bytes": b"x"}}}],
        ],
    )
    def test_what_says_nothing_is_not_kept(self, memory, make, told, content):
        agent = make(MemoryPlugin(memory))
        agent([{"role": "user", "content": content}], **of("alice"))

        assert told("alice") == ["All right."]

    def test_a_plain_string_is_read_as_a_text_block(self, memory, make, told):
        memory.add("Miso is a black cat.", Scope(user_id="alice"), infer=False)
        agent = make(MemoryPlugin(memory))
        said = {"role": "user", "content": "What colour is Miso the cat?"}
        agent([dict(said)], **of("alice"))

        assert told("alice")[1:] == ["What colour is Miso the cat?", "All right."]
        shown = agent.model.seen[0][0]["content"]
        assert shown[0] == {"text": "What colour is Miso the cat?"}
        assert "Miso is a black cat." in shown[1]["text"]
        assert agent.messages[0]["content"] == said["content"]

    @pytest.mark.parametrize("content", [[{"text": 3}], ["one", "two"]])
    def test_blocks_of_another_shape_say_nothing(self, memory, make, told, caplog, content):
        agent = make(MemoryPlugin(memory))
        agent([{"role": "user", "content": content}], **of("alice"))

        assert told("alice") == ["All right."]
        # On a slow machine it may be late.
        assert not [one for one in caplog.messages if not re.search("is late|works again", one)]

    def test_what_no_record_holds_is_cleaned_or_cut(self, memory, make, told):
        agent = make(MemoryPlugin(memory))
        agent("A\x00B" + "ü" * 20_000, **of("alice"))

        *parts, _ = told("alice")
        assert "".join(parts) == "AB" + "ü" * 20_000

    def test_a_turn_is_let_go_when_it_ends(self, memory, make):
        plugin = MemoryPlugin(memory)
        agent = make(plugin, script=["Hello.", ValueError("no model")])
        agent("Hello.", **of("alice"))
        with pytest.raises(ValueError, match="no model"):
            agent("Hello.", **of("alice"))

        assert plugin._turns._running == {}

    def test_cited_words_are_words(self, memory, make, told):
        cited = {"citationsContent": {"content": [{"text": "Cited."}], "citations": []}}
        agent = make(MemoryPlugin(memory))
        agent([{"role": "user", "content": [{"text": "Said."}, cited]}], **of("alice"))

        assert told("alice")[0] == "Said.\nCited."

    def test_an_agent_is_not_kept_alive(self, memory, make):
        agent = make(MemoryPlugin(memory))
        agent("Hello.", **of("alice"))
        reference = weakref.ref(agent)
        del agent
        gc.collect()

        assert reference() is None

    @pytest.mark.parametrize("loads", [True, False])
    async def test_the_embedder_is_waited_for_once(self, memory, make, monkeypatch, loads):
        loaded, waits, search = threading.Event(), [], memory.search

        def load(text, *rest, **more):
            return loaded.wait(60) if text == "warm" else search(text, *rest, **more)

        async def wait(_seconds, call, work):
            waits.append(call)
            if loads:
                loaded.set()
            return await await_within(10 if loads else 0.01, call, work)

        monkeypatch.setattr(memory, "search", load)
        monkeypatch.setattr("commonplace.agents.lazy_memory.await_within", wait)
        memory.add([Message(text="My cat is called Miso.")], Scope(user_id="alice"))
        plugin = MemoryPlugin(memory)
        for _ in range(2):
            agent = make(plugin)
            await agent.invoke_async("How is my cat called?", **of("alice"))
        loaded.set()

        assert waits == ["opening the memory"]
        assert FOOTER in agent.model.shown()


def test_without_the_framework_the_import_says_what_to_install():
    code = "import sys; sys.modules['strands'] = None; import commonplace_strands"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )

    assert run.returncode == 1
    assert "pip install 'commonplace-memory[strands]'" in run.stderr


def test_messages_of_the_core_go_through_unchanged(memory, make, told):
    memory.add([Message(text="My cat is called Miso.")], Scope(user_id="alice"))
    agent: Agent = make(MemoryPlugin(memory))
    agent("How is my cat called?", **of("alice"))

    assert "My cat is called Miso." in agent.model.shown()
