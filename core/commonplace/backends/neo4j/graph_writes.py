"""Write transactions of the Neo4j graph store, under the lock of a partition: changes and erasures.

The rules of the embedded store run on an overlay of what they may read; the differences are saved.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ...ports.stores import Outcome, Put, Remove
from ...types import Record, Scope
from ..shared import rows
from ..sqlite import assertions, record_tables
from . import overlay, queries
from .driver import RunQuery
from .overlay import Overlay

BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureStep:
    """Result of one transaction of an erasure.

    Attributes:
        removed: numbers of rows, by table.
        ids: of the records that were removed.
        touched: records that it reopened, in their present state; a later step may remove some.
        repeated: an earlier run had done this step, and what that touched is unknown.
    """

    removed: Mapping[str, int]
    ids: Sequence[str]
    touched: Sequence[Record]
    repeated: bool


def apply(run: RunQuery, changes: Sequence[Put | Remove]) -> list[Outcome]:
    """Apply changes in order; one outcome each."""
    parameters = overlay.load_parameters(changes)
    [found] = run(queries.LOAD, **parameters)
    stored = found["records"]
    scopes = {overlay.scope_of(record) for record in stored}
    if more := sorted(set(overlay.fence_keys(scopes)) - set(parameters["fences"])):
        found["fences"] += run(queries.FENCES, fences=more)
    asserted = overlay.assertion_parameters(changes, stored)
    asserting = {record["id"] for record in stored if record["asserts"]}
    for scope in overlay.owners_of_repeated_removals(changes, stored):
        asserting |= {record.id for record in asserting_records(run, scope)}
    with closing(Overlay()) as copy:
        overlay.load_records(copy, found)
        if asserting or asserted["relations"]:
            [assertions] = run(queries.ASSERTIONS, ids=sorted(asserting), **asserted)
            overlay.load_assertions(copy, assertions)
        outcomes = record_tables.apply(copy.connection, changes)
        save(run, overlay.save_parameters(copy, found["partitions"]))
    return outcomes


def erase(run: RunQuery, scope: Scope, version: int, turn: int) -> ErasureStep:
    """Remove the next records that the scope covers, with their versions and assertions.

    Args:
        turn: the number of this step, from 0; the first refuses older changes from then on.
    """
    covered = queries.covered(scope, "r")
    parameters = {"version": version, **queries.scope_parameters(scope)}
    [found] = run(
        queries.fill(queries.ERASE_NEXT, covered=covered),
        partitions=[scope.partition],
        id=scope.key,
        turn=turn,
        limit=BATCH,
        **parameters,
    )
    ids = [record["id"] for record in found["records"]]
    asserting = [record["id"] for record in found["records"] if record["asserts"]]
    removed, touched = _retract(run, asserting, found["partitions"])
    removed |= run(queries.ERASE, ids=ids)[0]
    if len(ids) < BATCH:
        [rest] = run(queries.fill(queries.ERASE_VERSIONS, covered=covered), **parameters)
        removed["versions"] += rest["versions"]
        sessions = queries.fill(queries.ERASE_SESSIONS, covered=queries.covered(scope, "s"))
        run(sessions, **parameters)
    return ErasureStep(removed=removed, ids=ids, touched=touched, repeated=found["repeated"])


def asserting_records(run: RunQuery, scope: Scope) -> list[Record]:
    """Read all records of a user, or of one agent of that user, that assert a single value."""
    text = queries.fill(queries.ASSERTING_RECORDS, owned=queries.owned(scope, "q"))
    found = run(text, **queries.scope_parameters(scope))
    return [overlay.to_record(row["record"]) for row in found]


def _retract(
    run: RunQuery, ids: Sequence[str], partitions: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, int], list[Record]]:
    """Retract all assertions of records that are removed.

    Returns:
        The numbers of relations and entities removed, and the records that this reopened.
    """
    if not ids:
        return {}, []
    with closing(Overlay()) as copy:
        [found] = run(queries.ASSERTIONS, ids=ids, entities=[], relations=[], slots=[])
        overlay.load_assertions(copy, found)
        erased = "SELECT value FROM json_each(?)"
        removed, reopened = assertions.erase(copy.connection, erased, [rows.to_json(ids)])
        entities = save(run, overlay.save_parameters(copy, partitions))
    return {"relations": removed["relations"], "entities": entities}, reopened


def save(run: RunQuery, parameters: Mapping[str, list[dict[str, Any]]]) -> int:
    """Save the differences of an overlay; return how many unused entities were dropped."""
    number = 0
    unused = [row["id"] for row in parameters["entities_removed"]]
    if unused or any(parameters[part] for part in queries.SAVE_REMOVED):
        run(queries.save(tuple(queries.SAVE_REMOVED)), **parameters)
    if unused:
        number = int(run(queries.DROP_UNUSED_ENTITIES, entities=unused)[0]["number"])
    # Two texts, and not one for each combination of parts: the server plans each text anew.
    if any(parameters[part] for part in queries.SAVE_RELATIONS):
        run(queries.save((*queries.SAVE, *queries.SAVE_RELATIONS)), **parameters)
    elif any(parameters[part] for part in queries.SAVE):
        run(queries.save(tuple(queries.SAVE)), **parameters)
    return number
