"""Cypher of the graph store, as constant texts with parameters, and the conditions that fill them.

User input is never part of a text: names and types of relations are properties. Names in braces are
filled with constants too; labels get the store's prefix (`labelled`).

    (Record)-[:BECAME]->(Version)
    (Record)-[:STATES]->(Relation)-[:SUBJECT | OBJECT]->(Entity)-[:SPELT]->(Pair)
    (Partition) (Session) (Erasure) (Meta)

Every node of an owner has the owner's `partition`. A change locks the node of its partition first,
so that changes of one partition never interleave, in whatever process they run.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from ...model import Scope, now
from ..shared.rows import to_micros
from . import checkpoint_queries

KEYS = ("Record", "Entity", "Pair", "Relation", "Partition", "Session", "Erasure", "Meta")
INDEXES = {
    "record_by_partition": ("Record", "partition, n.live, n.created_at, n.id"),
    "record_by_agent": ("Record", "partition, n.agent_id, n.live, n.created_at, n.id"),
    "record_by_session": ("Record", "partition, n.session_id, n.live, n.created_at, n.id"),
    "record_by_kind": ("Record", "partition, n.kind, n.live, n.created_at, n.id"),
    "record_by_version": ("Record", "partition, n.version"),
    "entity_by_word": ("Entity", "partition, n.word"),
    "relation_by_partition": ("Relation", "partition, n.seq"),
    "relation_by_slot": ("Relation", "slot"),
    "session_by_partition": ("Session", "partition"),
}


INDEXED = "SHOW INDEXES YIELD name"
META = "MERGE (m:Meta {id: 'schema'}) ON CREATE SET m.value = $schema RETURN m.value AS value"
NOTED = "MATCH (m:Meta {id: $id}) RETURN m.value AS value"
NOTE = "MERGE (m:Meta {id: $id}) SET m.value = $value"

# -- changing --------------------------------------------------------------------------------------

# Writing to the node of a partition locks it until the end; the rest is read afterwards. MERGE alone
# would not lock a node that is there.
LOCK = """
UNWIND $partitions AS id
MERGE (l:Partition {id: id}) ON CREATE SET l.next = 1
SET l.turns = coalesce(l.turns, 0) + 1
WITH collect({id: l.id, next: l.next}) AS partitions
"""
LOAD = (
    LOCK
    + """
RETURN partitions,
  COLLECT { UNWIND $ids AS id MATCH (r:Record {id: id})
    RETURN r{.*, states: EXISTS { (r)-[:STATES]->() }} } AS records,
  COLLECT { UNWIND $ids AS id MATCH (r:Record {id: id})
    MATCH (v:Version {record: r.id, version: r.version}) RETURN v{.*} } AS versions,
  COLLECT { UNWIND $fences AS id MATCH (f:Erasure {id: id}) RETURN f{.*} } AS fences,
  COLLECT { UNWIND $sessions AS id MATCH (s:Session {id: id}) RETURN s{.*} } AS sessions
"""
)
OWNER = (
    "UNWIND $ids AS id MATCH (r:Record {id: id})"
    " RETURN r.user_id AS user_id, r.agent_id AS agent_id, r.session_id AS session_id"
)
SCOPES = (
    "MATCH (r:Record)"
    " RETURN DISTINCT r.user_id AS user_id, r.agent_id AS agent_id, r.session_id AS session_id"
)
FENCES = "UNWIND $fences AS id MATCH (f:Erasure {id: id}) RETURN f.id AS id, f.version AS version"

# Which records of an owner state something single-valued.
CLAIMANTS = """
MATCH (q:Relation) WHERE {owned} AND q.seq >= 0 AND q.single
MATCH (r:Record)-[s:STATES]->(q) WHERE s.expired_at IS NULL AND r.live
RETURN DISTINCT r{.*} AS record ORDER BY record.id
"""
# What records state or stated, what else is said of the same slots and by whom, and what
# contradicts anything that those say.
CLAIMS = """
CALL () {
  UNWIND $ids AS id MATCH (:Record {id: id})-[:STATES]->(q:Relation) RETURN q
  UNION UNWIND $relations AS id MATCH (q:Relation {id: id}) RETURN q
  UNION UNWIND $slots AS slot MATCH (q:Relation {slot: slot}) WHERE q.single RETURN q
}
WITH collect(q) AS told
CALL (told) {
  UNWIND told AS q
  WITH DISTINCT q.slot AS slot, q.single AS single WHERE single
  MATCH (m:Relation {slot: slot}) WHERE m.single
  RETURN collect(m) AS mates
}
CALL (told, mates) {
  UNWIND CASE WHEN size(mates) + size($slots) > 0 THEN told + mates ELSE [] END AS m
  MATCH (r:Record)-[s:STATES]->(m) WHERE s.expired_at IS NULL
  RETURN collect(DISTINCT r) AS owners
}
CALL (owners) {
  UNWIND owners AS r
  MATCH (r)-[s:STATES]->(m:Relation) WHERE s.expired_at IS NULL AND m.single
  WITH DISTINCT m.slot AS slot, m.valid_from AS begins
  MATCH (n:Relation {slot: slot}) WHERE n.single AND n.valid_from = begins
  RETURN collect(DISTINCT n) AS others
}
WITH owners, told + mates + others AS near
RETURN [r IN owners | r{.*}] AS records,
  COLLECT { UNWIND near AS q WITH DISTINCT q
    MATCH (a:Entity)<-[:SUBJECT]-(q)-[:OBJECT]->(b:Entity)
    RETURN q{.*, subject: a.id, object: b.id, ends: [a{.*}, b{.*}], supports:
      [(r:Record)-[s:STATES]->(q) | s{.*, record: r.id}]} } AS relations,
  COLLECT { UNWIND $entities AS id MATCH (e:Entity {id: id}) RETURN e{.*} } AS entities
"""

# In the order in which they run; each has one list of rows as its parameter. After the first,
# entities that nothing names any more go, as one may come again under another name.
SAVE_GONE = {
    "supports_gone": "MATCH (:Record {id: row.record})-[s:STATES]->(:Relation {id: row.relation})"
    " DELETE s",
    "relations_gone": "MATCH (q:Relation {id: row.id}) DETACH DELETE q",
}
SAVE = {
    # Not MERGE: a record that another owner made since must not be written over.
    "records": "CREATE (r:Record) SET r = row",
    "records_changed": "MATCH (r:Record {id: row.id}) SET r += row",
    "versions": "MATCH (r:Record {id: row.record}) CREATE (r)-[:BECAME]->(v:Version) SET v = row",
    "sessions": "MERGE (s:Session {id: row.id}) SET s += row",
}
SAVE_CLAIMS = {
    "partitions": "MATCH (l:Partition {id: row.id}) SET l.next = row.next",
    "entities": "MERGE (e:Entity {id: row.id}) ON CREATE SET e = row"
    " ON MATCH SET e.type = CASE e.type WHEN 'thing' THEN row.type ELSE e.type END",
    "pairs": "MATCH (e:Entity {id: row.entity}) UNWIND row.pairs AS id"
    " MERGE (p:Pair {id: id}) MERGE (e)-[:SPELT]->(p)",
    "relations": "MATCH (a:Entity {id: row.subject}) MATCH (b:Entity {id: row.object})"
    " CREATE (a)<-[:SUBJECT]-(q:Relation)-[:OBJECT]->(b) SET q = row.own",
    "relations_changed": "MATCH (q:Relation {id: row.own.id}) SET q += row.own",
    "supports": "MATCH (r:Record {id: row.record}) MATCH (q:Relation {id: row.relation})"
    " MERGE (r)-[s:STATES]->(q)"
    " SET s.single = row.single, s.valid_to = row.valid_to, s.expired_at = row.expired_at",
}


FORGET_ENTITIES = """
UNWIND $entities AS id
MATCH (e:Entity {id: id}) WHERE NOT EXISTS { (e)<-[:SUBJECT|OBJECT]-() }
OPTIONAL MATCH (e)-[:SPELT]->(p:Pair)
WITH collect(DISTINCT e) AS gone, collect(DISTINCT p) AS pairs
WITH gone, pairs, size(gone) AS number
FOREACH (e IN gone | DETACH DELETE e)
WITH pairs, number
CALL (pairs) {
  UNWIND pairs AS p WITH p WHERE NOT EXISTS { (p)<-[:SPELT]-() }
  DELETE p
}
RETURN number
"""

RECALLED = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered} AND r.live
SET r.recalls = coalesce(r.recalls, [])
WITH DISTINCT r WHERE r.live
UNWIND r.recalls + $at AS at
WITH DISTINCT r, at ORDER BY at DESC
WITH r, collect(at)[..20] AS recalls
SET r.recalls = recalls
"""

DOOMED = (
    LOCK
    + """
MERGE (f:Erasure {id: $id})
WITH partitions, f, coalesce(f.version >= $version AND f.turn <> $turn - 1, false) AS repeated
SET f.turn = $turn, f.version = CASE WHEN f.version > $version THEN f.version ELSE $version END
RETURN partitions, repeated, COLLECT { MATCH (r:Record) WHERE {covered} AND r.version <= $version
  RETURN {id: r.id, states: EXISTS { (r)-[:STATES]->() }} LIMIT $limit } AS records
"""
)
ERASE = """
UNWIND $ids AS id MATCH (r:Record {id: id})
OPTIONAL MATCH (r)-[:BECAME]->(v:Version)
DETACH DELETE r, v
RETURN count(DISTINCT id) AS records, count(v) AS versions
"""
ERASE_VERSIONS = """
MATCH (r:Record) WHERE {covered} AND r.version >= 0
MATCH (r)-[:BECAME]->(v:Version) WHERE v.version <= $version
DETACH DELETE v RETURN count(*) AS versions
"""
ERASE_SESSIONS = """
MATCH (s:Session) WHERE {covered} AND NOT EXISTS {
  MATCH (r:Record) WHERE r.partition = s.partition AND r.session_id = s.session_id
  AND coalesce(r.agent_id, '') = coalesce(s.agent_id, '')
  AND r.live IS NOT NULL AND r.created_at IS NOT NULL AND r.id IS NOT NULL }
DELETE s
"""

# -- reading records -------------------------------------------------------------------------------

GET = (
    "UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE r.live AND {covered} RETURN r{.*} AS record"
)
# No OR, for which the planner would read the index in two parts and sort.
PAGE = """
MATCH (r:Record) USING INDEX SEEK r:Record({columns}, created_at, id)
WHERE {covered} AND {kinds} r.live = true AND r.created_at <= $created_at AND r.id IS NOT NULL
AND CASE WHEN r.created_at = $created_at THEN r.id < $id ELSE true END
AND coalesce(r.expires_at > $now, true)
AND coalesce(r.valid_to > $at, true) AND coalesce(r.occurred_at <= $as_of, true)
RETURN r{.*} AS record ORDER BY {order} DESC, r.created_at DESC, r.id DESC LIMIT $limit
"""
WALK = """
MATCH (r:Record) USING INDEX SEEK r:Record({columns}, created_at, id)
WHERE {covered} AND r.live = true AND r.created_at >= $created_at AND r.id IS NOT NULL
AND CASE WHEN r.created_at = $created_at THEN r.id > $id ELSE true END
RETURN r{.id, .version, .created_at, .indexed} AS record
ORDER BY {order}, r.created_at, r.id LIMIT $limit
"""
HISTORY = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered}
MATCH (r)-[:BECAME]->(v:Version) RETURN v{.*} AS version ORDER BY v.version
"""
RECALLS = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered} AND r.recalls IS NOT NULL
RETURN DISTINCT r.id AS id, r.recalls AS recalls ORDER BY id
"""
COUNT = """
MATCH (r:Record) WHERE {covered} AND r.version >= 0
WITH collect(r) AS owned
RETURN size(owned) AS records,
  reduce(sum = 0, r IN owned | sum + COUNT { (r)-[:BECAME]->() }) AS versions
"""
COUNT_RELATIONS = """
MATCH (r:Record) WHERE {covered} AND r.version >= 0
MATCH (r)-[s:STATES]->(q:Relation) WHERE s.expired_at IS NULL OR q.expired_at IS NOT NULL
WITH DISTINCT q MATCH (q)-[:SUBJECT|OBJECT]->(e:Entity)
RETURN count(DISTINCT q) AS relations, count(DISTINCT e) AS entities
"""

# -- reading relations -----------------------------------------------------------------------------

OF_ALL = "MATCH (q:Relation) WHERE {owned} AND q.seq >= 0"
OF_SESSION = (
    "MATCH (x:Record)-[:STATES]->(q:Relation) WHERE {covered_x} AND x.version >= 0 WITH DISTINCT q"
)
OF_SOME = (
    "UNWIND $near AS id MATCH (:Entity {id: id})<-[:SUBJECT|OBJECT]-(q:Relation) WITH DISTINCT q"
)
OF_RECORDS = "UNWIND $near AS id MATCH (:Record {id: id})-[:STATES]->(q:Relation) WITH DISTINCT q"
RELATIONS = """
{source}
WITH q WHERE {owned} AND ($at IS NULL OR q.expired_at IS NULL
  AND coalesce(q.valid_to > $at, true) AND coalesce(q.valid_from <= $as_of, true))
WITH q, COLLECT { MATCH (r:Record)-[s:STATES]->(q) WHERE {covered}
  AND (s.expired_at IS NULL OR q.expired_at IS NOT NULL) RETURN r.id ORDER BY r.id } AS stated
WHERE size(stated) > 0
MATCH (a:Entity)<-[:SUBJECT]-(q)-[:OBJECT]->(b:Entity)
RETURN {answer} ORDER BY q.seq
"""
WHOLE = "q{.*} AS relation, a{.*} AS subject, b{.*} AS object, stated"
EDGE = "a.id AS subject, q.key AS key, b.id AS object, stated"
NAMED = """
UNWIND $words AS word MATCH (e:Entity) WHERE {owned} AND e.word = word
RETURN DISTINCT e.id AS id
"""
ALIASES = """
UNWIND $near AS id MATCH (:Entity {id: id})<-[:SUBJECT|OBJECT]-(q:Relation)
WHERE q.key IN $aliases AND q.expired_at IS NULL AND {owned}
MATCH (q)-[:SUBJECT|OBJECT]->(e:Entity) RETURN DISTINCT e.id AS id
"""
ALIKE = """
UNWIND $names AS name
CALL (name) {
  UNWIND name.pairs AS pair
  MATCH (e:Entity)-[:SPELT]->(:Pair {id: pair}) WHERE {owned}
  WITH e, count(*) AS shared ORDER BY shared DESC, e.seq LIMIT 8
  RETURN collect([e.key, shared, e.seq, e.id]) AS close
}
RETURN name.name AS name, close
"""

_KEYS = (*KEYS, *checkpoint_queries.KEYS)
_INDEXES = INDEXES | checkpoint_queries.INDEXES
_LABEL = re.compile(r":(?=[A-Z][a-z])")


def schema(prefix: str) -> dict[str, str]:
    """Give the statement that makes it, by the name of each constraint and index.

    The index behind a constraint has the constraint's name.
    """
    unique = {f"{one.lower()}_id": (one, "n.id") for one in _KEYS}
    unique["version_key"] = ("Version", "(n.record, n.version)")
    makes = "CREATE {} {}_{} IF NOT EXISTS FOR (n:{}) {}"
    texts = {
        name: makes.format("CONSTRAINT", prefix, name, label, f"REQUIRE {key} IS UNIQUE")
        for name, (label, key) in unique.items()
    } | {
        name: makes.format("INDEX", prefix, name, label, f"ON (n.{key})")
        for name, (label, key) in _INDEXES.items()
    }
    return {f"{prefix}_{name}": text for name, text in texts.items()}


@cache
def labelled(text: str, prefix: str) -> str:
    """Put the prefix in front of every label of a text."""
    return _LABEL.sub(f":{prefix}", text)


def fill(text: str, **parts: str) -> str:
    """Put conditions and other parts, which are constants too, where a text names them."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def covered(scope: Scope, name: str) -> str:
    """Write the condition that a node belongs to the scope; its parameters are `owner(scope)`."""
    parts = [f"{name}.partition = $partition"]
    parts += [
        f"{name}.{field} = ${field}"
        for field in ("agent_id", "session_id")
        if getattr(scope, field) is not None
    ]
    return " AND ".join(parts)


def owner(scope: Scope) -> dict[str, Any]:
    """Give the parameters of `covered`."""
    return {
        "partition": scope.partition,
        "agent_id": scope.agent_id,
        "session_id": scope.session_id,
    }


def owned(scope: Scope, name: str) -> str:
    """Write the condition that a node is of an owner whose records the scope may cover."""
    return covered(replace(scope, session_id=None) if scope.owner != scope else scope, name)


def moment(
    *, include_superseded: bool = False, as_of: datetime | None = None, at: datetime | None = None
) -> dict[str, Any]:
    """Give the parameters that ask for what holds: at `as_of`, or at `at`, or in any case."""
    is_timeless = as_of is None and include_superseded
    return {
        "at": None if is_timeless else to_micros(as_of or at or now()),
        "as_of": to_micros(as_of),
    }


def page(scope: Scope, kinds: Collection[str]) -> str:
    """Write the text that reads a page."""
    kind = {0: "", 1: "r.kind = $kinds[0] AND"}.get(len(kinds), "r.kind IN $kinds AND")
    columns = _columns(scope, "kind" if len(kinds) == 1 else None)
    # An index gives its order away only if the sort names all its columns, the constant too.
    order = " DESC, ".join(f"r.{one}" for one in columns)
    covers = covered(scope, "r")
    return fill(PAGE, covered=covers, kinds=kind, columns=", ".join(columns), order=order)


def walk(scope: Scope) -> str:
    """Write the text that reads the versions of records batch by batch."""
    columns = _columns(scope)
    order = ", ".join(f"r.{one}" for one in columns)
    return fill(WALK, covered=covered(scope, "r"), columns=", ".join(columns), order=order)


def _columns(scope: Scope, narrow: str | None = None) -> list[str]:
    """List the columns that come first in the index that reads least of others' records."""
    for field in ("session_id", "agent_id"):
        if narrow is None and getattr(scope, field) is not None:
            narrow = field
    return [one for one in ("partition", narrow, "live") if one is not None]


def relations(scope: Scope, answer: str, source: str) -> str:
    """Write the text that reads relations by age: those that one of `OF_*` finds."""
    return fill(
        RELATIONS,
        source=source,
        answer=answer,
        owned=owned(scope, "q"),
        covered_x=covered(scope, "x"),
        covered=covered(scope, "r"),
    )


@cache
def save(parts: tuple[str, ...]) -> str:
    """Write the text that saves these parts, one subquery each."""
    texts = SAVE_GONE | SAVE | SAVE_CLAIMS
    return "\n".join(f"CALL () {{ UNWIND ${part} AS row {texts[part]} }}" for part in parts)
