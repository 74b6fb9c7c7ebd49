"""Closing that may be awaited and need not be, as code for mem0 expects of `close`."""

import asyncio
import threading
from collections.abc import Generator
from typing import Any, TypeVar

from .opening import Opening

T = TypeVar("T")


class Closing:
    """Lets go of a memory: awaited, on the loop; else in a thread, begun at once."""

    def __init__(self, opening: Opening) -> None:
        self._thread = threading.Thread(target=opening.close, name="commonplace-mem0-close")
        self._thread.start()

    def __await__(self) -> Generator[Any, None, None]:
        """Wait until the place can be opened again."""
        return asyncio.to_thread(self._thread.join).__await__()


async def ready(value: T) -> T:
    """Answer a value, awaited."""
    return value
