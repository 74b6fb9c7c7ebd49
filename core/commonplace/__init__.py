"""One long-term memory for every agent framework.

`Memory` is imported when it is first asked for, so that importing this package loads no number
library and no engine.
"""

from typing import TYPE_CHECKING

from .agents.policy import Policy
from .errors import (
    Backpressure,
    CommonplaceError,
    IdempotencyConflict,
    InvalidFilter,
    InvalidRecord,
    InvalidScope,
    InvalidVector,
    LoopRequired,
    MemoryClosed,
    MissingExtra,
    ModelFailed,
    ModelUnreadable,
    RecordNotFound,
    SchemaMismatch,
    StoreLocked,
    StoreRefused,
    StoreUnavailable,
    Timeout,
)
from .model import (
    Change,
    DeadLetter,
    Drained,
    Entity,
    Fact,
    Kind,
    Match,
    Message,
    Page,
    Receipt,
    Record,
    Relation,
    Role,
    Scope,
    Version,
    Written,
)
from .options import Extraction
from .ports.models import ChatModel, Embedder
from .settings import Settings

if TYPE_CHECKING:
    from .memory import Memory

__all__ = [
    "Backpressure",
    "Change",
    "ChatModel",
    "CommonplaceError",
    "DeadLetter",
    "Drained",
    "Embedder",
    "Entity",
    "Extraction",
    "Fact",
    "IdempotencyConflict",
    "InvalidFilter",
    "InvalidRecord",
    "InvalidScope",
    "InvalidVector",
    "Kind",
    "LoopRequired",
    "Match",
    "Memory",
    "MemoryClosed",
    "Message",
    "MissingExtra",
    "ModelFailed",
    "ModelUnreadable",
    "Page",
    "Policy",
    "Receipt",
    "Record",
    "RecordNotFound",
    "Relation",
    "Role",
    "SchemaMismatch",
    "Scope",
    "Settings",
    "StoreLocked",
    "StoreRefused",
    "StoreUnavailable",
    "Timeout",
    "Version",
    "Written",
]


def __getattr__(name: str) -> object:
    if name != "Memory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")  # noqa: EM102, TRY003 -- as Python words it
    from .memory import Memory  # noqa: PLC0415 -- see above

    globals()[name] = Memory
    return Memory
