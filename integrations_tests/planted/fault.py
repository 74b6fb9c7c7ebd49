"""A fault that is planted in a copy of the source, to see that a test catches it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SQLITE = "core/commonplace/backends/sqlite"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A text of one source file, and what stands in its place.

    Attributes:
        name: short, no other fault has it.
        what: goes wrong, in one line.
        file: from the top of the repository.
        old: occurs once in the file.
        tests: as pytest takes them: files and nodes, and what follows `-k` of them.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: Sequence[str]

    def planted(self, text: str) -> str:
        """Return the text of the file with the fault.

        Raises:
            LookupError: what the fault changes does not occur in it once.
        """
        found = text.count(self.old)
        if found != 1:
            message = f"{self.name}: its text occurs {found} times in {self.file}, and not once"
            raise LookupError(message)
        return text.replace(self.old, self.new)

    def plant(self, root: Path) -> None:
        """Plant it below a folder; errors as of `planted`."""
        path = root / self.file
        path.write_text(self.planted(path.read_text("utf-8")), "utf-8")
