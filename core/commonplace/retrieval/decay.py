"""Decay of scores with age and disuse, and the access log it reads.

Each touch, its writing or a recall, is as if it were forgotten with a half-life; what is left is
that not all of them are:

    strength = 1 - product over the touches of (1 - 2 ** (-age / half-life))

The half-life grows with importance. As a factor on a score it stays in 0.3..1.5, the bounds that
mem0 publishes for its own.


Accesses are gathered in memory and written in the background, so a search never waits for them; a
crash loses those of the last moments.
"""

import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..errors import InvalidRecordError
from ..model import Kind, Match, Record, Scope, now
from ..ports.stores import GraphStore

WEAKEST, STRONGEST = 0.3, 1.5


def strength(record: Record, recalls: Sequence[datetime], now: datetime, half_life: float) -> float:
    """Tell how strongly a record is remembered, 0..1.

    Args:
        recalls: when it was recalled; later than `now` counts as now.
        half_life: days; at importance 0.5 a touch of that age counts half.
    """
    days = half_life * (0.5 + record.importance)
    forgotten = 1.0
    for at in (record.updated_at, *recalls):
        age = max(0.0, (now - at).total_seconds() / 86_400)
        forgotten *= -math.expm1(-math.log(2) * age / days)
    return 1.0 - forgotten


def faded(
    matches: Sequence[Match],
    recalls: Mapping[str, Sequence[datetime]],
    now: datetime,
    half_life: float,
) -> list[Match]:
    """Multiply each score by 0.3..1.5 for the strength of its record; best first, ties by id.

    What is pinned does not fade. `Match.score_details` gets what this adds or takes away as `decay`.
    """
    weighed = []
    for match in matches:
        held = strength(match.record, recalls.get(match.record.id, ()), now, half_life)
        factor = WEAKEST + (STRONGEST - WEAKEST) * held
        if match.record.pinned:
            factor = max(1.0, factor)
        weighed.append((match.score * factor, match))
    weighed.sort(key=lambda one: (-one[0], one[1].record.id))
    return [_rescored(match, min(1.0, score)) for score, match in weighed]


def _rescored(match: Match, score: float) -> Match:
    parts = {**match.score_details, "decay": score - match.score}
    return replace(match, score=score, score_details=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a scope may keep; None for no limit.

    Attributes:
        keep: so many records, those remembered most strongly.
        older_than, unused_for: since the writing, and since the last recall; where both are given
            a record goes when it exceeds both.

    Raises:
        InvalidRecordError: there is no limit, or one is below zero.
    """

    keep: int | None = None
    older_than: timedelta | None = None
    unused_for: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is not None and (type(self.keep) is not int or self.keep < 0):
            raise InvalidRecordError(
                field="keep", value=self.keep, reason="must be an integer that is not negative"
            )
        spans = {"older_than": self.older_than, "unused_for": self.unused_for}
        for name, span in spans.items():
            if span is not None and (not isinstance(span, timedelta) or span < timedelta(0)):
                raise InvalidRecordError(
                    field=name, value=span, reason="must be a timedelta that is not negative"
                )
        if self.keep is None and not any(span is not None for span in spans.values()):
            hint = "Give keep, older_than or unused_for."
            raise InvalidRecordError(field="keep", value=None, reason="sets no limit", hint=hint)


def excess(
    records: Sequence[Record],
    recalls: Mapping[str, Sequence[datetime]],
    limits: Limits,
    now: datetime,
    half_life: float,
) -> list[Record]:
    """Choose the records beyond the limits, weakest first, ties by id, and all that have expired.

    What is pinned stays until it expires.
    """
    weak: list[tuple[float, str, Record]] = []
    strong: list[tuple[float, str, Record]] = []
    for record in records:
        times = recalls.get(record.id, ())
        place = (strength(record, times, now, half_life), record.id, record)
        tests = []
        if limits.older_than is not None:
            tests.append(now - record.updated_at > limits.older_than)
        if limits.unused_for is not None:
            tests.append(now - max((record.updated_at, *times)) > limits.unused_for)
        is_over = (bool(tests) and all(tests) and not record.pinned) or not record.holds(
            now, include_superseded=True
        )
        (weak if is_over else strong).append(place)
    if limits.keep is not None:
        loose = sorted(one for one in strong if not one[2].pinned)
        weak += loose[: max(0, len(strong) - limits.keep)]
    return [record for _, _, record in sorted(weak, key=lambda one: one[:2])]


_GATHERED = 32


class AccessLog:
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
        found = self._graph.access_log(scope, ids)
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
            self._graph.log_access(scope, ids, at)


def records_beyond(
    limits: Limits,
    scope: Scope,
    kinds: Sequence[Kind],
    graph: GraphStore,
    access_log: AccessLog,
    half_life: float,
) -> list[Record]:
    """Read the records of a scope beyond the limits, weakest first."""
    records: list[Record] = []
    accesses: dict[str, list[datetime]] = {}
    cursor: str | None = None
    while True:
        page = graph.page(scope, kinds=kinds, limit=1000, cursor=cursor, include_expired=True)
        records += page.records
        accesses |= access_log.of(scope, [one.id for one in page.records])
        cursor = page.cursor
        if cursor is None:
            return excess(records, accesses, limits, now(), half_life)
