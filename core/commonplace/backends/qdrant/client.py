"""Qdrant client with one deadline per call, retries, and this package's errors.

The driver does not retry, and raises one family of errors for each of its two protocols. Only this
module imports it.
"""

import contextlib
import json
import math
import random
import re
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, TypeVar

from ...errors import (
    InvalidRecordError,
    MemoryClosedError,
    MissingExtraError,
    StoreRefusedError,
    StoreUnavailableError,
)
from ...ports.stores import crash_point

try:
    import grpc  # type: ignore[import-untyped]  # ships no annotations
    import httpx
    from qdrant_client import QdrantClient, models
    from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
    from qdrant_client.local.qdrant_local import QdrantLocal
except ImportError as error:
    raise MissingExtraError(package="qdrant-client", extra="qdrant") from error

__all__ = ["QdrantClient", "RetryingClient", "connect", "models"]

T = TypeVar("T")

_ATTEMPTS = 4
_FIRST_PAUSE = 0.1
# Between connections gRPC pauses up to two minutes, even if the server is back; that is longer than
# all our attempts take.
_RECONNECT = {"grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 400}
_ERRORS = (
    *(ResponseHandlingException, UnexpectedResponse, QdrantException, grpc.RpcError),
    json.JSONDecodeError,  # from an HTTP server that is not Qdrant
)
_GRPC_HINT = "is `grpc_port` right? With prefer_grpc=false only HTTP is used"
# An operator can fix these, so accepted writes must stay pending.
_FORBIDDEN = {401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"}
_MISSING = {404, "NOT_FOUND"}
_TEMPORARY = {408, 425, 429}
_REFUSED = {"INVALID_ARGUMENT", "ALREADY_EXISTS", "OUT_OF_RANGE", "UNIMPLEMENTED"}


def connect(
    url: str,
    collection: str,
    *,
    api_key: str | None = None,
    prefer_grpc: bool = True,
    grpc_port: int = 6334,
    timeout: float = 10.0,
) -> "RetryingClient":
    """Make a client for a collection, without sending anything yet.

    Args:
        url: `qdrant://host` is `http://host`.

    Raises:
        InvalidRecordError: the key cannot be sent.
    """
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        reason = "must consist of printable ASCII"
        raise InvalidRecordError(field="api_key", value="…", reason=reason)
    driver = QdrantClient(
        re.sub("^qdrant://", "http://", url),
        api_key=api_key,
        prefer_grpc=prefer_grpc,
        grpc_port=grpc_port,
        grpc_options=dict(_RECONNECT),  # a copy, as the driver adds to it
        timeout=math.ceil(timeout),
        check_compatibility=False,  # it would use a thread of its own; `open_collection` checks
    )
    return RetryingClient(driver, store=f"{url.rpartition('@')[2]}/{collection}", timeout=timeout)


class RetryingClient:
    """Client whose calls end within about `timeout` seconds and are retried; for any thread.

    A call that failed temporarily is repeated, up to three times, after the pause that the server
    asked for or a short one; no attempt starts after `timeout` seconds, nor if the server asks for
    a longer pause. Only calls that may be repeated safely go through here.

    Attributes:
        local: the client is the driver's imitation of a server, inside this process.
    """

    def __init__(self, driver: QdrantClient, *, store: str, timeout: float) -> None:
        self.driver = driver
        self.local = isinstance(getattr(driver, "_client", None), QdrantLocal)
        self._store = store
        self._timeout = timeout
        self._closed = False
        # The imitation is not thread-safe.
        self._lock: Any = threading.RLock() if self.local else contextlib.nullcontext()

    def call(self, method: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a method of the client.

        Raises:
            StoreRefusedError: the server denies access, or this operation.
            StoreUnavailableError: no answer in time, or the collection is missing.
            InvalidRecordError: the server refuses this request, and would refuse it again.
        """
        started = monotonic()
        for attempt in range(1, _ATTEMPTS + 1):
            self.check_open()
            try:
                with self._lock:
                    return method(*args, **kwargs)
            except _ERRORS as error:
                self.check_open()
                code, reason, pause = _read(error)
                if code in _FORBIDDEN:
                    raise StoreRefusedError(store=self._store, reason=reason) from error
                if _is_final(code):
                    raise InvalidRecordError(
                        field="request",
                        value=method.__name__,
                        reason=f"was refused by {self._store}: {reason}",
                    ) from error
                if pause is None:
                    pause = _FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1)  # noqa: S311 -- no secret
                is_late = monotonic() + pause - started >= self._timeout
                if is_late or attempt == _ATTEMPTS or code in _MISSING:
                    raise StoreUnavailableError(store=self._store, reason=reason) from error
            except (ValueError, RuntimeError):  # the driver's errors after another thread closed it
                self.check_open()
                raise
            sleep(pause)
        raise AssertionError  # the last attempt returns or raises

    def write(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call a method that writes, and wait until the write is applied.

        Raises:
            StoreUnavailableError: as in `call`, or it was accepted and is not applied yet.
        """
        crash_point("before_commit")
        results = self.call(method, *args, wait=True, **kwargs)
        crash_point("after_commit")
        for result in results if isinstance(results, list) else [results]:
            if result.status != models.UpdateStatus.COMPLETED:
                reason = f"a write is not applied yet ({result.status})"
                raise StoreUnavailableError(store=self._store, reason=reason)

    def check_open(self) -> None:
        """Raise `MemoryClosedError` after `close`."""
        if self._closed:
            raise MemoryClosedError

    def close(self) -> None:
        """Release the connections; repeating it does nothing."""
        if not self._closed:
            self._closed = True
            self.driver.close()


def _is_final(code: int | str) -> bool:
    if isinstance(code, str):
        return code in _REFUSED
    return 400 <= code < 500 and code not in _MISSING | _TEMPORARY


def _read(error: Exception) -> tuple[int | str, str, float | None]:
    """Read an error of either protocol: its code, its reason, the pause that the server wants."""
    if isinstance(error, ResourceExhaustedResponse):
        return 429, f"it is called too often: {error}", float(error.retry_after_s)
    if isinstance(error, UnexpectedResponse):
        return error.status_code or 0, f"{error.status_code} {_message(error)}", None
    if isinstance(error, ResponseHandlingException):
        is_late = isinstance(error.source, httpx.TimeoutException)
        reason = "no answer in time" if is_late else "the connection failed"
        return 0, f"{reason} ({type(error.source).__name__}: {error.source})", None
    if isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call):
        code = error.code().name
        hint = f"; {_GRPC_HINT}" if code == "UNAVAILABLE" else ""
        return code, f"{code} {error.details()}{hint}", None
    if isinstance(error, json.JSONDecodeError):
        return 0, "there is no Qdrant server at this address", None
    return 0, str(error), None


def _message(error: UnexpectedResponse) -> str:
    try:
        message = json.loads(error.content)["status"]["error"]
    except (ValueError, KeyError, TypeError):
        message = error.reason_phrase
    return str(message)[:500]
