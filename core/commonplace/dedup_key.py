"""Key of a relation: its folded predicate, and the identity of what states it."""

_BEFORE_HASH = "\x1f"  # counts as a space, and so is in no folded name


def join_key(predicate: str, identity: str) -> str:
    """Make the key of a relation from the folded predicate and the hash of an identity."""
    return f"{predicate}{_BEFORE_HASH}{identity}" if identity else predicate


def split_key(key: str) -> tuple[str, str]:
    """Split the key of a relation into the folded predicate and the hash of an identity."""
    predicate, _, identity = key.partition(_BEFORE_HASH)
    return predicate, identity
