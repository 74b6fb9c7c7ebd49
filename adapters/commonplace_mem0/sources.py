"""What a mem0 of any version wrote, as it stands: its points, its history, its graph.

Everything is only read. A folder of mem0's local mode can be opened by one process at a time, so
whatever uses it must be closed.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from commonplace import MissingExtraError

from .exceptions import ConfigurationError

_PAGE = 1_000
# What 1.x wrote: nodes with the owner's ids, and relations without the memory that says them.
_EDGES = """
MATCH (a)-[r]->(b) WHERE a.user_id IS NOT NULL AND a.user_id = b.user_id
RETURN a.name AS source, type(r) AS relationship, b.name AS target, a.user_id AS user_id,
  a.agent_id AS agent_id, a.run_id AS run_id, coalesce(r.valid, true) AS valid,
  toString(r.created_at) AS created_at, toString(r.invalidated_at) AS invalidated_at
ORDER BY user_id, source, relationship, target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a mem0 kept its memories.

    Attributes:
        folder: of Qdrant's local mode; or
        url: of a Qdrant server, with `api_key`.
        collection: mem0's `collection_name`.
        history: its `history.db`; without it every memory begins with its present text.
        graph: the Neo4j of 1.x, such as `neo4j://user:password@host:7687/database`.
    """

    folder: str | None = None
    url: str | None = None
    api_key: str | None = None
    collection: str = "mem0"
    history: str | None = None
    graph: str | None = None

    def __post_init__(self) -> None:
        if (self.folder is None) == (self.url is None):
            raise ConfigurationError("Give a folder or a url: one of them has the memories.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A point: its id and all that mem0 kept with it, text, times and ids among it."""

    id: str
    payload: Mapping[str, Any]


def read_points(source: Source) -> Iterator[Held]:
    """Walk over all memories of the collection, in the order of their ids.

    Raises:
        MissingExtraError: qdrant-client is not installed.
        ConfigurationError: there is no such folder or collection, or it cannot be read.
    """
    try:
        from qdrant_client import QdrantClient  # noqa: PLC0415 -- on first use
        from qdrant_client.http.exceptions import ApiException  # noqa: PLC0415 -- as above
    except ImportError as error:
        raise MissingExtraError(package="qdrant-client", extra="qdrant") from error
    # Without its look at the version, which would warn from a thread of its own.
    server = {"url": source.url, "api_key": source.api_key, "check_compatibility": False}
    given: dict[str, Any] = server
    name = "Qdrant server"
    if source.folder is not None:
        folder = Path(source.folder).expanduser()
        if not (folder / "meta.json").is_file():
            raise ConfigurationError(f"The folder {source.folder!r} has no memories of mem0.")
        given, name = {"path": str(folder)}, f"folder {source.folder!r}"
    # The client raises a RuntimeError for a folder that is open elsewhere.
    failures = (ApiException, RuntimeError, sqlite3.Error, json.JSONDecodeError)
    with _reading(name, *failures), contextlib.closing(QdrantClient(**given)) as client:
        if not client.collection_exists(source.collection):
            known = [one.name for one in client.get_collections().collections]
            raise ConfigurationError(f"No collection {source.collection!r}. There are: {known}.")
        place: Any = None
        while True:
            points, place = client.scroll(
                source.collection, limit=_PAGE, offset=place, with_payload=True, with_vectors=False
            )
            yield from (Held(id=str(one.id), payload=one.payload or {}) for one in points)
            if place is None:
                return


def read_history(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Read the changes of every memory, oldest first, by id; empty without a history.

    Raises:
        ConfigurationError: there is no such file, or it is no history.
    """
    if source.history is None:
        return {}
    path = Path(source.history).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"There is no history in {source.history!r}.")
    found: dict[str, list[dict[str, Any]]] = {}
    place = f"file:{quote(str(path.resolve()))}?mode=ro"
    with (
        _reading(f"history {source.history!r}", sqlite3.Error),
        contextlib.closing(sqlite3.connect(place, uri=True)) as connection,
    ):
        connection.row_factory = sqlite3.Row
        for row in connection.execute("SELECT * FROM history ORDER BY rowid"):
            change = {name: row[name] for name in row.keys()}  # noqa: SIM118 -- a Row iterates values
            change.setdefault("new_memory", change.get("new_value"))
            found.setdefault(str(change["memory_id"]), []).append(change)
    return found


def read_edges(source: Source) -> list[dict[str, Any]]:
    """Read the relations of 1.x; empty without a graph.

    Raises:
        MissingExtraError: the driver is not installed.
        ConfigurationError: the server cannot be read.
    """
    if source.graph is None:
        return []
    try:
        from neo4j import GraphDatabase  # noqa: PLC0415 -- on first use
        from neo4j.exceptions import DriverError, Neo4jError  # noqa: PLC0415 -- as above
    except ImportError as error:
        raise MissingExtraError(package="neo4j", extra="neo4j") from error
    parts = urlsplit(source.graph)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    with (
        _reading(f"Neo4j server {place!r}", DriverError, Neo4jError),
        GraphDatabase.driver(place, auth=auth) as driver,
    ):
        answer = driver.execute_query(_EDGES, database_=parts.path.strip("/") or None)
        return [dict(one) for one in answer.records]


@contextlib.contextmanager
def _reading(name: str, *failures: type[Exception]) -> Iterator[None]:
    try:
        yield
    except failures as error:
        raise ConfigurationError(
            f"The {name} cannot be read: {error}. Nothing was brought over; see that it is whole, "
            "reachable and not in use, and call again."
        ) from error
