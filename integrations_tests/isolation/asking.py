"""Functions of an adapter, called at random by users who are after what is others'."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from commonplace import Scope

from .owners import USERS, Sightings, canary, logged


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, whom he is after, and what is drawn for one call.

    Attributes:
        number: of the call; no other has it.
    """

    user: str
    other: str
    number: int
    random: Random

    @property
    def word(self) -> str:
        """The asker's canary."""
        return word_of(self.user)

    @property
    def text(self) -> str:
        """A text of the asker that nobody has told yet."""
        return f"{self.word} drinks tea, number {self.number}"

    @property
    def query(self) -> str:
        """A question with the canary of the other."""
        return f"Does {word_of(self.other)} drink tea?"


Case = Callable[[Asker], Any]


def word_of(user: str) -> str:
    """Make the canary of a user without an agent and session."""
    return canary(scope_of(user))


def scope_of(user: str) -> Scope:
    """Make the scope of a user without an agent and session."""
    return Scope(user_id=user)


def ask(cases: Mapping[str, Case], operations: int, seed: int = 1) -> Sightings:
    """Call cases at random, which answer with what the asker was handed out; some are coroutines.

    An error is searched for canaries too, and is no fault by itself.
    """
    random, sightings = Random(seed), Sightings()
    names = sorted(cases)
    with asyncio.Runner() as runner, logged() as lines:
        for number in range(operations):
            user = random.choice(USERS)
            other = user if random.random() < 0.25 else random.choice(USERS)
            asker = Asker(user, other, number, random)
            # Each case a few times before chance decides.
            name = names[number % len(names)] if number < 3 * len(names) else random.choice(names)
            sightings.operations[name] += 1
            answer: Any
            try:
                answer = cases[name](asker)
                if inspect.isawaitable(answer):
                    answer = runner.run(_awaited(answer))
            except Exception as error:  # noqa: BLE001 -- also a framework's own; its text counts
                answer = f"{error} {error!r}".replace("\n", " ")
                sightings.errors[f"{name}: {type(error).__name__}"] += 1
            sightings.check(name, scope_of(asker.user), answer)
            for line in lines.take():
                sightings.report(f"logged by {name}: {line}")
    return sightings


async def _awaited(answer: Any) -> Any:
    return await answer


def check(seen: Sightings, *silent: str) -> None:
    """Assert that nobody saw anything of others, and everybody something of his own.

    Args:
        silent: functions that hand out nothing.
    """
    assert seen.foreign == 0, seen.examples
    missing = {name for name in seen.operations if not seen.rows[name]} - set(silent)
    assert missing == set(), (missing, seen.errors)
