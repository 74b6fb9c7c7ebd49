"""TODO ingest."""
