"""Faults of the engines that are servers.

Qdrant's are caught by its own local mode, which needs no server; Neo4j's need one.
"""

from .fault import Fault

_NEO4J = "core/commonplace/backends/neo4j"
_QDRANT = "core/commonplace/backends/qdrant"
_TESTS = "integrations_tests"
_GRAPH = f"{_TESTS}/servers/test_neo4j.py"
_INDEX = f"{_TESTS}/servers/test_qdrant.py"

FAULTS = (
    Fault(
        name="qdrant-owner-dropped",
        what="Counting and erasing takes what all owners have",
        file=f"{_QDRANT}/query.py",
        old='    return m.Filter(must=[equals("scopes", scope.key), *newest])',
        new="    return m.Filter(must=[*newest])",
        tests=(_INDEX, "-k", "InMemory and (erase or count)"),
    ),
    Fault(
        name="qdrant-delete-crosses-owners",
        what="A deletion by ids takes records of other owners",
        file=f"{_QDRANT}/index.py",
        old="conditions = [covered(scope, version)] if scope else []",
        new='conditions = [within("version", lte=version)] if version is not None else []',
        tests=(_INDEX, "-k", "InMemory and delete"),
    ),
    Fault(
        name="qdrant-older-point-written",
        what="An older version of a point replaces a newer one",
        file=f"{_QDRANT}/query.py",
        old='m.Filter(must=[has_id(ids), within("version", lt=version)])',
        new="m.Filter(must=[has_id(ids)])",
        tests=(_INDEX, "-k", "InMemory and older"),
    ),
    Fault(
        name="qdrant-older-amendment",
        what="The end of an older version of a record is written over a newer one",
        file=f"{_QDRANT}/index.py",
        old='m.Filter(must=[has_id([record.id]), within("version", lte=record.version)])',
        new="m.Filter(must=[has_id([record.id])])",
        tests=(_INDEX, "-k", "InMemory and (amend or older or newer)"),
    ),
    Fault(
        name="qdrant-newer-erased",
        what="An erasure takes what was written after it",
        file=f"{_QDRANT}/index.py",
        old="        self._remove(scope, covered(scope, version))\n",
        new="        self._remove(scope, covered(scope))\n",
        tests=(_INDEX, "-k", "InMemory and newer"),
    ),
    Fault(
        name="qdrant-row-not-checked",
        what="What the server finds is not compared with the query once more",
        file=f"{_QDRANT}/query.py",
        old="return {key: row for key, row in rows.items() if query.matches(row[0])}",
        new="return rows",
        tests=(_INDEX, "-k", "InMemory and (operator or predicate or end or true)"),
    ),
    Fault(
        name="neo4j-constraint-missing",
        what="Ids of entities are not unique, so that concurrent writes make one twice",
        file=f"{_NEO4J}/queries.py",
        old='KEYS = ("Record", "Entity", "Pair",',
        new='KEYS = ("Record", "Pair",',
        tests=(_GRAPH, "-k", "same_entities or same_schema or goes_by_an_index"),
    ),
    Fault(
        name="neo4j-partition-not-locked",
        what="Two changes of an owner's memory interleave",
        file=f"{_NEO4J}/queries.py",
        old="SET l.turns = coalesce(l.turns, 0) + 1\n",
        new="",
        tests=(_GRAPH, "-k", "wait_for_each_other"),
    ),
    Fault(
        name="neo4j-get-without-owner",
        what="A record is read by its id, whoever asks",
        file=f"{_NEO4J}/graph.py",
        old="record.id: record\n            for record in rows.visible(scope, records, include_expired=include_expired)",
        new="record.id: record\n            for record in records",
        tests=(_GRAPH, "-k", "Neo4jGraph and (leaves_out_others or alike or expired)"),
    ),
    Fault(
        name="neo4j-history-without-owner",
        what="The history of a record is read, whoever asks",
        file=f"{_NEO4J}/graph.py",
        old="found = self._read(queries.HISTORY, scope, _valid([record_id]))",
        new='text = queries.fill(queries.HISTORY, covered="true")\n'
        "        found = self.driver.read(lambda run: run(text, ids=[record_id]))",
        tests=(_GRAPH, "-k", "Neo4jGraph and history_of"),
    ),
    Fault(
        name="neo4j-fence-not-loaded",
        what="A write that was accepted before an erasure comes back after it",
        file=f"{_NEO4J}/overlay.py",
        old='        "fences": fence_keys(scopes),',
        new='        "fences": [],',
        tests=(_GRAPH, "-k", "Neo4jGraph and erasure"),
    ),
    Fault(
        name="neo4j-newer-erased",
        what="An erasure takes the earlier texts of what was written after it",
        file=f"{_NEO4J}/queries.py",
        old="MATCH (r)-[:BECAME]->(v:Version) WHERE v.version <= $version",
        new="MATCH (r)-[:BECAME]->(v:Version) WHERE v.version > $version",
        tests=(_GRAPH, "-k", "Neo4jGraph and (erasure or newer)"),
    ),
    Fault(
        name="neo4j-accesses-in-tombstone",
        what="A tombstone keeps the times of access",
        file=f"{_NEO4J}/overlay.py",
        old='row["record"] for row in (*accesses.created, *accesses.removed)',
        new='row["record"] for row in accesses.created',
        tests=(_GRAPH, "-k", "Neo4jGraph and accesses"),
    ),
)  # fmt: skip
