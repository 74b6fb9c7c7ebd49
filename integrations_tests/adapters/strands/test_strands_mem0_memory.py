import hashlib
import json
import threading
from functools import cache

import pytest

from commonplace import Fact, InvalidRecordError, Memory, Relation, Scope
from commonplace.agents import acquire_memory
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import mem0_memory as module
from commonplace_strands.mem0_memory import TOOL_SPEC, Mem0MemoryTool, mem0_memory

ALICE = Scope(user_id="alice")


def use(action=None, **given):
    asked = given if action is None else {"action": action, **given}
    return {"toolUseId": "t1", "name": "mem0_memory", "input": asked}


@pytest.fixture
def tool(memory):
    return Mem0MemoryTool(user_id="alice", memory=memory).mem0_memory


@pytest.fixture
def opened(memory, monkeypatch):
    """The memory that the environment would open."""
    lazy = acquire_memory(module.mem0_memory, memory)
    monkeypatch.setattr(module, "_find_memory", lambda: lazy)
    for name in ("MEM0_USER_ID", "MEM0_AGENT_ID"):
        monkeypatch.delenv(name, raising=False)
    return memory


def told(result):
    assert (result["toolUseId"], result["status"]) == ("t1", "success"), result
    (content,) = result["content"]
    return json.loads(content["text"])


def refused(result):
    assert (result["toolUseId"], result["status"]) == ("t1", "error"), result
    (content,) = result["content"]
    return content["text"]


@pytest.fixture
def record(memory):
    memory.add("Miso is a cat.", ALICE, metadata={"source": "form"})
    (record,) = memory.list(ALICE).records
    return record


class TestSpec:
    def test_its_name_actions_and_parameters_are_those_of_the_tool_it_stands_in_for(self):
        schema = TOOL_SPEC["inputSchema"]["json"]
        types = {name: one["type"] for name, one in schema["properties"].items()}

        assert TOOL_SPEC["name"] == "mem0_memory"
        assert schema["required"] == ["action"]
        assert schema["properties"]["action"]["enum"] == [
            "store", "get", "list", "retrieve", "delete", "history",
        ]  # fmt: skip
        assert types == {
            "action": "string",
            "content": "string",
            "memory_id": "string",
            "query": "string",
            "metadata": "object",
        }

    def test_it_has_the_shape_of_the_module_it_stands_in_for(self, tool):
        theirs = pytest.importorskip("strands_tools.mem0_memory").TOOL_SPEC
        schema, their_schema = (one["inputSchema"]["json"] for one in (TOOL_SPEC, theirs))

        def types_of(one):
            return {name: (each["type"], each.get("enum")) for name, each in one.items()}

        assert module.TOOL_SPEC is mem0_memory.TOOL_SPEC is tool.TOOL_SPEC
        assert TOOL_SPEC["name"] == theirs["name"]
        assert TOOL_SPEC.keys() == theirs.keys()
        assert schema.keys() == their_schema.keys()
        assert schema["required"] == their_schema["required"]
        assert types_of(schema["properties"]) == types_of(their_schema["properties"])

    @pytest.mark.parametrize(
        "given", [module, mem0_memory, "commonplace_strands.mem0_memory", [mem0_memory]]
    )
    def test_an_agent_takes_it_as_module_object_or_string(
        self, make, opened, monkeypatch, model, given
    ):
        from strands import Agent

        monkeypatch.setenv("MEM0_USER_ID", "alice")
        agent = Agent(model=model(), tools=[given], callback_handler=None)
        agent.tool.mem0_memory(action="store", content="Miso is a cat.")

        assert agent.tool_names == ["mem0_memory"]
        assert [one.text for one in opened.list(ALICE).records] == ["Miso is a cat."]

    def test_an_agent_takes_a_user_s_own_tool(self, make, memory, tool):
        agent = make(tools=[tool])
        agent.tool.mem0_memory(action="store", content="Miso is a cat.")

        assert len(memory.list(ALICE).records) == 1

    def test_a_model_uses_it_and_cannot_name_a_user(self, make, memory, tool, use):
        script = [
            use("mem0_memory", action="store", content="Miso is a cat.", user_id="bob"),
            use("mem0_memory", action="retrieve", query="cat"),
        ]
        agent = make(tools=[tool], script=script)
        agent("Remember.", invocation_state={"tool": "mine", "self": "mine", "user_id": "bob"})

        assert [one.scope for one in memory.list(ALICE).records] == [ALICE]
        assert "Miso is a cat." in str(agent.model.results[-1])

    def test_it_is_called_directly_in_both_ways(self, tool):
        assert told(tool(use("list"))) == told(tool(tool=use("list"))) == []


class TestActions:
    def test_store_answers_what_it_kept(self, tool, memory):
        (stored,) = told(tool(use("store", content="Miso is a cat.", metadata={"n": 1})))
        (record,) = memory.list(ALICE).records

        assert stored == {"id": record.id, "memory": "Miso is a cat.", "event": "ADD"}
        assert record.metadata == {"n": 1}

    def test_the_same_text_with_other_metadata_is_another_memory(self, tool):
        given = [{"n": 1}, {"n": 2}, {"n": 1}]
        stored = [told(tool(use("store", content="Miso.", metadata=one)))[0] for one in given]

        assert [one["event"] for one in stored] == ["ADD", "ADD", "NONE"]

    def test_store_lets_no_metadata_name_a_tenant(self, tool, memory):
        names = ("user_id", "agent_id", "run_id", "app_id", "org_id")
        tool(use("store", content="Miso is a cat.", metadata=dict.fromkeys(names, "bob")))

        assert [(one.scope, one.metadata) for one in memory.list(ALICE).records] == [(ALICE, {})]

    def test_get_answers_one_memory(self, tool, record):
        assert told(tool(use("get", memory_id=record.id))) == {
            "id": record.id,
            "memory": "Miso is a cat.",
            "hash": hashlib.md5(b"Miso is a cat.").hexdigest(),
            "metadata": {"source": "form"},
            "score": None,
            "created_at": record.created_at.isoformat(),
            "updated_at": record.updated_at.isoformat(),
            "user_id": "alice",
        }

    def test_list_answers_all_of_them(self, tool, memory):
        memory.add([f"Fact {number}." for number in range(30)], ALICE)
        found = told(tool(use("list")))

        assert {one["memory"] for one in found} == {f"Fact {number}." for number in range(30)}
        assert {"score" in one for one in found} == {False}
        assert {one["metadata"] for one in found} == {None}

    def test_retrieve_answers_the_best_first_with_scores(self, tool, record, memory):
        memory.add("The weather is fine.", ALICE)
        found = told(tool(use("retrieve", query="Which cat is Miso?")))
        (best, *_) = memory.search("Which cat is Miso?", ALICE)

        assert found[0]["memory"] == "Miso is a cat."
        assert found[0]["score"] == best.score
        assert [one["score"] for one in found] == sorted(
            (one["score"] for one in found), reverse=True
        )

    def test_a_question_no_store_could_take_is_cleaned(self, tool, record):
        (found,) = told(tool(use("retrieve", query="Miso\ud83d \x00cat")))

        assert found["id"] == record.id

    def test_relations_follow_the_memories(self, tool, memory):
        edge = Relation(subject="Alice", predicate="owns", object="Miso")
        memory.add(Fact(text="Alice owns Miso.", relations=(edge,)), ALICE)
        told_edge = {"source": "Alice", "relationship": "owns"}

        assert told(tool(use("list")))[-1] == {**told_edge, "target": "Miso"}
        assert told(tool(use("retrieve", query="Miso")))[-1] == {
            **told_edge,
            "destination": "Miso",
        }

    def test_delete_says_so(self, tool, record, memory):
        result = tool(use("delete", memory_id=record.id))

        assert result["content"] == [{"text": f"Memory {record.id} deleted successfully"}]
        assert memory.get(record.id, ALICE) is None

    def test_history_answers_every_version(self, tool, record, memory):
        memory.update(record.id, "Miso is a dog.", ALICE)
        memory.delete(record.id, ALICE)
        found = told(tool(use("history", memory_id=record.id)))

        assert [(one["event"], one["old_memory"], one["new_memory"]) for one in found] == [
            ("ADD", None, "Miso is a cat."),
            ("UPDATE", "Miso is a cat.", "Miso is a dog."),
            ("DELETE", "Miso is a dog.", None),
        ]
        assert [one["is_deleted"] for one in found] == [False, False, True]
        assert set(found[0]) == {
            "id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at",
            "is_deleted", "actor_id", "role",
        }  # fmt: skip


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ({}, "action parameter is required"),
            ({"action": "burn"}, "Invalid action: burn"),
            ({"action": "store"}, "content is required for store action"),
            ({"action": "get"}, "memory_id is required for get action"),
            ({"action": "delete"}, "memory_id is required for delete action"),
            ({"action": "history"}, "memory_id is required for history action"),
            ({"action": "retrieve"}, "query is required for retrieve action"),
        ],
    )
    def test_what_is_missing_is_told_in_known_words(self, tool, given, text):
        assert refused(tool(use(**given))) == f"Error: {text}"

    @pytest.mark.parametrize("action", ["get", "delete", "history"])
    @pytest.mark.parametrize("whose", ["bob's", "nobody's"])
    def test_another_s_memory_is_denied_and_so_is_none(self, memory, record, action, whose):
        tool = Mem0MemoryTool(user_id="bob", memory=memory).mem0_memory
        memory_id = record.id if whose == "bob's" else "00000000-0000-0000-0000-000000000000"

        assert refused(tool(use(action, memory_id=memory_id))) == "Error: Access denied"
        assert memory.get(record.id, ALICE) == record

    @pytest.mark.parametrize(
        "given",
        [
            {"action": "store", "content": "\x00"},
            {"action": "store", "content": 7},
            {"action": "store", "content": "x", "metadata": {"n": 2**70}},
            {"action": "store", "content": "x", "metadata": [1]},
            {"action": "retrieve", "query": "\x00"},
            {"action": "get", "memory_id": 7},
            {"action": ["store"]},
            {"action": "\ud83d"},
        ],
    )
    def test_a_bad_input_is_a_result_too(self, tool, given):
        text = refused(tool(use(**given)))

        assert text.encode().startswith(b"Error: ")

    def test_a_memory_that_fails_is_a_result_too(self, broken):
        tool = Mem0MemoryTool(user_id="alice", memory=broken).mem0_memory

        assert "failed: down" in refused(tool(use("list")))


class TestIdentity:
    def test_without_one_nothing_is_reached(self, opened):
        assert refused(mem0_memory(use("list"))) == (
            "Error: Either MEM0_USER_ID or MEM0_AGENT_ID environment variable must be set."
        )

    def test_both_are_used_where_both_are_set(self, opened, monkeypatch):
        monkeypatch.setenv("MEM0_USER_ID", "alice@example.org")
        monkeypatch.setenv("MEM0_AGENT_ID", "bot")
        told(mem0_memory(use("store", content="Miso is a cat.")))

        (record,) = opened.list(Scope(user_id="alice@example.org")).records
        assert record.scope.agent_id == "bot"

    def test_it_is_read_anew_with_each_call(self, opened, monkeypatch):
        for user in ("alice", "bob"):
            monkeypatch.setenv("MEM0_USER_ID", user)
            told(mem0_memory(use("store", content=f"I am {user}.")))

        assert [one.text for one in opened.list(Scope(user_id="bob")).records] == ["I am bob."]

    def test_of_two_given_ones_the_user_counts(self, memory):
        tool = Mem0MemoryTool("alice", "bot", memory=memory).mem0_memory
        tool(use("store", content="Miso is a cat."))

        assert [one.scope for one in memory.list(ALICE).records] == [ALICE]

    def test_an_agent_alone_is_one(self, memory):
        tool = Mem0MemoryTool(agent_id="bot", memory=memory).mem0_memory
        tool(use("store", content="Miso is a cat."))

        assert len(memory.list(Scope(agent_id="bot")).records) == 1

    @pytest.mark.parametrize("given", [{}, {"user_id": ""}, {"user_id": "*"}])
    def test_no_tool_is_made_for_nobody(self, given):
        with pytest.raises(ValueError, match=r"user_id"):
            Mem0MemoryTool(**given)

    def test_another_library_s_configuration_is_refused(self):
        with pytest.raises(InvalidRecordError, match="configures mem0"):
            Mem0MemoryTool(user_id="alice", config={"vector_store": {}})


def test_the_environment_s_memory_is_opened_once_for_all_threads(tmp_path, monkeypatch, caplog):
    opened, open_memory = [], Memory.open

    def open_once(*given, **options):
        opened.append(open_memory(*given, **options))
        return opened[-1]

    monkeypatch.setattr(module, "_find_memory", cache(module._find_memory.__wrapped__))
    monkeypatch.setattr(Memory, "open", open_once)
    monkeypatch.setattr("commonplace.models.sentence_encoder.SentenceEncoder", HashEmbedder)
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("MEM0_USER_ID", "alice")
    monkeypatch.setenv("MEM0_LLM_MODEL", "some-model")
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(mem0_memory(use("list")))) for _ in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert [told(one) for one in results] == [[]] * 8
    assert len(opened) == 1
    assert (tmp_path / "own").exists()
    assert [one.message.split(" chose")[0] for one in caplog.records] == ["MEM0_LLM_MODEL"]
    module._find_memory().close()


def test_a_path_is_enough(tmp_path, monkeypatch):
    monkeypatch.setattr("commonplace.models.sentence_encoder.SentenceEncoder", HashEmbedder)
    for tool in [Mem0MemoryTool("alice", memory=tmp_path).mem0_memory for _ in range(2)]:
        tool(use("store", content="Miso is a cat."))

    assert [item["memory"] for item in told(tool(use("list")))] == ["Miso is a cat."]
