"""Turn what was accepted into changes with vectors, asking the models once; then it is frozen.

A plan is a generator: it yields what it wants of a model and is sent the answer, so that the same
steps serve a thread with synchronous models and an event loop with asynchronous ones.
"""

import json
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any

from ..codec import freeze, message_from_json, message_to_json, put_from_json, put_to_json
from ..exchange import AskChat, AskVectors, Op, Put
from ..model import Fact, Message, Origin
from .puts import IsSingle, fact_put

Extract = Callable[[Sequence[Message], datetime], Generator[AskChat, str | None, list[Fact]]]


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
