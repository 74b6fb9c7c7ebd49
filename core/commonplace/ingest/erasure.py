"""Erasure of a scope from every store, with a count of what is left; repeating it removes that."""

from datetime import datetime

from ..ports.stores import Engines, Operation, crash_point
from ..types import EraseReceipt, Scope


def erase(op: Operation, engines: Engines, at: datetime) -> EraseReceipt:
    """Carry out an accepted erasure, its own row in the journal included.

    Writes accepted after it stay and are not counted as left.
    """
    scope, journal = op.scope, engines.journal
    crash_point("before_graph")
    erased = engines.graph.erase(scope, op.version)
    removed = {f"graph.{name}": n for name, n in erased.removed.items()}
    crash_point("after_graph")
    for name, n in engines.checkpoints.erase(scope).items():
        removed[f"checkpoints.{name}"] = n
    engines.index.amend(erased.touched)
    removed["index.points"] = engines.index.erase(scope, op.version)
    engines.index.flush()
    crash_point("after_index")
    removed["journal.rows"] = journal.erase(scope, op.seq)
    left = count_rows(engines, scope, before=op.seq)
    crash_point("before_remove")
    journal.erase(scope, op.seq + 1)
    return EraseReceipt(scope=scope, removed=removed, left=left, at=at)


def count_rows(engines: Engines, scope: Scope, *, before: int | None = None) -> dict[str, int]:
    """Count the rows of a scope, by store and table, as an `EraseReceipt` names them.

    Args:
        before: do not count the journal's rows from this number on.
    """
    found = {f"graph.{name}": n for name, n in engines.graph.count(scope).items()}
    found |= {f"checkpoints.{name}": n for name, n in engines.checkpoints.count(scope).items()}
    found["index.points"] = engines.index.count(scope)
    found["journal.rows"] = engines.journal.rows(scope, before=before)
    return found
