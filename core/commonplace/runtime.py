"""One open location: its engines, threads and worker, shared by all memories of a process."""

import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Generator, Iterator

from .backends import open_engines
from .concurrency import BoundedExecutor, end_idle_threads
from .errors import CommonplaceError, SchemaMismatchError
from .ingest.planning import Models
from .ingest.worker import IngestWorker
from .ports.stores import Engines
from .retrieval.calibration import Calibration
from .retrieval.decay import AccessLog
from .retrieval.lexical import VERSION, describe
from .settings import Location, Settings

_open: dict[Location, "Runtime"] = {}
_locks: dict[tuple[str, ...], threading.Lock] = {}  # opening and closing take time: a lock each
_CALLS = 8  # of a kind at once, so that none waits behind a slow one of another kind
_EXIT_SECONDS = 5.0
_log = logging.getLogger("commonplace")


class Runtime:
    """The engines and threads of one location, with a count of the memories that use it."""

    def __init__(self, location: Location, settings: Settings, models: Models) -> None:
        self.embedder_id: str = models.embedder.id
        self.calibration: Calibration = Calibration(self.embedder_id)
        self.location = location
        self._references = 0
        self.pid: int = os.getpid()
        self.engines: Engines = open_engines(location, settings, models.embedder, VERSION)
        self.worker: IngestWorker = IngestWorker(self.engines, settings, models, describe)
        self.readers: BoundedExecutor = BoundedExecutor("read", _CALLS)
        # Apart, as a search may wait for an embedder.
        self.searchers: BoundedExecutor = BoundedExecutor("search", _CALLS)
        self.writers: BoundedExecutor = BoundedExecutor("write", _CALLS)
        self.access_log: AccessLog = AccessLog(self.engines.graph, self.readers.submit)
        try:
            self.worker.start()
            if _lost_index(self.engines):
                _log.warning(
                    "%s has records and an empty index: run `commonplace reindex`", location
                )
        except BaseException:
            self._close(0)
            raise

    @classmethod
    def open(cls, location: Location, settings: Settings, models: Models) -> "Runtime":
        """Open a location, or share it when this process has it open."""
        with _locks.setdefault(location.names, threading.Lock()):
            runtime = _open.get(location)
            if runtime is None:
                runtime = _open[location] = cls(location, settings, models)
            elif runtime.embedder_id != models.embedder.id:
                raise SchemaMismatchError(
                    what="the embedder", stored=runtime.embedder_id, wanted=models.embedder.id
                )
            runtime._references += 1
            return runtime

    def release(self, timeout: float) -> None:
        """Give up one reference; the last one finishes the writes and closes the engines."""
        if os.getpid() != self.pid:
            return
        with _locks[self.location.names]:
            self._references -= 1
            if self._references:
                return
            _open.pop(self.location, None)
            self._close(timeout)
        if not _open:
            end_idle_threads()

    def _close(self, timeout: float) -> None:
        engines = self.engines
        with contextlib.ExitStack() as closing:  # each, also where another one fails
            for engine in (engines.graph, engines.checkpoints, engines.journal, engines.index):
                if not self.location.is_given(engine):
                    closing.callback(engine.close)
                elif engine is engines.index:
                    closing.callback(engines.index.flush)
            for executor in (self.readers, self.searchers, self.writers):
                closing.callback(executor.shutdown, wait=False)
            closing.callback(self._flush_access_log)
            self.worker.close(timeout)

    def _flush_access_log(self) -> None:
        with contextlib.suppress(CommonplaceError):  # only recalls are lost
            self.access_log.flush()


def _lost_index(engines: Engines) -> bool:
    return not _any(engines.index.versions(None)) and _any(engines.graph.versions(None))


def _any(walk: Iterator[object]) -> bool:
    found = next(walk, walk) is not walk
    if isinstance(walk, Generator):
        walk.close()  # and let go of what it reads from
    return found


def _forget_parent() -> None:
    """Forget in a forked child what its parent has open: its threads are not here."""
    _open.clear()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


def _finish_all() -> None:
    """Apply what was accepted while threads can be started."""
    for runtime in list(_open.values()):
        with contextlib.suppress(CommonplaceError):  # the journal has everything
            runtime.worker.flush(_EXIT_SECONDS, elsewhere=False)
        runtime.writers.shutdown(wait=True)  # a write may not be in the journal yet


# When `atexit` runs, no thread can be started any more. Python's own pools use this hook too, and
# functions that were registered last are called first.
getattr(threading, "_register_atexit", atexit.register)(_finish_all)


@atexit.register
def _close_all() -> None:
    for runtime in list(_open.values()):
        with contextlib.suppress(CommonplaceError):  # the journal has everything
            runtime._close(0.0)  # noqa: SLF001 -- this module's own
    _open.clear()
