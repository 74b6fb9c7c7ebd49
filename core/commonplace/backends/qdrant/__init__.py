"""TODO qdrant."""
