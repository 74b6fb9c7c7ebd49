"""Turn what was accepted into changes with vectors, asking the models once; then it is frozen.

A plan is a generator: it yields what it wants of a model and is sent the answer, so that the same
steps serve a thread with synchronous models and an event loop with asynchronous ones.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from ..codec import freeze, message_from_json, message_to_json, put_from_json, put_to_json
from ..errors import ModelFailed, ModelUnreadable
from ..exchange import AskChat, AskVectors, Op, Put
from ..model import Fact, Message, Origin
from ..options import Extraction
from .puts import IsSingle, fact_put

Found = list[Fact] | str | None
Extract = Callable[[Sequence[Message], datetime, str | None], Generator[AskChat, str | None, Found]]


def plan(
    op: Op, extract: Extract, is_single: IsSingle
) -> Generator[AskVectors | AskChat, Any, bytes]:
    """Plan an accepted add or update: yields questions, is sent answers, returns the plan.

    Args:
        is_single: tells whether a relation has one value at a time.

    Raises:
        ModelFailed, ModelUnreadable: nothing was extracted and the messages are not kept.
    """
    body = json.loads(op.body)
    puts = [put_from_json(one) for one in body["puts"]]
    if body["extract"]:
        at = datetime.fromisoformat(body["at"])
        messages = [message_from_json(one) for one in body["extract"]]
        how = _extraction(body.get("how"))
        facts = yield from extract(messages, at, how.instructions)
        if not isinstance(facts, list) and not how.keep_messages:
            raise _failure(facts)
        known = {put.record.id for put in puts}
        for fact in facts if isinstance(facts, list) else ():
            said = replace(fact, metadata=how.metadata, expires_at=how.expires_at)
            put = fact_put(said, op.scope, at=at, origin=body["origin"], is_single=is_single)
            if put.record.id not in known:
                known.add(put.record.id)
                puts.append(put)
    told = [put.record.indexed_text for put in puts if put.is_told]
    vectors = iter((yield AskVectors(texts=tuple(told))))
    return freeze(puts, [next(vectors) if put.is_told else None for put in puts])


def body(
    puts: Sequence[Put],
    *,
    at: datetime,
    origin: Origin,
    extract: Sequence[Message] = (),
    how: Extraction | None = None,
) -> str:
    """Write what was accepted, for the journal."""
    accepted: dict[str, Any] = {
        "puts": [put_to_json(put) for put in puts],
        "extract": [message_to_json(one) for one in extract],
        "at": at.isoformat(),
        "origin": origin,
    }
    if how is not None:
        ends = how.expires_at and how.expires_at.isoformat()
        accepted["how"] = asdict(how) | {"expires_at": ends, "metadata": dict(how.metadata)}
    return json.dumps(accepted, ensure_ascii=False)


def _extraction(given: Mapping[str, Any] | None) -> Extraction:
    if given is None:
        return Extraction()
    ends = given["expires_at"] and datetime.fromisoformat(given["expires_at"])
    return Extraction(**{**given, "expires_at": ends})


def _failure(fault: str | None) -> ModelFailed:
    if fault is None:
        return ModelFailed(model="chat", reason="it gave no answer, and its log says why")
    return ModelUnreadable(model="chat", reason=fault)
