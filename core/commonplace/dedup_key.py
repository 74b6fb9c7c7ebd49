"""Identity of what is told: values of its metadata that make it another record.

They are part of the key of a record, and of the key of a single-valued relation that it states.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

_BEFORE_VALUES = "\x00"  # in no text and in no name
_BEFORE_HASH = "\x1f"  # counts as a space, and so is in no folded name


def identity_of(metadata: Mapping[str, Any], identity: Sequence[str]) -> str:
    """Write the values under the keys `identity` of metadata as one text, equal for equal values.

    Empty if there are none. None counts as missing, and a whole number is the same as a float.
    """
    held = {key: value for key in identity if (value := metadata.get(key)) is not None}
    return json.dumps(_canonical(held), sort_keys=True) if held else ""


def identity_hash(metadata: Mapping[str, Any], identity: Sequence[str]) -> str:
    """Hash the same values to 32 hexadecimal digits; empty if there are none."""
    values = identity_of(metadata, identity)
    return hashlib.sha256(values.encode()).hexdigest()[:32] if values else ""


def with_identity(key: str, metadata: Mapping[str, Any], identity: Sequence[str]) -> str:
    """Add to the key of a record the values of its identity; none leave it as it is."""
    values = identity_of(metadata, identity)
    return f"{key}{_BEFORE_VALUES}{values}" if values else key


def join_key(predicate: str, identity: str) -> str:
    """Make the key of a relation from the folded predicate and the hash of an identity."""
    return f"{predicate}{_BEFORE_HASH}{identity}" if identity else predicate


def split_key(key: str) -> tuple[str, str]:
    """Split the key of a relation into the folded predicate and the hash of an identity."""
    predicate, _, identity = key.partition(_BEFORE_HASH)
    return predicate, identity


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
