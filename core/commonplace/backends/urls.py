"""What the URL of a server says: where it is, as whom to ask it, and options of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import InvalidRecord


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Server:
    """A URL taken apart, shown to nobody.

    Attributes:
        url: scheme, host and port.
        user, password: what stands before an `@`; empty when nothing does.
        name: the path, of a database or a collection; empty when there is none.
        options: what stands behind a `?`, by name.
    """

    url: str
    user: str
    password: str
    name: str
    options: Mapping[str, Any]


def parse(field: str, url: str, known: Mapping[str, type]) -> Server:
    """Take a URL apart.

    Args:
        field: what it was given for.
        known: the options that there are, with their types.

    Raises:
        InvalidRecord: there is no such option, or its value is not of its type.
    """
    parts = urlsplit(url)
    options: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known:
            hint = f"There are: {', '.join(known)}."
            raise InvalidRecord(field=field, value=name, reason="is no option", hint=hint)
        options[name] = _value(name, value, known[name])
    return Server(
        url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        name=unquote(parts.path.strip("/")),
        options=options,
    )


def _value(name: str, value: str, kind: type) -> Any:
    if kind is bool and value not in ("true", "false"):
        raise InvalidRecord(field=name, value=value, reason="is not true or false")
    if kind is int and not (value.isascii() and value.isdigit() and int(value)):
        raise InvalidRecord(field=name, value=value, reason="is no whole number above zero")
    return value == "true" if kind is bool else kind(value)
