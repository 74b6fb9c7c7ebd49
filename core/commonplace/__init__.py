"""One long-term memory for every agent framework.

`Memory` and `Policy` are imported when they are first asked for, so that importing this package
loads no number library and no engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import (
    BackpressureError,
    CannotMoveError,
    CommonplaceError,
    IdempotencyConflictError,
    InvalidFilterError,
    InvalidRecordError,
    InvalidScopeError,
    InvalidVectorError,
    LoopRequiredError,
    MemoryClosedError,
    MemoryTimeoutError,
    MissingExtraError,
    ModelFailedError,
    ModelRefusedError,
    ModelUnreadableError,
    RecordNotFoundError,
    SchemaMismatchError,
    StoreLockedError,
    StoreRefusedError,
    StoreUnavailableError,
    WrongTypeError,
)
from .events import MemoryEvent, OnEvent
from .ports import ChatModel, Checkpoints, Embedder, GraphStore, Journal, VectorIndex
from .settings import Settings
from .types import (
    Backlog,
    Change,
    Command,
    Content,
    DeadLetter,
    Delete,
    Entity,
    EraseReceipt,
    Event,
    Excerpt,
    Extraction,
    Fact,
    Kind,
    Match,
    Message,
    Namespace,
    Origin,
    Page,
    Ranking,
    Record,
    Relation,
    Revise,
    Role,
    Scope,
    SessionInfo,
    SessionPage,
    Upsert,
    Version,
    Wait,
    WriteResult,
)

if TYPE_CHECKING:
    from .agents import Policy
    from .memory import Memory
    from .memory_admin import MemoryAdmin
    from .session import Session

__version__ = "0.1.0"

__all__ = [
    "Backlog",
    "BackpressureError",
    "CannotMoveError",
    "Change",
    "ChatModel",
    "Checkpoints",
    "Command",
    "CommonplaceError",
    "Content",
    "DeadLetter",
    "Delete",
    "Embedder",
    "Entity",
    "EraseReceipt",
    "Event",
    "Excerpt",
    "Extraction",
    "Fact",
    "GraphStore",
    "IdempotencyConflictError",
    "InvalidFilterError",
    "InvalidRecordError",
    "InvalidScopeError",
    "InvalidVectorError",
    "Journal",
    "Kind",
    "LoopRequiredError",
    "Match",
    "Memory",
    "MemoryAdmin",
    "MemoryClosedError",
    "MemoryEvent",
    "MemoryTimeoutError",
    "Message",
    "MissingExtraError",
    "ModelFailedError",
    "ModelRefusedError",
    "ModelUnreadableError",
    "Namespace",
    "OnEvent",
    "Origin",
    "Page",
    "Policy",
    "Ranking",
    "Record",
    "RecordNotFoundError",
    "Relation",
    "Revise",
    "Role",
    "SchemaMismatchError",
    "Scope",
    "Session",
    "SessionInfo",
    "SessionPage",
    "Settings",
    "StoreLockedError",
    "StoreRefusedError",
    "StoreUnavailableError",
    "Upsert",
    "VectorIndex",
    "Version",
    "Wait",
    "WriteResult",
    "WrongTypeError",
]

_LAZY = {
    "Memory": ".memory",
    "MemoryAdmin": ".memory_admin",
    "Policy": ".agents",
    "Session": ".session",
}


if not TYPE_CHECKING:  # so that type checkers still report unknown names

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_LAZY[name], __name__), name)
        globals()[name] = found
        return found
