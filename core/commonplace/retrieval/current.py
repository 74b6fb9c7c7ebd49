"""What holds now among statements on one matter, and questions for what holds or held.

A newer statement replaces an older one only if both are of one subject ("I", "my sister", a name)
and of one matter: a slot of which there is one at a time, words that match but for one value, or
shared words beside one that says that something changed. What may hold beside the other stays.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product

from ..types import Record
from .lexical import CJK, vocabulary
from .slots import CHINESE, ENGLISH, OTHERS, Slot
from .statement_words import (
    CHANGE,
    CLOSE,
    DUE,
    EVENT_NOUNS,
    FIRST,
    FROM_TO,
    HAS,
    HOPE,
    MOVED,
    NEGATED,
    NOW,
    NUMBERS,
    OBJECT,
    ONCE,
    PAST,
    PEOPLE,
    QUALIFIER,
    SAME,
    SWITCHED,
    TIME,
    TOWN,
    VALUE,
    WEAK,
    WEAK_CHINESE,
    WEAK_PAIRS,
    change_words,
    subject,
)
from .utterance_kinds import statements

_LONGEST = 400  # characters; longer texts tell of several matters and are left alone
_LATEST, _NO_TIME = datetime.max.replace(tzinfo=UTC), timedelta()
_SENTENCES = 4  # of a newer statement, that may replace an older one
_FEW = 2  # sentences of an older one at most: one of three does not make it obsolete
_SHORT_VALUE = 7  # words
_TOLD = 10  # of the words of a newer sentence at most; a longer one tells of several matters

_ABOUT_USERS = frozenset(["fact", "preference", "profile"])
_NAME_BEGINS = re.compile(r"[^\W\d_]{2,}")

_WORDS = re.compile(r"[\w'’@.+-]*\w")
_USERS = re.compile(r"ユーザー|\b(?:user|nutzer(?:in)?s?|usuari[oa])\b")
_HIRAGANA = re.compile("[\u3040-\u309f]")
_CLAUSES = re.compile(r"[,，;；:：](?!\d)")
_CLAUSE = 3  # words or characters of a clause at least
_PIECES = re.compile(rf"[{CJK}]|[^\s{CJK}]+")
_SINGULAR = frozenset(
    "sister brother friend son daughter cousin uncle aunt cat dog colleague kid child parrot "
    "kitten puppy horse katze hund 狗 猫 鸟 兔子 仓鼠".split()
)
_ROLES = frozenset("boss manager landlord tutor teacher doctor company team".split())
KIN = frozenset(PEOPLE) - _ROLES
_ONE_OF_TWO = re.compile(
    r"\b(?:first|second|third|fourth|older|younger|elder|home|work|office|left|right|upper|lower)\b"
    r"|第[一二三四]|大的|小的|[左右][边侧手]|家里|办公室|公司的"
)
# What holds at times only leaves room for another.
_PARTIAL = re.compile(
    r"\b(?:when|sometimes|often|usually|if|on \w+days?|occasionally|either|or)\b|有时|偶尔|下雨"
    r"|周[一二三四五六日]"
)
# "I drink green tea instead": what is drunk now takes the place of what was.
_TAKES_UP = re.compile(r"改([喝吃坐骑穿开练])")
_DOES = re.compile(r"[喝吃坐骑穿开练]")
_DOTS = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|No)\. |(?<=\w)\.(?=\w)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A text that somebody said or that is known as a fact.

    Attributes:
        moment: since when it holds, or when it was said.
        position: order among those of one moment.
        kind: kind of record. A fact and a turn of the user whom it is about may replace each
            other; other statements of two kinds never do.
        role: who spoke, None for a fact; turns of two roles never replace each other.
        name: of the speaker; as above.
        user: whose memory it is in; None if unknown, which keeps facts and turns apart.
        trust: one of less trust replaces nothing.
    """

    text: str
    moment: datetime
    position: int | None = None
    kind: str = "fact"
    role: str | None = None
    name: str | None = None
    user: str | None = None
    trust: float = 1.0


def superseded(statements_: Sequence[Statement]) -> dict[int, int]:
    """Map each statement that a newer one replaces to the newest that does, by their indices."""
    order = sorted(range(len(statements_)), key=lambda i: _time(statements_[i]))
    named = [names_of(one) for one in statements_]
    replaced: dict[int, int] = {}
    for place, i in enumerate(order):
        newer = statements_[i]
        for j in order[:place]:
            older = statements_[j]
            if may_be_replaced_by(older, newer) and replaces(
                newer.text, older.text, named[i] | named[j]
            ):
                replaced[j] = i
    return replaced


def may_be_replaced_by(older: Statement, newer: Statement) -> bool:
    """Tell whether a statement is newer than another, short, and by whom may correct it."""
    return (
        max(len(newer.text), len(older.text)) <= _LONGEST
        and older.trust <= newer.trust
        and _is_newer(newer, older)
        and _are_of_one(older, newer)
    )


def last_of(statements_: Sequence[Statement]) -> dict[int, int]:
    """Map each statement that a newer one replaces to the one at the end, which nothing replaces.

    By their indices, as `superseded`.
    """
    found = superseded(statements_)
    last = {}
    for old in found:
        new = old
        while new in found:
            new = found[new]
        last[old] = new
    return last


def to_statement(record: Record) -> Statement:
    """Return what a record states; a fact that was corrected, from its correction on."""
    moment = record.occurred_at
    if record.kind != "episode" and (later := record.updated_at - record.created_at) > _NO_TIME:
        moment = min(moment, _LATEST - later) + later
    role: str | None = record.role
    if record.kind == "episode" and role is None and not record.name:
        role = record.origin  # of a turn that was stored as a text
    return Statement(
        text=record.text,
        moment=moment,
        position=record.position,
        kind=record.kind,
        role=role,
        name=record.name,
        user=record.scope.user_id,
        trust=record.trust,
    )


def _are_of_one(one: Statement, other: Statement) -> bool:
    """Tell whether two statements are by one speaker, or by the user and about him."""
    if "episode" in (one.kind, other.kind) and one.kind != other.kind:
        turn = one if one.kind == "episode" else other
        is_users = one.user is not None and one.user == other.user and turn.role == "user"
        return is_users and {one.kind, other.kind} <= {"episode", *_ABOUT_USERS}
    if one.kind != other.kind and not {one.kind, other.kind} <= _ABOUT_USERS:
        return False
    return (one.role, _speaker(one)) == (other.role, _speaker(other))


def _speaker(turn: Statement) -> str | None:
    """Return the name of a turn's speaker; None for the user himself."""
    name, user = (turn.name or "").casefold(), (turn.user or "").casefold()
    return None if name in ("", user) else name


def names_of(statement: Statement) -> frozenset[str]:
    """Read the names that mean the user: that of the speaker, and the one that the id begins with.

    A fact tells them as "alice", whose id may be "alice-7".
    """
    if statement.user is None:
        return frozenset()
    return _first_names(statement.user, None if statement.role is None else statement.name or "")


@lru_cache(maxsize=256)
def _first_names(*names: str | None) -> frozenset[str]:
    found = (_NAME_BEGINS.match(one.casefold()) for one in names if one is not None)
    return frozenset(one[0] for one in found if one)


def tells_state(text: str) -> bool:
    """Return whether a text tells what holds for somebody, such as a home, and not what happened.

    False for a text of more than 400 characters.
    """
    return len(text) <= _LONGEST and any(
        one.slots and not (one.is_past or one.is_hope or one.is_once) for one in _read(text)
    )


def values_in(text: str) -> frozenset[str]:
    """Read the names, numbers and addresses of a text, in small letters."""
    return frozenset(one.lower() for one in VALUE.findall(text[:_LONGEST]) if one not in FIRST)


@lru_cache(maxsize=16_384)
def replaces(newer: str, older: str, names: frozenset[str]) -> bool:
    """Tell whether a short text replaces another one, by any of their sentences.

    Args:
        names: that mean the user.
    """
    if len(statements(_DOTS.sub(" ", older))) > _FEW:
        return False
    pairs = product(sentences(newer, names), sentences(older, names))
    return any(_replaces(one, other) for one, other in pairs)


@lru_cache(maxsize=4_096)
def sentences(text: str, names: frozenset[str]) -> tuple["Sentence", ...]:
    """Read the sentences of a text, and tell of the user what is told of one of his names.

    As "alice" or "alice sister". That both name him makes two sentences no more alike.
    """
    if not names:
        return _read(text)
    stems = frozenset().union(*map(vocabulary, names))
    found = []
    for sentence in _read(text):
        name, _, of = sentence.owner.partition(" ")
        owner = (of or "user") if name in names else sentence.owner
        found.append(replace(sentence, owner=owner, shared=sentence.shared - stems))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a sentence says of whom.

    Attributes:
        text: in small letters.
        owner: "me", "user", a relation such as "sister", a name, or "" if it names nobody.
        slots: what it fills, as slot and thing; and whether it says that it changed.
        shared: words that tell its matter, in stems and in pairs of Chinese characters.
        values: names, numbers and addresses in it.
        switched: words before what is used, done or wanted instead of something else.
        former: what something has changed from.
        objects: the beginnings of what Chinese verbs of states are about.
        events: what takes place, and of which kind.
        words: in small letters, without words of change.
    """

    text: str
    owner: str
    slots: dict[tuple[str, str], bool]
    renewing: frozenset[tuple[str, str]]
    shared: frozenset[str]
    values: frozenset[str]
    objects: frozenset[str]
    events: frozenset[str]
    qualifiers: frozenset[str]
    words: tuple[str, ...]
    is_past: bool
    is_hope: bool
    is_once: bool
    is_negated: bool
    closes: bool
    goes_on: bool
    switched: frozenset[str]
    former: frozenset[str]
    has: bool
    moves: bool
    is_partial: bool
    takes_up: frozenset[str]
    does: frozenset[str]


def _are_two(newer: Sentence, older: Sentence) -> bool:
    """Tell whether they tell of two of a kind: a first cat and a second, a brother and Paul."""
    ones, others = (set(_ONE_OF_TWO.findall(one.text)) for one in (newer, older))
    if ones and others and not ones & others:
        return True
    owner = older.owner
    if owner not in _SINGULAR or newer.owner != owner or _says_anew(newer):
        return False
    return _name_of(newer) != _name_of(older)


def _says_anew(sentence: Sentence) -> bool:
    """Tell whether a sentence says that something is over, or holds from now on."""
    return sentence.goes_on or sentence.closes or change_words(sentence.text)


def _name_of(sentence: Sentence) -> str:
    """Read the name behind "my brother"; empty if there is none."""
    found = re.search(rf"\b{re.escape(sentence.owner)},? (\w+)", sentence.text)
    return found[1] if found and found[1] in sentence.values else ""


def _replaces(newer: Sentence, older: Sentence) -> bool:
    """Tell whether a sentence takes the place of an older one."""
    if newer.is_past or newer.is_hope or older.is_past or older.is_hope:
        return False
    if newer.words == older.words and newer.is_negated == older.is_negated:
        return False  # it says the same again
    if _are_two(newer, older):
        return False
    if _fills_anew(newer, older):
        return True
    if older.is_once or newer.is_once or not _is_one(newer.owner, older.owner):
        return False
    return bool(
        (newer.takes_up & older.does and not older.is_negated)
        or _moves_event(newer, older)
        or any(_has(older, former) for former in newer.former)
        or _shares_change(newer, older)
        or _matches(newer, older)
    )


def _fills_anew(newer: Sentence, older: Sentence) -> bool:
    """Tell whether it fills a slot of the older one with something else."""
    is_one = _is_one(newer.owner, older.owner)
    for slot, changes in newer.slots.items():
        if slot not in older.slots:
            continue
        if not is_one and slot[0] not in ("which", "partner"):
            continue
        if not is_one and {newer.owner, older.owner} - {*SELF, slot[1], *_PARTNERS}:
            continue
        if changes:
            is_other = newer.values - older.values and not newer.objects & older.objects
            if is_other or newer.closes:
                return True
            if not newer.values and not _tells_again(newer, older):
                return True
        elif slot in newer.renewing and _differ(newer, older, slot):
            return True
    return False


def _tells_again(newer: Sentence, older: Sentence) -> bool:
    """Tell whether it says the same, maybe with more words."""
    if newer.is_negated != older.is_negated:
        return False
    return bool(newer.objects & older.objects or (older.shared and older.shared <= newer.shared))


def _is_one(one: str, other: str) -> bool:
    """Tell whether two subjects are one; a sentence that names nobody is about its speaker."""
    return one == other or (one in SELF and other in SELF)


SELF = frozenset(["", "me", "user"])
_PARTNERS = frozenset(
    "wife husband partner girlfriend boyfriend fiancé fiancée 老公 老婆 丈夫 妻子 男朋友 女朋友"
    " 男友 女友".split()
)


def _differ(newer: Sentence, older: Sentence, slot: tuple[str, str]) -> bool:
    if slot[0] in ("favourite", "secret", "bedtime"):
        return True
    if slot[0] == "commute":
        return not (newer.is_partial or older.is_partial)
    if slot[1] in _SINGULAR or (slot[0] == "which" and slot[1] in _PARTNERS):
        return False
    if _describes(newer.words) or _describes(older.words):
        return False
    if slot[0] in ("vehicle", "mail", "address", "which") and _CJK.match(newer.words[0]):
        return True
    return bool(newer.values and older.values and newer.values - older.values)


def _has(older: Sentence, former: str) -> bool:
    if _CJK.search(former):
        return former in older.text
    return set(former.split()) <= set(older.words)


def _moves_event(newer: Sentence, older: Sentence) -> bool:
    """Tell whether it gives another time or place to what the older one announces."""
    if not (newer.moves and newer.events & older.events):
        return False
    one, other = newer.qualifiers, older.qualifiers
    return not (one and other and not one & other) or bool(one & older.shared)


def _shares_change(newer: Sentence, older: Sentence) -> bool:
    """Tell whether it says that something changed and shares what the older one is about."""
    mine, others = (_without(one.shared, one.owner) for one in (newer, older))
    common = mine & others
    if not common or len(mine) > _TOLD:
        return False
    least = min(len(mine), len(others))
    if newer.is_negated != older.is_negated and not newer.closes:
        is_same = len(common) >= 2 and len(common) * 2 > least
        return is_same or (len(common) == least and max(len(mine), len(others)) <= 2)
    if newer.closes and not older.closes and newer.is_negated + older.is_negated < 2:
        return len(common) >= 2 or len(others) <= 2
    named = newer.switched & common if _CJK.search(newer.text) else newer.switched <= common
    if newer.switched and named and len(others) == 2 and not (newer.has or older.has):
        return True  # one of the two words is the matter, the other one its value
    return newer.goes_on and (len(common) >= 2 or len(common) == len(others))


@lru_cache(maxsize=1_024)
def _without(words: frozenset[str], owner: str) -> frozenset[str]:
    """Leave out the words of a name: they tell of whom, not of what."""
    return frozenset(one for one in words if one not in owner)


def _matches(newer: Sentence, older: Sentence) -> bool:
    """Tell whether their words match but for one value of what has one at a time."""
    frame, mine, others, matching = difference(newer.words, older.words)
    if not mine or not others or _is_long(mine) or _is_long(others):
        return False
    is_alike = 2 * matching >= min(len(newer.words), len(older.words))
    if (
        newer.goes_on
        and not older.goes_on
        and is_alike
        and (matching > 2 or _CJK.search(newer.words[0]))
        and (newer.shared & older.shared or _tells_much(frame))
    ):
        return True
    may_both_hold = _describes(mine) or _describes(others) or (_SINGULAR | KIN) & set(frame)
    if may_both_hold or newer.is_negated != older.is_negated:
        return False
    if _are_numbers(mine) and _are_numbers(others):
        # "Note 12" and "room 3" are names; "3 cats" is how many there are.
        is_name = not newer.shared.isdisjoint(vocabulary(frame[-1] if frame else ""))
        is_time = frame[-1:] in (("at",), ("on",))
        return not (is_name or is_time) and bool(newer.shared & older.shared)
    told = ("" if _CJK.search("".join(frame)) else " ").join(frame)
    if _SINGLE_VERB.search(told):
        return True
    return _SINGLE_FRAME.search(told) is not None and bool(
        newer.values - older.values and older.values - newer.values
    )


_Words = tuple[str, ...]


def difference(one: _Words, other: _Words) -> tuple[_Words, _Words, _Words, int]:
    """Read the words that begin both, the rest of each, and how many match before and behind."""
    start, shorter = 0, min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    end = 0
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return one[:start], one[start : len(one) - end], other[start : len(other) - end], start + end


def _describes(words: _Words) -> bool:
    """Tell whether Chinese words say what somebody is, which leaves room for more of it."""
    return words[-1] in "人师生员工的岁家长"


def _is_long(words: tuple[str, ...]) -> bool:
    if len(words) <= _SHORT_VALUE:
        return False
    return sum(0.5 if _CJK.match(word) else 1 for word in words) > _SHORT_VALUE


def _are_numbers(words: tuple[str, ...]) -> bool:
    return all(word[0].isdigit() or word in NUMBERS for word in words)


_SINGLE_FRAME = re.compile(
    r"^(?!the user (?:is|will be)$)(?:my|our|the|\w+['’]s)\b.*\b(?:is|are|ist|es|will be|runs"
    r"|costs?|starts|begins|called"
    r"|stores \w+"
    r" in)(?: (?:on|at|in|called|named|due|due on|due by|by|from|with|due at|held at|held in))?$"
)
_SINGLE_VERB = re.compile(
    r"\b(?:reports? to|banks? with|gets? \w+ from|based in|supplied by|(?:wedding|party|meeting"
    r"|concert|ceremony|dinner|event|conference) (?:will be|is|takes place))$"
    r"|(?:女朋友|男朋友|女友|男友|老板|经理|领导|房东|密码|电话|号码|邮箱|地址|截止日期|截稿日|日期"
    r"|时间|地点|生日|宽带|供应商)"
    r"(?:现在)?(?:是|在|为|叫)$"
    r"|(?:恋人|彼女|彼氏|上司|会社|番号|締切|住所|予定|担当|先生)は$|\bbezieht \w+ von$"
)


def _tells_much(frame: tuple[str, ...]) -> bool:
    """Tell whether Chinese words before a value say of what: "at breakfast I drink"."""
    return len(frame) >= 4 and _CJK.match(frame[-1]) is not None and frame[-1] not in "欢爱是的"


def _is_newer(one: Statement, other: Statement) -> bool:
    """Tell whether one was said after another; a fact is as old as the turn of its moment."""
    if "episode" in (one.kind, other.kind) and one.kind != other.kind:
        return one.moment > other.moment
    return _time(one) > _time(other)


def _time(statement: Statement) -> tuple[datetime, int]:
    return statement.moment, -1 if statement.position is None else statement.position


@lru_cache(maxsize=4_096)
def _read(text: str) -> tuple[Sentence, ...]:
    """Read the sentences of a short text that tell something, in order, each with its clauses."""
    plain = _DOTS.sub(lambda found: f"{found[1]} " if found[1] else "·", text)
    told = [one.replace("·", ".") for one in statements(plain)]
    return tuple(part for one in told[:_SENTENCES] for part in _with_clauses(one))


def _with_clauses(sentence: str) -> Iterator[Sentence]:
    """Read a sentence, and its clauses, which are about whom the one before is about.

    What makes it one about the past or a hope may be in another clause, if it has no "now".
    """
    whole = _read_sentence(sentence)
    yield whole
    clauses = [one.strip() for one in _CLAUSES.split(sentence)]
    owner = ""
    for clause in clauses if len(clauses) > 1 else ():
        if len(_PIECES.findall(clause)) < _CLAUSE:
            continue
        read = _read_sentence(clause)
        owner = read.owner or owner
        is_past = read.is_past or (whole.is_past and not read.goes_on)
        yield replace(read, owner=owner, is_past=is_past, is_hope=whole.is_hope)


def _read_sentence(sentence: str) -> Sentence:
    small = sentence.lower()
    slots, renewing = _slots(small)
    events = {group for found in EVENT_NOUNS.finditer(small) for group in found.groups() if group}
    if DUE.search(small):
        events.add("deadline")
    return Sentence(
        text=small,
        owner=subject(sentence, small),
        slots=slots,
        renewing=renewing,
        shared=matter_words(small),
        values=values_in(sentence).union(TOWN.findall(sentence)),
        objects=frozenset(OBJECT.findall(small)) if _CJK.search(small) else frozenset(),
        events=frozenset(events),
        qualifiers=_qualifiers(small, events),
        words=_framed(small),
        is_past=PAST.search(small) is not None,
        is_hope=HOPE.search(small) is not None,
        is_once=ONCE.search(small) is not None and not slots,
        is_negated=NEGATED.search(small) is not None,
        closes=CLOSE.search(small) is not None,
        goes_on=NOW.search(small) is not None,
        switched=matter_words(small[: found.end()])
        if (found := SWITCHED.search(small))
        else frozenset(),
        former=frozenset("".join(one) for one in FROM_TO.findall(small)),
        has=HAS.search(small) is not None,
        moves=MOVED.search(small) is not None,
        is_partial=_PARTIAL.search(small) is not None,
        takes_up=frozenset(_TAKES_UP.findall(small)),
        does=frozenset(_DOES.findall(small)),
    )


def _slots(small: str) -> tuple[dict[tuple[str, str], bool], frozenset[tuple[str, str]]]:
    is_cjk = _CJK.search(small) is not None
    tables: tuple[tuple[Slot, ...], ...] = (CHINESE, OTHERS) if is_cjk else (ENGLISH, OTHERS)
    now = NOW.search(small) is not None
    found: dict[tuple[str, str], bool] = {}
    renewing = set()
    for table in tables:
        for slot in table:
            stated = slot.states.search(small) if slot.states else None
            changed = slot.changes.search(small) if slot.changes else None
            for match in (stated, changed):
                if match:
                    key = slot.name, _of(match)
                    found[key] = found.get(key, False) or match is changed or now
                    if slot.renews:
                        renewing.add(key)
    return found, frozenset(renewing)


_CJK = re.compile(f"[{CJK}]")


def _of(match: re.Match[str]) -> str:
    of = next((group for group in match.groups() if group), "")
    return SAME.get(of, of)


def matter_words(small: str) -> frozenset[str]:
    """Read the words that tell what a sentence is about."""
    found = set()
    for word in vocabulary(TIME.sub(" ", CHANGE.sub(" ", _USERS.sub(" ", small)))):
        if _CJK.match(word):
            if _HIRAGANA.search(word):
                continue
            if len(word) == 2 and word not in WEAK_PAIRS and not (set(word) & WEAK_CHINESE):
                found.add(word)
        elif word not in WEAK and not word.isdecimal() and len(word) > 1:
            found.add(word)
    return frozenset(found)


def _qualifiers(small: str, events: set[str]) -> frozenset[str]:
    """Read of which kind an event is: what stands before its noun, and with whom or what it is."""
    found = {one for one in QUALIFIER.findall(small) if not TIME.match(one)}
    for event in (one for one in events if one in small):
        before, _, _ = small.partition(event)
        if _CJK.search(event):
            found.update(re.findall(r"([^\W我们的在把和]{2})的?$", before))
        else:
            last = before.split()[-1:]
            found.update(one for one in last if one not in _NO_KIND)
    return frozenset(found - events)


_NO_KIND = frozenset("the my our a an his her their this that next new moved postponed".split())


def _framed(small: str) -> tuple[str, ...]:
    """Split a sentence into words, without those that say that something changed."""
    words = _WORDS.findall(NOW.sub(" ", small))
    if _CJK.search(small):
        return tuple(_PIECES.findall(" ".join(words)))
    return tuple(words)
