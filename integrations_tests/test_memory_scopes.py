"""Searches over several scopes at once, by cosine alone, and namespaces."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace import Fact, InvalidFilterError, InvalidRecordError, Memory, Revise, Scope
from commonplace.testing.fakes import HashEmbedder

ALICE, BOB, CAROL = (Scope(user_id=name) for name in ("alice", "bob", "carol"))
TEXTS = ["green tea", "green tea and milk", "rowing boats", "bees in the green garden"]


@pytest.fixture
def filled(memory: Memory) -> Memory:
    for scope, texts in ((ALICE, TEXTS[:2]), (BOB, TEXTS[2:]), (CAROL, ["green tea is hers"])):
        memory.add(texts, scope)
    return memory


def cosines(question: str) -> dict[str, float]:
    embed = HashEmbedder().embed
    asked = embed([question], purpose="query")
    vectors = np.array([*asked, *embed(TEXTS, purpose="document")])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(TEXTS, (vectors[1:] @ vectors[0]).tolist(), strict=True))


@pytest.mark.parametrize("ranking", ["calibrated", "similarity"])
def test_several_scopes_are_ranked_together_and_no_other_is_seen(
    filled: Memory, ranking: str
) -> None:
    found = filled.search("green tea", [ALICE, BOB], ranking=ranking)  # type: ignore[arg-type]
    scores = [one.score for one in found]

    assert sorted(one.record.text for one in found) == sorted(TEXTS)
    assert scores == sorted(scores, reverse=True)
    assert found[0].record.text == "green tea"
    best = filled.search("green tea", [ALICE, BOB], top_k=1, ranking=ranking)  # type: ignore[arg-type]
    assert [one.record.id for one in best] == [found[0].record.id]


async def test_similarity_orders_and_scores_by_the_cosine_alone(filled: Memory) -> None:
    expected = sorted(cosines("green boats").items(), key=lambda one: -one[1])
    found = await filled.asearch("green boats", (ALICE, BOB), ranking="similarity")

    assert [one.record.text for one in found] == [text for text, _ in expected]
    for one, (_, cosine) in zip(found, expected, strict=True):
        assert math.isclose(one.score, cosine, abs_tol=1e-3)
        assert dict(one.score_details) == {"dense": pytest.approx(one.score, abs=1e-6)}


def test_similarity_leaves_out_no_repeats(memory: Memory) -> None:
    memory.add([Fact(text="green tea", key=f"k{n}") for n in range(5)], ALICE)

    assert len(memory.search("green tea", ALICE, ranking="similarity")) == 5


def test_similarity_leaves_out_what_is_below_the_threshold(filled: Memory) -> None:
    every = filled.search("green tea", [ALICE, BOB], ranking="similarity")
    [best, *others] = [one.record.id for one in every]
    found = filled.search("green tea", [ALICE, BOB], ranking="similarity", threshold=every[0].score)

    assert len(others) > 0
    assert [one.record.id for one in found] == [best]


@pytest.mark.parametrize("scope", [[], "alice", ["alice"], [ALICE, None], None])
def test_what_is_no_scope_is_refused(filled: Memory, scope: object) -> None:
    with pytest.raises(InvalidRecordError, match="scope"):
        filled.search("green tea", scope)  # type: ignore[arg-type]
    with pytest.raises(InvalidRecordError, match="ranking"):
        filled.search("green tea", ALICE, ranking="cosine")  # type: ignore[arg-type]


async def test_namespaces_and_their_users_are_listed_for_operators(memory: Memory) -> None:
    for n, user in enumerate(("alice", "bob", None)):
        scope = Scope(user_id=user) if user else Scope(agent_id="bot")
        memory.add(Fact(text=f"note {n}", namespace=("all", f"of {n}")), scope)
    memory.add("in no namespace", CAROL)

    owners = [ALICE, BOB, Scope(agent_id="bot")]
    expected = {("all", f"of {n}"): [owner] for n, owner in enumerate(owners)}
    assert memory.admin.list_namespaces() == expected
    assert await memory.admin.run(memory.admin.list_namespaces) == expected
    after = ("all", "of 0")
    assert [
        *await memory.admin.run(memory.admin.list_namespaces, ["all"], after=after, limit=1)
    ] == [("all", "of 1")]
    assert memory.admin.list_namespaces(["of 1"]) == {}
    assert (
        memory.admin.namespaces(BOB)
        == await memory.admin.run(memory.admin.namespaces, BOB)
        == [("all", "of 1")]
    )
    assert (
        sorted(memory.admin.list_users())
        == sorted(memory.admin.list_users(["all"]))
        == ["alice", "bob"]
    )
    assert await memory.admin.run(memory.admin.list_users, ("all", "of 1")) == ["bob"]
    memory.forget(BOB)
    assert memory.admin.list_users(["all"]) == ["alice"]


async def test_a_record_keeps_its_namespace_until_it_is_given_another(memory: Memory) -> None:
    fact = Fact(text="Alice rows", namespace=["sports", "water"], metadata={"under": "mine"})  # type: ignore[arg-type]  # a list will do
    [record_id] = memory.add(fact, ALICE).ids
    memory.add("Alice rows", ALICE)
    memory.update(record_id, "Alice rows and sails", ALICE)
    [record] = memory.list(ALICE, where={"namespace": ["sports"], "under": "mine"})
    [match] = memory.search("rows", ALICE, where={"namespace": ["sports", "water"]})

    assert record == match.record
    assert record.namespace == ("sports", "water")
    assert not memory.list(ALICE, where={"namespace": ["water"]})
    memory.batch([Revise(record=record, namespace=["boats"])])
    assert memory.admin.namespaces(ALICE) == [("boats",)]
    memory.batch([Revise(record=record, namespace=())])
    assert memory.admin.namespaces(ALICE) == []
    [moved] = memory.list(ALICE)
    assert (moved.text, moved.metadata) == ("Alice rows and sails", {"under": "mine"})


@pytest.mark.parametrize(
    "namespace", ["sports", None, 3, ["a", ""], ["a", 1], ["a\x00"], ["\ud800"], ["a"] * 257, {"a"}]
)
def test_what_is_no_namespace_is_refused(memory: Memory, namespace: Any) -> None:
    with pytest.raises(InvalidRecordError, match=r"namespace=.*label"):
        Fact(text="t", namespace=namespace)
    with pytest.raises(InvalidFilterError, match=r"list of labels.*metadata\.namespace"):
        memory.list(ALICE, where={"namespace": namespace})
    with pytest.raises(InvalidRecordError, match=r"namespace=.*label"):
        memory.admin.list_users(namespace)


def test_the_embedder_is_asked_once_for_several_scopes(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    with Memory.open(str(tmp_path), embedder=embedder) as memory:
        memory.add("green tea", ALICE)
        memory.search("warm", ALICE)
        before = len(embedder.calls)
        memory.search("green", [ALICE, BOB, CAROL])

        assert len(embedder.calls) == before + 1
