"""Salvage of a damaged SQLite file: every row that can still be read, into a new file.

SQLite stops where it cannot read a page. So a table is read from both ends, and then in parts
between what cannot be read. A row that cannot have been written is left out, but a changed
character in a text is not noticed: SQLite keeps no checksums.
"""

import contextlib
import itertools
import json
import re
import shutil
import sqlite3
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any, get_args

import numpy as np

from ...errors import CannotMoveError, SchemaMismatchError
from ...types import ORIGINS, Kind
from ..shared import rows
from . import index, namespaces, record_tables
from .checkpoints import SqliteCheckpoints
from .connection import SCHEMA, SqliteConnection
from .graph import SqliteGraph
from .integrity import opened_unchanged
from .journal import SqliteJournal

Row = tuple[Any, ...]
Progress = Callable[[str, int, int | None], None]
_MAX_ROWID = 2**63 - 1
_PROGRESS_ROWS = 1_000
_PROBES = 5_000  # parts of a table that are looked at for rows between unreadable pages
_DEFAULT_PAGE = 4096  # bytes, as the engine makes its files
_OF_THE_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)
_DERIVED = {"tally", "source", "namespace"}  # a trigger fills the first, and records the others
# What is dropped where something was lost, in this order: rows of a table whose column is not among
# these. Nothing could erase them, or they would belong to whatever is given the lost id next.
_RECORDS, _RELATIONS, _ENTITIES, _THREADS = (
    f"SELECT id FROM {table}" for table in ("record", "relation", "entity", "thread")
)
_NEEDS = (
    ("version", "record", _RECORDS),
    ("recall", "record", _RECORDS),
    ("relation", "subject", _ENTITIES),
    ("relation", "object", _ENTITIES),
    ("support", "relation", _RELATIONS),
    ("support", "record", _RECORDS),
    ("relation", "id", "SELECT relation FROM support"),
    ("entity", "id", "SELECT subject FROM relation UNION SELECT object FROM relation"),
    ("pair", "entity", _ENTITIES),
    ("checkpoint", "thread", _THREADS),
    ("channel_value", "thread", _THREADS),
    ("task_write", "thread", _THREADS),
)
_FIRST = ("record", "relation", "entity", "thread")  # by their ids rows of others are found
_IDS = ("user_id", "agent_id", "session_id")
_TIMES = {
    "at", "created_at", "updated_at", "occurred_at", "valid_to", "expires_at", "expired_at",
    "last_told_at", "first_at", "last_at",
}  # fmt: skip
_JSON = {"metadata", "conflicts", "sources", "retracted", "deltas", "versions", "payload"}
_KINDS = get_args(Kind)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_POINTS = re.compile(r"point(_\d+)?", re.ASCII)
_IS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
_MOST_WEIGHT = 1000.0
_UNIT = 1e-3  # that the square of a vector's length may differ from 1
# A point that is written next must get a number above those of all that are there.
_COUNT_CHANGES = """
INSERT INTO {point}_change SELECT partition, max(change), 0 FROM {point} WHERE TRUE
GROUP BY partition ON CONFLICT (partition) DO UPDATE SET written = max(written, excluded.written)
"""
_PLAIN = {"record", "version", "entity", "relation"}  # no text in these has a NUL


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSalvage:
    """What was salvaged of a table.

    Attributes:
        read: rows that are in the new file.
        lost: rows that are not; 0 where rows were lost that cannot be counted.
        complete: nothing of the table was unreadable or left out.
    """

    table: str
    read: int
    lost: int
    complete: bool


def salvage(source: Path, target: Path, progress: Progress | None = None) -> list[TableSalvage]:
    """Copy what can be read of a damaged file into a new one; the damaged one stays as it is.

    Args:
        target: a file that does not exist.
        progress: is called with a table, how many of its rows are done, and of how many, as far as
            they can be counted.

    Returns:
        One for each table that is read from the file, by name.

    Raises:
        CannotMoveError: nothing can be read, not even which tables there are.
        SchemaMismatchError: the file was made by another version of the schema.
    """
    try:
        with _openable(source, target) as file, opened_unchanged(file) as damaged:
            _check_schema(damaged)
            lengths = _make_tables(target, _read_generations(damaged))
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as new:
                found = _copy_all(damaged, new, lengths, progress)
                new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # Unicode: of a damaged schema
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK:
            raise OSError(f"{target}: {error}") from error
        raise CannotMoveError(
            store=str(source),
            reason=f"cannot be read at all ({error})",
            hint="Give another copy of the file, or restore a backup.",
        ) from error
    return found


def _read_generations(damaged: Connection) -> dict[int, dict[str, str]]:
    """Read what each generation of the index was made with, as far as that can be read."""
    found: dict[int, dict[str, str]] = {}
    with contextlib.suppress(sqlite3.DatabaseError):
        for key, value in damaged.execute("SELECT key, value FROM meta NOT INDEXED"):
            if parsed := index.parse_meta(str(key), str(value)):
                found[parsed[0]] = parsed[1]
    return found


def _make_tables(path: Path, generations: Mapping[int, dict[str, str]]) -> dict[str, int]:
    """Make a new file with all tables of the engines; return the dimensions by table of points.

    Args:
        generations: of the index, by number. Vectors of an unknown embedder could not be used.
    """
    connection = SqliteConnection(str(path))
    with contextlib.ExitStack() as engines:
        for engine in (SqliteGraph, SqliteJournal, SqliteCheckpoints):
            engines.callback(engine(connection).close)
        for number, meta in generations.items():
            size = int(meta["dimensions"])
            made = index.SqliteIndex(connection, dimensions=size, meta=meta, generation=number)
            engines.callback(made.close)
    return {index.table_name(n): int(meta["dimensions"]) for n, meta in generations.items()}


_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


@contextlib.contextmanager
def _openable(source: Path, target: Path) -> Iterator[Path]:
    """Provide a file that SQLite opens, with the pages of the damaged one.

    It refuses a file without its header, and one that is shorter than the header says: then it is a
    copy with the header of a new file, filled up with empty pages.
    """
    with source.open("rb") as stream:
        header = bytearray(stream.read(_HEADER_BYTES))
    size = source.stat().st_size
    has_header = header.startswith(_MAGIC) and len(header) == _HEADER_BYTES
    page = _page_size(header) if has_header else _DEFAULT_PAGE
    pages = int.from_bytes(header[28:32]) if has_header else -(-size // page)
    if has_header and pages * page <= size:
        yield source
        return
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy = Path(folder) / source.name
        shutil.copyfile(source, copy)
        log = source.with_name(f"{source.name}-wal")
        if has_header and log.exists():
            shutil.copyfile(log, copy.with_name(log.name))
        if not has_header:
            new = Path(folder) / "new.db"
            SqliteConnection(str(new)).close()
            header = bytearray(new.read_bytes()[:_HEADER_BYTES])
            header[28:32] = pages.to_bytes(4)
        with copy.open("r+b") as stream:
            stream.truncate(pages * page)
            stream.write(header)
        yield copy


def _page_size(header: bytearray) -> int:
    size = int.from_bytes(header[16:18])
    return 65536 if size == 1 else size


def _check_schema(damaged: Connection) -> None:
    """Check the version of the schema, and first of all that there are tables."""
    damaged.text_factory = _to_text
    damaged.execute("SELECT name, sql FROM sqlite_master").fetchall()
    stored = None
    with contextlib.suppress(sqlite3.DatabaseError):
        sql = "SELECT value FROM meta WHERE key = 'schema'"
        stored = next((value for (value,) in damaged.execute(sql)), None)
    if stored not in (None, SCHEMA):
        raise SchemaMismatchError(what="schema version", stored=stored, wanted=SCHEMA)


def _to_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")  # an error would end the reading of a table


def _copy_all(
    damaged: Connection,
    new: Connection,
    lengths: Mapping[str, int],
    progress: Progress | None,
) -> list[TableSalvage]:
    """Copy all tables."""
    new.execute("PRAGMA secure_delete = ON")
    new.execute("PRAGMA synchronous = OFF")  # the whole file is synced at the end
    new.execute("PRAGMA cache_size = -100000")  # KiB; the indexes are written in no order
    new.execute("BEGIN IMMEDIATE")
    names = [str(name) for (name,) in new.execute(_TABLES) if name not in _DERIVED]
    ordered = sorted(names, key=lambda name: (name not in _FIRST, name))
    found: dict[str, TableSalvage] = {}
    for name in ordered:
        found[name] = _TableCopy(damaged, new, name, lengths.get(name)).run(progress)
    _copy_sequences(damaged, new)
    dropped = _drop_orphans(new, found, lengths)
    for points in lengths:
        new.execute(_COUNT_CHANGES.format(point=points))
    namespaces.rebuild(new)
    new.execute(record_tables.FILL_SOURCES)
    new.execute("COMMIT")
    for name, number in dropped.items():
        copied = found[name]
        is_countable = copied.complete or copied.lost
        found[name] = TableSalvage(
            table=name,
            read=copied.read - number,
            lost=copied.lost + number if is_countable else 0,
            complete=copied.complete and not number,
        )
    return [found[name] for name in sorted(found)] + _unusable_points(damaged, lengths)


def _unusable_points(damaged: Connection, lengths: Mapping[str, int]) -> list[TableSalvage]:
    """Count the vectors whose embedder is unknown, which are not copied."""
    lost = []
    for (name,) in damaged.execute(_TABLES).fetchall():
        if _POINTS.fullmatch(name) and name not in lengths:
            number = 0
            with contextlib.suppress(sqlite3.DatabaseError):
                number = _count(damaged, name)
            lost.append(TableSalvage(table=name, read=0, lost=number, complete=False))
    return lost


class _TableCopy:
    """The copy of one table.

    Args:
        dimensions: of the vectors of a table of points; None for another table.
    """

    def __init__(
        self, damaged: Connection, new: Connection, table: str, dimensions: int | None
    ) -> None:
        self._damaged, self._new, self._table = damaged, new, table
        self._dimensions = dimensions
        info = new.execute(f"PRAGMA table_info({table})").fetchall()
        held = {row[1] for row in info}
        # An earlier version made fewer columns; the rest has a default.
        with contextlib.suppress(sqlite3.DatabaseError):
            held = {row[1] for row in damaged.execute(f"PRAGMA table_info({table})")} or held
        self._columns: list[str] = [row[1] for row in info if row[1] in held]
        self._key: list[str] = [row[1] for row in sorted(info, key=lambda r: r[5]) if row[5]]
        has_alias = len(self._key) == 1 and info[0][2] == "INTEGER" and info[0][5] == 1
        # An earlier version made some tables without.
        self._has_rowid: bool = _has_rowid(new, table) and _has_rowid(damaged, table)
        if self._has_rowid:
            self._key = [self._columns[0] if has_alias else "rowid"]
            self._columns = list(dict.fromkeys([*self._key, *self._columns]))
        self._names = ", ".join(self._columns)
        self._is_broken = False
        self._left_out = 0

    def run(self, progress: Progress | None) -> TableSalvage:
        """Copy all that can be read."""
        total = (self._expected() or None) if progress else None
        made = self._new.execute(f"SELECT {self._names} FROM {self._table}").fetchall()
        if made:  # what is in every new file stays only where the damaged one has nothing
            self._new.execute(f"DELETE FROM {self._table}")
        rows_ = self._numbered() if self._has_rowid else self._keyed()
        for number, row in enumerate(rows_, start=1):  # some of them twice
            self._left_out += not self._store(row)
            if progress and number % _PROGRESS_ROWS == 0:
                progress(self._table, number, total)
        read = _count(self._new, self._table)
        if progress:
            progress(self._table, read, total)
        for row in made:
            self._store(row)
        if self._is_broken:  # some rows were seen twice
            self._left_out = 0
        lost = max(self._expected() - read, self._left_out)
        complete = not (self._is_broken or lost)
        return TableSalvage(table=self._table, read=read, lost=lost, complete=complete)

    def _store(self, row: Row) -> bool:
        """Store a row unless it is there or cannot be right."""
        named = dict(zip(self._columns, row, strict=True))
        if not _is_sound(self._table, named, self._dimensions):
            return False
        marks = ", ".join("?" * len(row))
        sql = f"INSERT OR IGNORE INTO {self._table} ({self._names}) VALUES ({marks})"
        try:
            return self._new.execute(sql, row).rowcount > 0
        except (sqlite3.IntegrityError, OverflowError):
            return False

    def _numbered(self) -> Iterator[Row]:
        """Read all rows that can be read by number, breadth first between what cannot be read."""
        holes = deque([(-1, _MAX_ROWID)])  # each begins after its first number
        for _ in range(_PROBES):
            if not holes:
                return
            low, high = holes.popleft()
            low, is_broken = yield from self._range(low, high, "ASC")
            if is_broken:
                after, _ = yield from self._range(low, high, "DESC")
                holes.extend(_split(low, after - 1))

    def _range(self, low: int, high: int, order: str) -> Generator[Row, None, tuple[int, bool]]:
        """Read a range up to what cannot be read; return its last row, and whether that is so."""
        key = self._key[0]
        last = low if order == "ASC" else high + 1
        sql = f"NOT INDEXED WHERE {key} > ? AND {key} <= ? ORDER BY {key} {order}"
        found = self._read(sql, (low, high))
        while True:
            try:
                row = next(found)
            except StopIteration as stop:
                return last, bool(stop.value)
            if not (last < row[0] <= high if order == "ASC" else low < row[0] < last):
                self._is_broken = True  # the order of the pages is damaged
                return last, True
            last = row[0]
            yield row

    def _keyed(self) -> Iterator[Row]:
        if not (yield from self._both_ways("", ())):
            return
        first = self._key[0]
        for table, column, ids in _NEEDS:
            if (table, column) == (self._table, first):
                for (value,) in self._new.execute(ids).fetchall():
                    yield from self._both_ways(f"WHERE {first} = ?", (value,))

    def _both_ways(self, where: str, values: Sequence[object]) -> Generator[Row, None, bool]:
        forwards = ", ".join(self._key)
        backwards = ", ".join(f"{column} DESC" for column in self._key)
        is_broken = yield from self._read(f"{where} ORDER BY {forwards}", values)
        if is_broken:
            yield from self._read(f"{where} ORDER BY {backwards}", values)
        return is_broken

    def _read(self, rest: str, values: Sequence[object]) -> Generator[Row, None, bool]:
        """Read rows up to the first that cannot be read; return whether there is one."""
        try:
            sql = f"SELECT {self._names} FROM {self._table} {rest}"
            yield from self._damaged.execute(sql, values)
        except sqlite3.DatabaseError:
            self._is_broken = True
            return True
        return False

    def _expected(self) -> int:
        """Count the rows by those of their indexes that can be read."""
        counts = [0]
        for row in self._new.execute(f"PRAGMA index_list({self._table})").fetchall():
            name, is_partial = row[1], row[4]
            if is_partial:
                continue
            sql = f"SELECT count(*) FROM {self._table} INDEXED BY {name}"
            with contextlib.suppress(sqlite3.DatabaseError):
                counts.append(int(self._damaged.execute(sql).fetchone()[0]))
        return max(counts)


def _has_rowid(connection: Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _split(low: int, high: int) -> list[tuple[int, int]]:
    """Split a range at places that come closer to each other towards its ends."""
    half = (high - low) // 2
    steps = [2**n for n in range(half.bit_length())]
    edges = [low, *sorted({low + step for step in steps} | {high - step for step in steps}), high]
    return list(itertools.pairwise(edges)) if steps else []


def _is_sound(table: str, row: Mapping[str, Any], dimensions: int | None) -> bool:
    """Tell whether the engines can read a row: a damaged one would make every listing fail."""
    try:
        if all(name in row for name in _IDS) and any(row[name] is not None for name in _IDS):
            rows.to_scope(*(row[name] for name in _IDS))
        for name, value in row.items():
            if isinstance(value, str):
                value.encode()
                if table in _PLAIN and "\x00" in value:
                    return False
                if name in _JSON or (table, name) == ("record", "namespace"):
                    json.loads(value)
            elif name in _TIMES:
                rows.from_micros(value)
            elif name == "valid_from":
                rows.from_beginning(value)
        if dimensions is not None and not _is_sound_point(row, dimensions):
            return False
        if table == "meta" and not _is_sound_meta(row["key"], row["value"]):
            return False
    except (ValueError, TypeError, OverflowError):
        return False
    return table != "record" or (row["kind"] in _KINDS and row["origin"] in ORIGINS)


def _is_sound_meta(key: str, value: str) -> bool:
    if key == "generation":
        return value.isdecimal()
    return not key.startswith("index") or index.parse_meta(key, value) is not None


def _is_sound_point(row: Mapping[str, Any], dimensions: int) -> bool:
    """Tell whether the index can load a point: a damaged one would make every search fail."""
    raw = [row["vector"], *(vector for vector, _ in rows.unpack_passages(row.get("passages", b"")))]
    if len(row["terms"]) != len(row["weights"]) or {*map(len, raw)} != {4 * dimensions}:
        return False
    with np.errstate(all="ignore"):  # damaged numbers may be infinite or none at all
        table = np.frombuffer(b"".join(raw), "<f4").astype(np.float64)
        squares = np.square(table.reshape(-1, dimensions)).sum(axis=1)
    terms, weights = np.frombuffer(row["terms"], "<u4"), np.frombuffer(row["weights"], "<f4")
    return (
        row["partition"] == rows.to_scope(*(row[name] for name in _IDS)).partition
        and 0 <= row["words"] < 2**31
        and bool((terms[1:] > terms[:-1]).all())
        and bool(((weights > 0) & (weights < _MOST_WEIGHT)).all())
        and bool((np.abs(squares - 1) < _UNIT).all())
    )


def _copy_sequences(damaged: Connection, new: Connection) -> None:
    """Keep numbers that were given out from being given out again."""
    with contextlib.suppress(sqlite3.DatabaseError):
        for name, last in damaged.execute("SELECT name, seq FROM sqlite_sequence").fetchall():
            known = new.execute("SELECT 1 FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
            if not known and new.execute(_IS_TABLE, (name,)).fetchone():
                new.execute("INSERT INTO sqlite_sequence VALUES (?, 0)", (name,))
            sql = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ? AND ? > 0"
            if isinstance(last, int):
                new.execute(sql, (last, name, last))


def _drop_orphans(
    new: Connection, found: Mapping[str, TableSalvage], points: Iterable[str]
) -> Counter[str]:
    """Drop rows that lack what they need, if something was lost; count them by table."""
    dropped: Counter[str] = Counter()
    if not all(salvaged.complete for salvaged in found.values()):
        for table, column, ids in (*_NEEDS, *((table, "record", _RECORDS) for table in points)):
            if table in found:
                sql = f"DELETE FROM {table} WHERE {column} NOT IN ({ids})"
                dropped[table] += new.execute(sql).rowcount
    return dropped


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
