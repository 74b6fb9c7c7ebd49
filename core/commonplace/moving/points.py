"""Records as an index holds them, embedded where nobody has their vectors."""

from collections.abc import Mapping, Sequence

from ..exchange import Point
from ..model import Record
from ..pipeline.embed import embed
from ..pipeline.lexical import count_words, document_terms
from ..ports import Embedder


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
        LoopRequired: the embedder is asynchronous.
        ModelFailed: it failed.
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
