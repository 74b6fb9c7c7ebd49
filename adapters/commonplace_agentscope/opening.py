"""The memory behind a middleware: given, or opened on first use and away from the event loop."""

import asyncio
import threading

from commonplace.memory import Memory
from commonplace.model import Scope
from commonplace.ports import ChatModel, Embedder

OPEN_PATIENCE = 30.0


class Opening:
    """A memory that is opened when it is first reached, once for all who reach at a time."""

    def __init__(
        self,
        memory: Memory | None,
        *,
        path: str | None,
        chat: ChatModel | None,
        embedder: Embedder | None,
    ) -> None:
        self._memory = memory
        self._is_ours = memory is None
        self._path = path
        self._chat = chat
        self._embedder = embedder
        self._lock = threading.Lock()

    async def reach(self) -> Memory:
        """Answer the memory; the next try opens it when this one failed.

        Raises:
            TimeoutError: opening takes more than 30 seconds; it goes on meanwhile.
        """
        if self._memory is not None:
            return self._memory
        async with asyncio.timeout(OPEN_PATIENCE):
            return await asyncio.to_thread(self._open)

    async def aclose(self) -> None:
        """Close the memory if it was opened here; reaching it again opens it again."""
        if self._is_ours and self._memory is not None:
            memory, self._memory = self._memory, None
            await memory.aclose()

    def _open(self) -> Memory:
        with self._lock:
            if self._memory is None:
                memory = Memory.open(self._path, chat=self._chat, embedder=self._embedder)
                try:
                    self._warm(memory)
                except BaseException:
                    memory.close()
                    raise
                self._memory = memory
            return self._memory

    def _warm(self, memory: Memory) -> None:
        # The default embedder loads with its first text, in more than a second: here, where there
        # is time for it, not inside the first recall.
        if self._embedder is None:
            memory.search("warm", Scope(user_id="nobody"), top_k=1)
