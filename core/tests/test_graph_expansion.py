"""Expansion over relations, by itself: what the query names of a path, and how rare its entity."""

from collections.abc import Collection

import pytest

from commonplace.backends.shared.graph_expansion import Edge, expand
from commonplace.ports.stores import Expansion
from commonplace.retrieval.lexical import entity_mentions

MARRIED = Edge("alice", "married_to", "tom", ("married",))
SISTER = Edge("mina", "sister_of", "alice", ("sister",))
BEES = Edge("mina", "keeps", "bees", ("bees",))
TEA = Edge("mina", "drinks", "tea", ("tea",))


def expanded(question: str, *edges: Edge) -> dict[str, Expansion]:
    """Expand the entities that a question names, with edges between names."""
    names = entity_mentions(question)

    def edges_of(entities: Collection[str]) -> list[Edge]:
        return [one for one in edges if one.subject in entities or one.object in entities]

    ends = {str(end) for one in edges for end in (one.subject, one.object)}
    named = [one for one in sorted(ends) if one in names]
    return {one.id: one for one in expand(named, names, edges_of)}


def test_a_bare_match_of_the_entity_names_no_relation() -> None:
    assert expanded("Does Alice smoke?", MARRIED)["married"].named == (0.0,)


@pytest.mark.parametrize("question", ["To whom is Alice married?", "Did Alice meet Tom?"])
def test_its_type_or_both_of_its_ends_name_a_relation(question: str) -> None:
    assert expanded(question, MARRIED)["married"].named == (1.0,)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What does the sister of Alice keep?", (1.0, 1.0)),
        ("How old is the sister of Alice?", (1.0, 0.0)),
        ("What does Alice keep?", (0.0, 1.0)),
        ("Where is Alice?", (0.0, 0.0)),
    ],
)
def test_each_relation_of_a_path_is_named_by_itself(
    question: str, named: tuple[float, ...]
) -> None:
    found = expanded(question, SISTER, BEES, TEA)

    assert found["bees"].named == named
    assert found["bees"].via == ("sister",)
    assert found["tea"].named == (named[0], 0.0)


def test_a_path_tells_how_many_relations_its_entity_has() -> None:
    others = [Edge("alice", "likes", f"thing {n}", (f"likes {n}",)) for n in range(20)]
    found = expanded("Does Alice smoke?", SISTER, BEES, *others)

    assert {found[one].relations for one in ("sister", "likes 0", "bees")} == {21}


def test_two_names_of_an_entity_name_no_relation_between_them() -> None:
    same = Edge("robert", "also_known_as", "bob", ("same",))

    assert expanded("Do Bob and Robert smoke?", same)["same"].named == (0.0,)
