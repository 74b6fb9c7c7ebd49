"""What every store of checkpoints must do when states go, are copied, or belong to somebody."""

from dataclasses import replace

import pytest

from ..checkpoints import Selection
from ..errors import InvalidRecord
from ..model import Scope
from ..ports import Checkpoints
from .checkpoints import ALICE, BOB, blob, ids_of, put_all, put_changes, replay, said, step, written


class RetentionContract:
    """Every promise of `Checkpoints` about removing, copying and owners."""

    @pytest.fixture
    def checkpoints(self) -> Checkpoints:
        """Give an empty store."""
        raise NotImplementedError

    def test_a_deleted_thread_leaves_nothing_and_others_alone(
        self, checkpoints: Checkpoints
    ) -> None:
        for thread in ("t", "t2", "u"):
            for namespace in ("", "n:1"):
                one = step("1", thread=thread, namespace=namespace, versions={"c": "1"})
                checkpoints.put(one, {("c", "1"): blob("v")}, ALICE)
                checkpoints.write(one.address, [said("task", "w")], ALICE)
        checkpoints.delete(["t", "u", "unknown"])

        assert {name: n for name, n in checkpoints.count(ALICE).items() if n != 2} == {"threads": 1}
        assert checkpoints.read("t", "") is None
        assert checkpoints.read("t2", "n:1") is not None
        checkpoints.put(step("1", versions={"c": "1"}), {}, BOB)
        found = checkpoints.read("t", "")
        assert found is not None
        assert (found.values, found.writes, found.owner) == ({}, (), BOB)

    def test_a_deleted_run_takes_its_checkpoints_writes_and_values_along(
        self, checkpoints: Checkpoints
    ) -> None:
        for name, run in (("1", "a"), ("2", "b"), ("3", "a")):
            one = step(name, versions={"c": name, "same": "1"}, run=run)
            values = {("c", name): blob(name), ("same", "1"): blob("s")}
            checkpoints.put(one, values, ALICE)
            checkpoints.write(one.address, [said("task", name)], ALICE)
        put_all(checkpoints, [step("1", thread="only", run="a"), step("1", thread="none")])
        checkpoints.delete_runs(["a", "unknown"])

        assert ids_of(checkpoints) == ["2"]
        assert checkpoints.count(ALICE) == {
            "threads": 1,
            "checkpoints": 1,
            "values": 2,
            "writes": 1,
        }
        assert ids_of(checkpoints, "only") == []
        assert ids_of(checkpoints, "none") == ["1"]

    def test_a_deleted_run_leaves_what_later_runs_are_made_of(
        self, checkpoints: Checkpoints
    ) -> None:
        put_changes(checkpoints)
        before = replay(checkpoints)
        checkpoints.delete_runs(["run 1", "run 3"])

        assert ids_of(checkpoints) == ["5", "4", "3", "2"]
        assert replay(checkpoints) == before == ["whole", "after 2", "after 3", "after 4"]

    def test_pruning_keeps_the_latest_of_each_namespace(self, checkpoints: Checkpoints) -> None:
        for namespace in ("", "n"):
            for name in "123":
                one = step(name, namespace=namespace, versions={"c": name, "same": "1"})
                values = {("c", name): blob(name), ("same", "1"): blob("s")}
                checkpoints.put(one, values, ALICE)
                checkpoints.write(one.address, [said("task", name)], ALICE)
        put_all(checkpoints, [step("1", thread="u"), step("2", thread="u")])
        checkpoints.prune(["t", "unknown"])

        assert checkpoints.count(ALICE) == {
            "threads": 1,
            "checkpoints": 2,
            "values": 4,
            "writes": 2,
        }
        found = checkpoints.read("t", "n")
        assert found is not None
        assert found.values == {"c": blob("3"), "same": blob("s")}
        assert written(checkpoints, "3", namespace="n") == ["3"]
        assert ids_of(checkpoints, "u") == ["2", "1"]

    def test_pruning_keeps_what_the_latest_is_made_of(self, checkpoints: Checkpoints) -> None:
        put_changes(checkpoints)
        before = replay(checkpoints)
        checkpoints.prune(["t"])

        assert ids_of(checkpoints) == ["5", "4", "3", "2"]
        assert replay(checkpoints) == before == ["whole", "after 2", "after 3", "after 4"]

    def test_a_channel_of_changes_stays_one_when_the_latest_does_not_say_so(
        self, checkpoints: Checkpoints
    ) -> None:
        put_changes(checkpoints)
        put_all(checkpoints, [step("6", parent="5", versions={"log": "5"})])
        checkpoints.prune(["t"])

        assert replay(checkpoints, at="6")[0] == "whole"

    def test_pruning_removes_namespaces_of_tasks_that_are_over(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("1"), step("3"), step("7", namespace="sub")])
        for name, within in (
            ("over:1", ("", "1")),
            ("over:1|deep:1", ("over:1", "2")),
            ("live:1", ("", "3")),
            ("live:1|deep:1", ("live:1", "2")),
            ("next:1", ("", "4")),
        ):
            put_all(checkpoints, [step("2", namespace=name, within=within)])
        checkpoints.prune(["t"])

        kept = {one.address.namespace for one in checkpoints.page(Selection(thread="t"), limit=99)}

        assert kept == {"", "sub", "live:1", "live:1|deep:1", "next:1"}

    def test_a_copy_has_all_and_leaves_its_source_alone(self, checkpoints: Checkpoints) -> None:
        put_changes(checkpoints, "t")
        put_all(
            checkpoints, [step("1", namespace="n", versions={"c": "1"})], {("c", "1"): blob("v")}
        )
        before = checkpoints.page(Selection(thread="t"), limit=99)
        checkpoints.copy("t", 'the "copy"')
        checkpoints.copy("t", "t")
        copied = checkpoints.page(Selection(thread='the "copy"'), limit=99)

        assert checkpoints.page(Selection(thread="t"), limit=99) == before
        assert [replace(one, address=replace(one.address, thread="t")) for one in copied] == before
        assert replay(checkpoints, 'the "copy"') == replay(checkpoints)
        checkpoints.delete(["t"])
        found = checkpoints.read('the "copy"', "n")
        assert found is not None
        assert found.values == {"c": blob("v")}
        assert replay(checkpoints, 'the "copy"') == ["whole", "after 2", "after 3", "after 4"]

    def test_a_copy_belongs_to_the_owner_of_its_source(self, checkpoints: Checkpoints) -> None:
        checkpoints.put(step("1"), {}, ALICE)
        checkpoints.put(step("1", thread="bob's"), {}, BOB)
        checkpoints.copy("t", "copy")

        with pytest.raises(InvalidRecord):
            checkpoints.copy("t", "bob's")

        assert checkpoints.count(ALICE)["checkpoints"] == 2
        assert checkpoints.count(BOB)["checkpoints"] == 1

    # -- owners --------------------------------------------------------------------------------

    def test_a_thread_keeps_its_first_owner_and_refuses_another(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("1")])
        checkpoints.write(step("1").address, [said("task", "alice's")], ALICE)
        checkpoints.put(step("2"), {}, None)

        with pytest.raises(InvalidRecord, match="another owner"):
            checkpoints.put(step("3"), {("c", "1"): blob("bob's")}, BOB)
        with pytest.raises(InvalidRecord, match="another owner"):
            checkpoints.write(step("2").address, [said("task", "bob's")], BOB)

        found = checkpoints.read("t", "")
        assert found is not None
        assert (found.checkpoint.address.id, found.writes, found.owner) == ("2", (), ALICE)
        assert checkpoints.count(ALICE) == {
            "threads": 1,
            "checkpoints": 2,
            "values": 0,
            "writes": 1,
        }
        assert set(checkpoints.count(BOB).values()) == {0}

    @pytest.mark.parametrize(
        ("scope", "gone"),
        [
            (ALICE, "abc"),
            (Scope(user_id="alice", agent_id="g"), "bc"),
            (Scope(user_id="alice", session_id="s"), "c"),
            (Scope(agent_id="g"), "d"),
            (Scope(user_id="nobody"), ""),
        ],
        ids=["user", "agent", "session", "no user", "nobody"],
    )
    def test_an_erasure_takes_exactly_the_threads_that_its_scope_covers(
        self, checkpoints: Checkpoints, scope: Scope, gone: str
    ) -> None:
        owners: dict[str, Scope | None] = {
            "a": ALICE,
            "b": Scope(user_id="alice", agent_id="g"),
            "c": Scope(user_id="alice", agent_id="g", session_id="s"),
            "d": Scope(agent_id="g"),
            "e": BOB,
            "f": None,
        }
        for thread, owner in owners.items():
            one = step("1", thread=thread, versions={"c": "1"})
            checkpoints.put(one, {("c", "1"): blob("v")}, owner)
            checkpoints.write(one.address, [said("task", "w")], owner)
        counted = checkpoints.count(scope)
        removed = checkpoints.erase(scope)
        left = {one.address.thread for one in checkpoints.page(Selection(), limit=99)}

        assert set(owners) - left == set(gone)
        assert removed == counted == dict.fromkeys(removed, len(gone))
        assert set(removed) == {"threads", "checkpoints", "values", "writes"}
        assert set(checkpoints.count(scope).values()) == {0}
        assert set(checkpoints.erase(scope).values()) == {0}
