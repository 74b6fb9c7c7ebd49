"""What waits in a memory, what cannot be applied, and whether its stores agree."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..memory import Memory
from ..model import DeadLetter
from .serialization import TABLES, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a memory.

    Attributes:
        pending: accepted writes that are not applied. dead: those that cannot be, oldest first.
        counts: pieces in the graph store by table; `live` are the records that are no tombstones.
        indexed: records in the index.
        missing, outdated, orphans: ids of records that the index lacks, holds in another version,
            or holds and the graph store does not; sorted.
    """

    pending: int
    dead: Sequence[DeadLetter]
    counts: Mapping[str, int]
    indexed: int
    missing: Sequence[str]
    outdated: Sequence[str]
    orphans: Sequence[str]

    @property
    def agree(self) -> bool:
        """The index holds exactly what the graph store knows."""
        return not (self.missing or self.outdated or self.orphans)

    @property
    def well(self) -> bool:
        """There is nothing to be done."""
        return self.agree and not self.pending and not self.dead


def examine(memory: Memory, *, patience: float = 10.0) -> Health:
    """Look at everything that a memory holds, over all scopes.

    Args:
        patience: seconds for accepted writes to be applied before.
    """
    left = memory.flush(patience)
    engines = memory._runtime.engines  # noqa: SLF001 -- the operator's way in
    counts: Counter[str] = Counter(dict.fromkeys((*TABLES, "live"), 0))
    counts.update(map(table_of, engines.graph.dump()))
    known, held = dict(engines.graph.versions(None)), dict(engines.index.versions(None))
    counts["live"] = len(known)
    return Health(
        pending=left.pending,
        dead=memory.dead_letters(),
        counts=counts,
        indexed=len(held),
        missing=sorted(known.keys() - held.keys()),
        outdated=sorted(one for one in known.keys() & held.keys() if known[one] != held[one]),
        orphans=sorted(held.keys() - known.keys()),
    )
