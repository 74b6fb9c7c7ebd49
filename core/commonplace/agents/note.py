"""The note: recalled memories as a text that a model reads as data, each with its time.

A memory may hold anything that anybody ever said, also text made to look like an instruction, a
heading or the end of the note. Each becomes one harmless line here, whatever it holds.

The words around a date are Chinese beside a Chinese text and else English; dates are written as
`2026-05-04`, in the zone of the moment at which the note is read.
"""

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache, lru_cache

from ..retrieval.slots import tells_state
from ..retrieval.times import AskedTime, counted_days
from ..types import Match, Record
from .policy import Policy
from .standing_instructions import MARK

NOTE_MARK = "commonplace.note"
FOOTER = "(End of the stored notes.)"
EARLIER = "earlier"
"""In the details of a score: a newer match replaces this one; it adds nothing."""
MAX_MEMORY = 500
MAX_SUMMARY = 600
MAX_NAME = 80
MAX_NOTE = 4_000
_log = logging.getLogger("commonplace.agents")
_LABEL = 8  # digits of a random UUID: enough for what one turn shows
# Han, kana and Hangul, whose every letter is about a token.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LETTERS_OF_TOKEN = 4  # of other scripts
_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
_LATIN = re.compile(r"[^\W\d_\u3040-\u9fff]+")
_DATED = re.compile(r"\s*[\[(（]\s*(?:\w+\s){0,2}\d{4}\b")
_WEEKS, _MONTHS, _YEARS = 14, 60, 24  # days, days and months from which on ages are told in these
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKDAYS = "一二三四五六日"

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
        self.add_records(match.record for match in matches)

    def add_records(self, records: Iterable[Record]) -> None:
        """Add what is shown of records, or was shown before a restart."""
        self._records |= {label(record): record for record in records}

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


def is_earlier(match: Match) -> bool:
    """Return whether `choose` or `newest_first` marked a match as one that a newer replaces."""
    return EARLIER in match.score_details


def note_head(policy: Policy, now: datetime | None) -> list[str]:
    """Write the lines in front of the memories: header, day, intro."""
    heading = [policy.header, policy.intro]
    if policy.times:
        heading.insert(1, _day_line(local(now), policy.intro))
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
        if _count_tokens("\n".join(written), policy) > policy.note_tokens:
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
        said = _with_days(record, _excerpt(match), now) if now else _excerpt(match)
        most = MAX_SUMMARY if record.kind == "summary" else MAX_MEMORY
        text = escape(said, most - len(speaker))
        if not text:
            continue
        said = speaker + text
        front = [f"[{label(record)}]"] if with_ids else []
        key = " ".join([*front, said])
        if key not in written:
            if now:
                front.append(_time_of(record, now))
            if now and is_earlier(match):
                front.append("(较早)" if _is_chinese(record.text) else "(earlier)")
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
        return "上次对话：" if _is_chinese(record.text) else "Last session: "
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


# -- tokens ----------------------------------------------------------------------------------------


def _count_tokens(text: str, policy: Policy) -> int:
    """Count tokens by the policy's function, or by the rule of thumb where that fails."""
    count = policy.count_tokens
    if count is not None:
        try:
            return int(count(text))
        except Exception as error:  # it is the user's, and must not fail a turn
            _warn_of_count(count, repr(error))
    return estimate_tokens(text)


def estimate_tokens(text: str) -> int:
    """Estimate tokens: one for a Chinese, Japanese or Korean letter, one for 4 other characters."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // _LETTERS_OF_TOKEN)


@cache
def _warn_of_count(count: Callable[[str], int], reason: str) -> None:
    _log.warning("Policy(count_tokens=%r) failed, so tokens are estimated: %s", count, reason)


# -- times of lines ----------------------------------------------------------------------------


def local(now: datetime | None) -> datetime:
    """Return a moment with a zone: the present one in the process's own if there is none."""
    now = now or datetime.now().astimezone()
    return now if now.tzinfo else now.astimezone()


def _day_line(now: datetime, heading: str) -> str:
    """Write which day it is, in the language of the note's heading."""
    if _is_chinese(heading):
        return f"今天是{now.date()}，星期{_WEEKDAYS[now.weekday()]}。"
    return f"Today is {_DAY_NAMES[now.weekday()]}, {now.date()}."


def _time_of(record: Record, now: datetime) -> str:
    """Write when a record was said, or since or until when it holds, in brackets.

    Empty for a standing instruction, which holds.
    """
    if record.metadata.get(MARK) is True:
        return ""
    chinese = _is_chinese(record.text)
    if record.valid_to is not None:
        day = _local_to(now, record.valid_to).date()
        return f"[至{day}]" if chinese else f"[until {day}]"
    day = _local_to(now, record.occurred_at).date()
    is_known = record.kind == "fact" and record.origin not in ("tool", "document")
    if record.kind in ("profile", "preference") or (is_known and tells_state(record.text)):
        return f"[{day}起]" if chinese else f"[since {day}]"
    age = _age(day, now.date(), chinese)
    return f"[{day},{age}]" if chinese else f"[{day}, {age}]"


def _with_days(record: Record, text: str, now: datetime) -> str:
    """Write a record's text with the days that it counts from its moment behind their words.

    What somebody else wrote, as in a document, is left as it is: its moment is not known.
    """
    if record.origin in ("tool", "document"):
        return text
    said = _local_to(now, record.occurred_at)
    parts, end = [], 0
    for (_, last), found in counted_days(text, said):
        if found.start == found.end == said.date() or _DATED.match(text, last):
            continue
        space = "" if _HAN.match(text[last - 1]) else " "
        parts.append(f"{text[end:last]}{space}[{_span(found, _is_chinese(text))}]")
        end = last
    return "".join([*parts, text[end:]])


def _is_chinese(text: str) -> bool:
    """Tell whether the words of a text are mostly Chinese characters."""
    characters = len(_HAN.findall(text))
    return characters > 2 * len(_LATIN.findall(text)) and not _KANA.search(text)


def _local_to(now: datetime, moment: datetime) -> datetime:
    try:
        return moment.astimezone(now.tzinfo)
    except OverflowError:  # on the first or the last day that there is
        return moment


def _age(day: date, today: date, chinese: bool) -> str:
    """Write how long ago a day was, or how far ahead it is."""
    days = (today - day).days
    if abs(days) < 2:
        names = ("明天", "今天", "昨天") if chinese else ("tomorrow", "today", "yesterday")
        return names[days + 1]
    far = abs(days)
    if far < _WEEKS:
        number, unit, word = far, "days", "天"
    elif far < _MONTHS:
        number, unit, word = far // 7, "weeks", "周"
    elif (number := _months(*sorted((day, today)))) < _YEARS:
        unit, word = "months", "个月"
    else:
        number, unit, word = number // 12, "years", "年"
    if chinese:
        return f"{number}{word}{'前' if days > 0 else '后'}"
    return f"{number} {unit} ago" if days > 0 else f"in {number} {unit}"


def _months(first: date, last: date) -> int:
    """Count the whole months from one day to a later one."""
    return 12 * (last.year - first.year) + last.month - first.month - (last.day < first.day)


def _span(found: AskedTime, chinese: bool) -> str:
    first, last = str(found.start), str(found.end)
    if found.grain in ("month", "season"):
        first, last = first[:7], last[:7]
    elif found.grain == "year":
        first, last = first[:4], last[:4]
    return first if first == last else f"{first}{'至' if chinese else ' to '}{last}"
