"""Models that ship with the library; each module is imported only by those who want it."""
