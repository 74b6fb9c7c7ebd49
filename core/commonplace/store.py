"""One open place: its engines and its writer, shared by all memories of a process that open it."""

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from .backends import open_engines
from .errors import CommonplaceError, SchemaMismatch
from .exchange import Terms
from .pipeline.lexical import VERSION, count_words, document_terms
from .planner import Models
from .recalls import Recalls
from .settings import Settings
from .writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

_open: dict[Path, "Store"] = {}
_doors: dict[Path, threading.Lock] = {}  # opening and closing a place takes time: one lock for each
_EXIT_SECONDS = 5.0


class Store:
    """The engines of one folder, with a thread pool for reads; counted by who uses it."""

    def __init__(self, path: Path, settings: Settings, models: Models) -> None:
        self.embedder_id = models.embedder.id
        self._path = path
        self._users = 0
        self.pid = os.getpid()
        self.engines = open_engines(path, models.embedder, VERSION)
        self.writer = Writer(self.engines, settings, models, _describe)
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="commonplace-read")
        self.recalls = Recalls(self.engines.graph, self._pool.submit)
        try:
            self.writer.recover()
        except BaseException:
            self._close(0)
            raise

    @classmethod
    def open(cls, path: str, settings: Settings, models: Models) -> "Store":
        """Open a folder, or take part in it when this process has it open."""
        place = Path(path).expanduser().resolve()
        with _doors.setdefault(place, threading.Lock()):
            store = _open.get(place)
            if store is None:
                store = _open[place] = cls(place, settings, models)
            elif store.embedder_id != models.embedder.id:
                raise SchemaMismatch(
                    what="the embedder", stored=store.embedder_id, wanted=models.embedder.id
                )
            store._users += 1
            return store

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run storage code on a thread of ours and await it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(call, *args, **kwargs))

    def release(self, timeout: float) -> None:
        """Take part no longer; the last one out finishes the writes and closes the engines."""
        if os.getpid() != self.pid:
            return
        with _doors[self._path]:
            self._users -= 1
            if self._users:
                return
            _open.pop(self._path, None)
            self._close(timeout)

    def _close(self, timeout: float) -> None:
        self.writer.close(timeout)
        with contextlib.suppress(CommonplaceError):  # only recalls are lost
            self.recalls.flush()
        self._pool.shutdown(wait=False)
        self.engines.index.close()
        self.engines.journal.close()
        self.engines.graph.close()


def _describe(text: str) -> tuple[Terms, int]:
    return document_terms(text), count_words(text)


def _leave_to_parent() -> None:
    """Forget in a forked child what its parent has open: its threads are not here."""
    _open.clear()
    _doors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


@atexit.register
def _close_all() -> None:
    for store in list(_open.values()):
        with contextlib.suppress(CommonplaceError):  # the journal has everything
            store._close(_EXIT_SECONDS)  # noqa: SLF001 -- this module's own
    _open.clear()
