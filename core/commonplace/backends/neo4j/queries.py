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
from datetime import datetime
from functools import cache
from typing import Any

from ...types import Scope, now
from ..shared.rows import POSITION, to_micros
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
    "session_by_last": ("Session", "partition, n.last_at, n.id"),
    "session_by_agent": ("Session", "partition, n.agent_id, n.last_at, n.id"),
}


SHOW_INDEXES = "SHOW INDEXES YIELD name, state"
SCHEMA_META = (
    "MERGE (m:Meta {id: 'schema'}) ON CREATE SET m.value = $schema RETURN m.value AS value"
)
GET_META = "MATCH (m:Meta {id: $id}) RETURN m.value AS value"
COMPONENTS = (
    "CALL dbms.components() YIELD name, versions, edition"
    " RETURN name, versions[0] + ' ' + edition AS version"
)
SET_META = "MERGE (m:Meta {id: $id}) SET m.value = $value"

# -- changes ---------------------------------------------------------------------------------------

# Writing to the node of a partition locks it until the transaction ends; everything else is read
# after that. MERGE alone would not lock an existing node.
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
    RETURN r{.*, asserts: EXISTS { (r)-[:STATES]->() }} } AS records,
  COLLECT { UNWIND $ids AS id MATCH (r:Record {id: id})
    MATCH (v:Version {record: r.id, version: r.version}) RETURN v{.*} } AS versions,
  COLLECT { UNWIND $restored AS id MATCH (:Record {id: id})-[:BECAME]->(v:Version)
    RETURN v{.*} } AS former,
  COLLECT { UNWIND $fences AS id MATCH (f:Erasure {id: id}) RETURN f{.*} } AS fences,
  COLLECT { UNWIND $sessions AS id MATCH (s:Session {id: id}) RETURN s{.*} } AS sessions
"""
)
SCOPE_OF = (
    "UNWIND $ids AS id MATCH (r:Record {id: id})"
    " RETURN r.user_id AS user_id, r.agent_id AS agent_id, r.session_id AS session_id"
)
LIST_SCOPES = (
    "MATCH (r:Record)"
    " RETURN DISTINCT r.user_id AS user_id, r.agent_id AS agent_id, r.session_id AS session_id"
)
FENCES = "UNWIND $fences AS id MATCH (f:Erasure {id: id}) RETURN f.id AS id, f.version AS version"

# The records of an owner that assert a single-valued relation.
ASSERTING_RECORDS = """
MATCH (q:Relation) WHERE {owned} AND q.seq >= 0 AND q.single
MATCH (r:Record)-[s:STATES]->(q) WHERE s.expired_at IS NULL AND r.live
RETURN DISTINCT r{.*} AS record ORDER BY record.id
"""
_FOUND = """
RETURN [r IN owners | r{.*}] AS records,
  COLLECT { UNWIND found AS q WITH DISTINCT q
    MATCH (a:Entity)<-[:SUBJECT]-(q)-[:OBJECT]->(b:Entity)
    RETURN q{.*, subject: a.id, object: b.id, ends: [a{.*}, b{.*}], supports:
      [(r:Record)-[s:STATES]->(q) | s{.*, record: r.id}]} } AS relations,
  COLLECT { UNWIND $entities AS id MATCH (e:Entity {id: id}) RETURN e{.*} } AS entities
"""
# The relations that some records assert or asserted.
STATED = (
    """
CALL () {
  UNWIND $ids AS id MATCH (:Record {id: id})-[:STATES]->(q:Relation) RETURN q
  UNION UNWIND $relations AS id MATCH (q:Relation {id: id}) RETURN q
}
WITH collect(q) AS found
WITH [] AS owners, found
"""
    + _FOUND
)
# Those, the other relations of the same slots, the records that assert any of those, and what
# contradicts these records.
ASSERTIONS = (
    """
CALL () {
  UNWIND $ids AS id MATCH (:Record {id: id})-[:STATES]->(q:Relation) RETURN q
  UNION UNWIND $relations AS id MATCH (q:Relation {id: id}) RETURN q
  UNION UNWIND $slots AS slot MATCH (q:Relation {slot: slot}) WHERE q.single RETURN q
}
WITH collect(q) AS asserted
CALL (asserted) {
  UNWIND asserted AS q
  WITH DISTINCT q.slot AS slot, q.single AS single WHERE single
  MATCH (m:Relation {slot: slot}) WHERE m.single
  RETURN collect(m) AS competing
}
CALL (asserted, competing) {
  UNWIND CASE WHEN size(competing) + size($slots) > 0 THEN asserted + competing ELSE [] END AS m
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
WITH owners, asserted + competing + others AS found
"""
    + _FOUND
)

# In the order in which they run; each has one list of rows as its parameter. After the first group,
# entities without a relation are removed, as one may come back with another spelling.
SAVE_REMOVED = {
    "supports_removed": "MATCH (:Record {id: row.record})-[s:STATES]->"
    "(:Relation {id: row.relation}) DELETE s",
    "relations_removed": "MATCH (q:Relation {id: row.id}) DETACH DELETE q",
}
SAVE = {
    # Not MERGE: a record that another owner made meanwhile must not be overwritten.
    "records": "CREATE (r:Record) SET r = row",
    "records_changed": "MATCH (r:Record {id: row.id}) SET r += row",
    "accesses": "MATCH (r:Record {id: row.id}) SET r.recalls = row.recalls",
    "versions": "MATCH (r:Record {id: row.record}) CREATE (r)-[:BECAME]->(v:Version) SET v = row",
    "sessions": "MERGE (s:Session {id: row.id}) SET s += row",
}
SAVE_RELATIONS = {
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


DROP_UNUSED_ENTITIES = """
UNWIND $entities AS id
MATCH (e:Entity {id: id}) WHERE NOT EXISTS { (e)<-[:SUBJECT|OBJECT]-() }
OPTIONAL MATCH (e)-[:SPELT]->(p:Pair)
WITH collect(DISTINCT e) AS dropped, collect(DISTINCT p) AS pairs
WITH dropped, pairs, size(dropped) AS number
FOREACH (e IN dropped | DETACH DELETE e)
WITH pairs, number
CALL (pairs) {
  UNWIND pairs AS p WITH p WHERE NOT EXISTS { (p)<-[:SPELT]-() }
  DELETE p
}
RETURN number
"""

LOG_ACCESS = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered} AND r.live
SET r.recalls = coalesce(r.recalls, [])
WITH DISTINCT r WHERE r.live
UNWIND r.recalls + $at AS at
WITH DISTINCT r, at ORDER BY at DESC
WITH r, collect(at)[..20] AS accesses
SET r.recalls = accesses
"""

ERASE_NEXT = (
    LOCK
    + """
MERGE (f:Erasure {id: $id})
WITH partitions, f, coalesce(f.version >= $version AND f.turn <> $turn - 1, false) AS repeated
SET f.turn = $turn, f.version = CASE WHEN f.version > $version THEN f.version ELSE $version END
RETURN partitions, repeated, COLLECT { MATCH (r:Record) WHERE {covered} AND r.version <= $version
  RETURN {id: r.id, asserts: EXISTS { (r)-[:STATES]->() }} LIMIT $limit } AS records
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

# -- reads of records ------------------------------------------------------------------------------

GET = (
    "UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE r.live AND {covered} RETURN r{.*} AS record"
)
# Without OR, for which the planner would read the index in two parts and sort.
PAGE = """
MATCH (r:Record) USING INDEX SEEK r:Record({columns}, created_at, id)
WHERE {covered} AND {kinds} r.live = true AND r.created_at <= $created_at AND r.id IS NOT NULL
AND CASE WHEN r.created_at < $created_at THEN true
  WHEN {position} = $position THEN r.id < $id ELSE {position} < $position END
AND coalesce(r.expires_at > $now, true)
AND coalesce(r.valid_to > $at, true) AND coalesce(r.occurred_at <= $as_of, true)
RETURN r{.*} AS record
ORDER BY {order} DESC, r.created_at DESC, {position} DESC, r.id DESC LIMIT $limit
"""
SCAN = """
MATCH (r:Record) USING INDEX SEEK r:Record({columns}, created_at, id)
WHERE {covered} AND r.live = true AND r.created_at >= $created_at AND r.id IS NOT NULL
AND CASE WHEN r.created_at = $created_at THEN r.id > $id ELSE true END
RETURN r{.id, .version, .created_at, .indexed} AS record
ORDER BY {order}, r.created_at, r.id LIMIT $limit
"""
TURNS = """
MATCH (r:Record) USING INDEX SEEK r:Record({columns}, created_at, id)
WHERE {covered} AND r.live = true AND r.created_at <= $created_at AND r.id IS NOT NULL
AND r.position IS NOT NULL AND coalesce(r.expires_at > $now, true)
AND CASE WHEN r.created_at < $created_at THEN true
  WHEN r.position = $position THEN r.id < $id ELSE r.position < $position END
RETURN r{.*} AS record ORDER BY r.created_at DESC, r.position DESC, r.id DESC LIMIT $limit
"""
TURN = "UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered} RETURN r{.*} AS record"
SESSIONS = """
MATCH (s:Session) USING INDEX SEEK s:Session({columns}, last_at, id)
WHERE {covered} AND s.last_at <= $last_at AND s.id IS NOT NULL
AND CASE WHEN s.last_at = $last_at THEN s.id < $id ELSE true END
RETURN s{.*, key: s.id} AS session ORDER BY {order} DESC, s.last_at DESC, s.id DESC LIMIT $limit
"""
FILL_SESSIONS = """
MATCH (s:Session) WHERE s.last_at IS NULL
MATCH (r:Record) WHERE r.partition = s.partition AND r.session_id = s.session_id
AND r.live IS NOT NULL AND r.created_at IS NOT NULL AND r.id IS NOT NULL
AND r.position IS NOT NULL AND coalesce(r.agent_id, '') = coalesce(s.agent_id, '')
WITH s, min(r.occurred_at) AS first_at, max(r.occurred_at) AS last_at
SET s.first_at = first_at, s.last_at = last_at
"""
HISTORY = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered}
MATCH (r)-[:BECAME]->(v:Version) RETURN v{.*} AS version ORDER BY v.version
"""
# Each fact of some turns, and when it ended: deleted, given another text, or superseded.
OUTDATED = """
MATCH (r:Record) WHERE {covered} AND r.version >= 0 AND r.sources IS NOT NULL
AND r.kind <> 'summary'
UNWIND [id IN $ids WHERE r.sources CONTAINS '"' + id + '"'] AS id
MATCH (t:Record {id: id}) WHERE {covered_t}
WITH r, id, COLLECT { MATCH (r)-[:BECAME]->(v:Version) WHERE v.event = 'UPDATE'
  AND v.text <> v.previous AND v.at > t.created_at
  RETURN CASE WHEN v.previous <> r.text THEN v.at END ORDER BY v.version LIMIT 1 } AS changes
RETURN id, CASE WHEN NOT r.live THEN r.updated_at
  ELSE coalesce(changes[0], CASE WHEN r.valid_to <= $at THEN r.valid_to END) END AS end
"""
DELETED = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE NOT r.live AND {covered}
MATCH (r)-[:BECAME]->(v:Version) WHERE v.text IS NOT NULL
RETURN r{.*, text: v.text, metadata: v.metadata} AS record ORDER BY v.version DESC LIMIT 1
"""
ACCESS_LOG = """
UNWIND $ids AS id MATCH (r:Record {id: id}) WHERE {covered} AND r.recalls IS NOT NULL
RETURN DISTINCT r.id AS id, r.recalls AS accesses ORDER BY id
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

# -- reads of relations ----------------------------------------------------------------------------

OF_ALL = "MATCH (q:Relation) WHERE {owned} AND q.seq >= 0"
OF_SESSION = (
    "MATCH (x:Record)-[:STATES]->(q:Relation) WHERE {covered_x} AND x.version >= 0 WITH DISTINCT q"
)
OF_ENTITIES = (
    "UNWIND $ids AS id MATCH (:Entity {id: id})<-[:SUBJECT|OBJECT]-(q:Relation) WITH DISTINCT q"
)
OF_RECORDS = "UNWIND $ids AS id MATCH (:Record {id: id})-[:STATES]->(q:Relation) WITH DISTINCT q"
RELATIONS = """
{source}
WITH q WHERE {owned} AND ($at IS NULL OR q.expired_at IS NULL
  AND coalesce(q.valid_to > $at, true) AND coalesce(q.valid_from <= $as_of, true))
WITH q, COLLECT { MATCH (r:Record)-[s:STATES]->(q) WHERE {covered}
  AND (s.expired_at IS NULL OR q.expired_at IS NOT NULL) RETURN r.id ORDER BY r.id } AS supports
WHERE size(supports) > 0
MATCH (a:Entity)<-[:SUBJECT]-(q)-[:OBJECT]->(b:Entity)
RETURN {columns} ORDER BY q.seq
"""
RELATION_COLUMNS = "q{.*} AS relation, a{.*} AS subject, b{.*} AS object, supports"
EDGE_COLUMNS = "a.id AS subject, q.key AS key, b.id AS object, supports"
NAMED = """
UNWIND $words AS word MATCH (e:Entity) WHERE {owned} AND e.word = word
RETURN DISTINCT e.id AS id
"""
ALIASES = """
UNWIND $ids AS id MATCH (:Entity {id: id})<-[:SUBJECT|OBJECT]-(q:Relation)
WHERE q.key IN $aliases AND q.expired_at IS NULL AND {owned}
MATCH (q)-[:SUBJECT|OBJECT]->(e:Entity) RETURN DISTINCT e.id AS id
"""
SIMILAR = """
UNWIND $names AS name
CALL (name) {
  UNWIND name.pairs AS pair
  MATCH (e:Entity)-[:SPELT]->(:Pair {id: pair}) WHERE {owned}
  WITH e, count(*) AS shared ORDER BY shared DESC, e.seq LIMIT 8
  RETURN collect([e.key, shared, e.seq, e.id]) AS candidates
}
RETURN name.name AS name, candidates
"""

_KEYS = (*KEYS, *checkpoint_queries.KEYS)
_INDEXES = INDEXES | checkpoint_queries.INDEXES
_LABEL = re.compile(r":(?=[A-Z][a-z])")


def schema(prefix: str) -> dict[str, str]:
    """Build the statement that makes each constraint and index, by its name.

    The index of a constraint has the name of the constraint.
    """
    unique = {f"{label.lower()}_id": (label, "n.id") for label in _KEYS}
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
    """Add the prefix to every label of a text."""
    return _LABEL.sub(f":{prefix}", text)


def fill(text: str, **parts: str) -> str:
    """Fill the names in braces of a text with conditions and other constant parts."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def covered(scope: Scope, name: str) -> str:
    """Build the condition that a node belongs to the scope, for `scope_parameters`."""
    parts = [f"{name}.partition = $partition"]
    parts += [
        f"{name}.{field} = ${field}"
        for field in ("agent_id", "session_id")
        if getattr(scope, field) is not None
    ]
    return " AND ".join(parts)


def scope_parameters(scope: Scope) -> dict[str, Any]:
    """Build the parameters of `covered`."""
    return {
        "partition": scope.partition,
        "agent_id": scope.agent_id,
        "session_id": scope.session_id,
    }


def owned(scope: Scope, name: str) -> str:
    """Build the condition that a node belongs to an owner whose records the scope may cover."""
    agent = f" AND {name}.agent_id = $agent_id" if scope.agent_id is not None else ""
    return f"{name}.partition = $partition{agent}"


def moment(
    *, include_superseded: bool = False, as_of: datetime | None = None, at: datetime | None = None
) -> dict[str, Any]:
    """Build the parameters for what holds: at `as_of`, or at `at`, or in any case."""
    is_timeless = as_of is None and include_superseded
    return {
        "at": None if is_timeless else to_micros(as_of or at or now()),
        "as_of": to_micros(as_of),
    }


def page(scope: Scope, kinds: Collection[str]) -> str:
    """Build the text that reads a page."""
    kind = {0: "", 1: "r.kind = $kinds[0] AND"}.get(len(kinds), "r.kind IN $kinds AND")
    columns = _columns(scope, "kind" if len(kinds) == 1 else None)
    # The order of an index is used only if the sort names all its columns, constant ones included.
    order = " DESC, ".join(f"r.{name}" for name in columns)
    covers, listed, place = covered(scope, "r"), ", ".join(columns), POSITION
    return fill(PAGE, covered=covers, kinds=kind, columns=listed, order=order, position=place)


def turns(scope: Scope) -> str:
    """Build the text that reads the last turns."""
    return fill(TURNS, covered=covered(scope, "r"), columns=", ".join(_columns(scope)))


def sessions(scope: Scope) -> str:
    """Build the text that reads a page of sessions."""
    columns = ["partition"] if scope.agent_id is None else ["partition", "agent_id"]
    order = " DESC, ".join(f"s.{name}" for name in columns)
    return fill(SESSIONS, covered=covered(scope, "s"), columns=", ".join(columns), order=order)


def scan(scope: Scope) -> str:
    """Build the text that reads the versions of records batch by batch."""
    columns = _columns(scope)
    order = ", ".join(f"r.{name}" for name in columns)
    return fill(SCAN, covered=covered(scope, "r"), columns=", ".join(columns), order=order)


def _columns(scope: Scope, narrowing: str | None = None) -> list[str]:
    """List the first columns of the index that reads the fewest records of other scopes."""
    for field in ("session_id", "agent_id"):
        if narrowing is None and getattr(scope, field) is not None:
            narrowing = field
    return [name for name in ("partition", narrowing, "live") if name is not None]


def relations(scope: Scope, columns: str, source: str) -> str:
    """Build the text that reads relations by age: those that one of `OF_*` finds."""
    return fill(
        RELATIONS,
        source=source,
        columns=columns,
        owned=owned(scope, "q"),
        covered_x=covered(scope, "x"),
        covered=covered(scope, "r"),
    )


@cache
def save(parts: tuple[str, ...]) -> str:
    """Build the text that saves these parts, one subquery each."""
    texts = SAVE_REMOVED | SAVE | SAVE_RELATIONS
    return "\n".join(f"CALL () {{ UNWIND ${part} AS row {texts[part]} }}" for part in parts)
