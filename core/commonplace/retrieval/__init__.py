"""TODO retrieval."""
