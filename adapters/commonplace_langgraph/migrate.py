"""Import of what LangGraph's savers and stores have written, to SQLite files and to PostgreSQL.

    import_langgraph(memory, "checkpoints.sqlite")

- checkpoints, pending writes: each keeps its ids, parent, versions, order and metadata. Values are
  copied as they were serialized, so that no class of the program is needed.
- items: each keeps its namespace, key, value, times and time to live. Where there are vectors, an
  item is found by the fields that have one, and is listed only if none has; the vectors are
  computed anew. An item that has expired is left out, as no read would show it.

The source is only read. What is here already is left as it is, so an interrupted import is
repeated; only an item that has changed in the source since is put again. What an import took and
was deleted, pruned or forgotten here since stays so.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from os import PathLike
from typing import Any, Literal

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import PutOp

from commonplace import InvalidRecordError, Memory, Record, Scope
from commonplace.admin import ImportedRecord, ImportTally, import_records
from commonplace.agents import check_memory, on, run_plan, to_scope
from commonplace.ports import (
    Address,
    Blob,
    Checkpoint,
    Checkpoints,
    Selection,
    TaskWrite,
    iterate_checkpoints,
)

from .checkpoint_codec import encode_checkpoint
from .import_sources import At, CheckpointRow, ImportSource, ItemRow, Writes, open_source
from .store import CommonplaceStore, read_records
from .store_items import ENTRY, NamespaceTemplate, StoreOptions, find_item, texts_of
from .store_writes import ItemPut, check_put

CHECKPOINTS, WRITES, ITEMS = "checkpoints", "pending writes", "items"
PLAIN: SerializerProtocol = JsonPlusSerializer(__unpack_ext_hook__=ormsgpack.Ext)
"""Reads objects as the bytes they were serialized to, and writes these again."""

_BATCH = 64
_IMPORTED = "commonplace-imported"  # nobody's thread, with a row of digests for each that was taken
_DIGEST = 16
_DELETED = "deleted here since"
_UNREADABLE = (ValueError, TypeError, KeyError, NotImplementedError)  # of what a serializer reads
_NUMBER = re.compile(r"\.\d+$")  # behind the path of a field that has several texts


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImportJob:
    memory: Memory
    serde: SerializerProtocol
    owner: str | None
    template: NamespaceTemplate
    dry_run: bool
    progress: Callable[[str, int, int], None]
    tally: ImportTally = field(default_factory=ImportTally)


def import_langgraph(
    memory: Memory,
    source: str | PathLike[str],
    *,
    owner: str | None = None,
    template: Sequence[str] | None = ("memories", "{user_id}"),
    serde: SerializerProtocol = PLAIN,
    dry_run: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> ImportTally:
    """Import what savers and stores have written; after an interruption, call it again.

    Args:
        source: the path of an SQLite file, or the `postgresql://` URL of a database.
        owner: the key under which the metadata of a checkpoint names its user, such as `user_id`,
            who then owns the thread; None leaves threads without an owner.
        template: of the `CommonplaceStore` that will read the items.
        serde: for encrypted checkpoints, `EncryptedSerializer.from_pycryptodome_aes(PLAIN)`.
        dry_run: only count what would be imported.
        progress: is called with the kind of thing, how many are done, and of how many.

    Raises:
        InvalidRecordError: nothing there is LangGraph's, or an argument cannot be used.
        StoreUnavailableError: the server does not answer.
        MissingExtraError: its driver is not installed.
        LoopRequiredError, ModelFailedError: the embedder is asynchronous, or failed.
    """
    check_memory(memory)
    job = _ImportJob(
        memory=memory,
        serde=serde,
        owner=owner,
        template=NamespaceTemplate(template),
        dry_run=dry_run,
        progress=progress or (lambda _kind, _done, _total: None),
    )
    with contextlib.closing(open_source(os.fspath(source))) as opened:
        if opened.has_checkpoints:
            _import_threads(job, opened)
        if opened.has_items:
            _import_items(job, opened)
    return job.tally


# -- checkpoints -------------------------------------------------------------------------------


def _import_threads(job: _ImportJob, source: ImportSource) -> None:
    total, done = source.count("checkpoints"), 0
    job.tally.taken[CHECKPOINTS] = 0  # so that they come first
    for thread in source.threads():
        rows = source.checkpoints(thread)
        _ThreadImport(job, thread, source.writes(thread)).run(rows)
        done += len(rows)
        job.progress(CHECKPOINTS, done, total)


class _ThreadImport:
    """Import of one thread: the writes beside a checkpoint, then the checkpoint itself.

    So the writes are here if the checkpoint is, wherever an import was interrupted.
    """

    def __init__(self, job: _ImportJob, thread: str, writes: Writes) -> None:
        self._job = job
        self._thread = thread
        self._writes = writes
        self._checkpoints: Checkpoints = job.memory.admin.checkpoints
        name = hashlib.sha256(thread.encode()).hexdigest()
        # It is listed behind every checkpoint that begins with a digit.
        self._record = Address(thread=_IMPORTED, namespace="", id=f"-{name}")
        # Digests of the values that were seen, by namespace, channel and version.
        self._seen: dict[tuple[str, str, str], bytes] = {}

    def run(self, rows: Sequence[CheckpointRow]) -> None:
        """Import these checkpoints, and the writes, that are not here yet."""
        tally = self._job.tally
        known, imported = self._known(), self._imported()
        is_whole = known.issuperset((row.namespace, row.id) for row in rows)
        taken = {(row.namespace, row.id) for row in rows if self._digest(row) in imported}
        is_gone = bool(taken) and taken.isdisjoint(known)
        here: set[bytes] = set()
        for row in rows:
            at, name = (row.namespace, row.id), "/".join((self._thread, row.namespace, row.id))
            writes = self._writes.pop(at, [])
            if at not in known and (is_gone or at in taken):
                tally.refuse(CHECKPOINTS, name, _DELETED)
                continue
            try:
                if not is_whole:
                    self._import(at, row, None if at in known else writes)
            except _UNREADABLE as error:
                tally.refuse(CHECKPOINTS, name, error)
                continue
            if at in known:
                self._add_writes(at, writes)
            (tally.known if at in known else tally.taken)[CHECKPOINTS] += 1
            here.add(self._digest(row))
        if not is_gone:
            for at, writes in self._writes.items():  # beside checkpoints that are not in the file
                self._write(at, writes, None)
        if not (self._job.dry_run or here <= imported):
            digests = Blob(type="commonplace/imported", data=b"".join(sorted(here | imported)))
            self._checkpoints.put(Checkpoint(address=self._record, body=digests), {}, None)

    def _known(self) -> set[At]:
        rows = iterate_checkpoints(self._checkpoints, Selection(thread=self._thread))
        return {(row.address.namespace, row.address.id) for row in rows}

    def _imported(self) -> set[bytes]:
        """Read the digests of the checkpoints that were here at the end of an import."""
        state = self._checkpoints.read(_IMPORTED, "", self._record.id)
        data = state.checkpoint.body.data if state else b""
        return {data[start : start + _DIGEST] for start in range(0, len(data), _DIGEST)}

    def _digest(self, row: CheckpointRow) -> bytes:
        name = json.dumps((self._thread, row.namespace, row.id))
        return hashlib.sha256(name.encode()).digest()[:_DIGEST]

    def _import(self, at: At, given: CheckpointRow, writes: list[TaskWrite] | None) -> None:
        """Import a checkpoint with its writes; only note its values if `writes` is None."""
        job = self._job
        state: Any
        about: Any
        state, about = given.load(job.serde)
        held, named = state["channel_values"], state["channel_versions"]
        # A value whose channel has no version is of this checkpoint alone.
        versions = {name: named.get(name, at[1]) for name in held}
        new = {
            name: version
            for name, version in versions.items()
            if self._is_new((at[0], name, str(version)), held[name])
        }
        place = {"thread_id": self._thread, "checkpoint_ns": at[0], "checkpoint_id": given.parent}
        # Another checkpoint may have a value of the same version: a channel of changes has one
        # only now and then.
        absent = {name: f"{named[name]} absent" for name in named if name not in held}
        of_row = {name: str(version) for name, version in versions.items()} | absent
        row, values = encode_checkpoint(
            {"configurable": place}, state, about, new, job.serde, of_row
        )
        if writes is None:
            return
        user = None if job.owner is None else about.get(job.owner)
        owner = None if user is None else to_scope(user)
        self._write(at, writes, owner)
        if not job.dry_run:
            self._checkpoints.put(row, values, owner)

    def _is_new(self, place: tuple[str, str, str], value: object) -> bool:
        """Note the value of a channel in a version; False if it was noted before."""
        kind, data = PLAIN.dumps_typed(value)
        digest = hashlib.sha256(kind.encode() + data).digest()
        if place not in self._seen:
            self._seen[place] = digest
            return True
        if self._seen[place] != digest:
            raise InvalidRecordError(
                field="channel_values", value=place[1], reason="has two values in one version"
            )
        return False

    def _add_writes(self, at: At, writes: list[TaskWrite]) -> None:
        """Add those of the writes that are not here beside a checkpoint that is."""
        if not writes:
            return
        asked = Selection(thread=self._thread, namespace=at[0], id=at[1])
        here = {
            (write.task, write.index)
            for state in self._checkpoints.states(asked, limit=1)
            for write in state.writes
        }
        missing = [write for write in writes if (write.task, write.index) not in here]
        self._job.tally.known[WRITES] += len(writes) - len(missing)
        self._write(at, missing, None)

    def _write(self, at: At, writes: list[TaskWrite], owner: Scope | None) -> None:
        if writes and not self._job.dry_run:
            address = Address(thread=self._thread, namespace=at[0], id=at[1])
            self._checkpoints.write(address, writes, owner)
        if writes:
            self._job.tally.taken[WRITES] += len(writes)


# -- items -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """An item of the file, with its times read, and the checked write of it."""

    row: ItemRow
    op: PutOp
    put: ItemPut

    def records(self) -> Iterator[ImportedRecord]:
        """Make the records that hold it."""
        address, row = self.put.address, self.row
        for fact in self.put.facts:
            entry = {**fact.metadata[ENTRY], "at": round(row.updated_at.timestamp() * 1e6)}
            if "round" in entry:  # the same when the import is repeated
                entry["round"] = hashlib.sha256(f"{address.id} {entry['at']}".encode()).hexdigest()
            yield ImportedRecord(
                record=Record(
                    id=address.scope.record_id(fact.kind, str(fact.key)),
                    text=fact.text,
                    scope=address.scope,
                    metadata={**fact.metadata, ENTRY: entry},
                    namespace=fact.namespace,
                    created_at=row.created_at,
                    updated_at=row.updated_at,
                    occurred_at=row.created_at,
                    expires_at=row.expires_at,
                    indexed=fact.indexed,
                )
            )


def _import_items(job: _ImportJob, source: ImportSource) -> None:
    options = StoreOptions(template=job.template, redact=job.memory.admin.redact)
    total, done = source.count("store"), 0
    rows = source.items()
    while page := list(islice(rows, _BATCH)):
        items: list[_Item] = []
        for row in page:
            try:
                items.append(_read_item(row, source, options))
            except _UNREADABLE as error:
                job.tally.refuse(ITEMS, row.name, error)
        _import_batch(job, items)
        done += len(page)
        job.progress(ITEMS, done, total)


def _indexed_paths(fields: Sequence[str], value: Any) -> list[str] | Literal[False]:
    """Name the paths of the fields that have vectors."""
    paths = (name if texts_of(value, [name]) else _NUMBER.sub("", name) for name in fields)
    return list(dict.fromkeys(paths)) or False


def _read_item(row: ItemRow, source: ImportSource, options: StoreOptions) -> _Item:
    """Check an item."""
    ends = None if row.expires_at is None else _time(row.expires_at)
    if ends is not None and ends <= datetime.now(UTC):
        raise InvalidRecordError(field="expires_at", value=str(ends), reason="is past")
    value = json.loads(row.value) if isinstance(row.value, str | bytes) else row.value
    paths = None
    if source.has_vectors:
        paths = _indexed_paths(source.vectors(row.prefix, row.key), value)
    op = PutOp(tuple(row.prefix.split(".")), row.key, value, paths, row.ttl)
    created, updated = _time(row.created_at), _time(row.updated_at)
    row = row._replace(created_at=created, updated_at=updated, expires_at=ends)
    return _Item(row=row, op=op, put=check_put(op, options))


def _time(given: str | datetime) -> datetime:
    at = datetime.fromisoformat(given) if isinstance(given, str) else given
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _import_batch(job: _ImportJob, items: Sequence[_Item]) -> None:
    """Import new items, and put those that have changed in the file since they were imported."""
    here = _find_records(job.memory, items)
    new: list[_Item] = []
    changed: list[_Item] = []
    for item in items:
        held, updated = find_item(here, item.put.address, job.template), item.row.updated_at
        if held is None:
            new.append(item)
        elif max(held.record.updated_at, held.updated_at or updated) < updated:
            changed.append(item)
        else:
            job.tally.known[ITEMS] += 1
    if not job.dry_run:
        records = [record for item in new for record in item.records()]
        if import_records(job.memory, records).refused:
            live = _find_records(job.memory, new)
            for item in [item for item in new if item.put.address.id not in live]:
                new.remove(item)
                job.tally.refuse(ITEMS, item.row.name, _DELETED)
        CommonplaceStore(job.memory, template=job.template.labels or None).batch(
            item.op for item in changed
        )
    job.tally.taken[ITEMS] += len(new) + len(changed)


def _find_records(memory: Memory, items: Sequence[_Item]) -> dict[str, Record]:
    plan = read_records([item.put for item in items], ItemPut, "get_many")
    return run_plan(plan, on(memory))
