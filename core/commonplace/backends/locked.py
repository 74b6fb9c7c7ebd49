"""What happens under the lock of a lane in Neo4j: changes, and the steps of an erasure.

The rules of the embedded store decide on a draft of what they may look at; what differs is saved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..exchange import Outcome, Put, Remove
from ..model import Record, Scope
from . import changes as rules
from . import claims, clauses, cypher, nodes, rows
from .bolt import Ask
from .draft import Draft

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
    looked = nodes.to_look_at(changes)
    [found] = ask(cypher.LOAD, **looked)
    own = {nodes.owner(one) for one in found["records"]}
    if more := sorted(set(nodes.fences(own)) - set(looked["fences"])):
        found["fences"] += ask(cypher.FENCES, fences=more)
    named = nodes.to_look_up(changes, found["records"])
    stating = {one["id"] for one in found["records"] if one["states"]}
    for scope in nodes.repeats(changes, found["records"]):
        stating |= {one.id for one in claimants(ask, scope)}
    with Draft() as draft:
        nodes.load(draft, found)
        if stating or named["relations"]:
            nodes.load_claims(draft, ask(cypher.CLAIMS, ids=sorted(stating), **named)[0])
        outcomes = [
            rules.put(draft.connection, one)
            if isinstance(one, Put)
            else rules.remove(draft.connection, one)
            for one in changes
        ]
        _save(ask, nodes.to_save(draft, found["lanes"]))
    return outcomes


def erase(ask: Ask, scope: Scope, version: int, turn: int) -> Step:
    """Remove the next records that the scope covers, and what hangs on them.

    Args:
        turn: the number of this step, from 0; the first refuses older changes from then on.
    """
    covered = clauses.covered(scope, "r")
    given = {"version": version, **clauses.owner(scope)}
    text = clauses.fill(cypher.DOOMED, covered=covered)
    [found] = ask(text, lanes=[scope.lane], id=scope.key, turn=turn, limit=BATCH, **given)
    ids = [one["id"] for one in found["records"]]
    stating = [one["id"] for one in found["records"] if one["states"]]
    removed, touched = _withdraw(ask, stating, found["lanes"])
    removed |= ask(cypher.ERASE, ids=ids)[0]
    if len(ids) < BATCH:
        [kept] = ask(clauses.fill(cypher.ERASE_VERSIONS, covered=covered), **given)
        removed["versions"] += kept["versions"]
        ask(clauses.fill(cypher.ERASE_SESSIONS, covered=clauses.covered(scope, "s")), **given)
    return Step(removed=removed, ids=ids, touched=touched, repeated=found["repeated"])


def claimants(ask: Ask, scope: Scope) -> list[Record]:
    """Read all records of a user, or of his agent, that state a single-valued relation."""
    text = clauses.fill(cypher.CLAIMANTS, owned=clauses.owned(scope, "q"))
    return [nodes.to_record(one["record"]) for one in ask(text, **clauses.owner(scope))]


def _withdraw(
    ask: Ask, ids: Sequence[str], lanes: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, int], list[Record]]:
    """Take back what records state before they go; answer what went and what that opened."""
    if not ids:
        return {}, []
    with Draft() as draft:
        [found] = ask(cypher.CLAIMS, ids=ids, entities=[], relations=[], slots=[])
        nodes.load_claims(draft, found)
        chosen = [rows.to_json(ids)]
        gone, touched = claims.erase(draft.connection, "SELECT value FROM json_each(?)", chosen)
        entities = _save(ask, nodes.to_save(draft, lanes))
    return {"relations": gone["relations"], "entities": entities}, touched


def _save(ask: Ask, parts: Mapping[str, list[dict[str, Any]]]) -> int:
    """Save a draft; answer how many entities nothing names any more."""
    number = 0
    gone = [one["id"] for one in parts["entities_gone"]]
    if gone or any(parts[one] for one in cypher.SAVE_GONE):
        ask(clauses.save(tuple(cypher.SAVE_GONE)), **parts)
    if gone:
        number = int(ask(cypher.FORGET_ENTITIES, entities=gone)[0]["number"])
    # Two texts, and not one for each mixture of parts: the server plans each text anew.
    if any(parts[one] for one in cypher.SAVE_CLAIMS):
        ask(clauses.save((*cypher.SAVE, *cypher.SAVE_CLAIMS)), **parts)
    elif any(parts[one] for one in cypher.SAVE):
        ask(clauses.save(tuple(cypher.SAVE)), **parts)
    return number
