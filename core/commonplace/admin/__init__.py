"""Administration of a whole memory: copy, export, back up, rebuild, import, check and salvage.

Agents are never given anything of this; it is for the command line and for importers.
"""

from .backfill import BackfillReport, backfill
from .copy import CopyReport, SnapshotDigest, copy, digest
from .counts import Contents, contents, count_by_hour, count_rows, describe_engines, file_sizes
from .database_files import SalvageReport, backup, require_memory, salvage
from .doctor import Health, check_files, examine
from .import_records import ImportedRecord, ImportReport, ImportTally, find_existing, import_records
from .jsonl import ExportFile, export, restore
from .reindex import reembed, reindex

__all__ = [
    "BackfillReport",
    "Contents",
    "CopyReport",
    "ExportFile",
    "Health",
    "ImportReport",
    "ImportTally",
    "ImportedRecord",
    "SalvageReport",
    "SnapshotDigest",
    "backfill",
    "backup",
    "check_files",
    "contents",
    "copy",
    "count_by_hour",
    "count_rows",
    "describe_engines",
    "digest",
    "examine",
    "export",
    "file_sizes",
    "find_existing",
    "import_records",
    "reembed",
    "reindex",
    "require_memory",
    "restore",
    "salvage",
]
