"""Changes that add what a caller gives: facts with dated relations, and conversation turns."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from ..model import Fact, Message, Origin, Record, Relation, Scope
from ..ports.stores import Put

IsSingle = Callable[[Relation], bool]

# Anybody may have written the text of tools and documents.
_TRUST = {"tool": 0.3, "document": 0.3}


def fact_put(fact: Fact, scope: Scope, *, at: datetime, origin: Origin, is_single: IsSingle) -> Put:
    """Make the change that adds a fact."""
    relations = dated_relations(fact, at, is_single)
    begins = _begins(fact)
    key = fact.text.strip()
    if begins and any(one.single_valued for one in relations):
        # The same value again at a later time is news: it may have changed in between.
        key = json.dumps([key, begins.astimezone(UTC).isoformat()])
    record = Record(
        id=scope.record_id(fact.kind, fact.key or key),
        text=fact.text,
        scope=scope,
        kind=fact.kind,
        metadata=dict(fact.metadata),
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
    )
    return Put(record=record, relations=relations)


def dated_relations(fact: Fact, at: datetime, is_single: IsSingle) -> tuple[Relation, ...]:
    """Give each single-valued relation of a fact the moment from which it holds, to order them."""
    since = _begins(fact) or at
    dated = []
    for one in fact.relations:
        single = is_single(one)
        begins, ends = one.valid_from, one.valid_to
        if fact.expires_at and (ends is None or ends > fact.expires_at):
            ends = fact.expires_at  # a relation must not hold longer than its record is shown
        if single and begins is None and (ends is None or ends > since):
            begins = since
        dated.append(replace(one, single_valued=single, valid_from=begins, valid_to=ends))
    return tuple(dated)


def _begins(fact: Fact) -> datetime | None:
    return fact.at or min(
        (one.valid_from for one in fact.relations if one.valid_from), default=None
    )


def message_put(message: Message, scope: Scope, *, at: datetime, origin: Origin) -> Put:
    """Make the change that adds a turn of a conversation, verbatim."""
    speaker: Origin = "tool" if message.role == "tool" else origin
    if origin == "user" and message.role in ("assistant", "system"):
        speaker = "assistant" if message.role == "assistant" else "system"
    key = message.id or json.dumps([message.role, message.name, message.text.strip()])
    record = Record(
        id=scope.record_id("episode", key),
        text=message.text,
        scope=scope,
        kind="episode",
        role=message.role,
        name=message.name,
        origin=speaker,
        trust=_TRUST.get(speaker, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=message.at or at,
    )
    return Put(record=record, in_session=scope.session_id is not None)
