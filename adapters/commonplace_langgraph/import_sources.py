"""Readers of what LangGraph's own savers and stores have written: an SQLite file or a PostgreSQL.

A reader sees one moment, whoever writes meanwhile, and changes nothing.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from commonplace import InvalidRecordError, MissingExtraError, StoreUnavailableError
from commonplace.agents import is_url, without_secret
from commonplace.ports import Blob, TaskWrite

At = tuple[str, str]
"""Namespace and id of a checkpoint in its thread."""
Writes = dict[At, list[TaskWrite]]
_ROWS = 1000  # that a server sends at once


class CheckpointRow(NamedTuple):
    """A checkpoint of a thread; `load` reads its state and its metadata by a serializer."""

    namespace: str
    id: str
    parent: str | None
    load: Callable[[SerializerProtocol], tuple[dict[str, Any], dict[str, Any]]]


class ItemRow(NamedTuple):
    """An item of a store; values and times are still as they are stored."""

    prefix: str
    key: str
    value: Any
    created_at: Any
    updated_at: Any
    expires_at: Any
    ttl: float | None

    @property
    def name(self) -> str:
        """Namespace and key, for a report."""
        return f"{self.prefix}/{self.key}"


class ImportSource:
    """What an import reads, by SQL that both databases share.

    Attributes:
        mark: stands for a parameter.
        has_vectors: False where no store has ever had an index.
    """

    mark: str = "?"
    writes_table: str = "writes"
    data_column: str = "value"

    def __init__(self, connection: Any, columns: set[At]) -> None:
        self._connection = connection
        self._columns = columns
        tables = {table for table, _ in columns}
        self.has_checkpoints: bool = "checkpoints" in tables
        self.has_items: bool = "store" in tables
        self.has_vectors: bool = "store_vectors" in tables

    def _rows(self, sql: str, *values: str) -> Any:
        return self._connection.execute(sql.replace("?", self.mark), values)

    def _column(self, table: str, name: str, otherwise: str) -> str:
        """Name a column; files of older releases lack some."""
        return name if (table, name) in self._columns else f"{otherwise} AS {name}"

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        [number] = self._rows(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 -- names of ours, here and below
        return int(number)

    def threads(self) -> Iterator[str]:
        """List the ids of all threads."""
        sql = f"SELECT thread_id FROM checkpoints UNION SELECT thread_id FROM {self.writes_table}"  # noqa: S608
        return (thread for (thread,) in self._rows(sql).fetchall())

    def checkpoints(self, thread: str) -> list[CheckpointRow]:
        """Read the checkpoints of a thread in the order of their namespaces and ids."""
        raise NotImplementedError

    def writes(self, thread: str) -> Writes:
        """Read the writes beside the checkpoints of a thread."""
        path = self._column(self.writes_table, "task_path", "''")
        found: Writes = {}
        for namespace, checkpoint, task, place, index, channel, kind, data in self._rows(
            f"SELECT checkpoint_ns, checkpoint_id, task_id, {path}, idx, channel, type,"  # noqa: S608
            f" {self.data_column} FROM {self.writes_table} WHERE thread_id = ?",
            thread,
        ):
            value = Blob(type=kind or "", data=bytes(data or b""))
            write = TaskWrite(task=task, path=place, index=index, channel=channel, value=value)
            found.setdefault((namespace, checkpoint), []).append(write)
        return found

    def items(self) -> Iterator[ItemRow]:
        """Read all items, oldest first."""
        ends, ttl = (self._column("store", name, "NULL") for name in ("expires_at", "ttl_minutes"))
        return map(
            ItemRow._make,
            self._streamed(
                f"SELECT prefix, key, value, created_at, updated_at, {ends}, {ttl} FROM store"  # noqa: S608
                " ORDER BY created_at, prefix, key"
            ),
        )

    def _streamed(self, sql: str) -> Any:
        return self._rows(sql)

    def vectors(self, prefix: str, key: str) -> list[str]:
        """List the fields of an item that have vectors."""
        sql = "SELECT field_name FROM store_vectors WHERE prefix = ? AND key = ?"
        return [name for (name,) in self._rows(sql, prefix, key)]

    def close(self) -> None:
        """Let go of the file or the server."""
        self._connection.close()


class SqliteSource(ImportSource):
    """A file of `SqliteSaver`, `SqliteStore`, their async twins, or several of them."""

    def __init__(self, file: Path) -> None:
        refusal = InvalidRecordError(
            field="source", value=str(file), reason="must be a file of SqliteSaver or SqliteStore"
        )
        if not file.is_file():
            raise refusal
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("BEGIN")
            columns = connection.execute(
                "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
            )
            super().__init__(connection, set(columns))
        except sqlite3.DatabaseError as error:
            connection.close()
            raise refusal from error

    def checkpoints(self, thread: str) -> list[CheckpointRow]:
        """Read the checkpoints of a thread in the order of their namespaces and ids."""
        rows = self._rows(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
            " FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id",
            thread,
        )
        return [
            CheckpointRow(space, name, parent, partial(_load_sqlite, kind, data, metadata))
            for space, name, parent, kind, data, metadata in rows
        ]


def _load_sqlite(
    kind: str, data: bytes, metadata: bytes | None, serde: SerializerProtocol
) -> tuple[dict[str, Any], dict[str, Any]]:
    return serde.loads_typed((kind, data)), json.loads(metadata) if metadata else {}


class PostgresSource(ImportSource):
    """A database of `PostgresSaver`, `PostgresStore` and their async twins."""

    mark: str = "%s"
    writes_table: str = "checkpoint_writes"
    data_column: str = "blob"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtraError(package="psycopg", extra="postgres") from error
        try:
            connection = psycopg.connect(url)
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            columns = connection.execute(
                "SELECT table_name, column_name FROM information_schema.columns"
                " WHERE table_schema = ANY (current_schemas(false))"
            )
        except psycopg.Error as error:
            raise StoreUnavailableError(store="PostgreSQL", reason=str(error)) from error
        super().__init__(connection, set(columns))

    def checkpoints(self, thread: str) -> list[CheckpointRow]:
        """Read the checkpoints of a thread in the order of their namespaces and ids."""
        blobs: _Blobs = {}
        for *key, kind, data in self._rows(
            "SELECT checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs"
            " WHERE thread_id = ? AND type <> 'empty'",
            thread,
        ):
            blobs[tuple(key)] = (kind, bytes(data or b""))
        rows = self._rows(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata"
            " FROM checkpoints WHERE thread_id = ?"
            ' ORDER BY checkpoint_ns COLLATE "C", checkpoint_id COLLATE "C"',
            thread,
        )
        return [
            CheckpointRow(space, name, parent, partial(_load_postgres, space, state, about, blobs))
            for space, name, parent, state, about in rows
        ]

    def _streamed(self, sql: str) -> Iterator[Any]:
        with self._connection.cursor("items") as cursor:
            cursor.itersize = _ROWS
            yield from cursor.execute(sql)


_Blobs = dict[tuple[str, ...], tuple[str, bytes]]


def _load_postgres(
    namespace: str,
    state: dict[str, Any],
    metadata: dict[str, Any],
    blobs: _Blobs,
    serde: SerializerProtocol,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Join a state with the values of its channels; small ones stand in the state itself."""
    values = dict(state.get("channel_values") or {})
    for channel, version in state["channel_versions"].items():
        if (stored := blobs.get((namespace, channel, str(version)))) is not None:
            values[channel] = serde.loads_typed(stored)
    return {**state, "channel_values": values}, metadata


def open_source(given: str) -> ImportSource:
    """Open a file of `SqliteSaver` or `SqliteStore`, or a database by its `postgresql://` URL.

    Raises:
        InvalidRecordError: it has no tables of LangGraph.
        StoreUnavailableError: the server does not answer.
        MissingExtraError: its driver is not installed.
    """
    if not is_url(given):
        source: ImportSource = SqliteSource(Path(given))
    elif given.startswith(("postgres://", "postgresql://")):
        source = PostgresSource(given)
    else:
        raise InvalidRecordError(
            field="source",
            value=without_secret(given),
            reason="must be a file, or a URL such as postgresql://host/database",
        )
    if source.has_checkpoints or source.has_items:
        return source
    source.close()
    raise InvalidRecordError(
        field="source",
        value=without_secret(given),
        reason="must have tables of LangGraph's savers or stores",
    )
