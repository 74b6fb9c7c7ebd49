"""TODO edge."""
