"""An index built anew beside the one in use, which answers until the new one is complete.

MERGED FROM commonplace.moving.points: Records as an index holds them, embedded where nobody has their vectors."""

import contextlib
import json
import logging
from collections.abc import Iterator

from ..backends import drop_index, generation_of, open_index, opened_graph
from ..errors import CannotMoveError, SchemaMismatchError, StoreUnavailableError
from ..ports.models import Embedder
from ..ports.stores import GraphStore, Journal, VectorIndex
from ..retrieval.lexical import VERSION
from ..settings import Location, Settings
from .backfill import Filled, Progress, fill, live_records

_log = logging.getLogger("commonplace")
_NOTE = "rebuild"
_ROUNDS = 5  # to catch up with who writes meanwhile


def reindex(
    place: Location, settings: Settings, embedder: Embedder, *, progress: Progress | None = None
) -> Filled:
    """Build the index of a place anew with the embedder that it has, also when it is damaged.

    Raises:
        SchemaMismatchError: it has another embedder.
        CannotMoveError, StoreLockedError: as `reembed`.
    """
    with opened_graph(place, settings) as (graph, _), contextlib.suppress(StoreUnavailableError):
        open_index(place, settings, embedder, VERSION, generation_of(graph)).close()
    return reembed(place, settings, embedder, progress=progress)


def reembed(
    place: Location,
    settings: Settings,
    embedder: Embedder,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> Filled:
    """Build the index of a place from its graph store, with this embedder, and switch to it.

    Until the switch the former index is as it was, and who reads it on a server reads on; whoever
    opens the place afterwards needs this embedder. Cut at any point and run again, it goes on.

    Args:
        keep: leave the former index where it is.

    Raises:
        CannotMoveError: accepted writes are not finished, or others write faster than they are read.
        StoreLockedError: another process has the place open.
    """
    with opened_graph(place, settings) as (graph, journal):
        _check(place, graph, journal)
        former = generation_of(graph)
        note = json.loads(graph.get_meta(_NOTE) or "{}")
        if note.get("generation") == former and note["embedder"] == embedder.id:
            filled = Filled()  # it was cut after the switch
            former -= 1
        else:
            new = former + 1
            graph.set_meta(_NOTE, json.dumps({"generation": new, "embedder": embedder.id}))
            with _opened(place, settings, embedder, new) as index:
                filled = _fill(place, graph, index, embedder, settings, progress)
            graph.set_meta("generation", str(new))
        if not keep:
            drop_index(place, settings, former)
        graph.set_meta(_NOTE, "{}")
        return filled


def _check(place: Location, graph: GraphStore, journal: Journal) -> None:
    if next(live_records(graph), None) is None:  # the wrong one, beside somebody's vectors?
        reason, hint = "has no record to build an index from", "Name the right graph store."
        raise CannotMoveError(store=str(place), reason=reason, hint=hint)
    left = journal.count()
    if left.dead:
        _log.warning(
            "%d dead letters keep the vectors that they were planned with. Let `commonplace retry` "
            "bring them back before the embedder changes.",
            left.dead,
        )
    waiting = left.pending + len(journal.unflushed())
    if waiting:  # they carry vectors of the former embedder
        raise CannotMoveError(
            store=str(place),
            reason=f"has {waiting} accepted writes that are not finished",
            hint="Run `commonplace doctor` on it with its present embedder first.",
        )


@contextlib.contextmanager
def _opened(
    place: Location, settings: Settings, embedder: Embedder, generation: int
) -> Iterator[VectorIndex]:
    try:
        index = open_index(place, settings, embedder, VERSION, generation)
    except SchemaMismatchError:  # begun with another embedder and never finished
        drop_index(place, settings, generation)
        index = open_index(place, settings, embedder, VERSION, generation)
    try:
        yield index
    finally:
        index.close()


def _fill(
    place: Location,
    graph: GraphStore,
    index: VectorIndex,
    embedder: Embedder,
    settings: Settings,
    progress: Progress | None,
) -> Filled:
    filled = Filled()
    for _ in range(_ROUNDS):
        one = fill(graph, index, embedder, limit=settings.max_embed_chars, progress=progress)
        filled = Filled(
            embedded=filled.embedded + one.embedded, removed=filled.removed + one.removed
        )
        if dict(index.versions(None)) == dict(graph.versions(None)):
            return filled
    raise CannotMoveError(
        store=str(place),
        reason="is written to faster than its index is built",
        hint="Stop the writers and run this again; it goes on where it was.",
    )
