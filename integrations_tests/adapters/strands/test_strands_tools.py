import json
import re
from typing import get_args

import pytest

from commonplace import Fact, InvalidRecordError, InvalidScopeError, Memory, Policy, Relation, Scope
from commonplace.agents.policy import CHANGE_INSTRUCTIONS, TOOL_NAMES
from commonplace.testing.contracts.adapter import PolicyFieldsContract
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace_strands import ExtraTool, MemoryPlugin, memory_tools

ALICE = Scope(user_id="alice")
ALL = Policy(mode="agent_control", tools=TOOL_NAMES)
EXTRA = get_args(ExtraTool)


def of(user):
    return {"invocation_state": {"user_id": user}}


@pytest.fixture
def plugin(memory):
    return MemoryPlugin(memory, policy=ALL, extra_tools=EXTRA)


@pytest.fixture
def ask(make, plugin, use):
    """Have a model use one tool for a user; answer the result that it is shown."""

    def run(user, name, consents=None, **arguments):
        script = [use(name, **arguments)]
        if name in CHANGE_INSTRUCTIONS:  # only what it was shown in this turn
            script.insert(0, use("get_memory", memory_id=arguments["memory_id"]))
        agent = make(plugin, script=script)
        result = agent("Go on.", **of(user))
        if result.stop_reason == "interrupt":
            response = {"interruptId": result.interrupts[0].id, "response": consents}
            agent([{"interruptResponse": response}], **of(user))
        return agent.model.results[-1]

    return run


def told(result):
    (content,) = result["content"]
    assert result["status"] == "success", content
    return content["json"] if "json" in content else content["text"]


@pytest.fixture
def record(memory):
    memory.add("Miso is a cat.", ALICE, metadata={"source": "form"})
    (record,) = memory.list(ALICE).records
    return record


class TestTools:
    def test_no_tool_takes_an_identity(self, make, plugin):
        specs = make(plugin).tool_registry.get_all_tool_specs()
        names = {name for one in specs for name in one["inputSchema"]["json"]["properties"]}

        assert len(specs) == len(ALL.tools) + len(EXTRA) == 9
        assert names == {
            "keywords", "limit", "thinking", "content", "cursor", "memory_id", "text", "entity",
            "hops",
        }  # fmt: skip

    def test_a_model_that_names_a_user_still_reaches_its_own(self, ask, record):
        result = ask("bob", "list_memories", user_id="alice", invocation_state={"user_id": "alice"})

        assert told(result)["memories"] == []

    def test_search_finds_and_add_keeps(self, ask):
        added = told(ask("alice", "add_memory", thinking="", content=["Miso is a cat."]))
        found = told(ask("alice", "search_memory", keywords=["cat"]))

        assert '"event": "ADD"' in added
        memory_id = json.loads(added.partition("→ ")[2])["results"][0]["id"]
        assert found.startswith(f"- [{memory_id[:8]}] [")
        assert found.endswith("] Miso is a cat.")
        assert "no relevant" in told(ask("bob", "search_memory", keywords=["cat"]))

    def test_list_goes_on_where_it_stopped(self, ask, memory):
        for number in range(3):
            memory.add(f"Fact {number}.", ALICE)
        first = told(ask("alice", "list_memories", limit=2))
        rest = told(ask("alice", "list_memories", limit=2, cursor=first["cursor"]))

        texts = [one["text"] for one in first["memories"] + rest["memories"]]
        assert sorted(texts) == ["Fact 0.", "Fact 1.", "Fact 2."]
        assert rest["cursor"] is None

    def test_get_reads_what_a_search_gave(self, ask, record):
        got = told(ask("alice", "get_memory", memory_id=record.id))

        assert (got["text"], got["id"], got["user_id"]) == ("Miso is a cat.", record.id, "alice")
        assert got == json.loads(json.dumps(got))

    @pytest.mark.parametrize(
        ("name", "more"),
        [
            ("get_memory", {}),
            ("update_memory", {"text": "x"}),
            ("forget_memory", {}),
            ("memory_history", {}),
        ],
    )
    def test_another_user_s_memory_is_not_there(self, ask, record, memory, name, more):
        result = ask("bob", name, memory_id=record.id, **more)

        assert result["status"] == "error"
        assert re.search("in this scope|shown in this turn", result["content"][0]["text"])
        assert memory.get(record.id, ALICE) == record

    @pytest.mark.parametrize(
        ("name", "more"), [("update_memory", {"text": "x"}), ("forget_memory", {})]
    )
    def test_what_was_not_shown_in_this_turn_is_not_changed(
        self, make, memory, use, record, name, more
    ):
        plugin = MemoryPlugin(memory, policy=ALL, extra_tools=EXTRA, consent=False)
        agent = make(plugin, script=[use(name, memory_id=record.id, **more)])
        agent("Go on.", **of("alice"))
        (result,) = agent.model.results

        assert result["status"] == "error"
        assert "shown in this turn" in result["content"][0]["text"]
        assert memory.get(record.id, ALICE) == record

    def test_history_tells_every_version_also_of_a_deleted_memory(self, ask, record):
        ask("alice", "update_memory", consents="y", memory_id=record.id, text="Miso is a dog.")
        ask("alice", "forget_memory", consents="y", memory_id=record.id)
        history = told(ask("alice", "memory_history", memory_id=record.id))["history"]

        assert [one["event"] for one in history] == ["ADD", "UPDATE", "DELETE"]
        assert history[1]["previous"] == "Miso is a cat."

    def test_relations_tell_who_is_what_to_whom(self, ask, memory):
        edge = {"subject": "Alice", "predicate": "owns", "object": "Miso"}
        memory.add(Fact(text="Alice owns Miso.", relations=(Relation(**edge),)), ALICE)

        assert told(ask("alice", "memory_relations", entity="Miso")) == {"relations": [edge]}
        assert told(ask("bob", "memory_relations")) == {"relations": []}

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("search_memory", {"keywords": "cat"}),
            ("search_memory", {"keywords": ["x"] * 11}),
            ("search_memory", {"keywords": ["x"], "limit": 0}),
            ("add_memory", {"thinking": "", "content": []}),
            ("add_memory", {"thinking": "", "content": ["x\x00y"]}),
            ("list_memories", {"cursor": "nonsense"}),
            ("get_memory", {}),
            ("get_memory", {"memory_id": ""}),
            ("get_memory", {"memory_id": "nobody's"}),
            ("memory_relations", {"hops": 9}),
        ],
    )
    def test_a_bad_argument_is_told_to_the_model(self, ask, name, arguments):
        result = ask("alice", name, **arguments)

        assert result["status"] == "error"
        assert result["content"][0]["text"].startswith("Error: ")

    def test_a_memory_that_fails_is_told_to_the_model(self, broken, ask):
        result = ask("alice", "search_memory", keywords=["cat"])

        assert (result["status"], "failed: down" in str(result)) == ("error", True)

    def test_a_turn_of_nobody_reaches_no_memory(self, make, plugin, use, record):
        agent = make(plugin, script=[use("list_memories")])
        agent("Go on.")

        assert agent.model.results[-1]["status"] == "error"
        assert "user_id=None is unknown" in str(agent.model.results[-1])


class TestConsent:
    def test_whoever_is_asked_sees_what_is_at_stake(self, make, plugin, use, record):
        script = [use("list_memories"), use("forget_memory", memory_id=record.id[:8])]
        agent = make(plugin, script=script)
        (interrupt,) = agent("Delete it.", **of("alice")).interrupts

        assert interrupt.name == "commonplace.forget_memory"
        assert interrupt.reason["action"] == "forget"
        assert interrupt.reason["memory"]["text"] == "Miso is a cat."

    @pytest.mark.parametrize("consents", ["y", "Yes", True, " approve "])
    def test_a_yes_deletes(self, ask, memory, record, consents):
        ask("alice", "forget_memory", consents=consents, memory_id=record.id)

        assert memory.get(record.id, ALICE) is None

    @pytest.mark.parametrize("consents", ["n", "no", "", 1, {"ok": True}, "yes, but not now"])
    @pytest.mark.parametrize("name", ["forget_memory", "update_memory"])
    def test_all_else_changes_nothing(self, ask, memory, record, name, consents):
        more = {"text": "Miso is a dog."} if name == "update_memory" else {}
        result = ask("alice", name, consents=consents, memory_id=record.id, **more)

        assert result["status"] == "error"
        assert memory.get(record.id, ALICE) == record

    def test_without_consent_nobody_is_asked(self, make, memory, use, record):
        plugin = MemoryPlugin(memory, policy=ALL, extra_tools=["get_memory"], consent=False)
        script = [use(name, memory_id=record.id) for name in ("get_memory", "forget_memory")]
        agent = make(plugin, script=script)

        assert agent("Delete it.", **of("alice")).stop_reason == "end_turn"
        assert memory.get(record.id, ALICE) is None

    def test_the_program_s_own_call_is_its_consent(self, make, plugin, memory, record):
        agent = make(plugin)
        agent.tool.forget_memory(memory_id=record.id, user_id="bob")
        kept = memory.get(record.id, ALICE)
        agent.tool.forget_memory(memory_id=record.id, user_id="alice")

        assert kept == record
        assert memory.get(record.id, ALICE) is None


class TestPolicy(PolicyFieldsContract):
    """A model that searches for what it is told, with the tools alone."""

    without_effect = dict.fromkeys(
        ("mode", "inject", "header", "intro", "instructions", "max_waiting", "summaries",
         "note_tokens", "count_tokens", "note_log"),
        "tools write no turns and no notes"
    ) | {
        "tool_instructions": "the agent's own system prompt is its program's",
        "metadata": "see below", "await_write": "see below", "tools": "see below",
    }  # fmt: skip

    @pytest.fixture
    def turn_with(self, memory, make, use):
        def turn(policy, *, agent_id=None, conversation=None):
            async def run(user, text):
                made = memory_tools(memory, policy=policy, user_id=user, agent_id=agent_id)
                agent = make(script=[use("search_memory", keywords=[text])], tools=made)
                await agent.invoke_async("Go on.")
                return str(agent.model.results)

            return run

        return turn

    def added(self, memory, make, use, policy):
        script = [use("add_memory", thinking="", content=["She is a nurse."])]
        agent = make(script=script, tools=memory_tools(memory, policy=policy))
        agent("Go on.", **of("alice"))
        return told(agent.model.results[-1])

    def test_what_they_add_has_the_metadata(self, memory, make, use):
        self.added(memory, make, use, Policy(metadata={"home": True}))

        assert memory.list(ALICE).records[0].metadata == {"home": True}

    @pytest.mark.parametrize(("waits", "event"), [(True, "ADD"), (False, "PENDING")])
    def test_they_wait_for_a_write_as_it_says(self, memory, make, use, waits, event):
        answer = self.added(memory, make, use, Policy(await_write=waits))

        assert f'"event": "{event}"' in answer

    def test_they_are_the_policy_s(self, memory):
        policy = Policy(mode="static_control", tools=("forget_memory",))

        assert [one.tool_name for one in memory_tools(memory, policy=policy)] == ["forget_memory"]


class TestWithoutAPlugin:
    def test_they_are_for_the_user_of_the_call(self, memory, make, use, record):
        search = use("search_memory", keywords=["cat"])
        agent = make(script=[search, "Miso.", search, "None."], tools=memory_tools(memory))
        agent("Which cat?", **of("alice"))
        assert told(agent.model.results[-1]).endswith("] Miso is a cat.")
        agent("Which cat?", **of("bob"))
        assert "no relevant" in told(agent.model.results[-1])

        assert sorted(agent.tool_names) == ["add_memory", "search_memory"]
        agent.tool.add_memory(thinking="", content=["She is a nurse."], user_id="bob")
        assert [one.text for one in memory.list(Scope(user_id="bob")).records] == [
            "She is a nurse."
        ]

    def test_a_scope_is_one_user_s_whoever_calls(self, memory, make, use, record):
        made = memory_tools(
            memory, user_id="alice", extra_tools=["list_memories"], tool_prefix="my_"
        )
        agent = make(script=[use("my_list_memories")], tools=made)
        agent("Go on.", **of("bob"))

        assert [one["text"] for one in told(agent.model.results[-1])["memories"]] == [
            "Miso is a cat."
        ]

    def test_a_call_of_nobody_is_an_error_that_the_model_reads(self, memory, make, use):
        agent = make(
            script=[use("search_memory", keywords=["cat"], user_id="alice")],
            tools=memory_tools(memory),
        )
        agent("Which cat?")

        assert agent.model.results[-1]["status"] == "error"
        assert "user_id= to memory_tools" in str(agent.model.results[-1])

    @pytest.mark.parametrize("consents", ["yes", "no"])
    def test_what_was_shown_in_the_turn_is_forgotten_with_consent(
        self, memory, make, use, record, consents
    ):
        policy = Policy(mode="static_control", tools=("search_memory", "forget_memory"))
        forget = use("forget_memory", memory_id=record.id[:8])
        search = use("search_memory", keywords=["cat"])
        agent = make(script=[forget, search, forget], tools=memory_tools(memory, policy=policy))
        result = agent("Forget my cat.", **of("alice"))
        assert "shown in this turn" in str(agent.model.seen[1][-1])
        response = {"interruptId": result.interrupts[0].id, "response": consents}
        agent([{"interruptResponse": response}], **of("alice"))

        assert len(memory.list(ALICE).records) == (consents == "no")

    def test_one_user_s_are_not_shown_to_another_in_the_same_conversation(
        self, memory, make, use, record
    ):
        made = memory_tools(memory, policy=ALL)
        agent = make(script=[use("search_memory", keywords=["cat"])], tools=made)
        agent("Which cat?", **of("alice"))
        agent.model.script = [use("forget_memory", memory_id=record.id[:8])]
        agent([], **of("bob"))

        assert "shown in this turn" in str(agent.model.results[-1])

    def test_an_argument_that_cannot_be_used_is_refused(self, memory):
        with pytest.raises(InvalidRecordError, match="burn"):
            memory_tools(memory, extra_tools=["burn"])
        with pytest.raises(InvalidScopeError, match="user_id"):
            memory_tools(memory, user_id=["alice"])
        with pytest.raises(TypeError, match="must be an open commonplace Memory"):
            memory_tools(3)


class TestPart:
    """A plugin whose policy says which part of a memory it is for."""

    HOME = Policy(
        mode="both", where={"home": True}, metadata={"home": True, "source": "chat"},
        tools=("search_memory", "add_memory"),
    )  # fmt: skip

    def test_it_recalls_and_finds_what_its_filter_lets_through(self, memory, make, use):
        for text, home in (("Miso is a cat.", True), ("Kiki is a cat.", False)):
            metadata = {"home": home}
            for kind in ("fact", "profile"):
                memory.add(f"{text} ({kind})", ALICE, kind=kind, metadata=metadata)
        script = [[use("search_memory", keywords=["cat"]), use("list_memories")]]
        plugin = MemoryPlugin(memory, policy=self.HOME, extra_tools=["list_memories"])
        agent = make(plugin, script=script)
        agent("What is the name of my cat?", **of("alice"))

        for call in (0, 1):
            assert "Kiki" not in agent.model.shown(call)
            assert "Miso is a cat. (profile)" in agent.model.shown(call)
            assert "Miso is a cat. (fact)" in agent.model.shown(call)
        assert len(agent.model.results) == 2

    def test_it_recalls_the_kinds_it_names(self, memory, make):
        memory.add("Miso is a cat.", ALICE, kind="preference")
        memory.add("Kiki is a cat.", ALICE, kind="fact")
        memory.add("She is a nurse.", ALICE, kind="profile")
        agent = make(MemoryPlugin(memory, policy=Policy(kinds=("preference",))))
        agent("What is the name of my cat?", **of("alice"))

        assert "Miso" in agent.model.shown()
        assert not re.search("Kiki|nurse", agent.model.shown())

    def test_all_that_it_writes_has_its_metadata_and_is_found_again(self, tmp_path, make, use):
        fact = {"text": "She lives in Lyon.", "kind": "fact", "entities": [], "relations": []}
        chat = ScriptedChat([json.dumps({"facts": [fact]}), *['{"facts": []}'] * 3])
        with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:
            script = [use("add_memory", thinking="", content=["She is a nurse."])]
            agent = make(MemoryPlugin(memory, policy=self.HOME), script=script)
            agent("I live in Lyon. Always answer in French.", **of("alice"))
            memory.flush()
            records = memory.list(ALICE).records
            later = make(MemoryPlugin(memory, policy=self.HOME))
            later("Where does she live?", **of("alice"))

        texts = {one.text for one in records}
        assert {"She is a nurse.", "She lives in Lyon.", "All right."} <= texts
        assert {one.kind for one in records} == {"fact", "episode", "preference"}
        for record in records:
            assert {"home": True, "source": "chat"}.items() <= record.metadata.items()
        assert "Lyon" in later.model.shown()
        assert "French" in later.model.shown()
