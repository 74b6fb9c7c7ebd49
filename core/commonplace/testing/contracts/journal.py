"""Contract of every journal: inherit `JournalContract` and provide `journal`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ...errors import BackpressureError, MemoryClosedError
from ...ports.engines import Journal
from ...ports.stores import Operation
from ...types import Backlog, Scope
from . import at_once

START = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
MANY = 1_000_000


class SetClock:
    """A clock that says what it was set to."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        """Return the time."""
        return self.at


def op(name: str, scope: Scope = ALICE) -> Operation:
    """Make an operation that is not accepted yet."""
    return Operation(id=name, kind="add", scope=scope, body=f'{{"text": "{name} é"}}')


def accept(journal: Journal, names: str, scope: Scope = ALICE) -> list[Operation]:
    """Append one operation for every letter of `names`."""
    return journal.append([op(name, scope) for name in names], max_pending=MANY)


def _ids(ops: Sequence[Operation]) -> str:
    return "".join(one.id for one in ops)


class JournalContract:
    """Every promise of `Journal`; the fixture gives an empty journal that reads `clock`."""

    @pytest.fixture
    def clock(self) -> SetClock:
        """Give the clock that the journal is made with."""
        return SetClock()

    @pytest.fixture
    def journal(self, clock: SetClock) -> Journal:
        """Give an empty journal."""
        raise NotImplementedError

    def test_what_is_accepted_is_pending_in_order(self, journal: Journal) -> None:
        accepted = accept(journal, "cab")

        assert [replace(one, seq=0, version=0) for one in accepted] == [op(name) for name in "cab"]
        assert [one.seq for one in accepted] == sorted({one.seq for one in accepted})
        assert accepted[0].seq > 0
        assert journal.pending() == accepted
        assert journal.append([], max_pending=0) == []

    def test_a_kind_and_a_whole_scope_come_back(self, journal: Journal) -> None:
        scope = Scope(user_id="u", agent_id="g", session_id="s")
        given = [
            Operation(id="f", kind="forget", scope=scope, body=""),
            op("x", Scope(agent_id="g")),
        ]
        journal.append(given, max_pending=9)

        assert [(one.kind, one.scope) for one in journal.pending()] == [
            ("forget", scope),
            ("add", Scope(agent_id="g")),
        ]

    def test_versions_carry_the_time_and_grow_with_seq(
        self, journal: Journal, clock: SetClock
    ) -> None:
        first = accept(journal, "ab")
        clock.at = START - timedelta(days=1)
        second = accept(journal, "c")
        clock.at = START + timedelta(milliseconds=5)
        third = accept(journal, "d")
        base = (START - datetime(2020, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) << 11

        assert [one.version - base for one in [*first, *second, *third]] == [0, 1, 2, 5 << 11]
        assert third[0].version < 2**53

    def test_a_version_exceeds_what_the_change_has_seen(self, journal: Journal) -> None:
        ahead = accept(journal, "a")[0].version + (3_600_000 << 11)
        seen = replace(op("b"), version=ahead)

        [late] = journal.append([seen], max_pending=10)
        assert late.version == ahead + 1
        assert accept(journal, "c")[0].version > late.version

    def test_versions_and_seqs_are_never_given_out_twice(self, journal: Journal) -> None:
        before = accept(journal, "ab")
        journal.erase(ALICE, MANY)
        after = accept(journal, "ab")

        assert min(one.seq for one in after) > max(one.seq for one in before)
        assert min(one.version for one in after) > max(one.version for one in before)

    def test_a_time_past_the_last_version_is_refused(
        self, journal: Journal, clock: SetClock
    ) -> None:
        clock.at = datetime(2160, 1, 1, tzinfo=UTC)
        with pytest.raises(ConnectionError):
            accept(journal, "a")
        clock.at = START

        assert journal.pending() == []
        assert accept(journal, "a")[0].version < 2**53

    def test_a_repeated_id_returns_the_stored_operation(self, journal: Journal) -> None:
        [first] = accept(journal, "a")
        journal.plan({first.seq: b"plan"})
        other = replace(op("a"), body="other")
        again = journal.append([other, op("b"), other, op("b")], max_pending=2)

        assert again[0] == again[2] == replace(first, plan=b"plan")
        assert again[1] == again[3]
        assert _ids(journal.pending()) == "ab"

    def test_a_removed_one_makes_room_for_the_same_id(self, journal: Journal) -> None:
        [first] = accept(journal, "a")
        journal.remove([first.seq])
        [new] = accept(journal, "a")

        assert new.seq > first.seq
        assert new.version > first.version

    def test_a_stamp_exceeds_every_version_and_keeps_nothing(
        self, journal: Journal, clock: SetClock
    ) -> None:
        [before] = accept(journal, "a")
        seen = replace(op("c"), version=before.version + 100)
        first, second = journal.stamp([op("b"), seen])
        clock.at = START - timedelta(days=1)
        [third] = journal.stamp([op("d")])
        [after] = accept(journal, "e")

        versions = [one.version for one in (before, first, second, third, after)]
        assert versions == sorted({*versions})
        assert second.version > seen.version
        assert (first.id, first.seq, first.body) == ("b", 0, op("b").body)
        assert _ids(journal.pending()) == "ae"
        assert journal.rows(ALICE) == 2

    def test_nothing_is_taken_over_from_the_living(self, journal: Journal) -> None:
        accept(journal, "ab")

        assert journal.take_over() == []
        assert [one.elsewhere for one in journal.pending()] == [False, False]

    def test_a_dead_one_makes_room_for_the_same_id(self, journal: Journal) -> None:
        [first] = accept(journal, "a")
        journal.failed(first.seq)
        journal.dead_letter(first.seq, "why")
        [new] = accept(journal, "a")

        assert new.seq > first.seq
        assert new.version > first.version
        assert new.attempts == 0
        assert journal.dead() == []
        assert journal.count() == Backlog(pending=1, dead=0)

    def test_too_many_waiting_are_refused_as_a_whole(self, journal: Journal) -> None:
        accept(journal, "ab")
        with pytest.raises(BackpressureError) as caught:
            journal.append([op("c"), op("d")], max_pending=3)

        assert caught.value.retry_after > 0
        assert _ids(journal.pending()) == "ab"
        assert _ids(journal.append([op("c"), op("a")], max_pending=3)) == "ca"
        assert _ids(journal.append([op("b")], max_pending=3)) == "b"

    def test_only_what_is_pending_counts_for_the_limit(self, journal: Journal) -> None:
        ops = accept(journal, "abc")
        journal.remove([ops[0].seq])
        journal.dead_letter(ops[1].seq, "why")

        assert _ids(journal.append([op("d")], max_pending=2)) == "d"

    def test_a_plan_is_frozen_once(self, journal: Journal) -> None:
        a, b = accept(journal, "ab")
        journal.plan({a.seq: b"one", 999: b"nobody's"})
        journal.plan({a.seq: b"two", b.seq: b"\x00\xff"})
        journal.plan({})

        assert [one.plan for one in journal.pending()] == [b"one", b"\x00\xff"]

    def test_a_partition_is_read_alone_and_up_to_its_limit(self, journal: Journal) -> None:
        accept(journal, "a")
        accept(journal, "b", BOB)
        accept(journal, "c", Scope(user_id="alice", session_id="s"))
        accept(journal, "d", Scope(agent_id="alice"))

        assert _ids(journal.pending(ALICE.partition)) == "ac"
        assert _ids(journal.pending(ALICE.partition, limit=1)) == "a"
        assert _ids(journal.pending("-")) == "d"
        assert _ids(journal.pending(limit=2)) == "ab"
        assert journal.pending("nobody") == []

    def test_applied_ones_are_removed(self, journal: Journal) -> None:
        a, b, c = accept(journal, "abc")

        assert journal.remove([c.seq, a.seq, 999]) == 2
        assert journal.remove([c.seq]) == 0
        assert journal.remove([]) == 0
        assert journal.pending() == [b]
        assert journal.rows(ALICE) == 1
        assert journal.count() == Backlog(pending=1, dead=0)

    def test_failures_are_counted(self, journal: Journal) -> None:
        a, _ = accept(journal, "ab")

        assert [journal.failed(a.seq), journal.failed(a.seq)] == [1, 2]
        assert [one.attempts for one in journal.pending()] == [2, 0]
        assert journal.failed(999) == 0

    def test_dead_letters_come_oldest_first_with_their_reason(
        self, journal: Journal, clock: SetClock
    ) -> None:
        a, b, c = accept(journal, "abc")
        journal.failed(b.seq)
        for seconds, one in enumerate((b, a)):
            clock.at = START + timedelta(seconds=seconds)
            journal.dead_letter(one.seq, f"because of {one.id} \ud800")
        first, second = journal.dead()

        assert (first.operation, first.attempts, first.at) == ("b", 1, START)
        assert (second.operation, second.attempts, second.at) == ("a", 0, clock.at)
        assert (first.scope, first.kind) == (ALICE, "add")
        assert first.reason.startswith("because of b")
        assert journal.pending() == [c]

    def test_dead_letters_are_shown_to_their_own_scope(self, journal: Journal) -> None:
        scopes = (ALICE, Scope(user_id="alice", session_id="s"), BOB, Scope(session_id="s"))
        for name, scope in zip("abcd", scopes, strict=True):
            [one] = accept(journal, name, scope)
            journal.dead_letter(one.seq, "why")

        assert [one.operation for one in journal.dead()] == list("abcd")
        assert [one.operation for one in journal.dead(ALICE)] == ["a", "b"]
        assert [one.operation for one in journal.dead(scopes[1])] == ["b"]
        assert [one.operation for one in journal.dead(scopes[3])] == ["d"]

    def test_a_retried_one_is_accepted_again_as_the_newest(self, journal: Journal) -> None:
        a, b = accept(journal, "ab")
        journal.plan({a.seq: b"plan"})
        journal.failed(a.seq)
        journal.dead_letter(a.seq, "why")

        assert journal.retry(["a", "b", "nobody"]) == 1
        [first, last] = journal.pending()
        assert first == b
        assert last.seq > b.seq
        assert last.version > b.version
        assert last == replace(a, plan=b"plan", seq=last.seq, version=last.version)
        assert journal.dead() == []
        assert journal.retry([]) == 0

    def test_a_dead_letter_may_be_what_is_left_of_an_operation(self, journal: Journal) -> None:
        a, b = accept(journal, "ab")
        journal.plan({a.seq: b"plan"})
        journal.failed(a.seq)
        left = replace(a, kind="extract", body="left")
        journal.dead_letter(a.seq, "why", left)
        journal.dead_letter(a.seq, "again", replace(left, body="none"))
        [letter] = journal.dead()

        assert (letter.operation, letter.kind, letter.attempts) == ("a", "extract", 1)
        assert letter.reason == "why"
        assert journal.pending() == [b]
        assert journal.retry(["a"]) == 1
        assert journal.pending()[1] == replace(
            left, seq=journal.pending()[1].seq, version=journal.pending()[1].version
        )

    def test_only_a_pending_one_can_be_applied_or_dead_lettered(self, journal: Journal) -> None:
        a, b = accept(journal, "ab")
        journal.dead_letter(a.seq, "why")

        assert journal.remove([a.seq, b.seq]) == 1
        journal.dead_letter(b.seq, "late")
        assert [one.reason for one in journal.dead()] == ["why"]

    def test_erasure_drops_rows_of_every_state_before_it(self, journal: Journal) -> None:
        session = Scope(user_id="alice", session_id="s")
        a, b = accept(journal, "ab")
        [c] = accept(journal, "c", session)
        accept(journal, "d", BOB)
        [e] = accept(journal, "e")
        journal.plan({a.seq: b"plan"})
        journal.dead_letter(b.seq, "why")

        assert journal.rows(ALICE) == 4
        assert journal.rows(ALICE, before=c.seq) == 2
        assert journal.rows(session) == 1
        assert journal.erase(session, e.seq) == 1
        assert journal.erase(ALICE, e.seq) == 2
        assert journal.erase(ALICE, c.seq) == 0
        assert _ids(journal.pending()) == "de"
        assert journal.rows(ALICE) == 1

    def test_counts_are_per_scope_and_over_all(self, journal: Journal) -> None:
        a, b, c = accept(journal, "abc")
        accept(journal, "d", BOB)
        journal.remove([a.seq])
        journal.dead_letter(b.seq, "why")

        assert journal.count() == Backlog(pending=2, dead=1)
        assert journal.count(ALICE) == Backlog(pending=1, dead=1)
        assert journal.count(Scope(user_id="alice", session_id="s")) == Backlog(pending=0, dead=0)
        journal.retry(["b"])
        journal.erase(ALICE, c.seq)
        assert journal.count() == Backlog(pending=3, dead=0)

    def test_alike_ids_are_other_scopes(self, journal: Journal) -> None:
        scopes = [
            Scope(user_id=one)
            for one in (
                "1",
                "10",
                "1.0",
                "a",
                "A",
                "a%",
                "a_b",
                "\uff45",
                "\u00e9",
                "' OR 1=1 --",
                "null",
            )
        ]
        scopes += [Scope(agent_id="1"), Scope(session_id="1")]
        for n, scope in enumerate(scopes):
            journal.append([op(f"{n}", scope)], max_pending=MANY)

        assert [journal.rows(scope) for scope in scopes] == [1] * len(scopes)
        assert [journal.erase(scope, MANY) for scope in scopes] == [1] * len(scopes)

    def test_eight_threads_are_all_accepted_and_one_id_once(self, journal: Journal) -> None:
        accepted: list[Operation] = []

        def work(thread: int) -> None:
            for n in range(20):
                given = [op(f"{thread}.{n}"), op(f"shared {n}")]
                accepted.extend(journal.append(given, max_pending=MANY))

        at_once(8, work)
        rows = journal.pending()

        assert len(rows) == len({row.id for row in rows}) == 8 * 20 + 20
        assert sorted({one.seq for one in accepted}) == [row.seq for row in rows]
        assert [row.version for row in rows] == sorted({row.version for row in rows})

    def test_threads_never_pass_the_limit_together(self, journal: Journal) -> None:
        refused: list[int] = []

        def work(thread: int) -> None:
            for n in range(10):
                try:
                    journal.append([op(f"{thread}.{n}")], max_pending=30)
                except BackpressureError:
                    refused.append(n)

        at_once(8, work)

        assert journal.count().pending == 30
        assert len(refused) == 50

    def test_a_closed_journal_says_so(self, journal: Journal) -> None:
        journal.close()
        journal.close()

        with pytest.raises(MemoryClosedError):
            accept(journal, "a")
        with pytest.raises(MemoryClosedError):
            journal.pending()

    def test_it_fits_the_port(self, journal: Journal) -> None:
        assert isinstance(journal, Journal)
