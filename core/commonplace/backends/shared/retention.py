"""Retention rules of checkpoints: which of a thread may be removed; shared by both engines.

A channel that is stored as changes takes its value from earlier checkpoints, so those stay as long
as a later one needs them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ...errors import InvalidRecordError
from ...model import Scope

Key = tuple[str, str]  # a namespace and the id of a checkpoint in it
Kept = tuple[str, str, str]  # a namespace, a channel and a version that has a value


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A checkpoint of a thread without its bytes; as `checkpoints.Checkpoint`."""

    namespace: str
    id: str
    parent: str | None
    run: str | None
    within: Key | None
    deltas: Collection[str]
    versions: Mapping[str, str]

    @property
    def key(self) -> Key:
        """Its place in the thread."""
        return self.namespace, self.id


def latest(heads: Iterable[Head], values: Collection[Kept]) -> set[Key]:
    """Find what a pruned thread keeps: the latest of each living namespace, and what that needs."""
    every = {one.key: one for one in heads}
    tops: dict[str, Head] = {}
    for one in every.values():
        if one.namespace not in tops or tops[one.namespace].id < one.id:
            tops[one.namespace] = one
    kept: set[Key] = set()
    for top in sorted(tops.values(), key=lambda one: len(one.namespace)):  # the enclosing first
        if top.within is None or top.within in kept or _is_to_come(top.within, tops):
            kept |= _needed(every, values, [top.key])
    return kept


def without(heads: Iterable[Head], values: Collection[Kept], runs: Collection[str]) -> set[Key]:
    """Find what a thread keeps without these runs: all of the others, and what they need."""
    every = {one.key: one for one in heads}
    return _needed(every, values, [key for key, one in every.items() if one.run not in runs])


def referenced(heads: Iterable[Head], kept: Collection[Key]) -> set[Kept]:
    """List the versions that the kept checkpoints name."""
    return {
        (one.namespace, channel, version)
        for one in heads
        if one.key in kept
        for channel, version in one.versions.items()
    }


def settle_owner(thread: str, stored: Scope | None, given: Scope | None) -> Scope | None:
    """Decide whose a thread is.

    Raises:
        InvalidRecordError: it would change hands.
    """
    if stored is not None and given is not None and stored != given:
        raise InvalidRecordError(
            field="thread",
            value=thread,
            reason="belongs to another owner",
            hint="Give every user threads of their own.",
        )
    return stored or given


def _is_to_come(within: Key, tops: Mapping[str, Head]) -> bool:
    """Tell whether the enclosing checkpoint is of a run that has not stored it yet."""
    top = tops.get(within[0])
    return top is None or top.id < within[1]


def _needed(every: Mapping[Key, Head], values: Collection[Kept], wanted: Iterable[Key]) -> set[Key]:
    """Add to the wanted checkpoints the earlier ones that they take channels from."""
    # A channel of changes stays one for the checkpoints of the namespace that do not say so.
    deltas: dict[str, set[str]] = {}
    for one in every.values():
        deltas.setdefault(one.namespace, set()).update(one.deltas)
    found: set[Key] = set()
    for key in wanted:
        head: Head | None = every[key]
        lacking = deltas[key[0]].intersection(every[key].versions)
        seen: set[Key] = set()  # the parents come from outside: they might go in a circle
        while head is not None and head.key not in seen:
            seen.add(head.key)
            has = {c for c, v in head.versions.items() if (head.namespace, c, v) in values}
            lacking -= has
            head = every.get((head.namespace, head.parent)) if lacking and head.parent else None
        found |= seen
    return found
