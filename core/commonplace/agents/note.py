"""The note: which recalled memories help, and their text, which a model reads as data.

A search returns what resembles the question best, and that is often the question itself, asked
before, or what the conversation says already. One function chooses for all adapters.

A memory may hold anything that anybody ever said, also text made to look like an instruction, a
heading or the end of the note. Each becomes one harmless line here, whatever it holds.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from ..retrieval.current import (
    Statement,
    last_of,
    may_replace,
    tells_change,
    tells_other,
    to_statement,
)
from ..retrieval.forget_requests import split_forget_requests
from ..retrieval.lexical import vocabulary
from ..retrieval.statement_words import asks_before, asks_first
from ..retrieval.utterance_kinds import (
    contains,
    knows_nothing,
    needs_no_memory,
    normalize,
    statements,
)
from ..types import Match, Record
from .line_times import day_line, earlier, is_chinese, local, time_of, with_days
from .policy import Policy
from .tokens import count_tokens

NOTE_MARK = "commonplace.note"
FOOTER = "(End of the stored notes.)"
MAX_MEMORY = 500
MAX_SUMMARY = 600
MAX_NAME = 80
MAX_NOTE = 4_000
ENOUGH = 0.05
"""Least score of a note's best line; below it nothing has to do with the question."""
BESIDE = 0.05
"""Least score of the other lines, as a share of the best one's."""
_COVERED = 0.6  # share of a fact's words in the turn that it was drawn from
_EXAMINED = 3  # times as many as are wanted
_ANSWERED = 0.2  # least score of an assistant's turn, as a share of the best one's
_ANSWERS = 0.5  # score of what answers the question more likely than not
_LIKELY = 0.03  # least score of lines of which the newer one is read first
_EARLIER = "earlier"  # in the details of a score: a newer one replaces it; it adds nothing
_NOW = datetime.max.replace(tzinfo=UTC)
Rule = Literal[
    "small_talk", "held", "repeat", "asks_only", "floor", "superseded", "room", "retracted"
]
"""Why a match is left out: the question needs no memory; the conversation or the question says it
already; a better line does; it only asks, knows nothing or asks to forget; its score is below the
floors; a newer one replaces it; better ones take the room; of an extracted turn, no fact holds."""
_LABEL = 8  # digits of a random UUID: enough for what one turn shows

# Letters and marks that show nothing: they hide text from people, not from models.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_ENTITY = re.compile(r"&(?:(lt|#0{0,6}60|#x0{0,6}3c)|gt|#0{0,6}62|#x0{0,6}3e);?", re.IGNORECASE)
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›", "`": "'"})
_RULES = re.compile(r"([#=~*_+-])\1{2,}|(##|\*\*)")
_LEADING = re.compile(r"^(?:[#>|=~*+-]+\s+)+")
# What looks like Latin letters and a colon: where words are recognised, never where they are shown.
_LOOKALIKES = str.maketrans("АВЕЅІМНОРСТУХаеѕіморсух∶꞉ː", "ABESIMHOPCTYXaesimopcyx:::")
_ROLE = (
    r"(?:im_(?:start|end|sep)|sys(?:tem)?|user|human|assistant|developer|inst(?:ructions?)?"
    r"|(?:available_)?tools?(?:_(?:calls?|results?))?|系统|用户|助手|システム|ユーザー)"
)
# A role in brackets or in bold, as chat templates write it: [INST], 【system】, **SYSTEM**. Not the
# index of a name in code, List[User].
_FENCED = re.compile(
    r"(?:(?:(?<!\w)|(?=[【〔〖⟦⟨〈⟪])|(?=.{1,4}(?-i:INST|SYS|TOOL|AVAIL)))"
    r"[\[【〔〖⟦⟨〈⟪‹{]{1,3}[\s/|_#▁]{0,4}|\*{1,3})"
    rf"({_ROLE}(?:[ _:-][a-z]{{1,20}}){{0,3}})[\s/|_▁:~]{{0,4}}[\]】〕〗⟧⟩〉⟫›}}*]{{1,3}}:?",
    re.IGNORECASE,
)
# Whoever speaks in a made-up dialogue: where a line or sentence begins, or written as a name.
_SPEAKER = re.compile(
    r"(?:^[^\w\n]{0,12}|[.!?…;。][\"')\]]?\s{1,4}|[)\]›]\s{0,4})"
    rf"(?i:{_ROLE}(?: (?:message|prompt|note|override))?)\s{{0,3}}:"
    r"|(?<!\w)(?:System|Human|User|Assistant|Developer|SYSTEM|HUMAN|USER|ASSISTANT|DEVELOPER)"
    r"\s{0,3}:",
    re.MULTILINE,
)
_IMAGE = re.compile(r"!(?=\[)")
_LINK = re.compile(r"\](?=\([^()\s]*[:/.?])")
_END = re.compile(r"\(?\bend of the stored notes\b\.?\)?", re.IGNORECASE)


def escape(text: str, limit: int = MAX_MEMORY) -> str:
    """Make one line of at most `limit` characters that opens, closes and fakes nothing.

    Line breaks and other control characters become spaces, invisible ones go, angle brackets and
    backticks become look-alikes, runs of markdown characters shrink to one. A role in brackets
    gets round ones, a speaker of a made-up dialogue loses the colon, and no link or image works.
    """
    # Nothing beyond this can be shown: a huge memory costs no more than a large one.
    text = "".join(_visible(char) for char in text[: limit * 8])
    text = _ENTITY.sub(lambda one: "‹" if one[1] else "›", _UNSEEN.sub("", text))
    text = _without_role_brackets(text.translate(_ANGLES))
    text = _LINK.sub("] ", _IMAGE.sub("", _without_speakers(text)))
    text = _RULES.sub(lambda run: run[0][0], text)
    text = _LEADING.sub("", " ".join(text.split()))
    text = _END.sub("end of notes", text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def bullets(
    matches: Sequence[Match],
    budget: int = MAX_NOTE,
    *,
    with_ids: bool = False,
    times: bool = True,
    now: datetime | None = None,
) -> list[str]:
    """Write a line `- memory` for each match, best first, until `budget` characters are used.

    Duplicates are removed. Turns of a conversation include their speaker.

    Args:
        with_ids: each line begins with the label of its record, `- [label] memory`.
        times: each line tells when it was said, or since or until when it holds, and whether a
            newer match replaces it: `- [2026-05-04, 3 weeks ago] memory`.
        now: the moment at which the lines are read, in the zone whose days are meant.
    """
    at = local(now) if times else None
    return list(dict.fromkeys(line for _, line in _lines(matches, budget, with_ids, at)))


def label(record: Record) -> str:
    """Return the short id by which a model names a record that it was shown."""
    return record.id[:_LABEL]


class ShownRecords:
    """The records that a model was shown in one turn, which alone its tools may change.

    Attributes:
        own_ids: of the records of the turn itself, which no search of it shows.
    """

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self.own_ids: set[str] = set()

    def add(self, matches: Sequence[Match]) -> None:
        """Add what a note or an answer shows; of two with one label the later counts."""
        self._records |= {label(match.record): match.record for match in matches}

    @property
    def ids(self) -> list[str]:
        """The ids of the records, for who shows them again after a restart."""
        return [record.id for record in self._records.values()]

    def find(self, memory_id: str) -> Record | None:
        """Find a record by its label, in brackets or not, or by its id; None if not shown."""
        wanted = memory_id.strip().strip("[]")
        found = self._records.get(wanted[:_LABEL])
        return found if found is not None and wanted in (label(found), found.id) else None


def render(matches: Sequence[Match], policy: Policy, now: datetime | None = None) -> str:
    """Write the note: header, day, intro, one line for each memory, footer.

    At most 4,000 characters; empty text if there is nothing to show.

    Args:
        now: the moment at which the note is read, in the zone whose days are meant; the present
            one in the zone of this process when None.
    """
    lines = list(dict.fromkeys(line for _, line in note_lines(matches, policy, now)))
    return "\n".join([*note_head(policy, now), *lines, FOOTER]) if lines else ""


def shown(matches: Sequence[Match], policy: Policy, now: datetime | None = None) -> list[Match]:
    """Choose the matches that `render` has room for, best first; one of equal text counts too."""
    return [match for match, _ in note_lines(matches, policy, now)]


def mark(
    matches: Sequence[Match], turn: str = "", *, memory: str = "", owner: str = ""
) -> dict[str, dict[str, object]]:
    """Describe a note in the metadata of its message: which records it shows, for which turn.

    `memory` and `owner` tell the notes of several memories and users in one conversation apart.
    `is_note` recognises a message by this mark; its name or text never decides.
    """
    records = [{"id": match.record.id, "score": match.score} for match in matches]
    return {NOTE_MARK: {"turn": turn, "memory": memory, "owner": owner, "records": records}}


def is_note(metadata: Mapping[str, object] | None, source: str | None = None) -> bool:
    """Return whether a message or block with this metadata or source is a note of this library.

    Such a message is recalled text and is never written back.
    """
    return source == NOTE_MARK or (metadata is not None and NOTE_MARK in metadata)


def note_head(policy: Policy, now: datetime | None) -> list[str]:
    """Write the lines in front of the memories: header, day, intro."""
    heading = [policy.header, policy.intro]
    if policy.times:
        heading.insert(1, day_line(local(now), policy.intro))
    return heading


def note_lines(
    matches: Sequence[Match], policy: Policy, now: datetime | None
) -> list[tuple[Match, str]]:
    """Write the line of each match that the note has room for; two of equal text share one."""
    head = note_head(policy, now)
    budget = MAX_NOTE - sum(len(line) + 1 for line in head) - len(FOOTER)
    lines = _lines(matches, budget, policy.shows_ids, local(now) if policy.times else None)
    if policy.note_tokens is None:
        return lines
    written = dict.fromkeys([*head, FOOTER])
    for end, (_, line) in enumerate(lines):
        written[line] = None
        if count_tokens("\n".join(written), policy) > policy.note_tokens:
            return lines[:end]
    return lines


def _lines(
    matches: Sequence[Match], budget: int, with_ids: bool, now: datetime | None
) -> list[tuple[Match, str]]:
    """Write the lines there is room for; of two that differ by their times alone the first."""
    lines: list[tuple[Match, str]] = []
    written: dict[str, str] = {}
    for match in matches:
        record = match.record
        speaker = _speaker(record)
        said = with_days(record, _excerpt(match), now) if now else _excerpt(match)
        most = MAX_SUMMARY if record.kind == "summary" else MAX_MEMORY
        text = escape(said, most - len(speaker))
        if not text:
            continue
        said = speaker + text
        front = [f"[{label(record)}]"] if with_ids else []
        key = " ".join([*front, said])
        if key not in written:
            if now:
                front.append(time_of(record, now))
            if now and is_earlier(match):
                front.append(earlier(record.text))
            line = " ".join(["-", *filter(None, front), said])
            budget -= len(line) + 1
            if budget < 0:
                break
            written[key] = line
        lines.append((match, written[key]))
    return lines


def _excerpt(match: Match) -> str:
    """Return what is shown of a text, with an ellipsis where some was left out."""
    text, shown = match.record.text, match.excerpt
    start = text.find(shown)
    before, after = text[: max(start, 0)], text[start + len(shown) :] if start >= 0 else ""
    return f"{'… ' if before.strip() else ''}{shown}{' …' if after.strip() else ''}"


def _speaker(record: Record) -> str:
    if record.kind == "summary":
        return "上次对话：" if is_chinese(record.text) else "Last session: "
    if record.kind != "episode":
        # Anybody may have written it, so whoever reads it is told.
        return f"(from a {record.origin}) " if record.origin in ("tool", "document") else ""
    name = escape(record.name or record.role or "", MAX_NAME)
    if name != record.role and re.fullmatch(_ROLE, _fold(name), re.IGNORECASE):
        name = f"({name})"  # somebody called System is a user too
    return f"{name}: " if name else ""


def _without_role_brackets(text: str) -> str:
    parts, at = [], 0
    for found in _FENCED.finditer(_fold(text)):
        parts += [text[at : found.start()], f"({found[1]})"]
        at = found.end()
    return "".join([*parts, text[at:]])


def _without_speakers(text: str) -> str:
    parts, at = [], 0
    for found in _SPEAKER.finditer(_fold(text)):
        parts += [text[at : found.end() - 1], " - "]
        at = found.end()
    return "".join([*parts, text[at:]])


def _fold(text: str) -> str:
    """Write a text as it looks, character by character, so that places stay the same."""
    return text if text.isascii() else "".join(map(_plain, text)).translate(_LOOKALIKES)


@lru_cache(maxsize=4_096)
def _plain(char: str) -> str:
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char


def _visible(char: str) -> str:
    if char in _BREAKS:
        return "\n"
    category = unicodedata.category(char)
    if category in {"Cc", "Zs"}:
        return " "
    return "" if category[0] == "C" else char


# -- selection -------------------------------------------------------------------------------------


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
    best = told[0].score if told else 0.0
    rules.update((one.record.id, "floor") for one in told if not _is_near(one, best))
    if best < ENOUGH:
        return []
    near = [one for one in told[: _EXAMINED * top_k] if _is_near(one, best)]
    replaced = replacements(matches, stated)
    rules.update((one.record.id, "superseded") for one in near if one.record.id in replaced)
    if asks_before(query) or asks_first(query):
        found = _facts_first(_without_sources(near)[:top_k])
        return [_as_earlier(one) if one.record.id in replaced else one for one in found]
    hold, earlier_ones = _newest_for(near, told, replaced, query)
    hold = _facts_first(_without_sources(hold)[:top_k])
    return _with_earlier(hold, earlier_ones, replaced, top_k)


def newest_first(query: str, matches: Sequence[Match], every: Sequence[Match]) -> list[Match]:
    """Put what holds now before what it replaces, which is marked; as many as were given.

    Args:
        query: what was searched for.
        matches: to put in order, best first.
        every: all that was found, of which each that replaces one of those is taken.
    """
    replaced = replacements(every)
    hold, earlier_ones = _newest_for(matches, every, replaced, query)
    return _with_earlier(hold[: len(matches)], earlier_ones, replaced, len(matches))


def replacements(matches: Sequence[Match], stated: str = "") -> dict[str, str]:
    """Map the id of each record that a newer one replaces to the id of that one.

    Args:
        matches: of one search, in any order.
        stated: what the user says now, whose id is "".
    """
    records = [match.record for match in matches]
    told = [to_statement(record) for record in records]
    speakers = {(one.user, one.name) for one in told if one.role == "user"} if stated else set()
    told += [
        Statement(text=stated, moment=_NOW, kind="episode", role="user", user=user, name=name)
        for user, name in speakers
    ]
    ids = [*(record.id for record in records), *("" for _ in speakers)]
    return {ids[old]: ids[new] for old, new in last_of(told).items()}


def is_earlier(match: Match) -> bool:
    """Return whether `choose` or `newest_first` marked a match as one that a newer replaces."""
    return _EARLIER in match.score_details


def without_held(records: Iterable[Record], held: Conversation | None) -> list[Record]:
    """Leave out the records that the running conversation holds already."""
    held = held or Conversation()
    said = _joined(held.texts)
    return [
        record
        for record in records
        if record.id not in held.ids and not contains(said, normalize(record.text))
    ]


def _joined(texts: Iterable[str]) -> str:
    """Join texts so that none of them runs on in the next."""
    return " \n ".join(map(normalize, texts))


def _tells(turn: Record) -> bool:
    """Return whether a turn tells something that may be shown."""
    if not statements(split_forget_requests(turn.text).stated):
        return False
    return turn.role != "assistant" or not knows_nothing(turn.text)


def _is_near(match: Match, best: float) -> bool:
    is_answer = match.record.role == "assistant"
    return best >= ENOUGH and match.score >= best * (_ANSWERED if is_answer else BESIDE)


def _is_drawn_from(fact: Record, turn: Record) -> bool:
    if fact.kind == "episode" or turn.kind != "episode":
        return False
    words = vocabulary(fact.text)
    return len(words & vocabulary(turn.indexed_text)) >= _COVERED * len(words) > 0


def _told(
    matches: Sequence[Match], held: Conversation, stated: str, rules: dict[str, Rule]
) -> list[Match]:
    """Leave out what is known or tells nothing; of what was said twice the newer moment counts."""
    said, known = _joined([*held.texts, stated]), vocabulary(stated)
    told: dict[str, Match] = {}
    for match in matches:
        record = match.record
        words, line = vocabulary(record.text), normalize(record.text)
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


def _newer(match: Match, other: Match) -> Match:
    """Return the later record of two with one text and speaker, with the score of the first."""
    one, two = match.record, other.record
    if (one.kind, one.role, one.name) != (two.kind, two.role, two.name):
        return match
    return replace(match, record=two) if two.occurred_at > one.occurred_at else match


def _newest_for(
    matches: Sequence[Match], others: Sequence[Match], replaced: Mapping[str, str], query: str
) -> tuple[list[Match], list[Match]]:
    """Split matches into those that hold and those that newer ones replace, marked.

    One that replaces another has its place at least.
    """
    by_id = {one.record.id: one for one in others}
    hold: dict[str, Match] = {}
    earlier_ones: list[Match] = []
    for match in matches:
        newest = replaced.get(match.record.id)
        if newest is None:
            hold.setdefault(match.record.id, match)
            continue
        earlier_ones.append(_as_earlier(match))
        if newest in by_id:
            hold.setdefault(newest, by_id[newest])
    rest = [one for id_, one in by_id.items() if id_ not in hold and id_ not in replaced]
    return _newer_first(list(hold.values()), rest, query), earlier_ones


def _newer_first(matches: list[Match], rest: Sequence[Match], query: str) -> list[Match]:
    """Put a line that may tell what holds now in front of the older ones on its matter.

    An older one is marked if a newer one says that something changed, or if both answer what is
    asked and the newer one, which does it no worse, says something else. It may be of the rest.
    """
    told = [(one, to_statement(one.record)) for one in (*matches, *rest)]
    found = list(matches)
    for older, then in told[: len(matches)]:
        newer = [one for one in told if may_replace(one[1], then, query)]
        changes = [
            (match, now)
            for match, now in newer
            if tells_change(now, then, query)
            or (match.score >= older.score >= _ANSWERS and tells_other(now, then, query))
        ]
        newer = [one for one in newer if min(one[0].score, older.score) >= _LIKELY]
        newest = max((*changes, *newer), key=lambda one: one[1].moment, default=None)
        if newest is None:
            continue
        ids = [one.record.id for one in found]
        at, id_ = ids.index(older.record.id), newest[0].record.id
        if changes:
            found[at] = _as_earlier(older)
        if id_ not in ids:
            found.insert(at, newest[0])
        elif (place := ids.index(id_)) > at:
            found.insert(at, found.pop(place))
    return found


def _with_earlier(
    hold: list[Match], earlier_ones: Sequence[Match], replaced: Mapping[str, str], most: int
) -> list[Match]:
    """Put replaced lines behind those that replace them, or last, as long as there is room."""
    found = list(hold)
    for match in earlier_ones[: most - len(hold)]:
        newest = replaced[match.record.id]
        behind = [
            at
            for at, one in enumerate(found)
            if newest in (one.record.id, replaced.get(one.record.id))
        ]
        found.insert(behind[-1] + 1 if newest and behind else len(found), match)
    return found


def _as_earlier(match: Match) -> Match:
    return replace(match, score_details={**match.score_details, _EARLIER: 0.0})


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
