"""What is known of a person: what he stated, one line for each matter, without a model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from ..retrieval.forget_requests import split_forget_requests
from ..retrieval.lexical import vocabulary
from ..retrieval.replacement import since
from ..retrieval.statement_words import CLOSE, WEAK, is_negated, values_in
from ..retrieval.utterance_kinds import normalize, own_words, statements
from ..sans_io import Plan, call
from ..types import Page, Record, Scope
from .standing_instructions import MARK, told_at, without_replaced

# Code, tables, lines of a mail, and what stands between quotation marks, which are no inches.
_QUOTED = re.compile(
    r"(```|~~~)(?s:.*?)(?:\1|\Z)|^[^\S\n]*[>|].*"
    r"|(?P<brief>(?<![^\W_])\"[^\"]{0,11}\"|[“„«「『][^”“»」』]{0,11}[”“»」』])"
    r"|(?<![^\W_])\"[^\"]*\"|[“„«「『][^”“»」』]*[”“»」』]\.?",
    re.MULTILINE,
)
_READ = 1_000
_COMPARED = 250  # statements at most: each is compared with all before it
_COVERED = 0.6  # share of a fact's words in a turn that says it, too
# Two side by side; a name that somebody is given or of whom a clause tells.
_PAIR = re.compile(r"(\w+) (?:and|&) (\w+)|([\u4e00-\u9fff]{2})[和跟与、]([\u4e00-\u9fff]{2})")
_ACTOR = re.compile(
    r"(?:\b(?:out|that|[Mm]y|[Oo]ur|\w+['’]s)(?: [a-z]+){0,2}) ([A-Z][a-z]+)(?= [a-z])"
)
_KINDS = ("fact", "preference", "profile", "episode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One matter that is known of a person.

    Attributes:
        text: what states it, without questions and small talk beside it.
        record: where it stands.
        since: when it was first said or began.
        until: when it ended; None if it holds, as far as is known.
        earlier: what held before on the same matter, newest first.
    """

    text: str
    record: Record
    since: datetime
    until: datetime | None = None
    earlier: "Sequence[Known]" = ()


def about(scope: Scope) -> Plan[list[Known]]:
    """List what is known of a user: first what holds now, then what ended, each newest first.

    Read are the newest 1,000 records, and of these the newest 250 statements: facts, preferences,
    profile, and the user's own turns without questions, small talk, requests and quoted text. With
    the default embedder, turns that its vectors tell to be reactions, tasks or code are left out as
    well. A matter that was told several times, with that embedder in other words too, is one line
    as it was told last; so are a fact and the turn that it was drawn from. A standing instruction
    that a newer one replaces is left out, as in a note.

    Args:
        scope: whose memory; one with a `user_id` alone covers all agents and sessions.
    """
    page: Page = yield call("list", scope, kinds=_KINDS, limit=_READ, include_superseded=True)
    told = [one for one in map(_known, page.records) if one is not None]
    told = sorted(told, key=lambda one: one.since, reverse=True)[:_COMPARED]
    turns = [one.record.id for one in told if one.record.kind == "episode"]
    outdated: Mapping[str, datetime] = {}
    if turns:
        outdated = yield call("admin.outdated_turns", scope, turns)
    drawn = {source for one in told for source in one.record.sources}.intersection(turns)
    told = [one for one in _in_force(told) if one.record.id not in drawn | outdated.keys()]
    newest: Mapping[str, str]
    again: Mapping[str, str]
    newest, again = yield call("admin.statements", [one.record for one in told])
    told = _told_once([one for one in told if one.record.id in newest], again)
    return _by_matter(told, _clearly_replaced(told, newest))


def _known(record: Record) -> Known | None:
    """Read what a record states; None for what is no statement of the user's."""
    if record.origin in ("tool", "document") or record.role not in (None, "user"):
        return None
    text = _stated(own_words(split_forget_requests(record.text).stated))
    if not text:
        return None
    return Known(text=text, record=record, since=since(record), until=record.valid_to)


def _stated(text: str) -> str:
    """Write a text's statements on one line as they stand; one that is quoted is another's."""
    quoted = [one.span() for one in _QUOTED.finditer(text) if one["brief"] is None]
    kept, end = "", 0
    for one in statements(text):
        start = text.index(one, end)
        between = text[end:start]
        end = start + len(one)
        if not any(first <= start and end <= last for first, last in quoted):
            kept += (" " if normalize(between) else between) + one
    return " ".join(kept.split())


def _in_force(told: Sequence[Known]) -> list[Known]:
    """Leave out standing instructions that newer ones replaced, and the turns that gave them."""
    given = [one for one in told if MARK in one.record.metadata]
    newest = sorted((one.record for one in given), key=told_at, reverse=True)
    held = {record.id for record in without_replaced(newest)}
    over = {
        sentence for one in given if one.record.id not in held for sentence in _sentences(one.text)
    }
    return [one for one in told if not _sentences(one.text) <= over]


def _told_once(told: Sequence[Known], again: Mapping[str, str]) -> list[Known]:
    """Leave out what is said again and never ended; what says it holds since then.

    Args:
        again: by id, the id of what says it again.
    """
    first = {one.record.id: one.since for one in told}
    once = []
    for one in told:
        last = again.get(one.record.id)
        if last is None or one.until is not None:
            once.append(one)
        else:
            first[last] = min(first[last], one.since)
    return [replace(one, since=first[one.record.id]) for one in once]


def _clearly_replaced(told: Sequence[Known], newest: Mapping[str, str]) -> dict[str, str]:
    """Find by id what took the place of each: the last on its matter that clearly did, or itself.

    A standing instruction holds until another one ends it.
    """
    rules = {one for by in told if MARK in by.record.metadata for one in _sentences(by.text)}
    found: dict[str, str] = {}
    for at, one in enumerate(told):  # newest first
        id_ = found[one.record.id] = one.record.id
        if newest[id_] != id_ and rules.isdisjoint(_sentences(one.text)):
            newer = [by for by in told[:at] if newest[id_] in (by.record.id, newest[by.record.id])]
            last = next((by.record.id for by in newer if _replaces(by.text, one.text)), id_)
            found[id_] = found[last]
    return found


def _replaces(newer: str, older: str) -> bool:
    """Tell whether a line clearly took the place of one, which names nothing that may still hold.

    If it lacks a number it gives another, says the rest again or that something is over; if it
    lacks a name it is about nobody else; of two that are named side by side it has both or none.
    """
    said, told = vocabulary(newer), vocabulary(older)
    gone = {one for one in values_in(older) if not vocabulary(one) <= said}
    numbers = {one for one in gone if one[0].isdigit()}
    is_over = CLOSE.search(newer.lower()) is not None or is_negated(newer)
    rest = told - vocabulary(" ".join(numbers)) - WEAK
    is_given = not numbers or is_over or any(map(str.isdigit, newer)) or rest <= said
    pairs = ([vocabulary(one) for one in pair if one] for pair in _PAIR.findall(older))
    is_half = any(one and two and (one <= said) != (two <= said) for one, two in pairs)
    is_of_same = gone == numbers or vocabulary(" ".join(_ACTOR.findall(newer))) <= told
    return is_given and is_of_same and not is_half


def _by_matter(told: Sequence[Known], newest: Mapping[str, str]) -> list[Known]:
    """Put what newer statements replace below them, and leave out what is said again.

    Args:
        newest: by id, the id of what holds: its own, or that of what replaces it.
    """
    by_id = {one.record.id: one for one in told}
    order = sorted(
        told, key=lambda one: (newest[one.record.id] != one.record.id, one.until is not None)
    )
    lines: dict[str, Known] = {}
    earlier: dict[str, list[Known]] = {}
    line_of: dict[str, str] = {}  # of what holds, and is said by another line
    for one in order:
        root = line_of.get(newest[one.record.id], newest[one.record.id])
        holds = root == one.record.id
        same = earlier.setdefault(root, [])
        beside = lines.values() if holds else [by_id[root], *same]
        saying = next((other for other in beside if _says(other, one)), None)
        if saying is None and holds:
            lines[root] = one
        elif saying is None:
            same.append(replace(one, until=one.until or by_id[root].since))
        elif holds:
            line_of[root] = saying.record.id
            lines[saying.record.id] = replace(saying, since=min(saying.since, one.since))
    found = [replace(one, earlier=tuple(earlier[id_])) for id_, one in lines.items()]
    found.sort(key=lambda one: one.since, reverse=True)
    return sorted(found, key=lambda one: one.until is not None)


def _says(one: Known, other: Known) -> bool:
    """Tell whether a line says what another one does."""
    told, words = _words(one.text), _words(other.text)
    if _sentences(other.text) <= _sentences(one.text):
        return True
    if is_negated(one.text) != is_negated(other.text):
        return False
    if (one.record.kind == "episode") != (other.record.kind == "episode"):
        fact = words if one.record.kind == "episode" else told
        return len(words & told) >= _COVERED * len(fact) > 0
    return bool(words) and words == told


_words = lru_cache(maxsize=2 * _COMPARED)(vocabulary)  # long texts are read once, too


@lru_cache(maxsize=2 * _COMPARED)
def _sentences(text: str) -> frozenset[str]:
    return frozenset(map(normalize, statements(text)))
