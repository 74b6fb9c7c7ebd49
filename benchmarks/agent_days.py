"""Made-up days of an agent: sessions of users who chat, tell facts, and ask for them much later.

The templates are in `agent_days_en.toml` and `agent_days_zh.toml`. What the assistant answers
never holds a fact, so that only the turn that told it can serve a later question.
"""

import json
import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

Kind = Literal["tell", "again", "change", "ask", "freely", "greeting", "thanks", "command", "chat"]
Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
NEEDS_NO_MEMORY = ("greeting", "thanks", "command")

SESSIONS = 12
ASKINGS = 9
FREELY = 2  # askings in words that are all different, beside the nine
LEAST, MOST = 4, 8  # turns of a session; more when the facts need them
ASKED, CHANGED, REPEATED, ONCE = 2, 2, 2, 3  # facts of a user
_CHANGED_IN, _ASKED_AFTER_CHANGE = 6, (8, 10, 12)
_STARTS = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user says, and what the scripted assistant answers.

    Attributes:
        kind: `ask` shares words with what was told, `freely` asks without any of them.
        topic, value: of the fact that is told or asked for; empty for other turns.
        former: the value before a change, of a changed fact; else empty.
        number: which asking of its fact, from 1; 0 for other turns.
    """

    kind: Kind
    text: str
    answer: str
    topic: str = ""
    value: str = ""
    former: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation, in the order of its turns."""

    at: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The sessions of one user, oldest first.

    Attributes:
        values: topic to the values that it has in the course of time.
        canonical: (topic, value) to the sentences by which a model may write the fact down.
        repeated: the topics that are told in six sessions.
        relations: topic to the predicate and the type of its object.
    """

    name: str
    language: Language
    sessions: tuple[Session, ...]
    values: Mapping[str, tuple[str, ...]]
    canonical: Mapping[tuple[str, str], tuple[str, ...]]
    repeated: tuple[str, ...]
    relations: Mapping[str, tuple[str, str]]


def lives(language: Language, users: int, seed: int) -> list[Life]:
    """Make up the lives of several users; the same arguments make the same lives."""
    path = Path(__file__).with_name(f"agent_days_{language}.toml")
    templates = tomllib.loads(path.read_text(encoding="utf-8"))
    names = random.Random(f"{seed} {language}").sample(templates["names"], users)
    return [_Author(templates, f"{seed} {language} {name}").life(name, language) for name in names]


class _Author:
    """Writes one user's life; every choice depends on the seed alone."""

    def __init__(self, templates: dict[str, Any], seed: str) -> None:
        self._templates = templates
        self._chance = random.Random(seed)
        self._plan: list[list[Turn]] = [[] for _ in range(SESSIONS)]
        self._bags: dict[str, list[Any]] = {}

    def life(self, name: str, language: Language) -> Life:
        topics = self._templates["topics"]
        order = self._chance.sample(sorted(topics), ASKED + CHANGED + REPEATED + ONCE)
        values = {topic: tuple(self._chance.sample(topics[topic]["values"], 2)) for topic in order}
        asked, rest = order[:ASKED], order[ASKED:]
        changed, rest = rest[:CHANGED], rest[CHANGED:]
        repeated, once = rest[:REPEATED], rest[REPEATED:]
        for topic in asked:
            self._plan_asked(topic, values[topic][0])
        for topic in changed:
            self._plan_changed(topic, values[topic])
        for topic in repeated:
            self._plan_repeated(topic, values[topic][0])
        for topic in once:
            self._tell(self._chance.randrange(SESSIONS), topic, values[topic][0])
        sessions = tuple(
            Session(
                at=_STARTS + timedelta(days=5 * place, hours=self._chance.randrange(10)),
                turns=tuple(self._fill(turns)),
            )
            for place, turns in enumerate(self._plan)
        )
        return Life(
            name=name,
            language=language,
            sessions=sessions,
            values={one: values[one] if one in changed else values[one][:1] for one in order},
            canonical={
                (topic, value): tuple(
                    form.format(name=name, value=value) for form in topics[topic]["canonical"]
                )
                for topic in order
                for value in values[topic]
            },
            repeated=tuple(repeated),
            relations={one: (topics[one]["predicate"], topics[one]["type"]) for one in order},
        )

    def _plan_asked(self, topic: str, value: str) -> None:
        told = self._chance.randrange(SESSIONS - ASKINGS)
        self._tell(told, topic, value)
        later = sorted(self._chance.sample(range(told + 1, SESSIONS), ASKINGS))
        for number, place in enumerate(later, 1):
            self._ask("ask", place, topic, value, number=number)
        for place in self._chance.sample(later, FREELY):
            self._ask("freely", place, topic, value)

    def _plan_changed(self, topic: str, values: Sequence[str]) -> None:
        former, value = values
        self._tell(self._chance.randrange(2), topic, former)
        turn = self._statement("change", topic, value, former)
        self._plan[_CHANGED_IN - 1].append(turn)
        for place in _ASKED_AFTER_CHANGE:
            self._ask("ask", place - 1, topic, value, former=former)

    def _plan_repeated(self, topic: str, value: str) -> None:
        first, *later = sorted(self._chance.sample(range(SESSIONS), 6))
        self._tell(first, topic, value)
        for place in later:
            self._plan[place].append(self._statement("again", topic, value))

    def _tell(self, place: int, topic: str, value: str) -> None:
        self._plan[place].append(self._statement("tell", topic, value))

    def _statement(self, kind: Kind, topic: str, value: str, former: str = "") -> Turn:
        forms = self._templates["topics"][topic][kind]
        text = self._draw(f"{topic} {kind}", forms).format(value=value)
        answer = self._chance.choice(self._templates["noted"])
        return Turn(kind=kind, text=text, answer=answer, topic=topic, value=value, former=former)

    def _ask(
        self, kind: Kind, place: int, topic: str, value: str, *, number: int = 0, former: str = ""
    ) -> None:
        turn = Turn(
            kind=kind,
            text=self._draw(f"{topic} {kind}", self._templates["topics"][topic][kind]),
            answer=self._chance.choice(self._templates["thinking"]),
            topic=topic,
            value=value,
            former=former,
            number=number,
        )
        self._plan[place].append(turn)

    def _fill(self, turns: list[Turn]) -> list[Turn]:
        """Put a greeting, thanks, a command and chatter around what is told and asked."""
        body = list(turns)
        length = self._chance.randint(LEAST, MOST)
        opening = (
            [self._polite("greeting", "greetings", "hellos")] if self._chance.random() < 0.6 else []
        )
        closing = (
            [self._polite("thanks", "thanks", "welcomes")] if self._chance.random() < 0.6 else []
        )
        if self._chance.random() < 0.5:
            form, answer = self._draw("command", self._templates["commands"])
            phrase = self._draw("phrase", self._templates["phrases"])
            body.append(Turn(kind="command", text=form.format(phrase=phrase), answer=answer))
        while len(opening) + len(body) + len(closing) < length:
            text, answer = self._draw("chat", self._templates["chatter"])
            body.append(Turn(kind="chat", text=text, answer=answer))
        self._chance.shuffle(body)
        return [*opening, *body, *closing]

    def _polite(self, kind: Kind, name: str, answers: str) -> Turn:
        text = self._draw(name, self._templates[name])
        return Turn(kind=kind, text=text, answer=self._chance.choice(self._templates[answers]))

    def _draw(self, bag: str, choices: Sequence[Any]) -> Any:
        """Choose one, none twice before all of them were chosen."""
        if not self._bags.get(bag):
            self._bags[bag] = self._chance.sample(list(choices), len(choices))
        return self._bags[bag].pop()


class Extractor:
    """Chat model that extracts one user's facts as a real one might: in other words each time.

    It names a known fact, `[3] Nadia lives in Ghent. (2026-05-01)` under `Known:`, where the prompt
    lists one that is the same or the former value.
    """

    id = "scripted"

    def __init__(self, life: Life) -> None:
        self._life = life
        self._statements = {
            turn.text: (turn, number)
            for number, session in enumerate(life.sessions)
            for turn in session.turns
            if turn.kind in ("tell", "again", "change")
        }
        self.longest_prompt = 0

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with the facts that the conversation in the prompt tells."""
        del schema
        self.longest_prompt = max(self.longest_prompt, len(system) + len(user))
        known = _known(user) or _known(system)
        said = user.rpartition("Conversation:")[2]
        facts = [
            self._fact(turn, number, known)
            for text, (turn, number) in self._statements.items()
            if text in said
        ]
        return json.dumps({"facts": facts}, ensure_ascii=False)

    def _fact(self, turn: Turn, number: int, known: Mapping[int, str]) -> dict[str, Any]:
        forms = self._life.canonical[turn.topic, turn.value]
        predicate, kind = self._life.relations[turn.topic]
        relation = {
            "subject": self._life.name,
            "subject_type": "person",
            "predicate": predicate,
            "object": turn.value,
            "object_type": kind,
        }
        fact: dict[str, Any] = {
            "text": forms[number % len(forms)],
            "kind": "fact",
            "since": None,
            "relations": [relation],
        }
        if known:
            fact["same_as"] = self._among(known, turn.topic, turn.value)
            is_same = fact["same_as"] is not None
            former = None if is_same else self._among(known, turn.topic, turn.former)
            fact["replaces"] = former
        return fact

    def _among(self, known: Mapping[int, str], topic: str, value: str) -> int | None:
        forms = self._life.canonical.get((topic, value), ())
        found = (number for number, text in known.items() if any(form in text for form in forms))
        return next(found, None)


def _known(prompt: str) -> dict[int, str]:
    """Read the numbered lines that follow the line `Known:` of a prompt; empty without it."""
    found: dict[int, str] = {}
    is_listed = False
    for line in prompt.splitlines():
        if re.match(r"known\b.*:\s*$", line, re.IGNORECASE):
            is_listed = True
            continue
        numbered = re.match(r"\s*\[(\d+)\] (.+)", line)
        if is_listed and numbered:
            found[int(numbered[1])] = numbered[2]
        elif is_listed and found:
            is_listed = False
    return found
