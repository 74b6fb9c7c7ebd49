"""Relations and time through `Memory`: what is true now, what was, and what leads where."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commonplace import Fact, InvalidRecordError, Memory, Message, Policy, Relation, Scope, Settings
from commonplace.agents import AgentMemory
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
MONDAY = Scope(user_id="alice", session_id="monday")
BOB = Scope(user_id="bob")
pytestmark = pytest.mark.every_engine
FADING = Settings(decay=True, half_life=10.0)


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def home(place: str, since: int | None, who: str = "Alice") -> Fact:
    at = day(since) if since else None
    said = Relation(subject=who, predicate="lives_in", object=place)
    return Fact(text=f"{who} lives in {place}", at=at, relations=(said,))


def open_memory(folder: Path, **given: Any) -> Memory:
    return Memory.open(str(folder), **{"embedder": HashEmbedder(), **given})


def live(memory: Memory, scope: Scope = ALICE, **given: Any) -> list[str]:
    return sorted(one.text for one in memory.list(scope, **given).records)


def found(memory: Memory, text: str, scope: Scope = ALICE, **given: Any) -> list[str]:
    return [one.record.text for one in memory.search(text, scope, **given)]


# -- what is true, and when ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("habit", "old", "new", "values", "question"),
    [
        (
            "用户每周五购买拿铁",
            "用户喜欢喝蓝山咖啡",
            "用户现在只喝低因咖啡",
            ("蓝山咖啡", "低因咖啡"),
            "推荐咖啡",
        ),
        (
            "The user buys a latte every Friday",
            "The user likes Blue Mountain coffee",
            "The user drinks only decaf coffee now",
            ("Blue Mountain", "decaf"),
            "recommend a coffee",
        ),
    ],
    ids=["chinese", "english"],
)
def test_a_preference_that_changed_is_recalled_as_it_is_now(
    tmp_path: Path, habit: str, old: str, new: str, values: tuple[str, str], question: str
) -> None:
    with Memory.open(str(tmp_path)) as memory:
        memory.add(habit, ALICE)
        first, second = (
            Fact(
                text=text,
                kind="preference",
                at=day(number),
                relations=(Relation(subject="user", predicate="prefers_coffee", object=value),),
            )
            for text, value, number in zip((old, new), values, (1, 9), strict=True)
        )
        replaced = memory.add(first, ALICE).changes[0].id
        memory.add(second, ALICE)

        assert set(found(memory, question)) == {habit, new}
        assert found(memory, question, as_of=day(5)) == [old]
        assert old in found(memory, question, include_superseded=True)
        assert old not in live(memory)
        assert [one.text for one in memory.history(replaced, ALICE)] == [old]
        assert memory.get(replaced, ALICE).valid_to == day(9)  # type: ignore[union-attr]


def test_values_that_came_late_find_their_place(memory: Memory) -> None:
    for since in (9, 3, 6, 1):
        memory.add(home(f"place {since}", since), ALICE)

    assert live(memory) == ["Alice lives in place 9"]
    for at, place in ((1, 1), (2, 1), (3, 3), (8, 6), (9, 9), (20, 9)):
        assert live(memory, as_of=day(at)) == [f"Alice lives in place {place}"]
        assert found(memory, "Where?", as_of=day(at)) == [f"Alice lives in place {place}"]
        [relation] = memory.relations(ALICE, "alice", as_of=day(at))
        assert relation.object == f"place {place}"


def test_a_value_told_again_after_another_is_the_latest(memory: Memory) -> None:
    for place in ("Lyon", "Nice", "Lyon", "Lyon"):
        memory.add(home(place, None), ALICE)

    assert live(memory) == ["Alice lives in Lyon"]
    assert len(live(memory, include_superseded=True)) == 3


def test_values_from_one_moment_stay_and_name_each_other(memory: Memory) -> None:
    memory.add([home("Lyon", 1), home("Nice", 1)], ALICE)
    matches = memory.search("Where does Alice live?", ALICE)

    assert {one.record.conflicts for one in matches} == {(one.record.id,) for one in matches}
    assert [one.conflict for one in memory.relations(ALICE)] == [True, True]


def test_what_is_said_in_one_session_ends_what_was_said_in_another(memory: Memory) -> None:
    memory.add(home("Lyon", 1), MONDAY)
    memory.add(home("Nice", 5), Scope(user_id="alice", session_id="tuesday"))
    memory.add(home("Metz", 9), BOB)
    memory.add(home("Rome", 9), Scope(user_id="alice", agent_id="cook"))

    assert live(memory, MONDAY) == []
    assert found(memory, "Where does Alice live?", MONDAY) == []
    assert live(memory) == ["Alice lives in Nice", "Alice lives in Rome"]
    assert memory.forget(Scope(user_id="alice", session_id="tuesday")).complete
    assert found(memory, "Where does Alice live?", MONDAY) == ["Alice lives in Lyon"]


def test_deleting_the_newer_value_brings_the_older_back(memory: Memory) -> None:
    memory.add(home("Lyon", 1), ALICE)
    newer = memory.add(home("Nice", 5), ALICE).changes[0].id
    memory.delete(newer, ALICE)

    assert found(memory, "Where does Alice live?") == ["Alice lives in Lyon"]
    assert [one.object for one in memory.relations(ALICE)] == ["Lyon"]


def test_a_changed_text_says_only_what_it_is_told_to_say(memory: Memory) -> None:
    known = memory.add(home("Lyon", 1), ALICE).changes[0].id
    said = Relation(subject="Alice", predicate="lives_in", object="Nice", valid_from=day(5))
    memory.update(known, "Alice lives in Nice", ALICE, relations=[said])
    moved = [one.object for one in memory.relations(ALICE)]
    memory.update(known, None, ALICE, metadata={"n": 1})
    kept = [one.object for one in memory.relations(ALICE)]
    memory.update(known, "Alice is at sea", ALICE)

    assert moved == kept == ["Nice"]
    assert memory.relations(ALICE) == []
    assert memory.entities(ALICE) == []
    past = memory.relations(ALICE, include_superseded=True)
    assert [(one.object, one.expired_at is not None) for one in past] == [
        ("Lyon", True),
        ("Nice", True),
    ]


def test_what_will_end_is_found_until_then(memory: Memory) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    said = Relation(subject="Alice", predicate="lives_in", object="Lyon", valid_to=ends)
    memory.add(Fact(text="Alice lives in Lyon", relations=(said,)), ALICE)

    assert found(memory, "Alice") == ["Alice lives in Lyon"]
    assert found(memory, "Alice", as_of=ends) == []


def test_erasing_a_user_leaves_no_name(memory: Memory) -> None:
    memory.add([home("Lyon", 1), home("Nice", 5)], ALICE)
    memory.add(home("Lyon", 1), BOB)
    receipt = memory.forget(ALICE)

    assert receipt.complete
    assert (receipt.removed["graph.relations"], receipt.removed["graph.entities"]) == (2, 3)
    assert memory.entities(ALICE) == []
    assert len(memory.entities(BOB)) == 2


# -- where relations lead --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "question", "names"),
    [
        (
            "Mei is Alice's sister",
            "Mei has bought a flat in Lyon",
            "In which city is the home of Alice's sister?",
            ("Mei", "Alice", "Lyon"),
        ),
        (
            "小梅是爱丽丝的姐姐",
            "小梅在里昂买了房子",
            "爱丽丝的姐姐家在哪座城市?",
            ("小梅", "爱丽丝", "里昂"),
        ),
    ],
    ids=["english", "chinese"],
)
def test_two_relations_lead_to_what_the_question_does_not_name(
    tmp_path: Path, first: str, second: str, question: str, names: tuple[str, str, str]
) -> None:
    sister, alice, city = names
    with Memory.open(str(tmp_path)) as memory:
        memory.add(
            [
                Fact(
                    text=first,
                    relations=(Relation(subject=sister, predicate="sister_of", object=alice),),
                ),
                Fact(
                    text=second,
                    relations=(Relation(subject=sister, predicate="lives_in", object=city),),
                ),
                *(f"A home in city {n} costs {n} thousand" for n in range(50)),
            ],
            ALICE,
        )
        memory.add(second, BOB)
        matches = {one.record.text: one for one in memory.search(question, ALICE, top_k=5)}

        assert {first, second} <= matches.keys()
        assert matches[second].score_details["two_relations"] > 0
        [others] = memory.search(question, BOB)
        assert "two_relations" not in others.score_details


def test_one_model_call_extracts_facts_and_relations_with_types(tmp_path: Path) -> None:
    row = {
        "text": "Alice lives in Lyon",
        "kind": "fact",
        "since": "2026-01-01",
        "relations": [
            {
                "subject": "Alice",
                "subject_type": "person",
                "predicate": "lives_in",
                "object": "Lyon",
                "object_type": "place",
            }
        ],
    }
    chat = ScriptedChat([json.dumps({"facts": [row]})])
    with open_memory(tmp_path, chat=chat) as memory:
        memory.add(Message(text="I live in Lyon", name="Alice", id="1"), ALICE)
        memory.search("Lyon", ALICE)
        memory.update(memory.list(ALICE).records[0].id, "changed", ALICE)

        assert [(one.name, one.type) for one in memory.entities(ALICE)] == [
            ("Alice", "person"),
            ("Lyon", "place"),
        ]


async def test_every_reading_has_an_awaitable_twin(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as memory:
        await memory.aadd([home("Lyon", 1), home("Nice", 5)], ALICE)

        assert await memory.arelations(ALICE, hops=2) == memory.relations(ALICE)
        assert await memory.aentities(ALICE) == memory.entities(ALICE)
        assert (
            await memory.adiagram(ALICE)
            == memory.diagram(ALICE)
            == ("Alice lives_in Nice (since 2026-01-05)")
        )
        assert await memory.admin.run(memory.admin.prune, ALICE, keep=1) == memory.admin.prune(
            ALICE, keep=1
        )


def test_a_name_cannot_add_to_a_drawing(memory: Memory) -> None:
    evil = 'x"] --> n9["y\n  click n0 "javascript:alert(1)" <b>'
    said = [
        Relation(subject=evil, predicate='a"| n1', object="Lyon"),
        Relation(subject="Alice", predicate="lives_in", object="Lyon", valid_to=day(2)),
    ]
    memory.add(Fact(text="odd", relations=tuple(said)), ALICE)
    chart = memory.diagram(ALICE, form="mermaid", include_superseded=True)

    assert chart.splitlines()[0] == "flowchart LR"
    assert len(chart.splitlines()) == 6
    assert "n2 -.->|" in chart
    assert all(line.count('"') == 2 for line in chart.splitlines()[1:])
    assert len(memory.diagram(ALICE, include_superseded=True).splitlines()) == 2
    assert memory.diagram(BOB) == ""


@pytest.mark.parametrize(
    "refused",
    [
        lambda m: m.relations(ALICE, hops=0),
        lambda m: m.relations(ALICE, hops=9),
        lambda m: m.relations(ALICE, records="id"),
        lambda m: m.relations(ALICE, records=[""]),
        lambda m: m.relations(ALICE, "Ann", records=["id"]),
        lambda m: m.relations(ALICE, as_of=datetime(2026, 1, 1)),  # noqa: DTZ001 -- that is the point
        lambda m: m.list(ALICE, kinds=["nonsense"]),
        lambda m: m.diagram(ALICE, form="svg"),
        lambda m: m.admin.prune(ALICE),
        lambda m: m.admin.prune(ALICE, keep=-1),
        lambda m: m.admin.prune(ALICE, older_than=7),
        lambda m: Relation(
            subject="a", predicate="b", object="c", valid_from=day(2), valid_to=day(1)
        ),
        lambda m: Fact(text="x", importance=2),
        lambda m: Fact(text="x", situation="only procedures have one"),
        lambda m: Settings(half_life=0),
    ],
)
def test_what_makes_no_sense_is_refused(memory: Memory, refused: Any) -> None:
    with pytest.raises(InvalidRecordError):
        refused(memory)


# -- fading ----------------------------------------------------------------------------------------


def test_what_was_recalled_outlives_what_was_not(tmp_path: Path) -> None:
    old = datetime.now(UTC) - timedelta(days=60)
    texts = [f"Alice met friend {n}" for n in range(4)]
    with open_memory(tmp_path, settings=FADING) as memory:
        for text in texts:
            memory.add(text, ALICE)
        age(memory, old)
        memory.search(texts[3], ALICE, top_k=1)
    with open_memory(tmp_path, settings=FADING) as memory:
        gone = memory.admin.prune(ALICE, keep=1)
        idle = memory.admin.prune(ALICE, unused_for=timedelta(days=1))
        strongest, *others = memory.search("friend", ALICE)

        assert strongest.record.text == texts[3]
        assert all(strongest.score_details["decay"] > one.score_details["decay"] for one in others)
        assert {one.text for one in gone} == {one.text for one in idle} == {*texts} - {texts[3]}
        assert len(live(memory)) == 4
        assert len(memory.admin.prune(ALICE, keep=1, dry_run=False)) == 3
        assert live(memory) == [texts[3]]
        assert found(memory, "friend") == [texts[3]]


def age(memory: Memory, at: datetime) -> None:
    """Make everything as old as an import would."""
    graph: Any = memory._runtime.engines.graph
    micros = int(at.timestamp() * 1_000_000)
    if hasattr(graph, "driver"):  # Neo4j's
        set_all = "MATCH (r:Record) SET r.updated_at = $at"
        graph.driver.write(lambda run: list(run(set_all, at=micros)))
    else:
        graph._handle.write(
            lambda c: c.execute("UPDATE record SET updated_at = ?", (micros,)).rowcount
        )
    memory._runtime.engines.index.amend(graph.page(ALICE, limit=1000).records)


def test_no_recall_is_recorded_where_nothing_fades(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("Alice rows", ALICE)
        [match] = memory.search("Alice", ALICE)
        memory._runtime.access_log.flush()

        assert "decay" not in match.score_details
        assert memory._runtime.engines.graph.access_log(ALICE, [match.record.id]) == {}


def test_a_pinned_record_is_never_pruned(memory: Memory) -> None:
    memory.add([Fact(text="Alice is allergic to nuts", pinned=True), "Alice met Bob"], ALICE)
    unpinned = memory.list(ALICE).records[0].id
    memory.update(unpinned, None, ALICE, pinned=False, importance=0.1)

    assert [one.text for one in memory.admin.prune(ALICE, keep=0)] == ["Alice met Bob"]
    assert memory.search("nuts", ALICE)[0].record.pinned


# -- experience ------------------------------------------------------------------------------------


def test_a_procedure_is_found_by_its_situation_and_keeps_its_votes(memory: Memory) -> None:
    how = Fact(
        text="Call the depot, then send a courier",
        kind="procedure",
        situation="A parcel is late before a holiday",
        outcome="arrived the same day",
    )
    known = memory.add([how, "The depot opens at nine"], ALICE).changes[0].id
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: memory.feedback(known, ALICE, helped=True), range(10)))
    asyncio.run(memory.afeedback(known, ALICE, helped=False))
    [match] = memory.search("late parcel holiday", ALICE, kinds=["procedure"])

    assert (match.record.text, match.record.outcome) == (how.text, how.outcome)
    assert match.record.votes == 9
    assert match.score_details.keys() >= {"lexical", "coverage"}
    assert live(memory, kinds=["procedure"]) == [how.text]


async def test_the_profile_comes_with_every_turn_within_its_budget(memory: Memory) -> None:
    facts = [Fact(text=f"profile {n} {'x' * 380}", kind="profile") for n in range(4)]
    for fact in facts:
        await memory.aadd(fact, ALICE)
    await memory.aadd(Fact(text="profile of bob", kind="profile"), BOB)
    await memory.aadd("Alice rows", ALICE)
    asked = [
        await AgentMemory(memory, Policy(), log="tests").arecall(ALICE, text)
        for text in ("rows", "...")
    ]
    answer = await AgentMemory(memory, Policy(), log="tests").acall_tool(
        "search_memory", {"keywords": ["rows"], "limit": 1}, ALICE
    )

    for found in asked:
        assert [one.record.text[:9] for one in found][:2] == ["profile 3", "profile 2"]
        assert len({one.record.id for one in found}) == len(found)
        assert "bob" not in str(found)
    assert "Alice rows" in [one.record.text for one in asked[0]]
    assert answer.endswith(", today] Alice rows")
