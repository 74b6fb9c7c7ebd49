"""Health of an agent's memory: counters, events, and a log of outages.

An agent survives a broken memory, so what is wrong with it must be seen elsewhere: in the log when
an outage begins and when it ends, in the counters at any time, and in a hook that gets each event.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from ..errors import InvalidRecordError, MissingExtraError, SchemaMismatchError, StoreRefusedError
from ..events import MemoryEvent
from ..telemetry import count_event
from ..types import now

MISCONFIGURED = (InvalidRecordError, SchemaMismatchError, StoreRefusedError, MissingExtraError)
"""What an operator must mend; no agent should begin to work without knowing."""
_SILENT = ("recall", "write", "forget")  # what a turn does by itself, and never raises
_SILENT_LINE = "memory %s failed; the agent continues without it: %s"
_LINES = {
    "late": "memory %s is late; it goes on, and so does the agent: %s",
    "waiting": "memory %s waits in memory and is tried again; the agent continues: %s",
    "lost": "memory %s is lost, as it cannot wait any more; the agent continues: %s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCounters:
    """How often each event happened since the adapter was made.

    Attributes:
        recalled, empty, timed_out, written, late, lost, failed, retracted, not_retracted: as the
            names of `MemoryEvent`.
        waiting: how many turns wait in memory now, of all who write to the same memory.
        last_error, last_error_at: the latest error, and when; None if there was none.
    """

    recalled: int = 0
    empty: int = 0
    timed_out: int = 0
    written: int = 0
    late: int = 0
    waiting: int = 0
    lost: int = 0
    failed: int = 0
    retracted: int = 0
    not_retracted: int = 0
    last_error: Exception | None = None
    last_error_at: datetime | None = None


@dataclass(slots=True)
class _Outage:
    began: float
    failures: int = 0
    kinds: set[str] = field(default_factory=set)


class MemoryHealth:
    """Counters and outages of one memory; for several adapters that share it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._last_error: Exception | None = None
        self._last_error_at: datetime | None = None
        self._outages: dict[str, _Outage] = {}
        self.warned: set[str] = set()

    def counters(self, *, waiting: int = 0) -> MemoryCounters:
        """Read the counters."""
        with self._lock:
            counts = {**self._counts, "waiting": waiting}
            return MemoryCounters(
                **counts, last_error=self._last_error, last_error_at=self._last_error_at
            )

    def record(self, event: MemoryEvent, log: logging.Logger) -> None:
        """Count an event; log the first failure of an operation, each new kind, and their end."""
        count_event(event.name, event.operation)
        with self._lock:
            self._counts[event.name] += 1
            if event.error is not None:
                self._last_error, self._last_error_at = event.error, now()
            line = self._line(event)
        if line:
            log.warning(*line)

    def _line(self, event: MemoryEvent) -> tuple[object, ...]:
        outage = self._outages.get(event.operation)
        if event.error is None:
            if outage is None:
                return ()
            del self._outages[event.operation]
            seconds = time.monotonic() - outage.began
            line = "memory %s works again, after %d failures in %.1f seconds"
            return line, event.operation, outage.failures, seconds
        if outage is None:
            outage = self._outages[event.operation] = _Outage(time.monotonic())
        outage.failures += 1
        kind = type(event.error).__name__
        if event.name == "lost":
            kind = f"lost by {kind}"
        if kind in outage.kinds:
            return ()
        outage.kinds.add(kind)
        # The caller of another operation, who may be a model, got the error.
        line = _SILENT_LINE if event.operation in _SILENT else "memory %s failed: %s"
        return _LINES.get(event.name, line), event.operation, event.error


class WarnOnce:
    """Logs each kind of condition that an agent meets once, such as a turn without a user.

    Args:
        log: the name of the log, which is the adapter's package.
        seen: the kinds that were logged, for several that share them.
    """

    def __init__(self, log: str, seen: set[str] | None = None) -> None:
        self._log = logging.getLogger(log)
        self._seen = set[str]() if seen is None else seen

    def __call__(self, what: str, error: Exception) -> None:
        """Log that `what` failed, unless it failed in the same way before."""
        kind = f"{what} {type(error).__name__}"
        if kind not in self._seen:
            self._seen.add(kind)
            self._log.warning(_SILENT_LINE, what, error)

    @contextmanager
    def catch(self, what: str) -> Iterator[None]:
        """Log what fails in the block, once, and go on behind it."""
        try:
            yield
        except Exception as error:
            self(what, error)
