"""Backfill of an index from its graph store: what is missing, outdated or orphaned."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..model_calls import embed, embedded_passages, join_passages
from ..ports.engines import GraphStore, VectorIndex
from ..ports.models import Embedder, TokenEmbedder
from ..ports.snapshot_rows import RecordRow
from ..ports.stores import Point
from ..retrieval.lexical import count_words, document_terms
from ..types import Record, TokenEmbedding

T = TypeVar("T")
Progress = Callable[[str, int, int | None], None]
"""Is called with a stage, how much of it is done, and of how much; None for an unknown amount.

The unit is records, those that the index has or should have; in the stages `verify` and `backup` it
is bytes, and in a salvage rows of the table that the stage is named after.
"""
VectorSource = Callable[[Sequence[Record]], Mapping[str, TokenEmbedding]]
"""Reads vectors of records by id, where there are any."""
_BATCH = 64
BATCH = 250  # rows that are copied, and reported, at once


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillReport:
    """What a backfill did.

    Attributes:
        embedded: records that were embedded. reused: records with a vector from another index.
        removed: points without a live record.
    """

    embedded: int = 0
    reused: int = 0
    removed: int = 0


def backfill(
    graph: GraphStore,
    index: VectorIndex,
    embedder: Embedder,
    *,
    limit: int,
    vectors_of: VectorSource | None = None,
    progress: Progress | None = None,
) -> BackfillReport:
    """Give an index what its graph store has; interrupted and run again, it goes on.

    Args:
        limit: characters of each text that are embedded.
        vectors_of: vectors that need not be embedded.
    """
    indexed = dict(index.versions(None))
    embedded = reused = done = 0
    total = count_records(graph) if progress else None
    seen: set[str] = set()
    for batch in batches((record for record in live_records(graph) if record.indexed), _BATCH):
        outdated = [record for record in batch if indexed.get(record.id, -1) < record.version]
        vectors = vectors_of(outdated) if vectors_of and outdated else {}
        vectors = _usable(vectors, outdated, embedder, limit)
        index.upsert(points_of(outdated, embedder, limit=limit, vectors=vectors))
        # Another record may have ended or contradicted it since, which keeps its version.
        index.amend([record for record in batch if indexed.get(record.id, -1) >= record.version])
        seen.update(record.id for record in batch)
        reused += len(vectors)
        embedded += len(outdated) - len(vectors)
        done += len(batch)
        if progress:
            progress("vectors", done, total)
    orphans = sorted(indexed.keys() - seen)
    index.delete(None, orphans)
    index.flush()
    return BackfillReport(embedded=embedded, reused=reused, removed=len(orphans))


def _usable(
    vectors: Mapping[str, TokenEmbedding],
    records: Sequence[Record],
    embedder: Embedder,
    limit: int,
) -> dict[str, TokenEmbedding]:
    """Choose the vectors that need not be made anew: with tokens, and of all passages."""
    counts = {record.id: len(embedded_passages(record, limit)) for record in records}
    needs_tokens = isinstance(embedder, TokenEmbedder)
    return {
        id_: one
        for id_, one in vectors.items()
        if (one.tokens or not needs_tokens) and 1 + len(one.following) == counts[id_]
    }


def points_of(
    records: Sequence[Record],
    embedder: Embedder,
    *,
    limit: int,
    vectors: Mapping[str, TokenEmbedding],
) -> list[Point]:
    """Make the points of records, in their order.

    Args:
        limit: characters of each text that are embedded.
        vectors: by id of record; records without one are embedded.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        ModelFailedError: it failed.
    """
    vectors = dict(vectors)
    missing = [record for record in records if record.id not in vectors]
    if missing:
        texts = [part for record in missing for part in embedded_passages(record, limit)]
        rows = iter(embed(embedder, texts, purpose="document", limit=limit))
        vectors |= {record.id: join_passages(record, rows, limit) for record in missing}
    return [
        Point(
            record=record,
            vector=vectors[record.id].vector,
            terms=document_terms(record.indexed_text),
            words=count_words(record.indexed_text),
            tokens=vectors[record.id].tokens,
            following=vectors[record.id].following,
        )
        for record in records
    ]


def live_records(graph: GraphStore) -> Iterator[Record]:
    """Iterate over every live record of all scopes."""
    return (row.record for row in graph.dump() if isinstance(row, RecordRow) and row.live)


def is_indexed(row: object) -> bool:
    """Tell whether a row is a record that the index should have."""
    return isinstance(row, RecordRow) and row.live and row.record.indexed


def count_records(graph: GraphStore) -> int:
    """Count the records that the index should have, of all scopes."""
    return sum(1 for _ in graph.versions(None))


def reported(
    items: Iterable[T],
    progress: Progress | None,
    stage: str,
    total: int | None,
    counts: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """Give items on, and report how much of the total they are: now and then, and at the end.

    Args:
        counts: how much of the total an item is.
    """
    done = 0
    for number, item in enumerate(items, start=1):
        yield item
        done += counts(item)
        if progress and number % BATCH == 0:
            progress(stage, done, total)
    if progress:
        progress(stage, done, total)


def batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    while batch := list(itertools.islice(items, size)):
        yield batch
