"""Storage engines, one package each, and the registry that opens those of a location."""

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import SchemaMismatchError
from ..ports.checkpoints import Checkpoints
from ..ports.models import Embedder
from ..ports.stores import Engines, GraphStore, Journal, VectorIndex
from ..settings import Location, Settings, is_url, parse_server_url, without_secret

SCHEMA = "2"
_GRAPH_OPTIONS = {"prefix": str}
_INDEX_OPTIONS = {
    **dict.fromkeys(("grpc_port", "shards", "replicas", "buckets", "timeout"), int),
    **dict.fromkeys(("prefer_grpc", "quantize"), bool),
}
_log = logging.getLogger("commonplace")


def open_engines(place: Location, settings: Settings, embedder: Embedder, lexical: str) -> Engines:
    """Open or create the engines of a place; drivers load on first use.

    Args:
        lexical: the version of the lexical terms, which the store remembers with the embedder.

    Raises:
        SchemaMismatchError: a store was made with another embedder or schema, or the journal holds
            writes for other stores.
        StoreLockedError: another process holds a folder.
        StoreUnavailableError: a server does not answer.
        MissingExtraError: the driver of a server is not installed.
    """
    if place.shares_vectors and not place.shares_graph:
        _log.warning(
            "The index %s is shared but the graph store %s is of this host: other hosts will see "
            "what it finds, and neither its history nor its relations. Give graph='neo4j://...'.",
            without_secret(place.vectors),
            place.graph,
        )
    with contextlib.ExitStack() as opened:
        journal, graph, checkpoints = _open_graph(place, settings, opened)
        index = open_index(place, settings, embedder, lexical, generation_of(graph))
        opened.pop_all()
    return Engines(
        index=index,
        graph=graph,
        journal=journal,
        checkpoints=checkpoints,
        shared=place.shares_vectors and place.shares_graph,
    )


@contextlib.contextmanager
def opened_graph(place: Location, settings: Settings) -> Iterator[tuple[GraphStore, Journal]]:
    """Open the graph store and the journal of a place alone, whatever its index was made with."""
    with contextlib.ExitStack() as opened:
        journal, graph, _ = _open_graph(place, settings, opened)
        yield graph, journal


def generation_of(graph: GraphStore) -> int:
    """Tell which generation of its index a graph store has last been given, from 1."""
    return int(graph.get_meta("generation") or 1)


def _open_graph(
    place: Location, settings: Settings, opened: contextlib.ExitStack
) -> tuple[Journal, GraphStore, Checkpoints]:
    from .sqlite.connection import SqliteConnection  # noqa: PLC0415 -- drivers load on first use
    from .sqlite.journal import SqliteJournal  # noqa: PLC0415 -- drivers load on first use

    name = "memory.db" if place.graph == place.journal else "journal.db"
    file = SqliteConnection(str(_folder(place.journal) / name))
    opened.callback(file.close)
    journal = SqliteJournal(file)
    opened.callback(journal.close)
    if not is_url(place.graph):
        from .sqlite.checkpoints import SqliteCheckpoints  # noqa: PLC0415 -- drivers load on first use
        from .sqlite.graph import SqliteGraph  # noqa: PLC0415 -- drivers load on first use

        if place.graph != place.journal:
            _claim(file, journal, place)
            file = SqliteConnection(str(_folder(place.graph) / "memory.db"))
            opened.callback(file.close)
            if _has_work(SqliteJournal(file)):
                stored = f"{place.graph} with unfinished writes"
                raise SchemaMismatchError(what="the journal", stored=stored, wanted=place.journal)
        return journal, SqliteGraph(file), SqliteCheckpoints(file)
    _claim(file, journal, place)
    from .neo4j.checkpoints import Neo4jCheckpoints  # noqa: PLC0415 -- drivers load on first use
    from .neo4j.graph import Neo4jGraph  # noqa: PLC0415 -- drivers load on first use

    server = parse_server_url("graph", place.graph, _GRAPH_OPTIONS)
    password = server.password or settings.neo4j_password
    graph = Neo4jGraph(
        server.url,
        auth=(server.user or settings.neo4j_user, password) if password else None,
        database=server.name or None,
        **server.options,
    )
    opened.callback(graph.close)
    return journal, graph, Neo4jCheckpoints(server.url, bolt=graph.bolt)


def open_index(
    place: Location, settings: Settings, embedder: Embedder, lexical: str, generation: int
) -> VectorIndex:
    """Open or create one generation of the index of a place.

    Raises:
        SchemaMismatchError: it was made with another embedder or schema.
    """
    meta = {"embedder": embedder.id, "lexical": lexical, "schema": SCHEMA}
    if not is_url(place.vectors):
        from .edge.index import EdgeIndex  # noqa: PLC0415 -- drivers load on first use

        meta["dimensions"] = str(embedder.dimensions)
        path = str(_vectors(place, generation))
        return EdgeIndex(path, dimensions=embedder.dimensions, meta=meta)
    from .qdrant.index import QdrantIndex  # noqa: PLC0415 -- drivers load on first use

    given = _collection(place, settings, generation)
    return QdrantIndex(**given, dimensions=embedder.dimensions, meta=meta)


def drop_index(place: Location, settings: Settings, generation: int) -> None:
    """Remove one generation of the index of a place; one that is not there is none."""
    if not is_url(place.vectors):
        if (old := _vectors(place, generation)).exists():
            shutil.rmtree(old)
        return
    from .qdrant.collection import drop  # noqa: PLC0415 -- drivers load on first use

    drop(**_collection(place, settings, generation))


def _vectors(place: Location, generation: int) -> Path:
    return _folder(place.vectors) / ("vectors" if generation == 1 else f"vectors-{generation}")


def _collection(place: Location, settings: Settings, generation: int) -> dict[str, Any]:
    server = parse_server_url("vectors", place.vectors, _INDEX_OPTIONS)
    name = server.name or "commonplace"
    return {
        "url": server.url,
        "api_key": server.password or server.user or settings.qdrant_api_key or None,
        "collection": name if generation == 1 else f"{name}__generation_{generation}",
        **server.options,
    }


def _claim(file: Any, journal: Journal, place: Location) -> None:
    """Refuse to bring into these stores what a journal has accepted for others."""
    stored, wanted = file.get_meta("stores"), str(place)
    if stored != wanted:
        if stored is not None and _has_work(journal):
            raise SchemaMismatchError(what="a journal of writes for", stored=stored, wanted=wanted)
        file.set_meta("stores", wanted)


def _has_work(journal: Journal) -> bool:
    waiting = journal.count()
    return bool(waiting.pending or waiting.dead or journal.unflushed())


def _folder(path: str) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
