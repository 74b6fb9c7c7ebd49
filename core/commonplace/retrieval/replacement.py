"""How likely a newer statement took the place of an older one, or says it again.

The likelihood is logistic, as the score is: a weighted sum of the features of a pair and, with the
default embedder, a bilinear form of their vectors: that two texts tell of one matter, and the newer
one of a change, can be seen in vectors whatever the words. `train_replacement.py` and
`train_repeats.py` in `benchmarks/` measure the weights on pairs that were judged by hand, the first
on made-up memories, too, and write `replacement` and `repeats`, a `.json` and a `.npy` each.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain, takewhile
from operator import eq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import LIKELY, Record, is_short
from .calibration import Calibration
from .lexical import CJK, vocabulary
from .slots import slots_in
from .statement_words import (
    CLOSE,
    HOPE,
    KIN,
    NOW,
    ONCE,
    PAST,
    SELF,
    WordPattern,
    change_words,
    matter_words,
    subject,
    values_in,
)
from .utterance_kinds import statements

FAR = 0.2
"""Least nearness of two statements on one matter: of those replaced, 99 of 100 are nearer."""
_NEIGHBOURS = 5  # newer statements that are compared with each, where nothing is asked
_NEAR = 0.5  # least nearness of what is said again
_ONE_MATTER = 0.44  # least likelihood that it is changed or said again, to show the newer alone
# The same where the newer one says that something changed, and the share that one older statement
# must have in all that it may have changed.
_MAYBE, _SOLE = 0.2, 0.6
_CLEARLY = 0.2  # by how much a change must be likelier than that it is said again
_LEAST = -5.0
"""Least logit of nearness, gain and vectors: of those replaced, 998 of 1,000 have more."""
_LATEST, _NO_TIME = datetime.max.replace(tzinfo=UTC), timedelta()
_ABOUT_USERS = frozenset(["fact", "preference", "profile"])
_NAME_BEGINS = re.compile(r"[^\W\d_]{2,}")
_ADDS = WordPattern(
    r"\b(?:also|too|as well|another|second|other|both|either|besides|auch|zweite\w*|también)\b",
    r"又|也|还(?!给|清)|另|二|も",
)
_NUMBERS = re.compile(r"\d+")
_WORDS = re.compile(rf"[{CJK}]|(?:[^\W{CJK}]|['’@.+-])*[^\W{CJK}]")


# -- statements ------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)  # frozen, one of these takes three times as long to make
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


def since(record: Record) -> datetime:
    """Return when a record was told; a fact that was corrected, when that was."""
    moment = record.occurred_at
    if record.kind != "episode" and (later := record.updated_at - record.created_at) > _NO_TIME:
        moment = min(moment, _LATEST - later) + later
    return moment


def to_statement(record: Record) -> Statement:
    """Return what a record states; a fact that was corrected, from its correction on."""
    role: str | None = record.role
    if record.kind == "episode" and role is None and not record.name:
        role = record.origin  # of a turn that was stored as a text
    return Statement(
        text=record.text,
        moment=since(record),
        position=record.position,
        kind=record.kind,
        role=role,
        name=record.name,
        user=record.scope.user_id,
        trust=record.trust,
    )


def _is_newer(one: Statement, other: Statement) -> bool:
    """Tell whether one was said after another; a fact is as old as the turn of its moment."""
    if one.moment != other.moment:
        return one.moment > other.moment
    if one.kind != other.kind and "episode" in (one.kind, other.kind):
        return False
    return _place(one) > _place(other)


def _place(one: Statement) -> tuple[datetime, int]:
    return one.moment, -1 if one.position is None else one.position


class _Compared(NamedTuple):
    """A statement, with what is read of it once for all its pairs.

    Attributes:
        is_short: a long text tells of several matters, and is left alone.
        speaker: name of a turn's speaker; None for the user himself.
        named: share of a speaker's name in what is embedded of a turn.
        users: names that mean the user: that of the speaker, and the one that the id begins with.
            A fact tells them as "alice", whose id may be "alice-7".
    """

    said: Statement
    is_short: bool
    speaker: str | None
    named: float
    users: frozenset[str]


def _compared(said: Statement) -> _Compared:
    user, name = said.user, said.name
    speaker = name.casefold() if name else None
    names = () if user is None else (user, None if said.role is None else name or "")
    return _Compared(
        said,
        is_short(said.text),
        None if speaker == (user or "").casefold() else speaker,
        len(name) / (len(name) + len(said.text)) if name else 0.0,
        _first_names(*names),
    )


def _may_be_replaced_by(older: _Compared, newer: _Compared) -> bool:
    """Tell whether a statement is newer than another, and by whom may correct it."""
    return (
        newer.is_short
        and older.is_short
        and older.said.trust <= newer.said.trust
        and _is_newer(newer.said, older.said)
        and _are_of_one(older, newer)
    )


def _are_of_one(one: _Compared, other: _Compared) -> bool:
    """Tell whether two statements are by one speaker, or by the user and about him."""
    first, second = one.said, other.said
    if first.kind != second.kind and "episode" in (first.kind, second.kind):
        turn = first if first.kind == "episode" else second
        is_users = first.user is not None and first.user == second.user and turn.role == "user"
        return is_users and {first.kind, second.kind} <= {"episode", *_ABOUT_USERS}
    if first.kind != second.kind and not {first.kind, second.kind} <= _ABOUT_USERS:
        return False
    return first.role == second.role and one.speaker == other.speaker


@lru_cache(maxsize=256)
def _first_names(*names: str | None) -> frozenset[str]:
    found = (_NAME_BEGINS.match(one.casefold()) for one in names if one is not None)
    return frozenset(one[0] for one in found if one)


# -- pairs of statements ---------------------------------------------------------------------------


class _Told(NamedTuple):
    """What the sentences of a statement tell together.

    Attributes:
        small: its text in small letters.
        sentences: whom each of them is about, "" for the user, and it in small letters.
        kin: relatives and friends of the user whom they are about.
        words: that tell its matter.
        values: names, numbers and addresses in it.
        longest: the words of its longest sentence.
        is_unreal: it tells of the past or of a wish.
        closes: it says that something is over. goes_on: that something is another way now.
        adds: it tells of one more. is_event: it tells only what was once done.
        numbers: in digits in it.
    """

    small: str
    sentences: tuple[tuple[str, str], ...]
    kin: tuple[str, ...]
    words: frozenset[str]
    values: frozenset[str]
    longest: tuple[str, ...]
    is_unreal: bool
    closes: bool
    goes_on: bool
    adds: bool
    is_event: bool
    numbers: frozenset[str]


class _Features(NamedTuple):
    # Of their vectors, on the embedder's own scale: 0 unrelated, 1 alike.
    nearness: float
    # By how much the newer one is nearer to the question.
    gain: float
    # By how much it is farther, times how near both are: it tells of the electrician as the older
    # one tells of the plumber, who is asked for.
    farther: float
    # A speaker's name is embedded with each turn, which makes them nearer.
    named: float
    # About what: one slot of one person, one that changed, the same words, those of the question.
    slot: float
    slot_changes: float
    is_unreal: float
    shares: float
    shared_words: float
    asked_words: float
    # "My gym code is 1" and "My gate code is 2" are alike but for what the question names.
    begins_alike: float
    loses_asked: float
    numbers: float
    # What the newer one says of the change.
    closes: float
    goes_on: float
    adds: float
    # What speaks against it: it is about a relative whom the older one does not name, it says all
    # that the older one says, or both tell what was once done.
    of_another: float
    retells: float
    are_events: float


PAIR_FEATURES = _Features._fields
"""The names of the features of a pair."""


class Pair(NamedTuple):
    """A newer statement and an older one, for a question.

    Attributes:
        of_vectors: what their vectors add; None without.
    """

    newer: _Told
    older: _Told
    features: _Features
    of_vectors: float | None = None


def likelihoods(pairs: Sequence[Pair]) -> NDArray[Any]:
    """Compute for each pair how likely the newer statement took the older one's place, in 0..1.

    Args:
        pairs: of one search; all or none have what their vectors add.
    """
    of_vectors = [one.of_vectors for one in pairs if one.of_vectors is not None]
    weights = _weights("replacement", "with_vectors" if of_vectors else "without_vectors")
    logits = _weighed(pairs, weights) + (np.array(of_vectors) if of_vectors else 0.0)
    found: NDArray[Any] = 1 / (1 + np.exp(-logits))
    return found


def rows(pairs: Sequence[Pair]) -> NDArray[Any]:
    """Compute the features: a row for each pair, a column for each of `PAIR_FEATURES`."""
    numbers = chain.from_iterable([one.features for one in pairs])
    return np.fromiter(numbers, float).reshape(len(pairs), len(PAIR_FEATURES))


def pairs(
    statement: Callable[[int], Statement],
    question: str,
    older: Sequence[int],
    nearness: NDArray[Any],
    fit: NDArray[Any],
    vectors: NDArray[Any] | None = None,
    *,
    with_repeats: bool = False,
) -> dict[tuple[int, int], Pair]:
    """Pair statements with the newer ones near them that may replace them, by their indices.

    Args:
        statement: returns one by its index; called only for those that are paired.
        question: empty if nothing is asked.
        older: the indices of those of which newer ones are looked for.
        nearness: of each of these (row) to each statement, on the embedder's own scale; 0 to one
            that is not newer.
        fit: how near each statement is to the question, as above.
        vectors: of the default embedder, a row for each statement; None of another.
        with_repeats: pair them with all near ones that may say them again, too.

    Returns:
        By the indices of the older and of the newer one.
    """
    gain = fit - fit[older][:, None]
    of_vectors = None
    if vectors is not None:
        of_vectors = added(_vector_weights("replacement"), vectors[older], vectors, crosswise=True)
    may = _may(nearness, gain, of_vectors)
    if with_repeats:
        may |= nearness >= _NEAR
    near = np.nonzero(may)
    if not len(near[0]):
        return {}
    asked = _matter_of(question.lower())
    found: dict[tuple[int, int], Pair] = {}
    tables = (nearness, gain) if of_vectors is None else (nearness, gain, of_vectors)
    numbers = [table[near].tolist() for table in tables]
    places = (np.asarray(older)[near[0]].tolist(), near[1].tolist())
    compared = {number: _compared(statement(number)) for number in {*places[0], *places[1]}}
    told: _Told | None = None
    slots: tuple[tuple[str, str, str], ...] = ()
    for old, new, near_by, gained, *added_by in zip(*places, *numbers, strict=True):
        earlier, later = compared[old], compared[new]
        if not _may_be_replaced_by(earlier, later):
            continue
        names = earlier.users if earlier.users == later.users else earlier.users | later.users
        one, other = _told(later.said.text, names), _told(earlier.said.text, names)
        if not with_repeats and _only_adds(one, other):
            continue
        if other is not told:  # as a rule once for each older one
            told, slots = other, _slots_of(other)
        named = (earlier.named + later.named) / 2
        features = _features(one, other, asked, slots, near_by, gained, named)
        found[old, new] = Pair(one, other, features, *added_by)
    return found


def last_of(
    told: Sequence[Statement], vectors: Sequence[Sequence[float]], calibration: Calibration
) -> tuple[dict[int, int], dict[int, int]]:
    """Find which statements newer ones likely replace, and which ones they say again.

    Nothing is asked, so only what is near counts.

    Args:
        vectors: of the statements.
        calibration: of the vectors' embedder.

    Returns:
        By their indices: of each of both kinds the last that holds on its matter, and of each that
        is said again the last that does. The latter is empty without the default embedder.
    """
    if not told:
        return {}, {}
    table, count = np.array(vectors), len(told)
    scales = [calibration.scale(one.text) for one in told]
    nearness = np.stack([one.place(table @ row) for one, row in zip(scales, table, strict=True)])
    nearness *= np.array([[_is_newer(new, old) for new in told] for old in told])
    far = np.argsort(nearness, axis=1)[:, :-_NEIGHBOURS]
    np.put_along_axis(nearness, far, 0.0, axis=1)
    known = table if all(one.of_default for one in scales) else None
    found = pairs(
        told.__getitem__, "", range(count), nearness, np.zeros(count), known, with_repeats=True
    )
    replaced = likelihoods([*found.values()])
    repeated = 0.0 * replaced if known is None else repeats(found, known)
    again: dict[tuple[int, int], tuple[datetime, int]] = {}
    on_one: dict[tuple[int, int], tuple[float, datetime, int]] = {}
    for (ids, pair), change, repeat in zip(found.items(), replaced, repeated, strict=True):
        if repeat >= max(LIKELY, change - _CLEARLY):
            again[ids] = _place(told[ids[1]])
        likely = repeat + (0.0 if pair.features.are_events else change)  # it cannot be both
        on_one[ids] = likely, *_place(told[ids[1]])
    likeliest, at_stake = dict(sorted(on_one, key=on_one.__getitem__)), [0.0] * count
    for old, new in likeliest.items():
        at_stake[new] += on_one[old, new][0]
    least = [_ONE_MATTER] * count
    for at, one in enumerate(told if known is not None else ()):
        if change_words(one.text):
            least[at] = min(_ONE_MATTER, max(_MAYBE, _SOLE * at_stake[at]))
    newest = {old: new for old, new in likeliest.items() if on_one[old, new][0] >= least[new]}
    return _last(newest), _last(dict(sorted(again, key=again.__getitem__)))


def _last(links: Mapping[int, int]) -> dict[int, int]:
    """Follow the links of statements, one of each and always to a newer one, to the last."""
    found = dict(links)
    for old in links:
        while (last := found[old]) in found:
            found[old] = found[last]
    return found


def repeats(found: Mapping[tuple[int, int], Pair], vectors: NDArray[Any]) -> NDArray[Any]:
    """Compute how likely the newer one of each pair says the older one again, in 0..1.

    One that has other numbers does not.

    Args:
        found: the pairs, by the indices of the older and of the newer one.
        vectors: of the default embedder, a row for each statement.
    """
    older, newer = np.array([*found], int).reshape(-1, 2).T
    logits = _weighed([*found.values()], _weights("repeats", "with_vectors"))
    logits += added(_vector_weights("repeats"), vectors[older], vectors[newer])
    likely: NDArray[Any] = 1 / (1 + np.exp(-logits))
    numbers = [(one.older.numbers, one.newer.numbers) for one in found.values()]
    likely *= [not new or old <= new for old, new in numbers]
    return likely


def _may(
    nearness: NDArray[Any], gain: NDArray[Any], of_vectors: NDArray[Any] | None
) -> NDArray[Any]:
    """Tell which pairs are worth reading: near ones that their numbers alone make possible."""
    found: NDArray[Any] = nearness >= FAR
    if of_vectors is None:
        return found
    weights = _weights("replacement", "with_vectors")
    of_near, of_gain = (weights[PAIR_FEATURES.index(name)] for name in ("nearness", "gain"))
    found &= of_vectors + of_near * nearness + of_gain * gain + weights[-1] >= _LEAST
    return found


def _features(
    newer: _Told,
    older: _Told,
    asked: frozenset[str],
    slots: Sequence[tuple[str, str, str]],
    nearness: float,
    gain: float,
    named: float,
) -> _Features:
    """Compare two statements; `slots` are those of the older one."""
    shared, told, number = len(newer.words & older.words), asked & newer.words, max(1, len(asked))
    beginning, matching = _matching(newer.longest, older.longest)
    most = max(1, len(newer.longest), len(older.longest))
    fills, changes = _changes_of(newer, slots) if slots else (False, False)
    return _Features(
        nearness=nearness,
        gain=gain,
        farther=max(0.0, -gain) * nearness,
        named=named,
        slot=fills,
        slot_changes=changes,
        is_unreal=newer.is_unreal,
        shares=shared > 0,
        shared_words=shared / max(1, len(older.words)),
        asked_words=len(told) / number,
        begins_alike=beginning / most,
        loses_asked=matching / most * len((asked & older.words) - told) / number,
        numbers=bool(newer.numbers and older.numbers),
        closes=newer.closes,
        goes_on=newer.goes_on,
        adds=newer.adds,
        of_another=_is_of_another(newer, older),
        retells=bool(older.values) and older.words | older.values <= newer.words | newer.values,
        are_events=newer.is_event and older.is_event,
    )


def _is_of_another(newer: _Told, older: _Told) -> bool:
    """Tell whether the newer one is about a relative or friend whom the older one does not name."""
    return bool(newer.kin) and any(
        all(word not in older.small for word in KIN[one]) for one in newer.kin
    )


def _only_adds(newer: _Told, older: _Told) -> bool:
    """Tell whether the newer one says the older one again and goes on: "..., near the river"."""
    if not older.values or newer.closes or newer.goes_on:
        return False
    return newer.longest[: len(older.longest)] == older.longest


def _matching(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Count the words that begin both, and those that begin or end both."""
    start = sum(takewhile(bool, map(eq, one, other)))
    return start, start + sum(takewhile(bool, map(eq, one[start:][::-1], other[start:][::-1])))


def _slots_of(told: _Told) -> tuple[tuple[str, str, str], ...]:
    """List what of whom the sentences of a statement fill: owner, slot and thing."""
    return tuple((owner, *one) for owner, sentence in told.sentences for one in slots_in(sentence))


def _changes_of(newer: _Told, slots: Sequence[tuple[str, str, str]]) -> tuple[bool, bool]:
    """Tell whether a statement fills one of these slots, and whether it says that it changed."""
    found = [
        slots_in(sentence).get((slot, thing))
        for owner, slot, thing in slots
        for other, sentence in newer.sentences
        if other == owner
    ]
    return any(one is not None for one in found), any(found)


@lru_cache(maxsize=4_096)
def _told(text: str, names: frozenset[str]) -> _Told:
    said = statements(text) or (text,)
    owners = [subject(one, one.lower()) for one in said]
    owners = ["" if one in SELF or one in names else KIN.get(one, (one,))[0] for one in owners]
    stems = frozenset().union(*map(vocabulary, names))
    small = text.lower()
    longest = max(said, key=len).lower()
    return _Told(
        small=small,
        sentences=tuple(zip(owners, map(str.lower, said), strict=True)),
        kin=tuple(one for one in owners if one in KIN),
        words=_matter_of(small) - stems,
        values=values_in(text),
        longest=tuple(_WORDS.findall(NOW.sub(" ", longest))),
        is_unreal=PAST.search(small) is not None or HOPE.search(small) is not None,
        closes=CLOSE.search(small) is not None,
        goes_on=NOW.search(small) is not None,
        adds=_ADDS.search(small) is not None,
        is_event=all(ONCE.search(one.lower()) for one in said),
        numbers=frozenset(_NUMBERS.findall(small)),
    )


def _matter_of(small: str) -> frozenset[str]:
    """Read the words that tell a matter, a relative by one word: "mum" is "mother", too."""
    return frozenset(KIN.get(word, (word,))[0] for word in matter_words(small))


def added(
    weights: NDArray[Any], older: NDArray[Any], newer: NDArray[Any], *, crosswise: bool = False
) -> NDArray[Any]:
    """Compute what vectors add to the logit.

    Args:
        weights: a row for the newer one and one for the older one; then the diagonal of a bilinear
            form's matrix alone, or the two factors of a whole one.
        older, newer: vectors, a row each.
        crosswise: of each older (row) and each newer one (column); else of each pair.
    """
    of_newer, of_older, products = weights[0], weights[1], weights[2:]
    half = len(products) // 2
    moved = older @ products[:half].T @ products[half:] if half else older * products
    found: NDArray[Any] = older @ of_older
    found = found[:, None] + moved @ newer.T if crosswise else found + (moved * newer).sum(axis=1)
    found += newer @ of_newer
    return found


def _weighed(pairs: Sequence[Pair], weights: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = rows(pairs) @ weights[:-1] + weights[-1]
    return found


@cache
def _weights(file: str, name: str) -> NDArray[Any]:
    """Read the weights of `PAIR_FEATURES`, then the offset."""
    made = json.loads(files(__package__).joinpath(f"{file}.json").read_text("utf-8"))[name]
    return np.array([*(made["features"][name] for name in PAIR_FEATURES), made["offset"]])


@cache
def _vector_weights(file: str) -> NDArray[Any]:
    found: NDArray[Any] = np.load(str(files(__package__).joinpath(f"{file}.npy")))
    return found.astype(np.float32)
