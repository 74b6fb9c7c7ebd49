"""The function that redacts: no store and no model sees what it takes out."""

import asyncio
import json
import traceback
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from commonplace import (
    Extraction,
    Fact,
    InvalidRecordError,
    Memory,
    Message,
    Record,
    Relation,
    Revise,
    Scope,
    Upsert,
)
from commonplace.admin import ImportedRecord, import_records
from commonplace.secret_patterns import secrets
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace_langgraph import CommonplaceStore
from commonplace_mem0 import Memory as Mem0Memory

ALICE = Scope(user_id="alice")
KEY = "sk-proj-0123456789abcdefghijkl"
TEXT = f"The key is {KEY}"


def found_in(folder: Path) -> list[str]:
    """Name the files of a folder that hold the key."""
    return [
        one.name for one in folder.rglob("*") if one.is_file() and KEY.encode() in one.read_bytes()
    ]


def write_all(memory: Memory) -> None:
    """Write the key in every way that there is."""
    record = memory.add(TEXT, ALICE, metadata={"a": [TEXT, {"b": TEXT}], TEXT[:3]: 1}).changes[0].id
    relation = Relation(subject="Alice", predicate="has", object=KEY)
    fact = Fact(
        text=f"{TEXT}!", kind="procedure", situation=TEXT, outcome=TEXT, metadata={"a": TEXT},
        relations=(relation,),
    )  # fmt: skip
    memory.add([fact, Message(text=TEXT, name=KEY)], ALICE)
    memory.add(Message(text=TEXT), ALICE, infer=Extraction(metadata={"a": TEXT}), wait=False)
    memory.update(record, f"Now {TEXT}", ALICE, metadata={"b": TEXT}, relations=[relation])
    memory.batch([
        Upsert(facts=[Fact(text=f"{TEXT}?", key="k")], scope=ALICE),
        Revise(record=memory.list(ALICE).records[0], text=f"Then {TEXT}"),
    ])  # fmt: skip
    memory.search(TEXT, ALICE)
    memory.flush()


def test_no_file_and_no_model_gets_what_was_redacted(tmp_path: Path) -> None:
    embedder, chat = HashEmbedder(), ScriptedChat(['{"facts": []}'] * 3)
    with Memory.open(str(tmp_path), embedder=embedder, chat=chat, redact=secrets) as memory:
        write_all(memory)
        asyncio.run(memory.aadd(f"{TEXT} again", ALICE))
        asyncio.run(memory.asearch(TEXT, ALICE))

        assert found_in(tmp_path) == []
        assert not any(KEY in text for call in embedder.calls for text in call)
        assert chat.calls
        assert not any(KEY in one.user for one in chat.calls)
        record = memory.search("key again", ALICE, top_k=1)[0].record
        assert record.text == "The key is [redacted OpenAI key] again"
        assert memory.admin.dead_letters() == []
    assert found_in(tmp_path) == []


# Also such as an adapter keeps for itself: nothing that a caller writes is taken for an adapter's.
_KEYS = st.sampled_from(["langgraph", "under", "told", "key", "value", "namespace", "unredacted"])
_SCALARS = st.sampled_from([TEXT, KEY, "tea", 7, None, True])
_INNER = _SCALARS | st.lists(_SCALARS, max_size=2) | st.dictionaries(_KEYS, _SCALARS, max_size=3)
_VALUES = _INNER | st.lists(_INNER, max_size=2) | st.dictionaries(_KEYS, _INNER, max_size=3)


@pytest.mark.every_engine("embedded", "folders")
def test_whatever_metadata_hold_is_redacted_by_every_write(tmp_path: Path) -> None:
    answer = json.dumps({"facts": [{"text": "Alice has a cat."}]})
    chat = ScriptedChat([answer] * 500)
    at = datetime(2026, 1, 1, tzinfo=UTC)

    @settings(
        max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @example({"langgraph": {"told": TEXT, "value": TEXT, "key": TEXT}, "under": KEY})
    @given(metadata=st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=3))
    def check(metadata: dict[str, Any]) -> None:
        user = Scope(user_id=str(uuid.uuid4()))
        fact = Fact(text="tea", metadata=metadata, namespace=("a",))
        [record_id, *_] = memory.add([fact, Message(text="tea")], user, infer=False).ids
        memory.add("milk", user, metadata=metadata)
        memory.add(Message(text="cats"), user, infer=Extraction(metadata=metadata))
        memory.update(record_id, None, user, metadata=metadata, merge=True)
        memory.batch([
            Upsert(facts=[Fact(text="bees", metadata=metadata)], scope=user),
            Revise(record=memory.list(user)[0], metadata=metadata),
        ])  # fmt: skip
        imported = Record(
            id=str(uuid.uuid4()), text=TEXT, scope=user, metadata=metadata, created_at=at,
            updated_at=at, occurred_at=at,
        )  # fmt: skip
        import_records(memory, [ImportedRecord(record=imported, past=((TEXT, at),))])

        page = memory.list(user)
        assert len(page) >= 6
        assert KEY not in repr([page, [memory.history(one.id, user) for one in page]])

    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat, redact=secrets) as memory:
        check()
    assert chat.calls
    assert found_in(tmp_path) == []


def test_an_adapter_names_what_it_redacts_itself(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), redact=secrets) as memory:
        fact = Fact(text="tea", metadata={"mine": {"a": TEXT}, "a": TEXT})
        memory.batch([Upsert(facts=[fact], scope=ALICE, unredacted=["mine"])])
        [record] = memory.list(ALICE)
        assert record.metadata == {"mine": {"a": TEXT}, "a": secrets(TEXT)}
        memory.batch([Revise(record=record, metadata=fact.metadata, unredacted=["a"])])
        [record] = memory.list(ALICE)
        assert record.metadata == {"mine": {"a": secrets(TEXT)}, "a": TEXT}
        for given_keys in ("mine", [""], [1], None):
            with pytest.raises(InvalidRecordError, match="unredacted="):
                memory.batch([Upsert(facts=[fact], scope=ALICE, unredacted=given_keys)])  # type: ignore[arg-type]  # wrong ones


def test_without_it_nothing_is_redacted(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.add(TEXT, ALICE)
        assert memory.admin.redact is None
    assert found_in(tmp_path) == ["memory.db"]


async def asynchronous(text: str) -> str:
    """Return the text."""
    return text


@pytest.mark.parametrize("redact", [3, "secrets", True, asynchronous])
def test_what_is_no_function_of_a_text_is_refused(tmp_path: Path, redact: Any) -> None:
    with pytest.raises(InvalidRecordError, match=r"commonplace\.secret_patterns\.secrets"):
        Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder(), redact=redact)
    assert not (tmp_path / "memory").exists()


def failing(text: str) -> str:
    """Fail with the text in the error."""
    raise RuntimeError(text)


@pytest.mark.parametrize("redact", [failing, lambda text: None, lambda text: text.encode()])
def test_a_function_that_fails_refuses_the_write(tmp_path: Path, redact: Any) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), redact=redact) as memory:
        calls = [
            lambda: memory.add(TEXT, ALICE),
            lambda: memory.add([Message(text=TEXT)], ALICE, wait=False),
            lambda: asyncio.run(memory.aadd(TEXT, ALICE)),
            lambda: memory.batch([Upsert(facts=[Fact(text=TEXT)], scope=ALICE)]),
            lambda: memory.search(TEXT, ALICE),
        ]
        for call in calls:
            with pytest.raises(InvalidRecordError, match=r"redact=.*nothing was stored") as caught:
                call()
            assert KEY not in str(caught.value)
            assert KEY not in "".join(traceback.format_exception(caught.value))
        assert memory.flush().pending == 0
        assert memory.admin.list_scopes() == []
    assert found_in(tmp_path) == []


def test_an_item_of_langgraphs_store_is_redacted_and_found(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), redact=secrets) as memory:
        store = CommonplaceStore(memory)
        value = {"text": f'He said "{TEXT}"', "list": [{"deep": KEY}], "number": 3}
        store.put(("users", "1"), "k", value)

        shown = "[redacted OpenAI key]"
        item = store.get(("users", "1"), "k")
        assert item is not None
        assert item.value == {
            "text": f'He said "The key is {shown}"', "list": [{"deep": shown}], "number": 3
        }  # fmt: skip
        assert [one.key for one in store.search(("users",), query=TEXT)] == ["k"]
    assert found_in(tmp_path) == []


def test_what_an_adapter_writes_is_redacted(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), redact=secrets) as memory:
        Mem0Memory(core=memory).add(TEXT, user_id="alice", infer=False)
        memory.flush()

        assert len(memory.list(ALICE).records) == 1
    assert found_in(tmp_path) == []
