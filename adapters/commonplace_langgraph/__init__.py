"""One memory for LangGraph and LangChain agents.

A store, a checkpointer, a middleware, tools, parts for graphs, a retriever, LangChain's models.
Each name is imported when it is first used, as the store and checkpointer need no `langchain`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from commonplace import MissingExtraError

if TYPE_CHECKING:
    from .checkpoints import CommonplaceSaver, ThreadOwner
    from .middleware import MemoryMiddleware
    from .models import (
        AsyncLangChainChat,
        AsyncLangChainEmbedder,
        LangChainChat,
        LangChainEmbedder,
    )
    from .nodes import MemoryRetriever, MemoryStep, recall_hook, remember_node
    from .store import CommonplaceStore
    from .tools import MemoryTool, memory_tools
    from .turn import TurnState
    from .turn_owner import IdSource, Run

__all__ = [
    "AsyncLangChainChat",
    "AsyncLangChainEmbedder",
    "CommonplaceSaver",
    "CommonplaceStore",
    "IdSource",
    "LangChainChat",
    "LangChainEmbedder",
    "MemoryMiddleware",
    "MemoryRetriever",
    "MemoryStep",
    "MemoryTool",
    "Run",
    "ThreadOwner",
    "TurnState",
    "memory_tools",
    "recall_hook",
    "remember_node",
]

_MODULES = {
    ".checkpoints": "CommonplaceSaver ThreadOwner",
    ".middleware": "MemoryMiddleware",
    ".models": "AsyncLangChainChat AsyncLangChainEmbedder LangChainChat LangChainEmbedder",
    ".nodes": "MemoryRetriever MemoryStep recall_hook remember_node",
    ".store": "CommonplaceStore",
    ".tools": "MemoryTool memory_tools",
    ".turn": "TurnState",
    ".turn_owner": "IdSource Run",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")  # as Python words it
    try:
        module = import_module(_PLACES[name], __name__)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package.startswith(("langchain", "langgraph")):
            raise
        raise MissingExtraError(package=package, extra="langgraph") from error
    globals()[name] = value = getattr(module, name)
    return value
