"""An operator's view of a store, over all scopes: copied, written out, rebuilt, filled from others.

Nothing of this is reachable from what an agent is given; it is for the command line and importers.
"""

from .copying import Copied, Digest, copy, digest
from .files import export, restore
from .filling import Filled, fill
from .foreign import Loaded, Told, known, load
from .health import Health, examine
from .rebuilding import reembed, reindex

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
