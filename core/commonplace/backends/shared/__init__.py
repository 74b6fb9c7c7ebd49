"""TODO shared."""
