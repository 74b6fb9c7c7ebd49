"""One memory for Strands agents: a plugin, tools, a memory store, sessions, a chat model.

`commonplace_strands.mem0_memory` is a module to use in place of `strands_tools.mem0_memory`.
"""

from commonplace import MissingExtraError

try:
    import strands as _strands  # noqa: F401 -- only to check that it is installed
except ImportError as error:
    raise MissingExtraError(package="strands-agents", extra="strands") from error

from .byte_storage import CommonplaceStorage
from .models import StrandsChat
from .plugin import MemoryPlugin
from .sessions import CommonplaceSessionRepository
from .store import CommonplaceMemoryStore
from .tools import ExtraTool, memory_tools

__all__ = [
    "CommonplaceMemoryStore",
    "CommonplaceSessionRepository",
    "CommonplaceStorage",
    "ExtraTool",
    "MemoryPlugin",
    "StrandsChat",
    "memory_tools",
]
