"""Storage engines, one package each, and the registry that opens those of a location.

SQLite is the engine of folders. A URL's scheme names the engine behind it, which is an entry point
of the group `commonplace.engines`; see `commonplace.ports.IndexEngine` and `GraphEngine`.
"""

import contextlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidRecordError, SchemaMismatchError
from ..ports.checkpoints import Checkpoints
from ..ports.engines import (
    TOKENS,
    GraphEngine,
    GraphStore,
    IndexEngine,
    IndexSpec,
    Journal,
    VectorIndex,
    check_meta,
)
from ..ports.models import Embedder, TokenEmbedder
from ..ports.stores import Engines
from ..settings import Location, Settings, is_url, without_secret

if TYPE_CHECKING:
    from .sqlite.connection import SqliteConnection

SCHEMA = "5"
GROUP = "commonplace.engines"
_PORTS: dict[str, tuple[type, type]] = {
    "vectors": (VectorIndex, IndexEngine),
    "graph": (GraphStore, GraphEngine),
}
_GIVEN = "given_index"  # what the vectors of an index that is an object of the caller depend on
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
        InvalidRecordError: no installed engine has the scheme of a URL, or an object lacks methods.
        SchemaMismatchError: a store was made with another embedder or schema, or the journal has
            operations for other stores.
        StoreLockedError: another process holds a store that it needs alone.
        StoreUnavailableError: a server does not answer, or a file cannot be read.
        MissingExtraError: the driver of an engine is not installed.
    """
    check_location(location)  # before anything is made
    if location.shares_vectors and not location.shares_graph:
        _log.warning(
            "The index %s is shared but the graph store %s is local to this host: other hosts will "
            "see what it finds, but not its history and relations. Give graph='neo4j://...'.",
            without_secret(location.vectors),
            location.graph,
        )
    with contextlib.ExitStack() as opened:
        stores = _open_stores(location, settings, opened)
        index = open_index(stores, location, settings, embedder, lexical, stores.generation)
        opened.pop_all()
    engines: dict[str, Any] = {
        "index": index,
        "graph": stores.graph,
        "journal": stores.journal,
        "checkpoints": stores.checkpoints,
    }
    if stores.connection is not None and location.vectors == location.graph:
        from .sqlite.connection import SqliteEngines

        return SqliteEngines(**engines, connection=stores.connection)
    return Engines(**engines)


@contextlib.contextmanager
def opened_stores(
    location: Location, settings: Settings, *, create: bool = True, exclusive: bool = False
) -> Iterator[OpenStores]:
    """Open all stores of a location but the index, whatever that was made with.

    Args:
        create: make files that are missing.
        exclusive: no other process of this host uses them meanwhile.
    """
    check_location(location)
    with contextlib.ExitStack() as opened:
        yield _open_stores(location, settings, opened, create=create, exclusive=exclusive)


def _open_stores(
    location: Location, settings: Settings, opened: contextlib.ExitStack, **how: bool
) -> OpenStores:
    from .sqlite.checkpoints import SqliteCheckpoints
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
    graph: GraphStore
    checkpoints: Checkpoints | None = None
    if location.given_graph is not None:
        graph = location.given_graph
    elif is_url(location.graph):
        engine: GraphEngine = _engine("graph", location.graph)
        graph, checkpoints = engine.open_graph(location.graph, settings)
        opened.callback(graph.close)
        if checkpoints is not None:
            opened.callback(checkpoints.close)
    else:
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
        checkpoints=checkpoints or SqliteCheckpoints(connection),
        connection=connection if is_one_file else None,
    )


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
    token_dimensions = 0
    if isinstance(embedder, TokenEmbedder):
        token_dimensions = embedder.token_dimensions
        meta[TOKENS] = embedder.token_space
    spec = IndexSpec(
        dimensions=embedder.dimensions,
        token_dimensions=token_dimensions,
        meta=meta,
        generation=generation,
    )
    if location.given_index is not None:
        return _check_given(location.given_index, stores.graph, spec)
    if is_url(location.vectors):
        engine: IndexEngine = _engine("vectors", location.vectors)
        return engine.open_index(location.vectors, spec, settings)
    from .sqlite.connection import SqliteConnection
    from .sqlite.index import SqliteIndex

    made_with: dict[str, Any] = {
        "dimensions": spec.dimensions,
        "token_dimensions": spec.token_dimensions,
        "meta": spec.meta,
        "cache_bytes": settings.cache_bytes,
    }
    if stores.connection is not None and location.vectors == location.graph:
        return SqliteIndex(stores.connection, generation=spec.generation, **made_with)
    connection = SqliteConnection(str(_index_file(location, spec.generation)))
    try:
        return SqliteIndex(connection, keeps_records=True, **made_with)
    except BaseException:
        connection.close()
        raise


def drop_index(stores: OpenStores, location: Location, settings: Settings, generation: int) -> None:
    """Remove one generation of the index of a location; a missing one is ignored."""
    if is_url(location.vectors):
        engine: IndexEngine = _engine("vectors", location.vectors)
        engine.drop_index(location.vectors, generation, settings)
        return
    if stores.connection is not None and location.vectors == location.graph:
        from .sqlite.index import drop_points

        drop_points(stores.connection, generation)
    else:
        file = _index_file(location, generation)
        for part in file.parent.glob(f"{file.name}*"):
            part.unlink()


def _index_file(location: Location, generation: int) -> Path:
    name = "vectors.db" if generation == 1 else f"vectors-{generation}.db"
    return Path(location.vectors) / name


def check_location(location: Location) -> None:
    """Check that each URL has an engine, and that each given object has the methods of its port."""
    for field, where, given in (
        ("vectors", location.vectors, location.given_index),
        ("graph", location.graph, location.given_graph),
    ):
        if given is not None:
            _check_port(field, given)
        elif is_url(where):
            _engine(field, where)


def _check_port(field: str, given: object) -> None:
    port, _ = _PORTS[field]
    methods = [name for name in vars(port) if not name.startswith("_")]
    lacks = [name for name in methods if not callable(getattr(given, name, None))]
    if lacks or isinstance(given, type):
        hint = f"Give a URL, a folder such as str(path), or an open {port.__name__}."
        if 0 < len(lacks) < len(methods):
            hint = f"It lacks {', '.join(lacks)}."
        reason = f"must be a string or a {port.__name__}"
        raise InvalidRecordError(field=field, value=given, reason=reason, hint=hint)


def _check_given(index: VectorIndex, graph: GraphStore, spec: IndexSpec) -> VectorIndex:
    """Compare what a caller's index was filled with, as its graph store notes, with what is wanted.

    An empty index takes any embedder.
    """
    wanted = {f"the index's {key}": value for key, value in spec.meta.items()}
    wanted["dimensions"] = str(spec.dimensions)
    noted = graph.get_meta(_GIVEN)
    if noted is not None and any(True for _ in index.versions(None)):
        check_meta(json.loads(noted), wanted)
    graph.set_meta(_GIVEN, json.dumps(wanted))
    return index


def _engine(field: str, url: str) -> Any:
    """Find the engine behind a URL: for `vectors` an `IndexEngine`, for `graph` a `GraphEngine`."""
    _, port = _PORTS[field]
    scheme = url.partition("://")[0]
    with contextlib.suppress(LookupError):
        engine = _load(scheme)
        if isinstance(engine, port):
            return engine
    schemes = ", ".join(f"{name}://" for name in _schemes(port))
    hint = f"Give a folder, or a URL that begins with {schemes}."
    if not schemes:
        hint = (
            "None is installed: install commonplace-memory again, as its metadata is out of date."
        )
    if scheme == "edge":
        hint = (
            "Only pre-releases of commonplace-memory 0.1.0 read an index of Qdrant Edge. Leave "
            f"`{field}` out: the index is in SQLite."
        )
    reason = "must be the URL of an installed engine"
    raise InvalidRecordError(field=field, value=without_secret(url), reason=reason, hint=hint)


@lru_cache
def _load(scheme: str) -> object:
    """Make the engine of a scheme."""
    found = {point.value: point for point in entry_points(group=GROUP) if point.name == scheme}
    if len(found) > 1:
        raise InvalidRecordError(
            field="scheme",
            value=scheme,
            reason=f"is that of several installed engines: {', '.join(sorted(found))}",
            hint="Uninstall all but one.",
        )
    if not found:
        raise LookupError(scheme)
    [point] = found.values()
    return point.load()()


def _schemes(port: type) -> list[str]:
    """List the schemes of the installed engines that have a port, sorted."""
    found = []
    for scheme in sorted({point.name for point in entry_points(group=GROUP)}):
        with contextlib.suppress(ImportError, InvalidRecordError):  # that engine is not usable
            if isinstance(_load(scheme), port):
                found.append(scheme)
    return found


def _bind(connection: "SqliteConnection", journal: Journal, location: Location) -> None:
    """Bind a journal to the stores of a location."""
    stored, wanted = connection.get_meta("stores"), str(location)
    if stored != wanted:
        if stored is not None and _has_work(journal):
            raise SchemaMismatchError(what="a journal of writes for", stored=stored, wanted=wanted)
        connection.set_meta("stores", wanted)


def _has_work(journal: Journal) -> bool:
    backlog = journal.count()
    return bool(backlog.pending or backlog.dead)
