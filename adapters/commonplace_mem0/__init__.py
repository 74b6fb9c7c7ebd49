"""`Memory` and `AsyncMemory` for code that was written for mem0, of any version.

    from commonplace_mem0 import Memory

mem0 itself is imported only for providers that commonplace does not have. `import_mem0` imports the
memories of a mem0.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from . import exceptions
from .arguments import Compat
from .async_memory import AsyncMem0Memory
from .config import MemoryConfig
from .install import install_as_mem0
from .memory import Mem0Memory

if TYPE_CHECKING:
    from .migrate import Mem0ImportReport, Source, import_mem0

Memory = Mem0Memory
AsyncMemory = AsyncMem0Memory

__all__ = [
    "AsyncMem0Memory",
    "AsyncMemory",
    "Compat",
    "Mem0ImportReport",
    "Mem0Memory",
    "Memory",
    "MemoryConfig",
    "Source",
    "exceptions",
    "import_mem0",
    "install_as_mem0",
]

_MIGRATION = ("Mem0ImportReport", "Source", "import_mem0")


if not TYPE_CHECKING:  # so that type checkers still report unknown names

    def __getattr__(name: str) -> object:
        """Import what only a migration needs when it is first asked for: it loads the engines."""
        if name not in _MIGRATION:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(".migrate", __name__), name)
        globals()[name] = found
        return found
