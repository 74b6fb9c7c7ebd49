"""What a command is given: where a memory is, and which embedder it was made with."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import InvalidRecordError
from ..memory import Memory
from ..ports.models import Embedder
from ..settings import Location, Settings

_SECONDS = 1.0  # for what is on its way when a command ends
_PARTS = ("graph", "vectors", "journal")
_SIZES = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


def find(given: str) -> Location:
    """Read a place: a folder, or `graph=URL,vectors=URL`, with `,journal=FOLDER` if need be.

    Raises:
        InvalidRecordError: a part has another name, comes twice or is missing.
    """
    said = _read(given)
    return Location.find(settings=_settings(said) or Settings(), **said)


@contextmanager
def opened(given: str, embedder: Embedder) -> Iterator[Memory]:
    """Open the memory in a place, for a command that has waited itself for what it needs."""
    said = _read(given)
    memory = Memory.open(embedder=embedder, settings=_settings(said), **said)
    try:
        yield memory
    finally:
        memory.close(_SECONDS)


def embedder_of(name: str) -> Embedder:
    """Make the embedder of this name; the model is loaded on first use.

    Args:
        name: `sentence-encoder`, `fastembed:MODEL` or `openai:MODEL`, with `@DIMENSIONS` behind a
            model whose dimensions are not known here.

    Raises:
        InvalidRecordError: there is no such embedder.
        MissingExtraError: its package is not installed.
    """
    family, _, model = name.partition(":")
    if name == "sentence-encoder":
        from ..models.sentence_encoder import SentenceEncoder  # noqa: PLC0415 -- on first use

        return SentenceEncoder()
    if family == "fastembed" and model:
        from ..models.fastembed import FastEmbed  # noqa: PLC0415 -- on first use

        return FastEmbed(model)
    if family == "openai" and model:
        from ..models.openai import OpenAIEmbedder  # noqa: PLC0415 -- on first use

        plain, _, size = model.partition("@")
        if not (size.isascii() and size.isdigit()) and plain not in _SIZES:
            hint = f"Say how long its vectors are: openai:{plain}@1024."
            raise InvalidRecordError(field="embedder", value=name, reason="is not known", hint=hint)
        return OpenAIEmbedder(plain, dimensions=int(size or _SIZES[plain]))
    hint = "Give sentence-encoder, fastembed:MODEL or openai:MODEL."
    raise InvalidRecordError(field="embedder", value=name, reason="is none of ours", hint=hint)


def _settings(said: Mapping[str, Any]) -> Settings | None:
    # The environment may add passwords and a journal to URLs, and nothing to a folder.
    return None if said["path"] else Settings.from_env()


def _read(given: str) -> dict[str, Any]:
    if not re.match(rf"({'|'.join(_PARTS)})=", given):
        return {"path": given}
    said: dict[str, Any] = {"path": None}
    for part in re.split(rf",(?=(?:{'|'.join(_PARTS)})=)", given):
        name, _, where = part.partition("=")
        if name in said or not where:
            reason = f"names {name} twice, or not where it is"
            raise InvalidRecordError(field="place", value=given, reason=reason)
        said[name] = where
    if missing := [name for name in ("graph", "vectors") if name not in said]:
        hint = "Give graph=URL,vectors=URL, and journal=FOLDER if need be; or one folder for all."
        raise InvalidRecordError(
            field="place", value=given, reason=f"has no {' and no '.join(missing)}", hint=hint
        )
    return said
