"""Copy of a whole memory from one location to another, and its verification.

The target notes its source and how far the copy got, so that an interrupted one goes on, and
nothing is ever mixed into other memories.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import CannotMoveError
from ..memory import Memory
from ..ports.checkpoints import (
    Address,
    Blob,
    Checkpoints,
    Selection,
    State,
    iterate_checkpoints,
)
from ..ports.engines import GraphStore
from ..ports.snapshot_rows import SnapshotRow
from .backfill import (
    BATCH,
    BackfillReport,
    Progress,
    VectorSource,
    backfill,
    batches,
    count_records,
    is_indexed,
    reported,
)
from .serialization import TABLES, StateRow, table_of, to_line

_CHECKPOINTS_BATCH = 100
_FLUSH_SECONDS = 60.0
_NOTE = "copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDigest:
    """Contents of a memory by table: the number of rows, and a hash over them in order."""

    counts: Mapping[str, int]
    hashes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What a copy did.

    Attributes:
        source, target: what both hold now; equal when the copy is complete.
        backfill: of the target's index.
        indexed: whether that index has every live record in its version, and no other.
        dead: dead letters that stayed with the source.
    """

    source: SnapshotDigest
    target: SnapshotDigest
    backfill: BackfillReport
    indexed: bool
    dead: int = 0

    @property
    def complete(self) -> bool:
        """Source and target hold the same."""
        return self.source == self.target and self.indexed


def copy(source: Memory, target: Memory, *, progress: Progress | None = None) -> CopyReport:
    """Copy all memories and checkpoints into an empty location, or go on with such a copy.

    Vectors are reused when both have the same embedder, else computed anew. What is written to the
    source meanwhile may be missing: then the copy is not complete, and copying again adds it. What
    was forgotten or written in the target meanwhile needs a new, empty target.

    Raises:
        CannotMoveError: writes of the source are not finished, or the target holds something else.
    """
    dead = finish_writes(source)
    engines = source._runtime.engines
    is_same_embedder = source.embedder.id == target.embedder.id
    report = copy_rows(
        source.location,
        engines.graph.dump,
        target,
        total=count_records(engines.graph) if progress else None,
        vectors_of=engines.index.vectors if is_same_embedder else None,
        progress=progress,
        dead=dead,
    )
    _copy_checkpoints(source.admin.checkpoints, target.admin.checkpoints, progress)
    return replace(
        report,
        source=_with_checkpoints(report.source, source.admin.checkpoints),
        target=_with_checkpoints(report.target, target.admin.checkpoints),
    )


def finish_writes(memory: Memory) -> int:
    """Wait for accepted writes and write the access log; return the number of dead letters.

    Raises:
        CannotMoveError: some writes are not finished in a minute.
    """
    left = memory.flush(_FLUSH_SECONDS)
    if left.pending:
        raise CannotMoveError(
            store=memory.location,
            reason=f"has {left.pending} accepted writes that are not finished",
            hint="Run `commonplace doctor` to see what they wait for.",
        )
    memory._runtime.access_log.flush()
    return left.dead


def digest(
    rows: Iterable[SnapshotRow | StateRow], tables: Sequence[str] = TABLES
) -> SnapshotDigest:
    """Count and hash the rows of a graph store's snapshot, table by table."""
    counts = dict.fromkeys(tables, 0)
    hashes = {table: hashlib.sha256() for table in tables}
    for row in rows:
        table = table_of(row)
        counts[table] += 1
        hashes[table].update(f"{to_line(row)}\n".encode())
    return SnapshotDigest(
        counts=counts, hashes={table: digest_.hexdigest() for table, digest_ in hashes.items()}
    )


def copy_rows(
    name: str,
    read: Callable[[str], Iterator[SnapshotRow]],
    target: Memory,
    *,
    total: int | None = None,
    vectors_of: VectorSource | None = None,
    progress: Progress | None = None,
    dead: int = 0,
) -> CopyReport:
    """Copy the rows of a snapshot into an empty location, or go on with such a copy.

    Args:
        name: of the source; a target goes on with the same source only.
        read: reads the rows from a partition on.
        total: of its records, for `progress`.
        vectors_of: vectors that need not be embedded.
        dead: dead letters that stay with the source.

    Raises:
        CannotMoveError: the target holds something else.
    """
    engines = target._runtime.engines
    partition = _start(name, target, engines.graph)
    done = 0
    for batch in batches(read(partition), BATCH):
        engines.graph.load(batch)
        if batch[-1].partition != partition:  # all partitions before are complete
            partition = batch[-1].partition
            _note(engines.graph, name, partition)
        done += sum(map(is_indexed, batch))
        if progress:
            progress("graph", done, total)
    if progress and total is not None:
        progress("graph", total, total)  # also where an earlier copy had begun
    filled = backfill(
        engines.graph,
        engines.index,
        target.embedder,
        limit=target._settings.max_embed_chars,
        vectors_of=vectors_of,
        progress=progress,
    )
    report = CopyReport(
        source=digest(reported(read(""), progress, "check source", total, is_indexed)),
        target=digest(reported(engines.graph.dump(), progress, "check target", total, is_indexed)),
        backfill=filled,
        indexed=dict(engines.graph.versions(None)) == dict(engines.index.versions(None)),
        dead=dead,
    )
    _note(engines.graph, name, "")  # a copy that is run again adds what was written meanwhile
    return report


def _start(name: str, target: Memory, graph: GraphStore) -> str:
    """Find the partition at which a copy starts or goes on."""
    note = json.loads(graph.get_meta(_NOTE) or "{}")
    if note.get("source") == name:
        return str(note["partition"])
    index = target._runtime.engines.index
    is_empty = next(graph.dump(), None) is None and next(index.versions(None), None) is None
    backlog = target.flush(0.0)
    if note or not is_empty or backlog.pending or backlog.dead:
        content = f"holds the copy of {note['source']}" if note else "holds memories already"
        raise CannotMoveError(
            store=target.location, reason=content, hint="Copy into an empty location."
        )
    _note(graph, name, "")
    return ""


def _note(graph: GraphStore, name: str, partition: str) -> None:
    graph.set_meta(_NOTE, json.dumps({"source": name, "partition": partition}))


def read_states(checkpoints: Checkpoints, selection: Selection) -> Iterator[State]:
    """Read checkpoints, greatest id first, without writes that belong to none."""
    after: Address | None = None
    while page := checkpoints.states(selection, limit=_CHECKPOINTS_BATCH, after=after):
        after = page[-1].checkpoint.address
        yield from page


def _copy_checkpoints(source: Checkpoints, target: Checkpoints, progress: Progress | None) -> None:
    """Write all checkpoints of a store into another; repeating it changes nothing."""
    total = sum(1 for _ in iterate_checkpoints(source, Selection())) if progress else None
    for state in reported(read_states(source, Selection()), progress, "checkpoints", total):
        checkpoint = state.checkpoint
        values = {(name, checkpoint.versions[name]): blob for name, blob in state.values.items()}
        target.put(checkpoint, values, state.owner)
        target.write(checkpoint.address, state.writes, state.owner)


def _with_checkpoints(rows: SnapshotDigest, checkpoints: Checkpoints) -> SnapshotDigest:
    """Add the number of a store's checkpoints, and a hash over them in order."""
    count, sha = 0, hashlib.sha256()
    for state in read_states(checkpoints, Selection()):
        count += 1
        at = state.checkpoint
        plain = [at.address, sorted(at.versions.items()), at.parent, at.deltas, at.run]
        values = sorted(state.values.items())
        writes = [(write.order, write.channel, *_pair(write.value)) for write in state.writes]
        sha.update(repr([plain, at.within, state.owner, _pair(at.body)]).encode())
        sha.update(repr([_pair(at.metadata), writes]).encode())
        sha.update(repr([(name, *_pair(blob)) for name, blob in values]).encode())
    return SnapshotDigest(
        counts={**rows.counts, "checkpoints": count},
        hashes={**rows.hashes, "checkpoints": sha.hexdigest()},
    )


def _pair(blob: Blob) -> tuple[str, bytes]:
    return blob.type, blob.data
