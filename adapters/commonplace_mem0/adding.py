"""Add: messages as they are, or the facts that a model takes out of them, in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from commonplace import CommonplaceError, Extraction, Fact, Origin, Relation, Scope, WriteResult

from .answers import text_of
from .exceptions import NO_TYPE, ConfigurationError, LLMError, ValidationError
from .messages import Turn
from .metadata import own, to_end, to_moment, to_stored
from .relations import superseded
from .relations import to_added as to_added_relations
from .results import to_added
from .setup import Setup
from .steps import Step, core, think

PROCEDURAL = "procedural_memory"
_SUMMARISE = """\
You keep the records of an agent's work. Write down how this task went so that another agent could
go on: the goal, each step in order with what was done and what came of it word by word where it
matters, what failed, and where things stand. Answer with the text only."""
_WANTED = "Write the record of the conversation above."
_NO_MODEL = (
    "infer=True needs a language model and none is configured. Configure one, such as "
    '{"llm": {"provider": "openai", "config": {"model": "..."}}}, or pass infer=False.'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A checked addition.

    Attributes:
        metadata: as records keep it.
        infer: None when the caller did not say.
        at: when it was said; None for now.
    """

    turns: Sequence[Turn]
    scope: Scope
    metadata: Mapping[str, Any]
    infer: bool | None
    prompt: str | None
    at: datetime | None
    wait: bool

    @property
    def expires_at(self) -> datetime | None:
        """When it will be hidden."""
        return to_end(self.metadata.get(own("expiration_date")))


def said(
    turns: Sequence[Turn],
    scope: Scope,
    *,
    metadata: Mapping[str, Any] | None,
    expiration_date: Any,
    timestamp: Any,
    infer: bool | None,
    prompt: str | None,
    wait: bool,
) -> Said:
    """Check an addition."""
    given = dict(metadata) if isinstance(metadata, Mapping) else metadata
    if expiration_date is not None:
        given = {**(given or {}), "expiration_date": expiration_date}
    stored = to_stored(given, scope=scope)
    at = to_moment(timestamp) if timestamp is not None else None
    if at is None and own("created_at") in stored:
        at = to_moment(stored[own("created_at")])
    return Said(
        turns=turns, scope=scope, metadata=stored, infer=infer, prompt=prompt, at=at, wait=wait
    )


def add(setup: Setup, told: Said, model: Callable[..., Any] | None) -> Step[dict[str, Any]]:
    """Remember messages: the facts in them when there is a model, else their texts."""
    spoken = [turn for turn in told.turns if turn.speaker != "system"]
    infer = told.infer
    if infer is None:
        infer = model is not None
        if not infer and not setup.is_given:
            setup.say_once("no_model")
    elif infer and model is None and not setup.is_given:
        raise ConfigurationError(_NO_MODEL)
    if not spoken:
        return {"results": []}
    if infer:
        how = Extraction(
            instructions=told.prompt or setup.instructions,
            metadata=told.metadata,
            expires_at=told.expires_at,
            keep_messages=False,
        )
        messages = [turn.to_message(told.at) for turn in spoken]
        written = yield core("add", messages, told.scope, infer=how, wait=told.wait)
        return (yield from _answer(setup, told, written, []))
    extras = [{"actor_id": turn.name, "role": turn.role} for turn in spoken]
    facts = [
        _fact(told, turn.text, {own(name): value for name, value in extra.items() if value})
        for turn, extra in zip(spoken, extras, strict=True)
    ]
    written = yield core("add", facts, told.scope, wait=told.wait, origin=_origin(spoken))
    return (yield from _answer(setup, told, written, extras if told.infer is False else []))


def add_procedure(
    setup: Setup, told: Said, model: Callable[..., Any] | None
) -> Step[dict[str, Any]]:
    """Remember how a task went, as one memory that a model writes."""
    if told.scope.agent_id is None:
        raise ValidationError(
            f"memory_type={PROCEDURAL!r} needs an agent_id: it is an agent that works.", NO_TYPE
        )
    if model is None:
        raise ConfigurationError(_NO_MODEL)
    conversation = [{"role": turn.speaker, "content": turn.text} for turn in told.turns]
    prompt = [{"role": "system", "content": told.prompt or _SUMMARISE}, *conversation]
    try:
        answer = yield think(model, [*prompt, {"role": "user", "content": _WANTED}])
    except CommonplaceError:
        raise
    except Exception as error:
        raise LLMError(f"The model failed to summarise: {error!r}. Call again.") from error
    text = text_of(answer)
    if not text.strip():
        raise LLMError("The model returned no summary. Call again, or choose another model.")
    fact = _fact(told, text, {"memory_type": PROCEDURAL}, kind="procedure")
    written = yield core("add", [fact], told.scope, wait=told.wait, origin="assistant")
    return (yield from _answer(setup, told, written, []))


def _fact(told: Said, text: str, more: Mapping[str, Any], **given: Any) -> Fact:
    return Fact(
        text=text,
        metadata={**told.metadata, **more},
        at=told.at,
        expires_at=told.expires_at,
        **given,
    )


def _origin(turns: Sequence[Turn]) -> Origin:
    """Tell who said it: the least trusted of all who did."""
    speakers = {turn.speaker for turn in turns}
    if "tool" in speakers:
        return "tool"
    return "assistant" if speakers == {"assistant"} else "user"


def _answer(
    setup: Setup, told: Said, written: WriteResult, extras: Sequence[Mapping[str, Any]]
) -> Step[dict[str, Any]]:
    if written.pending:
        return {"results": [], "ticket": written.operation}
    changes = written.changes
    more = extras if len(extras) == len(changes) else [{}] * len(changes)
    answer: dict[str, Any] = {
        "results": [to_added(one, extra) for one, extra in zip(changes, more, strict=True)]
    }
    added = [one.id for one in changes if one.event == "ADD"]
    if setup.compat == "v1" and added:
        answer["results"] += yield from _ended(told.scope, added)
    if setup.shows_relations:
        said = core("relations", told.scope, records=added)
        stated: Sequence[Relation] = (yield said) if added else ()
        answer["relations"] = to_added_relations(stated, added)
    return answer


def _ended(scope: Scope, added: Sequence[str]) -> Step[list[dict[str, Any]]]:
    """Tell what is no longer true since these memories were added, as 1.x did."""
    stated = yield core("relations", scope, include_superseded=True)
    found = []
    for one in superseded(stated, added):
        record = yield core("get", one, scope, include_expired=True)
        if record is not None and record.valid_to is not None:
            found.append({"id": record.id, "memory": record.text, "event": "DELETE"})
    return found
