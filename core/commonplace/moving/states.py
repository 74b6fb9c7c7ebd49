"""The states of runs copied from one store of checkpoints to another, and counted."""

import hashlib
from collections.abc import Iterator

from ..checkpoints import Address, Blob, Selection, State
from ..ports import Checkpoints
from .filling import Progress

_BATCH = 100


def walk(checkpoints: Checkpoints) -> Iterator[State]:
    """Read every state, greatest id first; not what tasks wrote beside no checkpoint."""
    after: Address | None = None
    while page := checkpoints.page(Selection(), limit=_BATCH, after=after):
        after = page[-1].address
        yield from checkpoints.states([one.address for one in page])


def copy_states(source: Checkpoints, target: Checkpoints, progress: Progress | None = None) -> None:
    """Write every state of a store into another; repeating it changes nothing."""
    for number, state in enumerate(walk(source), start=1):
        one = state.checkpoint
        values = {(name, one.versions[name]): blob for name, blob in state.values.items()}
        target.put(one, values, state.owner)
        target.write(one.address, state.writes, state.owner)
        if progress and number % _BATCH == 0:
            progress("checkpoints", number)


def digest_states(checkpoints: Checkpoints) -> tuple[int, str]:
    """Count the states of a store and hash them in order."""
    count, found = 0, hashlib.sha256()
    for state in walk(checkpoints):
        count += 1
        one = state.checkpoint
        told = [one.address, sorted(one.versions.items()), one.parent, one.deltas, one.run]
        values = sorted(state.values.items())
        writes = [(write.order, write.channel, *_pair(write.value)) for write in state.writes]
        found.update(repr([told, one.within, state.owner, _pair(one.body)]).encode())
        found.update(repr([_pair(one.metadata), writes]).encode())
        found.update(repr([(name, *_pair(blob)) for name, blob in values]).encode())
    return count, found.hexdigest()


def _pair(blob: Blob) -> tuple[str, bytes]:
    return blob.type, blob.data
