"""Arguments of the commands: the location of a memory, and the embedder it was made with."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..admin import require_memory
from ..errors import InvalidRecordError
from ..memory import Memory
from ..ports.models import Embedder
from ..settings import Location, Settings

_CLOSE_SECONDS = 1.0  # each command has waited for the writes that it needs
_PARTS = ("graph", "vectors", "journal")
_HINT = "Give graph=URL,vectors=URL, perhaps with journal=FOLDER; or one folder for all."
_SIZES = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


def find(given: str, *, create: bool = True) -> Location:
    """Parse a place: a folder, or `graph=URL,vectors=URL`, perhaps with `,journal=FOLDER`.

    Args:
        create: False refuses a folder without a memory.

    Raises:
        InvalidRecordError: a part is unknown, comes twice or is missing.
        CannotMoveError: there is no memory.
    """
    parts = _parse(given)
    location = Location.find(settings=_settings(parts) or Settings(), **parts)
    if not create:
        require_memory(location)
    return location


@contextmanager
def opened(given: str, embedder: Embedder, *, create: bool = True) -> Iterator[Memory]:
    """Open the memory in a place as `find` does, and close it without a long wait."""
    find(given, create=create)
    parts = _parse(given)
    memory = Memory.open(embedder=embedder, settings=_settings(parts), **parts)
    try:
        yield memory
    finally:
        memory.close(_CLOSE_SECONDS)


def embedder_of(name: str) -> Embedder:
    """Make an embedder by name; its model is loaded on first use.

    Args:
        name: `sentence-encoder`, the same with the token vectors of a MiniLM as `minilm-tokens`,
            `fastembed:MODEL` or `openai:MODEL`, with `@DIMENSIONS` behind a model whose dimensions
            are not known here.

    Raises:
        InvalidRecordError: the name is unknown.
        MissingExtraError: its package is not installed.
    """
    family, _, model = name.partition(":")
    if name == "sentence-encoder":
        from ..models.sentence_encoder import SentenceEncoder

        return SentenceEncoder()
    if name == "minilm-tokens":
        from ..models.minilm import MiniLMTokens

        return MiniLMTokens()
    if family == "fastembed" and model:
        from ..models.fastembed import FastEmbed

        return FastEmbed(model)
    if family == "openai" and model:
        from ..models.openai import OpenAIEmbedder

        plain, _, size = model.partition("@")
        if not (size.isascii() and size.isdigit()) and plain not in _SIZES:
            hint = f"Add the length of its vectors, such as openai:{plain}@1024."
            raise InvalidRecordError(
                field="embedder", value=name, reason="must name its dimensions", hint=hint
            )
        return OpenAIEmbedder(plain, dimensions=int(size or _SIZES[plain]))
    hint = "Give sentence-encoder, minilm-tokens, fastembed:MODEL or openai:MODEL."
    raise InvalidRecordError(
        field="embedder", value=name, reason="must be a known embedder", hint=hint
    )


def _settings(parts: Mapping[str, Any]) -> Settings | None:
    # The environment may add passwords and a journal to URLs, and nothing to a folder.
    return None if parts["path"] else Settings.from_env()


def _parse(given: str) -> dict[str, Any]:
    unknown = [name for name in re.findall(r"(?:^|,)([A-Za-z_]+)=", given) if name not in _PARTS]
    if unknown and not Path(given).exists():
        reason = f"has the part {unknown[0]!r}, which is none of {', '.join(_PARTS)}"
        raise InvalidRecordError(field="place", value=given, reason=reason, hint=_HINT)
    if not re.match(rf"({'|'.join(_PARTS)})=", given):
        return {"path": given}
    parts: dict[str, Any] = {"path": None}
    for part in re.split(rf",(?=(?:{'|'.join(_PARTS)})=)", given):
        name, _, where = part.partition("=")
        if name in parts or not where:
            reason = f"must have {name} once, with a value"
            raise InvalidRecordError(field="place", value=given, reason=reason)
        parts[name] = where
    if missing := [name for name in ("graph", "vectors") if name not in parts]:
        raise InvalidRecordError(
            field="place", value=given, reason=f"must have {' and '.join(missing)}", hint=_HINT
        )
    return parts
