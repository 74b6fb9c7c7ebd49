"""Contracts of every checkpoint store: inherit both classes and provide `checkpoints`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from ...errors import InvalidRecordError, MemoryClosedError
from ...ports.checkpoints import Address, Blob, Checkpoint, Checkpoints, Selection, TaskWrite
from ...types import Scope
from . import at_once

ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
Values = Mapping[tuple[str, str], Blob | None]


def blob(text: str) -> Blob:
    """Make a value that a serializer could have written."""
    return Blob(type="text", data=text.encode())


def step(
    name: str,
    *,
    thread: str = "t",
    namespace: str = "",
    parent: str | None = None,
    versions: Mapping[str, str] | None = None,
    deltas: Sequence[str] = (),
    run: str | None = None,
    within: tuple[str, str] | None = None,
) -> Checkpoint:
    """Make a checkpoint whose bytes differ from those of others."""
    return Checkpoint(
        address=Address(thread=thread, namespace=namespace, id=name),
        body=blob(f"body of {name}"),
        metadata=blob(f"metadata of {name}"),
        versions=versions or {},
        parent=parent,
        deltas=tuple(deltas),
        run=run,
        within=within,
    )


def task_write(
    task: str, text: str, *, path: str = "", index: int = 0, channel: str = "c"
) -> TaskWrite:
    """Make the write of a task."""
    return TaskWrite(task=task, path=path, index=index, channel=channel, value=blob(text))


def ids_of(store: Checkpoints, thread: str = "t", namespace: str | None = None) -> list[str]:
    """Read the ids of a thread's checkpoints, greatest first."""
    asked = Selection(thread=thread, namespace=namespace)
    return [one.address.id for one in store.page(asked, limit=100)]


def written(store: Checkpoints, name: str, thread: str = "t", namespace: str = "") -> list[str]:
    """Read the writes beside a checkpoint, in their order."""
    state = store.read(thread, namespace, name)
    return [] if state is None else [write.value.data.decode() for write in state.writes]


def put_all(store: Checkpoints, steps: Iterable[Checkpoint], values: Values | None = None) -> None:
    """Put checkpoints of nobody's threads, each with these values."""
    for one in steps:
        store.put(one, values or {}, None)


def put_changes(store: Checkpoints, thread: str = "t") -> None:
    """Put steps 1 to 5 of a channel `log` of changes, which has its whole value at 2 only."""
    for number in range(1, 6):
        one = step(
            str(number),
            thread=thread,
            parent=str(number - 1) if number > 1 else None,
            versions={"log": str(number)},
            deltas=() if number == 2 else ("log",),
            run=f"run {number}",
        )
        store.put(one, {("log", "2"): blob("whole")} if number == 2 else {}, None)
        store.write(one.address, [task_write("task", f"after {number}", channel="log")], None)


def replay(store: Checkpoints, thread: str = "t", at: str = "5") -> list[str]:
    """Read what the channel `log` is made of, oldest first."""
    steps = store.steps(Address(thread=thread, namespace="", id=at), ["log"])
    found = [write.value.data.decode() for each in reversed(steps) for write in each.writes]
    return [one.values["log"].data.decode() for one in steps if one.values] + found


def call_everything(store: Checkpoints, scope: Scope) -> None:
    """Call every method of a store."""
    for name, parent in (("1", None), ("2", "1"), ("3", "2")):
        one = step(name, parent=parent, versions={"c": name, "d": "1"}, deltas=["d"], run="r")
        store.put(one, {("c", name): blob(name), ("e", "1"): None}, scope)
        store.put(one, {}, scope, replace=False)
        store.write(
            one.address, [task_write("task", name), task_write("task", name, index=-1)], scope
        )
    for asked in (
        Selection(),
        Selection(before="3"),
        Selection(namespace="", before="3"),
        Selection(namespace="", id="2", before="3"),
        Selection(thread="t"),
        Selection(thread="t", id="2"),
        Selection(thread="t", namespace="", before="3"),
    ):
        store.page(asked, limit=1)
        if asked.id is None:
            for is_ascending in (False, True):
                after = Address(thread="t", namespace="", id="3")
                store.page(asked, limit=9, after=after, is_ascending=is_ascending)
                store.page(asked, limit=9, offset=1, is_ascending=is_ascending)
        store.states(asked, limit=9)
    store.read("t", "")
    store.read("t", "", "1")
    store.steps(Address(thread="t", namespace="", id="3"), ["d"])
    store.copy("t", "u")
    store.prune(["t"])
    store.delete_runs(["r"])
    store.delete(["u"])
    store.put(step("1"), {}, scope)
    store.count(scope)
    store.erase(scope)


class CheckpointsContract:
    """Every promise of `Checkpoints`; the fixture gives an empty store."""

    @pytest.fixture
    def checkpoints(self) -> Checkpoints:
        """Give an empty store."""
        raise NotImplementedError

    # -- one state -----------------------------------------------------------------------------

    def test_a_state_comes_back_as_it_was(self, checkpoints: Checkpoints) -> None:
        versions = {"a": "1", "b": "x.2", "never": "1"}
        given = step(
            "2", parent="1", versions=versions, deltas=["b"], run="r", within=("outer", "7")
        )
        kept = {("a", "1"): blob("A"), ("b", "x.2"): Blob(type="bytes", data=b"\x00\xff")}
        checkpoints.put(given, kept, ALICE)
        checkpoints.write(given.address, [task_write("task", "W")], None)

        found = checkpoints.read("t", "", "2")

        assert found is not None
        assert found.checkpoint == given
        assert found.values == {"a": blob("A"), "b": Blob(type="bytes", data=b"\x00\xff")}
        assert found.writes == (task_write("task", "W"),)
        assert found.owner == ALICE
        assert checkpoints.page(Selection(), limit=9) == [given]

    def test_the_latest_has_the_greatest_id_whenever_it_was_put(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("2"), step("3"), step("1")])
        put_all(checkpoints, [step("9", namespace="n"), step("8", thread="other")])

        assert [
            one and one.checkpoint.address.id
            for one in (
                checkpoints.read("t", ""),
                checkpoints.read("t", "n"),
                checkpoints.read("other", ""),
                checkpoints.read("other", "n"),
                checkpoints.read("t", "", "9"),
            )
        ] == ["3", "9", "8", None, None]

    def test_a_value_is_kept_once_for_all_checkpoints_that_name_its_version(
        self, checkpoints: Checkpoints
    ) -> None:
        checkpoints.put(step("1", versions={"c": "1"}), {("c", "1"): blob("one")}, ALICE)
        checkpoints.put(step("2", versions={"c": "1"}), {}, ALICE)
        checkpoints.put(step("3", versions={"c": "2"}), {("c", "2"): blob("two")}, ALICE)

        assert [state.values["c"].data for state in checkpoints.states(Selection(), limit=9)] == [
            b"two",
            b"one",
            b"one",
        ]
        assert checkpoints.count(ALICE)["values"] == 2

    def test_an_emptied_channel_has_no_value(self, checkpoints: Checkpoints) -> None:
        checkpoints.put(step("1", versions={"c": "1"}), {("c", "1"): blob("one")}, None)
        checkpoints.put(step("2", versions={"c": "2"}), {("c", "2"): None}, None)
        checkpoints.put(step("1", versions={"c": "1"}), {("c", "1"): None}, None)

        assert [state.values for state in checkpoints.states(Selection(), limit=9)] == [{}, {}]

    def test_a_checkpoint_put_again_is_replaced(self, checkpoints: Checkpoints) -> None:
        put_all(checkpoints, [step("1", parent="0", run="r")])
        checkpoints.put(replace(step("1"), body=blob("other")), {}, None)

        found = checkpoints.read("t", "", "1")

        assert found is not None
        assert (found.checkpoint.body, found.checkpoint.parent) == (blob("other"), None)
        assert ids_of(checkpoints) == ["1"]

    def test_of_several_that_put_a_new_checkpoint_one_succeeds(
        self, checkpoints: Checkpoints
    ) -> None:
        written: list[Blob] = []

        def put(number: int) -> None:
            own = blob(str(number))
            given = replace(step("1", versions={"c": "1"}), body=own)
            if checkpoints.put(given, {("c", "1"): own}, ALICE, replace=False):
                written.append(own)

        at_once(8, put)
        found = checkpoints.read("t", "")

        assert found is not None
        assert [found.checkpoint.body] == [found.values["c"]] == written
        assert not checkpoints.put(step("1"), {}, None, replace=False)
        assert checkpoints.put(step("1"), {}, None)

    def test_names_are_literal_and_compared_whole(self, checkpoints: Checkpoints) -> None:
        names = ["a", "a/", 'a"', "a%", "*", "a|b:c", "é", "e\u0301", "爱", "\U0001f600", "A", "[]"]
        for name in names:
            one = step(name, thread=name, namespace=name, versions={name: name})
            checkpoints.put(one, {(name, name): blob(name)}, None)
            checkpoints.write(one.address, [task_write(name, name, path=name, channel=name)], None)

        for name in names:
            [found] = checkpoints.page(Selection(thread=name), limit=9)
            state = checkpoints.read(name, name)

            assert found.address == Address(thread=name, namespace=name, id=name)
            assert state is not None
            assert state.values == {name: blob(name)}
            assert [write.channel for write in state.writes] == [name]

    def test_calls_for_what_is_missing_leave_nothing_behind(self, checkpoints: Checkpoints) -> None:
        nowhere = Address(thread="t", namespace="", id="1")

        assert checkpoints.read("t", "") is None
        assert checkpoints.read("t", "", "1") is None
        assert checkpoints.states(Selection(), limit=9) == []
        assert checkpoints.steps(nowhere, ["c"]) == []
        checkpoints.write(nowhere, [], ALICE)
        checkpoints.delete(["t"])
        checkpoints.delete_runs(["r"])
        checkpoints.prune(["t"])
        checkpoints.copy("t", "u")
        assert checkpoints.page(Selection(), limit=9) == []
        assert set(checkpoints.count(ALICE).values()) == {0}

    def test_a_closed_store_says_so(self, checkpoints: Checkpoints) -> None:
        checkpoints.close()
        checkpoints.close()

        with pytest.raises(MemoryClosedError):
            checkpoints.read("t", "")

    # -- writes --------------------------------------------------------------------------------

    def test_a_write_may_come_before_its_checkpoint(self, checkpoints: Checkpoints) -> None:
        checkpoints.write(step("1").address, [task_write("task", "early")], None)
        assert checkpoints.read("t", "", "1") is None
        put_all(checkpoints, [step("1")])

        assert written(checkpoints, "1") == ["early"]

    def test_an_index_keeps_its_first_write_and_one_below_zero_its_last(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("1")])
        for text in ("first", "second"):
            writes = [
                task_write("task", text, index=0),
                task_write("task", f"{text} slot", index=-1),
            ]
            checkpoints.write(step("1").address, writes, None)
        checkpoints.write(step("1").address, [task_write("other", "third", index=0)], None)

        assert sorted(written(checkpoints, "1")) == ["first", "second slot", "third"]

    def test_writes_are_in_the_order_of_path_task_and_number(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("1")])
        for one in (
            task_write("a", "5", path="p2"),
            task_write("c", "3", path="p1", index=10),
            task_write("z", "1"),
            task_write("c", "2", path="p1", index=9),
            task_write("b", "4", path="p10", index=0),
        ):
            checkpoints.write(step("1").address, [one], None)

        assert written(checkpoints, "1") == ["1", "2", "3", "4", "5"]

    def test_many_threads_put_and_write_at_once(self, checkpoints: Checkpoints) -> None:
        def work(number: int) -> None:
            for turn in range(5):
                one = step(f"{turn}", versions={f"c{number}": str(turn)})
                texts = [task_write(f"task {number}", f"{number}.{turn}", index=0)]
                checkpoints.write(one.address, texts, ALICE)
                checkpoints.put(one, {(f"c{number}", str(turn)): blob("v")}, ALICE)
                checkpoints.write(one.address, texts, ALICE)

        at_once(8, work)

        assert ids_of(checkpoints) == ["4", "3", "2", "1", "0"]
        assert written(checkpoints, "3") == [f"{number}.3" for number in range(8)]
        assert checkpoints.count(ALICE) == {
            "threads": 1,
            "checkpoints": 5,
            "values": 40,
            "writes": 40,
        }

    # -- many states ---------------------------------------------------------------------------

    def test_a_page_goes_from_the_greatest_id_down_over_what_is_asked(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step(name) for name in "135"])
        put_all(checkpoints, [step(name, namespace="n") for name in "24"])
        put_all(checkpoints, [step("3", thread="u"), step("6", thread="u")])

        def ask(**asked: str) -> str:
            return "".join(one.address.id for one in checkpoints.page(Selection(**asked), limit=9))

        assert ask() == "6543321"
        assert ask(before="4") == "3321"
        assert ask(thread="t") == "54321"
        assert ask(thread="t", namespace="") == "531"
        assert ask(thread="t", namespace="n") == "42"
        assert ask(thread="t", namespace="", before="5") == "31"
        assert ask(thread="t", id="4") == "4"
        assert ask(thread="t", namespace="", id="4") == ""
        assert ask(thread="nobody") == ""

    @pytest.mark.parametrize(
        "asked",
        [Selection(), Selection(thread="t"), Selection(thread="t", namespace="")],
        ids=["all", "thread", "namespace"],
    )
    def test_pages_follow_each_other_without_gap_or_repetition(
        self, checkpoints: Checkpoints, asked: Selection
    ) -> None:
        for thread in "tu":
            for namespace in ("", "n"):
                put_all(
                    checkpoints,
                    [step(name, thread=thread, namespace=namespace) for name in "123"],
                )
        whole = checkpoints.page(asked, limit=100)
        found: list[Checkpoint] = []
        while page := checkpoints.page(asked, limit=2, after=found[-1].address if found else None):
            assert len(page) <= 2
            found += page

        assert len(whole) == 12 // (1 + (asked.thread is not None)) // (
            1 + (asked.namespace is not None)
        )
        assert found == whole

    @pytest.mark.parametrize("is_ascending", [False, True])
    @pytest.mark.parametrize(
        "asked",
        [
            Selection(),
            Selection(before="3"),
            Selection(thread="t"),
            Selection(thread="t", namespace=""),
            Selection(namespace="n", before="4"),
        ],
        ids=["all", "before", "thread", "namespace", "namespaces"],
    )
    def test_a_page_begins_after_as_many_as_are_passed_over_in_either_order(
        self, checkpoints: Checkpoints, asked: Selection, is_ascending: bool
    ) -> None:
        for thread in "tu":
            for namespace in ("", "n"):
                put_all(
                    checkpoints,
                    [step(name, thread=thread, namespace=namespace) for name in "1234"],
                )
        whole = checkpoints.page(asked, limit=100)
        ordered = whole[::-1] if is_ascending else whole
        found: list[Checkpoint] = []
        while page := checkpoints.page(
            asked, limit=3, after=found[-1].address if found else None, is_ascending=is_ascending
        ):
            found += page

        assert found == ordered
        for offset in (0, 1, 3, len(whole) - 1, len(whole), 1000):
            for limit in (1, 3, 100):
                page = checkpoints.page(
                    asked, limit=limit, offset=offset, is_ascending=is_ascending
                )
                assert page == ordered[offset : offset + limit]
        page = checkpoints.page(
            asked, limit=2, after=ordered[0].address, offset=1, is_ascending=is_ascending
        )
        assert page == ordered[2:4]

    @pytest.mark.parametrize(
        "given",
        [{"limit": 0}, {"limit": 1001}, {"limit": 9, "offset": -1}, {"limit": 9, "offset": True}],
    )
    def test_a_page_of_no_number_is_refused(
        self, checkpoints: Checkpoints, given: dict[str, int]
    ) -> None:
        with pytest.raises(InvalidRecordError, match=r"limit|offset"):
            checkpoints.page(Selection(), **given)  # type: ignore[arg-type]

    def test_the_states_of_a_page_are_those_of_its_checkpoints(
        self, checkpoints: Checkpoints
    ) -> None:
        for name in "123456":
            one = step(name, thread="tu"[int(name) % 2], versions={"c": name})
            checkpoints.put(one, {("c", name): blob(name)}, BOB if name == "1" else None)
            checkpoints.write(one.address, [task_write("task", name)], None)
        for asked in (Selection(), Selection(thread="u"), Selection(before="4"), Selection(id="7")):
            page = checkpoints.page(asked, limit=9)
            states = checkpoints.states(asked, limit=2)
            after = states[-1].checkpoint.address if states else None
            states += checkpoints.states(asked, limit=9, after=after)

            assert [state.checkpoint for state in states] == page
            assert states == [
                checkpoints.read(at.thread, at.namespace, at.id)
                for at in (one.address for one in page)
            ]

    def test_steps_go_back_to_where_each_channel_has_a_value(
        self, checkpoints: Checkpoints
    ) -> None:
        put_changes(checkpoints)
        checkpoints.write(step("3").address, [task_write("task", "of another", channel="c")], None)

        steps = checkpoints.steps(Address(thread="t", namespace="", id="5"), ["log"])

        assert [one.writes[0].value.data for one in steps] == [b"after 4", b"after 3", b"after 2"]
        assert [len(one.writes) for one in steps] == [1, 1, 1]
        assert [dict(one.values) for one in steps] == [{}, {}, {"log": blob("whole")}]
        assert replay(checkpoints, at="2") == ["after 1"]
        assert checkpoints.steps(Address(thread="t", namespace="", id="1"), ["log"]) == []

    def test_steps_follow_parents_and_not_ids(self, checkpoints: Checkpoints) -> None:
        put_all(checkpoints, [step("3", parent="9"), step("2"), step("9", parent="1"), step("1")])
        for name in "1239":
            checkpoints.write(step(name).address, [task_write("task", name)], None)

        steps = checkpoints.steps(Address(thread="t", namespace="", id="3"), ["c"])

        assert [one.writes[0].value.data for one in steps] == [b"9", b"1"]

    def test_steps_end_where_parents_are_missing_or_go_in_a_circle(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("1", parent="2"), step("2", parent="1")])
        put_all(checkpoints, [step("4", parent="3"), step("3", parent="gone")])

        assert len(checkpoints.steps(Address(thread="t", namespace="", id="1"), ["c"])) == 1
        assert len(checkpoints.steps(Address(thread="t", namespace="", id="4"), ["c"])) == 1

    def test_steps_go_back_over_hundreds(self, checkpoints: Checkpoints) -> None:
        names = [f"{number:03}" for number in range(230)]
        parents = [None, *names]
        put_all(checkpoints, map(lambda a, b: step(a, parent=b), names, parents))
        checkpoints.write(step("000").address, [task_write("task", "first")], None)

        steps = checkpoints.steps(Address(thread="t", namespace="", id="229"), ["c"])

        assert len(steps) == 229
        assert [write.value.data for write in steps[-1].writes] == [b"first"]


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
                checkpoints.write(one.address, [task_write("task", "w")], ALICE)
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
            checkpoints.write(one.address, [task_write("task", name)], ALICE)
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
                checkpoints.write(one.address, [task_write("task", name)], ALICE)
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

        with pytest.raises(InvalidRecordError):
            checkpoints.copy("t", "bob's")

        assert checkpoints.count(ALICE)["checkpoints"] == 2
        assert checkpoints.count(BOB)["checkpoints"] == 1

    # -- owners --------------------------------------------------------------------------------

    def test_a_thread_keeps_its_first_owner_and_refuses_another(
        self, checkpoints: Checkpoints
    ) -> None:
        put_all(checkpoints, [step("1")])
        checkpoints.write(step("1").address, [task_write("task", "alice's")], ALICE)
        checkpoints.put(step("2"), {}, None)

        with pytest.raises(InvalidRecordError, match="another owner"):
            checkpoints.put(step("3"), {("c", "1"): blob("bob's")}, BOB)
        with pytest.raises(InvalidRecordError, match="another owner"):
            checkpoints.write(step("2").address, [task_write("task", "bob's")], BOB)

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
            (Scope(user_id="alice", session_id="a"), "a"),
            (Scope(user_id="alice", agent_id="g", session_id="b"), "b"),
            (Scope(user_id="bob", session_id="a"), ""),
            (Scope(session_id="f"), ""),
            (Scope(user_id="nobody"), ""),
        ],
        ids=[
            "user",
            "agent",
            "session",
            "no user",
            "a thread as session",
            "an agent's thread as session",
            "a thread of another",
            "nobody's thread",
            "nobody",
        ],
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
            checkpoints.write(one.address, [task_write("task", "w")], owner)
        counted = checkpoints.count(scope)
        removed = checkpoints.erase(scope)
        left = {one.address.thread for one in checkpoints.page(Selection(), limit=99)}

        assert set(owners) - left == set(gone)
        assert removed == counted == dict.fromkeys(removed, len(gone))
        assert set(removed) == {"threads", "checkpoints", "values", "writes"}
        assert set(checkpoints.count(scope).values()) == {0}
        assert set(checkpoints.erase(scope).values()) == {0}
