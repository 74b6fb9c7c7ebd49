"""Keyed executor: one step at a time for each key, on threads of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_THREADS = 8


class KeyedExecutor:
    """Calls `step` for a key until it has nothing to do.

    Args:
        step: does some of a key's work; answers None when there is none, 0.0 when there may be
            more, or the seconds to wait before the next step. Never two at once for one key.
        idle: called when no key runs.
    """

    def __init__(self, step: Callable[[str], float | None], idle: Callable[[], None]) -> None:
        self._step = step
        self._idle = idle
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="commonplace-ingest")
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._timers: set[threading.Timer] = set()
        self._gathering: set[str] = set()
        self._elsewhere = 0
        self.closed = False

    def schedule(self, key: str, *, after: float = 0.0) -> None:
        """Run a key, `after` seconds; one that runs already looks once more before it stops."""
        if after:
            with self._changed:
                if key in self._gathering or key in self._running:
                    self._again.add(key)
                    return
                self._gathering.add(key)
            self.schedule_later(key, after, lambda: self._gathering.discard(key))
            return
        with self._changed:
            if self.closed:
                return
            self._again.add(key)
            if key in self._running:
                return
            self._running.add(key)
        try:
            self._pool.submit(self._run, key)
        except RuntimeError:  # the interpreter is shutting down; the journal has everything
            with self._changed:
                self._running.discard(key)

    def schedule_later(self, key: str, seconds: float, before: Callable[[], None]) -> None:
        """Call `before` and run a key, `seconds` from now."""

        def wake() -> None:
            before()
            self.schedule(key)
            with self._changed:
                self._timers.discard(timer)
                self._changed.notify_all()

        timer = threading.Timer(seconds, wake)
        timer.daemon = True
        with self._changed:
            if not self.closed:
                self._timers.add(timer)
                timer.start()

    def elsewhere(self, change: int) -> None:
        """Count work that will kick a key when it ends: +1 when it begins, -1 when it has."""
        with self._changed:
            self._elsewhere += change
            self._changed.notify_all()

    def wait(self, timeout: float, *, own: bool) -> bool:
        """Wait until no key runs or is to run; False when `timeout` seconds were over before.

        Args:
            own: wait for keys only, not for work elsewhere.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._running or self._timers or (self._elsewhere and not own)),
                timeout,
            )

    def close(self) -> None:
        """Finish the steps that run, start no more."""
        with self._changed:
            self.closed = True
            for timer in self._timers:
                timer.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, key: str) -> None:
        pause: float | None = 0.0
        while pause == 0.0 and not self.closed:
            with self._changed:
                self._again.discard(key)
            pause = self._step(key)
            with self._changed:
                if pause is None and key in self._again:
                    pause = 0.0
                if pause != 0.0 or self.closed:
                    # Inside the lock: whoever kicks after this starts the key anew.
                    self._running.discard(key)
                    quiet = not self._running
        if pause:
            self.schedule_later(key, pause, lambda: None)
        if quiet:
            self._idle()
        with self._changed:
            self._changed.notify_all()
