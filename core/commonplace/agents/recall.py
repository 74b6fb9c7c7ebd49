"""Recall for a turn: profile, instructions, the last summary, and what a search finds that helps.

A search returns what resembles the question best, and that is often the question itself, asked
before, or what the conversation says already. One function chooses for all adapters. What asks the
memory is a sans-IO plan, so it is written once for callers with and without an event loop.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from ..errors import InvalidRecordError
from ..retrieval.forget_requests import split_forget_requests
from ..retrieval.lexical import vocabulary
from ..retrieval.statement_words import WEAK, asks_before, asks_first, is_negated, values_in
from ..retrieval.utterance_kinds import (
    contains,
    is_small_talk,
    knows_nothing,
    needs_no_memory,
    normalize,
    sentences,
    statements,
)
from ..sans_io import Call, Plan, call
from ..types import Kind, Match, Page, Record, Scope, SessionPage
from .framework_values import clean, is_visible
from .note import EARLIER, ShownRecords, is_earlier, label
from .policy import Policy
from .standing_instructions import list_instructions, told_at, without_replaced

MAX_QUERY = 2_000
MAX_PROFILE = 1_000
MAX_INSTRUCTIONS = 600
_PROFILE_RECORDS = 20
_PASTED = 600  # bytes of a query; in a longer one is the text that it is about
_OVER_FETCHED = 6  # times as many as are wanted, as the best matches often say nothing new
LEAST_FETCHED = 30
"""Matches asked for at least: the questions asked before are as many for one memory as for five."""
ENOUGH = 0.25
"""Least score of a note's best line; below it nothing has to do with the question."""
BESIDE = 0.05
"""Least score of the other lines, as a share of the best that was found, held or not."""
_COVERED = 0.6  # share of a fact's words in the turn that it was drawn from
_EXAMINED = 3  # times as many as are wanted
_ANSWERED = 0.2  # least score of an assistant's turn, as a share of the best one's
_NEWER_FIRST = 0.065  # least odds of a replacement for which the newer line is read first
_OF_SCORES = 0.15  # power of the odds of their scores in it
_NEW = 0.2  # most of an answer's words that the user's line has not, which it repeats
_CLAUSES = re.compile(r"[,，;；：!！]|:(?!\d)|(?<=that) |(?=\byou)|(?=[你您])", re.IGNORECASE)
_TOLD_TO = WEAK.union("我你您们")
_BREAK = " \n "  # between texts, so that none runs on in the next
_FORMER = frozenset(["replaced_asked", "first"])  # parts of a score where that is asked for
_SESSIONS = 5  # of which the first that has a summary counts
Rule = Literal[
    "small_talk", "held", "repeat", "asks_only", "floor", "superseded", "room", "retracted"
]
"""Why a match is left out: the question needs no memory; the conversation or the question says it
already; a better line does; it only asks, knows nothing or asks to forget; its score is below the
floors; a newer one replaces it; better ones take the room; of an extracted turn, no fact holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What the model is shown of the running conversation, which a note need not repeat.

    Attributes:
        texts: of its messages, of users and agents, in any order; notes left out.
        ids: of records that notes show which stay in it.
        shown: is given the records of a recall that these show with their ids, for the tools.
    """

    texts: Sequence[str] = ()
    ids: Collection[str] = field(default=())
    shown: ShownRecords | None = field(default=None, compare=False)


def recall(
    scope: Scope,
    query: str,
    policy: Policy,
    held: Conversation | None = None,
    left_out: "list[tuple[Match, Rule]] | None" = None,
) -> Plan[list[Match]]:
    """Read the user's profile and instructions, and choose from what the query finds, best first.

    Both come with every turn, newest first: the profile, records of that kind, up to 1,000
    characters, and the standing instructions up to 600, without those that a newer one replaces,
    which a query like them does not bring back. In front of them, in the first turn of a session,
    stands the summary of the last one. A turn of which no extracted fact holds any more is
    left out. All sessions of the scope are searched, and all agents when the policy says so. Of a
    long query what asks is searched for, which stands before or after what it is about.

    Args:
        held: the running conversation, which is not repeated.
        left_out: is given what was found and is not returned, best first, each with the rule.
    """
    where = search_scope(scope, policy)
    known = yield from last_summary(scope, where, policy, held)
    if _recalls(policy, "profile"):
        page: Page = yield call(
            "list", where, kinds=("profile",), where=policy.where, limit=_PROFILE_RECORDS
        )
        known += _within(without_held(page.records, held), MAX_PROFILE, "profile")
    replaced: set[str] = set()
    if policy.instructions and _recalls(policy, "preference"):
        newest = yield from list_instructions(where, policy)
        standing = without_replaced(newest)
        known += _within(without_held(standing, held), MAX_INSTRUCTIONS, "instruction")
        replaced = _normalized(newest) - _normalized(standing)
    text = to_query(query)
    if not text:
        return known
    most = max(LEAST_FETCHED, _OVER_FETCHED * policy.top_k)
    matches: Sequence[Match] = yield search_call(where, _question(text), policy, most)
    said = replaced | _normalized(one.record for one in known)
    current = yield from _without_outdated(where, matches)
    new = [match for match in current if normalize(match.record.text) not in said]
    rules: dict[str, Rule] = {}
    chosen = choose(
        new, query, top_k=policy.top_k, held=held, shows_query=policy.shows_ids, rules=rules
    )
    if held and held.shown is not None:
        left = [one.record for one in new if rules.get(one.record.id) == "held"]
        text = " ".join((*held.ids, *held.texts))
        held.shown.add_records(one for one in left if label(one) in text)
    if left_out is not None:
        fresh, lasting = ({one.record.id for one in some} for some in (new, current))
        for id_, match in ((one.record.id, one) for one in matches):
            if id_ not in fresh:
                rules[id_] = "repeat" if id_ in lasting else "retracted"
            if id_ in rules:
                left_out.append((match, rules[id_]))
    return known + chosen


def last_summary(
    scope: Scope, where: Scope, policy: Policy, held: Conversation | None
) -> Plan[list[Match]]:
    """Read the summary of the last session, for the first turn of another one.

    It helps, and is shown, if the conversation does not hold it, and if no fact that was extracted
    from the turns that it stands for has ended since: it would tell what no longer holds.
    """
    is_wanted = policy.summaries and _recalls(policy, "summary") and policy.where is None
    if scope.session_id is None or not is_wanted:
        return []
    own: SessionPage = yield call("sessions", scope, limit=1)
    if own and own[0].turns > 1:  # one may be what the user just said
        return []
    page: SessionPage = yield call("sessions", where, limit=_SESSIONS)
    others = (one.summary for one in page if one.scope.session_id != scope.session_id)
    found = without_held([one for one in others if one is not None][:1], held)
    if found and found[0].sources:
        outdated: object = yield call("admin.outdated_turns", where, found[0].sources)
        found = [] if outdated else found
    return [Match(record=one, score=1.0, score_details={"summary": 1.0}) for one in found]


def search_scope(scope: Scope, policy: Policy) -> Scope:
    """Widen a turn's scope to what is searched: all sessions, and as the policy says all agents."""
    if not policy.scope_search_by_agent and scope.user_id is not None:
        return Scope(user_id=scope.user_id)
    return scope.owner


def to_query(text: str) -> str:
    """Make a text searchable; empty if nothing in it is visible.

    A query is not stored: what a store refuses is left out of it, not refused.

    Raises:
        InvalidRecordError: it is not a text.
    """
    if not isinstance(text, str):
        raise InvalidRecordError(
            field="query", value=text, reason="must be a text", hint="Give what to look for."
        )
    text = shorten(text.replace("\x00", " ")).encode("utf-8", "replace").decode()
    return text if is_visible(text) else ""


def shorten(text: str, limit: int = MAX_QUERY) -> str:
    """Keep the beginning and the end of a text of more than `limit` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 3) // 2
    return f"{text[:head]} … {text[-(limit - 3 - head) :]}"


def _question(text: str) -> str:
    """Cut a long text to its first and last two sentences, those that ask if any does.

    What stands between is at hand, such as a pasted letter: no more is to be found for it.
    """
    said = sentences(text) if len(text.encode()) > _PASTED else []
    ends = [*dict.fromkeys((*said[:2], *said[-2:]))]
    return " ".join([one for one in ends if one not in statements(one)] or ends) or text


def search_call(where: Scope, text: str, policy: Policy, top_k: int) -> Call:
    """Make the call that searches for a text, as the policy says."""
    return call(
        "search", text, where, top_k=top_k, where=policy.where, kinds=policy.kinds,
        threshold=policy.threshold,
    )  # fmt: skip


def _without_outdated(where: Scope, matches: Sequence[Match]) -> Plan[Sequence[Match]]:
    """Leave out the turns of which no fact that was extracted from them holds any more."""
    turns = [match.record.id for match in matches if match.record.kind == "episode"]
    if not turns:
        return matches
    outdated: Mapping[str, datetime] = yield call("admin.outdated_turns", where, turns)
    return [match for match in matches if match.record.id not in outdated]


def _recalls(policy: Policy, kind: Kind) -> bool:
    return not policy.kinds or kind in policy.kinds


def _within(records: Sequence[Record], characters: int, name: str) -> list[Match]:
    """Make matches of records that come with every turn, up to so many characters of them."""
    known = []
    for record in records:
        characters -= len(record.text)
        if characters >= 0:
            known.append(Match(record=record, score=1.0, score_details={name: 1.0}))
    return known


def _normalized(records: Iterable[Record]) -> set[str]:
    return {normalize(record.text) for record in records}


def covered_turns(turns: Sequence[Record], held: Conversation | None) -> list[str]:
    """List the ids of the turns that a summary stands for: those before what is still held.

    Args:
        turns: the last of the session, in order.
        held: what the framework left in the conversation beside the summary; None for nothing.
    """
    left, end = Counter(map(clean, held.texts if held else ())), len(turns)
    while end and left[turns[end - 1].text] > 0:
        end -= 1
        left[turns[end].text] -= 1
    return [one.id for one in turns[:end]]


# -- selection -------------------------------------------------------------------------------------


def choose(
    matches: Iterable[Match],
    query: str,
    *,
    top_k: int,
    held: Conversation | None = None,
    shows_query: bool = False,
    rules: dict[str, Rule] | None = None,
) -> list[Match]:
    """Choose what helps to answer, at most `top_k`, best first.

    Left out is what the conversation or a better line says already, turns that only ask, that say
    that they know nothing or that only ask to forget something, and what is below the floors of
    the score. A fact stands before the turn that it was drawn from, which is shown only where there
    is room. A line that a newer one replaces stands behind it, marked, and only where there is
    room, unless the question asks for what held before. Nothing is chosen for small talk, or for a
    text to transform.

    Args:
        matches: as a search returned them, more than are wanted; newer ones replace older ones
            among all of them.
        query: what the user wrote.
        held: the running conversation.
        shows_query: what the query says is shown too, for tools that change it.
        rules: is given the rule that leaves a match out, by the id of its record.
    """
    matches, rules = list(matches), {} if rules is None else rules
    found = _choose(matches, query, top_k, held or Conversation(), shows_query, rules)
    chosen = {one.record.id for one in found}
    for record in (one.record for one in matches):
        if record.id in chosen:
            rules.pop(record.id, None)
        else:
            rules.setdefault(record.id, "room")
    return found


def _choose(
    matches: Sequence[Match],
    query: str,
    top_k: int,
    held: Conversation,
    shows_query: bool,
    rules: dict[str, Rule],
) -> list[Match]:
    if needs_no_memory(query):
        rules.update((one.record.id, "small_talk") for one in matches)
        return []
    # A question may have every word of its answer: "Do I like tea?"
    stated = " ".join(statements(query))
    told = _told(matches, held, "" if shows_query else stated, rules)
    is_enough = bool(told) and told[0].score >= ENOUGH
    best = max(one.score for one in matches) if is_enough else math.inf
    rules.update((one.record.id, "floor") for one in told if not _is_near(one, best))
    near = [one for one in told[: _EXAMINED * top_k] if _is_near(one, best)]
    rules.update((one.record.id, "superseded") for one in near if one.replacement)
    # What held before is asked for as the scores say or, whatever was found, in the usual words.
    asked_former = any(_FORMER & one.score_details.keys() for one in matches)
    if asked_former or asks_before(query) or asks_first(query):
        found = [_as_earlier(one) if one.replacement else one for one in near]
        return _facts_first(_without_sources(found)[:top_k])
    found = _newer_first(near, told, top_k)
    return _facts_first(_within_room(_without_sources(found), top_k))


def newest_first(matches: Sequence[Match], every: Sequence[Match]) -> list[Match]:
    """Put what may hold now before what it replaces, which is marked; as many as were given.

    Args:
        matches: to put in order, best first.
        every: all that was found, of which each that replaces one of those is taken.
    """
    return _within_room(_newer_first(matches, every, len(matches)), len(matches))


def without_held(records: Iterable[Record], held: Conversation | None) -> list[Record]:
    """Leave out the records that the running conversation holds already."""
    held = held or Conversation()
    said = _BREAK.join(map(normalize, held.texts))
    new = (record for record in records if record.id not in held.ids)
    return [record for record in new if not contains(said, normalize(record.text))]


def _tells(turn: Record) -> bool:
    """Return whether a turn tells something that may be shown."""
    is_ignorant = turn.role == "assistant" and knows_nothing(turn.text)
    return bool(statements(split_forget_requests(turn.text).stated)) and not is_ignorant


def _is_near(match: Match, best: float) -> bool:
    return match.score >= best * (_ANSWERED if match.record.role == "assistant" else BESIDE)


def _is_drawn_from(fact: Record, turn: Record) -> bool:
    if fact.kind == "episode" or turn.kind != "episode":
        return False
    words = vocabulary(fact.text)
    return len(words & vocabulary(turn.indexed_text)) >= _COVERED * len(words) > 0


def _told(
    matches: Sequence[Match], held: Conversation, stated: str, rules: dict[str, Rule]
) -> list[Match]:
    """Leave out what is known or tells nothing; of what was said twice the newer moment counts.

    A user's line stands in the place of an answer that repeats it.
    """
    said, known = _BREAK.join(map(normalize, [*held.texts, stated])), vocabulary(stated)
    users = [one for one in matches if one.record.role == "user" and _tells(one.record)]
    told: dict[str, Match] = {}
    for found in matches:
        first = _repeated(found.record, users)
        match = found if first is None else replace(first, score=found.score)
        record = match.record
        words, line = vocabulary(record.text), normalize(record.text)
        if first is not None:
            rules[found.record.id] = "repeat"
            if line in told:
                continue
        if record.id in held.ids or contains(said, line) or (words and words <= known):
            rules[record.id] = "held"
        elif line in told:
            rules[told[line].record.id] = rules[record.id] = "repeat"
            told[line] = _newer(told[line], match)
        elif any(contains(one, line) for one in told):
            rules[record.id] = "repeat"
        elif record.kind != "episode" or _tells(record):
            told[line] = match
        else:
            rules[record.id] = "asks_only"
    return list(told.values())


def _repeated(turn: Record, users: Iterable[Match]) -> Match | None:
    """Find the user's line to which an answer adds no name, no number and hardly a word."""
    said = statements(turn.text) if turn.role == "assistant" else ()
    clauses = (part for one in said for part in _CLAUSES.split(one))
    told = " ".join(one for one in clauses if not is_small_talk(one))
    words, values = (vocabulary(one) - _TOLD_TO for one in (told, " ".join(values_in(told))))
    for user in users if words else ():
        text = user.record.text
        known = vocabulary(text)
        is_said = len(words - known) <= _NEW * len(words) and values <= known
        if is_said and is_negated(told) == is_negated(text):
            return user
    return None


def _newer(match: Match, other: Match) -> Match:
    """Return the later record of two with one text and speaker, with the score of the first."""
    one, two = match.record, other.record
    is_other = (one.kind, one.role, one.name) != (two.kind, two.role, two.name)
    if is_other or two.occurred_at <= one.occurred_at:
        return match
    return replace(match, record=two, replaced_by=other.replaced_by)


def _newer_first(matches: Sequence[Match], every: Iterable[Match], most: int) -> list[Match]:
    """Put a line that may tell what holds now in front of the one whose place it may have taken.

    That one is marked if it is likely, and else stays among the first `most`. The newer line may be
    any that was found.
    """
    by_id = {one.record.id: one for one in (*every, *matches)}
    clear = {new: one.replaced_by[new] for one in by_id.values() if (new := one.replacement)}
    found = list(matches)
    # The oldest first, so that a chain of values comes in order.
    for older in sorted(matches, key=lambda one: told_at(one.record)):
        newest = older.replacement or _likely_newer(older, by_id, clear)
        if newest is None:
            continue
        ids = [one.record.id for one in found]
        at = ids.index(older.record.id)
        if older.replacement:
            found[at] = _as_earlier(older)
        elif at + 1 == most:
            continue
        if newest not in ids and newest in by_id:  # else the conversation holds it
            found.insert(at, by_id[newest])
        elif newest in ids and (place := ids.index(newest)) > at:
            found.insert(at, found.pop(place))
    return found


def _likely_newer(
    older: Match, by_id: Mapping[str, Match], clear: Mapping[str, float]
) -> str | None:
    """Return the line that may hold instead of one and fits the question nearly as well, if any.

    A line that is by far likelier to hold instead of another one is not considered.

    Args:
        clear: lines that likely hold instead of others, and how likely.
    """
    chances = {
        one: _odds(likelihood) * math.pow(_odds(by_id[one].score) / _odds(older.score), _OF_SCORES)
        for one, likelihood in older.replaced_by.items()
        if one in by_id and likelihood >= clear.get(one, 0.0) / 2
    }
    newest = max(chances, key=chances.__getitem__, default="")
    return newest if chances.get(newest, 0.0) >= _NEWER_FIRST else None


def _odds(likelihood: float) -> float:
    return max(likelihood, 1e-4) / (1 - min(likelihood, 1 - 1e-4))


def _within_room(matches: Sequence[Match], most: int) -> list[Match]:
    """Leave out what there is no room for: first what is marked as earlier, then the last."""
    earlier = [one.record.id for one in matches if is_earlier(one)]
    gone = set(earlier[max(0, most - len(matches) + len(earlier)) :])
    return [one for one in matches if one.record.id not in gone][:most]


def _as_earlier(match: Match) -> Match:
    return replace(match, score_details={**match.score_details, EARLIER: 0.0})


def _without_sources(matches: list[Match]) -> list[Match]:
    """Put turns whose facts are among them last, so that they come only where there is room."""
    kept: list[Match] = []
    sources: list[Match] = []
    for match in matches:
        is_source = any(_is_drawn_from(one.record, match.record) for one in kept)
        (sources if is_source else kept).append(match)
    return [*kept, *sources]


def _facts_first(matches: list[Match]) -> list[Match]:
    """Put each fact in front of the first turn that it was drawn from."""
    ordered: list[Match] = []
    for match in matches:
        turns = (at for at, one in enumerate(ordered) if _is_drawn_from(match.record, one.record))
        ordered.insert(next(turns, len(ordered)), match)
    return ordered
