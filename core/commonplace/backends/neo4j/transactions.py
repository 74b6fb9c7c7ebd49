"""Write transactions of the Neo4j graph store, under the lock of a partition: changes and erasures.

The rules of the embedded store run on an overlay of what they may read; the differences are saved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...model import Record, Scope
from ...ports.stores import Outcome, Put, Remove
from ..shared import rows
from ..sqlite import records, relations
from . import overlay, queries
from .driver import Ask
from .overlay import Draft

BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one transaction of an erasure did.

    Attributes:
        removed: rows, by table.
        ids: of the records that went.
        touched: records that it opened again, as they are now; some may go in a later step.
        repeated: an earlier run had come this far, and what it touched is not known any more.
    """

    removed: Mapping[str, int]
    ids: Sequence[str]
    touched: Sequence[Record]
    repeated: bool


def apply(ask: Ask, changes: Sequence[Put | Remove]) -> list[Outcome]:
    """Apply changes in order; one outcome each."""
    looked = overlay.to_look_at(changes)
    [found] = ask(queries.LOAD, **looked)
    own = {overlay.owner(one) for one in found["records"]}
    if more := sorted(set(overlay.fences(own)) - set(looked["fences"])):
        found["fences"] += ask(queries.FENCES, fences=more)
    named = overlay.to_look_up(changes, found["records"])
    stating = {one["id"] for one in found["records"] if one["states"]}
    for scope in overlay.repeats(changes, found["records"]):
        stating |= {one.id for one in claimants(ask, scope)}
    with Draft() as draft:
        overlay.load(draft, found)
        if stating or named["relations"]:
            overlay.load_claims(draft, ask(queries.CLAIMS, ids=sorted(stating), **named)[0])
        outcomes = [
            records.put(draft.connection, one)
            if isinstance(one, Put)
            else records.remove(draft.connection, one)
            for one in changes
        ]
        _save(ask, overlay.to_save(draft, found["partitions"]))
    return outcomes


def erase(ask: Ask, scope: Scope, version: int, turn: int) -> Step:
    """Remove the next records that the scope covers, and what hangs on them.

    Args:
        turn: the number of this step, from 0; the first refuses older changes from then on.
    """
    covered = queries.covered(scope, "r")
    given = {"version": version, **queries.owner(scope)}
    text = queries.fill(queries.DOOMED, covered=covered)
    [found] = ask(text, partitions=[scope.partition], id=scope.key, turn=turn, limit=BATCH, **given)
    ids = [one["id"] for one in found["records"]]
    stating = [one["id"] for one in found["records"] if one["states"]]
    removed, touched = _withdraw(ask, stating, found["partitions"])
    removed |= ask(queries.ERASE, ids=ids)[0]
    if len(ids) < BATCH:
        [kept] = ask(queries.fill(queries.ERASE_VERSIONS, covered=covered), **given)
        removed["versions"] += kept["versions"]
        ask(queries.fill(queries.ERASE_SESSIONS, covered=queries.covered(scope, "s")), **given)
    return Step(removed=removed, ids=ids, touched=touched, repeated=found["repeated"])


def claimants(ask: Ask, scope: Scope) -> list[Record]:
    """Read all records of a user, or of his agent, that state a single-valued relation."""
    text = queries.fill(queries.CLAIMANTS, owned=queries.owned(scope, "q"))
    return [overlay.to_record(one["record"]) for one in ask(text, **queries.owner(scope))]


def _withdraw(
    ask: Ask, ids: Sequence[str], partitions: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, int], list[Record]]:
    """Take back what records state before they go; answer what went and what that opened."""
    if not ids:
        return {}, []
    with Draft() as draft:
        [found] = ask(queries.CLAIMS, ids=ids, entities=[], relations=[], slots=[])
        overlay.load_claims(draft, found)
        chosen = [rows.to_json(ids)]
        gone, touched = relations.erase(draft.connection, "SELECT value FROM json_each(?)", chosen)
        entities = _save(ask, overlay.to_save(draft, partitions))
    return {"relations": gone["relations"], "entities": entities}, touched


def _save(ask: Ask, parts: Mapping[str, list[dict[str, Any]]]) -> int:
    """Save a draft; answer how many entities nothing names any more."""
    number = 0
    gone = [one["id"] for one in parts["entities_gone"]]
    if gone or any(parts[one] for one in queries.SAVE_GONE):
        ask(queries.save(tuple(queries.SAVE_GONE)), **parts)
    if gone:
        number = int(ask(queries.FORGET_ENTITIES, entities=gone)[0]["number"])
    # Two texts, and not one for each mixture of parts: the server plans each text anew.
    if any(parts[one] for one in queries.SAVE_CLAIMS):
        ask(queries.save((*queries.SAVE, *queries.SAVE_CLAIMS)), **parts)
    elif any(parts[one] for one in queries.SAVE):
        ask(queries.save(tuple(queries.SAVE)), **parts)
    return number
