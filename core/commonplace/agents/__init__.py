"""TODO agents."""
