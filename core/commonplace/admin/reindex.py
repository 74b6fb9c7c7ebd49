"""Rebuild of an index beside the one in use, which serves searches until the switch."""

import contextlib
import json

from ..backends import OpenStores, drop_index, open_index, opened_stores
from ..errors import CannotMoveError, SchemaMismatchError, StoreUnavailableError
from ..ports.engines import GraphStore, Journal, VectorIndex
from ..ports.models import Embedder
from ..retrieval.lexical import VERSION
from ..settings import Location, Settings
from .backfill import BackfillReport, Progress, backfill, live_records

_NOTE = "rebuild"
_ROUNDS = 5  # to catch up with who writes meanwhile


def reindex(
    location: Location, settings: Settings, embedder: Embedder, *, progress: Progress | None = None
) -> BackfillReport:
    """Rebuild an index with the embedder that it has, also when it is damaged.

    Raises:
        SchemaMismatchError: it was made with another embedder.
        CannotMoveError, StoreLockedError: as `reembed`.
    """
    with (
        opened_stores(location, settings) as stores,
        contextlib.suppress(StoreUnavailableError),
    ):
        open_index(stores, location, settings, embedder, VERSION, stores.generation).close()
    return reembed(location, settings, embedder, progress=progress)


def reembed(
    location: Location,
    settings: Settings,
    embedder: Embedder,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> BackfillReport:
    """Rebuild an index from its graph store, with this embedder, and switch to it.

    Until the switch the former index is unchanged, and other hosts go on reading it; opening the
    location afterwards needs this embedder. Interrupted at any point and run again, it goes on.

    Args:
        keep: do not delete the former index.

    Raises:
        CannotMoveError: accepted writes are not finished, or others write faster than it reads.
        StoreLockedError: another process has the location open.
    """
    with opened_stores(location, settings, exclusive=True) as stores:
        graph = stores.graph
        _check(location, graph, stores.journal)
        former = stores.generation
        note = json.loads(graph.get_meta(_NOTE) or "{}")
        if note.get("generation") == former and note["embedder"] == embedder.id:
            report = BackfillReport()  # it was interrupted after the switch
            former -= 1
        else:
            new = former + 1
            graph.set_meta(_NOTE, json.dumps({"generation": new, "embedder": embedder.id}))
            with contextlib.closing(_open(stores, location, settings, embedder, new)) as index:
                report = _backfill(location, graph, index, embedder, settings, progress)
            graph.set_meta("generation", str(new))
        if not keep:
            drop_index(stores, location, settings, former)
        graph.set_meta(_NOTE, "{}")
        return report


def _check(location: Location, graph: GraphStore, journal: Journal) -> None:
    if next(live_records(graph), None) is None:  # perhaps the wrong one, beside other vectors
        reason, hint = "has no record to build an index from", "Give the right graph store."
        raise CannotMoveError(store=str(location), reason=reason, hint=hint)
    left = journal.count()
    if left.pending:
        raise CannotMoveError(
            store=str(location),
            reason=f"has {left.pending} accepted writes that are not finished",
            hint="Run `commonplace doctor` on it with its current embedder first.",
        )


def _open(
    stores: OpenStores,
    location: Location,
    settings: Settings,
    embedder: Embedder,
    generation: int,
) -> VectorIndex:
    try:
        return open_index(stores, location, settings, embedder, VERSION, generation)
    except SchemaMismatchError:  # an unfinished one of another embedder
        drop_index(stores, location, settings, generation)
        return open_index(stores, location, settings, embedder, VERSION, generation)


def _backfill(
    location: Location,
    graph: GraphStore,
    index: VectorIndex,
    embedder: Embedder,
    settings: Settings,
    progress: Progress | None,
) -> BackfillReport:
    report = BackfillReport()
    for _ in range(_ROUNDS):
        limit = settings.max_embed_chars
        filled = backfill(graph, index, embedder, limit=limit, progress=progress)
        report = BackfillReport(
            embedded=report.embedded + filled.embedded, removed=report.removed + filled.removed
        )
        if dict(index.versions(None)) == dict(graph.versions(None)):
            return report
    raise CannotMoveError(
        store=str(location),
        reason="is written to faster than its index is built",
        hint="Stop the writers and run this again; it goes on.",
    )
