"""Replacement of the package `mem0` itself, for code that imports it and takes no client.

Only done on request, as it changes what `import mem0` means for the whole process.
"""

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from . import exceptions
from .async_memory import AsyncMem0Memory
from .config import MemoryConfig
from .exceptions import ConfigurationError
from .memory import Mem0Memory

_VERSION = "2.2.1"


class _HostedClient:
    def __init__(self, *_: Any, **__: Any) -> None:
        raise ConfigurationError(
            "mem0's hosted client is not available here. Use Memory, or import mem0 without "
            "install_as_mem0()."
        )


def install_as_mem0() -> None:
    """Make `from mem0 import Memory` import ours from now on, in this process.

    If mem0ai is installed, its other modules can still be imported; its telemetry is off.

    Raises:
        ConfigurationError: mem0 was imported before, so that some code has its classes already.
    """
    imported = sys.modules.get("mem0")
    if imported is not None and getattr(imported, "Memory", None) is not Mem0Memory:
        raise ConfigurationError("mem0 is imported already. Call install_as_mem0() before that.")
    os.environ["MEM0_TELEMETRY"] = "False"
    classes = {"Memory": Mem0Memory, "AsyncMemory": AsyncMem0Memory}
    package = _module("mem0", **classes, __version__=_VERSION)
    for name in ("MemoryClient", "AsyncMemoryClient"):
        setattr(package, name, type(name, (_HostedClient,), {}))
    sys.modules.pop("mem0")
    found = importlib.util.find_spec("mem0")
    package.__path__ = list(found.submodule_search_locations or ()) if found else []
    sys.modules["mem0"] = package
    _module("mem0.exceptions", **vars(exceptions))
    if found is None:
        _module("mem0.memory")
        _module("mem0.configs")
        _module("mem0.configs.base", MemoryConfig=MemoryConfig)
    importlib.import_module("mem0.memory")
    _module("mem0.memory.main", **classes)


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name, "Stands in for mem0's module of this name.")
    module.__dict__.update({key: value for key, value in members.items() if key != "__name__"})
    module.__name__ = name
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, module)
    return module
