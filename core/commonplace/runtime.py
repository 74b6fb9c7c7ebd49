"""One open place: its engines and its writer, shared by all memories of a process that open it."""

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from .backends import open_engines
from .errors import CommonplaceError, SchemaMismatchError
from .ingest.planning import Models
from .ingest.worker import IngestWorker
from .ports.stores import Engines, Terms
from .retrieval.decay import AccessLog
from .retrieval.lexical import VERSION, count_words, document_terms
from .settings import Location, Settings

P = ParamSpec("P")
T = TypeVar("T")

_open: dict[Location, "Store"] = {}
_doors: dict[Location, threading.Lock] = {}  # opening and closing one takes time: a lock for each
_EXIT_SECONDS = 5.0
_log = logging.getLogger("commonplace")


class Store:
    """The engines of one place, with a thread pool for reads; counted by who uses it."""

    def __init__(self, place: Location, settings: Settings, models: Models) -> None:
        self.embedder_id = models.embedder.id
        self.place = place
        self._users = 0
        self.pid = os.getpid()
        self.engines = open_engines(place, settings, models.embedder, VERSION)
        self.writer = IngestWorker(self.engines, settings, models, _describe)
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="commonplace-read")
        self._writers = ThreadPoolExecutor(8, thread_name_prefix="commonplace-write")
        self.recalls = AccessLog(self.engines.graph, self._pool.submit)
        try:
            self.writer.recover()
            if _lost_index(self.engines):
                _log.warning("%s has records and an empty index: run `commonplace reindex`", place)
        except BaseException:
            self._close(0)
            raise

    @classmethod
    def open(cls, place: Location, settings: Settings, models: Models) -> "Store":
        """Open a place, or take part in it when this process has it open."""
        with _doors.setdefault(place, threading.Lock()):
            store = _open.get(place)
            if store is None:
                store = _open[place] = cls(place, settings, models)
            elif store.embedder_id != models.embedder.id:
                raise SchemaMismatchError(
                    what="the embedder", stored=store.embedder_id, wanted=models.embedder.id
                )
            store._users += 1
            return store

    async def run_writes(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may wait for an embedder on threads that no read needs, and await it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writers, partial(call, *args, **kwargs))

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run storage code on a thread of ours and await it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(call, *args, **kwargs))

    def release(self, timeout: float) -> None:
        """Take part no longer; the last one out finishes the writes and closes the engines."""
        if os.getpid() != self.pid:
            return
        with _doors[self.place]:
            self._users -= 1
            if self._users:
                return
            _open.pop(self.place, None)
            self._close(timeout)

    def _close(self, timeout: float) -> None:
        self.writer.close(timeout)
        with contextlib.suppress(CommonplaceError):  # only recalls are lost
            self.recalls.flush()
        self._pool.shutdown(wait=False)
        self._writers.shutdown(wait=False)
        self.engines.index.close()
        self.engines.journal.close()
        self.engines.checkpoints.close()
        self.engines.graph.close()


def _lost_index(engines: Engines) -> bool:
    return not _any(engines.index.versions(None)) and _any(engines.graph.versions(None))


def _any(walk: Iterator[object]) -> bool:
    found = next(walk, walk) is not walk
    if isinstance(walk, Generator):
        walk.close()  # and let go of what it reads from
    return found


def _describe(text: str) -> tuple[Terms, int]:
    return document_terms(text), count_words(text)


def _leave_to_parent() -> None:
    """Forget in a forked child what its parent has open: its threads are not here."""
    _open.clear()
    _doors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _finish_all() -> None:
    """Apply what was accepted while there are threads to do it."""
    for store in list(_open.values()):
        with contextlib.suppress(CommonplaceError):  # the journal has everything
            store.writer.drain(_EXIT_SECONDS)


# Thread pools are gone before `atexit` is asked. Python's own pools use this hook too, and those
# that registered last are called first.
getattr(threading, "_register_atexit", atexit.register)(_finish_all)


@atexit.register
def _close_all() -> None:
    for store in list(_open.values()):
        with contextlib.suppress(CommonplaceError):  # the journal has everything
            store._close(0.0)  # noqa: SLF001 -- this module's own
    _open.clear()
