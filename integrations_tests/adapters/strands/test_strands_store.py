import asyncio
import json
import logging
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from strands.memory import (
    AddMessagesContext,
    ExtractionConfig,
    ExtractionResult,
    IntervalTrigger,
    InvocationTrigger,
    MemoryManager,
    MemoryMessageFilter,
)
from strands.types.agent import ConcurrentInvocationMode

from commonplace import (
    Fact,
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    Policy,
    Relation,
    Scope,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.agents.note import FOOTER
from commonplace.agents.policy import TOOL_NAMES
from commonplace.testing.contracts.adapter import PolicyFieldsContract
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import CommonplaceMemoryStore, MemoryPlugin
from commonplace_strands.turn_owner import read_tag, tag_message

ALICE = Scope(user_id="alice")
SCOPED = Policy(mode="agent_control")
FORGETS = Policy(tools=("forget_memory",))
EACH_TURN = ExtractionConfig(trigger=InvocationTrigger())
ROOT = Path(__file__).parents[3]


def of(user):
    return {"invocation_state": {"user_id": user}}


def said(text, role="user"):
    return {"role": role, "content": [{"text": text}]}


def numbered(*numbers):
    return AddMessagesContext(sequence_numbers=list(numbers))


class EachIsAFact:
    """Extracts each thing a user said; counts what it was shown."""

    def __init__(self):
        self.batches = []

    async def extract(self, messages, context=None):
        texts = [one["content"][0]["text"] for one in messages if one["role"] == "user"]
        self.batches.append(texts)
        await asyncio.sleep(0)
        return [ExtractionResult(content=f"Fact: {one}", metadata={"n": 1}) for one in texts]


@pytest.fixture
def store(memory):
    return CommonplaceMemoryStore(memory, user_id="alice")


class TestSearchAndAdd:
    async def test_what_was_added_is_found_with_its_id_and_score(self, store, memory):
        (added,) = await store.add("Miso is a cat.", {"source": "form"})
        (entry,) = await store.search("Which cat?")

        assert entry.content == "Miso is a cat."
        assert entry.metadata["id"] == added["id"]
        assert 0 < entry.metadata["score"] <= 1
        assert {
            "source": "form",
            "kind": "fact",
            "user_id": "alice",
        }.items() <= entry.metadata.items()
        assert entry.metadata == json.loads(json.dumps(entry.metadata))

    async def test_the_same_text_twice_is_one_record(self, store, memory):
        first, second = [await store.add("Miso is a cat.") for _ in range(2)]

        assert [first[0]["event"], second[0]["event"]] == ["ADD", "NONE"]
        assert first[0]["id"] == second[0]["id"]

    async def test_the_same_text_with_other_metadata_is_another_record(self, store, memory):
        given = [{"project": "x"}, {"project": "y"}, {"project": "x"}]
        added = [(await store.add("The tea is green.", one))[0] for one in given]

        assert [one["event"] for one in added] == ["ADD", "ADD", "NONE"]
        for name in "xy":
            part = CommonplaceMemoryStore(
                memory, user_id="alice", policy=Policy(where={"project": name})
            )
            assert [one.content for one in await part.search("tea")] == ["The tea is green."]

    async def test_stores_of_one_memory_keep_to_their_scopes(self, memory):
        team = CommonplaceMemoryStore(memory, agent_id="team", name="team")
        own = CommonplaceMemoryStore(memory, user_id="alice", name="own")
        await team.add("The desk is oak.")
        await own.add("The cat is black.")

        assert [one.content for one in await team.search("desk cat")] == ["The desk is oak."]
        assert [one.content for one in await own.search("desk cat")] == ["The cat is black."]

    async def test_stores_of_one_memory_keep_to_their_kinds(self, memory):
        likes = CommonplaceMemoryStore(
            memory, user_id="alice", policy=Policy(kinds=("preference",))
        )
        facts = CommonplaceMemoryStore(memory, user_id="alice", policy=Policy(kinds=("fact",)))
        await likes.add("She likes green tea.")
        await facts.add("She lives in Lyon.")

        assert [one.content for one in await likes.search("she")] == ["She likes green tea."]
        assert [one.content for one in await facts.search("she")] == ["She lives in Lyon."]

    async def test_a_filter_holds_in_every_search(self, memory):
        store = CommonplaceMemoryStore(
            memory, user_id="alice", policy=Policy(where={"city": "Lyon"})
        )
        await store.add("The tea house.", {"city": "Lyon"})
        await store.add("The tea shop.", {"city": "Nice"})

        assert [one.content for one in await store.search("tea")] == ["The tea house."]

    async def test_all_that_it_writes_has_its_metadata(self, memory):
        store = CommonplaceMemoryStore(
            memory, user_id="alice", policy=Policy(metadata={"city": "Lyon", "n": 1})
        )
        await store.add("The tea house.", {"n": 2})
        await store.add_messages([said("I like tea.")])
        memory.flush()

        written = {one.text: dict(one.metadata) for one in memory.list(ALICE).records}
        assert written == {
            "The tea house.": {"city": "Lyon", "n": 2},
            "I like tea.": {"city": "Lyon", "n": 1},
        }

    async def test_its_tools_keep_to_its_part_of_the_memory(self, memory, make, use):
        memory.add("The tea house.", ALICE, metadata={"city": "Lyon"})
        memory.add("The tea shop.", ALICE, metadata={"city": "Nice"})
        store = CommonplaceMemoryStore(
            memory,
            user_id="alice",
            name="lyon",
            policy=Policy(mode="agent_control", where={"city": "Lyon"}),
            extra_tools=["list_memories"],
        )
        script = [[use("lyon_search_memory", keywords=["tea"]), use("lyon_list_memories")]]
        agent = make(script=script, memory_manager=MemoryManager([store], injection=False))
        await agent.invoke_async("Where?")

        shown = [json.dumps(one["content"]) for one in agent.model.results]
        assert ["tea house" in one for one in shown] == [True, True]
        assert "shop" not in "".join(shown)

    async def test_no_score_is_below_the_threshold(self, memory):
        everything = CommonplaceMemoryStore(memory, user_id="alice")
        for text in ("Miso is a cat.", "The cat Miso sleeps.", "A cat.", "The desk is oak."):
            await everything.add(text)
        query = "Which cat is Miso?"
        every = [one.metadata["score"] for one in await everything.search(query)]
        best = [one.score for one in memory.search(query, ALICE)]
        store = CommonplaceMemoryStore(memory, user_id="alice", policy=Policy(threshold=every[1]))
        scores = [one.metadata["score"] for one in await store.search(query)]

        assert every[0] == best[0] > every[-1] == min(best)
        assert len(scores) >= 2
        assert min(scores) >= every[1]

    async def test_as_many_are_found_as_are_asked_for_the_best_first(self, memory):
        store = CommonplaceMemoryStore(memory, user_id="alice", max_search_results=3)
        for number in range(6):
            await store.add(f"Tea number {number}.")
        scores = [one.metadata["score"] for one in await store.search("Tea number 4.")]

        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert len(await store.search("Tea", {"max_search_results": 1})) == 1
        assert len(await store.search("Tea", {"max_search_results": 10**6})) == 6

    async def test_a_threshold_leaves_out_what_is_weaker(self, memory):
        store = CommonplaceMemoryStore(memory, user_id="alice", policy=Policy(threshold=1.0))
        await store.add("Tea.")

        assert await store.search("Something else entirely") == []

    @pytest.mark.parametrize("query", ["", "  ", "\u200b", "\x00"])
    async def test_an_empty_query_finds_nothing(self, store, query):
        await store.add("Miso is a cat.")

        assert await store.search(query) == []

    async def test_a_query_no_store_could_take_is_cleaned(self, store):
        await store.add("Miso is a cat.")

        assert await store.search("cat\x00 \ud800" + "?" * 100_000) != []

    async def test_metadata_names_no_scope(self, store, memory):
        await store.add("Miso is a cat.", {"user_id": "bob", "session_id": "s", "n": 1})

        (record,) = memory.list(ALICE).records
        assert (record.scope, record.metadata) == (ALICE, {"n": 1})

    @pytest.mark.parametrize("content", ["", " ", "\x00", "ü" * 20_000, 7, None])
    async def test_what_no_record_holds_is_refused(self, store, content):
        with pytest.raises(InvalidRecordError):
            await store.add(content)

    async def test_a_store_without_a_user_finds_and_keeps_nothing(self, memory):
        store = CommonplaceMemoryStore(memory)
        with pytest.raises(InvalidScopeError, match="user_id=None is unknown"):
            await store.search("cat")
        with pytest.raises(InvalidScopeError, match="user_id=None is unknown"):
            await store.add("Miso is a cat.")

        assert await store.add_messages([said("Miso is a cat.")], numbered(0)) == 0

    @pytest.mark.parametrize(
        "arguments",
        [
            {"user_id": ["alice"]},
            {"policy": "both"},
            {"max_search_results": 0},
            {"max_search_results": 3, "policy": Policy()},
            {"extra_tools": ("burn",)},
        ],
    )
    def test_an_argument_that_cannot_be_used_is_refused(self, memory, arguments):
        with pytest.raises((InvalidRecordError, InvalidScopeError)):
            CommonplaceMemoryStore(memory, **arguments)

    def test_what_is_no_memory_is_refused(self):
        with pytest.raises(TypeError, match=r"Memory\.open"):
            CommonplaceMemoryStore(3)

    def test_it_serves_one_loop_after_another(self, store):
        asyncio.run(store.add("Miso is a cat."))

        assert [one.content for one in asyncio.run(store.search("cat"))] == ["Miso is a cat."]


class TestPolicy(PolicyFieldsContract):
    """An agent that searches one store through its memory manager."""

    without_effect = dict.fromkeys(
        ("inject", "header", "intro", "tool_instructions"), "notes and prompts are the manager's"
    ) | {
        "metadata": "see TestSearchAndAdd", "max_waiting": "its caller gets the error of a write",
        "mode": "see below", "tools": "see below", "await_write": "see below",
        "times": "its answers are data, with the moments beside the texts",
        "summaries": "it writes no note", "note_tokens": "it writes no note",
        "count_tokens": "it writes no note", "note_log": "it writes no note",
    }  # fmt: skip

    @pytest.fixture
    def turn_with(self, memory, make, use):
        def turn(policy, *, agent_id=None, conversation=None):
            async def run(user, text):
                store = CommonplaceMemoryStore(
                    memory, user_id=user, agent_id=agent_id, policy=policy, extraction=EACH_TURN
                )
                manager = MemoryManager([store], injection=False)
                agent = make(script=[use("search_memory", query=text)], memory_manager=manager)
                await agent.invoke_async(text)
                await manager.flush()
                await memory.aflush()
                return str(agent.model.results)

            return run

        return turn

    @pytest.mark.parametrize(
        ("mode", "names"),
        [
            ("both", [f"one_{name}" for name in TOOL_NAMES[2:]]),
            ("agent_control", [f"one_{name}" for name in TOOL_NAMES]),
            ("static_control", []),
        ],
    )
    def test_the_agent_gets_the_tools_that_it_lacks(self, memory, mode, names):
        policy = Policy(mode=mode, tools=TOOL_NAMES)
        store = CommonplaceMemoryStore(memory, name="one", policy=policy)

        assert [tool.tool_name for tool in store.get_tools()] == names

    async def test_a_text_is_waited_for_as_it_says(self, memory, monkeypatch):
        may_embed, embed = threading.Event(), memory.embedder.embed

        def wait(texts, *, purpose):
            may_embed.wait(10)
            return embed(texts, purpose=purpose)

        monkeypatch.setattr(memory.embedder, "embed", wait)
        hasty = CommonplaceMemoryStore(memory, user_id="alice", policy=Policy(await_write=False))
        assert await hasty.add("She is a nurse.") == []
        assert memory.flush(timeout=0).pending == 1
        may_embed.set()
        patient = CommonplaceMemoryStore(memory, user_id="alice")
        assert [change["event"] for change in await patient.add("She lives in Lyon.")] == ["ADD"]


class TestMessages:
    async def test_messages_are_kept_word_by_word_in_their_order(self, store, memory, told):
        count = await store.add_messages(
            [said("How is the cat?"), said("Fine.", "assistant")], numbered(0, 1)
        )
        memory.flush()

        assert count == 2
        assert sorted(told("alice")) == ["Fine.", "How is the cat?"]
        assert {one.role for one in memory.list(ALICE).records} == {"user", "assistant"}

    async def test_the_same_batch_again_is_kept_once(self, store, memory, told):
        for _ in range(3):
            await store.add_messages([said("ok"), said("ok")], numbered(4, 5))
        memory.flush()

        assert told("alice") == ["ok", "ok"]

    async def test_another_agent_s_numbers_are_no_repetition(self, store, memory, told):
        await store.add_messages([said("One.")], numbered(0))
        await store.add_messages([said("Two.")], numbered(0))
        memory.flush()

        assert sorted(told("alice")) == ["One.", "Two."]

    async def test_without_numbers_nothing_is_a_repetition(self, store, memory, told):
        for _ in range(2):
            await store.add_messages([said("ok")])
        memory.flush()

        assert told("alice") == ["ok", "ok"]

    async def test_only_words_are_kept(self, store, memory, told):
        use = {"toolUse": {"toolUseId": "1", "name": "look", "input": {}}}
        result = {"toolResult": {"toolUseId": "1", "status": "success", "content": [{"text": "x"}]}}
        messages = [
            {"role": "assistant", "content": [{"text": "Let me see."}, use]},
            {"role": "user", "content": [result]},
            said("agent.tool.look direct tool call.\nInput parameters: {}\n"),
            said("agent.tool.look was called.", "assistant"),
        ]
        await store.add_messages(messages, numbered(0, 1, 2, 3))
        memory.flush()

        assert told("alice") == ["Let me see."]

    @pytest.mark.parametrize("text", ["猫 is a cat.", "x", "a" * 40_000])
    async def test_a_plain_string_is_one_text_block(self, store, memory, told, text):
        count = await store.add_messages([{"role": "user", "content": text}])
        memory.flush()

        assert count == 1
        assert "".join(told("alice")) == text

    async def test_a_message_that_is_none_does_not_stop_the_manager(self, store, memory, told):
        broken = [{"role": "user", "content": [{"text": 3}]}, "hi", {"role": "user"}]
        count = await store.add_messages([*broken, said("One.")], numbered(0, 1, 2, 3))
        memory.flush()

        assert (count, told("alice")) == (1, ["One."])

    async def test_a_message_that_is_marked_as_a_note_is_never_kept(self, store, memory, told):
        marked = {**said("A note."), "metadata": {"custom": {"commonplace.note": {}}}}
        await store.add_messages([marked], numbered(0))
        memory.flush()

        assert told("alice") == []

    async def test_a_failure_is_told_so_that_the_framework_tries_again(self, broken):
        store = CommonplaceMemoryStore(broken, user_id="alice")
        with pytest.raises(StoreUnavailableError):
            await store.add_messages([said("Hello.")], numbered(0))

    def test_a_stamp_for_one_memory_is_not_believed_by_another(self, memory, tmp_path):
        message = said("I am alice.")
        with Memory.open(str(tmp_path / "other"), embedder=HashEmbedder()) as other:
            tag_message(message, memory, ALICE, "1")
            [own, others] = [read_tag(message, one) for one in (memory, other)]

        assert own is not None
        assert own.scope == ALICE
        assert others is None

    async def test_a_stamp_that_a_caller_made_up_is_not_believed(self, memory, make, told):
        store = CommonplaceMemoryStore(
            memory, extraction=ExtractionConfig(trigger=InvocationTrigger())
        )
        agent = make(MemoryPlugin(memory, policy=SCOPED), memory_manager=MemoryManager([store]))
        await agent.invoke_async("First.", **of("alice"))
        stamped = {**said("I am alice."), "metadata": agent.messages[0]["metadata"]}
        await agent.invoke_async([stamped], **of("mallory"))
        await agent.invoke_async([stamped])
        await agent.memory_manager.flush()
        memory.flush()

        assert told("alice") == ["First.", "All right."]
        assert told("mallory") == ["I am alice.", "All right."]


TRIGGERS = {"interval": IntervalTrigger(turns=3), "invocation": InvocationTrigger()}


class TestExtraction:
    @pytest.mark.parametrize("shape", ["messages", "extractor"])
    @pytest.mark.parametrize("trigger", sorted(TRIGGERS))
    async def test_of_200_turns_of_two_users_on_one_agent_none_is_under_the_wrong_one(
        self, memory, make, told, trigger, shape
    ):
        config = ExtractionConfig(trigger=TRIGGERS[trigger])
        if shape == "extractor":
            config["extractor"] = EachIsAFact()
        store = CommonplaceMemoryStore(memory, extraction=config)
        agent = make(MemoryPlugin(memory), memory_manager=MemoryManager([store], injection=False))
        for number in range(200):
            user = ("alice", "bob")[number % 2]
            await agent.invoke_async(f"{user} says {number}.", **of(user))
        await agent.memory_manager.flush()
        memory.flush()

        mark = "Fact: " if shape == "extractor" else ""
        for user, odd in (("alice", 0), ("bob", 1)):
            words = [one for one in told(user) if one != "All right."]
            expected = [f"{mark}{user} says {number}." for number in range(odd, 200, 2)]
            assert sorted(words) == sorted(expected)

    @pytest.mark.parametrize("trigger", sorted(TRIGGERS))
    async def test_users_at_once_on_one_agent_do_not_mix(self, memory, make, told, trigger):
        store = CommonplaceMemoryStore(
            memory, extraction=ExtractionConfig(trigger=TRIGGERS[trigger])
        )
        agent = make(
            MemoryPlugin(memory, policy=SCOPED),
            memory_manager=MemoryManager([store]),
            concurrent_invocation_mode=ConcurrentInvocationMode.UNSAFE_REENTRANT,
        )
        users = [f"user{number}" for number in range(10)]
        for number in range(2):
            await asyncio.gather(
                *(agent.invoke_async(f"{one} says {number}.", **of(one)) for one in users)
            )
        await agent.memory_manager.flush()
        memory.flush()

        for user in users:
            words = [one for one in told(user) if one != "All right."]
            assert sorted(words) == [f"{user} says 0.", f"{user} says 1."]

    async def test_an_extractor_sees_one_user_at_a_time(self, memory, make):
        extractor = EachIsAFact()
        config = ExtractionConfig(trigger=IntervalTrigger(turns=4), extractor=extractor)
        store = CommonplaceMemoryStore(memory, extraction=config)
        agent = make(MemoryPlugin(memory, policy=SCOPED), memory_manager=MemoryManager([store]))
        for user in ("alice", "alice", "bob", "alice"):
            await agent.invoke_async(f"I am {user}.", **of(user))
        await agent.memory_manager.flush()

        assert extractor.batches == [["I am alice."] * 2, ["I am bob."], ["I am alice."]]

    @pytest.mark.parametrize("extractor", [None, EachIsAFact()])
    async def test_a_plain_string_is_extracted_as_one_text(self, memory, make, told, extractor):
        config = ExtractionConfig(trigger=InvocationTrigger())
        if extractor is not None:
            config["extractor"] = extractor
        manager = MemoryManager(stores=[CommonplaceMemoryStore(memory, extraction=config)])
        agent = make(MemoryPlugin(memory), memory_manager=manager)
        await agent.invoke_async([{"role": "user", "content": "Miso is a cat."}], **of("alice"))
        await manager.flush()
        memory.flush()

        kept = ["Fact: Miso is a cat."] if extractor else ["Miso is a cat.", "All right."]
        assert sorted(told("alice")) == sorted(kept)

    async def test_a_text_no_record_holds_does_not_stop_the_others(
        self, memory, make, told, caplog
    ):
        class OneIsEmpty(EachIsAFact):
            async def extract(self, messages, context=None):
                return [*await super().extract(messages), ExtractionResult(content=" ")]

        config = ExtractionConfig(trigger=InvocationTrigger(), extractor=OneIsEmpty())
        store = CommonplaceMemoryStore(memory, extraction=config)
        agent = make(MemoryPlugin(memory, policy=SCOPED), memory_manager=MemoryManager([store]))
        with caplog.at_level(logging.WARNING, "commonplace_strands"):
            await agent.invoke_async("One.", **of("alice"))
            await agent.memory_manager.flush()

        assert told("alice") == ["Fact: One."]
        assert "must have a visible character" in caplog.text

    async def test_what_the_manager_extracts_the_plugin_does_not_write(self, memory, make, told):
        store = CommonplaceMemoryStore(memory, extraction=True)
        agent = make(MemoryPlugin(memory), memory_manager=MemoryManager([store]))
        await agent.invoke_async("My cat is called Miso.", **of("alice"))
        before = told("alice")
        await agent.memory_manager.flush()
        memory.flush()

        assert before == []
        assert sorted(told("alice")) == ["All right.", "My cat is called Miso."]

    async def test_what_the_manager_extracts_for_the_turn_s_very_user_is_kept_once(
        self, memory, make, told
    ):
        config = ExtractionConfig(trigger=InvocationTrigger())
        store = CommonplaceMemoryStore(memory, user_id="alice", extraction=config)
        plugin = MemoryPlugin(memory, user_id="alice")
        agent = make(plugin, memory_manager=MemoryManager([store]))
        await agent.invoke_async("My cat is called Miso.")
        await agent.memory_manager.flush()
        memory.flush()

        assert sorted(told("alice")) == ["All right.", "My cat is called Miso."]

    async def test_what_the_manager_extracts_for_a_team_the_plugin_writes_for_the_user(
        self, memory, make, told
    ):
        team = CommonplaceMemoryStore(memory, agent_id="team", extraction=True)
        agent = make(MemoryPlugin(memory), memory_manager=MemoryManager([team]))
        await agent.invoke_async("My cat is called Miso.", **of("alice"))

        assert told("alice") == ["My cat is called Miso.", "All right."]

    async def test_a_filter_that_keeps_tool_results_does_not_get_them_kept(
        self, memory, make, use, told
    ):
        memory.add("Miso is a cat.", ALICE)
        config = ExtractionConfig(
            trigger=InvocationTrigger(), filter=MemoryMessageFilter(exclude=[])
        )
        store = CommonplaceMemoryStore(memory, extraction=config)
        agent = make(
            MemoryPlugin(memory),
            memory_manager=MemoryManager([store]),
            script=[use("search_memory", query="cat")],
        )
        await agent.invoke_async("What is Miso?", **of("alice"))
        await agent.memory_manager.flush()
        memory.flush()

        assert "Miso is a cat." in agent.model.shown()
        assert sorted(told("alice")) == ["All right.", "Miso is a cat.", "What is Miso?"]

    def test_a_save_that_a_loop_s_end_cuts_short_is_finished_and_later_ones_go_on(
        self, memory, make, told
    ):
        config = ExtractionConfig(trigger=InvocationTrigger())
        store = CommonplaceMemoryStore(memory, extraction=config)
        agent = make(MemoryPlugin(memory, policy=SCOPED), memory_manager=MemoryManager([store]))
        for number in range(3):
            asyncio.run(agent.invoke_async(f"Number {number}.", **of("alice")))
        memory.flush()

        words = [one for one in told("alice") if one != "All right."]
        assert sorted(words) == ["Number 0.", "Number 1.", "Number 2."]

    def test_settings_the_manager_would_refuse_are_still_refused(self, memory):
        store = CommonplaceMemoryStore(memory, extraction=ExtractionConfig(trigger=[]))
        with pytest.raises(ValueError, match="no triggers"):
            MemoryManager([store])


class TestWithAManager:
    async def test_its_tools_find_and_add_for_the_turn_s_user(self, memory, make, use, told):
        store = CommonplaceMemoryStore(memory)
        manager = MemoryManager([store], add_tool_config=True, injection=False)
        script = [use("add_memory", entries=["Miso is a cat."]), "Noted."]
        plugin = MemoryPlugin(memory, policy=Policy(mode="static_control"))
        agent = make(plugin, memory_manager=manager, script=script)
        await agent.invoke_async("Note that.", **of("alice"))
        agent.model.script = [use("search_memory", query="Miso")]
        await agent.invoke_async("What is Miso?", **of("bob"))

        assert "Miso is a cat." in told("alice")
        assert "Miso is a cat." not in str(agent.model.results[-1])

    async def test_its_injection_is_for_the_turn_s_user(self, memory, make):
        memory.add("Miso is a cat.", ALICE)
        store = CommonplaceMemoryStore(memory)
        agent = make(MemoryPlugin(memory, policy=SCOPED), memory_manager=MemoryManager([store]))
        await agent.invoke_async("What is Miso?", **of("alice"))
        await agent.invoke_async("What is Miso?", **of("bob"))

        assert [agent.model.shown(call).count("Miso is a cat.") for call in (0, 1)] == [1, 0]

    async def test_nothing_is_shown_twice(self, memory, make):
        memory.add("Miso is a cat.", ALICE)
        stores = [CommonplaceMemoryStore(memory, name=name) for name in ("one", "two")]
        agent = make(MemoryPlugin(memory), memory_manager=MemoryManager(stores))
        for call in range(2):
            await agent.invoke_async("What is Miso?", **of("alice"))

            assert agent.model.shown(call).count("Miso is a cat.") == 1

    async def test_a_call_has_one_note_of_what_the_user_told(self, memory, make):
        memory.add([f"Miso is cat number {number}." for number in range(20)], ALICE)
        store = CommonplaceMemoryStore(memory, max_search_results=20)
        manager = MemoryManager([store], injection={"max_entries": 20})
        agent = make(MemoryPlugin(memory), memory_manager=manager)
        await agent.invoke_async("What is Miso?", **of("alice"))

        assert agent.model.shown().count("Miso is cat number") == Policy().top_k
        assert "<memory>" not in agent.model.shown()

    async def test_a_store_of_a_part_adds_to_the_note(self, memory, make):
        team = Scope(agent_id="team")
        memory.add("Miso is a black cat.", ALICE)
        memory.add("Miso is fed at noon.", team)
        memory.add("Give Miso fish.", ALICE, kind="preference")
        stores = [
            CommonplaceMemoryStore(memory, agent_id="team", name="team"),
            CommonplaceMemoryStore(memory, policy=Policy(kinds=("preference",)), name="likes"),
        ]
        agent = make(
            MemoryPlugin(memory, policy=Policy(top_k=1)), memory_manager=MemoryManager(stores)
        )
        await agent.invoke_async("Which cat is Miso, and when is Miso fed?", **of("alice"))

        texts = ["Miso is a black cat.", "Miso is fed at noon.", "Give Miso fish."]
        assert [agent.model.shown().count(one) for one in texts] == [1, 1, 1]

    async def test_what_was_shown_is_still_found_by_a_tool(self, memory, make, use):
        memory.add("Miso is a cat.", ALICE)
        agent = make(
            MemoryPlugin(memory),
            memory_manager=MemoryManager([CommonplaceMemoryStore(memory)]),
            script=[use("search_memory", query="Miso")],
        )
        await agent.invoke_async("What is Miso?", **of("alice"))

        assert "Miso is a cat." in str(agent.model.results[-1])

    async def test_a_memory_that_fails_does_not_break_the_agent(self, broken, make):
        store = CommonplaceMemoryStore(broken, extraction=True)
        agent = make(MemoryPlugin(broken), memory_manager=MemoryManager([store]))
        result = await agent.invoke_async("Hello.", **of("alice"))
        await agent.memory_manager.flush()

        assert str(result).strip() == "All right."

    async def test_a_save_that_failed_is_made_good_later(self, memory, make, told, monkeypatch):
        config = ExtractionConfig(trigger=InvocationTrigger())
        store = CommonplaceMemoryStore(memory, extraction=config)
        agent = make(MemoryPlugin(memory, policy=SCOPED), memory_manager=MemoryManager([store]))

        def fail(*_args, **_options):
            raise StoreUnavailableError(store="test", reason="down")

        with monkeypatch.context() as patch:
            patch.setattr(memory, "add", fail)
            await agent.invoke_async("First.", **of("alice"))
            await agent.memory_manager.flush()
        await agent.invoke_async("Second.", **of("bob"))
        await agent.memory_manager.flush()
        memory.flush()

        assert sorted(told("alice")) == ["All right.", "First."]
        assert sorted(told("bob")) == ["All right.", "Second."]

    def test_a_store_brings_its_own_tools(self, memory, make, use):
        fact = Fact(
            text="Alice lives in Lyon.",
            relations=(Relation(subject="Alice", predicate="lives_in", object="Lyon"),),
        )
        memory.add(fact, ALICE)
        store = CommonplaceMemoryStore(
            memory, user_id="alice", name="own", extra_tools=("memory_relations", "list_memories")
        )
        agent = make(memory_manager=MemoryManager([store]), script=[use("own_memory_relations")])
        agent("Where does Alice live?")

        edge = {"subject": "Alice", "predicate": "lives_in", "object": "Lyon"}
        assert agent.tool_names == ["search_memory", "own_list_memories", "own_memory_relations"]
        assert agent.model.results[-1]["content"] == [{"json": {"relations": [edge]}}]

    def test_the_note_of_the_manager_is_never_extracted(self, memory, make, told):
        store = CommonplaceMemoryStore(
            memory, extraction=ExtractionConfig(trigger=InvocationTrigger())
        )
        memory.add("My cat is called Miso.", ALICE)
        agent = make(MemoryPlugin(memory), memory_manager=MemoryManager([store]))
        agent("How is my cat called?", **of("alice"))
        memory.flush()

        assert FOOTER in agent.model.shown()
        assert set(told("alice")) == {
            "My cat is called Miso.", "How is my cat called?", "All right.",
        }  # fmt: skip


LEAVES_AT_ONCE = """
    import importlib.util, sys
    from strands import Agent
    from strands.memory import ExtractionConfig, InvocationTrigger, MemoryManager
    from commonplace import Memory, Policy
    from commonplace.testing.fakes import HashEmbedder
    from commonplace_strands import CommonplaceMemoryStore, MemoryPlugin

    spec = importlib.util.spec_from_file_location("shared", sys.argv[2])
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)

    memory = Memory.open(sys.argv[1], embedder=HashEmbedder())
    plugin = MemoryPlugin(memory, policy=Policy(await_write=False))
    store = CommonplaceMemoryStore(
        memory, name="facts", extraction=ExtractionConfig(trigger=InvocationTrigger())
    )
    manager = MemoryManager([store], add_tool_config={"wait_for_writes": False})
    for user, more in (("alice", {}), ("bob", {"memory_manager": manager})):
        facts = [f"Fact {number}." for number in range(20)]
        tool = {"thinking": "", "content": facts} if not more else {"entries": facts}
        script = [shared.Use("add_memory", **tool), "Noted."]
        agent = Agent(
            model=shared.ScriptedModel(script), plugins=[plugin], callback_handler=None, **more
        )
        agent("Remember this.", invocation_state={"user_id": user})
"""


def test_all_that_was_accepted_is_found_though_the_program_ends_right_after(tmp_path):
    """The synchronous agent's loop is gone with its call; nothing waits, drains or closes."""
    folder = str(tmp_path / "memory")
    script = tmp_path / "leaves.py"
    script.write_text(textwrap.dedent(LEAVES_AT_ONCE), "utf-8")
    shared = str(Path(__file__).with_name("conftest.py"))
    subprocess.run([sys.executable, script, folder, shared], check=True, timeout=120, cwd=ROOT)

    expected = {"Remember this.", "Noted.", *(f"Fact {number}." for number in range(20))}
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        memory.flush()
        for user in ("alice", "bob"):
            records = memory.list(Scope(user_id=user)).records
            assert {one.text for one in records} == expected


class TestWithoutAPlugin:
    def test_a_folder_that_cannot_be_opened_stops_the_making_of_the_agent(self, make, tmp_path):
        (tmp_path / "file").write_text("no folder")
        store = CommonplaceMemoryStore(
            str(tmp_path / "file" / "memory"), user_id="alice", extraction=True
        )

        with pytest.raises(StoreRefusedError, match="file"):
            make(memory_manager=MemoryManager(stores=[store]))

    async def test_the_manager_finds_and_adds_for_the_user_of_the_call(
        self, memory, make, use, told
    ):
        memory.add("Her cat is called Miso.", Scope(user_id="alice"), infer=False)
        manager = MemoryManager(
            [CommonplaceMemoryStore(memory, policy=FORGETS)], add_tool_config=True
        )
        script = [
            [use("add_memory", entries=["She is a nurse."]), use("search_memory", query="cat")],
            "Done.",
        ]
        agent = make(script=script, memory_manager=manager)
        await agent.invoke_async("What is my cat called?", **of("alice"))
        await agent.invoke_async("What is my cat called?", **of("bob"))

        assert "Her cat is called Miso." in agent.model.shown(0)
        assert "Miso" in json.dumps(agent.model.seen[1][-1])
        assert "Miso" not in json.dumps(agent.model.seen[2][-1])
        assert sorted(told("alice")) == ["Her cat is called Miso.", "She is a nurse."]
        assert told("bob") == []

    def test_it_does_in_calls_without_a_loop(self, memory, make):
        memory.add("Her cat is called Miso.", Scope(user_id="alice"), infer=False)
        agent = make(memory_manager=MemoryManager([CommonplaceMemoryStore(memory)]))
        agent("What is my cat called?", **of("alice"))

        assert "Her cat is called Miso." in agent.model.shown()

    @pytest.mark.parametrize("shape", ["messages", "extractor"])
    async def test_what_users_at_once_say_is_extracted_for_each(self, memory, make, told, shape):
        config = ExtractionConfig(trigger=IntervalTrigger(turns=3))
        if shape == "extractor":
            config["extractor"] = EachIsAFact()
        first = CommonplaceMemoryStore(memory, extraction=config)
        second = CommonplaceMemoryStore(memory, name="second", policy=Policy(kinds=("fact",)))
        agent = make(
            memory_manager=MemoryManager([first, second]),
            concurrent_invocation_mode=ConcurrentInvocationMode.UNSAFE_REENTRANT,
        )
        users = [f"user{number}" for number in range(6)]
        for number in range(2):
            await asyncio.gather(
                *(agent.invoke_async(f"{one} says {number}.", **of(one)) for one in users)
            )
        await agent.memory_manager.flush()
        memory.flush()

        mark = "Fact: " if shape == "extractor" else ""
        for user in users:
            words = [one for one in told(user) if one != "All right."]
            assert sorted(words) == [f"{mark}{user} says {number}." for number in range(2)]

    @pytest.mark.parametrize("is_first", [True, False])
    async def test_a_plugin_takes_its_place(self, memory, make, is_first):
        memory.add("Her cat is called Miso.", Scope(user_id="alice"), infer=False)
        plugin = MemoryPlugin(memory, user_id="alice")
        manager = MemoryManager([CommonplaceMemoryStore(memory)])
        agent = make(plugin if is_first else manager, manager if is_first else plugin)
        await agent.invoke_async("What is my cat called?")

        assert agent.model.shown().count("Her cat is called Miso.") == 1

    async def test_a_turn_of_nobody_is_told_once_with_the_way_out(self, memory, make, caplog):
        agent = make(memory_manager=MemoryManager([CommonplaceMemoryStore(memory)]))
        with caplog.at_level(logging.WARNING, "commonplace_strands"):
            await agent.invoke_async("What is my cat called?")
            await agent.invoke_async("What is my cat called?")

        ours = [one.getMessage() for one in caplog.records if one.name == "commonplace_strands"]
        assert len([one for one in ours if "invocation_state" in one]) == 1
        with pytest.raises(InvalidScopeError, match=r"add MemoryPlugin\(memory\)"):
            await CommonplaceMemoryStore(memory).search("cat")

    def test_an_id_that_cannot_be_used_is_refused_before_the_model(self, memory, make):
        agent = make(memory_manager=MemoryManager([CommonplaceMemoryStore(memory)]))
        with pytest.raises(InvalidScopeError):
            agent("Hello.", **of(" alice"))

        assert agent.model.seen == []
