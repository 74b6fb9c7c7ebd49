"""Memories with a history for several users, everything readable in them, and a command runner."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from typer.testing import CliRunner, Result

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.testing.fakes import HashEmbedder

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
SMALL = "fastembed:small"
EMBEDDERS = {"sentence-encoder": 64, SMALL: 32}
GONE = Scope(user_id="gone")


def embedder_of(name: str) -> HashEmbedder:
    """Stand in for the models that a command line can name."""
    return HashEmbedder(EMBEDDERS[name])


def opened(place: Path, embedder: str = "sentence-encoder", **more) -> Memory:
    return Memory.open(str(place), embedder=embedder_of(embedder), **more)


def users(number: int) -> list[Scope]:
    return [Scope(user_id=f"user {n}") for n in range(number)]


def live(memory: Memory, records: int = 60, owners: int = 5) -> None:
    """Give a memory a past: facts, turns, relations, changes, deletions and an erasure."""
    for scope in users(owners):
        facts = [
            Fact(text=f"{scope.user_id} noted thing number {n}", metadata={"n": n})
            for n in range(records // owners)
        ]
        written = memory.add(facts, scope)
        talk = Scope(user_id=scope.user_id, agent_id="helper", session_id="talk")
        memory.add([Message(text=f"turn {n}", id=str(n)) for n in range(3)], talk)
        for day, city in enumerate(("Rome", "Oslo", "Bern")):
            lived = Relation(subject="Ann", predicate="lives_in", object=city)
            likes = Relation(subject="Ann", predicate="likes", object=f"the food of {city}")
            at = MONDAY + timedelta(days=day)
            memory.add(Fact(text=f"Ann lives in {city}", relations=(lived, likes), at=at), scope)
        memory.update(written.changes[0].id, "was changed", scope)
        memory.delete(written.changes[1].id, scope)
        memory.search("where does Ann live", scope, decay=True)
    memory.add("nobody may see this again", GONE)
    memory.forget(GONE)


def reads(memory: Memory, owners: int = 5, *, scores: bool = True) -> list[object]:
    """Read all that a user can; without scores where another engine may round them."""
    seen: list[object] = []
    for user in [*users(owners), GONE]:
        talk = Scope(user_id=user.user_id, agent_id="helper", session_id="talk")
        for scope in (user, talk):
            page = memory.list(scope, limit=1000)
            seen += [page, memory.entities(scope), memory.relations(scope, include_superseded=True)]
            seen += [memory.history(one.id, scope) for one in page.records]
            seen += [memory.relations(scope, as_of=MONDAY), memory.relations(scope, "Ann")]
            for text in ("where does Ann live", "thing number 7", "turn"):
                found = memory.search(text, scope)
                seen.append([(one.record, round(one.score, 4)) for one in found if scores])
    return seen


def command(app, *words: object) -> Result:
    """Run a command in this process."""
    said: Sequence[str] = [str(one) for one in words]
    return CliRunner().invoke(app, said)
