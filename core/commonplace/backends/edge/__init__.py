"""Embedded vector index on Qdrant's engine inside this process."""
