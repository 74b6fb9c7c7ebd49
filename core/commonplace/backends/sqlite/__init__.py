"""Embedded graph store, journal and checkpoint store in SQLite files."""
