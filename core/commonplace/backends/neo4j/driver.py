"""Neo4j driver with sessions, timed transactions, and this package's errors."""

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...errors import (
    CommonplaceError,
    InvalidRecordError,
    MemoryClosedError,
    MissingExtraError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from ...ports.stores import crash_point
from . import queries

try:
    import neo4j
    from neo4j import exceptions
except ImportError as error:
    raise MissingExtraError(package="neo4j", extra="neo4j") from error

# Else the driver's own words for an error stand on the terminal above ours.
logging.getLogger("neo4j").addHandler(logging.NullHandler())

T = TypeVar("T")
RunQuery = Callable[..., list[dict[str, Any]]]  # a text and its parameters in a transaction

SCHEMA = "4"
_URI = re.compile(r"(neo4j|bolt)(\+s|\+ssc)?://[^/]")
_PREFIX = re.compile(r"[A-Z][A-Za-z0-9]{0,31}")
_OLDEST = (5, 23)  # the first that supports the texts of `queries`
_INDEX_TIMEOUT, _INDEX_PAUSE = 60.0, 0.05  # seconds until all indexes are populated, between looks
_TRANSACTION_TIMEOUT = 30.0  # seconds, including the wait for locks
# An agent waits for the result, so everything times out sooner than with the driver's defaults.
_OPTIONS: Mapping[str, Any] = {
    "connection_timeout": 3.0,
    "connection_acquisition_timeout": 5.0,
    "max_transaction_retry_time": 5.0,
    "max_connection_lifetime": 300,
    "liveness_check_timeout": 30.0,
    "max_connection_pool_size": 50,
    "telemetry_disabled": True,
    "notifications_min_severity": "OFF",
}


class Neo4jDriver:
    """An open database; missing constraints and indexes are made. Raises as `Neo4jGraph`."""

    def __init__(
        self,
        uri: str,
        *,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        prefix: str = "Commonplace",
        options: Mapping[str, Any] = {},
    ) -> None:
        self._store = _without_password(uri)
        if not _URI.match(uri):
            raise _refused(self._store)
        if not _PREFIX.fullmatch(prefix):
            raise InvalidRecordError(
                field="prefix",
                value=prefix,
                reason="must be a capital letter and up to 31 letters and digits",
            )
        self._database = database
        self._prefix = prefix
        self._pid = os.getpid()
        self._closed = False
        with self._translated():
            self._driver = neo4j.GraphDatabase.driver(uri, auth=auth, **{**_OPTIONS, **options})
        self._bookmarks = neo4j.GraphDatabase.bookmark_manager()
        try:
            with self._translated():
                # Not retried, so that a failure is reported at once.
                check_server(self._driver.get_server_info().agent)
            self._prepare()
        except BaseException:
            self.close()
            raise

    def read(self, work: Callable[[RunQuery], T]) -> T:
        """Run `work` in a read transaction; it may run more than once."""
        with self._session() as session:
            return session.execute_read(self._timed(work))

    def write(self, work: Callable[[RunQuery], T]) -> T:
        """Run `work` in a write transaction; it may run again, even after it was committed.

        Raises:
            StoreUnavailableError: the transaction may have been committed all the same.
        """

        def change(run: RunQuery) -> T:
            result = work(run)
            crash_point("before_commit")
            return result

        try:
            with self._session() as session:
                done = session.execute_write(self._timed(change))
        except StoreUnavailableError as error:
            if not isinstance(error.__cause__, exceptions.IncompleteCommit):
                raise
            with self._session() as session:  # the driver does not retry after an unknown outcome
                done = session.execute_write(self._timed(change))
        crash_point("after_commit")
        return done

    def close(self) -> None:
        """Close all connections; repeating it does nothing."""
        if not self._closed:
            self._closed = True
            if os.getpid() == self._pid:
                self._driver.close()

    @contextlib.contextmanager
    def _session(self) -> Iterator[neo4j.Session]:
        if self._closed or os.getpid() != self._pid:
            raise MemoryClosedError
        options: dict[str, Any] = {"bookmark_manager": self._bookmarks}
        if self._database is not None:
            options["database"] = self._database
        with self._translated(), self._driver.session(**options) as session:
            yield session

    def _timed(self, work: Callable[[RunQuery], T]) -> Callable[[neo4j.ManagedTransaction], T]:
        def timed(transaction: neo4j.ManagedTransaction) -> T:
            def run(text: str, **parameters: Any) -> list[dict[str, Any]]:
                full = queries.labelled(text, self._prefix)
                # Not `data()`, which reads every byte of every value; no text returns a node.
                return [dict(row) for row in transaction.run(full, parameters)]

            return work(run)

        return neo4j.unit_of_work(timeout=_TRANSACTION_TIMEOUT)(timed)

    def _prepare(self) -> None:
        schema = queries.schema(self._prefix)

        def create(run: RunQuery) -> None:
            for name in missing:
                run(schema[name])

        is_new = False
        deadline = time.monotonic() + _INDEX_TIMEOUT
        while missing := [name for name in schema if name not in (states := self._index_states())]:
            is_new = True
            try:
                self.write(create)
            except exceptions.ClientError as error:
                if "AlreadyExists" not in str(error.code) or time.monotonic() > deadline:
                    raise
                # Another process is making the same constraint, and may yet have to take it back.
                time.sleep(_INDEX_PAUSE)
        self._await_indexes(states, schema)
        if is_new:  # of a store that a former pre-release made, perhaps
            self.write(lambda run: run(queries.FILL_SESSIONS))
        [row] = self.write(lambda run: run(queries.SCHEMA_META, schema=SCHEMA))
        if row["value"] != SCHEMA:
            raise SchemaMismatchError(what="schema version", stored=row["value"], wanted=SCHEMA)

    def _index_states(self) -> dict[str, str]:
        """Read the state of every index of the database by its name."""
        found = self.read(lambda run: run(queries.SHOW_INDEXES))
        return {row["name"]: row["state"] for row in found}

    def _await_indexes(self, states: Mapping[str, str], names: Collection[str]) -> None:
        """Wait until the indexes of these names are online: no query may name one before.

        Not by a procedure of the server: that one waits for all indexes, also for those of a
        constraint that another process is about to make, which waits for this transaction.
        """
        deadline = time.monotonic() + _INDEX_TIMEOUT
        while late := [name for name in names if states.get(name) != "ONLINE"]:
            if time.monotonic() > deadline:
                reason = f"the indexes {', '.join(late)} are not online"
                raise StoreUnavailableError(store=self._store, reason=reason)
            time.sleep(_INDEX_PAUSE)
            states = self._index_states()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except CommonplaceError:
            raise
        except (exceptions.AuthError, exceptions.Forbidden) as error:
            raise StoreRefusedError(store=self._store, reason=str(error.message)) from error
        except exceptions.ConfigurationError as error:
            raise _refused(self._store, error) from error
        except exceptions.ConstraintError as error:
            reason = "another process made the same node"
            raise StoreUnavailableError(store=self._store, reason=reason) from error
        except exceptions.ClientError as error:
            if re.search(r"Security\.(?!AuthenticationRateLimit)", str(error.code)):
                raise StoreRefusedError(store=self._store, reason=str(error.message)) from error
            if not re.search("Database|Security|TransactionTimedOut|Terminated", str(error.code)):
                raise  # a bug in our texts, which a retry would not fix
            raise StoreUnavailableError(store=self._store, reason=str(error.message)) from error
        except exceptions.Neo4jError as error:
            raise StoreUnavailableError(store=self._store, reason=str(error.message)) from error
        except exceptions.DriverError as error:
            reason = str(error) or type(error).__name__
            if type(error) is exceptions.ServiceUnavailable:
                reason = (
                    f"no Neo4j server answers at {_address(self._store)} ({_first_cause(error)}). "
                    "Start it, or give the right host and port in graph=URL"
                )
            raise StoreUnavailableError(store=self._store, reason=reason) from error
        except OSError as error:
            raise StoreUnavailableError(store=self._store, reason=str(error)) from error


def check_server(agent: str) -> None:
    """Refuse a server that is too old, by its agent string, such as `Neo4j/5.26.0`."""
    known = re.match(r"Neo4j/(\d+)\.(\d+)", agent)
    if known and (int(known[1]), int(known[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise InvalidRecordError(
            field="server", value=agent, reason="is too old", hint=f"Use Neo4j {oldest} or newer."
        )


def _refused(uri: str, why: object = "unknown scheme") -> InvalidRecordError:
    hint = "Give a URI like neo4j://host:7687 or neo4j+s://host, and options of the driver."
    return InvalidRecordError(field="uri", value=uri, reason=f"is refused: {why}", hint=hint)


def _address(uri: str) -> str:
    """Name host and port of a URI without a password."""
    parts = urlsplit(uri)
    return parts.netloc if parts.port else f"{parts.netloc}:7687"


def _first_cause(error: BaseException) -> str:
    """Say why a connection failed: the driver wraps that in groups and in errors of its own."""
    while cause := error.exceptions[0] if isinstance(error, ExceptionGroup) else error.__cause__:
        error = cause
    return getattr(error, "strerror", None) or str(error).rpartition("\n")[2]


def _without_password(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
