"""The core's memory behind a shim: opened on first use, shared, and let go of when it is closed.

A constructor does no network I/O, and a model's dimensions may have to be measured: so nothing is
opened before the first call needs it.
"""

import asyncio
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace import Settings, StoreUnavailableError
from commonplace.ports.models import ChatModel, Embedder

from .exceptions import ClosedError, ConfigurationError
from .places import Places

if TYPE_CHECKING:
    from commonplace import Memory

logger = logging.getLogger("commonplace_mem0")


class Opening:
    """Opens a memory once; a memory that was given is never closed.

    Args:
        falls_back: open a folder when no server answers.
    """

    def __init__(
        self,
        places: Places,
        embedder: Embedder | None,
        chat: ChatModel | None,
        *,
        falls_back: bool = False,
        given: "Memory | None" = None,
    ) -> None:
        self._places = places
        self._embedder = embedder
        self._chat = chat
        self._falls_back = falls_back
        self._given = given
        self._opened: Memory | None = given
        self._opening = threading.Lock()
        self._closed = False

    def get(self) -> "Memory":
        """Give the memory.

        Raises:
            ClosedError: it was closed.
            ConfigurationError: the vectors are of another length than was configured, or the
                folder is mem0's own.
        """
        if (opened := self._opened) is not None:
            return opened
        with self._opening:
            if self._closed:
                raise ClosedError("This memory is closed. Make a new one.")
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    async def aget(self) -> "Memory":
        """Give the memory, opening it away from the event loop."""
        opened = self._opened
        return await asyncio.to_thread(self.get) if opened is None else opened

    def close(self) -> None:
        """Let go; repeating it does nothing."""
        opened = self._let_go()
        if opened is not None:
            opened.close()

    async def aclose(self) -> None:
        """Let go, after this loop's own writes."""
        opened = await asyncio.to_thread(self._let_go)
        if opened is not None:
            await opened.aclose()

    def _let_go(self) -> "Memory | None":
        """Give what is to be closed; it waits for whoever opens it."""
        self._closed = True
        with self._opening:
            opened, self._opened = self._opened, None
        return None if opened is self._given else opened

    def _open(self) -> "Memory":
        self._check_dimensions()
        folder = Path(self._places.path or Settings.from_env().path).expanduser()
        embedded = Places(path=str(folder))
        if not self._places.needs_server:
            _check_folder(folder)
            return self._at(embedded)
        try:
            return self._at(self._places)
        except StoreUnavailableError as error:
            if not self._falls_back:
                raise
            logger.warning("No server answers (%s), so memories are kept in %s.", error, folder)
            return self._at(embedded)

    def _at(self, places: Places) -> "Memory":
        from commonplace import Memory  # noqa: PLC0415 -- it loads the engines

        # A path alone is a folder, whatever servers the environment names.
        return Memory.open(
            places.path,
            vectors=places.vectors,
            graph=places.graph,
            embedder=self._embedder,
            chat=self._chat,
        )

    def _check_dimensions(self) -> None:
        wanted = self._places.dimensions
        if wanted is None:
            return
        held = 512 if self._embedder is None else self._embedder.dimensions
        if wanted != held:
            raise ConfigurationError(
                f"vector_store says embedding_model_dims={wanted}, the embedder gives {held}. "
                "Leave it out, or configure the embedder that it was meant for."
            )


def _check_folder(folder: Path) -> None:
    for one in (folder, folder.parent):  # a collection's folder is in that of the path
        if (one / "meta.json").is_file() and (one / "collection").is_dir():
            raise ConfigurationError(
                f"The folder {str(one)!r} was written by mem0. Bring its memories over with "
                "`commonplace import mem0`, and give another path here; it is left as it is."
            )
