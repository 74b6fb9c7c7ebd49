"""Import of a mem0's memories, with their ids, owners, texts, metadata, times and history.

    import_mem0(memory, Source(folder="/tmp/qdrant", history="~/.mem0/history.db"))  # only reports
    import_mem0(memory, source, dry_run=False)

- `data` is the text; `user_id`, `agent_id`, `run_id` the scope; `created_at` and `updated_at` the
  times, in UTC whatever zone they were written in; `expiration_date` when it ends.
- `role`, `actor_id` and all other keys become metadata, as `convert` reads it.
- the rows of the history become the former texts of a memory. They do not name the owner of a
  deleted memory, so these are counted and left out.
- a relation of 1.x goes to a memory of its owner that names both ends, else to a fact of its own.
- `hash`, `text_lemmatized` and the collection of entities are dropped, as they are computed anew.

mem0's data is only read. One process at a time can open a folder of Qdrant's local mode, so no
other program may have it open.
"""

import contextlib
import json
import re
import sqlite3
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from commonplace import (
    CommonplaceError,
    Memory,
    MissingExtraError,
    Record,
    Relation,
    Scope,
    WrongTypeError,
)
from commonplace.admin import ImportedRecord, find_existing, import_records
from commonplace.agents import check_memory

from .convert import expiry_of, parse_date, parse_time, promoted_key, to_stored
from .exceptions import ConfigurationError
from .scope_ids import IDS, to_scope

_DROPPED = ("data", "hash", "text_lemmatized", "created_at", "updated_at", *IDS)
_PROMOTED = ("role", "actor_id", "attributed_to")
_NAMESPACE = uuid.UUID("0f6f3b0e-3f53-5c0f-8f0b-7a4b0b6d9a35")
_PAGE = 1_000
_VALUE = re.compile(r"=.*? (?=(?:must|has|cannot)\b)|^.*(?= must be a time)", re.DOTALL)
# What 1.x wrote: nodes with the owner's ids, and relations without the memory that states them.
# Relations of ours, which may be in the same database, are nodes and have no name.
_RELATIONS = """
MATCH (a)-[r]->(b) WHERE a.user_id IS NOT NULL AND a.user_id = b.user_id
  AND a.name IS NOT NULL AND b.name IS NOT NULL
RETURN a.name AS source, type(r) AS relationship, b.name AS target, a.user_id AS user_id,
  a.agent_id AS agent_id, a.run_id AS run_id, coalesce(r.valid, true) AS valid,
  coalesce(r.created_at, r.created) AS created_at, r.invalidated_at AS invalidated_at
ORDER BY user_id, source, relationship, target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The stores of a mem0.

    Attributes:
        folder: of Qdrant's local mode; or
        url: of a Qdrant server, with `api_key`.
        collection: mem0's `collection_name`.
        history: its `history.db`; without it memories have no former texts.
        graph: the Neo4j of 1.x, such as `neo4j://user:password@host:7687/database`.
    """

    folder: str | None = None
    url: str | None = None
    api_key: str | None = None
    collection: str = "mem0"
    history: str | None = None
    graph: str | None = None

    def __post_init__(self) -> None:
        if (self.folder is None) == (self.url is None):
            raise ConfigurationError("Give a folder or a url: one of them has the memories.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0ImportReport:
    """What an import did, or would do.

    Attributes:
        scopes: number of memories of each owner, in the order of reading.
        added, known, refused: numbers of memories that are new, were here, cannot be imported.
        reasons: why memories and relations were refused, by id; those that were deleted or erased
            here since are only counted.
        ownerless: ids of deleted memories, of which only a history without an owner is left.
    """

    scopes: Mapping[Scope, int] = field(default_factory=dict)
    added: int = 0
    known: int = 0
    refused: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)
    ownerless: tuple[str, ...] = ()

    def by_reason(self) -> dict[str, list[str]]:
        """Group the ids in `reasons` by the reason, without its values; most ids first."""
        found: dict[str, list[str]] = {}
        for refused_id, reason in self.reasons.items():
            found.setdefault(_VALUE.sub(" ", reason), []).append(refused_id)
        return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0Point:
    """A point in mem0's collection: its id, and its payload with text, times and ids."""

    id: str
    payload: Mapping[str, Any]


def import_mem0(
    memory: Memory,
    source: Source,
    *,
    dry_run: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Mem0ImportReport:
    """Import memories, owner by owner; after an interruption, call it again.

    Args:
        dry_run: True, the default, only reports what would be imported.
        progress: called with the number of memories done, and of all.

    Raises:
        ConfigurationError: the source does not exist, or cannot be read.
        MissingExtraError: the driver of the source is not installed.
    """
    check_memory(memory)
    if not isinstance(source, Source):
        raise WrongTypeError(
            field="source",
            value=source,
            takes="a Source",
            hint="Give Source(folder=...) or one with url=.",
        )
    history = read_history(source)
    records, reasons = convert_points(read_points(source), history, read_relations(source))
    records.sort(key=_owner_order)
    deleted = set(history) - {imported.record.id for imported in records} - set(reasons)
    report = Mem0ImportReport(
        scopes=Counter(imported.record.scope for imported in records),
        refused=len(reasons),
        reasons=reasons,
        ownerless=tuple(sorted(deleted)),
    )

    show = progress or (lambda _done, _total: None)
    if dry_run:
        known = len(find_existing(memory, records))
        show(len(records), len(records))
        return replace(report, added=len(records) - known, known=known)
    # Known ones too: an interruption may have left them out of the index.
    done = import_records(memory, records, progress=lambda count: show(count, len(records)))
    refused = report.refused + done.refused
    return replace(report, added=done.added, known=done.existing, refused=refused)


def _owner_order(imported: ImportedRecord) -> tuple[str, ...]:
    record, scope = imported.record, imported.record.scope
    return (scope.user_id or "", scope.agent_id or "", scope.session_id or "", record.id)


# -- conversion ---------------------------------------------------------------------------------


def convert_points(
    points: Iterator[Mem0Point],
    history: Mapping[str, Sequence[Mapping[str, Any]]],
    relations: Sequence[Mapping[str, Any]] = (),
) -> tuple[list[ImportedRecord], dict[str, str]]:
    """Convert mem0's memories; return also why some of them cannot be stored, by id."""
    records: list[ImportedRecord] = []
    reasons: dict[str, str] = {}
    for point in points:
        try:
            records.append(_convert_point(point, history.get(point.id, ())))
        except CommonplaceError as error:
            reasons[point.id] = str(error)
    reasons |= _assign_relations(records, relations)
    return records, reasons


def _convert_point(point: Mem0Point, history: Sequence[Mapping[str, Any]]) -> ImportedRecord:
    payload = point.payload
    scope = to_scope(payload)
    changed = _time_or_none(payload.get("updated_at"))
    created = _time_or_none(payload.get("created_at")) or changed or datetime.now(UTC)
    left_out = (*_DROPPED, *_PROMOTED)
    metadata = {name: value for name, value in payload.items() if name not in left_out}
    stored = to_stored(metadata, scope=scope)
    stored |= {
        promoted_key(name): payload[name] for name in _PROMOTED if payload.get(name) is not None
    }
    record = Record(
        id=point.id,
        text=str(payload.get("data") or ""),
        scope=scope,
        kind="procedure" if payload.get("memory_type") == "procedural_memory" else "fact",
        metadata=stored,
        origin="import",
        created_at=created,
        updated_at=max(created, changed or created),
        occurred_at=created,
        expires_at=expiry_of(parse_date(payload.get("expiration_date"))),
    )
    return ImportedRecord(record=record, past=_past_texts(history, created))


def _past_texts(
    history: Sequence[Mapping[str, Any]], created: datetime
) -> tuple[tuple[str, datetime], ...]:
    """List the former texts of a memory, each with the time it was written."""
    texts = []
    for row in history:
        if row["event"] in ("ADD", "UPDATE") and row["new_memory"]:
            at = None if row["event"] == "ADD" else _time_or_none(row.get("updated_at"))
            texts.append((str(row["new_memory"]), at or created))
    return tuple(sorted(texts, key=lambda text: text[1])[:-1])


def _assign_relations(
    records: list[ImportedRecord], rows: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Give each relation to a memory of its owner that names both ends, else to a new fact.

    1.x did not store which memory states a relation. The records change in place; returned is why
    some relations cannot be stored.
    """
    texts: dict[Scope, list[tuple[int, str]]] = {}  # folded once for all relations
    for place, imported in enumerate(records):
        folded = imported.record.text.casefold()
        texts.setdefault(imported.record.scope.owner, []).append((place, folded))
    reasons: dict[str, str] = {}
    for number, row in enumerate(rows):
        try:
            scope, relation = to_scope(row), _relation(row)
            owned = texts.setdefault(scope.owner, [])
            ends = [relation.subject.casefold(), relation.object.casefold()]
            named = (place for place, text in owned if all(end in text for end in ends))
            if (first := next(named, None)) is not None:
                relations = (*records[first].relations, relation)
                records[first] = replace(records[first], relations=relations)
                continue
            words = _spaced(row["relationship"]).lower()
            fact = _fact(scope, f"{relation.subject} {words} {relation.object}", row)
            records.append(ImportedRecord(record=fact, relations=(relation,)))
            owned.append((len(records) - 1, fact.text.casefold()))
        except CommonplaceError as error:
            reasons[f"relation {number}"] = str(error)
    return reasons


def _relation(row: Mapping[str, Any]) -> Relation:
    since = _edge_time(row.get("created_at"))
    until = (
        None
        if row.get("valid", True)
        else _edge_time(row.get("invalidated_at")) or datetime.now(UTC)
    )
    return Relation(
        subject=_spaced(row["source"]),
        predicate=str(row["relationship"]).lower(),
        object=_spaced(row["target"]),
        valid_from=since if until is None or since is None or since < until else None,
        valid_to=until,
    )


def _fact(scope: Scope, text: str, row: Mapping[str, Any]) -> Record:
    at = _edge_time(row.get("created_at")) or datetime.now(UTC)
    return Record(
        id=str(uuid.uuid5(_NAMESPACE, f"{scope.key}\x1f{text}")),
        text=text,
        scope=scope,
        metadata=to_stored(None, scope=scope),
        origin="import",
        created_at=at,
        updated_at=at,
        occurred_at=at,
    )


def _spaced(name: object) -> str:
    return str(name).replace("_", " ").strip()


def _time_or_none(value: object) -> datetime | None:
    return None if not value else parse_time(value)


def _edge_time(value: Any) -> datetime | None:
    """Read the time of a relation: milliseconds since 1970 or a time of Neo4j."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse_time(value / 1_000)
    return _time_or_none(value.to_native() if hasattr(value, "to_native") else value)


# -- reading what mem0 wrote --------------------------------------------------------------------


def read_points(source: Source) -> Iterator[Mem0Point]:
    """Read all memories of the collection, in the order of their ids."""
    try:
        from qdrant_client import QdrantClient
        from qdrant_client.http.exceptions import ApiException
    except ImportError as error:
        raise MissingExtraError(package="qdrant-client", extra="qdrant") from error
    # Its check of versions would warn from a thread of its own.
    options: dict[str, Any] = {
        "url": source.url,
        "api_key": source.api_key,
        "check_compatibility": False,
    }
    name = "Qdrant server"
    if source.folder is not None:
        folder = Path(source.folder).expanduser()
        if not (folder / "meta.json").is_file():
            raise ConfigurationError(f"The folder {source.folder!r} has no memories of mem0.")
        options, name = {"path": str(folder)}, f"folder {source.folder!r}"
    # The client raises a RuntimeError for a folder that is open elsewhere.
    failures = (ApiException, RuntimeError, sqlite3.Error, json.JSONDecodeError)
    with _reading(name, *failures), contextlib.closing(QdrantClient(**options)) as client:
        if not client.collection_exists(source.collection):
            names = [collection.name for collection in client.get_collections().collections]
            raise ConfigurationError(f"No collection {source.collection!r}. There are: {names}.")
        offset: Any = None
        while True:
            points, offset = client.scroll(
                source.collection, limit=_PAGE, offset=offset, with_payload=True, with_vectors=False
            )
            yield from (Mem0Point(id=str(x.id), payload=x.payload or {}) for x in points)
            if offset is None:
                return


def read_history(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Read the changes of every memory, oldest first, by id; empty without a history."""
    if source.history is None:
        return {}
    path = Path(source.history).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"There is no history in {source.history!r}.")
    found: dict[str, list[dict[str, Any]]] = {}
    uri = f"file:{quote(str(path.resolve()))}?mode=ro"
    with (
        _reading(f"history {source.history!r}", sqlite3.Error),
        contextlib.closing(sqlite3.connect(uri, uri=True)) as connection,
    ):
        connection.row_factory = sqlite3.Row
        for row in connection.execute("SELECT * FROM history ORDER BY rowid"):
            change = {name: row[name] for name in row.keys()}  # noqa: SIM118 -- a Row iterates values
            change.setdefault("new_memory", change.get("new_value"))
            found.setdefault(str(change["memory_id"]), []).append(change)
    return found


def read_relations(source: Source) -> list[dict[str, Any]]:
    """Read the relations of 1.x; empty without a graph."""
    if source.graph is None:
        return []
    try:
        from neo4j import GraphDatabase
        from neo4j.exceptions import DriverError, Neo4jError
    except ImportError as error:
        raise MissingExtraError(package="neo4j", extra="neo4j") from error
    parts = urlsplit(source.graph)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    with (
        _reading(f"Neo4j server {url!r}", DriverError, Neo4jError),
        GraphDatabase.driver(url, auth=auth) as driver,
    ):
        answer = driver.execute_query(_RELATIONS, database_=parts.path.strip("/") or None)
        return [dict(record) for record in answer.records]


@contextlib.contextmanager
def _reading(name: str, *failures: type[Exception]) -> Iterator[None]:
    try:
        yield
    except failures as error:
        raise ConfigurationError(
            f"The {name} cannot be read: {error}. Nothing was imported; make sure that it is "
            "whole, reachable and not in use, and call again."
        ) from error
