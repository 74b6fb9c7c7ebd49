"""Memories that are opened on first use, away from the event loop, and shared by their users."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Hashable, MutableMapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from ..concurrency import await_within, start_call
from ..errors import WrongTypeError
from ..settings import Settings, to_folder
from ..types import Scope
from .adapter_arguments import check_memory
from .health import MemoryHealth
from .turns import OpenTurns, WaitingWrites

if TYPE_CHECKING:  # it loads the engines, which who imports an adapter may never use
    from ..memory import Memory
    from ..ports.checkpoints import Checkpoints
    from ..ports.models import ChatModel, Embedder

MemorySource: TypeAlias = "Memory | str | os.PathLike[str] | None"
"""An open memory, the path of its folder, or None for the environment's location."""

P = ParamSpec("P")
T = TypeVar("T")
MAX_IDLE = 8
_CLOSE_SECONDS = 10.0  # for turns that wait in memory


class LazyMemory:
    """A memory that is opened by its first user, once for all of them.

    Opening goes on in a thread when its caller stops waiting. One that failed is tried again by
    the next user.

    Args:
        memory: an open memory, or what opens one. What was given open is never closed here.

    Attributes:
        holders: the objects that use it; `MemoryPool` may close a memory without any.
        writes: writes that run on an event loop, for all who share the memory.
        accepting: writes that a thread accepts and nobody waits for, likewise.
        waiting: turns that could not be accepted, likewise.
        turns: what was accepted of turns that are not over, likewise.
        is_late: a write took too long, on a loop that may be closed, and none was done since.
        health: counters and outages, for all who share the memory.
    """

    def __init__(self, memory: "Memory | Callable[[], Memory]") -> None:
        self.given: Memory | None = None if callable(memory) else memory
        self._open: Callable[[], Memory] = memory if callable(memory) else lambda: memory
        self._lock = threading.Lock()
        self._opening: Future[Memory] | None = None
        self._is_given_up = False
        self.holders: WeakSet[object] = WeakSet()
        self.writes: set[asyncio.Task[None]] = set()
        self.accepting: set[Future[Any]] = set()
        self.turns: OpenTurns = OpenTurns()
        self.waiting: WaitingWrites = WaitingWrites()
        self.is_late = False
        self.health: MemoryHealth = MemoryHealth()

    @property
    def is_idle(self) -> bool:
        """Nothing holds it, and no write runs on a loop that is open."""
        if self.holders or self.accepting or self.waiting:
            return False
        return all(write.get_loop().is_closed() for write in list(self.writes))

    @property
    def opened(self) -> "Memory | None":
        """The memory, if it is open."""
        opening = self._opening
        if self.given is not None or opening is None or not opening.done():
            return self.given
        return None if opening.exception() else opening.result()

    @property
    def opening_error(self) -> BaseException | None:
        """What the latest opening raised; None if it did not, or goes on."""
        opening = self._opening
        return opening.exception() if opening is not None and opening.done() else None

    def start(self) -> "Future[Memory]":
        """Begin to open in a thread, unless that is done or under way."""
        with self._lock:
            opening = self._opening
            if opening is None or (opening.done() and opening.exception()):
                self._opening = opening = start_call("open", self._open)
            return opening

    def get(self) -> "Memory":
        """Return the memory, open; blocks while it opens.

        Raises:
            Exception: what opening it raised.
        """
        return self.opened or self.start().result()

    async def aget(self) -> "Memory":
        """Return the memory, open, as `get`."""
        if self.given is not None:
            return self.given
        opening = self.start()
        return opening.result() if opening.done() else await asyncio.wrap_future(opening)

    async def on_checkpoints(
        self, call: Callable[Concatenate["Checkpoints", P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a blocking function with the checkpoints of the memory, on one of its threads."""
        admin = (await self.aget()).admin
        return await admin.run(call, admin.checkpoints, *args, **kwargs)

    def keep(self, done: "Future[T]") -> "Future[T]":
        """Keep a write of a thread in `accepting` until it is done; return it."""
        self.accepting.add(done)
        done.add_done_callback(self.accepting.discard)
        return done

    def prepare(self) -> None:
        """Begin to open the memory and to load its embedder, for `await_open`."""
        if self.given is None:
            self.start()
        else:
            start_warming(self.given)

    async def await_open(self, seconds: float) -> None:
        """Wait until the memory is open and its embedder, if that is under way, loaded.

        Nobody waits any more once somebody has waited in vain.

        Args:
            seconds: to wait at most.

        Raises:
            MemoryTimeoutError: it takes longer.
            Exception: what opening it raised.
        """
        memory = self.opened
        if self._is_given_up or (memory is not None and _is_warm(memory)):
            return
        try:
            await await_within(seconds, "opening the memory", self._await_warm())
        except TimeoutError:
            self._is_given_up = True
            raise

    def release(self) -> "Future[Memory] | None":
        """Forget the opened memory and return it, for the caller to close; None if there is none.

        The next user opens it anew.
        """
        with self._lock:
            opening, self._opening, self._is_given_up = self._opening, None, False
        return opening if self.given is None else None

    def close(self) -> None:
        """Close the memory if it was opened here, waiting for an opening under way.

        Turns that wait in memory are tried once more. They are lost then, unless the memory stays
        open.
        """
        self._end_waiting()
        opening = self.release()
        if opening is not None:
            with contextlib.suppress(Exception):  # its users got the error
                opening.result().close()

    async def aclose(self) -> None:
        """Close the memory, as `close`, after the running loop's own writes.

        One that is still opening is closed when it is open, without waiting for it.
        """
        if self.waiting:
            ending = asyncio.wrap_future(start_call("write", self._end_waiting))
            await asyncio.wait({ending}, timeout=_CLOSE_SECONDS)
        opening = self.release()
        if opening is None:
            return
        if opening.done() and not opening.exception():
            await opening.result().aclose()
        else:
            opening.add_done_callback(_close)

    def discard(self) -> None:
        """Close the memory in a thread, for one that is no longer used."""
        opening = self.release()
        if opening is not None:
            start_call("close", partial(opening.add_done_callback, _close))

    def _end_waiting(self) -> None:
        if self.given is None:
            self.waiting.close()
        else:
            with contextlib.suppress(Exception):  # they wait on
                self.waiting.write()

    async def _await_warm(self) -> None:
        loading = _warming.get(await self.aget())
        if loading is not None:
            await asyncio.wrap_future(loading)


class MemoryPool:
    """Lazy memories by key: users that name the same location and models share one.

    A service may make an adapter's object for every turn: the memory stays open between turns.
    Of those without a holder or a running write the 8 used last stay open. A memory that was given
    open is shared too, but neither closed nor kept alive here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memories: dict[Hashable, LazyMemory] = {}
        self._given: WeakValueDictionary[Hashable, LazyMemory] = WeakValueDictionary()

    def acquire(
        self, holder: object, key: Hashable, open_memory: "Memory | Callable[[], Memory]"
    ) -> LazyMemory:
        """Find or make the memory of a key, held by `holder` while that object lives.

        A memory that is given open is its own key.
        """
        memories: MutableMapping[Hashable, LazyMemory] = self._memories
        if not callable(open_memory):
            # An entry keeps its memory alive, so that an id is never another one's.
            memories, key = self._given, id(open_memory)
        with self._lock:
            memory = memories.pop(key, None) or LazyMemory(open_memory)
            memories[key] = memory  # in front of it are those that were used before
            memory.holders.add(holder)
            idle = [key for key, one in self._memories.items() if one.is_idle]
            spare = [self._memories.pop(key) for key in idle[:-MAX_IDLE]]
        for one in spare:
            one.discard()
        return memory


_pool = MemoryPool()


def acquire_memory(
    holder: object,
    memory: MemorySource,
    *,
    chat: "ChatModel | None" = None,
    embedder: "Embedder | None" = None,
    models: tuple[object, ...] = (),
) -> LazyMemory:
    """Find or make the memory of an adapter's object, opened on first use and then shared.

    Args:
        holder: the adapter's object; the memory may be closed when it has no holder left.
        memory: an open memory, the path of its folder, or None for the environment's location
            (`Settings`), which is `./memory` by default.
        chat, embedder: of a memory that is opened here.
        models: what identifies those two for sharing, such as the framework's models that they
            wrap; the two themselves when empty.

    Raises:
        WrongTypeError: `memory` is something else.
        MemoryClosedError: it is closed.
        InvalidRecordError: the path cannot be used, or a model is given beside an open memory.
    """
    from ..memory import Memory  # it loads the engines

    if memory is not None and not isinstance(memory, str | os.PathLike):
        check_memory(memory, otherwise=", the path of a folder, or nothing for ./memory")
        if chat is not None or embedder is not None:
            raise WrongTypeError(
                field="memory",
                value=memory,
                takes="a path where a model is given too, as an open memory has its own models",
                hint="Pass the models to Memory.open, or the path of the folder here.",
            )
        return _pool.acquire(holder, memory, memory)
    folder = None if memory is None else to_folder("memory", memory)
    settings = Settings.from_env() if folder is None else None

    def open_memory() -> Memory:
        opened = Memory.open(folder, chat=chat, embedder=embedder, settings=settings)
        if embedder is None:
            start_warming(opened)  # it takes more than a second: not in the first recall
        return opened

    # `open_memory` keeps the models alive, so that an id is never another one's.
    key = (folder or (settings, Path.cwd()), *map(id, models or (chat, embedder)))
    return _pool.acquire(holder, key, open_memory)


_warming: "WeakKeyDictionary[Memory, Future[None]]" = WeakKeyDictionary()
_warming_lock = threading.Lock()


def start_warming(memory: "Memory") -> None:
    """Load a memory's embedder in a thread, once: a first recall has no time for that."""
    with _warming_lock:
        if memory not in _warming:
            _warming[memory] = start_call("warm", partial(_load, memory))


def warm(memory: "Memory") -> None:
    """Load a memory's embedder here, by a search that finds nothing."""
    memory.search("warm", Scope(user_id="nobody"), top_k=1)


def _is_warm(memory: "Memory") -> bool:
    loading = _warming.get(memory)
    return loading is None or loading.done()


def _load(memory: "Memory") -> None:
    with contextlib.suppress(Exception):  # a recall raises it again
        warm(memory)


def _close(opening: "Future[Memory]") -> None:
    if not opening.exception():
        opening.result().close()
