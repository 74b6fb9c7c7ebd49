"""Port of engines that a URL names: what an entry point of `commonplace.engines` provides.

An entry point's name is the scheme of the URLs; its value is called without arguments when such a
URL is opened, and returns an `IndexEngine`, a `GraphEngine`, or an object that is both:

    [project.entry-points."commonplace.engines"]
    shelf = "shelf_engine:ShelfEngine"

Importing it must be cheap: a driver is imported when something is opened, and one that is missing
is a `MissingExtraError` or another error that says what to install.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..errors import SchemaMismatchError
from ..settings import Settings
from .checkpoints import Checkpoints
from .stores import GraphStore, VectorIndex

TOKENS = "tokens"  # what the token vectors of an index depend on, in its meta


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSpec:
    """What an index is opened for.

    Attributes:
        dimensions: length of every vector.
        token_dimensions: length of every token's vector; 0 if the embedder gives none. An engine
            that keeps no tokens ignores it.
        meta: what the vectors depend on, such as the embedder; to be stored when the index is made
            and compared at every later opening, by `check_meta`.
        generation: number of the index, from 1. `commonplace reindex` fills the next one while the
            present one serves searches, so each needs a place of its own.
    """

    dimensions: int
    token_dimensions: int = 0
    meta: Mapping[str, str]
    generation: int = 1


@runtime_checkable
class IndexEngine(Protocol):
    """An engine that opens vector indexes."""

    def open_index(self, url: str, spec: IndexSpec, settings: Settings) -> VectorIndex:
        """Open or create an index; the memory that asks for it closes it.

        Args:
            url: as the user gave it, with user, password and options.
            settings: with secrets that are not in the URL.

        Raises:
            InvalidRecordError: the URL cannot be used.
            MissingExtraError: the driver is not installed.
            SchemaMismatchError: the index was made with other `meta` or dimensions.
            StoreUnavailableError, StoreRefusedError: see the other ports.
        """

    def drop_index(self, url: str, generation: int, settings: Settings) -> None:
        """Remove a generation of an index and all its bytes; a missing one is ignored."""


@runtime_checkable
class GraphEngine(Protocol):
    """An engine that opens graph stores."""

    def open_graph(self, url: str, settings: Settings) -> tuple[GraphStore, Checkpoints | None]:
        """Open or create a graph store, and the checkpoints beside it; raises as `open_index`.

        The memory that asks for them closes them. Where there are no checkpoints, they are kept in
        SQLite, beside the journal.
        """


def check_meta(stored: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    """Compare what the vectors of an index depend on with what is wanted now.

    Other token vectors, or none, are no reason to refuse it: it is used without (`has_tokens`).

    Raises:
        SchemaMismatchError: they differ; names the first difference by key.
    """
    for key in sorted({*stored, *wanted} - {TOKENS}, key=lambda key: (key != "embedder", key)):
        if stored.get(key) != wanted.get(key):
            raise SchemaMismatchError(what=key, stored=stored.get(key), wanted=wanted.get(key))


def has_tokens(stored: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Tell whether the token vectors of an index are those that are wanted now."""
    return TOKENS in wanted and stored.get(TOKENS) == wanted[TOKENS]
