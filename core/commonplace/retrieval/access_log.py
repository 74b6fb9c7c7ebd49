"""Access log: when the records of an open memory were recalled, for their decay and pruning."""

import threading
from collections.abc import Callable, Collection
from datetime import datetime

from ..ports.engines import GraphStore
from ..types import Scope

_GATHERED = 32


class AccessLog:
    """Access times of the records of an open memory.

    They are gathered and written in the background, so that a search never waits for it; a crash
    loses the latest.

    Args:
        submit: runs a call on another thread.
    """

    def __init__(self, graph: GraphStore, submit: Callable[[Callable[[], None]], object]) -> None:
        self._graph = graph
        self._submit = submit
        self._lock = threading.Lock()
        self._gathered: list[tuple[Scope, tuple[str, ...], datetime]] = []

    def add(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Log an access to these records; it is written soon."""
        if not ids:
            return
        with self._lock:
            self._gathered.append((scope, tuple(ids), at))
            is_full = len(self._gathered) == _GATHERED
        if is_full:
            self._submit(self.flush)

    def get(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read the access times of these records, newest first; one without any is missing."""
        found = self._graph.access_log(scope, ids)
        wanted = set(ids)
        with self._lock:
            gathered = list(self._gathered)
        for _, some, at in gathered:
            for one in wanted.intersection(some):
                found.setdefault(one, []).insert(0, at)
        return found

    def flush(self) -> None:
        """Write the gathered accesses."""
        with self._lock:
            gathered, self._gathered = self._gathered, []
        for scope, ids, at in gathered:
            self._graph.log_access(scope, ids, at)
