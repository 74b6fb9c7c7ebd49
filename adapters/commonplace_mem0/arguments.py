"""Arguments of mem0's calls, checked and normalised, whichever version they were written for.

Code for 0.1 and 1.x passes ids as arguments, code for 2.x inside `filters`. Each version refuses
the other way, so the place of the ids shows which defaults the caller expects:

- ids as arguments: 100 memories, no threshold, reranked if there is a reranker.
- ids only in `filters`: 20 memories, `THRESHOLD`, not reranked.

Messages may be a text, a dict, or a list of both:

- of content in parts the texts are kept, joined by a space; other parts are logged once by kind.
- a message without text, such as a tool call, is skipped.
- the roles `human`, `ai`, `function` and `developer` become those of chat models.

What cannot be used raises a `ValidationError`.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, get_args

from commonplace import Message, Role, Scope
from commonplace.agents import Unset, short_repr

from .convert import expiry_of, parse_time, promoted_key, to_stored
from .exceptions import BAD_MEMORY_TYPE, BAD_MESSAGES, ValidationError
from .filters import compile_filter
from .scope_ids import IDS, clean_id, to_scope

logger: logging.Logger = logging.getLogger("commonplace_mem0")
Compat = Literal["auto", "v1", "v2"]
Era = Literal["v1", "v2"]
LIMITS: Mapping[Era, int] = {"v1": 100, "v2": 20}
# In place of 2.x's 0.1 of a cosine: our scores are probabilities, and what answers a vague
# question, such as "What do you know about me?", has a small one. So what mem0 finds is found.
THRESHOLD = 0.001
PROCEDURAL = "procedural_memory"
_ROLES = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system"}
_NO_TEXT = {"tool_calls", "function_call", "audio", "refusal"}  # of a message without content


# -- add ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMessage:
    """One message of `add`.

    Attributes:
        role: as given.
        is_turn: whether it was said in a conversation; a bare text states something.
    """

    text: str
    role: str
    name: str | None = None
    is_turn: bool = True

    @property
    def chat_role(self) -> str:
        """The role as a chat model knows it."""
        role = _ROLES.get(self.role.lower(), self.role.lower())
        return role if role in get_args(Role) else "user"

    def to_message(self, at: datetime | None) -> Message:
        """Convert it to a message of the core."""
        name = (self.name or "").strip()[:256] or None
        return Message(text=self.text, role=self.chat_role, name=name, at=at)  # type: ignore[arg-type]  # one of Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    """A checked call of `add`.

    Attributes:
        metadata: as records store it.
        infer: None if not given.
        at: when the messages were said; None for now.
        is_procedural: a model writes down how a task went.
    """

    messages: Sequence[InputMessage]
    scope: Scope
    metadata: Mapping[str, Any]
    infer: bool | None
    prompt: str | None
    at: datetime | None
    wait: bool
    is_procedural: bool

    @property
    def remembered(self) -> Sequence[InputMessage]:
        """The messages to remember: all but those of the system."""
        return [message for message in self.messages if message.chat_role != "system"]

    @property
    def identity(self) -> tuple[str, ...]:
        """The caller's keys of the metadata: the same text with other values is another memory."""
        return tuple(name for name in self.metadata if not name.startswith(promoted_key("")))

    @property
    def expires_at(self) -> datetime | None:
        """When the memories expire."""
        return expiry_of(self.metadata.get(promoted_key("expiration_date")))


def add_request(
    messages: Any,
    ids: Mapping[str, Any],
    filters: Mapping[str, Any] | None,
    *,
    compat: Compat,
    metadata: Mapping[str, Any] | None,
    infer: bool | str | Unset,
    prompt: str | None,
    memory_type: str | None,
    timestamp: Any,
    expiration_date: Any,
    wait: bool,
) -> AddRequest:
    """Check a call of `add`."""
    if not isinstance(infer, bool | str | Unset | None):
        raise ValidationError.of("infer", infer, "must be True or False.")
    if prompt is not None and not isinstance(prompt, str):
        raise ValidationError.of("prompt", prompt, "must be a text. Give the model's instructions.")
    _check_flag("wait", wait)
    if isinstance(infer, str):  # before there was `infer`, the prompt stood in its place
        prompt, infer = infer, True
    if memory_type not in (None, PROCEDURAL):
        raise ValidationError(
            f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.",
            BAD_MEMORY_TYPE,
            {"provided_type": memory_type, "valid_type": PROCEDURAL},
        )
    parsed = to_messages(messages)
    scope = to_scope(_merge_ids(_given(ids), top_ids(filters)), allow_spaces=compat != "v2")
    given: Any = metadata
    more = _given({"expiration_date": expiration_date, "created_at": timestamp})
    if more and isinstance(metadata or {}, Mapping):
        given = {**(metadata or {}), **more}
    stored = to_stored(given, scope=scope)
    created = stored.get(promoted_key("created_at"))
    return AddRequest(
        messages=parsed,
        scope=scope,
        metadata=stored,
        infer=None if isinstance(infer, Unset) else bool(infer),
        prompt=prompt,
        at=None if created is None else parse_time(created),
        wait=wait,
        is_procedural=memory_type is not None,
    )


def to_messages(messages: object) -> list[InputMessage]:
    """Read the messages that have a text, in order; the caller's objects are not changed."""
    if isinstance(messages, str | Mapping):
        messages = [messages]
    if not isinstance(messages, list | tuple):
        raise ValidationError(
            f"messages must be str, dict, or list[dict], not {type(messages).__name__}",
            BAD_MESSAGES,
            {"provided_type": type(messages).__name__, "valid_types": ["str", "dict", "list"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
        )
    return [parsed for message in messages if (parsed := _message(message)) is not None]


def _message(given: object) -> InputMessage | None:
    if isinstance(given, str):
        return InputMessage(text=given, role="user", is_turn=False) if given.strip() else None
    if not isinstance(given, Mapping):
        raise _refused("message", given, "must be a text or a dict with role and content.")
    if "content" not in given and _NO_TEXT.isdisjoint(given):
        example = "Give {'role': 'user', 'content': '...'}."
        raise _refused("message", given, f"has no content. {example}")
    text = _text(given.get("content"))
    role, name = given.get("role"), given.get("name")
    if not isinstance(role, str | None):
        raise _refused("role", role, "must be a text, such as 'user' or 'assistant'.")
    if not isinstance(name, str | int | None):
        raise _refused("name", name, "must be a text.")
    if not text.strip():
        return None
    role = str.__str__(role or "") or "user"  # also of a member of an enumeration
    return InputMessage(text=text, role=role, name=None if name is None else str(name))


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        content = [content]
    _refuse_bytes(content)
    if not isinstance(content, Sequence):
        raise _refused("content", content, "must be a text or a list.")
    texts = []
    for part in content:
        given = part.get("text") if isinstance(part, Mapping) else part
        _refuse_bytes(given)
        if isinstance(given, str):
            texts.append(given)
        else:
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            _log_skipped(short_repr(kind))
    return " ".join(texts)


def _refuse_bytes(content: object) -> None:
    if isinstance(content, bytes | bytearray | memoryview):
        raise _refused("content", content, "must be a text. Decode it: content.decode().")


def _refused(part: str, value: object, reason: str) -> ValidationError:
    return ValidationError(f"The {part} {short_repr(value)} {reason}", BAD_MESSAGES)


@lru_cache(1024)  # so that there is one warning for each kind
def _log_skipped(kind: str) -> None:
    logger.warning("Skipped a message part that is not text: %s", kind)


# -- search, get_all ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A checked call of `search` or `get_all`.

    Attributes:
        limit: how many memories at most, from 0.
        threshold: the lowest score.
        filters: without the ids at the top.
    """

    scope: Scope
    limit: int
    threshold: float
    rerank: bool
    explain: bool
    show_expired: bool
    filters: Mapping[str, Any]


def read_request(
    method: str,
    ids: Mapping[str, Any],
    filters: Mapping[str, Any] | None,
    *,
    compat: Compat,
    limit: int | None,
    top_k: int | None,
    show_expired: bool,
    threshold: float | None = None,
    rerank: bool | None = None,
    explain: bool = False,
    reference_date: Any = None,
) -> ReadRequest:
    """Check a call of `search` or `get_all`, and find its era."""
    if reference_date is not None:
        reason = "is for mem0's hosted product only. Leave it out."
        raise ValidationError.of("reference_date", reference_date, reason)
    for name, flag in (("rerank", rerank), ("explain", explain)):
        if flag is not None:
            _check_flag(name, flag)
    _check_flag("show_expired", show_expired)
    filter_ids, argument_ids = top_ids(filters), _given(ids)
    era: Era = ("v1" if argument_ids else "v2") if compat == "auto" else compat
    if compat == "v2" and argument_ids:
        raise ValidationError(
            f"Top-level entity parameters {set(argument_ids)} are not supported in {method}(). "
            "Use filters={'user_id': '...'} instead."
        )
    scope = to_scope(_merge_ids(argument_ids, filter_ids), allow_spaces=compat != "v2")
    rest = {name: value for name, value in (filters or {}).items() if name not in IDS}
    for name in ("OR", "NOT") if method == "search" else ():  # mem0's `get_all` takes them
        if name in rest and not rest[name]:
            raise ValidationError.of(name, rest[name], "must be a list of at least one filter.")
    compile_filter(rest, scope)  # a wrong one is refused before anything is opened
    return ReadRequest(
        scope=scope,
        limit=_limit(limit, top_k, LIMITS[era]),
        threshold=_threshold(threshold, era),
        rerank=era == "v1" if rerank is None else rerank,
        explain=bool(explain),
        show_expired=show_expired,
        filters=rest,
    )


def clean_query(query: object) -> str:
    """Strip a query of spaces; refuse what is blank or not a text."""
    if not isinstance(query, str):
        raise ValidationError(
            f"Invalid query: must be a non-empty string, not {short_repr(query)}."
        )
    if not query.strip():
        raise ValidationError(
            f"Invalid query: cannot be empty or whitespace-only, as {short_repr(query)} is. "
            "Give words to look for."
        )
    return query.strip()


def merge_filters(
    filters: Mapping[str, Any] | None, more: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Merge the filter with the second one that mem0's async search takes; both must hold."""
    if not more:
        return filters
    ids = top_ids(filters)
    rest = {name: value for name, value in (filters or {}).items() if name not in ids}
    return {**ids, "AND": [part for part in (rest, more) if part]}


def _check_flag(name: str, value: object) -> None:
    if type(value) is not bool:
        raise ValidationError.of(name, value, "must be True or False.")


def _limit(limit: int | None, top_k: int | None, default: int) -> int:
    given = _given({"limit": limit, "top_k": top_k})
    for name, value in given.items():
        if type(value) is not int:
            raise ValidationError(f"{name} must be a valid integer, not {short_repr(value)}")
        if value < 0:
            raise ValidationError(
                f"Invalid {name}: {short_repr(value)}. Must be a non-negative integer."
            )
    if len(set(given.values())) > 1:
        raise ValidationError.of(
            "limit", limit, f"and top_k={short_repr(top_k)} differ. Give one: they mean the same."
        )
    found: int = next(iter(given.values()), default)
    return found


def _threshold(given: float | None, era: Era) -> float:
    if given is None:
        return THRESHOLD if era == "v2" else 0.0
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or (isinstance(given, float) and math.isnan(given)):
        raise ValidationError(
            f"threshold must be a valid number, not {short_repr(given)}. Give one from 0 to 1."
        )
    if not 0 <= given <= 1:
        raise ValidationError(
            f"Invalid threshold: {short_repr(given)}. Must be between 0 and 1 (inclusive)."
        )
    return float(given)


# -- ids ----------------------------------------------------------------------------------------


def erase_scope(ids: Mapping[str, Any], *, compat: Compat) -> Scope:
    """Make the scope that `delete_all` erases; at least one id must be given."""
    if not _given(ids):
        raise ValidationError(
            "At least one filter is required to delete all memories. If you want to delete all "
            "memories, use the `reset()` method."
        )
    return to_scope(ids, allow_spaces=compat != "v2")


def top_ids(filters: object) -> dict[str, Any]:
    """Read the ids at the top of a filter, as given."""
    if filters is None:
        return {}
    if not isinstance(filters, Mapping):
        raise ValidationError.of("filters", filters, "must be a mapping. Give {'user_id': '...'}.")
    return {name: filters[name] for name in IDS if name in filters}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _merge_ids(argument_ids: Mapping[str, Any], filter_ids: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the ids of both ways; they must not differ."""
    for name, value in filter_ids.items():
        if value is None:
            raise ValidationError(f"filters[{name!r}] is None. Leave it out, or give an id.")
        if name in argument_ids and clean_id(name, value) != clean_id(name, argument_ids[name]):
            raise ValidationError(
                f"{name}={short_repr(argument_ids[name])} and filters[{name!r}]="
                f"{short_repr(value)} differ. Give one."
            )
    return {**filter_ids, **argument_ids}
