"""The memory behind a middleware: given, or opened on first use and away from the event loop."""

import asyncio
import hashlib
import json
import threading
from concurrent.futures import Future
from weakref import WeakSet

from commonplace import Memory, Scope
from commonplace.agents.handlers import within
from commonplace.agents.session import WarnOnce
from commonplace.ports.models import ChatModel, Embedder

from .writes import Writes


class Opening:
    """A memory that is opened when it is first reached, once for all who reach it.

    Attributes:
        place: tells its memory from others, also in another process.
        holders: the middlewares that use it.
        writes: what is on its way into the memory.
        warn: tells the log what failed.
    """

    def __init__(
        self,
        memory: Memory | None,
        *,
        path: str | None = None,
        chat: ChatModel | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._given = memory
        self._path = path
        self._chat = chat
        self._embedder = embedder
        self._lock = threading.Lock()
        self._opened: Future[Memory] | None = None
        self._is_warm = False
        self.location = memory.location if memory is not None else path or ""
        self.holders: WeakSet[object] = WeakSet()
        self.warn = WarnOnce("commonplace_agentscope")
        self.writes = Writes(self.warn)

    @property
    def is_idle(self) -> bool:
        """Nobody uses it."""
        return not self.holders and self.writes.is_idle

    def name(self, prefix: str) -> str:
        """Name the memory behind tools with a prefix: 16 letters, the same in another process."""
        return hashlib.sha256(json.dumps([prefix, self.location]).encode()).hexdigest()[:16]

    def begin(self) -> "Future[Memory]":
        """Open the memory in a thread, unless that is done or under way; again if it failed."""
        with self._lock:
            if self._opened is None or (self._opened.done() and self._opened.exception()):
                self._opened = Future()
                self._opened.set_running_or_notify_cancel()  # no impatient caller cancels it
                threading.Thread(target=self._open, args=(self._opened,), daemon=True).start()
            return self._opened

    async def reach(self) -> Memory:
        """Answer the memory when it is open; whoever stops waiting leaves the opening to go on."""
        if self._given is not None:
            return self._given
        return await asyncio.wrap_future(self.begin())

    async def warm(self, patience: float) -> None:
        """Wait until the memory is open, once and for `patience` seconds at most; never raises."""
        if self._given is not None or self._is_warm:
            return
        self._is_warm = True
        try:
            await within(patience, "opening the memory", self.reach())
        except Exception as error:  # noqa: BLE001 -- an agent outlives its memory
            self.warn("opening", error)

    async def release(self, holder: object, timeout: float) -> None:
        """Let a holder go after the running writes, `timeout` seconds at most.

        The last one closes the memory, unless it was given.
        """
        await self.writes.wait(timeout)
        self.holders.discard(holder)
        if self.holders:
            return
        opened = self._let_go()
        if opened is None:
            return
        if opened.done() and not opened.exception():
            await opened.result().aclose()
        else:
            opened.add_done_callback(_close)

    def discard(self) -> None:
        """Close the memory in a thread; for an opening that nobody can reach any more."""
        opened = self._let_go()
        if opened is not None:
            threading.Thread(target=opened.add_done_callback, args=(_close,), daemon=True).start()

    def _let_go(self) -> "Future[Memory] | None":
        with self._lock:
            opened, self._opened, self._is_warm = self._opened, None, False
            return opened

    def _open(self, opened: "Future[Memory]") -> None:
        try:
            memory = Memory.open(self._path, chat=self._chat, embedder=self._embedder)
            try:
                self._warm(memory)
            except BaseException:
                memory.close()
                raise
        except BaseException as error:  # noqa: BLE001 -- whoever waits for it is told
            opened.set_exception(error)
        else:
            opened.set_result(memory)

    def _warm(self, memory: Memory) -> None:
        # The default embedder loads with its first text, in more than a second: here, where there
        # is time for it, not inside the first recall.
        if self._embedder is None:
            memory.search("warm", Scope(user_id="nobody"), top_k=1)


def _close(opened: "Future[Memory]") -> None:
    if not opened.exception():
        opened.result().close()
