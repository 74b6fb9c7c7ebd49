"""Turns that are cut off, ids of users and sessions, tools of one turn, counters."""

import asyncio
import contextlib
import enum
import json
import shutil
import threading
import time

import pytest
from strands import tool
from strands.hooks import AfterToolsEvent, BeforeInvocationEvent, BeforeModelCallEvent
from strands.session import FileSessionManager, RepositorySessionManager

from commonplace import InvalidScopeError, Memory, Policy, Scope
from commonplace.agents.note import FOOTER
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import (
    CommonplaceMemoryStore,
    CommonplaceSessionRepository,
    MemoryPlugin,
)
from commonplace_strands.mem0_memory import Mem0MemoryTool

ALICE = Scope(user_id="alice")
STATIC = Policy(mode="static_control")
FORGETS = Policy(tools=("forget_memory",))
CAT = "My cat is called Miso."


def of(user, **more):
    return {"invocation_state": {"user_id": user, **more}}


class Users(enum.StrEnum):
    ALICE = "alice"


class Numbers(enum.IntEnum):
    SEVEN = 7


IDS = [
    (42, "42"),
    ("alice@example.org", "alice@example.org"),
    (Users.ALICE, "alice"),
    (Numbers.SEVEN, "7"),
    (" alice", None),
    ("alice ", None),
    ("e\u0301", None),
    ("*", None),
    ("", None),
    ("a\nb", None),
    ("x" * 300, None),
    (True, None),
    (["alice"], None),
]


SLOW = 0.25


class SlowEmbedder(HashEmbedder):
    """Takes a quarter of a second for each call, which is longer than all else of a turn."""

    def embed(self, texts, **more):
        time.sleep(SLOW)
        return super().embed(texts, **more)


class TestIds:
    @pytest.mark.parametrize(("given", "stored"), IDS)
    def test_an_id_with_a_turn(self, memory, make, given, stored, told):
        agent = make(MemoryPlugin(memory, user_id="guest"))
        if stored is None:
            with pytest.raises(InvalidScopeError):
                agent(CAT, **of(given))
            assert agent.model.seen == []
            assert told("guest") == []
        else:
            agent(CAT, **of(given))
            assert told(stored) == [CAT, "All right."]

    @pytest.mark.parametrize(("given", "stored"), IDS)
    def test_a_fixed_id(self, memory, make, given, stored, told):
        if stored is None:
            with pytest.raises(InvalidScopeError):
                MemoryPlugin(memory, user_id=given)
            with pytest.raises(InvalidScopeError):
                MemoryPlugin(memory, agent_id=given)
        else:
            make(MemoryPlugin(memory, user_id=given))(CAT)
            assert told(stored) == [CAT, "All right."]

    @pytest.mark.parametrize(("given", "stored"), [one for one in IDS if one[0] != ""])
    def test_an_id_of_the_mem0_tool(self, memory, given, stored, told):
        use = {"toolUseId": "1", "input": {"action": "store", "content": CAT}}
        if stored is None:
            with pytest.raises(InvalidScopeError):
                Mem0MemoryTool(user_id=given, memory=memory)
        else:
            Mem0MemoryTool(user_id=given, memory=memory).mem0_memory(use)
            assert told(stored) == [CAT]

    def test_a_bad_agent_id_is_refused_too(self, memory, make):
        with pytest.raises(InvalidScopeError, match="agent_id"):
            make(MemoryPlugin(memory))(CAT, **of("alice", agent_id="*"))

    def test_a_refused_turn_leaves_the_agent_as_it_was(self, memory, make, told):
        agent = make(MemoryPlugin(memory))
        with pytest.raises(InvalidScopeError):
            agent(CAT, **of("*"))
        agent(CAT, **of("alice"))

        assert [one["role"] for one in agent.messages] == ["user", "assistant"]
        assert told("alice") == [CAT, "All right."]


class TestSessions:
    def sessions(self, memory):
        return {one.scope.session_id for one in memory.list(ALICE).records}

    @pytest.mark.parametrize(
        ("given", "session"), [(7, "7"), (0, "0"), (Numbers.SEVEN, "7"), ("chat 1", "chat 1")]
    )
    def test_what_a_caller_names_is_found_by_its_name(self, memory, make, given, session):
        make(MemoryPlugin(memory))(CAT, **of("alice", session_id=given))
        memory.flush()

        assert self.sessions(memory) == {session}
        memory.forget(Scope(user_id="alice", session_id=session))
        assert self.sessions(memory) == set()

    @pytest.mark.parametrize("given", ["", [], False, 1.5, b"chat"])
    def test_what_is_no_id_is_refused(self, memory, make, given):
        with pytest.raises(InvalidScopeError, match="session_id="):
            make(MemoryPlugin(memory))(CAT, **of("alice", session_id=given))

        assert self.sessions(memory) == set()

    def test_the_session_manager_s_id_is_the_conversation_s(self, memory, make, tmp_path):
        for _ in range(2):
            manager = FileSessionManager(session_id="chat-7", storage_dir=str(tmp_path / "s"))
            agent = make(MemoryPlugin(memory), session_manager=manager)
            agent(CAT, **of("alice"))

        assert self.sessions(memory) == {"chat-7"}

    def test_the_snapshot_manager_s_id_too(self, memory, make, tmp_path):
        session = pytest.importorskip("strands.session.snapshot_session_manager")
        storage = pytest.importorskip("strands.storage")
        manager = session.SnapshotSessionManager(
            session_id="chat-8", storage=storage.LocalFileStorage(str(tmp_path / "s"))
        )
        make(MemoryPlugin(memory), session_manager=manager)(CAT, **of("alice"))

        assert self.sessions(memory) == {"chat-8"}

    def test_the_caller_s_session_wins(self, memory, make, tmp_path):
        manager = FileSessionManager(session_id="chat-7", storage_dir=str(tmp_path / "s"))
        agent = make(MemoryPlugin(memory), session_manager=manager)
        agent(CAT, **of("alice", session_id="mine"))

        assert self.sessions(memory) == {"mine"}

    @pytest.mark.parametrize("agent_id", [None, "bot"])
    def test_forgetting_a_session_removes_its_turns_and_its_states(self, memory, make, agent_id):
        repository = CommonplaceSessionRepository(memory, user_id="alice", agent_id=agent_id)
        for name in ("one", "two"):
            manager = RepositorySessionManager(session_id=name, session_repository=repository)
            plugin = MemoryPlugin(memory, agent_id=agent_id)
            make(plugin, session_manager=manager)(CAT, **of("alice"))
        memory.forget(Scope(user_id="alice", session_id="one"))

        assert self.sessions(memory) == {"two"}
        assert repository.read_session("one") is None
        assert repository.read_session("two") is not None


class TestCutOff:
    def test_a_turn_that_is_tried_again_is_stored_once(self, memory, make, told):
        agent = make(MemoryPlugin(memory), script=[OSError("down"), OSError("down"), "Noted."])
        for _ in range(2):
            with pytest.raises(OSError, match="down"):
                agent(CAT, **of("alice"))
        agent(CAT, **of("alice"))

        assert told("alice") == [CAT, "Noted."]

    def test_a_turn_that_is_resumed_without_a_message_is_stored_once(self, memory, make, told):
        agent = make(MemoryPlugin(memory), script=[OSError("down"), "Noted."])
        with pytest.raises(OSError, match="down"):
            agent(CAT, **of("alice"))
        agent(None, **of("alice"))

        assert told("alice") == [CAT, "Noted."]

    def test_what_is_said_again_later_is_another_turn(self, memory, make, told):
        agent = make(MemoryPlugin(memory))
        agent(CAT, **of("alice"))
        agent(CAT, **of("alice"))

        assert told("alice").count(CAT) == 2

    @pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened"])
    def test_a_refusal_is_not_stored(self, memory, make, model, monkeypatch, told, reason):
        async def refuse(self, *_args, **_options):
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockDelta": {"delta": {"text": "I can't help with that."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": reason}}

        monkeypatch.setattr(model, "stream", refuse)
        make(MemoryPlugin(memory))(CAT, **of("alice"))

        assert told("alice") == [CAT]

    @pytest.mark.parametrize("event", [BeforeInvocationEvent, BeforeModelCallEvent])
    def test_a_hook_s_denial_is_no_answer(self, memory, make, told, event):
        def deny(one: event) -> None:
            one.cancel = "Denied by policy."

        agent = make(MemoryPlugin(memory))
        agent.add_hook(deny, event)
        agent(CAT, **of("alice"))

        assert told("alice") == [CAT]

    def test_a_hook_s_end_is_no_answer(self, memory, make, use, told):
        @tool
        def look() -> str:
            """Look."""
            return "a cat"

        def end(event: AfterToolsEvent) -> None:
            event.end_turn = "Stopped here."

        agent = make(MemoryPlugin(memory, policy=STATIC), script=[use("look")], tools=[look])
        agent.add_hook(end, AfterToolsEvent)
        agent(CAT, **of("alice"))

        assert told("alice") == [CAT]

    def test_a_limit_is_no_answer(self, memory, make, use, told):
        @tool
        def look() -> str:
            """Look."""
            return "a cat"

        agent = make(MemoryPlugin(memory, policy=STATIC), script=[use("look")] * 3, tools=[look])
        try:
            agent(CAT, limits={"turns": 1}, **of("alice"))
        except TypeError:
            pytest.skip("this version has no limits")

        assert told("alice") == [CAT]

    async def test_a_caller_that_is_cancelled_leaves_the_words(self, memory, make, told):
        is_called = asyncio.Event()
        agent = make(MemoryPlugin(memory), script=[lambda _: is_called.set() or "Noted."])
        running = asyncio.create_task(agent.invoke_async(CAT, **of("alice")))
        await is_called.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.sleep(0.2)
        await memory.aflush()

        assert told("alice") == [CAT]

    def test_an_interrupted_turn_never_resumed_leaves_the_words(self, memory, make, use, told):
        @tool(context=True)
        def gate(tool_context) -> str:
            """Ask."""
            return str(tool_context.interrupt("gate", reason="May I?"))

        make(MemoryPlugin(memory), script=[["Let me ask.", use("gate")]], tools=[gate])(
            CAT, **of("alice")
        )

        assert told("alice") == [CAT]


class TestSlowMemory:
    @pytest.fixture
    def slow(self, tmp_path):
        with Memory.open(tmp_path / "slow", embedder=SlowEmbedder()) as memory:
            yield memory

    def kept(self, memory):
        memory.flush()
        found = memory.list(ALICE, limit=1000).records
        return sorted(one.text for one in found if one.role == "user")

    def test_no_turn_is_lost(self, slow, make):
        plugin = MemoryPlugin(slow, policy=Policy(await_write=False))
        for number in range(4):
            make(plugin)(f"Fact {number}.", **of("alice"))

        assert self.kept(slow) == [f"Fact {number}." for number in range(4)]

    def test_no_turn_of_two_threads_is_lost(self, slow, make):
        plugin = MemoryPlugin(slow, policy=Policy(await_write=False))

        def talk(name):
            for number in range(2):
                asyncio.run(make(plugin).invoke_async(f"{name} {number}.", **of("alice")))

        threads = [threading.Thread(target=talk, args=(name,)) for name in "ab"]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

        assert self.kept(slow) == ["a 0.", "a 1.", "b 0.", "b 1."]

    async def test_no_turn_of_a_cancelled_caller_is_lost(self, slow, make):
        plugin = MemoryPlugin(slow)
        for number in range(3):
            is_called = asyncio.Event()
            agent = make(plugin, script=[lambda _, called=is_called: called.set() or "Noted."])
            running = asyncio.create_task(agent.invoke_async(f"Fact {number}.", **of("alice")))
            await is_called.wait()
            await asyncio.sleep(SLOW * (0.2 + number / 3))  # in which the turn is written
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        kept = await asyncio.to_thread(self.kept, slow)
        assert kept == [f"Fact {number}." for number in range(3)]


class TestShown:
    @pytest.fixture
    def plugin(self, memory):
        tools = ("search_memory", "add_memory", "update_memory", "forget_memory")
        return MemoryPlugin(memory, policy=Policy(tools=tools), consent=False)

    @pytest.fixture
    def record(self, memory):
        memory.add(CAT, ALICE)
        return memory.list(ALICE).records[0]

    def test_the_policy_s_tools_are_the_agent_s(self, make, plugin):
        assert make(plugin).tool_names == [
            "search_memory", "add_memory", "update_memory", "forget_memory",
        ]  # fmt: skip

    def test_what_the_note_shows_can_be_changed(self, memory, make, plugin, use, record):
        text = "My cat is called Mochi."
        script = [use("update_memory", memory_id=record.id[:8], text=text)]
        agent = make(plugin, script=script)
        agent("How is my cat called?", **of("alice"))

        assert f"- [{record.id[:8]}] [" in agent.model.shown(0)
        assert f"] {CAT}" in agent.model.shown(0)
        assert memory.get(record.id, ALICE).text == text

    def test_what_a_search_shows_can_be_forgotten(self, memory, make, plugin, use, record):
        script = [use("search_memory", keywords=["cat"]), use("forget_memory", memory_id=record.id)]
        make(plugin, script=script)("Hello.", **of("alice"))

        assert memory.get(record.id, ALICE) is None

    @pytest.mark.parametrize("user", ["alice", "bob"])
    def test_what_an_earlier_turn_showed_can_where_it_is_asked_for(
        self, memory, make, plugin, use, record, user
    ):
        script = [use("search_memory", keywords=["cat"]), "It is Miso."]
        script += [use("forget_memory", memory_id=record.id[:8])]
        agent = make(plugin, script=script)
        agent("Hello.", **of("alice"))
        agent("How is my cat called? Delete it.", **of(user))

        assert (memory.get(record.id, ALICE) is None) == (user == "alice")

    @pytest.mark.parametrize("user", ["alice", "bob"])
    def test_what_an_earlier_turn_showed_cannot(self, memory, make, plugin, use, record, user):
        script = [use("search_memory", keywords=["cat"]), "It is Miso."]
        script += [use("forget_memory", memory_id=record.id)]
        agent = make(plugin, script=script)
        agent("Hello.", **of("alice"))
        agent("Hello.", **of(user))

        assert "shown in this turn" in str(agent.model.results[-1])
        assert memory.get(record.id, ALICE) == record

    def test_a_store_s_tools_change_what_its_turn_showed(self, memory, make, use, record):
        from strands.memory import MemoryManager

        store = CommonplaceMemoryStore(
            memory, user_id="alice", name="s", policy=FORGETS, extra_tools=["list_memories"]
        )
        script = [
            use("s_list_memories"), "There is one.", use("s_forget_memory", memory_id=record.id),
        ]  # fmt: skip
        agent = make(memory_manager=MemoryManager([store], injection=False), script=script)
        agent("List.")
        agent("Forget it.")
        assert "shown in this turn" in str(agent.model.results[-1])

        agent.model.script = [use("s_list_memories"), script[-1]]
        agent.model.script[1] = use("s_forget_memory", memory_id=record.id[:8])
        result = agent("List and forget.")
        (asked,) = result.interrupts
        agent([{"interruptResponse": {"interruptId": asked.id, "response": "yes"}}])
        assert memory.get(record.id, ALICE) is None

    @pytest.mark.parametrize("answer", ["yes", "no"])
    def test_a_consent_is_given_in_another_process(
        self, memory, make, use, record, tmp_path, answer
    ):
        def restored(*script):
            session = FileSessionManager(session_id="one", storage_dir=str(tmp_path / "s"))
            plugin = MemoryPlugin(memory, policy=Policy(tools=("search_memory", "forget_memory")))
            return make(plugin, script=script, session_manager=session, agent_id="one")

        script = use("search_memory", keywords=["cat"]), use("forget_memory", memory_id=record.id)
        (asked,) = restored(*script)("Forget my cat.", **of("alice")).interrupts
        response = {"interruptId": asked.id, "response": answer}
        restored("Done.")([{"interruptResponse": response}], **of("alice"))

        assert (memory.get(record.id, ALICE) is None) == (answer == "yes")

    @pytest.mark.parametrize(
        ("name", "arguments", "told"),
        [
            ("search_memory", {"query": "cat"}, "keywords"),
            ("search_memory", {"keywords": ["cat"], "user_id": "bob"}, "keywords, limit"),
            ("update_memory", {"memory_id": "x"}, "memory_id, text"),
            ("forget_memory", {}, "memory_id"),
        ],
    )
    def test_a_wrong_argument_names_the_tool_s_parameters(
        self, make, plugin, use, record, name, arguments, told
    ):
        agent = make(plugin, script=[use(name, **arguments)])
        agent("Hello.", **of("alice"))

        (result,) = agent.model.results
        assert result["status"] == "error"
        assert told in result["content"][0]["text"]
        assert "validation error" not in result["content"][0]["text"]


class TestNote:
    def test_nothing_that_the_conversation_holds_is_shown(self, memory, make):
        agent = make(MemoryPlugin(memory, policy=STATIC))
        for text in (CAT, "Her sister is Ann.", "How is my cat called?", "And who is Ann?"):
            agent(text, **of("alice"))

            assert FOOTER not in agent.model.shown()

    def test_what_a_tool_showed_in_the_conversation_is_held(self, memory, make, use):
        memory.add(CAT, ALICE)
        agent = make(MemoryPlugin(memory), script=[use("search_memory", keywords=["cat"])])
        agent("Look for it.", **of("alice"))
        agent("How is my cat called?", **of("alice"))

        assert agent.model.shown().count(CAT) == 1

    def test_a_greeting_gets_no_note(self, memory, make):
        memory.add(CAT, ALICE)
        agent = make(MemoryPlugin(memory))
        agent("Hello, good morning!", **of("alice"))

        assert FOOTER not in agent.model.shown()

    def test_an_injection_shows_only_what_helps(self, memory, make):
        from strands.memory import MemoryManager

        memory.add(CAT, ALICE)
        agent = make(
            MemoryPlugin(memory, policy=Policy(mode="agent_control")),
            memory_manager=MemoryManager([CommonplaceMemoryStore(memory)]),
        )
        shown = []
        for text in ("Good morning!", "How is my cat called?", f"{CAT} Which cat?"):
            agent(text, **of("alice"))
            shown.append(agent.model.shown().count("<memory>"))

        assert shown == [0, 1, 0]


class TestHealth:
    def test_every_event_is_counted_and_told(self, memory, make, use):
        events = []
        plugin = MemoryPlugin(memory, on_event=events.append)
        make(plugin)(CAT, **of("alice"))
        script = [use("search_memory", keywords=["cat"])]
        make(plugin, script=script)("How is my cat called?", **of("alice"))

        assert [(one.name, one.operation) for one in events] == [
            ("empty", "recall"),
            ("written", "write"),
            ("recalled", "recall"),
            ("recalled", "search_memory"),
            ("written", "write"),
        ]
        counters = plugin.counters()
        assert (counters.recalled, counters.empty, counters.written) == (2, 1, 2)

    def test_an_outage_is_counted(self, broken, make):
        plugin = MemoryPlugin(broken)
        make(plugin)("How is my cat called?", **of("alice"))

        assert (plugin.counters().failed, plugin.counters().waiting) == (1, 1)
        assert "down" in str(plugin.counters().last_error)

    async def test_a_store_counts_too(self, memory):
        events = []
        store = CommonplaceMemoryStore(memory, user_id="alice", on_event=events.append)
        await store.search("cat")
        await store.add(CAT)
        await store.add_messages([{"role": "user", "content": [{"text": CAT}]}])
        await store.search("cat")

        assert [one.name for one in events] == ["empty", "written", "written", "recalled"]
        assert store.counters().written == 2

    async def test_a_store_counts_an_outage(self, broken):
        store = CommonplaceMemoryStore(broken, user_id="alice")
        with pytest.raises(Exception, match="down"):
            await store.search("cat")

        assert store.counters().failed == 1

    def test_a_turn_tried_again_after_the_process_died_is_the_same(self, memory, make, tmp_path):
        first, copied = tmp_path / "first", tmp_path / "copied"

        def dies(_messages):  # leaves what another process would find
            shutil.copytree(first, copied)
            return OSError("down")

        for place, script in ((first, [dies]), (copied, [])):
            session = FileSessionManager("sess", storage_dir=str(place))
            agent = make(MemoryPlugin(memory), script=script, session_manager=session)
            with contextlib.suppress(OSError):
                agent(CAT, **of("alice", session_id="sess"))

        turns = memory.session(Scope(user_id="alice", session_id="sess")).messages()
        assert [one.text for one in turns] == [CAT, "All right."]
        assert agent.state.get() == {}

    def test_what_is_saved_of_an_open_turn_is_json(self, memory, make, use):
        memory.add(CAT, ALICE)
        agent = make(MemoryPlugin(memory), script=[OSError("down")])
        with pytest.raises(OSError, match="down"):
            agent("How is my cat called?", **of("alice"))

        assert json.loads(json.dumps(agent.state.get()))
