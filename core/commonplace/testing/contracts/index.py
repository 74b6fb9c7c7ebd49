"""Contract of every vector index: inherit `VectorIndexContract` and provide `index`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ...errors import InvalidVectorError, MemoryClosedError
from ...filters import parse_filter
from ...ports.engines import VectorIndex
from ...ports.stores import Point, Query, Terms
from ...types import Record, Scope, TokenEmbedding, turn_key
from . import at_once

__all__ = [
    "DIMENSIONS",
    "NOW",
    "TOKEN_DIMENSIONS",
    "VectorIndexContract",
    "make_passages",
    "make_point",
    "make_query",
    "make_tokens",
]

DIMENSIONS = 8
TOKEN_DIMENSIONS = 4
NOW = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
ANNA = Scope(user_id="anna")
BEN = Scope(user_id="ben")
HELD: tuple[Any, ...] = (
    "a", "A", "abc", "", "straße", 0, 1, 1.0, 2.5, -3, 0.1 + 0.2, 2**53 - 1, 2**53, 2**53 + 1,
    2**60 + 1, 2.0**60, -(2**63), 2**63 - 1, True, False, None,
    ["a", "b"], [1, "a"], [], [["a"]], {"k": "a"},
)  # fmt: skip
ASKED: tuple[Any, ...] = (
    "a", "b", "STRASSE", 0, 1, 1.0, 2.5, -3, 0.3, 0.1 + 0.2, 2**53 - 1, 2**53,
    2**53 + 1, 2**60, 2**60 + 1, -(2**63), 2**63 - 1, math.inf, -math.inf, True, False,
)  # fmt: skip


def make_vector(*weights: float) -> list[float]:
    """Make a vector of unit length that begins with these weights; (1,) when none is given."""
    raw = [*(weights or (1.0,)), *[0.0] * DIMENSIONS][:DIMENSIONS]
    size = math.sqrt(sum(one * one for one in raw))
    return [one / size for one in raw]


def make_point(
    text: str,
    scope: Scope = ANNA,
    *weights: float,
    terms: Mapping[int, float] | None = None,
    tokens: bytes = b"",
    following: tuple[TokenEmbedding, ...] = (),
    **fields: Any,
) -> Point:
    """Make a point whose id follows from text and scope; `terms` maps index to weight."""
    known: dict[str, Any] = dict.fromkeys(("created_at", "updated_at", "occurred_at"), NOW)
    known |= {"id": scope.record_id("fact", text), "text": text, "scope": scope, "version": 1}
    record = Record(**{**known, **fields})
    held = dict(sorted((terms or {}).items()))
    return Point(
        record=record,
        vector=make_vector(*weights),
        terms=Terms(indices=tuple(held), weights=tuple(held.values())),
        words=len(text.split()),
        tokens=tokens,
        following=following,
    )


def make_query(
    scope: Scope = ANNA, *weights: float, terms: tuple[int, ...] = (), **more: Any
) -> Query:
    """Make a query; each of `terms` occurs once in it."""
    asked = Terms(indices=tuple(sorted(terms)), weights=(1.0,) * len(terms))
    known: dict[str, Any] = {"scope": scope, "vector": make_vector(*weights), "at": NOW}
    return Query(**{**known, "terms": asked, **more})


def make_tokens(*vectors: tuple[float, ...]) -> bytes:
    """Make token vectors that begin with these numbers, whose squares sum to 1."""
    padded = [[*vector, *[0.0] * TOKEN_DIMENSIONS][:TOKEN_DIMENSIONS] for vector in vectors]
    return bytes(round(127 * part) % 256 for one in padded for part in one)


def make_passages(*vectors: tuple[float, ...]) -> tuple[TokenEmbedding, ...]:
    """Make the passages of a point after the first; their vectors begin with these weights."""
    return tuple(TokenEmbedding(vector=make_vector(*vector)) for vector in vectors)


def query_of(tokens: bytes) -> Query:
    """Make a query with tokens."""
    return make_query(tokens=tokens)


def texts(index: VectorIndex, query: Query, limit: int = 100) -> list[str]:
    """Read the texts that a search finds, best first."""
    return [hit.record.text for hit in index.search(query, limit)]


class VectorIndexContract:
    """Inherit it as `TestMyIndex` and define a fixture `index`: empty, of `DIMENSIONS`.

    And a fixture `token_index`: the same with `TOKEN_DIMENSIONS`, of which `meta["tokens"]` tells;
    one that skips where an engine keeps no tokens.
    """

    def test_a_record_comes_back_exactly_as_written(self, index: VectorIndex) -> None:
        zone = timezone(timedelta(hours=5, minutes=45))
        point = make_point(
            "喝咖啡 ☕ line\nbreak", Scope(user_id="ü", agent_id="a b", session_id="日"),
            kind="episode", role="user", name="Ünal", origin="document", trust=0.3, position=7,
            metadata={"user": 1, "text": [1, 2.5, {"a": None}], "a-b": 0.1 + 0.2, "version": "x"},
            occurred_at=NOW.astimezone(zone), valid_to=NOW, expires_at=NOW + timedelta(days=1),
            sources=("a turn",),
            version=2**53 - 1,
        )  # fmt: skip

        index.upsert([point])
        (hit,) = index.search(make_query(point.record.scope, include_superseded=True), 5)

        assert point.record == hit.record
        assert timedelta(0) == hit.record.occurred_at.utcoffset()  # the same moment, in UTC
        assert point.words == hit.words

    def test_records_of_some_mebibytes_come_back_as_written(self, index: VectorIndex) -> None:
        value = 'a "line" of 日本\n' * (5 * 2**16)
        points = [make_point(f"p{n}", metadata={"file": f"{n}{value}"}) for n in range(3)]
        points += [make_point(f"small {n}") for n in range(3)]

        index.upsert(points)
        index.amend([replace(point.record, version=2) for point in points])
        found = {hit.record.id: hit.record for hit in index.search(make_query(), 10)}

        assert {point.record.id: replace(point.record, version=2) for point in points} == found

    def test_a_namespace_is_one_of_its_scope_and_time(self, index: VectorIndex) -> None:
        soon = NOW + timedelta(hours=1)
        points = [
            make_point("both", ANNA, namespace=("a", "b")),
            make_point("upper", ANNA, namespace=("a",)),
            make_point("ending", ANNA, namespace=("a",), expires_at=soon),
            make_point("other", ANNA, namespace=("aa",)),
            make_point("quoted", ANNA, namespace=('a", "b',)),
            make_point("none", ANNA, metadata={"namespace": ["a"], "under": "a"}),
            make_point("ben's", BEN, namespace=("a",)),
        ]
        index.upsert(points)

        def found(*labels: str, **more: Any) -> set[str]:
            where = parse_filter({"namespace": labels, **more.pop("where", {})})
            return {*texts(index, make_query(where=where, terms=(1,), **more))}

        assert found("a") == {"both", "upper", "ending"}
        assert found("a", "b") == {"both"}
        assert found("a", include_superseded=True) == {"both", "upper", "ending"}
        assert found("a", at=soon) == {"both", "upper"}
        assert found("a", where={"kind": "episode"}) == set()
        assert found("a", where={"AND": [{"namespace": ["a", "b"]}]}) == {"both"}
        assert found("b") == found("a", "b", "c") == set()
        assert texts(index, make_query(where=parse_filter({"metadata.namespace": "a"}))) == ["none"]
        assert found() == {"both", "upper", "ending", "other", "quoted"}
        either = {"OR": [{"namespace": ["a", "b"]}, {"namespace": ["aa"]}]}
        assert found(where=either) == {"both", "other"}
        nowhere = parse_filter({"NOT": [{"namespace": []}]})
        assert texts(index, make_query(where=nowhere)) == ["none"]

    def test_a_record_that_is_given_an_end_is_found_until_then(self, index: VectorIndex) -> None:
        soon = NOW + timedelta(hours=1)
        point = make_point("ending", ANNA, namespace=("a",))
        index.upsert([point])
        index.amend([replace(point.record, expires_at=soon, version=2)])

        for where in (None, parse_filter({"namespace": ["a"]})):
            assert texts(index, make_query(where=where)) == ["ending"]
            assert texts(index, make_query(where=where, at=soon)) == []

    def test_a_predicate_decides_on_every_candidate(self, index: VectorIndex) -> None:
        index.upsert([make_point(f"{n}", ANNA, 1, n / 100, metadata={"n": n}) for n in range(70)])
        where = parse_filter({"n": {"gte": 10}}, lambda record: record.metadata["n"] % 20 == 0)

        found = texts(index, make_query(where=where, terms=(1,)), 2)

        assert found == ["20", "40"]

    def test_an_empty_index_finds_nothing(self, index: VectorIndex) -> None:
        assert index.search(make_query(terms=(1,)), 5) == []
        assert index.score(make_query(), [turn_key(ANNA, 0)]) == []
        assert index.count(ANNA) == index.erase(ANNA) == 0
        assert list(index.versions(ANNA)) == []

    def test_nothing_asked_is_nothing_done(self, index: VectorIndex) -> None:
        index.upsert([])
        index.delete(ANNA, [])
        index.upsert([make_point("x")])

        assert index.search(make_query(), 0) == []
        assert index.score(make_query(), []) == []

    def test_a_greater_version_replaces_the_record(self, index: VectorIndex) -> None:
        old = make_point("tea", terms={1: 1.0}, metadata={"a": 1})
        new = replace(old, record=replace(old.record, text="milk", version=2, metadata={}))

        index.upsert([old])
        index.upsert([replace(new, terms=Terms(), vector=make_vector(0, 1))])
        (hit,) = index.search(make_query(terms=(1,)), 5)

        assert (hit.record.text, hit.record.metadata, hit.lexical) == ("milk", {}, 0.0)
        assert hit.dense == pytest.approx(0.0, abs=1e-6)
        assert index.count(ANNA) == 1

    @pytest.mark.parametrize("version", [4, 5])
    def test_an_older_or_equal_version_is_ignored(self, index: VectorIndex, version: int) -> None:
        held = make_point("tea", version=5)

        index.upsert([held])
        index.upsert([replace(held, record=replace(held.record, text="no", version=version))])

        assert texts(index, make_query()) == ["tea"]

    def test_the_greatest_version_in_one_call_wins(self, index: VectorIndex) -> None:
        one = make_point("tea")
        made = [replace(one.record, text=str(version), version=version) for version in (2, 9, 4)]

        index.upsert([replace(one, record=record) for record in made])

        assert texts(index, make_query()) == ["9"]

    def test_a_scope_sees_what_it_covers_and_nothing_else(self, index: VectorIndex) -> None:
        ids = ["a", "ab", "A", "a ", "á", "\uff41", "%", "a*", "None", "日本"]
        names = [id_ for id_ in ids if id_ == id_.strip()]
        owners = [
            Scope(user_id=user, agent_id=agent, session_id=session)
            for user in [None, *names]
            for agent in [None, "a", "ab"]
            for session in [None, "a"]
            if user or agent or session
        ]
        index.upsert([make_point(f"of {n}", owner) for n, owner in enumerate(owners)])

        for asked in owners:
            seen = {n for n, owner in enumerate(owners) if asked.covers(owner)}
            assert {f"of {n}" for n in seen} == set(texts(index, make_query(asked)))
            assert len(seen) == index.count(asked) == len(list(index.versions(asked)))

    def test_every_hit_has_both_scores(self, index: VectorIndex) -> None:
        near = make_point("near", ANNA, 1.0)
        worded = make_point("worded", ANNA, 0.6, 0.8, terms={3: 2.0, 7: 1.0})
        other = [make_point(f"other {n}", ANNA, 0.0, 1.0, terms={9: 1.0}) for n in range(3)]
        index.upsert([near, worded, *other])

        found = index.search(make_query(terms=(3, 7)), 1)

        rarity = math.log(1 + (5 - 1 + 0.5) / (1 + 0.5))
        assert [hit.record.text for hit in found] == ["near", "worded"]
        assert pytest.approx([hit.dense for hit in found], abs=1e-6) == [1.0, 0.6]
        assert [0.0, 3.0 * rarity] == pytest.approx([hit.lexical for hit in found], rel=1e-4)

    def test_every_hit_has_its_weight_of_each_term(self, index: VectorIndex) -> None:
        points = [
            make_point("both", ANNA, 1.0, terms={3: 2.25, 5: 9.0, 7: 1.5}),
            make_point("one", ANNA, 1.0, 0.5, terms={2**32 - 1: 0.1}),
            make_point("other", ANNA, 1.0, 1.0, terms={9: 1.0}),
            make_point("none", ANNA, 1.0, 2.0),
        ]
        index.upsert([*points, make_point("his", BEN, terms={3: 1.0})])
        asked = make_query(terms=(2**32 - 1, 1, 7, 3))  # in the order of numbers
        wanted = {"both": (0, 2.25, 1.5, 0), "one": (0, 0, 0, 0.1)}
        wanted |= dict.fromkeys(("other", "none"), (0, 0, 0, 0))

        for found in (
            index.search(asked, 9),
            index.score(asked, [], [p.record.id for p in points]),
        ):
            assert len(found) == len(points)
            for hit in found:
                assert hit.terms == pytest.approx(wanted[hit.record.text], rel=1e-6)
        for found in (
            index.search(make_query(), 9),
            index.score(make_query(), [], [points[0].record.id]),
        ):
            assert {hit.terms for hit in found} == {()}

    def test_the_weights_of_terms_are_those_of_the_newest_version(self, index: VectorIndex) -> None:
        points = [make_point(f"p{n}", terms={1: 1.0, 2: 2.0}) for n in range(40)]
        index.upsert(points)
        index.search(make_query(terms=(1, 2)), 50)
        changed = [
            replace(
                point,
                record=replace(point.record, version=2),
                terms=Terms(indices=(2, 3), weights=(0.5, n + 1.0)),
            )
            for n, point in enumerate(points)
        ]
        index.upsert(changed[:30])
        index.amend([replace(point.record, trust=0.5, version=3) for point in points[:20]])
        index.delete(ANNA, [point.record.id for point in points[35:]])

        found = index.search(make_query(terms=(1, 2, 3), at=NOW + timedelta(1)), 50)

        terms = {hit.record.id: hit.terms for hit in found}
        wanted = {point.record.id: (0, 0.5, n + 1) for n, point in enumerate(points[:30])}
        wanted |= {point.record.id: (1, 2, 0) for point in points[30:35]}
        assert terms == wanted

    def test_rarity_is_counted_inside_the_scope(self, index: VectorIndex) -> None:
        mine = [make_point(f"mine {n}", terms={1: 1.0} if n == 0 else {2: 1.0}) for n in range(6)]
        index.upsert([*mine, *[make_point(f"his {n}", BEN, terms={1: 1.0}) for n in range(40)]])

        scores = [hit.lexical for hit in index.search(make_query(terms=(1,)), 10)]

        assert max(scores) == pytest.approx(math.log(1 + 5.5 / 1.5), rel=1e-4)
        assert sorted(scores)[:5] == [0.0] * 5

    def test_unknown_terms_and_no_terms_score_zero(self, index: VectorIndex) -> None:
        index.upsert([make_point("x", terms={1: 1.0}), make_point("no terms")])

        for terms in ((), (2**32 - 1,)):
            assert [hit.lexical for hit in index.search(make_query(terms=terms), 5)] == [0.0, 0.0]

    def test_the_best_comes_first_and_ties_go_by_id(self, index: VectorIndex) -> None:
        even = [make_point(f"even {n}", ANNA, 0.0, 1.0) for n in range(20)]
        index.upsert([*even, make_point("best", ANNA, 1.0, 1.0)])

        found = [hit.record.id for hit in index.search(make_query(ANNA, 0.1, 1.0), 50)]

        best = make_point("best").record.id
        assert sorted(point.record.id for point in even) == [one for one in found if one != best]
        dense = [hit.dense for hit in index.search(make_query(ANNA, 0.9, 0.2), 50)]
        assert dense == sorted(dense, reverse=True)

    def test_every_operator_matches_as_the_filter_does(self, index: VectorIndex) -> None:
        points = [make_point(f"p{n}", metadata={"f": one}) for n, one in enumerate(HELD)]
        points.append(make_point("bare", kind="profile", origin="tool", name="Al", role="tool"))
        index.upsert(points)
        asked: list[dict[str, Any]] = [{"f": {op: [v, "b"]}} for v in ASKED for op in ("in", "nin")]
        asked += [{"f": {op: v}} for v in ASKED for op in ("eq", "ne")]
        asked += [
            {"f": {op: v}}
            for v in ASKED
            for op in ("gt", "gte", "lt", "lte")
            if not isinstance(v, bool)
        ]
        asked += [
            {"f": {op: v}} for v in ASKED for op in ("contains", "icontains") if isinstance(v, str)
        ]
        fields: list[dict[str, Any]] = [
            {"kind": "profile"}, {"origin": ["tool", "user"]}, {"name": {"icontains": "aL"}},
            {"role": {"ne": "user"}}, {"created_at": {"gte": NOW}}, {"created_at": {"gt": NOW}},
            {"created_at": NOW}, {"updated_at": {"lt": NOW + timedelta(microseconds=1)}},
            {"occurred_at": {"lte": NOW - timedelta(microseconds=1)}}, {"absent": "x"},
        ]  # fmt: skip
        combined = [{key: [one, {"f": "a"}]} for one in asked + fields for key in ("OR", "NOT")]
        combined += [{"AND": [one, {"NOT": [{"f": 1}]}]} for one in asked + fields]

        for given in asked + fields + combined:
            where = parse_filter(given)
            wanted = {p.record.text for p in points if where and where.matches(p.record)}
            assert wanted == set(texts(index, make_query(where=where))), given

    def test_any_key_of_metadata_comes_back_and_is_filtered_by(self, index: VectorIndex) -> None:
        keys = [
            "a b", "$set", "_id", "0", "a.b", "a=s1:x", 'q"]', "\n", "日", "k" * 300, "scopes",
            *("kind", "created_at", "user_id", "metadata.kind", "AND", "row", "numbers"),
        ]  # fmt: skip
        points = [make_point(f"p{n}", metadata={key: n}) for n, key in enumerate(keys)]
        nested = {"deep": {"a": 2**60 + 1, "b": {"c": "x", "d.e": 1}}, "deep.a.x": 1}
        points += [make_point("nested", metadata=nested), make_point("bare")]
        index.upsert(points)
        asked: list[dict[str, Any]] = [
            {f"metadata.{key}": given}
            for key in [*keys, "deep.a", "deep.b.c", "deep.b.d.e", "deep.a.x"]
            for given in (3, "x", 2**60, 2**60 + 1, {"gte": 2}, {"ne": 3}, {"contains": "x"})
        ]
        asked += [{"NOT": [one]} for one in asked]

        for given in asked:
            where = parse_filter(given)
            wanted = {p.record.text for p in points if where and where.matches(p.record)}
            assert wanted == set(texts(index, make_query(where=where))), given
        for point in points:
            (hit,) = index.score(make_query(), [], [point.record.id])
            assert point.record == hit.record

    def test_a_filter_is_no_way_out_of_the_scope(self, index: VectorIndex) -> None:
        index.upsert([make_point("his", BEN, metadata={"f": 1, "scopes": ANNA.key})])

        for given in ({"OR": [{"f": 1}, {"f": {"ne": 1}}]}, {"NOT": [{"f": 2}]}):
            assert texts(index, make_query(where=parse_filter(given))) == []

    def test_a_filtered_search_still_fills_its_limit(self, index: VectorIndex) -> None:
        many = [make_point(f"no {n}", ANNA, 1.0, 0.01, terms={1: 1.0}) for n in range(60)]
        few = [make_point(f"yes {n}", ANNA, 0.1, 1.0, terms={1: 0.1}) for n in range(5)]
        index.upsert([*many, *few])
        given = [{"name": {"contains": "x"}}, {"NOT": [{"name": {"icontains": "q"}}]}]
        index.upsert([replace(p, record=replace(p.record, name="qx", version=2)) for p in many])
        index.upsert([replace(p, record=replace(p.record, name="x", version=2)) for p in few])

        found = texts(index, make_query(where=parse_filter({"AND": given}), terms=(1,)), 5)

        assert [f"yes {n}" for n in range(5)] == sorted(found)

    @pytest.mark.parametrize("given", [{"n": {"gt": 300}}, {"name": {"icontains": "YES"}}])
    def test_a_filter_chooses_among_equal_scores(
        self, index: VectorIndex, given: dict[str, Any]
    ) -> None:
        points = [make_point(f"p{n}", terms={1: 1.0}, metadata={"n": n}) for n in range(700)]
        yes = [replace(point, record=replace(point.record, name="yes")) for point in points[301:]]
        index.upsert([*points[:301], *yes])
        where = parse_filter(given)

        for limit in (3, 10, 50):
            hits = index.search(make_query(ANNA, 1.0, terms=(1,), where=where), limit)
            found = {hit.record.metadata["n"] for hit in hits}
            assert limit <= len(found) == len(hits)
            assert found <= {*range(301, 700)}

    def test_an_expired_record_is_hidden_from_its_moment_on(self, index: VectorIndex) -> None:
        tick = timedelta(microseconds=1)
        index.upsert([make_point("brief", expires_at=NOW), make_point("lasting")])

        assert texts(index, make_query(at=NOW)) == ["lasting"]
        assert texts(index, make_query(at=NOW + tick)) == ["lasting"]
        assert set(texts(index, make_query(at=NOW - tick))) == {"brief", "lasting"}
        assert texts(index, make_query(at=NOW, include_superseded=True)) == ["lasting"]
        assert index.count(ANNA) == 2

    def test_superseded_records_are_found_on_request_only(self, index: VectorIndex) -> None:
        index.upsert([make_point("was", valid_to=NOW), make_point("is")])
        index.upsert([make_point("will be over", valid_to=NOW + timedelta(days=9))])

        assert set(texts(index, make_query())) == {"is", "will be over"}
        assert set(texts(index, make_query(include_superseded=True))) == {
            "was",
            "is",
            "will be over",
        }

    def test_what_was_true_at_a_moment_is_found(self, index: VectorIndex) -> None:
        day = timedelta(days=1)
        index.upsert(
            [
                make_point("first", occurred_at=NOW - 9 * day, valid_to=NOW - 5 * day),
                make_point("second", occurred_at=NOW - 5 * day, valid_to=NOW - 2 * day),
                make_point("third", occurred_at=NOW - 2 * day),
            ]
        )
        moments = [NOW - n * day for n in (10, 9, 6, 5, 3, 2, 0)]

        found = [texts(index, make_query(as_of=moment)) for moment in moments]

        wanted = [[], ["first"], ["first"], ["second"], ["second"], ["third"], ["third"]]
        assert found == wanted

    def test_an_amended_record_keeps_its_vector_and_terms(self, index: VectorIndex) -> None:
        point = make_point("was", terms={1: 1.0}, metadata={"a": 1}, version=3)
        index.upsert([point])
        (before,) = index.search(make_query(terms=(1,)), 5)
        ended = replace(point.record, valid_to=NOW, version=4, conflicts=("x",))
        older = replace(point.record, text="older", version=2)

        index.amend([ended, make_point("unknown").record])
        index.amend([older])

        assert texts(index, make_query()) == []
        (hit,) = index.search(make_query(terms=(1,), include_superseded=True), 5)
        assert hit == replace(before, record=ended)
        assert index.count(ANNA) == 1

    def test_kinds_narrow_the_search(self, index: VectorIndex) -> None:
        kinds = ("fact", "preference", "episode")
        index.upsert([make_point(kind, kind=kind) for kind in kinds])

        assert texts(index, make_query(kinds=("episode",))) == ["episode"]
        assert set(texts(index, make_query(kinds=("episode", "fact")))) == {"episode", "fact"}

    @pytest.mark.parametrize(
        "vector",
        [
            [math.nan, *[0.5] * (DIMENSIONS - 1)],
            [math.inf, *[0.5] * (DIMENSIONS - 1)],
            [0.0] * DIMENSIONS,
            [1.0],
            [1.0] * (DIMENSIONS + 1),
        ],
    )
    def test_an_invalid_vector_refuses_the_whole_call(
        self, index: VectorIndex, vector: list[float]
    ) -> None:
        good = [make_point(f"good {n}") for n in range(70)]

        with pytest.raises(InvalidVectorError):
            index.upsert([*good, replace(make_point("bad"), vector=vector)])
        with pytest.raises(InvalidVectorError):
            index.search(replace(make_query(), vector=vector), 5)

        assert index.count(ANNA) == 0

    def test_delete_removes_only_inside_the_scope(self, index: VectorIndex) -> None:
        mine, his = make_point("mine"), make_point("his", BEN)
        index.upsert([mine, his])

        index.delete(ANNA, [his.record.id, "no id at all", make_point("never").record.id])
        assert (index.count(ANNA), index.count(BEN)) == (1, 1)

        index.delete(ANNA, [mine.record.id])
        assert (index.count(ANNA), index.count(BEN)) == (0, 1)
        assert texts(index, make_query()) == []

    def test_erase_removes_what_the_scope_covers_and_counts_it(self, index: VectorIndex) -> None:
        session = Scope(user_id="anna", session_id="s")
        index.upsert([make_point(f"mine {n}") for n in range(150)])
        index.upsert([make_point("in session", session), make_point("his", BEN)])

        assert index.erase(session) == 1
        assert index.erase(ANNA) == 150
        assert index.erase(ANNA) == 0
        assert index.count(BEN) == 1

    def test_what_is_newer_than_a_removal_stays(self, index: VectorIndex) -> None:
        old, new = make_point("old", version=3), make_point("new", version=2**52 + 1)
        index.upsert([old, new])

        index.delete(ANNA, [old.record.id, new.record.id], 2**52)
        assert texts(index, make_query()) == ["new"]
        index.upsert([old])
        assert index.erase(ANNA, 2**52) == 1
        assert texts(index, make_query()) == ["new"]
        assert index.erase(ANNA, 2**52 + 1) == 1

    def test_versions_iterates_over_every_record(self, index: VectorIndex) -> None:
        points = [make_point(f"p{n}", version=n + 1) for n in range(300)]
        index.upsert([*points, make_point("his", BEN), make_point("was", valid_to=NOW, version=7)])

        found = list(index.versions(ANNA))

        wanted = {(p.record.id, p.record.version) for p in points}
        assert wanted | {(make_point("was").record.id, 7)} == set(found)
        assert len(found) == 301

    def test_versions_without_a_scope_has_all_records(self, index: VectorIndex) -> None:
        points = [make_point("hers"), make_point("his", BEN, version=4)]
        index.upsert(points)

        assert dict(index.versions(None)) == {p.record.id: p.record.version for p in points}

    def test_delete_without_a_scope_removes_any_record(self, index: VectorIndex) -> None:
        points = [make_point("hers"), make_point("his", BEN), make_point("hers too")]
        index.upsert(points)
        index.delete(None, [point.record.id for point in points[:2]])

        assert list(index.versions(None)) == [(points[2].record.id, 1)]

    def test_vectors_are_read_back_where_the_text_is_the_same(self, index: VectorIndex) -> None:
        points = [
            *(make_point(f"p{n}", ANNA, 1.0, n / 10) for n in range(80)),
            make_point("his", BEN, 0.0, 1.0),
        ]
        index.upsert(points)
        changed = replace(points[3].record, text="another", version=2)
        asked = [changed, *(point.record for point in points[4:]), make_point("unknown").record]
        found = index.vectors(asked)

        assert found.keys() == {point.record.id for point in points[4:]}
        for point in points[4:]:
            length = sum(part**2 for part in point.vector) ** 0.5
            wanted = [part / length for part in point.vector]
            assert found[point.record.id].vector == pytest.approx(wanted, abs=1e-6)
        assert index.vectors([]) == {}

    def test_the_best_passage_of_a_record_counts(self, index: VectorIndex) -> None:
        long = make_point("long", ANNA, 0.0, 1.0, following=make_passages((0.8, 0.6), (0.6, 0.8)))
        first = make_point("first", ANNA, 0.7, following=make_passages((0.0, 1.0)))
        index.upsert([long, first, make_point("short", ANNA, 0.28, 0.96)])
        ids = [long.record.id, first.record.id]

        for found in (index.search(make_query(), 9), index.score(make_query(), [], ids)):
            hits = {hit.record.text: hit for hit in found}
            assert [hit.record.text for hit in found][:2] == ["first", "long"]
            assert hits["long"].dense == pytest.approx(0.8, abs=1e-6)
            assert hits["long"].passages == pytest.approx((0.0, 0.8, 0.6), abs=1e-6)
            assert list(hits["long"].vector) == pytest.approx(make_vector(0.8, 0.6), abs=1e-6)
            assert hits["first"].passages == pytest.approx((1.0, 0.0), abs=1e-6)
        (short,) = [hit for hit in index.search(make_query(), 9) if hit.record.text == "short"]
        assert short.passages == ()

    def test_a_record_is_one_hit_however_many_passages_it_has(self, index: VectorIndex) -> None:
        near = [(1.0, n / 100) for n in range(1, 90)]
        long = make_point("long", ANNA, 1.0, following=make_passages(*near))
        others = [make_point(f"p{n}", ANNA, 0.5, 0.5 + n / 10) for n in range(4)]
        index.upsert([long, *others])

        assert texts(index, make_query(), 3) == ["long", "p0", "p1"]
        assert index.count(ANNA) == len(list(index.versions(ANNA))) == 5

    def test_passages_come_and_go_with_their_record(self, index: VectorIndex) -> None:
        passages = make_passages((1.0, 0.1), (1.0,))
        points = [make_point(f"p{n}", ANNA, 0.0, 1.0, following=passages) for n in range(40)]
        his = make_point("his", BEN, 0.0, 1.0, following=passages)
        index.upsert([*points, his])
        index.search(make_query(), 50)
        index.amend([replace(point.record, trust=0.5, version=2) for point in points[:20]])
        third = [replace(point, record=replace(point.record, version=3)) for point in points]
        index.upsert([replace(point, following=()) for point in third[:10]])
        index.upsert([replace(point, following=passages[:1]) for point in third[10:15]])
        index.delete(ANNA, [point.record.id for point in points[30:]])

        dense = {hit.record.text: hit.dense for hit in index.search(make_query(), 50)}

        wanted = dict.fromkeys((f"p{n}" for n in range(10)), 0.0)
        wanted |= dict.fromkeys((f"p{n}" for n in range(10, 15)), 1 / math.hypot(1, 0.1))
        wanted |= dict.fromkeys((f"p{n}" for n in range(15, 30)), 1.0)
        assert dense == pytest.approx(wanted, abs=1e-6)
        assert index.erase(ANNA) == 30
        assert index.search(make_query(), 50) == []
        assert index.search(make_query(BEN), 50)[0].dense == pytest.approx(1.0, abs=1e-6)

    def test_a_passage_is_found_only_where_its_record_may_be(self, index: VectorIndex) -> None:
        passages = make_passages((1.0,))
        index.upsert(
            [
                make_point("kind", ANNA, 0.0, 1.0, following=passages, kind="profile"),
                make_point("field", ANNA, 0.0, 1.0, following=passages, metadata={"f": 1}),
                make_point("over", ANNA, 0.0, 1.0, following=passages, expires_at=NOW),
                make_point("his", BEN, 0.0, 1.0, following=passages),
            ]
        )

        assert set(texts(index, make_query())) == {"kind", "field"}
        assert texts(index, make_query(kinds=("profile",))) == ["kind"]
        assert texts(index, make_query(where=parse_filter({"f": 1}))) == ["field"]

    @pytest.mark.parametrize("vector", [[math.nan] * DIMENSIONS, [0.0] * DIMENSIONS, [1.0]])
    def test_an_invalid_passage_refuses_the_whole_call(
        self, index: VectorIndex, vector: list[float]
    ) -> None:
        bad = make_point("bad", following=(TokenEmbedding(vector=vector),))

        with pytest.raises(InvalidVectorError):
            index.upsert([make_point("good"), bad])

        assert index.count(ANNA) == 0

    def test_passages_are_read_back_in_their_order(self, token_index: VectorIndex) -> None:
        further = [
            TokenEmbedding(vector=make_vector(0.5, n), tokens=make_tokens((0, 1)) * n)
            for n in (1, 0, 2)
        ]
        point = make_point("long", tokens=make_tokens((1, 0)), following=tuple(further))
        token_index.upsert([point, make_point("short")])

        kept = token_index.vectors([point.record, make_point("short").record])

        found = kept[point.record.id]
        assert found.tokens == point.tokens
        assert [one.tokens for one in found.following] == [one.tokens for one in further]
        for one, wanted in zip(found.following, further, strict=True):
            assert list(one.vector) == pytest.approx(list(wanted.vector), abs=1e-6)
        assert kept[make_point("short").record.id].following == ()

    def test_the_tokens_of_the_passage_that_fits_best_count(self, token_index: VectorIndex) -> None:
        second = TokenEmbedding(vector=make_vector(1.0), tokens=make_tokens((-1, 0)))
        third = TokenEmbedding(vector=make_vector(0.5, 0.5), tokens=make_tokens((0.6, 0.8)))
        long = make_point("long", ANNA, 0.0, 1.0, tokens=make_tokens((1, 0)))
        points = [replace(long, following=(second, third)), make_point("short", ANNA, 0.1, 1.0)]
        token_index.upsert([*points, make_point("bare", ANNA, 0.0, 1.0, following=(third,))])
        asked = query_of(make_tokens((0, 1), (1, 0)))

        for found in (
            token_index.search(asked, 9),
            token_index.score(asked, [], [long.record.id, points[1].record.id]),
        ):
            late = {hit.record.text: hit.late for hit in found}
            assert late["long"] == pytest.approx((0.8, 0.6), abs=0.01)
            assert late["short"] == ()
            assert late.get("bare", (0.8, 0.6)) == pytest.approx((0.8, 0.6), abs=0.01)

    def test_tokens_are_compared_one_by_one(self, token_index: VectorIndex) -> None:
        near = make_point("near", ANNA, 1.0, tokens=make_tokens((1, 0), (0.6, 0.8)))
        told = make_point("told", ANNA, 0.1, 1.0, tokens=make_tokens((0, 1)))
        bare = make_point("bare", ANNA, 0.0, 1.0)
        token_index.upsert([near, told, bare])
        asked = make_tokens((0, 1), (1, 0), (-1, 0))

        found = {hit.record.text: hit.late for hit in token_index.search(query_of(asked), 9)}

        assert found["near"] == pytest.approx((0.8, 1.0, -0.6), abs=0.01)
        assert found["told"] == pytest.approx((1.0, 0.0, 0.0), abs=0.01)
        assert found["bare"] == ()
        scored = token_index.score(query_of(asked), [], [near.record.id, bare.record.id])
        assert {hit.record.text: hit.late for hit in scored} == {"near": found["near"], "bare": ()}
        assert {hit.late for hit in token_index.search(make_query(), 9)} == {()}

    def test_the_tokens_of_a_new_version_replace_the_former(self, token_index: VectorIndex) -> None:
        points = [make_point(f"p{n}", ANNA, tokens=make_tokens((0, 1))) for n in range(40)]
        token_index.upsert(points)
        assert {hit.late for hit in token_index.search(query_of(make_tokens((0, 1))), 50)} == {(1,)}
        for version in (2, 3, 4):
            changed = [
                replace(one, record=replace(one.record, version=version), tokens=given)
                for one, given in zip(points, [make_tokens((1, 0)), b""] * 20, strict=True)
            ]
            token_index.upsert(changed)
            token_index.amend([replace(one.record, trust=0.5) for one in changed])
            token_index.search(query_of(make_tokens((1, 0))), 50)

        found = [hit.late for hit in token_index.search(query_of(make_tokens((1, 0))), 50)]

        assert sorted(found) == [()] * 20 + [(1.0,)] * 20
        kept = token_index.vectors([point.record for point in points])
        assert [kept[point.record.id].tokens for point in points] == [make_tokens((1, 0)), b""] * 20

    def test_an_index_without_tokens_ignores_them(self, index: VectorIndex) -> None:
        point = make_point("x", tokens=make_tokens((1, 0)))
        index.upsert([point])

        (hit,) = index.search(query_of(make_tokens((1, 0))), 5)

        assert hit.late == ()
        assert index.vectors([point.record])[point.record.id].tokens == b""

    def test_turns_are_scored_both_ways(self, index: VectorIndex) -> None:
        session = Scope(user_id="anna", session_id="s")
        index.upsert(
            [
                make_point(f"turn {n}", session, 1.0, float(n), position=n, terms={n + 1: 1.0})
                for n in range(6)
            ]
        )
        index.upsert([make_point("twin of 2", session, 1.0, 2.0, position=2)])
        index.upsert([make_point("gone", session, position=3, valid_to=NOW)])
        turns = [turn_key(session, n) for n in (3, 2, 99)]

        found = index.score(make_query(ANNA, terms=(4,)), turns)

        assert {"turn 2", "twin of 2", "turn 3"} == {hit.record.text for hit in found}
        assert found == sorted(found, key=lambda hit: (-hit.dense, hit.record.id))
        assert [hit.record.text for hit in found if hit.lexical > 0] == ["turn 3"]
        assert found[0].dense == pytest.approx(1 / math.sqrt(5), abs=1e-6)
        assert index.score(make_query(BEN), turns) == []
        last = make_point("turn 5", session).record.id
        both = index.score(make_query(ANNA), turns[:1], [last, "no id", make_point("no").record.id])
        assert {"turn 3", "turn 5"} == {hit.record.text for hit in both}
        assert index.score(make_query(BEN), [], [last]) == []
        assert index.score(make_query(where=parse_filter({"absent": 1})), turns) == []

    def test_closing_twice_is_closing_once(self, index: VectorIndex) -> None:
        index.upsert([make_point("x")])
        index.flush()
        index.flush()
        index.close()
        index.close()

        with pytest.raises(MemoryClosedError):
            index.count(ANNA)

    def test_ten_threads_write_and_read_at_once(self, index: VectorIndex) -> None:
        def work(number: int) -> None:
            scope = Scope(user_id=f"user {number}")
            for turn in range(10):
                index.upsert([make_point(f"t{turn}", scope, terms={turn: 1.0})])
                found = index.search(make_query(scope, terms=(turn,)), 50)
                assert len(found) == turn + 1
            index.delete(scope, [make_point("t0", scope).record.id])
            assert index.count(scope) == 9

        at_once(10, work)
