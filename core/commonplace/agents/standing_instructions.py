"""Standing instructions: sentences by which a user says how he wants things from now on.

Found by their form in the user's own turns, in English and Chinese, without a model. A sentence
that tells of somebody ("she always comes late") or asks for one thing now has another form. A
doubtful one is left out: what is found is shown to the model in every later turn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ..retrieval.lexical import tokens, vocabulary
from ..retrieval.utterance_kinds import (
    is_small_talk,
    needs_no_memory,
    normalize,
    own_words,
    sentence_spans,
    sentences,
)
from ..sans_io import Plan, call
from ..types import Fact, Message, Page, Record, Scope
from . import instruction_words as wording
from .policy import Policy

MARK = "standing_instruction"
"""Key of the metadata of the records that are made of them."""
_MAX_MESSAGE = 1_000  # characters: in a longer one the user has pasted what others wrote
_MAX_INSTRUCTION = 300
_MAX_COUNT = 5
_MAX_RECORDS = 50
_RECENT = 4  # turns of a user in which a text that he asked for is at hand
_CACHED = 1_024  # sentences: those that are stored are read in every turn
_CACHED_PAIRS = 8_192  # those of 50 instructions are compared in every turn
_LEAST_SHARED = 0.25  # of the words that an instruction is about
_OF_CASE = 2  # words that name an instruction by its case


def find_instructions(
    text: str, held: Sequence[str] = (), before: Sequence[str] = ()
) -> tuple[str, ...]:
    """Read the standing instructions of a user's text, sentence by sentence; often none.

    Among them is what ends or eases one of those that are held, such as "you can use emojis again".
    Those that a sentence joins, "answer in French and never use emojis", are given one by one.
    Quotations, code and texts of more than 1,000 characters may be somebody else's words, and are
    not read.

    Args:
        held: earlier instructions. A sentence that ends one of them may have any form.
        before: what the user said before in the session, oldest first. Soon after a request for a
            text, "no emojis, please" is a wish for that text, which neither is an instruction nor
            ends one; "more formal, please" always is.
    """
    found = []
    for sentence in _readable(text):
        is_found = (_is_standing(sentence) and not needs_no_memory(sentence)) or any(
            ends(sentence, one) for one in held
        )
        if is_found and not _is_for_one_text(sentence, (*before[-_RECENT:], text)):
            found += _parts(sentence)
    return tuple(dict.fromkeys(found))[:_MAX_COUNT]


def _parts(sentence: str) -> list[str]:
    """Divide "don't use emojis, and keep answers short", each part of which may end by itself."""
    parts = [one.strip() for one in wording.JOINS.split(sentence)]
    if wording.ONE_ONLY.search(sentence):
        return [sentence]
    if len(parts) > 1 and not re.search(wording.FROM_NOW, parts[-1], re.IGNORECASE):
        parts = [one if _is_standing(one) else f"From now on {one}" for one in parts]
    return parts if all(map(_is_standing, parts)) else [sentence]


def _is_for_one_text(sentence: str, said: Sequence[str]) -> bool:
    """Return whether a sentence is a wish for the text at hand, by its form or after a request."""
    if wording.LASTING.search(sentence):
        return False
    spoken = (one for text in said for one in sentences(text[:_MAX_MESSAGE]))
    asked = (one for one in spoken if wording.TEXT.search(one))
    return bool(wording.OF_ONE_TEXT.search(sentence)) or not all(map(wording.LASTING.search, asked))


def may_end_instructions(text: str) -> bool:
    """Return whether a text should be compared with the instructions that are held."""
    return any(map(may_end, _readable(text)))


def _readable(text: str) -> list[str]:
    """Split a text into the sentences that may instruct."""
    if len(text) > _MAX_MESSAGE:
        return []
    own = wording.QUOTED.sub(" \n ", own_words(text))
    said: list[str] = []
    for start, end, _ in sentence_spans(own):
        is_of_last = said and wording.ALWAYS_ALONE.search(_plain(own[start:end]))
        last = [said.pop()] if is_of_last else []
        said.append(" ".join([*last, own[start:end].strip()]))
    return [
        sentence
        for sentence in said
        if len(sentence) <= _MAX_INSTRUCTION
        and (
            not wording.QUESTION.search(_plain(sentence)) or wording.POLITE.search(_plain(sentence))
        )
        and not is_small_talk(sentence)
    ]


def _is_standing(sentence: str) -> bool:
    plain = _plain(sentence)
    forms = (*wording.FORMS, *(wording.FORMS_CHINESE if wording.HAN.search(plain) else ()))
    read = {plain, wording.REASON.sub("", plain)}
    if not re.match(wording.NEED_NOT, plain, re.IGNORECASE):  # "..., Alice is fine"
        read.add(re.split(" ?[,，]", plain)[0])  # what follows may be a reason of any form
    rest = _without_matters(plain)
    is_bare = rest != plain and bool(wording.BARE.search(rest))
    return is_bare or any(form.search(one) for form in forms for one in read)


@lru_cache(maxsize=_CACHED)
def _plain(sentence: str) -> str:
    """Cut what stands around what a sentence says: "oh and ... please (my eyes)"."""
    plain = wording.LEAD.sub("", wording.POLITENESS.sub("", sentence).strip(" ,，"))
    return wording.FROM_NOW_LATIN.sub("from now on ", plain)


def without_replaced(records: Sequence[Record]) -> list[Record]:
    """Leave out standing instructions that a newer one replaces, and what only ends others.

    It says the opposite ("always", then "never" or "stop"), or gives another value to what has one
    at a time: the language and the length of answers, the user's name, and units. One that forbids
    a value replaces what was said about that value alone. One that ends or eases others ("you can
    use emojis again", "back to English") replaces those on its matter in other words.

    Args:
        records: newest first.
    """
    kept: list[Record] = []
    newer: list[_Instruction] = []
    said: set[str] = set()
    for record in records:
        one = _read(record.text)
        is_replaced = not said.isdisjoint(one.meanings) or any(
            _replaces(by, one) or ends(by.text, one.text) for by in newer
        )
        if one.is_shown and not is_replaced:
            kept.append(record)
        said.update(one.meanings)  # of a replaced one too: what it had replaced does not come back
        newer.append(one)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instruction:
    """What an instruction says.

    Attributes:
        text: of it.
        meanings: that an older one with the same is replaced by.
        matters: see `_matters`.
        rest: words of what it is about, beside its matters.
        is_shown: it says what to do, and not only that another one is over.
        is_negative: it forbids, or says that something is not needed.
        has_condition: it holds in some case.
    """

    text: str
    meanings: tuple[str, ...]
    matters: Mapping[str, str]
    rest: frozenset[str]
    is_shown: bool
    is_negative: bool
    has_condition: bool


@lru_cache(maxsize=_CACHED)
def _read(text: str) -> _Instruction:
    plain = wording.OF_ANY.sub("", text)
    gives = any(
        not _is_negative(one) and _matters(one).keys() & wording.EXCLUSIVE
        for one in wording.CLAUSES.split(text)
    )
    return _Instruction(
        text=text,
        meanings=tuple(_meanings(plain)),
        matters=_matters(text),
        rest=_about(_without_matters(wording.REASON.sub("", _plain(plain)))) - wording.PLAIN,
        is_shown=gives or _is_standing(text),
        is_negative=_is_negative(text),
        has_condition=bool(wording.CONDITION.search(plain)),
    )


def _replaces(newer: _Instruction, older: _Instruction) -> bool:
    """Return whether an instruction says the contrary of an older one, or gives another value."""
    of, by = older.matters, newer.matters
    if newer.has_condition or older.has_condition or not older.rest <= newer.rest:
        return False
    if newer.is_negative != older.is_negative:
        return bool(of) and of.items() <= by.items()
    if newer.is_negative or newer.rest != older.rest or wording.ADDS.search(newer.text):
        return False
    names = of.keys() & wording.EXCLUSIVE
    is_other = any(name != "units" or of[name] != by.get(name) for name in names)
    return newer.is_shown and names <= by.keys() and is_other


@lru_cache(maxsize=_CACHED)
def _matters(text: str) -> Mapping[str, str]:
    """Read what an instruction is about, with the value that it gives to it or takes from it."""
    found = {name: "" for name, form in wording.ON_OFF.items() if form.search(text)}
    for name, form in wording.VALUED.items():
        if value := form.search(text):
            small = value[0].lower()
            known = (one for one, forms in wording.MEANS.items() if forms.match(small))
            found[name] = next(known, small)
    return found


def _without_matters(text: str) -> str:
    for form in (*wording.VALUED.values(), *wording.ON_OFF.values()):
        text = form.sub(" ", text)
    return text


def _is_negative(text: str) -> bool:
    return bool(wording.NEGATIVE.search(wording.LIFTED.sub("", text)))


def _meanings(text: str) -> list[str]:
    """Name what an instruction is about, and what it gives a value, unless it forbids one."""
    force = wording.FORCE_CHINESE if wording.HAN.search(text) else wording.FORCE
    if wording.CASE.search(text):
        plain = force.sub("", text)
        # In order: "when I write in German, answer in English" is not "when in English, in German".
        return [
            " ".join(token for token in tokens(plain) if not wording.POLARITY.search(token)) or text
        ]
    for clause in (text, *reversed(wording.CLAUSES.split(text))):
        found = wording.CALLED.search(force.sub("", clause))
        if found and found.lastindex:
            name = f"name: {normalize(found[found.lastindex])}"
            return [name] if wording.NEGATIVE.search(clause) else [name, "name"]
    return [" ".join(sorted(_words(text))) or text]


def _words(text: str) -> frozenset[str]:
    """Read the words of an instruction, beside those that say only whether it holds."""
    force = wording.FORCE_CHINESE if wording.HAN.search(text) else wording.FORCE
    said = vocabulary(force.sub("", text))
    return frozenset(one for one in said if not wording.POLARITY.search(one))


# -- endings ------------------------------------------------------------------------------------


@lru_cache(maxsize=_CACHED)
def may_end(sentence: str) -> bool:
    """Return whether a sentence says that something is over, allowed or otherwise now."""
    return not wording.TASK.search(sentence) and any(
        map(_clause_cues, wording.CLAUSES.split(sentence))
    )


@lru_cache(maxsize=_CACHED_PAIRS)
def ends(newer: str, older: str) -> bool:
    """Return whether a sentence ends or eases an older instruction that it names."""
    older = wording.OF_ANY.sub("", older)
    is_of_text = wording.KIND_OF_TEXT.search(older) and not wording.KIND_OF_TEXT.search(newer)
    if is_of_text or not may_end(newer):
        return False
    if (name := wording.NAME.search(older)) and (other := wording.OTHER_NAME.match(newer)):
        return bool(other[1]) or name[1][:3].lower() == other[2][:3].lower()
    asked, forbidden = _sides(older)
    has_case = wording.CASE_CLAUSE.search(older) or wording.CONDITION.search(newer)
    for clause in wording.CLAUSES.split(newer):
        cues = _clause_cues(clause)
        if not cues or _has_more(clause, older, cues):
            continue
        named = newer if wording.IT.search(clause) else clause
        if (
            (not has_case and _gives_another_value(clause, asked, cues))
            or ("ended" in cues and _is_named(older, older, named))
            or ("over" in cues and _is_named(older, asked, named))
            or (_allows(clause, cues) and _is_named(older, forbidden, named))
        ):
            return True
    return False


def _allows(clause: str, cues: frozenset[str]) -> bool:
    is_wanted = "over" not in cues and not wording.FORBIDS.search(clause)
    return not cues.isdisjoint({"allowed", "asked"}) or ("other" in cues and is_wanted)


@lru_cache(maxsize=_CACHED)
def _sides(instruction: str) -> tuple[str, str]:
    """Divide an instruction into what it asks for and what it forbids, without its case."""
    main = wording.CASE_CLAUSE.sub("", instruction).strip(" ,，")
    if wording.ONLY.search(instruction):
        return main, main
    clauses = wording.CLAUSES.split(wording.REASON.sub("", main))
    forbids = [bool(wording.FORBIDS.search(wording.LIFTED.sub("", one))) for one in clauses]
    asked = [one for one, is_no in zip(clauses, forbids, strict=True) if not is_no]
    forbidden = clauses[forbids.index(True) :] if any(forbids) else []
    return ",".join(asked), ",".join(forbidden)  # "never use a table, a list" forbids both


def _has_more(clause: str, older: str, cues: frozenset[str]) -> bool:
    """Return whether a clause tells of something else than an instruction."""
    if wording.OWN.search(clause) and not (
        cues & {"over", "ended"} and clause.lower().startswith("the ")
    ):
        return True
    rest = _without_matters(wording.ENDED_CHINESE.sub(" ", wording.ENDED.sub(" ", clause)))
    if wording.HAN.search(clause):
        told = set("".join(wording.HAN.findall(older)))
        plain = wording.PLAIN_CHINESE.sub("", rest)
        return any(one not in told for one in plain if one.isalnum())
    known = vocabulary(older) | wording.PLAIN
    words = re.findall(r"[^\W_]+(?:'\w+)?", rest.lower().replace("’", "'"))
    more = {one for one in words if not vocabulary(one) <= known}
    return len(more) > bool(wording.YOU.search(clause))


def _is_named(older: str, part: str, newer: str) -> bool:
    """Return whether a sentence has words of what a part of an older instruction is about."""
    if not part:
        return False
    said = _about(newer) | _about(wording.EXPLAIN.sub("explanation", newer))
    if any(
        word in normalize(newer) for word in map(normalize, wording.QUOTED_WORDS.findall(older))
    ):
        return True
    if wording.CASE_CLAUSE.search(older) and len(_about(older) & said) >= _OF_CASE:
        return True
    if _matters(part).items() & _matters(newer).items():
        return True
    about = _about(part)
    return len(about & said) >= max(1, _LEAST_SHARED * len(about))


def _gives_another_value(newer: str, given: str, cues: frozenset[str]) -> bool:
    """Return whether a clause gives another value to a matter of an older instruction."""
    of, by = _matters(given), _matters(newer)
    if cues == {"over"} or "without" in newer:
        return False
    return any(name in of and of[name] != value for name, value in by.items())


@lru_cache(maxsize=_CACHED)
def _clause_cues(clause: str) -> frozenset[str]:
    """Read what a clause says of what it names: "ended", "over", "allowed", "asked" or "other"."""
    if not clause or wording.OF_OTHERS.search(clause):
        return frozenset()
    place = 1 if wording.HAN.search(clause) else 0
    return frozenset(name for name, *forms in wording.CUES if forms[place].search(clause))


@lru_cache(maxsize=_CACHED)
def _about(sentence: str) -> frozenset[str]:
    """Read the words that a sentence is about; of Chinese, each two characters side by side."""
    if not wording.HAN.search(sentence):
        return vocabulary(sentence) - wording.GENERAL
    plain = wording.GENERAL_CHINESE.sub(" ", sentence)
    runs = wording.HAN.findall(plain)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return frozenset(pairs | {one for one in vocabulary(plain) if one.isascii()})


# -- records ------------------------------------------------------------------------------------


def instruction_facts(
    messages: Sequence[Message], held: Sequence[str] = (), before: Sequence[str] = ()
) -> list[Fact]:
    """Make a preference of each standing instruction in the turns that users said.

    Args:
        held, before: see `find_instructions`.
    """
    said = [one for one in messages if one.role == "user"]
    texts = [*before, *(one.text for one in said)]
    return [
        Fact(text=instruction, kind="preference", at=message.at, metadata={MARK: True})
        for place, message in enumerate(said, len(before))
        for instruction in find_instructions(message.text, held, texts[:place])
    ]


def recent_words(scope: Scope) -> Plan[list[str]]:
    """Read what the user said last in a session, oldest first."""
    page: Page = yield call("list", scope, kinds=("episode",), limit=2 * _RECENT)
    return [one.text for one in reversed(page.records) if one.role == "user"]


def list_instructions(where: Scope, policy: Policy) -> Plan[list[Record]]:
    """List the 50 newest standing instructions, those told last first, also what ended some."""
    marked = {MARK: True} if policy.where is None else {"AND": [{MARK: True}, policy.where]}
    page: Page = yield call("list", where, kinds=("preference",), where=marked, limit=_MAX_RECORDS)
    return sorted(page.records, key=told_at, reverse=True)


def told_at(record: Record) -> datetime:
    """Return when a record was last told."""
    return max(record.occurred_at, record.last_told_at or record.occurred_at)
