"""An operator's view of a store, over all scopes: copied, written out, rebuilt, filled from others.

Nothing of this is reachable from what an agent is given; it is for the command line and importers.
"""

from ..admin.copy import Copied, Digest, copy, digest
from ..admin.doctor import Health, examine
from ..admin.import_records import Loaded, Told, known, load
from ..admin.jsonl import export, restore
from ..admin.reindex import reembed, reindex
from .backfill import Filled, fill

__all__ = [
    "Copied",
    "Digest",
    "Filled",
    "Health",
    "Loaded",
    "Told",
    "copy",
    "digest",
    "examine",
    "export",
    "fill",
    "known",
    "load",
    "reembed",
    "reindex",
    "restore",
]
