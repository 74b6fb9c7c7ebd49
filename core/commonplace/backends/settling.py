"""Settling what records claim of single-valued relations, and what that makes of the records."""

import json
from collections.abc import Collection
from sqlite3 import Connection

from ..model import Record
from ..slots import Claim, settle
from . import rows

_RIVALS = (
    "SELECT DISTINCT t.record FROM support s CROSS JOIN relation r ON r.id = s.relation"
    " CROSS JOIN relation q ON q.subject = r.subject AND q.key = r.key AND q.object <> r.object"
    " AND q.valid_from = r.valid_from CROSS JOIN support t ON t.relation = q.id"
    " WHERE s.record = ? AND s.expired_at IS NULL AND r.single AND r.conflict AND q.single"
    " AND t.expired_at IS NULL AND t.record <> ? ORDER BY t.record"
)
Slot = tuple[int, str]


def slots_of(connection: Connection, relations: Collection[int]) -> set[Slot]:
    """Find the slots, subject and predicate, of those relations that are single-valued."""
    sql = "SELECT subject, key FROM relation WHERE id = ? AND single"
    found = (connection.execute(sql, (one,)).fetchone() for one in relations)
    return {(row[0], row[1]) for row in found if row}


def settle_all(
    connection: Connection, relations: Collection[int], slots: Collection[Slot], *, by: str | None
) -> list[Record]:
    """Bring relations and their slots up to date, then the records that state them.

    Args:
        slots: those that the relations had before.
        by: the record that is written; it is not among those that are answered.
    """
    connection.executemany(
        "UPDATE relation SET conflict = 0,"
        " valid_to = (SELECT min(valid_to) FROM support WHERE relation = id"
        " AND expired_at IS NULL), single = coalesce((SELECT max(single) FROM support"
        " WHERE relation = id AND expired_at IS NULL), single), expired_at = CASE WHEN EXISTS"
        " (SELECT 1 FROM support WHERE relation = id AND expired_at IS NULL) THEN NULL"
        " ELSE (SELECT max(expired_at) FROM support WHERE relation = id) END WHERE id = ?",
        [(one,) for one in relations],
    )
    sql = (
        "SELECT DISTINCT record FROM support WHERE relation IN (SELECT value FROM json_each(?))"
        " AND expired_at IS NULL"
    )
    stating = connection.execute(sql, (json.dumps(sorted(relations)),)).fetchall()
    affected = dict.fromkeys([*([by] if by else []), *(row[0] for row in stating)])
    for slot in sorted({*slots, *slots_of(connection, relations)}):
        found = claims_on(connection, slot)
        spans = settle([claim for claim, _ in found])
        for (claim, owners), span in zip(found, spans, strict=True):
            connection.execute(
                "UPDATE relation SET valid_to = ?, conflict = ? WHERE subject = ? AND key = ?"
                " AND object = ? AND valid_from = ?",
                (span.ends, bool(span.rivals), *slot, claim.value, claim.begins),
            )
            affected |= dict.fromkeys(owners)
    marked = [one for one in affected if _mark(connection, one) and one != by]
    return [one for key in marked if (one := read_live(connection, key))]


def claims_on(connection: Connection, slot: Slot) -> list[tuple[Claim, list[str]]]:
    """Read what is claimed of a slot, by age, each with the records that claim it."""
    sql = (
        "SELECT r.object, r.valid_from, min(s.valid_to), json_group_array(s.record)"
        " FROM relation r CROSS JOIN support s ON s.relation = r.id"
        " WHERE r.subject = ? AND r.key = ? AND r.single AND s.expired_at IS NULL"
        " GROUP BY r.id ORDER BY r.id"
    )
    return [
        (Claim(row[0], row[1], row[2]), json.loads(row[3]))
        for row in connection.execute(sql, slot).fetchall()
    ]


def _mark(connection: Connection, record: str) -> bool:
    """Write until when a record is true and what contradicts it; tell whether that is new."""
    claims, ended, ends = connection.execute(
        "SELECT count(*), count(r.valid_to), max(r.valid_to) FROM support s CROSS JOIN relation r"
        " ON r.id = s.relation WHERE s.record = ? AND s.expired_at IS NULL AND r.single",
        (record,),
    ).fetchone()
    valid_to = ends if claims and claims == ended else None
    conflicts = json.dumps([row[0] for row in connection.execute(_RIVALS, (record, record))])
    changed = connection.execute(
        "UPDATE record SET valid_to = ?, conflicts = ?"
        " WHERE id = ? AND live = 1 AND (valid_to IS NOT ? OR conflicts <> ?)",
        (valid_to, conflicts, record, valid_to, conflicts),
    )
    return changed.rowcount > 0


def read_live(connection: Connection, record: str) -> Record | None:
    """Read a live record; None if there is none."""
    sql = f"SELECT {rows.RECORD} FROM record WHERE id = ? AND live = 1"  # noqa: S608 -- a constant
    row = connection.execute(sql, (record,)).fetchone()
    return rows.from_row(row) if row else None
