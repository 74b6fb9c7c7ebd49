"""Names of metadata keys as engines index them, and the values that are indexed."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ...filters import FIELDS

_FLAT = frozenset((str, int, float, bool, list, type(None)))  # which are no mappings
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@lru_cache(4096)
def tag_key(key: str) -> str:
    """Name a metadata key, or a path to a nested value; other keys have other names.

    A plain key that is no field of a record is its own name. Any other has a hash, which begins
    with a digit, as no plain key does.
    """
    if _PLAIN.fullmatch(key) and key not in FIELDS:
        return key
    return "0" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def indexed_values(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over (`tag_key`, value) of all that `filters.metadata_value` reads from metadata."""
    for key, held in metadata.items():
        yield tag_key(key), held
    for key, held in metadata.items():
        if type(held) not in _FLAT and isinstance(held, Mapping) and "." not in key:
            yield from _nested(key, held, metadata)


def _nested(
    path: str, held: Mapping[str, Any], metadata: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    for key, value in held.items():
        if "." in key:
            continue  # no path leads to it
        inner = f"{path}.{key}"
        if inner not in metadata:
            yield tag_key(inner), value
        if type(value) not in _FLAT and isinstance(value, Mapping):
            yield from _nested(inner, value, metadata)
