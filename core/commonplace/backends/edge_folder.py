"""What an embedded index notes in its folder: what its vectors depend on, and who holds it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import SchemaMismatch, StoreUnavailable


def agree(file: Path, wanted: Mapping[str, str], *, exists: bool) -> None:
    """Note what the vectors depend on, or compare it with what is noted.

    Raises:
        SchemaMismatch: it was made with something else.
        StoreUnavailable: the note cannot be read.
    """
    if not exists and not file.exists():
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(wanted))
        draft.replace(file)
        return
    try:
        stored = json.loads(file.read_text()) if file.exists() else {}
    except ValueError as error:
        raise StoreUnavailable(store=str(file), reason=f"is damaged: {error}") from error
    for what in sorted({*stored, *wanted}):
        if stored.get(what) != wanted.get(what):
            raise SchemaMismatch(what=what, stored=stored.get(what), wanted=wanted.get(what))


def holder(folder: Path) -> str:
    """Say who holds the folder."""
    try:
        held_by = int((folder / "holder").read_text())
    except (OSError, ValueError):
        return "another process"
    return "this process already" if held_by == os.getpid() else f"process {held_by}"
