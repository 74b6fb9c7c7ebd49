"""One long-term memory for every agent framework.

`Memory` is imported when it is first asked for, so that importing this package loads no number
library and no engine.
"""

from typing import TYPE_CHECKING

from .agents.policy import Policy
from .errors import (
    BackpressureError,
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
    ModelUnreadableError,
    RecordNotFoundError,
    SchemaMismatchError,
    StoreLockedError,
    StoreRefusedError,
    StoreUnavailableError,
)
from .model import (
    Backlog,
    Change,
    DeadLetter,
    Entity,
    EraseReceipt,
    Fact,
    Kind,
    Match,
    Message,
    Page,
    Record,
    Relation,
    Role,
    Scope,
    Version,
    WriteResult,
)
from .options import Extraction
from .ports.models import ChatModel, Embedder
from .settings import Settings

if TYPE_CHECKING:
    from .memory import Memory

__all__ = [
    "Backlog",
    "BackpressureError",
    "Change",
    "ChatModel",
    "CommonplaceError",
    "DeadLetter",
    "Embedder",
    "Entity",
    "EraseReceipt",
    "Extraction",
    "Fact",
    "IdempotencyConflictError",
    "InvalidFilterError",
    "InvalidRecordError",
    "InvalidScopeError",
    "InvalidVectorError",
    "Kind",
    "LoopRequiredError",
    "Match",
    "Memory",
    "MemoryClosedError",
    "MemoryTimeoutError",
    "Message",
    "MissingExtraError",
    "ModelFailedError",
    "ModelUnreadableError",
    "Page",
    "Policy",
    "Record",
    "RecordNotFoundError",
    "Relation",
    "Role",
    "SchemaMismatchError",
    "Scope",
    "Settings",
    "StoreLockedError",
    "StoreRefusedError",
    "StoreUnavailableError",
    "Version",
    "WriteResult",
]


def __getattr__(name: str) -> object:
    if name != "Memory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")  # noqa: EM102, TRY003 -- as Python words it
    from .memory import Memory  # noqa: PLC0415 -- see above

    globals()[name] = Memory
    return Memory
