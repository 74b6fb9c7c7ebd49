"""Metadata as engines index it: names of keys, the indexed values, and tags for equal values."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ...filters import FIELDS, Scalar

_FLAT = frozenset((str, int, float, bool, list, type(None)))  # which are no mappings
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SCALARS = (str, int, float)  # in a loop far quicker than `Scalar`
_MAX_TAGS = 256
_MAX_TAG = 64  # characters of a text that is in its tag
_encode_text = json.JSONEncoder().encode


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


def tags_of(metadata: Mapping[str, Any]) -> str | None:
    """Write the scalars of metadata as one text, a line each; equal scalars have equal tags.

    So a filter by equality parses no JSON. None if there are more than 256.
    """
    tags: list[str] = []
    for key, value in indexed_values(metadata):
        if value is None:
            continue
        values = value if isinstance(value, list | tuple) else (value,)
        tags += [tag_of(key, one) for one in values if isinstance(one, _SCALARS)] or [f"{key}="]
        if len(tags) > _MAX_TAGS:
            return None
    return "\n".join(("", *tags, "")) if tags else ""


def tag_of(key: str, value: Scalar) -> str:
    """Write a value as a tag; a long text as its hash.

    Args:
        key: as `tag_key` names it.
    """
    if isinstance(value, bool):
        return f"{key}={'true' if value else 'false'}"
    if isinstance(value, str):
        if len(value) <= _MAX_TAG:
            return f"{key}={_encode_text(value)}"
        return f"{key}={hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
    if isinstance(value, int) or value.is_integer():
        return f"{key}={int(value):x}"
    return f"{key}={value!r}"
