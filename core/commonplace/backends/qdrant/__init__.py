"""Shared vector index on a Qdrant server."""
