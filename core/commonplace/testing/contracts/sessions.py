"""Contract of sessions and their turns in a graph store: inherit `SessionsContract`."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ...errors import InvalidRecordError
from ...ports.engines import GraphStore
from ...ports.stores import Put
from ...types import Scope, SessionInfo
from .graph import ALICE, START, put, remove

BOB = Scope(user_id="bob")


def talk(session: str, agent: str | None = None, user: str | None = "alice") -> Scope:
    """Make the scope of a session."""
    return Scope(user_id=user, agent_id=agent, session_id=session)


def turn(key: str, version: int, scope: Scope, **given: Any) -> Put:
    """Make the change that adds a turn; `version` is its age in seconds."""
    return put(key, version, scope, in_session=True, kind="episode", role="user", **given)


def _all(graph: GraphStore, scope: Scope, limit: int) -> list[SessionInfo]:
    """Read every page."""
    found: list[SessionInfo] = []
    page = graph.sessions(scope, limit=limit)
    while page.cursor:
        assert len(page) == limit
        found += page
        page = graph.sessions(scope, limit=limit, cursor=page.cursor)
    return [*found, *page]


def _keys(graph: GraphStore, scope: Scope, **given: Any) -> list[str]:
    texts = [one.text for one in graph.turns(scope, **{"limit": 100, **given})]
    return [text.removeprefix("text of ") for text in texts]


class SessionsContract:
    """Promises of `turns` and `sessions`; the fixture gives an empty store for each test."""

    @pytest.fixture
    def graph(self) -> GraphStore:
        """Give an empty store."""
        raise NotImplementedError

    def test_sessions_are_listed_newest_first_with_their_moments(self, graph: GraphStore) -> None:
        first, second, other = talk("1"), talk("2", "a"), talk("1", "b")
        scopes = (first, second, other, talk("9", user="bob"), talk("8", "a", None))
        graph.apply([turn(f"a{n}", n + 1, scope) for n, scope in enumerate(scopes)])
        graph.apply([turn("b", 9, first), put("fact", 10, talk("no turn"))])
        graph.apply([remove("b", 11, first), turn("late", 12, second, occurred_at=START)])
        found = _all(graph, ALICE, 2)
        moments = [((one.first_at - START).seconds, (one.last_at - START).seconds) for one in found]

        assert [one.scope for one in found] == [first, other, second]
        assert [one.turns for one in found] == [2, 1, 2]
        assert moments == [(1, 9), (3, 3), (0, 2)]
        assert _all(graph, Scope(user_id="alice", agent_id="a"), 1) == [found[2]]
        assert _all(graph, talk("1"), 5) == found[:2]
        assert [one.scope for one in _all(graph, Scope(agent_id="a"), 1)] == [scopes[4]]
        assert _all(graph, Scope(user_id="nobody"), 1) == []

    def test_sessions_of_one_moment_are_each_on_one_page(self, graph: GraphStore) -> None:
        scopes = [talk(str(n)) for n in range(7)]
        graph.apply([turn("a", n + 1, one, occurred_at=START) for n, one in enumerate(scopes)])
        found = [one.scope for one in _all(graph, ALICE, 3)]

        assert found == sorted(scopes, key=lambda one: one.key, reverse=True)

    def test_an_erased_session_is_not_listed(self, graph: GraphStore) -> None:
        graph.apply([turn("a", n + 1, talk(str(n))) for n in range(3)])
        graph.erase(talk("1"), 9)

        assert [one.scope for one in graph.sessions(ALICE)] == [talk("2"), talk("0")]

    def test_turns_come_in_their_order_whatever_their_ids(self, graph: GraphStore) -> None:
        own, other = talk("s", "a"), talk("s", "b")
        at = START + timedelta(days=1)
        for version in (1, 5):  # four turns of each write have one moment
            changes = [turn(f"{version}{n}", version + n, own) for n in range(4)]
            moment = at + timedelta(seconds=version)
            graph.apply([replace(c, record=replace(c.record, created_at=moment)) for c in changes])
        graph.apply([turn("other", 9, other), put("fact", 10, own), turn("x", 11, talk("t"))])
        keys = ["10", "11", "12", "13", "50", "51", "52", "53"]

        assert _keys(graph, own) == keys
        assert _keys(graph, own, limit=3) == keys[-3:]
        assert _keys(graph, talk("s")) == ["other", *keys]
        before = own.record_id("fact", "51")
        assert _keys(graph, own, limit=3, before=before) == keys[2:5]
        graph.apply([remove("51", 12, own)])
        assert _keys(graph, own, limit=3, before=before) == keys[2:5]
        assert _keys(graph, own, before=own.record_id("fact", "10")) == []
        assert _keys(graph, other, before=before) == []
        assert _keys(graph, BOB, before=before) == []
        assert _keys(graph, own, before="unknown") == []

    def test_expired_turns_are_left_out(self, graph: GraphStore) -> None:
        scope = talk("s")
        graph.apply([turn("a", 1, scope, expires_at=START), turn("b", 2, scope)])

        assert _keys(graph, scope) == ["b"]

    def test_limits_and_cursors_are_checked(self, graph: GraphStore) -> None:
        for wrong in (0, 1001, "1"):
            with pytest.raises(InvalidRecordError, match="limit"):
                graph.sessions(ALICE, limit=wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidRecordError, match="limit"):
                graph.turns(ALICE, limit=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidRecordError, match="cursor"):
            graph.sessions(ALICE, cursor="nothing")
