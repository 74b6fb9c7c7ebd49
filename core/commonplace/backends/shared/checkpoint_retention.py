"""Retention rules of checkpoints: which of a thread may be removed; shared by both engines.

A channel that is stored as changes takes its value from earlier checkpoints, so those stay as long
as a later one needs them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from ...errors import InvalidRecordError
from ...types import Scope

CheckpointKey = tuple[str, str]  # namespace and id
ChannelVersion = tuple[str, str, str]  # namespace, channel and a version that has a value


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHeader:
    """A checkpoint of a thread without its bytes; fields as in `ports.Checkpoint`."""

    namespace: str
    id: str
    parent: str | None
    run: str | None
    within: CheckpointKey | None
    deltas: Collection[str]
    versions: Mapping[str, str]

    @property
    def key(self) -> CheckpointKey:
        """Identifies it in its thread."""
        return self.namespace, self.id


Choose = Callable[[list[CheckpointHeader], set[ChannelVersion]], Collection[CheckpointKey]]
"""Chooses the checkpoints of a thread that are kept, such as `latest`."""


def latest(
    headers: Iterable[CheckpointHeader], values: Collection[ChannelVersion]
) -> set[CheckpointKey]:
    """Choose what pruning keeps: the latest of each live namespace, and what those need."""
    by_key = {header.key: header for header in headers}
    newest: dict[str, CheckpointHeader] = {}
    for header in by_key.values():
        if header.namespace not in newest or newest[header.namespace].id < header.id:
            newest[header.namespace] = header
    kept: set[CheckpointKey] = set()
    enclosing_first = sorted(newest.values(), key=lambda header: len(header.namespace))
    for header in enclosing_first:
        if header.within is None or header.within in kept or _is_unstored(header.within, newest):
            kept |= _with_dependencies(by_key, values, [header.key])
    return kept


def without_runs(
    headers: Iterable[CheckpointHeader], values: Collection[ChannelVersion], runs: Collection[str]
) -> set[CheckpointKey]:
    """Choose what deleting runs keeps: the checkpoints of other runs, and what those need."""
    by_key = {header.key: header for header in headers}
    wanted = [key for key, header in by_key.items() if header.run not in runs]
    return _with_dependencies(by_key, values, wanted)


def referenced(
    headers: Iterable[CheckpointHeader], kept: Collection[CheckpointKey]
) -> set[ChannelVersion]:
    """List the versions that the kept checkpoints name."""
    return {
        (header.namespace, channel, version)
        for header in headers
        if header.key in kept
        for channel, version in header.versions.items()
    }


def resolve_owner(thread: str, stored: Scope | None, given: Scope | None) -> Scope | None:
    """Decide who owns a thread: its stored owner, or the given one if it has none.

    Raises:
        InvalidRecordError: both are there and differ.
    """
    if stored is not None and given is not None and stored != given:
        raise InvalidRecordError(
            field="thread",
            value=thread,
            reason="belongs to another owner",
            hint="Give every user threads of their own.",
        )
    return stored or given


def _is_unstored(within: CheckpointKey, newest: Mapping[str, CheckpointHeader]) -> bool:
    """Check whether the enclosing checkpoint belongs to a run that has not stored it yet."""
    header = newest.get(within[0])
    return header is None or header.id < within[1]


def _with_dependencies(
    by_key: Mapping[CheckpointKey, CheckpointHeader],
    values: Collection[ChannelVersion],
    wanted: Iterable[CheckpointKey],
) -> set[CheckpointKey]:
    """Add to the wanted checkpoints the earlier ones that they take channels from."""
    # A channel of changes stays one for the checkpoints of the namespace that do not say so.
    deltas: dict[str, set[str]] = {}
    for checkpoint in by_key.values():
        deltas.setdefault(checkpoint.namespace, set()).update(checkpoint.deltas)
    found: set[CheckpointKey] = set()
    for key in wanted:
        header: CheckpointHeader | None = by_key[key]
        missing = deltas[key[0]].intersection(by_key[key].versions)
        seen: set[CheckpointKey] = set()  # parents are user data: they might form a cycle
        while header is not None and header.key not in seen:
            seen.add(header.key)
            namespace = header.namespace
            missing -= {c for c, v in header.versions.items() if (namespace, c, v) in values}
            parent = header.parent if missing else None
            header = by_key.get((namespace, parent)) if parent else None
        found |= seen
    return found
