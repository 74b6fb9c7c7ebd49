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

try:
    import grpc  # type: ignore[import-untyped]  # ships no annotations
    import httpx
    from qdrant_client import QdrantClient, models
    from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
    from qdrant_client.local.qdrant_local import QdrantLocal
except ImportError as error:
    raise MissingExtraError(package="qdrant-client", extra="qdrant") from error

__all__ = ["Link", "QdrantClient", "connect", "models"]

T = TypeVar("T")

_ATTEMPTS = 4
_FIRST_PAUSE = 0.1
# Between connections gRPC pauses up to two minutes, also when the server is back; our four attempts
# must reach past that.
_RECONNECT = {"grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 400}
_TROUBLE = (
    *(ResponseHandlingException, UnexpectedResponse, QdrantException, grpc.RpcError),
    json.JSONDecodeError,  # whatever answers speaks HTTP and is no Qdrant
)
_GRPC = "is `grpc_port` right? With prefer_grpc=false only HTTP is spoken"
# What an operator can mend: nothing that was accepted may be given up for it.
_WITHHELD = {401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"}
_MISSING = {404, "NOT_FOUND"}
_LATER = {408, 425, 429}
_REFUSED = {"INVALID_ARGUMENT", "ALREADY_EXISTS", "OUT_OF_RANGE", "UNIMPLEMENTED"}


def connect(
    url: str, *, api_key: str | None, prefer_grpc: bool, grpc_port: int, timeout: float
) -> QdrantClient:
    """Make a client; nothing is sent yet. `qdrant://host` is `http://host`.

    Raises:
        InvalidRecordError: the key could not be sent.
    """
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        reason = "has a character that is not in printable ASCII"
        raise InvalidRecordError(field="api_key", value="…", reason=reason)
    return QdrantClient(
        re.sub("^qdrant://", "http://", url),
        api_key=api_key,
        prefer_grpc=prefer_grpc,
        grpc_port=grpc_port,
        grpc_options=dict(_RECONNECT),  # the driver adds to it
        timeout=math.ceil(timeout),
        check_compatibility=False,  # it would ask in a thread of its own; we ask once, ourselves
    )


class Link:
    """Calls of a client, each ending within about `timeout` seconds, from any thread.

    A call that failed in a way that may pass is repeated, up to three times, after the pause that
    the server asked for or a short one; no attempt begins after `timeout` seconds, and none that
    the server wants later than that. Every call that goes through here may be repeated safely.

    Attributes:
        local: the client is no server but the driver's own imitation, inside this process.
    """

    def __init__(self, client: QdrantClient, *, store: str, timeout: float) -> None:
        self.client = client
        self.local = isinstance(getattr(client, "_client", None), QdrantLocal)
        self._store = store
        self._timeout = timeout
        self._closed = False
        # The imitation is not made for threads.
        self._turn: Any = threading.RLock() if self.local else contextlib.nullcontext()

    def ask(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a method of the client.

        Raises:
            StoreRefusedError: the server does not let us in, or not do this.
            StoreUnavailableError: no answer, too late, or the collection is away.
            InvalidRecordError: the server refuses this very request and always will.
        """
        begun = monotonic()
        for attempt in range(1, _ATTEMPTS + 1):
            self.check_open()
            try:
                with self._turn:
                    return call(*args, **kwargs)
            except _TROUBLE as error:
                self.check_open()
                code, reason, pause = _read(error)
                if code in _WITHHELD:
                    raise StoreRefusedError(store=self._store, reason=reason) from error
                if _is_final(code):
                    told = f"was refused by {self._store}: {reason}"
                    raise InvalidRecordError(
                        field="request", value=call.__name__, reason=told
                    ) from error
                if pause is None:
                    pause = _FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1)  # noqa: S311 -- no secret
                late = monotonic() + pause - begun >= self._timeout
                if late or attempt == _ATTEMPTS or code in _MISSING:
                    raise StoreUnavailableError(store=self._store, reason=reason) from error
            except (ValueError, RuntimeError):  # what the driver says when somebody closed it
                self.check_open()
                raise
            sleep(pause)
        raise AssertionError  # the last attempt answers or raises

    def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call a method that writes, and wait until it is applied.

        Raises:
            StoreUnavailableError: as above, or it was accepted and is not applied yet.
        """
        answer = self.ask(call, *args, wait=True, **kwargs)
        for one in answer if isinstance(answer, list) else [answer]:
            if one.status != models.UpdateStatus.COMPLETED:
                reason = f"a write is not applied yet ({one.status})"
                raise StoreUnavailableError(store=self._store, reason=reason)

    def check_open(self) -> None:
        """Raise `MemoryClosedError` after `close`."""
        if self._closed:
            raise MemoryClosedError

    def close(self) -> None:
        """Let go of the connections; repeating it does nothing."""
        if not self._closed:
            self._closed = True
            self.client.close()


def _is_final(code: int | str) -> bool:
    if isinstance(code, str):
        return code in _REFUSED
    return 400 <= code < 500 and code not in _MISSING | _LATER


def _read(error: Exception) -> tuple[int | str, str, float | None]:
    """Read an error of either protocol: its code, what happened, the pause that was asked for."""
    if isinstance(error, ResourceExhaustedResponse):
        return 429, f"it is asked too often: {error}", float(error.retry_after_s)
    if isinstance(error, UnexpectedResponse):
        return error.status_code or 0, f"{error.status_code} {_told(error)}", None
    if isinstance(error, ResponseHandlingException):
        late = isinstance(error.source, httpx.TimeoutException)
        said = "no answer in time" if late else "the connection failed"
        return 0, f"{said} ({type(error.source).__name__}: {error.source})", None
    if isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call):
        code = error.code().name
        hint = f"; {_GRPC}" if code == "UNAVAILABLE" else ""
        return code, f"{code} {error.details()}{hint}", None
    if isinstance(error, json.JSONDecodeError):
        return 0, "what answers is no Qdrant server", None
    return 0, str(error), None


def _told(error: UnexpectedResponse) -> str:
    try:
        told = json.loads(error.content)["status"]["error"]
    except (ValueError, KeyError, TypeError):
        told = error.reason_phrase
    return str(told)[:500]
