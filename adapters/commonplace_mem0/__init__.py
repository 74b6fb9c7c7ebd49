"""`Memory` and `AsyncMemory` for code that was written for mem0, of any version; imports no mem0.

from commonplace_mem0 import Memory
"""

from . import exceptions
from .awaiting import AsyncMemory
from .calls import UNSET
from .config import MemoryConfig
from .memory import Memory
from .replacing import install_as_mem0

__all__ = ["UNSET", "AsyncMemory", "Memory", "MemoryConfig", "exceptions", "install_as_mem0"]
