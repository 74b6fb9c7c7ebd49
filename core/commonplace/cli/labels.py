"""Words for what is counted, in place of the names of tables; `--json` keeps those."""

import re

_RECEIPTS = {
    "graph.records": "memories",
    "graph.versions": "versions of memories",
    "graph.relations": "relations",
    "graph.entities": "names in relations",
    "checkpoints.threads": "threads of agents",
    "checkpoints.checkpoints": "checkpoints of threads",
    "checkpoints.values": "values in checkpoints",
    "checkpoints.writes": "writes of unfinished steps",
    "index.points": "vectors",
    "journal.rows": "pending writes",
}
_FILE = {
    "record": "memories, deleted ones included",
    "version": "versions of memories",
    "recall": "recalls of memories",
    "relation": "relations",
    "support": "memories that state relations",
    "entity": "names in relations",
    "pair": "parts of names",
    "session": "sessions",
    "erasure": "erased scopes",
    "thread": "threads of agents",
    "checkpoint": "checkpoints of threads",
    "channel_value": "values in checkpoints",
    "task_write": "writes of unfinished steps",
    "op": "pending writes and dead letters",
    "fence": "marks of the last write",
    "meta": "properties of the file",
}
_CONTENTS = {**_FILE, "fence": "erased scopes", "live": "memories"}
_POINT = re.compile(r"point(_\d+)?(_change)?")


def receipt_label(name: str) -> str:
    """Name what an `EraseReceipt` counts under this name."""
    return _RECEIPTS.get(name, name)


def contents_label(name: str) -> str:
    """Name what `Health.counts` or a checksum of a copy counts under this name."""
    return _CONTENTS.get(name, name)


def table_label(table: str) -> str:
    """Name what the rows of a table of the embedded engines are."""
    if point := _POINT.fullmatch(table):
        return "owners with vectors" if point[2] else "vectors"
    return _FILE.get(table, table)
