"""Selection of what a note holds: of the memories that a search found, those that help.

A search returns what resembles the question best, and that is often the question itself, asked
before, or what the conversation says already. One function chooses for all adapters.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ..retrieval.lexical import vocabulary
from ..retrieval.utterances import (
    asks_to_forget,
    contains,
    knows_nothing,
    needs_no_memory,
    normalize,
    statements,
)
from ..types import Match, Record

ENOUGH = 0.05
"""Least relevance of a note's best line; below it nothing has to do with the question."""
BESIDE = 0.05
"""Least relevance of the other lines, as a share of the best one's."""
_COVERED = 0.6  # share of a fact's words in the turn that it was drawn from
_EXAMINED = 3  # times as many as are wanted
_ANSWERED = 0.2  # least relevance of an assistant's turn, as a share of the best one's


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What the model is shown of the running conversation, which a note need not repeat.

    Attributes:
        texts: of its messages, of users and agents, in any order; notes left out.
        ids: of records that notes show which stay in it.
    """

    texts: Sequence[str] = ()
    ids: Collection[str] = field(default=())


def choose(
    matches: Iterable[Match],
    query: str,
    *,
    top_k: int,
    held: Conversation | None = None,
    shows_query: bool = False,
) -> list[Match]:
    """Choose what helps to answer, at most `top_k`, best first.

    Left out is what the conversation or a better line says already, turns that only ask, that say
    that they know nothing or that ask to forget something, and what is below the floors of
    relevance. A fact stands before the turn that it was drawn from, which is shown only where there
    is room. Nothing is chosen for small talk, or for a text to transform.

    Args:
        matches: as a search returned them, more than are wanted.
        query: what the user wrote.
        held: the running conversation.
        shows_query: what the query says is shown too, for tools that change it.
    """
    if needs_no_memory(query):
        return []
    held = held or Conversation()
    # A question may have every word of its answer: "Do I like tea?"
    stated = "" if shows_query else " ".join(statements(query))
    said, known = _joined([*held.texts, stated]), vocabulary(stated)
    told: list[Match] = []
    for match in matches:
        record = match.record
        words, line = vocabulary(record.text), normalize(record.text)
        if record.id in held.ids or contains(said, line) or (words and words <= known):
            continue
        if any(contains(normalize(one.record.text), line) for one in told):
            continue
        if record.kind != "episode" or _tells(record):
            told.append(match)
        if len(told) == _EXAMINED * top_k:
            break
    best = max((one.relevance for one in told), default=0.0)
    if best < ENOUGH:
        return []
    return _facts_first(_without_sources([one for one in told if _is_near(one, best)], top_k))


def without_held(records: Iterable[Record], held: Conversation | None) -> list[Record]:
    """Leave out the records that the running conversation holds already."""
    held = held or Conversation()
    said = _joined(held.texts)
    return [
        one for one in records if one.id not in held.ids and not contains(said, normalize(one.text))
    ]


def _joined(texts: Iterable[str]) -> str:
    """Join texts so that none of them runs on in the next."""
    return " \n ".join(map(normalize, texts))


def _tells(turn: Record) -> bool:
    """Return whether a turn tells something that may be shown."""
    if not statements(turn.text) or asks_to_forget(turn.text):
        return False
    return turn.role != "assistant" or not knows_nothing(turn.text)


def _is_near(match: Match, best: float) -> bool:
    is_answer = match.record.role == "assistant"
    return match.relevance >= best * (_ANSWERED if is_answer else BESIDE)


def _is_drawn_from(fact: Record, turn: Record) -> bool:
    if fact.kind == "episode" or turn.kind != "episode":
        return False
    words = vocabulary(fact.text)
    return len(words & vocabulary(turn.indexed_text)) >= _COVERED * len(words) > 0


def _without_sources(matches: list[Match], top_k: int) -> list[Match]:
    """Take the best; a turn whose fact is among them only where there is room."""
    kept: list[Match] = []
    sources: list[Match] = []
    for match in matches:
        is_source = any(_is_drawn_from(one.record, match.record) for one in kept)
        (sources if is_source else kept).append(match)
    return [*kept, *sources][:top_k]


def _facts_first(matches: list[Match]) -> list[Match]:
    """Put each fact in front of the first turn that it was drawn from."""
    ordered: list[Match] = []
    for match in matches:
        turns = (at for at, one in enumerate(ordered) if _is_drawn_from(match.record, one.record))
        ordered.insert(next(turns, len(ordered)), match)
    return ordered
