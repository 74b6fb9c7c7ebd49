"""Parsing of the commands' arguments: location, embedder, scope, metadata and filter."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidRecordError, short_repr
from ..ports.models import Embedder
from ..settings import Location, Settings, is_url, split_place
from ..types import Scope
from .output import refuse

if TYPE_CHECKING:
    from ..memory import Memory

_DATABASE = "memory.db"
_CLOSE_SECONDS = 1.0  # each command has waited for the writes that it needs
_NAMED = ("graph=", "vectors=", "journal=")
_JSON_HINT = """Such as '{"city": "Lyon", "year": {"gte": 2020}}'."""
_SIZES = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


def find(given: str | None, *, create: bool = True) -> Location:
    """Parse a place: a folder, or `graph=URL,vectors=URL`, perhaps with `,journal=FOLDER`.

    Args:
        given: None for what the environment says, else `./memory`.
        create: False refuses a folder without a memory.
    """
    from ..backends import check_location  # this and a memory load what `--help` does without

    location = Location.find(settings=settings_of(given), **_parse(given))
    check_location(location)
    if not create:
        from ..admin import require_memory

        require_memory(location)
    return location


@contextmanager
def opened(
    given: str | None,
    embedder: Embedder | str,
    *,
    create: bool = True,
    redact: Callable[[str], str] | None = None,
) -> Iterator["Memory"]:
    """Open the memory in a place as `find` does, and close it without a long wait.

    Args:
        embedder: a text names it, as for `embedder_of`.
        redact: see `Memory.open`.
    """
    from ..memory import Memory

    if isinstance(embedder, str):
        embedder = embedder_of(embedder)
    find(given, create=create)
    memory = Memory.open(embedder=embedder, redact=redact, **_parse(given))
    try:
        yield memory
    finally:
        memory.close(_CLOSE_SECONDS)


@contextmanager
def importing(place: str, embedder: str, *, dry_run: bool) -> Iterator["Memory"]:
    """Open a memory to import into; a dry run does not make a folder that is not there yet."""
    with ExitStack() as stack:
        if dry_run and "=" not in place and not Path(place).expanduser().exists():
            place = stack.enter_context(tempfile.TemporaryDirectory())
        yield stack.enter_context(opened(place, embedder))


def embedder_of(name: str) -> Embedder:
    """Make an embedder by name; its model is loaded on first use.

    Args:
        name: `sentence-encoder`, the same with the token vectors of a MiniLM as `minilm-tokens`,
            `fastembed:MODEL` or `openai:MODEL`, with `@DIMENSIONS` behind a model whose dimensions
            are not known here.
    """
    family, _, model = name.partition(":")
    wrong = partial(InvalidRecordError, field="embedder", value=name)
    if name == "sentence-encoder":
        from ..models.sentence_encoder import SentenceEncoder

        return SentenceEncoder()
    if name == "minilm-tokens":
        from ..models.minilm import MiniLMTokens

        return MiniLMTokens()
    if family == "fastembed" and model:
        from ..models.fastembed import FastEmbed

        try:
            return FastEmbed(model)
        except ValueError as error:
            hint = "Give one of fastembed's, such as fastembed:BAAI/bge-small-en-v1.5."
            raise wrong(reason="is no model of fastembed", hint=hint) from error
    if family == "openai" and model:
        from ..models.openai import OpenAIEmbedder

        plain, _, size = model.partition("@")
        if not (size.isascii() and size.isdigit()) and plain not in _SIZES:
            hint = f"Add the length of its vectors, such as openai:{plain}@1024."
            raise wrong(reason="must name its dimensions", hint=hint)
        return OpenAIEmbedder(plain, dimensions=int(size or _SIZES[plain]))
    hint = "Give sentence-encoder, minilm-tokens, fastembed:MODEL or openai:MODEL."
    raise wrong(reason="must be a known embedder", hint=hint)


def settings_of(given: str | None) -> Settings:
    """Read the settings of a place from the environment, which adds no store to a folder."""
    # It may add passwords and a journal to URLs.
    return Settings() if _parse(given)["path"] else Settings.from_env()


def split_words(
    place: str | None, *, optional: bool = False, **words: str | None
) -> tuple[str | None, list[str]]:
    """Separate the place, which may be left out, from the words that follow it.

    Args:
        optional: the words may be left out, too; each is empty then.
        words: by the names that the message gives them; the last are None where the place was left
            out.
    """
    given = [word for word in (place, *words.values()) if word is not None]
    if len(given) > len(words):
        return place, given[1:]
    has_place = bool(given) and _is_memory(given[0])
    if optional and len(given) == has_place:
        return place if has_place else None, [""] * len(words)
    if has_place or len(given) < len(words):
        missing = [*words][len(given) - has_place]
        refuse(f"{missing} is missing. `--help` shows how it is given.")
    return None, given


def check_new(place: str | None) -> Path | None:
    """Return the folder of a memory that is yet to be made, if it is; refuse a likely text."""
    location = find(place)
    if is_url(location.graph) or (Path(location.graph) / _DATABASE).exists():
        return None
    folder = Path(location.graph)
    is_word = place is not None and not place.startswith((".", "~", *_NAMED))
    if is_word and place == Path(str(place)).name and not folder.exists():
        refuse(
            f"There is no memory in a folder {place!r}. Give './{place}' to make one there; leave "
            "LOCATION out for ./memory; --user says whose memory it is; a text of several words "
            "stands in quotes."
        )
    return folder


def scope_from(user: str | None, agent: str | None, session: str | None) -> Scope:
    """Make the scope of a command."""
    if user is None and agent is None and session is None:
        refuse("Whose memory is it? Give --user, --agent or --session, or several of them.")
    return Scope(user_id=user, agent_id=agent, session_id=session)


def text_of(word: str) -> str:
    """Return a text as it was given, or read it from standard input where `-` was given."""
    if word != "-":
        return word
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        refuse("Standard input is not text in UTF-8.")
    if not text.strip():
        refuse("Standard input is empty. Pipe a text into the command, or give it in place of -.")
    return text


def parse_conditions(given: str | None) -> dict[str, Any] | None:
    """Parse the JSON object of --filter."""
    if given is None:
        return None
    try:
        found, reason = json.loads(given), "must be a JSON object"
    except (ValueError, RecursionError) as error:
        found, reason = None, f"must be JSON ({error})"
    if not isinstance(found, dict):
        raise InvalidRecordError(field="filter", value=given, reason=reason, hint=_JSON_HINT)
    return found


def parse_metadata(given: Sequence[str] | None) -> dict[str, Any]:
    """Parse metadata: `key=text`, or `key:=JSON` for a number and what else is no text."""
    found: dict[str, Any] = {}
    for word in given or ():
        wrong = partial(InvalidRecordError, field="metadata", value=word)
        key, separator, value = word.partition("=")
        if not separator or not key.rstrip(":"):
            hint = "Or KEY:=JSON, such as --metadata year:=2026."
            raise wrong(reason="must be KEY=TEXT", hint=hint)
        is_text, name = not key.endswith(":"), key.removesuffix(":")
        if name in found:
            hint = 'Give each key once, and several values as KEY:=["one", "two"].'
            raise wrong(reason=f"gives {short_repr(name)} twice", hint=hint)
        try:
            found[name] = value if is_text else json.loads(value)
        except (ValueError, RecursionError) as error:
            raise wrong(reason=f"must be KEY:=JSON ({error})") from None
    return found


def _is_memory(place: str) -> bool:
    # A text may be too long for the name of a file, which `Path.exists` raises.
    return os.path.exists(Path(place) / _DATABASE) or place.startswith(_NAMED)


def _parse(given: str | None) -> dict[str, Any]:
    return {"path": None} if given is None else split_place("place", given)
