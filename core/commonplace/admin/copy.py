"""A whole memory copied from one place to another, and compared.

A target notes from where it is being filled and how far that got, so that what was cut goes on,
and nothing is ever mixed into the memories of somebody else.


MERGED FROM commonplace.moving.filling: An index brought to what its graph store knows: what is missing, outdated or nobody's.

MERGED FROM commonplace.moving.states: The states of runs copied from one store of checkpoints to another, and counted."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..errors import CannotMoveError
from ..memory import Memory
from ..ports.checkpoints import Address, Blob, Checkpoints, Selection, State
from ..ports.snapshot import SnapshotRow
from ..ports.stores import GraphStore
from .backfill import Filled, Known, Progress, batches, fill
from .serialization import TABLES, table_of, to_line

BATCH = 250
_SECONDS = 60.0  # for writes that are on their way
_NOTE = "copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What is in each table of a graph store: how many pieces, and a hash over them in order."""

    counts: Mapping[str, int]
    hashes: Mapping[str, str]

    def beside(self, states: tuple[int, str]) -> "Digest":
        """Add the number and the hash of the states of runs."""
        return Digest(
            counts={**self.counts, "checkpoints": states[0]},
            hashes={**self.hashes, "checkpoints": states[1]},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a copy did.

    Attributes:
        source, target: what both hold now; equal when the copy is complete.
        filled: what the target's index was given.
        indexed: whether that index has every live record in its version, and no other.
        dead: dead letters that stayed with the source.
    """

    source: Digest
    target: Digest
    filled: Filled
    indexed: bool
    dead: int = 0

    @property
    def complete(self) -> bool:
        """Source and target hold the same."""
        return self.source == self.target and self.indexed


def copy(source: Memory, target: Memory, *, progress: Progress | None = None) -> Copied:
    """Copy all memories and states of runs into an empty place, or go on with what was cut.

    Vectors are taken over when both have the same embedder, and else embedded anew. Nobody should
    write to either meanwhile.

    Raises:
        CannotMoveError: writes of the source are not finished, or the target holds something else.
    """
    dead = settle(source)
    engines = source._runtime.engines  # noqa: SLF001 -- the operator's way in
    same = source.embedder.id == target.embedder.id
    copied = take_over(
        source.location,
        engines.graph.dump,
        target,
        known=engines.index.vectors if same else None,
        progress=progress,
        dead=dead,
    )
    copy_states(source.checkpoints, target.checkpoints, progress)
    return replace(
        copied,
        source=copied.source.beside(digest_states(source.checkpoints)),
        target=copied.target.beside(digest_states(target.checkpoints)),
    )


def settle(memory: Memory) -> int:
    """Let accepted writes finish; answer how many are dead letters.

    Raises:
        CannotMoveError: some are not finished in a minute.
    """
    left = memory.flush(_SECONDS)
    if left.pending:
        raise CannotMoveError(
            store=memory.location,
            reason=f"has {left.pending} accepted writes that are not finished",
            hint="See `commonplace doctor` for what they wait for.",
        )
    memory._runtime.access_log.flush()  # noqa: SLF001 -- the operator's way in
    return left.dead


def digest(kept: Iterable[SnapshotRow], *, progress: Progress | None = None) -> Digest:
    """Count and hash what a graph store keeps, table by table."""
    counts = dict.fromkeys(TABLES, 0)
    hashes = {table: hashlib.sha256() for table in TABLES}
    for number, one in enumerate(kept, start=1):
        table = table_of(one)
        counts[table] += 1
        hashes[table].update(f"{to_line(one)}\n".encode())
        if progress and number % BATCH == 0:
            progress("check", number)
    return Digest(counts=counts, hashes={table: one.hexdigest() for table, one in hashes.items()})


def take_over(
    name: str,
    read: Callable[[str], Iterator[SnapshotRow]],
    target: Memory,
    *,
    known: Known | None = None,
    progress: Progress | None = None,
    dead: int = 0,
) -> Copied:
    """Bring what `read` gives, from a partition on, into an empty place, or go on with it.

    Args:
        name: of where it comes from; a target goes on only with the same.
        known: gives the vectors that need not be embedded.
        dead: letters that stay behind.

    Raises:
        CannotMoveError: the target holds something else.
    """
    engines = target._runtime.engines  # noqa: SLF001 -- the operator's way in
    limit = target._settings.max_embed_chars  # noqa: SLF001 -- as above
    partition = _begin(name, target, engines.graph)
    done = 0
    for batch in batches(read(partition), BATCH):
        engines.graph.load(batch)
        if batch[-1].partition != partition:  # all of the partitions before is there
            partition = batch[-1].partition
            _note(engines.graph, name, partition)
        done += len(batch)
        if progress:
            progress("graph", done)
    filled = fill(
        engines.graph, engines.index, target.embedder, limit=limit, known=known, progress=progress
    )
    return Copied(
        source=digest(read(""), progress=progress),
        target=digest(engines.graph.dump(), progress=progress),
        filled=filled,
        indexed=dict(engines.graph.versions(None)) == dict(engines.index.versions(None)),
        dead=dead,
    )


def _begin(name: str, target: Memory, graph: GraphStore) -> str:
    """Find the partition at which a copy begins, or goes on."""
    note = json.loads(graph.get_meta(_NOTE) or "{}")
    if note.get("source") == name:
        return str(note["partition"])
    index = target._runtime.engines.index  # noqa: SLF001 -- the operator's way in
    is_empty = next(graph.dump(), None) is None and next(index.versions(None), None) is None
    waiting = target.flush(0.0)
    if note or not is_empty or waiting.pending or waiting.dead:
        held = f"holds the copy of {note['source']}" if note else "holds memories already"
        raise CannotMoveError(store=target.location, reason=held, hint="Copy into an empty place.")
    _note(graph, name, "")
    return ""


def _note(graph: GraphStore, name: str, partition: str) -> None:
    graph.set_meta(_NOTE, json.dumps({"source": name, "partition": partition}))


_STATES_BATCH = 100


def walk(checkpoints: Checkpoints) -> Iterator[State]:
    """Read every state, greatest id first; not what tasks wrote beside no checkpoint."""
    after: Address | None = None
    while page := checkpoints.page(Selection(), limit=_STATES_BATCH, after=after):
        after = page[-1].address
        yield from checkpoints.states([one.address for one in page])


def copy_states(source: Checkpoints, target: Checkpoints, progress: Progress | None = None) -> None:
    """Write every state of a store into another; repeating it changes nothing."""
    for number, state in enumerate(walk(source), start=1):
        one = state.checkpoint
        values = {(name, one.versions[name]): blob for name, blob in state.values.items()}
        target.put(one, values, state.owner)
        target.write(one.address, state.writes, state.owner)
        if progress and number % _STATES_BATCH == 0:
            progress("checkpoints", number)


def digest_states(checkpoints: Checkpoints) -> tuple[int, str]:
    """Count the states of a store and hash them in order."""
    count, found = 0, hashlib.sha256()
    for state in walk(checkpoints):
        count += 1
        one = state.checkpoint
        told = [one.address, sorted(one.versions.items()), one.parent, one.deltas, one.run]
        values = sorted(state.values.items())
        writes = [(write.order, write.channel, *_pair(write.value)) for write in state.writes]
        found.update(repr([told, one.within, state.owner, _pair(one.body)]).encode())
        found.update(repr([_pair(one.metadata), writes]).encode())
        found.update(repr([(name, *_pair(blob)) for name, blob in values]).encode())
    return count, found.hexdigest()


def _pair(blob: Blob) -> tuple[str, bytes]:
    return blob.type, blob.data
