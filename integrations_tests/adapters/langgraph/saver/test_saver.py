"""The checkpointer: the public conformance suite, and what that does not ask.

`SaverContract` runs on every engine; this file runs it on the embedded one.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import ERROR, INTERRUPT, RESUME, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from commonplace import InvalidRecordError, Memory, Scope
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, Selection
from commonplace_langgraph import CommonplaceSaver

ALICE = Scope(user_id="alice")


@dataclass
class Order:
    """A type of the user's own."""

    number: int


def owner(thread: str, given: Any) -> Scope | None:
    return Scope(user_id=given["user"]) if "user" in given else None


def at(thread: str = "t", namespace: str = "", name: str | None = None, **more: Any) -> Any:
    """Name a checkpoint, or the latest of a thread."""
    ids = {} if name is None else {"checkpoint_id": name}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **ids, **more}}


def put(
    saver: CommonplaceSaver,
    config: Any,
    values: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    name: str | None = None,
) -> Any:
    """Put a checkpoint whose channels have these values, all new."""
    given = empty_checkpoint()
    given["id"] = name or str(uuid6())
    given["channel_values"] = values or {}
    versions = {one: saver.get_next_version(None, None) for one in values or {}}
    given["channel_versions"] = dict(versions)
    return saver.put(config, given, metadata or {}, versions)


def names(found: Iterator[Any]) -> list[str]:
    return [one.config["configurable"]["checkpoint_id"] for one in found]


class SaverContract:
    """What the checkpointer promises on any engine; the fixture gives an empty memory."""

    @pytest.fixture
    def kept(self, memory: Memory) -> Memory:
        return memory

    @pytest.fixture
    def saver(self, kept: Memory) -> CommonplaceSaver:
        return CommonplaceSaver(kept)

    async def test_the_public_conformance_suite_passes_with_nothing_left_out(self, kept: Memory):
        @checkpointer_test(name="CommonplaceSaver")
        async def fresh():
            yield CommonplaceSaver(kept)

        results = (await validate(fresh)).results

        assert {name: one.failures for name, one in results.items() if one.failures} == {}
        assert [name for name, one in results.items() if not (one.detected and one.passed)] == []
        assert sum(one.tests_passed for one in results.values()) >= 81
        assert sum(one.tests_skipped for one in results.values()) == 0

    # -- the blocking half ---------------------------------------------------------------------

    def test_a_checkpoint_comes_back_whole(self, saver: CommonplaceSaver):
        first = put(saver, at(), {"x": 1})
        second = put(
            saver, first, {"x": [HumanMessage("hi", id="1")], "gone": None}, {"source": "loop"}
        )
        found = saver.get_tuple(at())

        assert second == at(name=second["configurable"]["checkpoint_id"])
        assert found is not None
        assert found.config == second
        assert found.parent_config == first
        assert found.checkpoint["channel_values"] == {
            "x": [HumanMessage("hi", id="1")],
            "gone": None,
        }
        assert found.metadata == {"source": "loop"}
        assert found.pending_writes == []

    def test_a_channel_without_a_value_stays_empty(self, saver: CommonplaceSaver):
        first = put(saver, at(), {"x": 1, "y": 2})
        found = saver.get_tuple(first)
        assert found is not None
        later = {**found.checkpoint, "id": str(uuid6()), "channel_values": {"y": 2}}
        version = saver.get_next_version(later["channel_versions"]["x"], None)
        later["channel_versions"] = {**later["channel_versions"], "x": version}
        saver.put(first, later, {}, {"x": version})  # type: ignore[arg-type]  # a dict of it

        values = [one.checkpoint["channel_values"] for one in saver.list(at())]
        assert values == [{"y": 2}, {"x": 1, "y": 2}]

    def test_writes_are_in_the_order_in_which_the_run_applied_them(self, saver: CommonplaceSaver):
        config = put(saver, at())
        for task, path in (("a", "~2"), ("b", "~1"), ("c", ""), ("d", "~1")):
            saver.put_writes(config, [("x", f"{task}0"), ("x", f"{task}1")], task, path)
        found = saver.get_tuple(at())

        assert found is not None
        assert [value for _, _, value in found.pending_writes or ()] == [
            "c0", "c1", "b0", "b1", "d0", "d1", "a0", "a1",
        ]  # fmt: skip

    def test_writes_may_come_before_their_checkpoint(self, saver: CommonplaceSaver):
        name = str(uuid6())
        saver.put_writes(at(name=name), [("x", 1)], "task")

        assert saver.get_tuple(at()) is None
        assert list(saver.list(at())) == []
        put(saver, at(), name=name)
        found = saver.get_tuple(at())
        assert found is not None
        assert found.pending_writes == [("task", "x", 1)]

    def test_a_repeated_task_keeps_its_writes_and_renews_its_slots(self, saver: CommonplaceSaver):
        config = put(saver, at())
        for turn in (1, 2):
            writes = [("x", turn), (ERROR, turn), (INTERRUPT, turn), (RESUME, turn)]
            saver.put_writes(config, writes, "task")
        found = saver.get_tuple(at())

        assert found is not None
        assert {channel: value for _, channel, value in found.pending_writes or ()} == {
            "x": 1,
            ERROR: 2,
            INTERRUPT: 2,
            RESUME: 2,
        }

    def test_reading_an_unknown_thread_makes_none(self, saver: CommonplaceSaver):
        assert saver.get_tuple(at("ghost")) is None
        assert saver.get_tuple(at("ghost", name="1")) is None
        assert list(saver.list(at("ghost"))) == []
        assert saver.get_delta_channel_history(config=at("ghost"), channels=["x"]) == {
            "x": {"writes": []}
        }
        assert list(saver.list(None)) == []

    @pytest.mark.parametrize("given", [{}, {"thread_id": None}, {"thread_id": "\ud800"}])
    def test_a_config_without_a_thread_is_refused(self, saver: CommonplaceSaver, given: Any):
        with pytest.raises(InvalidRecordError, match="thread_id"):
            saver.get_tuple({"configurable": given})
        with pytest.raises(InvalidRecordError, match="thread_id"):
            put(saver, {"configurable": given})

    def test_two_branches_never_give_a_channel_the_same_version(self, saver: CommonplaceSaver):
        versions = [saver.get_next_version(None, None)]
        for _ in range(20):
            versions.append(saver.get_next_version(versions[-1], None))

        assert versions == sorted(set(versions))
        assert saver.get_next_version(versions[0], None) != saver.get_next_version(
            versions[0], None
        )

    @pytest.mark.parametrize("version", ["0" * 31 + "7.00000000000000000001", "7.0", 7, None])
    def test_a_version_follows_that_of_any_saver(self, saver: CommonplaceSaver, version: Any):
        versions = [saver.get_next_version(version, None)]
        for _ in range(20):
            versions.append(saver.get_next_version(versions[-1], None))

        assert versions == sorted(versions)
        assert int(versions[0].partition(".")[0]) == (1 if version is None else 8)
        assert type(version) is not str or len(version) < 9 or version < versions[0]

    @pytest.mark.parametrize("version", ["1.5", 1, 1.5])
    def test_a_checkpoint_keeps_its_versions_as_they_are(
        self, saver: CommonplaceSaver, version: Any
    ):
        given: Any = {
            **empty_checkpoint(),
            "channel_values": {"x": 1},
            "channel_versions": {"x": version},
        }
        config = saver.put(at(), given, {}, {"x": version})
        found = saver.get_tuple(config)

        assert found is not None
        assert found.checkpoint == given

    def test_the_body_of_an_earlier_release_is_read(self, saver: CommonplaceSaver, kept: Memory):
        given: Any = {**empty_checkpoint(), "channel_versions": {"x": "1"}}
        kind, data = saver.serde.dumps_typed(
            {k: v for k, v in given.items() if k != "channel_values"}
        )
        blob = Blob(type=kind, data=data)
        address = Address(thread="earlier", namespace="", id=given["id"])
        row = Checkpoint(address=address, body=blob, metadata=blob, versions={"x": "1"})
        kept.admin.checkpoints.put(row, {}, None)
        found = saver.get_tuple(at("earlier"))

        assert found is not None
        assert found.checkpoint == given

    # -- listing -------------------------------------------------------------------------------

    def test_what_is_listed_may_be_read_changed_and_deleted_meanwhile(
        self, saver: CommonplaceSaver
    ):
        for number in range(70):
            put(saver, at(), {"x": number}, name=f"{number:03}")
        seen = []
        for one in saver.list(at()):
            again = saver.get_tuple(one.config)
            assert again is not None
            seen.append(again.checkpoint["channel_values"]["x"])
            saver.put_writes(one.config, [("x", "seen")], "task")
            if len(seen) == 10:
                saver.delete_thread("t")
                break

        assert seen == list(range(69, 59, -1))
        assert list(saver.list(at())) == []

    def test_a_listing_asks_once_a_page_and_only_for_what_is_taken(
        self, saver: CommonplaceSaver, kept: Memory, monkeypatch: pytest.MonkeyPatch
    ):
        for number in range(70):
            put(saver, at(), {"x": number}, {"even": number % 2 == 0}, name=f"{number:03}")
        asked: list[str] = []
        engine = type(kept.admin.checkpoints)
        for name in ("page", "states", "read"):
            real = getattr(engine, name)

            def note(self, *args, _name=name, _real=real, **kwargs):
                asked.append(_name)
                return _real(self, *args, **kwargs)

            monkeypatch.setattr(engine, name, note)
        listing = saver.list(at())
        assert asked == []
        next(listing)
        assert asked == ["states"]
        assert len(list(listing)) == 69
        assert asked == ["states"] * 2
        assert len(list(saver.list(at(), filter={"even": True}, limit=3))) == 3
        assert asked[2:] == ["page", *["read"] * 3]

    def test_a_filter_is_data_whatever_its_keys_say(self, saver: CommonplaceSaver):
        injected = "a') OR 1=1 --"
        nested = {"deep": [1, {"x": None}]}
        put(saver, at(), metadata={"n": 1, injected: "x", "nested": nested}, name="1")
        put(saver, at(), metadata={"n": 2, "$where": True}, name="2")
        put(saver, at(), metadata={"n": "1"}, name="3")

        def ask(**wanted: Any) -> list[str]:
            return names(saver.list(at(), filter=wanted))

        assert ask(n=1) == ["1"]
        assert ask(n="1") == ["3"]
        assert ask(**{injected: "x"}) == ["1"]
        assert ask(**{injected: "y"}) == []
        assert ask(**{"$where": True}) == ["2"]
        assert ask(nested=nested) == ["1"]
        assert ask(nested={"deep": [1]}) == []
        assert ask(n=2, nested=nested) == []
        assert names(saver.list(at(), filter={"n": 2}, limit=1)) == ["2"]
        assert names(saver.list(at(), filter={})) == ["3", "2", "1"]

    def test_what_another_framework_keeps_is_not_listed(
        self, saver: CommonplaceSaver, kept: Memory
    ):
        foreign = Blob(type="other/json", data=b"{}")
        for name in ("1", "3"):
            address = Address(thread="other/x", namespace="", id=name)
            row = Checkpoint(address=address, body=foreign, metadata=foreign, versions={})
            kept.admin.checkpoints.put(row, {}, None)
        put(saver, at("t"), name="2")

        assert names(saver.list(None)) == names(saver.list(None, limit=1)) == ["2"]

    def test_bounds_and_namespaces_narrow_a_listing(self, saver: CommonplaceSaver):
        for name, thread, namespace in (
            ("1", "t", ""),
            ("2", "t", "n:1"),
            ("3", "t", ""),
            ("4", "u", ""),
        ):
            put(saver, at(thread, namespace), name=name)
        thread = {"configurable": {"thread_id": "t"}}

        assert names(saver.list(None)) == ["4", "3", "2", "1"]
        assert names(saver.list(None, before=at(name="3"), limit=1)) == ["2"]
        assert names(saver.list(thread)) == ["3", "2", "1"]
        assert names(saver.list(at())) == ["3", "1"]
        assert names(saver.list(at(name="1"))) == ["1"]
        assert names(saver.list(at(), before=at(name="3"))) == ["1"]
        assert names(saver.list(at(), limit=0)) == names(saver.list(at(), limit=-1)) == []

    # -- threads, loops and copies -------------------------------------------------------------

    def test_many_threads_put_and_write_at_once(self, saver: CommonplaceSaver):
        config = put(saver, at(), {"x": 0})
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for turn in range(4):
                    saver.put_writes(config, [("x", number)], f"task {number}.{turn}", f"{number}")
                    put(saver, at(f"thread {number}"), {"x": turn})
                    assert saver.get_tuple(config) is not None
            except BaseException as error:  # noqa: BLE001 -- seen below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        found = saver.get_tuple(config)

        assert failures == []
        assert found is not None
        assert [value for _, _, value in found.pending_writes or ()] == [
            number for number in range(8) for _ in range(4)
        ]
        assert len(names(saver.list(None))) == 33

    def test_one_saver_serves_many_loops_one_after_the_other_and_at_once(
        self, saver: CommonplaceSaver
    ):
        async def work(thread: str) -> Any:
            given = empty_checkpoint()
            config = await saver.aput(at(thread), given, {}, {})
            await saver.aput_writes(config, [("x", thread)], "task")
            [found] = [one async for one in saver.alist(config)]
            return found.pending_writes

        answers: dict[str, Any] = {}
        threads = [
            threading.Thread(
                target=lambda name=name: answers.update({name: asyncio.run(work(name))})
            )
            for name in "abc"
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

        assert answers == {name: [("task", "x", name)] for name in "abc"}
        assert asyncio.run(work("d")) == [("task", "x", "d")]
        assert asyncio.run(work("e")) == [("task", "x", "e")]

    async def test_no_awaited_call_works_on_the_loops_thread(self, kept: Memory):
        used: set[int] = set()

        class Watched(JsonPlusSerializer):
            def dumps_typed(self, obj):
                used.add(threading.get_ident())
                return super().dumps_typed(obj)

            def loads_typed(self, data):
                used.add(threading.get_ident())
                return super().loads_typed(data)

        saver = CommonplaceSaver(kept, serde=Watched())
        config = await saver.aput(at(), empty_checkpoint(), {}, {})
        await saver.aput_writes(config, [("x", 1)], "task")
        assert await saver.aget_tuple(config)
        assert len([one async for one in saver.alist(None)]) == 1
        await saver.aget_delta_channel_history(config=config, channels=["x"])

        assert used
        assert threading.get_ident() not in used

    def test_a_clone_with_an_allowlist_shares_what_is_kept(self, saver: CommonplaceSaver):
        clone = saver.with_allowlist([(Order.__module__, "Order")])
        config = put(saver, at(), {"x": Order(1)})
        strict, listed = saver.get_tuple(config), clone.get_tuple(config)

        assert clone is not saver
        assert strict is not None
        assert listed is not None
        assert not isinstance(strict.checkpoint["channel_values"]["x"], Order)
        assert listed.checkpoint["channel_values"]["x"] == Order(1)
        put(clone, config, {"x": 2})
        assert len(names(saver.list(at()))) == 2

    def test_what_no_serializer_takes_is_refused_and_nothing_is_kept(self, saver: CommonplaceSaver):
        with pytest.raises(TypeError):
            put(saver, at(), {"good": 1, "bad": threading.Lock()})
        with pytest.raises(TypeError):
            saver.put_writes(at(name="1"), [("x", 1), ("x", threading.Lock())], "task")

        put(saver, at(), name="1")
        found = saver.get_tuple(at())
        assert found is not None
        assert found.pending_writes == []
        assert len(names(saver.list(None))) == 1

    # -- encryption ----------------------------------------------------------------------------

    def test_an_encrypting_saver_reads_its_own_and_refuses_what_is_plain(
        self, saver: CommonplaceSaver, kept: Memory
    ):
        serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
        secret = CommonplaceSaver(kept, serde=serde)
        config = put(secret, at("secret"), {"x": "canary"}, {"note": "canary"})
        secret.put_writes(config, [("x", "canary")], "task")
        found = secret.get_tuple(config)
        plain = put(saver, at("plain"), {"x": 1})
        saver.put_writes(config, [("x", "slipped in")], "another")

        assert found is not None
        assert found.checkpoint["channel_values"] == {"x": "canary"}
        assert found.pending_writes == [("task", "x", "canary")]
        assert found.metadata["note"] == "canary"  # type: ignore[typeddict-item]  # of our own
        assert names(secret.list(at("secret", name="none"), filter={"note": "canary"})) == []
        [state] = kept.admin.checkpoints.states(Selection(thread="secret"), limit=1)
        shown = [state.checkpoint.body, state.checkpoint.metadata, *state.values.values()]
        assert [one.type for one in shown if b"canary" in one.data or "+aes" not in one.type] == []
        for refused in (plain, config):
            with pytest.raises(InvalidRecordError, match="not encrypted"):
                secret.get_tuple(refused)

    # -- removing ------------------------------------------------------------------------------

    def test_an_unknown_strategy_of_pruning_is_refused(self, saver: CommonplaceSaver):
        put(saver, at())
        with pytest.raises(InvalidRecordError, match="strategy"):
            saver.prune(["t"], strategy="keep_some")

        assert len(names(saver.list(at()))) == 1

    def test_runs_named_by_their_uuid_are_deleted(self, saver: CommonplaceSaver):
        run: UUID = uuid4()
        put(saver, at(), metadata={"run_id": str(run)}, name="1")
        put(saver, at(), metadata={"run_id": str(uuid4())}, name="2")
        saver.delete_for_runs([run])  # type: ignore[list-item]  # callers have UUIDs at hand

        assert names(saver.list(at())) == ["2"]

    def test_a_copy_is_a_thread_of_its_own(self, saver: CommonplaceSaver):
        config = put(saver, at(), {"x": 1}, {"n": 1})
        saver.put_writes(config, [("x", 2)], "task")
        saver.copy_thread("t", "copy")
        put(saver, at("copy"), {"x": 3})
        saver.delete_thread("t")

        assert [one.checkpoint["channel_values"] for one in saver.list(at("copy"))] == [
            {"x": 3},
            {"x": 1},
        ]

    # -- owners --------------------------------------------------------------------------------

    def test_forgetting_somebody_takes_their_threads_and_says_so(self, kept: Memory):
        saver = CommonplaceSaver(kept, owner=owner)
        for thread, user in (("a1", "alice"), ("a2", "alice"), ("b", "bob")):
            config = put(saver, at(thread, user=user), {"x": user})
            saver.put_writes(
                {"configurable": {**config["configurable"], "user": user}}, [("x", 1)], "t"
            )
        put(saver, at("nobody's"))
        receipt = kept.forget(ALICE)

        assert {name: n for name, n in receipt.removed.items() if "checkpoints." in name} == {
            "checkpoints.threads": 2,
            "checkpoints.checkpoints": 2,
            "checkpoints.values": 2,
            "checkpoints.writes": 2,
        }
        assert receipt.complete
        assert receipt.left["checkpoints.threads"] == 0
        assert {one.config["configurable"]["thread_id"] for one in saver.list(None)} == {
            "b",
            "nobody's",
        }

    def test_nobody_reads_or_goes_on_with_a_thread_of_another(self, kept: Memory):
        saver = CommonplaceSaver(kept, owner=owner)
        config = put(saver, at(user="alice"), {"x": "hers"})
        bob = at(user="bob")

        with pytest.raises(InvalidRecordError, match="another owner"):
            saver.get_tuple(bob)
        with pytest.raises(InvalidRecordError, match="another owner"):
            list(saver.list(bob))
        with pytest.raises(InvalidRecordError, match="another owner"):
            put(saver, bob)
        with pytest.raises(InvalidRecordError, match="another owner"):
            saver.put_writes(
                at(name=config["configurable"]["checkpoint_id"], user="bob"), [("x", 1)], "t"
            )
        with pytest.raises(InvalidRecordError, match="another owner"):
            saver.get_delta_channel_history(config=bob, channels=["x"])
        [found] = saver.list(at(user="alice"))
        assert found.pending_writes == []

    async def test_nobody_awaits_a_thread_of_another(self, kept: Memory):
        saver = CommonplaceSaver(kept, owner=owner)
        put(saver, at(user="alice"), {"x": "hers"})
        bob = at(user="bob")

        with pytest.raises(InvalidRecordError, match="another owner"):
            await saver.aget_tuple(bob)
        with pytest.raises(InvalidRecordError, match="another owner"):
            [one async for one in saver.alist(bob)]
        with pytest.raises(InvalidRecordError, match="another owner"):
            await saver.aget_delta_channel_history(config=bob, channels=["x"])
        assert len([one async for one in saver.alist(at(user="alice"))]) == 1

    def test_a_call_that_names_nobody_reads_the_thread(self, kept: Memory):
        saver = CommonplaceSaver(kept, owner=lambda _, run: Scope(user_id=run["user"]))
        put(saver, at(user="alice"), {"x": "hers"})

        assert saver.get_tuple(at()) is not None
        assert len(list(saver.list(at()))) == 1
        with pytest.raises(InvalidRecordError, match="another owner"):
            saver.get_tuple(at(user="bob"))
        wrong = CommonplaceSaver(kept, owner=lambda _, run: {"alice": "a"}[run["user"]])
        with pytest.raises(KeyError):
            wrong.get_tuple(at(user="bob"))

    async def test_a_rule_may_look_at_the_context_of_the_run(self, kept: Memory):
        who = ContextVar("who", default="nobody")
        saver = CommonplaceSaver(kept, owner=lambda thread, given: Scope(user_id=who.get()))
        who.set("alice")
        await saver.aput(at(), empty_checkpoint(), {}, {})
        found = await saver.aget_tuple(at())

        assert found is not None
        assert (await kept.aforget(ALICE)).removed["checkpoints.threads"] == 1

    def test_without_a_rule_nothing_is_owned(self, saver: CommonplaceSaver, kept: Memory):
        put(saver, at(user="alice"), {"x": 1})

        assert kept.forget(ALICE).removed["checkpoints.threads"] == 0
        assert len(names(saver.list(at()))) == 1


class TestSaverOnSqlite(SaverContract):
    pass
