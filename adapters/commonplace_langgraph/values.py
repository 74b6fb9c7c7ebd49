"""Values and texts as a memory can hold them: JSON text that gives back exactly the value."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base.embed import get_text_at_path, tokenize_path

from commonplace import InvalidRecordError
from commonplace.validation import is_sound

_DEPTH = 128
_MOST_TEXTS = 256


def to_json(value: object) -> str:
    """Write a value as JSON text that gives back exactly it.

    Raises:
        InvalidRecordError: it is no mapping of JSON values, or is nested deeper than 128.
    """
    if not isinstance(value, Mapping):
        raise InvalidRecordError(
            field="value", value=value, reason="is no mapping", hint="Give a dict of JSON values."
        )
    plain = _plain("value", value, 0)
    text = json.dumps(plain, ensure_ascii=False)
    return text if is_sound(text) else json.dumps(plain)


def texts_of(value: Mapping[str, Any], paths: Sequence[str] | object) -> tuple[str, ...]:
    """Read the texts at some paths of a value, each once; none for False.

    Raises:
        InvalidRecordError: those are no paths, or there are more than 256 texts.
    """
    if paths is False:
        return ()
    if isinstance(paths, str) or not isinstance(paths, Sequence):
        raise InvalidRecordError(
            field="index", value=paths, reason="is neither False nor a list of paths"
        )
    found: list[str] = []
    for path in paths:
        if path == "$" and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
            found.append(only)  # the whole of it, without the braces
        else:
            found += get_text_at_path(dict(value), "$" if path == "$" else tokenize_path(path))
    texts = tuple(dict.fromkeys(text for one in found if (text := visible(one))))
    if len(texts) > _MOST_TEXTS:
        raise InvalidRecordError(
            field="index", value=len(texts), reason=f"gives more than {_MOST_TEXTS} texts",
            hint="Name fewer paths, or put the parts as items of their own.",
        )  # fmt: skip
    return texts


def visible(text: str, limit: int = 32 * 1024) -> str:
    """Bring a text into what a memory can hold and ask: no NUL, no half characters, cut in bytes.

    Empty if nothing of it can be seen.
    """
    sound = text.replace("\x00", " ").encode("utf-8", "replace")
    cut = sound[:limit].decode("utf-8", "ignore")
    return cut if any(one.isalnum() or (one.isprintable() and one != " ") for one in cut) else ""


def _plain(path: str, value: object, depth: int) -> Any:
    if depth > _DEPTH:
        raise InvalidRecordError(
            field=path[:80], value="…", reason=f"is nested deeper than {_DEPTH}"
        )
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidRecordError(
                    field=path, value=key, reason="has a key that is no string"
                )
        return {str(key): _plain(f"{path}.{key}", one, depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [_plain(f"{path}[{n}]", one, depth + 1) for n, one in enumerate(value)]
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    raise InvalidRecordError(
        field=path, value=value, reason="is no JSON value",
        hint="Give strings, finite numbers, booleans, None, lists and dicts.",
    )  # fmt: skip
