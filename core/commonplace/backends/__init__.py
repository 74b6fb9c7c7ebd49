"""Storage engines, one package each, and the registry that opens those of a location."""

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SchemaMismatchError
from ..ports.checkpoints import Checkpoints
from ..ports.models import Embedder
from ..ports.stores import Engines, GraphStore, Journal, VectorIndex
from ..settings import Location, Settings, is_url, parse_server_url, without_secret

if TYPE_CHECKING:
    from .sqlite.connection import SqliteConnection

SCHEMA = "2"
_GRAPH_OPTIONS = {"prefix": str}
_INDEX_OPTIONS = {
    **dict.fromkeys(("grpc_port", "shards", "replicas", "buckets", "timeout"), int),
    **dict.fromkeys(("prefer_grpc", "quantize"), bool),
}
_log = logging.getLogger("commonplace")


def open_engines(
    location: Location, settings: Settings, embedder: Embedder, lexical: str
) -> Engines:
    """Open or create the engines of a location; drivers load on first use.

    Args:
        lexical: the version of the lexical terms, which the index stores beside the embedder.

    Raises:
        SchemaMismatchError: a store was made with another embedder or schema, or the journal has
            operations for other stores.
        StoreLockedError: another process holds a folder.
        StoreUnavailableError: a server does not answer.
        MissingExtraError: the driver of a server is not installed.
    """
    if location.shares_vectors and not location.shares_graph:
        _log.warning(
            "The index %s is shared but the graph store %s is local to this host: other hosts will "
            "see what it finds, but not its history and relations. Give graph='neo4j://...'.",
            without_secret(location.vectors),
            location.graph,
        )
    with contextlib.ExitStack() as opened:
        journal, graph, checkpoints = _open_graph(location, settings, opened)
        index = open_index(location, settings, embedder, lexical, generation_of(graph))
        opened.pop_all()
    return Engines(
        index=index,
        graph=graph,
        journal=journal,
        checkpoints=checkpoints,
        shared=location.shares_vectors and location.shares_graph,
    )


@contextlib.contextmanager
def opened_graph(location: Location, settings: Settings) -> Iterator[tuple[GraphStore, Journal]]:
    """Open only the graph store and the journal of a location, whatever its index was made with."""
    with contextlib.ExitStack() as opened:
        journal, graph, _ = _open_graph(location, settings, opened)
        yield graph, journal


def generation_of(graph: GraphStore) -> int:
    """Read the number of the current index generation of a graph store, from 1."""
    return int(graph.get_meta("generation") or 1)


def _open_graph(
    location: Location, settings: Settings, opened: contextlib.ExitStack
) -> tuple[Journal, GraphStore, Checkpoints]:
    from .sqlite.connection import SqliteConnection
    from .sqlite.journal import SqliteJournal

    name = "memory.db" if location.graph == location.journal else "journal.db"
    connection = SqliteConnection(str(_folder(location.journal) / name))
    opened.callback(connection.close)
    journal = SqliteJournal(connection)
    opened.callback(journal.close)
    if not is_url(location.graph):
        from .sqlite.checkpoints import SqliteCheckpoints
        from .sqlite.graph import SqliteGraph

        if location.graph != location.journal:
            _bind(connection, journal, location)
            connection = SqliteConnection(str(_folder(location.graph) / "memory.db"))
            opened.callback(connection.close)
            if _has_work(SqliteJournal(connection)):
                stored = f"{location.graph} with unfinished writes"
                raise SchemaMismatchError(
                    what="the journal", stored=stored, wanted=location.journal
                )
        return journal, SqliteGraph(connection), SqliteCheckpoints(connection)
    _bind(connection, journal, location)
    from .neo4j.checkpoints import Neo4jCheckpoints
    from .neo4j.graph import Neo4jGraph

    server = parse_server_url("graph", location.graph, _GRAPH_OPTIONS)
    password = server.password or settings.neo4j_password
    graph = Neo4jGraph(
        server.url,
        auth=(server.user or settings.neo4j_user, password) if password else None,
        database=server.name or None,
        **server.options,
    )
    opened.callback(graph.close)
    return journal, graph, Neo4jCheckpoints(server.url, driver=graph.driver)


def open_index(
    location: Location, settings: Settings, embedder: Embedder, lexical: str, generation: int
) -> VectorIndex:
    """Open or create one generation of the index of a location.

    Raises:
        SchemaMismatchError: it was made with another embedder or schema.
    """
    meta = {"embedder": embedder.id, "lexical": lexical, "schema": SCHEMA}
    if not is_url(location.vectors):
        from .edge.index import EdgeIndex

        meta["dimensions"] = str(embedder.dimensions)
        path = str(_vectors_folder(location, generation))
        return EdgeIndex(path, dimensions=embedder.dimensions, meta=meta)
    from .qdrant.index import QdrantIndex

    given = _collection_options(location, settings, generation)
    return QdrantIndex(**given, dimensions=embedder.dimensions, meta=meta)


def drop_index(location: Location, settings: Settings, generation: int) -> None:
    """Remove one generation of the index of a location; a missing one is ignored."""
    if not is_url(location.vectors):
        if (old := _vectors_folder(location, generation)).exists():
            shutil.rmtree(old)
        return
    from .qdrant.collection import drop

    drop(**_collection_options(location, settings, generation))


def _vectors_folder(location: Location, generation: int) -> Path:
    return _folder(location.vectors) / ("vectors" if generation == 1 else f"vectors-{generation}")


def _collection_options(location: Location, settings: Settings, generation: int) -> dict[str, Any]:
    server = parse_server_url("vectors", location.vectors, _INDEX_OPTIONS)
    name = server.name or "commonplace"
    return {
        "url": server.url,
        "api_key": server.password or server.user or settings.qdrant_api_key or None,
        "collection": name if generation == 1 else f"{name}__generation_{generation}",
        **server.options,
    }


def _bind(connection: "SqliteConnection", journal: Journal, location: Location) -> None:
    """Bind a journal to the stores of a location.

    Raises:
        SchemaMismatchError: it has operations for other stores.
    """
    stored, wanted = connection.get_meta("stores"), str(location)
    if stored != wanted:
        if stored is not None and _has_work(journal):
            raise SchemaMismatchError(what="a journal of writes for", stored=stored, wanted=wanted)
        connection.set_meta("stores", wanted)


def _has_work(journal: Journal) -> bool:
    backlog = journal.count()
    return bool(backlog.pending or backlog.dead or journal.unflushed())


def _folder(path: str) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
