"""Deliberate faults, as data, and the script that plants them one at a time."""

from .adapters import FAULTS as _ADAPTERS
from .connections import FAULTS as _CONNECTIONS
from .embedded import FAULTS as _EMBEDDED
from .ingest import FAULTS as _INGEST
from .retrieval import FAULTS as _RETRIEVAL
from .servers import FAULTS as _SERVERS

FAULTS = (*_INGEST, *_EMBEDDED, *_RETRIEVAL, *_ADAPTERS, *_CONNECTIONS, *_SERVERS)
