"""Queue, in memory, of turns that no journal has accepted yet; they are tried again in their order.

A disk may be full for a while, or a store locked. What is waiting is lost when the process ends.
"""

import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from weakref import WeakSet

from ..concurrency import Timer, call_later, call_within, start_call
from ..errors import (
    BackpressureError,
    MemoryTimeoutError,
    StoreLockedError,
    StoreUnavailableError,
)
from ..types import Message, Scope

Outcome: TypeAlias = Literal["written", "forgotten", "lost"]
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_EXIT_SECONDS = 5.0


def may_be_tried_again(error: Exception) -> bool:
    """Tell whether a write that raised this was not accepted, and may be later."""
    if isinstance(error, StoreUnavailableError):
        return not error.retried  # else the journal has it
    return isinstance(error, StoreLockedError | BackpressureError)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWrite:
    """A turn that waits.

    Attributes:
        write: accepts it; returns False, and writes nothing, if it is to be forgotten.
        end: is told what became of it, with the error of one that is lost.
    """

    messages: Sequence[Message]
    scope: Scope
    write: Callable[["WaitingWrite"], bool]
    end: Callable[[Outcome, Exception | None], None]


class WaitingWrites:
    """The turns that wait to be written to one memory, oldest first; safe in any thread.

    They are tried by `write`, and on threads of the library after a pause that doubles from a
    second to a minute. That keeps no process alive; at its end they are tried once more.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._writing = threading.Lock()  # keeps the order
        self._queue: deque[WaitingWrite] = deque()
        self._timer: Timer | None = None
        self._pause = _FIRST_PAUSE
        _all.add(self)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queue)

    def put(self, write: WaitingWrite, limit: int) -> Literal["waiting", "lost"] | None:
        """Let a turn wait behind the others; it is lost if `limit` turns wait already.

        The whole of a turn whose beginning waits takes the place of that, which was told; other
        messages with an id that wait already are left out. None for what waits already.
        """
        with self._changing:
            told = _ids(write)
            same = [one for one in self._queue if one.scope == write.scope and _ids(one)]
            for begun in same:
                if _ids(begun) <= told:
                    self._queue[self._queue.index(begun)] = write
                    return None
            held = set().union(*map(_ids, same))
            messages = [one for one in write.messages if one.id not in held]
            if not messages:
                return None
            if len(self._queue) >= limit:
                return "lost"
            self._queue.append(replace(write, messages=messages))
            self._start_timer()
            return "waiting"

    def write(self) -> None:
        """Write what waits, in its order.

        Raises:
            Exception: what keeps the first one that is left from being written.
        """
        if self._queue:
            with self._writing:
                self._write_all()

    def close(self) -> None:
        """Write what waits once more; what is left is lost, and told to be."""
        with self._writing:
            try:
                self._write_all()
            except Exception as error:
                with self._changing:
                    left = list(self._queue)
                    self._queue.clear()
                    self._stop_timer()
                for one in left:
                    one.end("lost", error)

    def _write_all(self) -> None:
        while self._queue:
            first, failure = self._queue[0], None
            outcome: Outcome
            try:
                outcome = "written" if first.write(first) else "forgotten"
            except Exception as error:
                if may_be_tried_again(error):
                    raise
                outcome, failure = "lost", error
            with self._changing:
                is_whole = self._queue[0] is first  # else more of the turn came meanwhile
                if is_whole:
                    self._queue.popleft()
                if not self._queue:
                    self._stop_timer()
            if is_whole:
                first.end(outcome, failure)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = call_later(self._pause, self._wake)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._pause = None, _FIRST_PAUSE

    def _wake(self) -> None:
        with self._changing:
            self._timer = None
        with contextlib.suppress(RuntimeError):  # no thread can be started at the end
            start_call("write", self._write_later)

    def _write_later(self) -> None:
        try:
            self.write()
        except Exception:
            with self._changing:
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        with self._changing:
            if self._queue:
                self._start_timer()


def _ids(write: WaitingWrite) -> set[str]:
    return {one.id for one in write.messages if one.id is not None}


_all: "WeakSet[WaitingWrites]" = WeakSet()


def _forget_parent() -> None:
    """Leave what waits to the parent of a forked child, or it would be written twice."""
    for one in list(_all):
        one.__init__()  # type: ignore[misc]  # with locks of its own


def _close_all() -> None:
    for one in list(_all):
        with contextlib.suppress(MemoryTimeoutError):
            if one:
                call_within(_EXIT_SECONDS, "write", one.close)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)

# As in `runtime`: when `atexit` runs, no thread can be started any more.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
