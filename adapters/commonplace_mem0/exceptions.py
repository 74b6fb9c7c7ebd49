"""mem0's error classes, with its names and codes.

`ValidationError` and `MemoryNotFoundError` are `ValueError`s too, which code for some versions of
mem0 catches. An error of the core that has no counterpart in mem0 is raised as it is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from commonplace import (
    CommonplaceError,
    InvalidFilterError,
    InvalidRecordError,
    InvalidScopeError,
    MemoryClosedError,
    ModelFailedError,
    RecordNotFoundError,
    StoreUnavailableError,
)
from commonplace.agents import LazyMemory, short_repr

NO_IDS = "VALIDATION_001"
BAD_MEMORY_TYPE = "VALIDATION_002"
BAD_MESSAGES = "VALIDATION_003"


class MemoryError(CommonplaceError):  # noqa: A001 -- mem0's name
    """The root, with mem0's attributes; `str` is the message alone."""

    code = "MEMORY_001"

    def __init__(
        self,
        message: str,
        error_code: str | None = None,
        details: Mapping[str, Any] | None = None,
        suggestion: str | None = None,
        debug_info: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message
        self.error_code: str = error_code or self.code
        self.details: dict[str, Any] = dict(details or {})
        self.suggestion = suggestion
        self.debug_info: dict[str, Any] = dict(debug_info or {})
        super().__init__(message)

    @classmethod
    def of(cls, name: str, value: object, reason: str) -> Self:
        """Make the error of an argument or a key: its name, its value and what is wrong with it."""
        return cls(f"{name}={short_repr(value)} {reason}")


class ValidationError(MemoryError, ValueError):
    """An argument cannot be used."""

    code = "VALIDATION_000"


class MemoryNotFoundError(MemoryError, ValueError):
    """No live memory has this id."""

    code = "MEM_404"


class ConfigurationError(MemoryError, ValueError):
    """The configuration contradicts itself, or names something that does not exist."""

    code = "CONFIG_001"


class ClosedError(MemoryError, RuntimeError):
    """The memory was closed."""

    code = "MEM_410"


class VectorStoreError(MemoryError):
    """A store failed; calling again may help."""

    code = "VECTOR_001"


class EmbeddingError(MemoryError):
    """The embedding model failed."""

    code = "EMBED_001"


class LLMError(MemoryError):
    """The language model failed; counted, not raised, if its answer was unreadable twice."""

    code = "LLM_001"


class DependencyError(MemoryError, ImportError):
    """A package must be installed first."""

    code = "DEPS_001"


@contextmanager
def as_mem0(memory: LazyMemory) -> Iterator[None]:
    """Raise the core's errors as mem0's classes, with the core's as the cause.

    Args:
        memory: its embedder's failures are told from those of the language model.
    """
    try:
        yield
    except MemoryError:
        raise
    except (InvalidFilterError, InvalidRecordError, InvalidScopeError) as error:
        raise ValidationError(str(error)) from error
    except RecordNotFoundError as error:
        raise MemoryNotFoundError(
            f"Memory with id {error.record_id} not found. Please provide a valid 'memory_id'"
        ) from error
    except ModelFailedError as error:
        is_embedder = memory.opened is not None and error.model == memory.opened.embedder.id
        kind = EmbeddingError if is_embedder else LLMError
        raise kind(str(error)) from error
    except StoreUnavailableError as error:
        raise VectorStoreError(str(error)) from error
    except MemoryClosedError as error:
        raise ClosedError(str(error)) from error
