"""Delete what has expired: once, or again and again on a thread."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime

from commonplace import Command, Delete, Record, Scope

from .calls import Ask, Plan
from .items import kept
from .namespaces import PLAIN
from .ops import Asked

_log = logging.getLogger("commonplace_langgraph")


def expired(asked: Asked, at: datetime) -> Plan[int]:
    """Delete the expired items of every scope that is known; answer how many."""
    scopes: dict[Scope, None] = dict.fromkeys([PLAIN, *asked.ending])
    if asked.users is not None:
        scopes |= dict.fromkeys(asked.template.scopes((), asked.users))
    count = 0

    def is_over(record: Record) -> bool:
        ends = record.expires_at
        return ends is not None and ends <= at and kept(record, asked.template).value is not None

    for scope in scopes:
        cursor = None
        while True:
            page = yield Ask(
                "list",
                scope,
                predicate=is_over,
                include_superseded=True,
                include_expired=True,
                limit=1000,
                cursor=cursor,
            )
            commands: list[Command] = [
                Delete(record_id=one.id, scope=one.scope) for one in page.records
            ]
            if commands:
                yield Ask("batch", commands)
            count += sum(1 for one in page.records if not kept(one, asked.template).part)
            cursor = page.cursor
            if cursor is None:
                break
    return count


class Sweeper:
    """Calls a sweep every so many minutes, on a thread of its own, until it is stopped."""

    def __init__(self, sweep: Callable[[], int], minutes: float | None) -> None:
        self._sweep = sweep
        self._minutes = minutes
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float | None = None) -> "Future[None]":
        """Start, unless it runs already; the future ends with it, and cancelling that stops it."""
        future: Future[None] = Future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._over = threading.Event()
                seconds = 60.0 * (minutes or self._minutes or 5.0)
                self._thread = threading.Thread(
                    target=self._run, args=(seconds, self._over, future),
                    name="commonplace-sweeper", daemon=True,
                )  # fmt: skip
                self._thread.start()
            over = self._over
        future.add_done_callback(lambda one: over.set() if one.cancelled() else None)
        return future

    def stop(self, timeout: float | None = None) -> bool:
        """Stop; False if a sweep was still at it after `timeout` seconds."""
        with self._lock:
            thread = self._thread
            self._over.set()
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, seconds: float, over: threading.Event, future: "Future[None]") -> None:
        while not over.wait(seconds):
            try:
                self._sweep()
            except Exception:  # noqa: BLE001 -- the next sweep may succeed
                _log.warning("A sweep of expired items failed", exc_info=True)
        if not future.done():
            future.set_result(None)
