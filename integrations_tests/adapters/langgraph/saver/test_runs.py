"""Real graphs on the checkpointer: resuming, interrupts, time travel, subgraphs, pruning."""

import asyncio
import itertools
import operator
import time
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Durability, Send, interrupt

from commonplace import Memory
from commonplace_langgraph import CommonplaceSaver


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def extend(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(word for one in writes for word in one)]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=3)]


def say(word: str) -> Any:
    return lambda state: {"log": [word]}


def thread(name: str = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": name, **more}}


def line(saver: Any, *words: str, schema: Any = Log) -> Any:
    """Compile a graph that says one word after the other."""
    graph = StateGraph(schema)
    for word in words:
        graph.add_node(word, say(word))
    graph.add_edge(START, words[0])
    for before, after in itertools.pairwise(words):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def asking(saver: Any, name: str = "ask") -> Any:
    """Compile a graph that asks somebody in its second step."""
    graph = StateGraph(Log)
    graph.add_node("first", say(f"{name} first"))
    graph.add_node(name, lambda state: {"log": [interrupt(f"{name}?")]})
    graph.add_edge(START, "first")
    graph.add_edge("first", name)
    return graph.compile(checkpointer=saver)


def wait_for_writes(saver: CommonplaceSaver) -> None:
    """Wait until the thread's newest checkpoint has the writes of a task."""
    until = time.monotonic() + 10
    while not (found := saver.get_tuple(thread())) or not found.pending_writes:
        assert time.monotonic() < until
        time.sleep(0.01)


def namespaces(saver: CommonplaceSaver, name: str = "t") -> set[str]:
    found = saver.list({"configurable": {"thread_id": name}})
    return {one.config["configurable"]["checkpoint_ns"].partition(":")[0] for one in found}


class RunContract:
    """What runs of graphs may rely on; the fixture gives an empty memory."""

    @pytest.fixture
    def kept(self, memory: Memory) -> Memory:
        return memory

    @pytest.fixture
    def saver(self, kept: Memory) -> CommonplaceSaver:
        return CommonplaceSaver(kept)

    @pytest.mark.parametrize("durability", ["sync", "async", "exit"])
    def test_a_thread_goes_on_where_it_ended(self, saver: CommonplaceSaver, durability: Durability):
        for turn in ("1", "2"):
            answer = line(saver, "a", "b").invoke({"log": [turn]}, thread(), durability=durability)

        assert answer == {"log": ["1", "a", "b", "2", "a", "b"]}
        assert line(saver, "a", "b").get_state(thread()).values == answer
        assert line(saver, "a", "b").get_state(thread("other")).values == {}

    async def test_an_awaited_run_and_a_blocking_one_go_on_with_each_other(
        self, saver: CommonplaceSaver
    ):
        graph = line(saver, "a")
        await graph.ainvoke({"log": ["1"]}, thread())
        await asyncio.to_thread(graph.invoke, {"log": ["2"]}, thread())
        state = await graph.aget_state(thread())

        assert state.values == {"log": ["1", "a", "2", "a"]}
        assert len([one async for one in graph.aget_state_history(thread())]) == 6

    def test_an_interrupted_run_resumes_with_the_answer(
        self, saver: CommonplaceSaver, kept: Memory
    ):
        first = asking(saver).invoke({"log": ["in"]}, thread())
        waiting = asking(CommonplaceSaver(kept)).get_state(thread())
        answer = asking(CommonplaceSaver(kept)).invoke(Command(resume="yes"), thread())

        assert [one.value for one in first["__interrupt__"]] == ["ask?"]
        assert [one.value for one in waiting.interrupts] == ["ask?"]
        assert answer == {"log": ["in", "ask first", "yes"]}
        assert asking(saver).get_state(thread()).next == ()

    def test_a_failed_step_is_repeated_alone(self, saver: CommonplaceSaver):
        ran: list[str] = []

        def fails(state: Log) -> Log:
            ran.append("fails")
            if ran.count("fails") == 1:
                wait_for_writes(saver)  # LangGraph drops what ends after the run has failed
                raise ConnectionError("away")
            return {"log": ["works"]}

        def counts(state: Log) -> Log:
            ran.append("counts")
            return {"log": ["counted"]}

        graph = StateGraph(Log)
        graph.add_node("fails", fails)
        graph.add_node("counts", counts)
        graph.add_edge(START, "fails")
        graph.add_edge(START, "counts")
        compiled = graph.compile(checkpointer=saver)
        with pytest.raises(ConnectionError):
            compiled.invoke({"log": []}, thread())

        assert compiled.invoke(None, thread()) == {"log": ["counted", "works"]}
        assert sorted(ran) == ["counts", "fails", "fails"]

    def test_a_run_whose_owner_is_not_found_is_told_once(self, memory: Memory, caplog):
        saver = CommonplaceSaver(memory, owner=lambda _, run: run["userid"])  # a typo
        for name in ("t", "u"):
            line(saver, "a").invoke({"log": []}, thread(name, user_id="alice"))

        [told] = [message for message in caplog.messages if "without an owner" in message]
        assert "thread 't'" in told

    def test_a_thread_that_has_an_owner_is_not_told_to_have_none(self, memory: Memory, caplog):
        saver = CommonplaceSaver(memory, owner=lambda _, run: run["user_id"])
        graph = line(saver, "a")
        graph.invoke({"log": []}, thread("t", user_id="alice"))
        graph.update_state(thread("t"), {"log": ["by the program"]})
        assert "without an owner" not in caplog.text
        graph.invoke({"log": []}, thread("u"))

        [told] = [message for message in caplog.messages if "without an owner" in message]
        assert "thread 'u'" in told

    def test_one_may_go_back_and_take_another_way(self, saver: CommonplaceSaver):
        graph = line(saver, "a", "b")
        graph.invoke({"log": ["1"]}, thread())
        history = list(graph.get_state_history(thread()))
        before_b = next(one for one in history if one.next == ("b",))
        forked = graph.update_state(before_b.config, {"log": ["changed"]})
        answer = graph.invoke(None, forked)

        assert [one.values["log"] for one in history] == [["1", "a", "b"], ["1", "a"], ["1"], []]
        assert answer == {"log": ["1", "a", "changed", "b"]}
        assert graph.get_state(thread()).values == answer
        assert graph.get_state(history[0].config).values == {"log": ["1", "a", "b"]}
        assert graph.invoke(None, before_b.config) == {"log": ["1", "a", "b"]}

    def test_many_tasks_of_a_step_write_at_once_and_keep_their_order(self, saver: CommonplaceSaver):
        graph = StateGraph(Log)
        graph.add_node("spread", say("spread"))
        graph.add_node("one", lambda state: {"log": [state["word"]]})
        graph.add_edge(START, "spread")
        graph.add_conditional_edges(
            "spread", lambda state: [Send("one", {"word": str(n)}) for n in range(20)], ["one"]
        )
        compiled = graph.compile(checkpointer=saver)
        answer = compiled.invoke({"log": []}, thread())

        assert answer["log"] == ["spread", *map(str, range(20))]
        assert compiled.get_state(thread()).values == answer

    # -- subgraphs -----------------------------------------------------------------------------

    def outer(self, saver: CommonplaceSaver, inner: Any) -> Any:
        graph = StateGraph(Log)
        graph.add_node("inner", inner)
        graph.add_node("last", say("last"))
        graph.add_edge(START, "inner")
        graph.add_edge("inner", "last")
        graph.add_edge("last", END)
        return graph.compile(checkpointer=saver)

    def test_a_subgraph_resumes_inside_also_after_pruning(self, saver: CommonplaceSaver):
        graph = self.outer(saver, asking(None))
        graph.invoke({"log": []}, thread())
        saver.prune(["t"])
        waiting = graph.get_state(thread(), subgraphs=True)
        answer = graph.invoke(Command(resume="yes"), thread())

        assert waiting.tasks[0].state.values == {"log": ["ask first"]}
        assert answer["log"][-2:] == ["yes", "last"]
        assert namespaces(saver) == {"", "inner"}

    def test_pruning_drops_finished_subgraphs_and_keeps_those_that_last(
        self, saver: CommonplaceSaver
    ):
        nested = StateGraph(Log)
        nested.add_node("deep", line(None, "deepest"))
        nested.add_edge(START, "deep")
        finished = self.outer(saver, nested.compile())
        # `True` is LangGraph's way to say: the checkpointer of the outer graph.
        lasting = self.outer(saver, line(True, "kept"))
        for turn in ("1", "2"):
            for name, graph in (("finished", finished), ("lasting", lasting)):
                graph.invoke({"log": [turn]}, thread(name))
        before = [namespaces(saver, name) for name in ("finished", "lasting")]
        states = [finished.get_state(thread("finished")), lasting.get_state(thread("lasting"))]
        saver.prune(["finished", "lasting"])

        assert before == [{"", "inner"}, {"", "inner"}]
        assert namespaces(saver, "finished") == {""}
        assert namespaces(saver, "lasting") == {"", "inner"}
        assert len(list(saver.list(thread("finished")))) == 1
        assert len(list(saver.list(thread("lasting")))) == 2
        assert [
            finished.get_state(thread("finished")),
            lasting.get_state(thread("lasting")),
        ] == states

    # -- channels of changes -------------------------------------------------------------------

    @pytest.mark.parametrize("durability", ["sync", "exit"])
    @pytest.mark.parametrize("turns", [1, 2, 3, 4])
    def test_channels_of_changes_outlive_pruning_and_copying(
        self, saver: CommonplaceSaver, turns: int, durability: Durability
    ):
        graph = line(saver, "a", "b", schema=Delta)
        for turn in range(turns):
            graph.invoke({"log": [str(turn)]}, thread(), durability=durability)
        whole = graph.get_state(thread()).values
        before = len(list(saver.list(thread())))
        saver.prune(["t"])
        pruned = len(list(saver.list(thread())))
        saver.copy_thread("t", "copy")
        saver.delete_thread("t")

        assert whole == {"log": [word for turn in range(turns) for word in (str(turn), "a", "b")]}
        assert graph.get_state(thread("copy")).values == whole
        assert pruned <= min(before, 6)
        graph.invoke({"log": ["on"]}, thread("copy"))
        assert graph.get_state(thread("copy")).values["log"] == [*whole["log"], "on", "a", "b"]

    def test_channels_of_changes_outlive_the_deletion_of_runs(self, saver: CommonplaceSaver):
        graph = line(saver, "a", schema=Delta)
        for turn in ("1", "2", "3", "4"):
            graph.invoke({"log": [turn]}, {**thread(), "metadata": {"run_id": f"run {turn}"}})
        whole = graph.get_state(thread()).values
        before = len(list(saver.list(thread())))
        saver.delete_for_runs(["run 1", "run 2", "run 3"])

        assert graph.get_state(thread()).values == whole
        assert len(list(saver.list(thread()))) < before

    def test_changes_of_parallel_tasks_are_replayed_in_the_order_of_the_run(
        self, saver: CommonplaceSaver
    ):
        graph = StateGraph(Delta)
        for word in "zyxwv":
            graph.add_node(word, say(word))
            graph.add_edge(START, word)
        compiled = graph.compile(checkpointer=saver)
        answer = compiled.invoke({"log": ["in"]}, thread())

        assert compiled.get_state(thread()).values == answer
        assert sorted(answer["log"]) == sorted(["in", *"zyxwv"])

    def test_an_awaited_history_is_that_of_the_blocking_twin(self, saver: CommonplaceSaver):
        line(saver, "a", "b", "c", schema=Delta).invoke({"log": ["in"]}, thread())
        ask = {"config": thread(checkpoint_ns=""), "channels": ["log", "unknown"]}
        found = saver.get_delta_channel_history(**ask)

        assert asyncio.run(saver.aget_delta_channel_history(**ask)) == found
        assert found["unknown"] == {"writes": []}
        assert "seed" in found["log"] or found["log"]["writes"]


class TestRunsOnSqlite(RunContract):
    pass
