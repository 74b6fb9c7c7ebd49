"""Turn what was accepted into changes with vectors, asking the models once; then it is frozen.

A plan is a generator: it yields what it wants of a model and is sent the answer, so that the same
steps serve a thread with synchronous models and an event loop with asynchronous ones.
"""

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..codec import freeze, message_from_json, message_to_json, put_from_json, put_to_json
from ..model import Fact, Message, Origin, Record, Relation, Scope, record_id
from ..ports import AskChat, AskVectors, Op, Put

IsSingle = Callable[[Relation], bool]
Extract = Callable[[Sequence[Message], datetime], Generator[AskChat, str | None, list[Fact]]]

# Text that came from tools or documents may be anybody's.
_TRUST = {"tool": 0.3, "document": 0.3}


def plan(
    op: Op, extract: Extract, is_single: IsSingle
) -> Generator[AskVectors | AskChat, Any, bytes]:
    """Plan an accepted add or update: yields questions, is sent answers, returns the plan.

    Args:
        is_single: tells whether a relation has one value at a time.
    """
    body = json.loads(op.body)
    puts = [put_from_json(one) for one in body["puts"]]
    if body["extract"]:
        at = datetime.fromisoformat(body["at"])
        messages = [message_from_json(one) for one in body["extract"]]
        facts = yield from extract(messages, at)
        known = {put.record.id for put in puts}
        for fact in facts:
            put = fact_put(fact, op.scope, at=at, origin=body["origin"], is_single=is_single)
            if put.record.id not in known:
                known.add(put.record.id)
                puts.append(put)
    vectors = yield AskVectors(texts=tuple(put.record.indexed_text for put in puts))
    return freeze(puts, vectors)


def body(
    puts: Sequence[Put], *, at: datetime, origin: Origin, extract: Sequence[Message] = ()
) -> str:
    """Write what was accepted, for the journal."""
    accepted = {
        "puts": [put_to_json(put) for put in puts],
        "extract": [message_to_json(one) for one in extract],
        "at": at.isoformat(),
        "origin": origin,
    }
    return json.dumps(accepted, ensure_ascii=False)


def fact_put(fact: Fact, scope: Scope, *, at: datetime, origin: Origin, is_single: IsSingle) -> Put:
    """Make the change that adds a stated fact."""
    relations = dated(fact, at, is_single)
    begins = _begins(fact)
    key = fact.text.strip()
    if begins and any(one.single_valued for one in relations):
        # To say again later what somebody's value is, is news: it may have changed in between.
        key = json.dumps([key, begins.astimezone(UTC).isoformat()])
    record = Record(
        id=record_id(scope, fact.kind, fact.key or key),
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
    )
    return Put(record=record, relations=relations)


def dated(fact: Fact, at: datetime, is_single: IsSingle) -> tuple[Relation, ...]:
    """Give each value the moment from which it holds: without one it could not be put in order."""
    since = _begins(fact) or at
    stated = []
    for one in fact.relations:
        single = is_single(one)
        begins = one.valid_from
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
        id=record_id(scope, "episode", key),
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
