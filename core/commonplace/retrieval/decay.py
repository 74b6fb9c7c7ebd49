"""Decay of scores with age and disuse, the log of accesses that it goes by, and pruning.

Every use of a record, that is its writing and each access, decays with a half-life, as the chance
that it is still remembered. The strength is the chance that at least one is:

    strength = 1 - product over the uses of (1 - 2 ** (-age / half-life))

The half-life grows with importance. As a factor on the odds of a score it stays in 0.3..1.5, the
bounds that mem0 publishes for its own.
"""

import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..errors import InvalidRecordError
from ..ports.engines import GraphStore
from ..types import Kind, Match, Record, Scope, now
from ..validation import check_integer

MIN_FACTOR, MAX_FACTOR = 0.3, 1.5
_GATHERED = 32  # accesses that are written at once


def strength(
    record: Record, accesses: Sequence[datetime], now: datetime, half_life: float
) -> float:
    """Compute how strongly a record is remembered, 0..1.

    Args:
        accesses: times of access; later than `now` counts as now.
        half_life: days; at importance 0.5 a use of that age counts half.
    """
    days = half_life * (0.5 + record.importance)
    forgotten = 1.0
    for at in (record.updated_at, *accesses):
        age = max(0.0, (now - at).total_seconds() / 86_400)
        forgotten *= -math.expm1(-math.log(2) * age / days)
    return 1.0 - forgotten


def decayed(
    matches: Sequence[Match],
    accesses: Mapping[str, Sequence[datetime]],
    now: datetime,
    half_life: float,
) -> list[Match]:
    """Multiply the odds of each score by 0.3..1.5 for the strength of its record; ties by id.

    Best first. A pinned record loses nothing. `Match.score_details` gets the logarithm of the
    factor as `decay`.
    """
    weighed = []
    for match in matches:
        remembered = strength(match.record, accesses.get(match.record.id, ()), now, half_life)
        factor = MIN_FACTOR + (MAX_FACTOR - MIN_FACTOR) * remembered
        if match.record.pinned:
            factor = max(1.0, factor)
        weighed.append(_rescored(match, factor))
    return sorted(weighed, key=lambda one: (-one.score, one.record.id))


def _rescored(match: Match, factor: float) -> Match:
    details = {**match.score_details, "decay": math.log(factor)}
    score = match.score * factor / (1 - match.score + match.score * factor)
    return replace(match, score=score, score_details=details)


class AccessLog:
    """Access times of the records of an open memory.

    They are gathered and written in the background, so that a search never waits for it; a crash
    loses the latest.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """Limits on the records of a scope; None for no limit.

    Attributes:
        keep: number of records, those with the greatest strength.
        older_than, unused_for: time since the writing, and since the last use; with both a record
            is over the limit when it exceeds both.

    Raises:
        InvalidRecordError: there is no limit, or one is below zero.
    """

    keep: int | None = None
    older_than: timedelta | None = None
    unused_for: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is not None:
            check_integer("keep", self.keep, 0)
        spans = {"older_than": self.older_than, "unused_for": self.unused_for}
        for name, span in spans.items():
            if span is not None and (not isinstance(span, timedelta) or span < timedelta(0)):
                raise InvalidRecordError(
                    field=name, value=span, reason="must be a timedelta of at least 0"
                )
        if self.keep is None and not any(span is not None for span in spans.values()):
            hint = "Give keep, older_than or unused_for."
            raise InvalidRecordError(
                field="keep", value=None, reason="must not be None without another limit", hint=hint
            )


def over_limits(
    records: Sequence[Record],
    accesses: Mapping[str, Sequence[datetime]],
    limits: RetentionLimits,
    at: datetime,
    half_life: float,
) -> list[Record]:
    """Choose the records over the limits and all expired ones, weakest first, ties by id.

    A pinned record stays until it expires.
    """
    over: list[tuple[float, str, Record]] = []
    within: list[tuple[float, str, Record]] = []
    for record in records:
        times = accesses.get(record.id, ())
        ranked = (strength(record, times, at, half_life), record.id, record)
        exceeds = []
        if limits.older_than is not None:
            exceeds.append(at - record.updated_at > limits.older_than)
        if limits.unused_for is not None:
            exceeds.append(at - max((record.updated_at, *times)) > limits.unused_for)
        is_over = (bool(exceeds) and all(exceeds) and not record.pinned) or not record.holds(
            at, include_superseded=True
        )
        (over if is_over else within).append(ranked)
    if limits.keep is not None:
        loose = sorted(one for one in within if not one[2].pinned)
        over += loose[: max(0, len(within) - limits.keep)]
    return [record for _, _, record in sorted(over, key=lambda one: one[:2])]


def records_over_limits(
    limits: RetentionLimits,
    scope: Scope,
    kinds: Sequence[Kind],
    graph: GraphStore,
    access_log: AccessLog,
    half_life: float,
) -> list[Record]:
    """Read the records of a scope that are over the limits, weakest first."""
    records: list[Record] = []
    accesses: dict[str, list[datetime]] = {}
    cursor: str | None = None
    while True:
        page = graph.page(scope, kinds=kinds, limit=1000, cursor=cursor, include_expired=True)
        records += page.records
        accesses |= access_log.get(scope, [record.id for record in page.records])
        cursor = page.cursor
        if cursor is None:
            return over_limits(records, accesses, limits, now(), half_life)
