"""What a caller states or says, as the changes that add it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from ..model import Fact, Message, Origin, Record, Relation, Scope
from ..ports.stores import Put

IsSingle = Callable[[Relation], bool]

# Text that came from tools or documents may be anybody's.
_TRUST = {"tool": 0.3, "document": 0.3}


def fact_put(fact: Fact, scope: Scope, *, at: datetime, origin: Origin, is_single: IsSingle) -> Put:
    """Make the change that adds a stated fact."""
    relations = dated(fact, at, is_single)
    begins = _begins(fact)
    key = fact.text.strip()
    if begins and any(one.single_valued for one in relations):
        # To say again later what somebody's value is, is news: it may have changed in between.
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


def dated(fact: Fact, at: datetime, is_single: IsSingle) -> tuple[Relation, ...]:
    """Give each value the moment from which it holds: without one it could not be put in order."""
    since = _begins(fact) or at
    stated = []
    for one in fact.relations:
        single = is_single(one)
        begins = one.valid_from
        if fact.expires_at and (one.valid_to is None or one.valid_to > fact.expires_at):
            # What nobody shows any more must not stand as true either.
            one = replace(one, valid_to=fact.expires_at)  # noqa: PLW2901 -- the same, bounded
        if single and begins is None and (one.valid_to is None or one.valid_to > since):
            begins = since
        stated.append(replace(one, single_valued=single, valid_from=begins))
    return tuple(stated)


def _begins(fact: Fact) -> datetime | None:
    return fact.at or min(
        (one.valid_from for one in fact.relations if one.valid_from), default=None
    )


def message_put(message: Message, scope: Scope, *, at: datetime, origin: Origin) -> Put:
    """Make the change that adds a turn of a conversation, verbatim."""
    spoken: Origin = "tool" if message.role == "tool" else origin
    if origin == "user" and message.role in ("assistant", "system"):
        spoken = "assistant" if message.role == "assistant" else "system"
    key = message.id or json.dumps([message.role, message.name, message.text.strip()])
    record = Record(
        id=scope.record_id("episode", key),
        text=message.text,
        scope=scope,
        kind="episode",
        role=message.role,
        name=message.name,
        origin=spoken,
        trust=_TRUST.get(spoken, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=message.at or at,
    )
    return Put(record=record, in_session=scope.session_id is not None)
