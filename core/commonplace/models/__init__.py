"""Embedders and chat models that ship with the library; each module is imported on demand."""
