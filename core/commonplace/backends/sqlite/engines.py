"""Engines of one SQLite file, which can change in one transaction."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any, TypeVar

from ...errors import StoreUnavailableError
from ...ports.stores import Engines
from .connection import SqliteConnection, TransactionHandle

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteEngines(Engines):
    """Engines that share a connection; `Transactional`."""

    connection: SqliteConnection

    @classmethod
    def of(cls, engines: Engines, connection: SqliteConnection) -> "SqliteEngines":
        """Bundle engines of one connection."""
        return cls(
            index=engines.index,
            graph=engines.graph,
            journal=engines.journal,
            checkpoints=engines.checkpoints,
            connection=connection,
        )

    def transact(self, work: Callable[[Engines], T]) -> T:
        """Run `work` in one write transaction; return its result when that is on the disk."""
        handles: list[TransactionHandle] = []

        def change(connection: Connection) -> T:
            handles.append(handle := TransactionHandle(connection))
            return work(
                replace(
                    self,
                    index=_bound(self.index, handle),
                    graph=_bound(self.graph, handle),
                    journal=_bound(self.journal, handle),
                    checkpoints=_bound(self.checkpoints, handle),
                )
            )

        done = self.connection.write(change)
        if handles[-1].truncates:
            self.connection.truncate_log()
            with contextlib.suppress(StoreUnavailableError):  # it is tried again
                self.connection.finish_erasures(is_idle=False)
        return done

    def finish_erasures(self, *, is_idle: bool) -> None:
        """Remove the bytes of erased text that are left."""
        self.connection.finish_erasures(is_idle=is_idle)

    def reclaim(self) -> bool:
        """Give some free space back to the file system; False if there is little of it."""
        return self.connection.reclaim()


def _bound(engine: Any, handle: TransactionHandle) -> Any:
    """Copy an engine of the connection, to work in the transaction of the handle."""
    bound = object.__new__(type(engine))  # as `copy.copy`, several times quicker
    bound.__dict__ |= engine.__dict__ | {"_handle": handle}
    return bound
