"""Arguments of mem0's calls, checked and normalised, whichever version they were written for.

Code for 0.1 and 1.x gives ids as arguments, code for 2.x inside `filters`; each version refuses the
other way, so where the ids are shows which defaults the caller expects:

- ids as arguments: 100 memories, no threshold, reranked if there is a reranker.
- ids only in `filters`: 20 memories, `THRESHOLD`, not reranked.

Messages may be a text, a dict, or a list that mixes both:

- content in parts is reduced to its texts, joined by a space; an image is logged once.
- a message without text, such as a tool call, is left out.
- roles by other names are those of chat models: `human`, `ai`, `function`, `developer`.
"""

import difflib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from commonplace import Message, Role, Scope
from commonplace.agents import Unset, short_repr

from .convert import expiry_of, parse_time, promoted_key, to_stored
from .exceptions import BAD_MEMORY_TYPE, BAD_MESSAGES, ValidationError
from .filters import CompiledFilter, compile_filter
from .scope_ids import IDS, clean_id, to_scope

logger: logging.Logger = logging.getLogger("commonplace_mem0")
Compat = Literal["auto", "v1", "v2"]
Era = Literal["v1", "v2"]
LIMITS: Mapping[Era, int] = {"v1": 100, "v2": 20}
# In place of 2.x's 0.1 of a cosine: our scores are relevances, and what answers a vague question,
# such as "What do you know about me?", has one of 0.005. So at least what mem0 finds is found.
THRESHOLD = 0.002
PROCEDURAL = "procedural_memory"
_SEARCH_ARGUMENTS = (
    *IDS, "limit", "top_k", "filters", "threshold", "rerank", "explain", "reference_date",
    "show_expired", "cursor",
)  # fmt: skip
_ROLES = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system"}
_NO_TEXT = {"tool_calls", "function_call", "audio", "refusal"}  # of a message without content
_logged_kinds: set[str] = set()


# -- add ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMessage:
    """One message of `add`.

    Attributes:
        role: as it was given.
        is_turn: it was said in a conversation; a bare text states something.
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
        """Write it as a message of the core."""
        name = (self.name or "").strip()[:256] or None
        return Message(text=self.text, role=self.chat_role, name=name, at=at)  # type: ignore[arg-type]  # one of Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    """A checked call of `add`.

    Attributes:
        metadata: as records store it.
        infer: None when the caller did not give it.
        at: when it was said; None for now.
        is_procedural: a model shall write down how a task went.
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
        """The messages that memories are made of: those of the system are not."""
        return [one for one in self.messages if one.chat_role != "system"]

    @property
    def identity(self) -> tuple[str, ...]:
        """The caller's keys of the metadata: the same text with other values is another memory."""
        return tuple(name for name in self.metadata if not name.startswith(promoted_key("")))

    @property
    def expires_at(self) -> datetime | None:
        """When the memories will be hidden."""
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
    """Check a call of `add`.

    Raises:
        ValidationError: no id is given, or something cannot be stored.
    """
    if not isinstance(infer, bool | str | Unset | None):
        raise ValidationError(f"infer={short_repr(infer)} must be True or False.")
    if prompt is not None and not isinstance(prompt, str):
        raise ValidationError(
            f"prompt={short_repr(prompt)} must be a text. Give the model's instructions."
        )
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
    more = {"expiration_date": expiration_date, "created_at": timestamp}
    more = {name: value for name, value in more.items() if value is not None}
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
        wait=bool(wait),
        is_procedural=memory_type is not None,
    )


def to_messages(messages: object) -> list[InputMessage]:
    """Read messages, in order, those with a text; the caller's objects are not changed.

    Raises:
        ValidationError: they are of another type (`VALIDATION_003`).
    """
    if isinstance(messages, str | Mapping):
        messages = [messages]
    if not isinstance(messages, list | tuple):
        raise ValidationError(
            f"messages must be str, dict, or list[dict], not {type(messages).__name__}",
            BAD_MESSAGES,
            {"provided_type": type(messages).__name__, "valid_types": ["str", "dict", "list"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
        )
    return [parsed for one in messages if (parsed := _message(one)) is not None]


def _message(given: object) -> InputMessage | None:
    if isinstance(given, str):
        return InputMessage(text=given, role="user", is_turn=False) if given.strip() else None
    if not isinstance(given, Mapping):
        raise ValidationError(
            f"The message {short_repr(given)} must be a text or a dict with role and content.",
            BAD_MESSAGES,
        )
    if "content" not in given and _NO_TEXT.isdisjoint(given):
        raise ValidationError(
            f"The message {short_repr(given)} has no content. "
            "Give {'role': 'user', 'content': '...'}.",
            BAD_MESSAGES,
        )
    text = _text(given.get("content"))
    role, name = _role(given.get("role")), given.get("name")
    if not isinstance(name, str | int | None):
        raise ValidationError(f"The name {short_repr(name)} must be a text.", BAD_MESSAGES)
    if not text.strip():
        return None
    return InputMessage(text=text, role=role, name=None if name is None else str(name))


def _role(role: object) -> str:
    if role is None:
        return "user"
    if not isinstance(role, str):
        raise ValidationError(
            f"The role {short_repr(role)} must be a text, such as 'user' or 'assistant'.",
            BAD_MESSAGES,
        )
    return str.__str__(role) or "user"  # also of a member of an enumeration


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        content = [content]
    _refuse_bytes(content)
    if not isinstance(content, Sequence):
        raise ValidationError(
            f"The content {short_repr(content)} must be a text or a list.", BAD_MESSAGES
        )
    texts = []
    for part in content:
        given = part.get("text") if isinstance(part, Mapping) else part
        _refuse_bytes(given)
        if isinstance(given, str):
            texts.append(given)
        else:
            _log_skipped(part)
    return " ".join(texts)


def _refuse_bytes(content: object) -> None:
    if isinstance(content, bytes | bytearray | memoryview):
        raise ValidationError(
            f"The content {short_repr(content)} must be a text. Decode it: content.decode().",
            BAD_MESSAGES,
        )


def _log_skipped(part: object) -> None:
    """Tell once for each kind that a part of a message is left out."""
    kind = short_repr(part.get("type") if isinstance(part, Mapping) else type(part).__name__)
    if kind not in _logged_kinds:
        _logged_kinds.add(kind)
        logger.warning("Skipped a message part that is not text: %s", kind)


# -- search, get_all ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A checked call of `search` or `get_all`.

    Attributes:
        limit: how many memories at most, from 0.
        threshold: least score.
        filters: without the ids at its top.
    """

    scope: Scope
    era: Era
    limit: int
    threshold: float
    rerank: bool
    filters: Mapping[str, Any]

    def where(self, scope: Scope) -> CompiledFilter:
        """Compile the filter for the records of a scope."""
        return compile_filter(self.filters, scope)


def read_request(
    method: str,
    ids: Mapping[str, Any],
    filters: Mapping[str, Any] | None,
    *,
    compat: Compat,
    limit: int | None = None,
    top_k: int | None = None,
    threshold: float | None = None,
    rerank: bool | None = None,
    explain: bool | None = None,
    show_expired: bool = False,
) -> ReadRequest:
    """Check a call that reads, and find its era.

    Raises:
        ValidationError: no id is given, the two ways give different ids, or a number is out of
            its range.
    """
    for name, value in (("rerank", rerank), ("explain", explain)):
        if value is not None:
            _check_flag(name, value)
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
    compile_filter(rest, scope)  # a wrong one is refused before anything is opened
    return ReadRequest(
        scope=scope,
        era=era,
        limit=_limit(limit, top_k, LIMITS[era]),
        threshold=_threshold(threshold, era),
        rerank=era == "v1" if rerank is None else bool(rerank),
        filters=rest,
    )


def clean_query(query: object) -> str:
    """Trim a query.

    Raises:
        ValidationError: it is blank or not a text.
    """
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
    """Add the second filter that mem0's asynchronous search takes; both must hold.

    Raises:
        ValidationError: the first is not a mapping.
    """
    if not more:
        return filters
    ids = top_ids(filters)
    rest = {name: value for name, value in (filters or {}).items() if name not in ids}
    return {**ids, "AND": [one for one in (rest, more) if one]}


def refuse_hosted(name: str, value: object) -> None:
    """Refuse an argument that only mem0's hosted product knows.

    Raises:
        ValidationError: it was given.
    """
    if value is not None:
        raise ValidationError(
            f"{name}={short_repr(value)} is known to mem0's hosted product only. Leave it out."
        )


def refuse_unknown(method: str, unknown: Iterable[str]) -> None:
    """Refuse keywords that mean nothing to `search` and `get_all`, naming what they resemble.

    Raises:
        TypeError: there are some.
    """
    for name in unknown:
        near = difflib.get_close_matches(name, _SEARCH_ARGUMENTS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        message = f"{method}() got an unexpected keyword argument {short_repr(name)}.{hint}"
        raise TypeError(message)


def _check_flag(name: str, value: object) -> None:
    if type(value) is not bool:
        raise ValidationError(f"{name}={short_repr(value)} must be True or False.")


def _limit(limit: int | None, top_k: int | None, default: int) -> int:
    for name, value in (("limit", limit), ("top_k", top_k)):
        if value is None:
            continue
        if type(value) is not int:
            raise ValidationError(f"{name} must be a valid integer, not {short_repr(value)}")
        if value < 0:
            raise ValidationError(
                f"Invalid {name}: {short_repr(value)}. Must be a non-negative integer."
            )
    if limit is None or top_k is None:
        return next((one for one in (limit, top_k) if one is not None), default)
    if limit != top_k:
        raise ValidationError(
            f"limit={short_repr(limit)} and top_k={short_repr(top_k)} differ. "
            "Give one: they are alike."
        )
    return limit


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
    """Make the scope that `delete_all` erases.

    Raises:
        ValidationError: no id is given.
    """
    if not _given(ids):
        raise ValidationError(
            "At least one filter is required to delete all memories. If you want to delete all "
            "memories, use the `reset()` method."
        )
    return to_scope(ids, allow_spaces=compat != "v2")


def top_ids(filters: object) -> dict[str, Any]:
    """Read the ids at the top of a filter, as they were given.

    Raises:
        ValidationError: it is not a mapping.
    """
    if filters is None:
        return {}
    if not isinstance(filters, Mapping):
        raise ValidationError(
            f"filters={short_repr(filters)} must be a mapping. Give {{'user_id': '...'}}."
        )
    return {name: filters[name] for name in IDS if name in filters}


def _given(ids: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in ids.items() if value is not None}


def _merge_ids(argument_ids: Mapping[str, Any], filter_ids: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the ids of both ways.

    Raises:
        ValidationError: they differ, or one in the filter is None.
    """
    for name, value in filter_ids.items():
        if value is None:
            raise ValidationError(f"filters[{name!r}] is None. Leave it out, or give an id.")
        if name in argument_ids and clean_id(name, value) != clean_id(name, argument_ids[name]):
            raise ValidationError(
                f"{name}={short_repr(argument_ids[name])} and filters[{name!r}]="
                f"{short_repr(value)} differ. Give one."
            )
    return {**filter_ids, **argument_ids}
