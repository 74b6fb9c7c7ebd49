"""When records were recalled: gathered in memory, written in the background.

What a crash takes away are the recalls of the last moments, which only make a record a little
weaker; so a search never waits for them.
"""

import threading
from collections.abc import Callable, Collection
from datetime import datetime

from .model import Scope
from .ports import GraphStore

_GATHERED = 32


class Recalls:
    """The recalls of an open store.

    Args:
        later: runs a call on another thread.
    """

    def __init__(self, graph: GraphStore, later: Callable[[Callable[[], None]], object]) -> None:
        self._graph = graph
        self._later = later
        self._lock = threading.Lock()
        self._gathered: list[tuple[Scope, tuple[str, ...], datetime]] = []

    def note(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Remember that these records were recalled, soon."""
        if not ids:
            return
        with self._lock:
            self._gathered.append((scope, tuple(ids), at))
            is_much = len(self._gathered) == _GATHERED
        if is_much:
            self._later(self.flush)

    def of(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when these records were recalled, also what is not written yet."""
        found = self._graph.recalls(scope, ids)
        wanted = set(ids)
        with self._lock:
            gathered = list(self._gathered)
        for _, some, at in gathered:
            for one in wanted.intersection(some):
                found.setdefault(one, []).insert(0, at)
        return found

    def flush(self) -> None:
        """Write what is gathered."""
        with self._lock:
            gathered, self._gathered = self._gathered, []
        for scope, ids, at in gathered:
            self._graph.recalled(scope, ids, at)
