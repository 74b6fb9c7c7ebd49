"""Options of single calls, on the real embedded engines."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace import Extraction, Fact, Memory, Message, ModelUnreadableError, Scope
from commonplace.testing.fakes import HashEmbedder, ScriptedChat


def test_extracted_facts_may_stand_for_their_messages(tmp_path: Path, scope: Scope):
    answer = {"facts": [{"text": "Alice has a cat.", "kind": "fact"}]}
    chat = ScriptedChat([json.dumps(answer)])
    how = Extraction(
        instructions="Only pets.",
        metadata={"topic": "pets"},
        expires_at=datetime(2999, 1, 1, tzinfo=UTC),
        keep_messages=False,
    )
    with Memory.open(str(tmp_path / "m"), embedder=HashEmbedder(), chat=chat) as memory:
        written = memory.add(Message(text="I have a cat, and a car."), scope, infer=how)
        [record] = memory.list(scope).records

    assert ["Alice has a cat."] == [one.text for one in written.changes]
    assert ("Alice has a cat.", {"topic": "pets"}) == (record.text, record.metadata)
    assert record.expires_at == how.expires_at
    assert "Only pets." in chat.calls[0].system


def test_an_unreadable_extraction_without_its_messages_is_a_dead_letter(
    tmp_path: Path, scope: Scope
):
    chat = ScriptedChat(["nonsense", '{"found": []}', json.dumps({"facts": [{"text": "A cat."}]})])
    with Memory.open(str(tmp_path / "m"), embedder=HashEmbedder(), chat=chat) as memory:
        with pytest.raises(ModelUnreadableError, match="facts"):
            memory.add(Message(text="A cat!"), scope, infer=Extraction(keep_messages=False))
        [dead] = memory.admin.dead_letters(scope)
        memory.admin.retry([dead.operation])
        memory.flush()

        assert ["A cat."] == [one.text for one in memory.list(scope).records]


def test_what_is_hidden_is_shown_when_asked_for(memory: Memory, scope: Scope):
    past = datetime(2020, 1, 1, tzinfo=UTC)
    memory.add(Fact(text="The tea is hot.", at=past, expires_at=past + timedelta(days=1)), scope)

    assert [] == list(memory.search("tea", scope)) + list(memory.list(scope).records)
    [match] = memory.search("tea", scope, include_superseded=True, include_expired=True)
    [record] = memory.list(scope, include_superseded=True, include_expired=True).records
    assert match.record == record == memory.get(record.id, scope, include_expired=True)
    assert memory.get(record.id, scope) is None


def test_metadata_can_be_added_to(memory: Memory, scope: Scope):
    [change] = memory.add("A cat.", scope, metadata={"a": 1, "b": 1}).changes
    memory.update(change.id, None, scope, metadata={"b": 2}, merge=True)
    record = memory.get(change.id, scope)

    assert record is not None
    assert {"a": 1, "b": 2} == record.metadata
