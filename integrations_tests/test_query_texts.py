"""No text of SQL or Cypher is built from data: hostile strings wherever a string may stand."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, Selection, TaskWrite
from commonplace.testing.fakes import HashEmbedder

MARK = "zq7"  # in all data, and in nothing else
HOSTILE = (
    f"{MARK}' OR '1'='1\"); DROP TABLE record; --",
    f"{MARK}`}}]->() DETACH DELETE n // %_*?:1 $1 {{0}} {{}} \\' \\u0027",
)


class Recorder(sqlite3.Connection):
    """A connection that keeps the text of every statement."""

    texts: ClassVar[set[str]] = set()

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self.texts.add(sql)
        return super().execute(sql, *values)

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self.texts.add(sql)
        return super().executemany(sql, *values)

    def executescript(self, sql: str) -> sqlite3.Cursor:
        self.texts.add(sql)
        return super().executescript(sql)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The texts of all statements that are sent to SQLite and to Neo4j."""
    sent: set[str] = set()
    connect = sqlite3.connect
    monkeypatch.setattr(Recorder, "texts", sent)
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **given: connect(*args, **{"factory": Recorder, **given})
    )
    try:
        import neo4j
    except ImportError:
        yield sent
        return
    run = neo4j.Transaction.run

    def recorded(self: Any, query: Any, *args: Any, **given: Any) -> Any:
        sent.add(getattr(query, "text", query))
        return run(self, query, *args, **given)

    for one in (neo4j.Transaction, neo4j.ManagedTransaction):
        monkeypatch.setattr(one, "run", recorded)
    yield sent


def live(memory: Memory, bad: str) -> None:
    """Do everything once that sends a text, with this string wherever a string may stand."""
    scope = Scope(user_id=f"user {bad}", agent_id=bad, session_id=f"session {bad}")
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    edges = (Relation(subject=bad, predicate=bad, object=f"{bad} town", single_valued=True),)
    metadata = {bad: bad, "n": 1, "nested": {bad: [bad]}}
    fact = Fact(text=f"Fact {bad}", relations=edges, metadata=metadata)
    first, second = memory.add([fact, Fact(text=f"Second {bad}")], scope).changes
    memory.add(Message(text=f"Said {bad}", name=bad, id=bad), scope)
    where: list[dict[str, Any]] = [
        {bad: bad},
        {f"nested.{bad}": {"contains": bad}},
        {"OR": [{bad: {"in": [bad]}}, {"NOT": [{bad: {"ne": bad}}]}]},
        {bad: {"gte": bad, "lt": f"{bad}z"}},
        {bad: {"icontains": bad}},
    ]
    for one in where:
        memory.search(bad, scope, where=one, kinds=["fact"], as_of=moment)
        memory.list(scope, where=one, kinds=["fact"], limit=1)
    page = memory.list(scope, limit=1)
    memory.list(scope, limit=1, cursor=page.cursor)
    memory.search(bad, scope, decay=True)
    memory.relations(scope, bad, hops=2)
    memory.entities(scope)
    memory.admin.namespaces(scope)
    memory.admin.list_users([bad])
    memory.history(first.id, scope)
    memory.get(bad, scope)
    memory.get_many([first.id, bad], scope)
    memory.feedback(first.id, scope, helped=True)
    memory.update(second.id, f"Changed {bad}", scope, metadata={bad: bad})
    memory.delete(second.id, scope)
    memory.admin.prune(scope, keep=1)
    memory.admin.dead_letters(scope)
    keep_states(memory, scope, bad)
    memory.forget(scope)


def keep_states(memory: Memory, scope: Scope, bad: str) -> None:
    """Write and read states of runs."""
    at = Address(thread=bad, namespace=bad, id=bad)
    blob = Blob(type="json", data=b"1")
    states = memory.admin.checkpoints
    state = Checkpoint(address=at, parent=None, body=blob, metadata=blob, versions={bad: bad})
    states.put(state, {(bad, bad): blob}, scope)
    states.write(at, [TaskWrite(task=bad, path=bad, index=0, channel=bad, value=blob)], scope)
    states.read(bad, bad, bad)
    asked = Selection(thread=bad, namespace=bad, before=f"{bad}z")
    states.page(asked, limit=1)
    states.states(asked, limit=1)
    states.steps(at, [bad])
    states.copy(bad, f"{bad} copy")
    states.prune([bad])
    states.delete_runs([bad])
    states.delete([bad, f"{bad} copy"])


@pytest.mark.every_engine
def test_no_statement_has_data_in_its_text(tmp_path: Path, texts: set[str]) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        for bad in HOSTILE:
            live(memory, bad)

    assert len(texts) > 40
    assert [one for one in texts if MARK in one] == []
