"""What a search ranks: the hits that it has from its index."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from commonplace import Match
from commonplace.ports.stores import Hit
from commonplace.retrieval import search

_RANK = search.rank


@contextmanager
def found_hits() -> Iterator[list[Hit]]:
    """Collect the hits of all searches inside."""
    found: list[Hit] = []

    def ranked(question: str, hits: Sequence[Hit], *more: Any, **options: Any) -> list[Match]:
        found.extend(hits)
        return _RANK(question, hits, *more, **options)

    with mock.patch.object(search, "rank", ranked):
        yield found
