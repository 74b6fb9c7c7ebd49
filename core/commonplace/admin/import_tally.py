"""Tally of an import: what was taken over, what was here already, and what was refused and why."""

import re
from collections import Counter
from dataclasses import dataclass, field

_VALUE = re.compile(r"=.*? (?=(?:must|has|is|cannot|belongs)\b)", re.DOTALL)


@dataclass(slots=True)
class ImportTally:
    """What became of the things of another system, each counted once, by the kind of thing.

    Attributes:
        taken: by kind, in the plural; what would be taken, in a dry run.
        known: what was here already, and stays as it is.
        reasons: by kind and by reason, the ids of what was refused.
    """

    taken: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """The kinds of what was found, in the order of the first of each."""
        return list(dict.fromkeys((*self.taken, *self.known, *self.reasons)))

    def refused(self, kind: str) -> int:
        """Count what was refused of a kind."""
        return sum(map(len, self.reasons.get(kind, {}).values()))

    def refuse(self, kind: str, name: str, why: Exception | str) -> None:
        """Count one that cannot be taken over, by its id; a reason is kept without its value."""
        reason = _VALUE.sub(" ", str(why)) or type(why).__name__
        self.reasons.setdefault(kind, {}).setdefault(reason, []).append(name)
