"""Embedded vector index on Qdrant's engine inside this process."""

from importlib.util import find_spec

from ...errors import MissingExtraError

if find_spec("qdrant_edge") is None:
    raise MissingExtraError(package="qdrant-edge-py", extra="edge")
