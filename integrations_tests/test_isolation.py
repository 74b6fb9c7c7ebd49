"""Fifty owners with ids made to be confused; no call ever answers with somebody else's row."""

import asyncio
import tempfile
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from commonplace import Fact, Memory, Message, RecordNotFoundError, Relation, Scope
from commonplace.agents import AgentMemory, Policy, ShownRecords
from commonplace.testing.fakes import HashEmbedder

USERS = (
    "1", "10", "1.0", "01", "a", "a.b", "a%", "a_b", "a*", "**", "ab", "A", "Bob", "bob", "BOB",
    "user:1", "user", "user:1:2", "'", '"', "`", "a' OR '1'='1", "{}", "[]", '{"$ne": null}',
    "null", "None", "true", "0", "-1", "\u00e9", "e", "\u00df", "ss", "\ufb01", "fi", "\u00c5",
    "\u0430", "\uff41", "\u7231\u4e3d\u4e1d", "\u7231\u4e3d", "\U0001f600", "\U0001f600" * 2,
    "a/b", "a\\b", "../a", "%00", "$user", "#", "x" * 256, "x" * 255, "a b",
)  # fmt: skip
AGENTS = (None, "a1", "a10", "a%")
SESSIONS = (None, "s", "s1")
assert len(set(USERS)) >= 50


def scopes() -> st.SearchStrategy[Scope]:
    return st.builds(
        lambda user, agent, session: Scope(user_id=user, agent_id=agent, session_id=session),
        st.sampled_from(USERS), st.sampled_from(AGENTS), st.sampled_from(SESSIONS),
    )  # fmt: skip


STEPS = st.tuples(
    st.sampled_from(
        ("add", "message", "search", "filter", "list", "get", "update", "delete", "history",
         "feedback", "past", "around", "prune", "relations", "dead", "tools", "recall", "forget")
    ),
    scopes(),
    st.integers(0, 10_000),
)  # fmt: skip
SEEN: Counter[str] = Counter()  # by one run of games
ON_SERVERS: dict[str, Scope] = {}  # what outlives a game there


class World:
    """One memory and the scope of every record that was ever written to its stores."""

    def __init__(self, memory: Memory, owner: dict[str, Scope]) -> None:
        self.memory = memory
        self.owner = owner
        self.number = len(owner)

    def check(self, scope: Scope, ids: list[str]) -> None:
        """Count what was answered and refuse a foreign row."""
        for one in ids:
            SEEN["rows"] += 1
            assert scope.covers(self.owner[one]), (scope, self.owner[one])

    def canary(self, scope: Scope) -> str:
        """Make a text that nobody else's text equals."""
        self.number += 1
        return f"canary {scope.key} drinks tea, number {self.number}"

    async def step(self, action: str, scope: Scope, number: int) -> None:
        """Do something as this scope, perhaps with a record of somebody else."""
        SEEN[action] += 1
        ids = list(self.owner)
        some_id = ids[number % len(ids)] if ids else "none"
        if action in ("add", "message"):
            await self.write(action, scope, number)
        elif action in ("update", "delete", "feedback"):
            await self.change(action, some_id, scope)
        elif action in ("tools", "recall"):
            await self.agent(action, scope)
        elif action == "forget":
            if number % 20 == 0:
                assert (await self.memory.aforget(scope)).complete
                for one in [k for k, v in self.owner.items() if scope.covers(v)]:
                    del self.owner[one]
        else:
            self.check(scope, await self.read(action, some_id, scope))

    async def write(self, action: str, scope: Scope, number: int) -> None:
        """Write a fact with a relation, or a turn."""
        predicate = "lives_in" if number % 2 else "of"
        edge = Relation(subject="canary", predicate=predicate, object=scope.key)
        text = self.canary(scope)
        fact = Fact(text=text, metadata={"n": number % 3}, relations=(edge,))
        written = await self.memory.aadd(fact if action == "add" else Message(text=text), scope)
        self.owner |= {change.id: scope for change in written.changes}

    async def read(self, action: str, some_id: str, scope: Scope) -> list[str]:
        """Read in some way; answer the ids of the records that came back."""
        memory = self.memory
        if action in ("search", "filter"):
            where = {"OR": [{"n": {"gte": 0}}, {"NOT": [{"n": 1}]}]} if action == "filter" else None
            found = await memory.asearch("canary drinks tea", scope, where=where, top_k=100)
            return [one.record.id for one in found]
        if action == "list":
            return [one.id for one in (await memory.alist(scope)).records]
        if action == "get":
            record = await memory.aget(some_id, scope)
            return [record.id] if record else []
        if action == "history":
            return [version.record_id for version in await memory.ahistory(some_id, scope)]
        if action == "dead":
            return [letter.operation for letter in memory.dead_letters(scope)]
        return await self.look(action, scope)

    async def look(self, action: str, scope: Scope) -> list[str]:
        """Read what was, what would go, and what is related; answer the ids as above."""
        memory = self.memory
        if action == "past":
            then = datetime.now(UTC)
            found = await memory.asearch("canary tea", scope, as_of=then, decay=True, top_k=100)
            page = await memory.alist(scope, include_superseded=True)
            return [one.record.id for one in found] + [one.id for one in page.records]
        if action == "prune":
            return [one.id for one in await memory.aprune(scope, keep=1)]
        if action == "around":
            edges = await memory.arelations(scope, "canary", hops=2, include_superseded=True)
        else:
            edges = memory.relations(scope)
            names = {name for edge in edges for name in (edge.subject, edge.object)}
            assert names <= {entity.name for entity in memory.entities(scope)}
        return [one for edge in edges for one in edge.supports]

    async def agent(self, action: str, scope: Scope) -> None:
        """Use memory as an agent does: its sessions share what the user and agent know."""
        asked = Scope(user_id=scope.user_id, agent_id=scope.agent_id)
        if action == "recall":
            shown = await AgentMemory(self.memory, Policy(recall_timeout=30), log="tests").arecall(
                scope, "canary tea"
            )
            self.check(asked, [one.record.id for one in shown])
            return
        await self.told(scope)
        found = ShownRecords()
        arguments = {"keywords": ["canary", "tea"], "limit": 20}
        await AgentMemory(self.memory, Policy(), log="tests").acall_tool(
            "search_memory", arguments, scope, found
        )
        self.check(asked, found.ids)

    async def told(self, scope: Scope) -> None:
        """Let an agent remember something itself."""
        arguments = {"thinking": "it matters", "content": [self.canary(scope)]}
        said = await AgentMemory(self.memory, Policy(), log="tests").acall_tool(
            "add_memory", arguments, scope
        )
        assert said
        owned = Scope(user_id=scope.user_id, agent_id=scope.agent_id)
        for record in (await self.memory.alist(owned, limit=1000)).records:
            self.owner.setdefault(record.id, record.scope)
            self.check(owned, [record.id])

    async def change(self, action: str, record_id: str, scope: Scope) -> None:
        """Try to change a record; only its owner may."""
        mine = record_id in self.owner and scope.covers(self.owner[record_id])
        alive = mine and await self.memory.aget(record_id, scope) is not None
        try:
            if action == "update":
                await self.memory.aupdate(record_id, self.canary(scope), scope)
            elif action == "feedback":
                await self.memory.afeedback(record_id, scope, helped=True)
            else:
                await self.memory.adelete(record_id, scope)
        except RecordNotFoundError:
            assert not alive
        else:
            assert alive


def play(games: int, owner: dict[str, Scope] | None = None) -> Counter[str]:
    """Play so many games of 200 steps; count the steps, by action, and the rows that were answered.

    `owner` is what outlives a game: nothing, if each game has empty stores.
    """
    SEEN.clear()

    @settings(
        max_examples=games,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(STEPS, min_size=200, max_size=200))
    def game(steps: list[tuple[str, Scope, int]]) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory.open(folder, embedder=HashEmbedder()) as memory,
        ):
            asyncio.run(play_steps(World(memory, {} if owner is None else owner), steps))

    game()
    return SEEN


async def play_steps(world: World, steps: list[tuple[str, Scope, int]]) -> None:
    for step in steps:
        await world.step(*step)


def test_no_public_call_ever_answers_with_a_foreign_row() -> None:
    seen = play(50)

    assert seen.total() - seen["rows"] >= 10_000
    assert seen["rows"] > 1_000


@pytest.mark.every_engine("neo4j+folder", "neo4j+qdrant")
def test_no_call_answers_with_a_row_of_another_owner_on_the_same_server() -> None:
    seen = play(4, ON_SERVERS)

    assert seen.total() - seen["rows"] >= 800
    assert seen["rows"] > 0
