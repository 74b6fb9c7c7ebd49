"""Storage engines, one package each, and the registry that opens those of a location."""

import contextlib
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SchemaMismatchError
from ..ports.checkpoints import Checkpoints
from ..ports.models import Embedder, TokenEmbedder
from ..ports.stores import Engines, GraphStore, Journal, VectorIndex
from ..settings import FORMER_EDGE, Location, Settings, is_url, parse_server_url, without_secret

if TYPE_CHECKING:
    from .sqlite.connection import SqliteConnection

SCHEMA = "4"
_GRAPH_OPTIONS = {"prefix": str}
_INDEX_OPTIONS = {
    **dict.fromkeys(("grpc_port", "shards", "replicas", "buckets", "timeout"), int),
    **dict.fromkeys(("prefer_grpc", "quantize"), bool),
}
_log = logging.getLogger("commonplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStores:
    """The stores of a location that need no embedder: all but the index.

    Attributes:
        connection: of the SQLite file that has all three; None if there is none.
    """

    journal: Journal
    graph: GraphStore
    checkpoints: Checkpoints
    connection: "SqliteConnection | None"

    @property
    def generation(self) -> int:
        """Number of the index generation in use, from 1."""
        return int(self.graph.get_meta("generation") or 1)


def open_engines(
    location: Location, settings: Settings, embedder: Embedder, lexical: str
) -> Engines:
    """Open or create the engines of a location; drivers load on first use.

    Those of one folder can change in one transaction: they are `Transactional`.

    Args:
        lexical: the version of the lexical terms, which the index stores beside the embedder.

    Raises:
        SchemaMismatchError: a store was made with another embedder or schema, or the journal has
            operations for other stores.
        StoreLockedError: another process holds a store that it needs alone.
        StoreUnavailableError: a server does not answer, or a file cannot be read.
        MissingExtraError: the driver of an engine is not installed.
    """
    if location.shares_vectors and not location.shares_graph:
        _log.warning(
            "The index %s is shared but the graph store %s is local to this host: other hosts will "
            "see what it finds, but not its history and relations. Give graph='neo4j://...'.",
            without_secret(location.vectors),
            location.graph,
        )
    with contextlib.ExitStack() as opened:
        stores = _open_stores(location, settings, opened)
        if _former_edge_folder(location, stores.generation):
            raise SchemaMismatchError(
                what="the index engine",
                stored="Qdrant Edge",
                wanted="SQLite",
                hint=f"{FORMER_EDGE}.",
            )
        index = open_index(stores, location, settings, embedder, lexical, stores.generation)
        opened.pop_all()
    engines = Engines(
        index=index,
        graph=stores.graph,
        journal=stores.journal,
        checkpoints=stores.checkpoints,
        shared=True,
    )
    if stores.connection is not None and location.vectors == location.graph:
        from .sqlite.connection import SqliteEngines

        return SqliteEngines.of(engines, stores.connection)
    return engines


@contextlib.contextmanager
def opened_stores(
    location: Location, settings: Settings, *, create: bool = True, exclusive: bool = False
) -> Iterator[OpenStores]:
    """Open all stores of a location but the index, whatever that was made with.

    Args:
        create: make files that are missing.
        exclusive: no other process of this host uses them meanwhile.
    """
    with contextlib.ExitStack() as opened:
        yield _open_stores(location, settings, opened, create=create, exclusive=exclusive)


def _open_stores(
    location: Location, settings: Settings, opened: contextlib.ExitStack, **how: bool
) -> OpenStores:
    from .sqlite.connection import SqliteConnection
    from .sqlite.journal import SqliteJournal

    def connect(folder: str, name: str) -> SqliteConnection:
        connection = SqliteConnection(str(Path(folder) / name), **how)
        opened.callback(connection.close)
        return connection

    is_one_file = location.graph == location.journal
    connection = connect(location.journal, "memory.db" if is_one_file else "journal.db")
    journal = SqliteJournal(connection)
    opened.callback(journal.close)
    if not is_one_file:
        _bind(connection, journal, location)
    if not is_url(location.graph):
        from .sqlite.checkpoints import SqliteCheckpoints
        from .sqlite.graph import SqliteGraph

        if not is_one_file:
            connection = connect(location.graph, "memory.db")
        graph = SqliteGraph(connection)
        if not is_one_file:
            with contextlib.closing(SqliteJournal(connection)) as former:
                if _has_work(former):
                    stored = f"{location.graph} with unfinished writes"
                    raise SchemaMismatchError(
                        what="the journal", stored=stored, wanted=location.journal
                    )
        return OpenStores(
            journal=journal,
            graph=graph,
            checkpoints=SqliteCheckpoints(connection),
            connection=connection if is_one_file else None,
        )
    from .neo4j.checkpoints import Neo4jCheckpoints
    from .neo4j.graph import Neo4jGraph

    server = parse_server_url("graph", location.graph, _GRAPH_OPTIONS)
    password = server.password or settings.neo4j_password
    nodes = Neo4jGraph(
        server.url,
        auth=(server.user or settings.neo4j_user, password) if password else None,
        database=server.name or None,
        **server.options,
    )
    opened.callback(nodes.close)
    checkpoints = Neo4jCheckpoints(server.url, driver=nodes.driver)
    return OpenStores(journal=journal, graph=nodes, checkpoints=checkpoints, connection=None)


def open_index(
    stores: OpenStores,
    location: Location,
    settings: Settings,
    embedder: Embedder,
    lexical: str,
    generation: int,
) -> VectorIndex:
    """Open or create one generation of the index of a location.

    Raises:
        SchemaMismatchError: it was made with another embedder or schema.
    """
    meta = {"embedder": embedder.id, "lexical": lexical, "schema": SCHEMA}
    dimensions = embedder.dimensions
    token_dimensions = 0
    if isinstance(embedder, TokenEmbedder):
        token_dimensions = embedder.token_dimensions
        meta["tokens"] = embedder.token_space
    if not is_url(location.vectors):
        from .sqlite.connection import SqliteConnection
        from .sqlite.index import SqliteIndex

        if stores.connection is not None and location.vectors == location.graph:
            return SqliteIndex(
                stores.connection,
                dimensions=dimensions,
                token_dimensions=token_dimensions,
                meta=meta,
                generation=generation,
                cache_bytes=settings.cache_bytes,
            )
        file = str(_index_file(location, generation))
        connection = SqliteConnection(file)
        try:
            return SqliteIndex(
                connection,
                dimensions=dimensions,
                token_dimensions=token_dimensions,
                meta=meta,
                keeps_records=True,
                cache_bytes=settings.cache_bytes,
            )
        except BaseException:
            connection.close()
            raise
    from .qdrant.index import QdrantIndex

    given = _collection_options(location, settings, generation)
    return QdrantIndex(**given, dimensions=dimensions, meta=meta, token_dimensions=token_dimensions)


def drop_index(stores: OpenStores, location: Location, settings: Settings, generation: int) -> None:
    """Remove one generation of the index of a location; a missing one is ignored."""
    if not is_url(location.vectors):
        from .sqlite.index import drop_points

        if stores.connection is not None and location.vectors == location.graph:
            drop_points(stores.connection, generation)
        else:
            file = _index_file(location, generation)
            for one in file.parent.glob(f"{file.name}*"):
                one.unlink()
        if edge := _former_edge_folder(location, generation):
            shutil.rmtree(edge)
    else:
        from .qdrant.collection import drop

        drop(**_collection_options(location, settings, generation))


def _former_edge_folder(location: Location, generation: int) -> Path | None:
    """Find the folder of this generation of an index that Qdrant Edge, a former engine, made."""
    if is_url(location.vectors):
        return None
    folder = Path(location.vectors) / ("vectors" if generation == 1 else f"vectors-{generation}")
    return folder if (folder / "index.json").is_file() else None


def _index_file(location: Location, generation: int) -> Path:
    name = "vectors.db" if generation == 1 else f"vectors-{generation}.db"
    return Path(location.vectors) / name


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
    return bool(backlog.pending or backlog.dead)
