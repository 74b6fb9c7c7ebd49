"""Pruning: the records of a scope that exceed limits on number, age and disuse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..errors import InvalidRecordError
from ..ports.engines import GraphStore
from ..types import Kind, Record, Scope, now
from .decay import AccessLog, strength


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
        if self.keep is not None and (type(self.keep) is not int or self.keep < 0):
            raise InvalidRecordError(
                field="keep", value=self.keep, reason="must be an integer of at least 0"
            )
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
    now: datetime,
    half_life: float,
) -> list[Record]:
    """Choose the records over the limits and all expired ones, weakest first, ties by id.

    A pinned record stays until it expires.
    """
    over: list[tuple[float, str, Record]] = []
    within: list[tuple[float, str, Record]] = []
    for record in records:
        times = accesses.get(record.id, ())
        ranked = (strength(record, times, now, half_life), record.id, record)
        exceeds = []
        if limits.older_than is not None:
            exceeds.append(now - record.updated_at > limits.older_than)
        if limits.unused_for is not None:
            exceeds.append(now - max((record.updated_at, *times)) > limits.unused_for)
        is_over = (bool(exceeds) and all(exceeds) and not record.pinned) or not record.holds(
            now, include_superseded=True
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
