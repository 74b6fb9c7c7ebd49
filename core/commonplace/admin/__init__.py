"""Administration of a whole memory, over all scopes: copy, export, restore, rebuild, import, check.

Agents are never given anything of this; it is for the command line and for importers.
"""

from .backfill import BackfillReport, backfill
from .copy import CopyReport, SnapshotDigest, copy, digest
from .doctor import Health, examine
from .import_records import ImportedRecord, ImportReport, find_existing, import_records
from .jsonl import export, restore
from .reindex import reembed, reindex

__all__ = [
    "BackfillReport",
    "CopyReport",
    "Health",
    "ImportReport",
    "ImportedRecord",
    "SnapshotDigest",
    "backfill",
    "copy",
    "digest",
    "examine",
    "export",
    "find_existing",
    "import_records",
    "reembed",
    "reindex",
    "restore",
]
