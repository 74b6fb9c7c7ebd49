"""Changes that store facts and turns, and that tell a known fact again or end it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..ports.stores import Put, identity_hash, with_identity
from ..types import MAX_SOURCES, Fact, Message, Origin, Record, Relation, Scope

IsSingle = Callable[[Relation], bool]

# Anybody may have written the text of tools and documents.
_TRUST = {"tool": 0.3, "document": 0.3}


def fact_put(
    fact: Fact,
    scope: Scope,
    *,
    at: datetime,
    origin: Origin,
    is_single: IsSingle,
    metadata: Mapping[str, Any] | None = None,
    identity: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
) -> Put:
    """Make the change that adds a fact.

    Args:
        metadata: of a fact that has none.
        identity: metadata keys that take part in recognising a repetition.
        sources: ids of the turns that it was drawn from.
    """
    held = dict(fact.metadata or metadata or {})
    relations = dated_relations(fact, at, is_single, identity_hash(held, identity))
    begins = _begins(fact)
    key = fact.text.strip()
    if begins and any(relation.single_valued for relation in relations):
        # The same value again at a later time is news: it may have changed in between.
        key = json.dumps([key, begins.astimezone(UTC).isoformat()])
    record = Record(
        id=scope.record_id(fact.kind, with_identity(fact.key or key, held, identity)),
        text=fact.text,
        scope=scope,
        kind=fact.kind,
        metadata=held,
        namespace=fact.namespace,
        origin=origin,
        trust=_TRUST.get(origin, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=begins or at,
        expires_at=fact.expires_at,
        importance=float(fact.importance),
        pinned=fact.pinned,
        situation=fact.situation,
        outcome=fact.outcome,
        indexed=fact.indexed,
        sources=(sources or fact.sources)[-MAX_SOURCES:],
    )
    return Put(record=record, relations=relations, identity=identity)


def dated_relations(
    fact: Fact, at: datetime, is_single: IsSingle, identity: str = ""
) -> tuple[Relation, ...]:
    """Give each single-valued relation of a fact the moment from which it holds, to order them.

    Args:
        identity: of these relations.
    """
    since = _begins(fact) or at
    dated = []
    for relation in fact.relations:
        single = is_single(relation)
        begins, ends = relation.valid_from, relation.valid_to
        if fact.expires_at and (ends is None or ends > fact.expires_at):
            ends = fact.expires_at  # a relation must not hold longer than its record is shown
        if single and begins is None and (ends is None or ends > since):
            begins = since
        dated.append(
            replace(
                relation,
                single_valued=single,
                valid_from=begins,
                valid_to=ends,
                identity=identity if single else "",
            )
        )
    return tuple(dated)


def _begins(fact: Fact) -> datetime | None:
    return fact.at or min(
        (relation.valid_from for relation in fact.relations if relation.valid_from), default=None
    )


def message_put(
    message: Message,
    scope: Scope,
    *,
    after: Message | None,
    at: datetime,
    origin: Origin,
    metadata: Mapping[str, Any] | None = None,
    identity: tuple[str, ...] = (),
) -> Put:
    """Make the change that adds a turn of a conversation, verbatim.

    Args:
        after: the message that stands before it in the same call. Together with the moment that a
            caller gives, it tells the same words in another turn from a call that is made again.
        identity: as of `fact_put`.
    """
    held = dict(metadata or {})
    speaker = speaker_origin([message], origin)
    key = message.id or _message_key(message, after)
    record = Record(
        id=scope.record_id("episode", with_identity(key, held, identity)),
        text=message.text,
        scope=scope,
        kind="episode",
        metadata=held,
        role=message.role,
        name=message.name,
        origin=speaker,
        trust=_TRUST.get(speaker, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=message.at or at,
    )
    return Put(record=record, in_session=scope.session_id is not None, identity=identity)


def speaker_origin(messages: Sequence[Message], origin: Origin) -> Origin:
    """Tell where what these messages say comes from: from the least trusted of their speakers.

    Args:
        origin: as the caller gives it; `user` leaves it to the roles. A tool's text is a tool's.
    """
    roles = {message.role for message in messages}
    if "tool" in roles or origin != "user":
        return "tool" if "tool" in roles else origin
    if "user" in roles or not roles:
        return "user"
    return "assistant" if "assistant" in roles else "system"


def _message_key(message: Message, after: Message | None) -> str:
    parts = [message.role, message.name, message.text.strip()]
    if message.at is not None:
        parts.append(message.at.astimezone(UTC).isoformat())
    if after is not None:
        parts += [after.role, after.name, after.text.strip()]
    return json.dumps(parts)


def told_again(known: Record, new: Put) -> Put:
    """Make the change that tells a known fact again.

    Args:
        new: the change that would add the fact, had it not been known.
    """
    added = new.record
    record = replace(
        known,
        metadata=added.metadata,
        namespace=added.namespace,
        created_at=added.created_at,
        updated_at=added.updated_at,
        occurred_at=added.occurred_at,
        valid_to=None,
        expires_at=added.expires_at,
        conflicts=(),
        votes=0,
        sources=added.sources,
    )
    return replace(new, record=record)


def ending(old: Record, new: Record, *, at: datetime, told: datetime) -> Put | None:
    """Make the change that ends a known fact because a new one replaces it.

    It ends where the new one begins. One that had not begun when the new one was told, or that is
    corrected to an earlier beginning, has never been true: it ends before it begins.

    Args:
        told: when the new one was told.

    Returns:
        None if it has ended by then. So too if it is what came later: the new one begins earlier,
        and is from a conversation that arrives late.
    """
    is_late = told < min(old.occurred_at, old.created_at)
    if is_late and new.occurred_at <= old.occurred_at:
        return None
    is_wrong = new.occurred_at <= old.occurred_at or told < old.occurred_at
    ends = new.occurred_at
    if is_wrong and not is_late:
        ends = min(old.occurred_at, told)
    if old.valid_to is not None and old.valid_to <= ends:
        return None
    record = replace(old, valid_to=ends, updated_at=at)
    return Put(record=record, relations=None, replace=True, fields=("valid_to",))
