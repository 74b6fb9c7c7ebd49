"""What the cases stand on: a memory, whose each record is, who asks next, and checked calls."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, get_args

from commonplace import (
    CommonplaceError,
    DeadLetter,
    Fact,
    Kind,
    Memory,
    Message,
    Policy,
    Record,
    Relation,
    Scope,
    WriteResult,
)
from commonplace.agents import AgentMemory

from .owners import OWNERS, Sightings, canary, owners_in

KINDS: tuple[Kind, ...] = get_args(Kind)
POLICY = Policy(
    recall_timeout=30, tools=("search_memory", "add_memory", "update_memory", "forget_memory")
)


class EchoChat:
    """A chat model that makes a fact of whatever it is shown, and sometimes nothing readable."""

    id = "echo"

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self._number = 0

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer; the prompt of one owner must show no records of another."""
        self._number += 1
        found = owners_in(f"{system} {user}")
        fits = any(all(one.owner.covers(other) for other in found) for one in found)
        self._sightings.expect("prompt", fits or not found, user)
        if self._number % 3 == 0:
            return f"no JSON, but all of {user}"
        text = f"{canary(found[-1])} was noted, number {self._number}" if found else "nothing"
        fact = {
            "text": text, "kind": "fact", "since": None, "same_as": None, "replaces": None,
            "relations": [],
        }  # fmt: skip
        return json.dumps({"facts": [fact]})


class Calls:
    """Calls of one memory that is empty at first.

    Attributes:
        live: owner by id of each record that is stored.
    """

    def __init__(self, memory: Memory, random: Random, sightings: Sightings, folder: Path) -> None:
        self.memory = memory
        self.live: dict[str, Scope] = {}
        self._random = random
        self._sightings = sightings
        self._folder = folder
        self._agent = AgentMemory(memory, POLICY, log="commonplace")
        self._number = 0
        self._ids: list[str] = []  # of every record that ever was
        self._cursors: list[str] = []
        self._letters: Sequence[DeadLetter] = ()
        self._namespaces: dict[tuple[str, ...], set[Scope]] = {}
        self._records: list[Record] = []
        self._runner: asyncio.Runner | None = None
        self.is_awaited = False

    @property
    def done(self) -> int:
        """The number of operations until now."""
        return self._sightings.operations.total()

    # -- helpers -------------------------------------------------------------------------------

    def ask(self, name: str, reader: Scope | None, *args: Any, **given: Any) -> Any:
        """Call a function, perhaps its twin; search what it answers, or its error, if for somebody.

        None when it raised an error of ours.
        """
        return self._ask(self.memory, name, name, reader, *args, **given)

    def ask_agent(self, name: str, reader: Scope, *args: Any, **given: Any) -> Any:
        """Call a function of the agent's memory, as `ask`."""
        return self._ask(self._agent, name, f"agent_{name}", reader, *args, **given)

    def _ask(
        self, of: object, name: str, case: str, reader: Scope | None, *args: Any, **given: Any
    ) -> Any:
        if not hasattr(of, name):
            of = self.memory.admin
        is_awaited = self.is_awaited and hasattr(of, f"a{name}")
        self._sightings.operations[f"a{case}" if is_awaited else case] += 1
        answer: Any
        try:
            if is_awaited:
                answer = self._await(getattr(of, f"a{name}")(*args, **given))
            else:
                answer = getattr(of, name)(*args, **given)
        except CommonplaceError as error:
            if reader is not None:
                self._sightings.check(case, reader, f"{error} {error!r}".replace("\n", " "))
            return None
        if reader is not None:
            self._sightings.check(case, reader, answer)
        return answer

    def _await(self, coroutine: Any) -> Any:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(coroutine)

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner is not None:
            self._runner.close()

    def _pick(self) -> tuple[Scope, str]:
        """Choose who asks, and a record: often of somebody else, sometimes his, or deleted."""
        record_id = self._random.choice(self._ids) if self._ids else "none"
        owner = self.live.get(record_id)
        if owner is None or self._random.random() < 0.7:
            return self._owner(), record_id
        return self._random.choice(owner.covering()), record_id

    def _owner(self) -> Scope:
        return self._random.choice(OWNERS)

    def _path(self) -> tuple[str, ...]:
        word = canary(self._owner())
        return self._random.choice((("a",), ("a%",), ("A",), ("a", word), ("a", word, "x")))

    def _fact(self, scope: Scope) -> Fact:
        self._number += 1
        random, word = self._random, canary(scope)
        town = random.choice(("Rome", "Oslo", f"town of {word}"))
        namespace = random.choice(((), ("a",), ("a", word), ("a", word, "x"), ("a%",), ("A",)))
        metadata: dict[str, Any] = {
            "n": self._number % 3, "of": word, "colour": "red", "deep": {"er": word},
        }  # fmt: skip
        if namespace:
            self._namespaces.setdefault(namespace, set()).add(scope)
        return Fact(
            text=f"{word} drinks tea in {town}, number {self._number}",
            kind=random.choice(KINDS),
            metadata=metadata,
            namespace=namespace,
            key=random.choice((None, f"key {self._number % 5}")),
            relations=(
                Relation(subject=f"me {word}", predicate="lives_in", object=town),
                Relation(subject=f"me {word}", predicate="knows", object="Ann"),
            ),
        )

    def _message(self, scope: Scope) -> Message:
        self._number += 1
        name = f"name {canary(scope)}"
        return Message(text=f"{canary(scope)} said tea, number {self._number}", name=name)

    def _keep(self, written: Sequence[WriteResult] | None, scopes: Sequence[Scope]) -> None:
        """Note what was written, by the owner that the store gives."""
        for result, scope in zip(written or (), scopes, strict=False):
            for change in result.changes:
                if change.event == "DELETE":
                    self.live.pop(change.id, None)
                elif change.text is not None and change.id not in self.live:
                    # An extracted fact belongs to the owner without the session.
                    owner = self.memory.admin.scope_of(change.id)
                    fits = owner in (scope, scope.owner)
                    self._sightings.expect("add", fits, (change, scope, owner))
                    if owner is not None:
                        self.live[change.id] = owner
                        self._ids.append(change.id)

    def _note(self, scope: Scope) -> None:
        """Read what an agent changed, which says nothing of it."""
        self.memory.flush(30)
        wide = scope.owner if scope.user_id is None else Scope(user_id=scope.user_id)
        for one in self._everything(wide):
            self._sightings.check("agent", one.scope, one)
            if one.id not in self.live:
                self._ids.append(one.id)
        self._drop(wide)
        self.live |= {one.id: one.scope for one in self._everything(wide)}

    def _everything(self, scope: Scope) -> Sequence[Record]:
        found: Sequence[Record] = ()
        cursor = None
        while True:
            page = self.memory.list(
                scope, include_superseded=True, include_expired=True, limit=1000, cursor=cursor
            )
            found = (*found, *page.records)
            cursor = page.cursor
            if cursor is None:
                return found

    def check_whole(self) -> None:
        """Check that each owner has all that is his, in his own scope, and nothing else."""
        for scope in OWNERS:
            found = self._everything(scope)
            self._sightings.check("list", scope, found)
            ids = {one.id for one in found}
            wanted = {one for one, owner in self.live.items() if scope.covers(owner)}
            # An open turn is extracted when its owner comes again, which no call tells.
            late = {
                one.id
                for one in found
                if one.id not in wanted
                and one.sources
                and all(self.memory.history(source, scope) for source in one.sources)
            }
            self._sightings.expect("list", ids - late == wanted, (scope, ids ^ wanted))

    def _drop(self, scope: Scope) -> None:
        self.live = {one: owner for one, owner in self.live.items() if not scope.covers(owner)}
