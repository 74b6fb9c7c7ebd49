"""Fifty users with ids made to be confused: nothing that a call hands out is somebody else's."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace import Fact, Memory, MemoryAdmin, Record, Scope
from commonplace.agents import AgentMemory
from commonplace.filters import parse_filter
from commonplace.testing.fakes import HashEmbedder

from .isolation.owners import OWNERS, USERS, canary, make_filter, owners_in
from .isolation.play import OPENING, cases, functions, play

OPERATIONS = 12_500  # of each of four memories; any of the leaks below is seen in 1,200
# Functions of a memory that have no async version.
NOT_AWAITED = {"admin", "embedder", "location", "session"}
DEPTH = 6


def test_every_public_function_has_a_case() -> None:
    of_agents = {f"agent_{name}" for name in functions(AgentMemory)}

    assert functions(Memory) | functions(MemoryAdmin) | of_agents == set(cases())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_no_function_hands_out_what_is_of_another_owner(tmp_path: Path, seed: int) -> None:
    seen = play(tmp_path, OPERATIONS, seed)

    assert seen.foreign == 0, seen.examples
    assert seen.operations.total() >= OPERATIONS
    assert set(cases()) <= set(seen.operations)
    assert {f"a{name}" for name in functions(Memory) - NOT_AWAITED} <= set(seen.operations)
    for name in ("search", "get", "get_many", "list", "history", "relations", "diagram", "update"):
        assert seen.rows[name] > 50, name


@pytest.mark.every_engine("embedded", "neo4j+folder", "neo4j+qdrant")
def test_no_function_hands_out_what_is_of_another_owner_on_any_engine(
    tmp_path: Path, engines: str
) -> None:
    is_alone = engines == "embedded"

    seen = play(tmp_path, 600, is_alone=is_alone)

    assert seen.foreign == 0, seen.examples
    missing = set(cases()) - set(seen.operations)
    assert missing == (set() if is_alone else set(OPENING))
    assert seen.rows["search"] + seen.rows["list"] > 10


def _anybodys(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that reads a record in its own scope, whoever asks."""

    def read(memory: Memory, record_id: str, scope: Scope, **given: Any) -> Any:
        return method(memory, record_id, memory.admin.scope_of(record_id) or scope, **given)

    return read


def _wider(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that takes an agent for all agents of the user."""

    def read(memory: Memory | MemoryAdmin, scope: Scope, *args: Any, **given: Any) -> Any:
        wide = scope if scope.user_id is None else Scope(user_id=scope.user_id)
        return method(memory, wide, *args, **given)

    return read


def _loud(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that logs what it is given."""

    def write(memory: Memory, *args: Any, **given: Any) -> Any:
        logging.getLogger("commonplace.ingest").debug("write %r", args)
        return method(memory, *args, **given)

    return write


@pytest.mark.parametrize(
    ("name", "leak"),
    [("get", _anybodys), ("history", _anybodys), ("delete", _anybodys), ("relations", _wider),
     ("entities", _wider), ("namespaces", _wider), ("list", _wider), ("add", _loud)],
)  # fmt: skip
def test_a_leak_would_be_seen(
    name: str, leak: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    face = Memory if hasattr(Memory, name) else MemoryAdmin
    monkeypatch.setattr(face, name, leak(getattr(face, name)))

    assert play(tmp_path, 1_200).foreign > 0


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory in which every owner has two facts."""
    random = Random(1)
    folder: Path = tmp_path_factory.mktemp("crowded")
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        for scope in OWNERS:
            facts = [
                Fact(
                    text=f"{canary(scope)} drinks tea, number {number}",
                    metadata={
                        "n": random.randint(-1, 3),
                        "of": random.choice(USERS),
                        "colour": random.choice(("red", "blue")),
                        "deep": {"er": random.choice(USERS)},
                        "kind": random.choice(USERS),
                        "under": random.choice((random.choice(USERS), ["a", "a%"])),
                    },
                    namespace=random.choice(((random.choice(USERS),), ("a", "a%"))),
                )
                for number in range(2)
            ]
            memory.add(facts, scope)
        yield memory


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    reader=st.sampled_from(OWNERS), other=st.sampled_from(OWNERS),
    choice=st.randoms(use_true_random=False),
)  # fmt: skip
def test_no_filter_widens_a_scope(
    crowded: Memory, reader: Scope, other: Scope, choice: Random
) -> None:
    where = make_filter(choice, DEPTH)
    wanted = parse_filter(where)
    asked: list[Record] = []
    assert wanted is not None

    mine = crowded.list(reader, limit=1000).records
    listed = crowded.list(reader, where=where, limit=1000).records
    crowded.list(reader, where=where, predicate=lambda one: not asked.append(one))
    found = crowded.search(f"{canary(other)} drinks tea", reader, where=where, top_k=1000)

    assert {one.id for one in listed} == {one.id for one in mine if wanted.matches(one)}
    assert {one.record.id for one in found} <= {one.id for one in listed}
    for one in (*mine, *asked):
        assert reader.covers(one.scope)
        assert all(map(reader.covers, owners_in(one.text)))
