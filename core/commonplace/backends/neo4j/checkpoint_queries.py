"""Cypher of the checkpoint store, as constant texts with parameters; see `queries`.

    (Checkpoint)-[:AFTER]->(Checkpoint)
    (Thread) (ChannelValue) (TaskWrite)

Every node has the name of its thread, and an `id` that begins with it. A change to a thread locks
its node first. A write refers to its checkpoint by key, since it may be stored before it.
"""

KEYS = ("Thread", "Checkpoint", "ChannelValue", "TaskWrite")
INDEXES = {
    "thread_by_partition": ("Thread", "partition"),
    "checkpoint_by_line": ("Checkpoint", "thread, n.namespace, n.name"),
    "checkpoint_by_thread": ("Checkpoint", "thread, n.name, n.namespace"),
    "checkpoint_by_name": ("Checkpoint", "name, n.thread, n.namespace"),
    "checkpoint_by_parent": ("Checkpoint", "thread, n.namespace, n.parent"),
    "checkpoint_by_thread_only": ("Checkpoint", "thread"),
    "checkpoint_by_run": ("Checkpoint", "run"),
    "channel_value_by_thread": ("ChannelValue", "thread"),
    "task_write_by_thread": ("TaskWrite", "thread"),
    "task_write_by_checkpoint": ("TaskWrite", "checkpoint"),
}

# -- changes ---------------------------------------------------------------------------------------

# A thread gets the first owner that is given; a caller that reads another one rolls back.
LOCK = """
MERGE (t:Thread {id: $thread}) SET t.turns = coalesce(t.turns, 0) + 1
SET t += CASE WHEN t.partition IS NULL THEN $owner ELSE {} END
WITH t
"""
OWNER = "t{.user_id, .agent_id, .session_id}"
HOLD = f"{LOCK}RETURN {OWNER} AS owner"
PUT = (
    LOCK
    + """
MERGE (c:Checkpoint {id: $row.id}) SET c = $row
WITH t, c
CALL (c) { MATCH (c)-[old:AFTER]->() DELETE old }
CALL (c) { MATCH (p:Checkpoint {id: $before}) MERGE (c)-[:AFTER]->(p) }
CALL (c) {
  MATCH (n:Checkpoint)
  WHERE n.thread = c.thread AND n.namespace = c.namespace AND n.parent = c.name
  MERGE (n)-[:AFTER]->(c)
}
CALL () { UNWIND $filled AS one MERGE (v:ChannelValue {id: one.id}) SET v = one }
CALL () { UNWIND $emptied AS id MATCH (v:ChannelValue {id: id}) DELETE v }
RETURN """
    + OWNER
    + " AS owner"
)
WRITE = (
    LOCK
    + """
CALL () { UNWIND $replaced AS one MERGE (w:TaskWrite {id: one.id}) SET w = one }
CALL () { UNWIND $added AS one MERGE (w:TaskWrite {id: one.id}) ON CREATE SET w = one }
RETURN """
    + OWNER
    + " AS owner"
)
REMOVE = """
UNWIND $threads AS id MATCH (t:Thread {id: id})
SET t.turns = coalesce(t.turns, 0) + 1
WITH collect(t) AS threads
CALL (threads) {
  UNWIND threads AS t MATCH (w:TaskWrite {thread: t.id}) DELETE w RETURN count(*) AS writes
}
CALL (threads) {
  UNWIND threads AS t MATCH (v:ChannelValue {thread: t.id}) DELETE v RETURN count(*) AS values
}
CALL (threads) {
  UNWIND threads AS t MATCH (c:Checkpoint {thread: t.id}) DETACH DELETE c
  RETURN count(*) AS checkpoints
}
CALL (threads) { UNWIND threads AS t DELETE t RETURN count(*) AS number }
RETURN number AS threads, checkpoints, values, writes
"""
# The lock comes first, so that what is read afterwards cannot change.
LOCK_EXISTING = """
MATCH (t:Thread {id: $thread}) SET t.turns = coalesce(t.turns, 0) + 1
RETURN t{.user_id, .agent_id, .session_id} AS owner
"""
LOAD = """
RETURN COLLECT { MATCH (c:Checkpoint {thread: $thread})
  RETURN c{.namespace, .name, .parent, .run, .within, .deltas, .versions} } AS headers,
  COLLECT { MATCH (v:ChannelValue {thread: $thread})
  RETURN [v.namespace, v.channel, v.version] } AS values
"""
KEEP = """
CALL () { UNWIND $unused AS id MATCH (v:ChannelValue {id: id}) DELETE v }
CALL () { UNWIND $removed AS id MATCH (w:TaskWrite {checkpoint: id}) DELETE w }
CALL () { UNWIND $removed AS id MATCH (c:Checkpoint {id: id}) DETACH DELETE c }
"""
DROP_EMPTY = """
MATCH (t:Thread {id: $thread})
WHERE NOT EXISTS { MATCH (:Checkpoint {thread: $thread}) }
  AND NOT EXISTS { MATCH (:TaskWrite {thread: $thread}) }
DELETE t
"""
# Every key begins with that of its thread; the key of a copy differs in that prefix only.
COPY = (
    LOCK
    + """
CALL () {
  MATCH (c:Checkpoint {thread: $source})
  MERGE (n:Checkpoint {id: $prefix + substring(c.id, size($source_prefix))})
  SET n = c{.*, id: n.id, thread: $thread,
    values: [one IN c.values | $prefix + substring(one, size($source_prefix))]}
}
CALL () {
  MATCH (c:Checkpoint {thread: $source}) USING INDEX SEEK c:Checkpoint(thread)
  MATCH (c)-[:AFTER]->(p)
  MATCH (n:Checkpoint {id: $prefix + substring(c.id, size($source_prefix))})
  MATCH (m:Checkpoint {id: $prefix + substring(p.id, size($source_prefix))})
  MERGE (n)-[:AFTER]->(m)
}
CALL () {
  MATCH (v:ChannelValue {thread: $source})
  MERGE (n:ChannelValue {id: $prefix + substring(v.id, size($source_prefix))})
  SET n = v{.*, id: n.id, thread: $thread}
}
CALL () {
  MATCH (w:TaskWrite {thread: $source})
  MERGE (n:TaskWrite {id: $prefix + substring(w.id, size($source_prefix))})
  SET n = w{.*, id: n.id, thread: $thread,
    checkpoint: $prefix + substring(w.checkpoint, size($source_prefix))}
}
RETURN """
    + OWNER
    + " AS owner"
)

# -- reads -----------------------------------------------------------------------------------------

_STATE = """
RETURN c{.*} AS checkpoint,
  COLLECT { UNWIND c.values AS key MATCH (v:ChannelValue {id: key})
    RETURN v{.channel, .type, .data} } AS values,
  COLLECT { MATCH (w:TaskWrite {checkpoint: c.id}) RETURN w{.*} } AS writes,
  COLLECT { MATCH (t:Thread {id: c.thread})
    RETURN t{.user_id, .agent_id, .session_id} } AS owners
"""
STATES = "UNWIND $ids AS id MATCH (c:Checkpoint {id: id})" + _STATE
LATEST = (
    """
MATCH (c:Checkpoint) USING INDEX SEEK c:Checkpoint(thread, namespace, name)
WHERE c.thread = $thread AND c.namespace = $namespace AND c.name IS NOT NULL
WITH c ORDER BY c.thread DESC, c.namespace DESC, c.name DESC LIMIT 1
"""
    + _STATE
)
PAGE = """
MATCH (c:Checkpoint) USING INDEX c:Checkpoint({columns})
WHERE {conditions} RETURN c{.*} AS checkpoint ORDER BY {order}
SKIP $offset LIMIT $limit
"""
BELOW = """c.name <= $after_id AND CASE WHEN c.name < $after_id THEN true
  WHEN c.thread = $after_thread THEN c.namespace < $after_namespace
  ELSE c.thread < $after_thread END"""
ABOVE = BELOW.replace("<", ">")
STEPS = """
MATCH path = (:Checkpoint {id: $id})-[:AFTER*1..{limit}]->(c:Checkpoint)
WITH c, length(path) AS distance ORDER BY distance
RETURN c.id AS id,
  COLLECT { UNWIND c.values AS key MATCH (v:ChannelValue {id: key})
    WHERE v.channel IN $channels RETURN v{.channel, .type, .data} } AS values,
  COLLECT { MATCH (w:TaskWrite {checkpoint: c.id})
    WHERE w.channel IN $channels RETURN w{.*} } AS writes
"""
OF_RUNS = "MATCH (c:Checkpoint) WHERE c.run IN $runs RETURN DISTINCT c.thread AS thread"
OWNED = "MATCH (t:Thread) WHERE {covered} RETURN t.id AS id LIMIT $limit"
COUNT = """
MATCH (t:Thread) WHERE {covered}
RETURN count(t) AS threads,
  coalesce(sum(COUNT { MATCH (:Checkpoint {thread: t.id}) }), 0) AS checkpoints,
  coalesce(sum(COUNT { MATCH (:ChannelValue {thread: t.id}) }), 0) AS values,
  coalesce(sum(COUNT { MATCH (:TaskWrite {thread: t.id}) }), 0) AS writes
"""
