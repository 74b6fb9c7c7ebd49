"""Memories with questions whose answers are known, and the sentences that they are made of.

`benchmarks/ranking/` has the sentences: a file for each language and half. `develop_en.toml` is for
choosing weights, `apart_en.toml` only for judging them. A `Plan` says what a memory is told, and
when; the same plan can be told with something more or less, so that the difference can be measured.
"""

import random
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, cast

import evidence
from evidence import Session

from commonplace import Fact, Message, Relation, Scope

Form = Literal["facts", "turns", "mixed"]
Half = Literal["develop", "apart"]
Expected = Literal["answer", "foreign", "same subject", "nothing"]

FOLDER = Path(__file__).parent / "ranking"
LANGUAGES = ("en", "zh", "de", "ja", "es", "ar")
# Written together by people who speak both.
MIXED = (("zh", "en"), ("ja", "en"), ("ar", "en"), ("de", "zh"), ("es", "ja"))
_FIRST = datetime(2025, 3, 1, tzinfo=UTC)
_DAYS = 550
# What an assistant says that has nothing to say.
_REPLIES: Mapping[str, Sequence[str]] = {
    "en": ("Got it.", "Sounds good!", "Thanks for telling me.", "Oh, I see.", "Noted!", "Sure."),
    "zh": ("好的。", "明白了。", "听起来不错！", "谢谢你告诉我。", "嗯，知道了。", "原来如此。"),
    "de": ("Alles klar.", "Klingt gut!", "Danke für die Info.", "Ach so.", "Verstanden."),
    "ja": ("わかりました。", "なるほど。", "いいですね！", "承知しました。", "そうなんですね。"),
    "es": ("Entendido.", "¡Qué bien!", "Gracias por contármelo.", "Ah, ya veo.", "De acuerdo."),
    "ar": ("حسنًا.", "فهمت.", "يبدو ذلك جيدًا!", "شكرًا لإخباري.", "تمام."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and what answers it.

    Attributes:
        kind: in the tables; those of one memory may be of several.
        gold: ids of the records that answer it; empty for one that nothing answers.
        things: of each set one record is enough; empty unless it asks for several things.
        asked_at: what "yesterday" is told from.
        expects: "foreign" if the memory has nothing about it, "same subject" if it has other things
            about the same person, "nothing" of what goes on with a task or needs no memory.
    """

    kind: str
    text: str
    scope: Scope
    gold: frozenset[str]
    things: tuple[frozenset[str], ...] = ()
    asked_at: datetime
    expects: Expected = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One memory, of a user of its own, and the questions that it is asked.

    Attributes:
        pair: the same for memories that are told the same but for one thing.
    """

    kind: str
    language: str
    form: Form
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    pair: str = ""


class Topic(TypedDict):
    """Something about the user."""

    fact: str
    turn: str
    ask: list[str]
    relation: list[str]
    type: str


class PersonFact(TypedDict):
    """Something about a person."""

    text: str
    ask: list[str]
    relation: list[str]
    type: str


class Person(TypedDict):
    """Somebody whom the user knows, and how else people call them."""

    name: str
    also: list[str]
    fact: list[PersonFact]


class Step(TypedDict):
    """What held and what holds now, in order of time."""

    steps: list[str]
    facts: list[str]
    now: list[str]
    before: list[str]
    first: list[str]


class Things(TypedDict):
    """Several things of a kind, and what is near to them."""

    items: list[str]
    near: list[str]
    ask: list[str]


class Event(TypedDict):
    """What happened on one day."""

    text: str
    fact: str


class Exact(TypedDict, total=False):
    """An exact value, or what is not so, and what is near to it; `reverse` names the value."""

    fact: str
    turn: str
    ask: list[str]
    reverse: list[str]
    near: list[str]


class Pasted(TypedDict):
    """A long text with one thing that is asked for."""

    text: str
    ask: list[str]


class Typo(TypedDict):
    """Questions with a typing error; `topic` is a place in the list of topics."""

    topic: int
    ask: list[str]


class Dates(TypedDict):
    """How a language asks for the entries of a day or of a range of days."""

    day: list[str]
    formats: list[str]
    months: list[str]
    relative: list[list[Any]]


class Dialogue(TypedDict):
    """A conversation in which the assistant asks.

    Attributes:
        turns: each behind its role and a colon. ask: questions, each with the place of its answer.
    """

    turns: Sequence[str]
    ask: Sequence[tuple[str, int]]


class Sentences(TypedDict):
    """A file of sentences."""

    language: str
    topic: Sequence[Topic]
    person: Sequence[Person]
    change: Sequence[Step]
    list: Sequence[Things]
    event: Sequence[Event]
    code: Sequence[Exact]
    negation: Sequence[Exact]
    pasted: Sequence[Pasted]
    typo: Sequence[Typo]
    dialogue: Sequence[Dialogue]
    chatter: Sequence[str]
    unknown: Sequence[str]
    foreign: Sequence[str]
    replies: Sequence[str]
    dates: Dates


_LISTS = (
    *("topic", "person", "change", "list", "event", "code", "negation", "pasted", "typo"),
    *("dialogue", "chatter", "unknown", "foreign", "replies"),
)


def sentences(half: Half, language: str, folder: Path = FOLDER) -> Sentences | None:
    """Read the sentences of a language; None if it has none. What a file leaves out is empty."""
    path = folder / f"{half}_{language}.toml"
    if not path.exists():
        return None
    read: dict[str, Any] = {name: [] for name in _LISTS}
    read |= {"dates": {}, "replies": _REPLIES[language]} | tomllib.loads(path.read_text("utf-8"))
    return cast(Sentences, read)


def mixed(one: Sentences, other: Sentences) -> Sentences:
    """Put the sentences of two languages together, but for dates and typing errors."""
    joined: dict[str, Any] = {name: [*one[name], *other[name]] for name in _LISTS}  # type: ignore[literal-required]
    return cast(Sentences, joined | {"language": "mixed", "typo": [], "dates": {}})


class Told(NamedTuple):
    """Something to tell as a fact or as a turn, and the questions that ask for it."""

    label: str
    fact: str
    turn: str
    asks: Sequence[str]
    relation: Sequence[str] = ()


def topics(read: Sentences) -> list[Told]:
    """List what there is to tell about the user."""
    return [
        Told(f"topic {i}", one["fact"], one["turn"], one["ask"], one["relation"])
        for i, one in enumerate(read["topic"])
    ]


def about(person: Person, place: int) -> list[Told]:
    """List what there is to tell about a person, who has a place in the list of people."""
    return [
        Told(f"person {place} {i}", one["text"], one["text"], one["ask"], one["relation"])
        for i, one in enumerate(person["fact"])
    ]


class Line(NamedTuple):
    """A turn; its label names the record if a question asks for it."""

    text: str
    label: str = ""
    role: Literal["user", "assistant"] = "user"


Block = tuple[Line, ...]
"""Turns that stay together, such as a question and its answer."""


class Stated(NamedTuple):
    """A fact, and when it was stated."""

    label: str
    text: str
    at: datetime
    relation: Sequence[str] = ()


class Talk(NamedTuple):
    """A conversation, and when it began."""

    at: datetime
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a memory is told, and when it is asked."""

    asked_at: datetime
    facts: tuple[Stated, ...] = ()
    talks: tuple[Talk, ...] = ()

    @property
    def form(self) -> Form:
        """What it is told as."""
        return "mixed" if self.facts and self.talks else "turns" if self.talks else "facts"

    def with_facts(self, more: Iterable[Stated]) -> "Plan":
        """Tell more facts, in the order of their times."""
        return replace(self, facts=tuple(sorted((*self.facts, *more), key=lambda one: one.at)))

    def with_talk(self, at: datetime, blocks: Iterable[Block]) -> "Plan":
        """Hold one more conversation."""
        talks = (*self.talks, Talk(at, tuple(blocks)))
        return replace(self, talks=tuple(sorted(talks, key=lambda one: one.at)))

    def with_block(self, place: int, block: Block, draw: random.Random) -> "Plan":
        """Say something somewhere in a conversation."""
        at, blocks = self.talks[place]
        split = draw.randint(0, len(blocks))
        talk = Talk(at, (*blocks[:split], block, *blocks[split:]))
        return replace(self, talks=(*self.talks[:place], talk, *self.talks[place + 1 :]))

    def store(self, user: str) -> "Store":
        """Tell it to the memory of a user."""
        store = Store(user, self)
        owner = Scope(user_id=user)
        if self.facts:
            store.session(owner, [(one.label, _fact(one)) for one in self.facts])
        for number, (at, blocks) in enumerate(self.talks):
            scope = Scope(user_id=user, session_id=f"talk {number}")
            lines = [line for block in blocks for line in block]
            store.session(
                scope,
                [
                    (line.label, _message(line, str(place), at + timedelta(minutes=place)))
                    for place, line in enumerate(lines)
                ],
            )
        return store


def _fact(one: Stated) -> Fact:
    relations = []
    if one.relation:
        subject, predicate, thing = one.relation
        # Two memories of a pair must not differ in what a relation ends.
        relations = [
            Relation(subject=subject, predicate=predicate, object=thing, single_valued=False)
        ]
    return Fact(text=one.text, key=one.label, at=one.at, relations=relations)


def _message(line: Line, name: str, at: datetime) -> Message:
    return Message(text=line.text, role=line.role, id=name, at=at)


@dataclass(slots=True)
class Store:
    """The memory of a user, while its questions are gathered."""

    user: str
    plan: Plan
    sessions: list[Session] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def session(self, scope: Scope, contents: Sequence[tuple[str, Message | Fact]]) -> None:
        """Tell something, each with its label."""
        self.ids |= {label: evidence.record_id(scope, one) for label, one in contents if label}
        self.sessions.append(Session(scope=scope, contents=[one for _, one in contents]))

    def ask(
        self, kind: str, text: str, *labels: str, things: bool = False, either: bool = False
    ) -> None:
        """Ask for what has these labels: for all of it, each thing of a list, or any one of it."""
        gold = frozenset(self.ids[label] for label in labels)
        parts = [gold] if either else [frozenset([one]) for one in sorted(gold)]
        self.questions.append(
            Question(
                kind=kind,
                text=text,
                scope=Scope(user_id=self.user),
                gold=gold,
                things=tuple(parts) if things or either else (),
                asked_at=self.plan.asked_at,
            )
        )

    def ask_in_vain(self, kind: str, text: str, expects: Expected = "foreign") -> None:
        """Ask for what nothing answers."""
        self.ask(kind, text)
        self.questions[-1] = replace(self.questions[-1], expects=expects)

    def case(self, kind: str, language: str, pair: str = "") -> Case:
        """Finish it."""
        return Case(
            kind=kind,
            language=language,
            form=self.plan.form,
            sessions=tuple(self.sessions),
            questions=tuple(self.questions),
            pair=pair,
        )


def moment(draw: random.Random) -> datetime:
    """Draw when a memory is asked."""
    return _FIRST + timedelta(days=draw.randrange(_DAYS), minutes=draw.randint(9 * 60, 21 * 60))


def earlier(draw: random.Random, at: datetime, least: int = 1, most: int = 120) -> datetime:
    """Draw a time of day some days earlier."""
    day = at.replace(hour=0, minute=0) - timedelta(days=draw.randint(least, most))
    return day + timedelta(minutes=draw.randint(8 * 60, 20 * 60))
