"""Every error this library raises on purpose.

    CommonplaceError
    ├── InvalidScopeError          (also ValueError)         fix the call
    ├── InvalidFilterError         (also ValueError)         fix the call
    ├── InvalidRecordError         (also ValueError)         fix the call
    │   ├── WrongTypeError         (also TypeError)          an object of another kind was given
    │   ├── IdempotencyConflictError                         one key, two texts
    │   └── InvalidVectorError                               the embedder returned a wrong vector
    ├── RecordNotFoundError        (also LookupError)        fix the call
    ├── LoopRequiredError          (also RuntimeError)       await the async method
    ├── CannotMoveError            (also RuntimeError)       prepare source or target
    ├── MemoryClosedError          (also RuntimeError)       open it again
    ├── MissingExtraError          (also ImportError)        install something
    ├── SchemaMismatchError        (also ValueError)         re-embed or open the right store
    ├── StoreLockedError           (also BlockingIOError)    another process holds it
    ├── BackpressureError          (also BlockingIOError)    wait and write again
    ├── StoreUnavailableError      (also ConnectionError)    retrying may help
    ├── StoreRefusedError          (also PermissionError)    give the right user, password or key
    ├── ModelFailedError           (also RuntimeError)       the user's model failed
    │   ├── ModelRefusedError                                give the right key, model or arguments
    │   └── ModelUnreadableError                             its answer was unreadable twice
    └── MemoryTimeoutError         (also TimeoutError)       it may still happen

Each constructor takes data, not prose; each message ends with what to do.
"""

_RETRIED = " The write was accepted, is kept and is tried again."


class CommonplaceError(Exception):
    """The base class: catch it to catch every error that this library raises on purpose."""


class InvalidScopeError(CommonplaceError, ValueError):
    """A scope has no id, an id that could be misread, or that of another user."""

    def __init__(self, *, field: str, value: object, reason: str, hint: str = "") -> None:
        self.field = field
        self.value = value
        form = (
            "Give a string of 1 to 256 characters without control characters, not '*', and at "
            "least one of user_id, agent_id, session_id."
        )
        super().__init__(f"{field}={short_repr(value)} {reason}. {hint or form}")


class InvalidFilterError(CommonplaceError, ValueError):
    """A filter uses a key, an operator or a value that the filter language does not have."""

    def __init__(self, *, part: object, reason: str, hint: str = "") -> None:
        self.part = part
        form = (
            "Filters look like "
            "{'city': 'Lyon', 'year': {'gte': 2020}, 'OR': [{...}, {...}]}; scope goes in `scope`."
        )
        super().__init__(f"The filter part {short_repr(part)} {reason}. {hint or form}")


class InvalidRecordError(CommonplaceError, ValueError):
    """A text, its metadata or an argument is outside what can be stored or asked."""

    def __init__(self, *, field: str, value: object, reason: str, hint: str = "") -> None:
        self.field = field
        self.value = value
        super().__init__(f"{field}={short_repr(value)} {reason}.{' ' + hint if hint else ''}")


class WrongTypeError(InvalidRecordError, TypeError):
    """A memory, a model or the like is of another kind, such as one of another library."""

    def __init__(self, *, field: str, value: object, takes: str, hint: str) -> None:
        if value is None or isinstance(value, bool | int | float):
            shown = repr(value)
        elif isinstance(value, type):
            shown = f"the class {value.__qualname__}"
        else:  # its values may be secret
            kind = type(value)
            shown = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        self.field: str = field
        self.value: object = value
        CommonplaceError.__init__(self, f"{field}={shown} must be {takes}. {hint}")


class IdempotencyConflictError(InvalidRecordError):
    """One idempotency key was used for two different texts."""

    def __init__(self, *, key: str) -> None:
        super().__init__(
            field="key",
            value=key,
            reason="was already used for another text",
            hint="Use a new key for a new text, or update() the record.",
        )


class InvalidVectorError(InvalidRecordError):
    """A vector is not finite, is zero, or has the wrong length."""

    def __init__(self, *, reason: str, expected: int, got: int) -> None:
        self.field = "vector"
        self.value = got
        CommonplaceError.__init__(
            self,
            f"A vector {reason}; this store has {expected} dimensions. Check the embedder: every "
            "text needs one finite, non-zero vector.",
        )


class RecordNotFoundError(CommonplaceError, LookupError):
    """No live record has this id in this scope; whether another scope has it is not revealed."""

    def __init__(self, *, record_id: str) -> None:
        self.record_id = record_id
        super().__init__(
            f"No record {record_id!r} in this scope. Use an id that add, search or list returned."
        )


class LoopRequiredError(CommonplaceError, RuntimeError):
    """A synchronous call needs an asynchronous model."""

    def __init__(self, *, call: str, model: str) -> None:
        super().__init__(
            f"{call}() needs the asynchronous model {model!r}, which only runs on your event loop. "
            f"Await a{call}() instead, or configure a synchronous model."
        )


class MemoryClosedError(CommonplaceError, RuntimeError):
    """The memory was closed."""

    def __init__(self) -> None:
        super().__init__("This memory is closed. Open it again with Memory.open(...).")


class CannotMoveError(CommonplaceError, RuntimeError):
    """A store is not in a state in which it can be copied, filled or rebuilt."""

    def __init__(self, *, store: str, reason: str, hint: str) -> None:
        super().__init__(f"{store} {reason}. {hint}")


class MissingExtraError(CommonplaceError, ImportError):
    """A package that an optional feature needs is not installed."""

    def __init__(self, *, package: str, extra: str) -> None:
        super().__init__(
            f"{package!r} is not installed. Run: pip install 'commonplace-memory[{extra}]'"
        )


class SchemaMismatchError(CommonplaceError, ValueError):
    """A store was made with another schema version or another embedder."""

    def __init__(
        self, *, what: str, stored: object, wanted: object,
        hint: str = "Open it with the former, or see `commonplace copy` and `reembed`.",
    ) -> None:  # fmt: skip
        super().__init__(
            f"This store was made with {what} {short_repr(stored)}, now {short_repr(wanted)} is "
            f"configured. {hint}"
        )


class StoreLockedError(CommonplaceError, BlockingIOError):
    """Another process uses a store that one of the two needs alone."""

    def __init__(self, *, path: str, holder: str) -> None:
        super().__init__(
            f"The store {path!r} is in use by {holder}, and cannot be shared now. Close it there, "
            "or wait and try again."
        )


class BackpressureError(CommonplaceError, BlockingIOError):
    """Too many accepted writes are still pending."""

    def __init__(self, *, pending: int, limit: int, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(
            f"{pending} writes are pending and the limit is {limit}. Nothing was accepted: write "
            f"again in {retry_after:g} s, flush(), or raise Settings.max_pending."
        )


class StoreUnavailableError(CommonplaceError, ConnectionError):
    """A store did not answer, or failed in a way that may pass.

    A write that raises it was not accepted, unless the message says that it is retried.

    Attributes:
        retried: the write was accepted, and is tried again by itself.
    """

    def __init__(self, *, store: str, reason: str, retried: bool = False) -> None:
        self.store: str = store
        self.retried: bool = retried
        self.reason: str = reason
        super().__init__(f"The store {store!r} failed: {reason}.{_RETRIED if retried else ''}")

    def as_retried(self) -> "StoreUnavailableError":
        """Return the same error, for a caller whose accepted write is tried again."""
        return StoreUnavailableError(store=self.store, reason=self.reason, retried=True)


class StoreRefusedError(CommonplaceError, PermissionError):
    """A store answers and refuses access; only its operator can change that."""

    def __init__(
        self, *, store: str, reason: str,
        hint: str = "give the right user, password, key or permission",
    ) -> None:  # fmt: skip
        super().__init__(
            f"The store {store!r} refuses access: {reason}. Accepted writes are kept: {hint}, then "
            "open again or flush()."
        )


class ModelFailedError(CommonplaceError, RuntimeError):
    """A chat or embedding model failed; its own error is `__cause__`.

    Attributes:
        retried: the write that needed it was accepted, and is tried again by itself.
    """

    def __init__(self, *, model: str, reason: str, retried: bool = False) -> None:
        self.model: str = model
        self.reason: str = reason
        self.retried: bool = retried
        super().__init__(f"The model {model!r} failed: {reason}.{_RETRIED if retried else ''}")

    def as_retried(self) -> "ModelFailedError":
        """Return the same error, for a caller whose accepted write is tried again."""
        return ModelFailedError(model=self.model, reason=self.reason, retried=True)


class ModelRefusedError(ModelFailedError):
    """A model refuses every such call: a wrong key or name of the model, or wrong arguments."""

    def __init__(self, *, model: str, reason: str) -> None:
        super().__init__(
            model=model,
            reason=f"{reason}. The same call would fail again: give the right key, model or "
            "arguments. A write that needs this model is then a dead letter, which `retry` queues "
            "again; messages that are kept are stored already",
        )


class ModelUnreadableError(ModelFailedError):
    """A chat model gave an unreadable answer twice; the write is a dead letter."""


class MemoryTimeoutError(CommonplaceError, TimeoutError):
    """The work took longer than the given time."""

    def __init__(self, *, call: str, seconds: float) -> None:
        continues = " An accepted write continues in the background; flush() waits for it."
        is_read = call.startswith(("recall", "search", "opening", "loading"))
        super().__init__(f"{call} took longer than {seconds:g} s.{'' if is_read else continues}")


def short_repr(value: object) -> str:
    """Show a value of any kind in at most some 80 characters."""
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 -- too deep, or a caller's own that fails
        shown = f"<{type(value).__name__}>"
    length = len(value) if isinstance(value, str) else len(shown)
    return shown if len(shown) <= 80 else f"{shown[:60]}… ({length} characters)"
