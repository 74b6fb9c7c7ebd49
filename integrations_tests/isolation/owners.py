"""Owners with ids made to be confused, the canaries in their texts, and the search for those.

Each owner is a scope with a number, and everything that is stored for him holds his canary: the
number between two marks that no other text has. What a call hands out in a scope is searched for
canaries, as its `repr` shows it: also the text of an error, and the lines that were logged.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from commonplace import Scope

USERS = (
    "1", "10", "1.0", "01", "a", "a.b", "a%", "a_b", "a*", "**", "ab", "A", "Bob", "bob", "BOB",
    "user:1", "user", "user:1:2", "'", '"', "`", "a' OR '1'='1", "{}", "[]", '{"$ne": null}',
    "null", "None", "true", "0", "-1", "\u00e9", "e", "\u00df", "ss", "\ufb01", "fi", "\u00c5",
    "\u0430", "\uff41", "\u7231\u4e3d\u4e1d", "\u7231\u4e3d", "\U0001f600", "\U0001f600" * 2,
    "a/b", "a\\b", "../a", "%00", "$user", "#", "x" * 256, "x" * 255, "a b",
)  # fmt: skip
AGENTS = (None, "a1", "a10", "a%")
SESSIONS = (None, "s", "s1", "a1")
assert len(set(USERS)) >= 50

OWNERS: tuple[Scope, ...] = tuple(
    Scope(user_id=user, agent_id=agent, session_id=session)
    for user in (*USERS, None)
    for agent in AGENTS
    for session in SESSIONS
    if user or agent or session
)
NUMBERS: Mapping[Scope, int] = {scope: number for number, scope in enumerate(OWNERS)}
USER_NUMBERS: Mapping[str, int] = {user: NUMBERS[Scope(user_id=user)] for user in USERS}
_CANARY = re.compile(r"qz(\d{4})qz")
_MAX_EXAMPLES = 20


def canary(scope: Scope) -> str:
    """Make the word that marks what belongs to a scope."""
    return f"qz{NUMBERS[scope]:04}qz"


def owners_in(text: str) -> list[Scope]:
    """List whose canaries a text holds, each as often as it does."""
    return [OWNERS[int(number)] for number in _CANARY.findall(text)]


class Sightings:
    """Counts of what was asked and of what was handed out.

    Attributes:
        operations: by function.
        rows: things with a canary that were handed out, by function.
        errors: by function and kind, where that is counted.
        foreign: how many of them had a canary of somebody else.
        examples: of those, the first 20.
    """

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.foreign: int = 0
        self.examples: list[str] = []

    def check(self, function: str, reader: Scope, answer: object) -> None:
        """Search an answer for canaries of owners whom the reader's scope does not cover."""
        for one in _items(answer):
            text = one if isinstance(one, str) else repr(one)
            if not (found := owners_in(text)):
                continue
            self.rows[function] += 1
            if not all(map(reader.covers, found)):
                self.report(f"{function} as {reader}: {text[:300]}")

    def expect(self, function: str, is_right: bool, fault: object) -> None:
        """Count a fault unless a condition holds."""
        if not is_right:
            self.report(f"{function}: {str(fault)[:300]}")

    def report(self, fault: str) -> None:
        """Count a row that somebody got who must not."""
        self.foreign += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(fault)


def _items(answer: object) -> Iterable[object]:
    """Split an answer into what is counted as a row."""
    if isinstance(answer, str):
        return answer.split("\n")
    return answer if isinstance(answer, list | tuple) else (answer,)


class Lines(logging.Handler):
    """Handler that keeps the canaries of what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line that has a canary."""
        text = self.format(record)
        if _CANARY.search(text):
            self.found.append(text)

    def take(self) -> list[str]:
        """Return the lines since the last time."""
        found, self.found = self.found, []
        return found


@contextmanager
def logged() -> Iterator[Lines]:
    """Collect every line of our own loggers in a block, down to the least important."""
    lines = Lines()
    names = ["commonplace", *(name for name in logging.root.manager.loggerDict if "common" in name)]
    names += [f"commonplace_{one}" for one in ("agentscope", "langgraph", "mem0", "strands")]
    loggers = [logging.getLogger(name) for name in dict.fromkeys(names) if "." not in name]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(lines)
        logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(lines)
            logger.setLevel(level)


_TEXTS = (*USERS[:30], "red", "blue", "*", "%", "' OR 1=1 --", "", "qz0001qz")
_KEYS = ("n", "of", "colour", "deep.er", "kind", "metadata.kind", "role", "under", "name")


def make_filter(random: Random, depth: int = 6) -> dict[str, Any]:
    """Make a filter of the filter language, nested at most so deep."""
    chosen = random.random()
    if chosen < 0.05:
        return {"namespace": [*random.choice(((random.choice(USERS),), ("a", "a%"), ()))]}
    if depth <= 1 or chosen < 0.4:
        return {random.choice(_KEYS): _condition(random)}
    if chosen < 0.5:
        return {one: _condition(random) for one in random.sample(_KEYS, 3)}
    parts = [make_filter(random, depth - 1) for _ in range(random.randint(1, 2))]
    return {random.choice(("AND", "OR", "NOT")): parts}


def _condition(random: Random) -> object:
    value: Any = random.choice((random.choice(_TEXTS), random.randint(-1, 3), 1.0, True))
    operator = random.choice(("", "eq", "ne", "in", "nin", "gte", "lt", "contains", "icontains"))
    if operator in ("gte", "lt") and isinstance(value, bool):
        operator = "ne"
    if operator in ("contains", "icontains"):
        value = str(value) or "a"
    if operator in ("in", "nin"):
        return {operator: [value, random.choice(_TEXTS)]}
    return {operator: value} if operator else value


def shown(counts: Counter[str]) -> str:
    """Write counts as one line of JSON."""
    return json.dumps(dict(sorted(counts.items())))
