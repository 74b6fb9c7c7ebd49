"""Backfill of an index from its graph store: what is missing, outdated or orphaned."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..ingest.embedding import embed
from ..model import Record
from ..ports.models import Embedder
from ..ports.snapshot import RecordRow
from ..ports.stores import GraphStore, Point, VectorIndex
from ..retrieval.lexical import count_words, document_terms


def points_of(
    records: Sequence[Record],
    embedder: Embedder,
    *,
    limit: int,
    known: Mapping[str, Sequence[float]] | None = None,
) -> list[Point]:
    """Make the points of records, in their order.

    Args:
        limit: characters of each text that are embedded.
        known: vectors by id of record; the others are embedded.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        ModelFailedError: it failed.
    """
    vectors = dict(known or {})
    missing = [one for one in records if one.id not in vectors]
    if missing:
        texts = [one.indexed_text for one in missing]
        rows = embed(embedder, texts, purpose="document", limit=limit).tolist()
        vectors |= {one.id: row for one, row in zip(missing, rows, strict=True)}
    return [
        Point(
            record=one,
            vector=vectors[one.id],
            terms=document_terms(one.indexed_text),
            words=count_words(one.indexed_text),
        )
        for one in records
    ]


T = TypeVar("T")
Progress = Callable[[str, int], None]
Known = Callable[[Sequence[Record]], Mapping[str, Sequence[float]]]
_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What an index lacked.

    Attributes:
        embedded: records that the embedder was asked for. taken: those whose vectors were known.
        removed: records that the graph store does not have.
    """

    embedded: int = 0
    taken: int = 0
    removed: int = 0


def fill(
    graph: GraphStore,
    index: VectorIndex,
    embedder: Embedder,
    *,
    limit: int,
    known: Known | None = None,
    progress: Progress | None = None,
) -> Filled:
    """Bring an index to what a graph store knows; run again, it goes on where it was cut.

    Args:
        limit: characters of each text that are embedded.
        known: gives the vectors that need not be embedded.
        progress: is told the stage and how many records are done.
    """
    held = dict(index.versions(None))
    embedded = taken = done = 0
    seen: set[str] = set()
    for batch in batches((one for one in live_records(graph) if one.indexed), _BATCH):
        fresh = [one for one in batch if held.get(one.id, -1) < one.version]
        vectors = known(fresh) if known and fresh else {}
        index.upsert(points_of(fresh, embedder, limit=limit, known=vectors))
        # The same version may have been ended or contradicted since by another record.
        index.amend([one for one in batch if held.get(one.id, -1) >= one.version])
        seen.update(one.id for one in batch)
        taken += len(vectors)
        embedded += len(fresh) - len(vectors)
        done += len(batch)
        if progress:
            progress("vectors", done)
    orphans = sorted(held.keys() - seen)
    index.delete(None, orphans)
    index.flush()
    return Filled(embedded=embedded, taken=taken, removed=len(orphans))


def live_records(graph: GraphStore) -> Iterator[Record]:
    """Walk over every live record of everybody."""
    return (one.record for one in graph.dump() if isinstance(one, RecordRow) and one.live)


def batches(given: Iterator[T], size: int) -> Iterator[list[T]]:
    """Gather what comes into lists of at most so many."""
    while batch := list(itertools.islice(given, size)):
        yield batch
