"""Graphs and swarms, and agents that call one another: whose words an agent gets.

A node of a graph or swarm gets scaffolding around a task, and an agent that is used as a tool gets
what a model wrote. None of it is the user's. The original task is, once, when the run ends, with
the answer of the last agent.

The framework tells an agent nothing of who calls it. A turn of the outer agent does, if that has a
plugin, and so does a graph or swarm once it is known: both stand in context variables, which tasks
inherit. Otherwise the call stack is read: a tool executor, a graph or a swarm stands in it. A tool
that is a plain function runs in a thread of its own, with an empty stack; there only the outer
agent's turn, or its `invocation_state` handed on, tells.
"""

import uuid
import weakref
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from strands import Agent
from strands.agent import AgentResult
from strands.hooks import AfterMultiAgentInvocationEvent, BeforeNodeCallEvent
from strands.multiagent import MultiAgentBase

from commonplace import Message, Scope
from commonplace.agents import (
    AgentMemory,
    StackRule,
    UnknownCallerError,
    WarnOnce,
    clean,
    in_session,
    read_stack,
    to_messages,
)

from .convert import answer_of, text_of
from .turn import calling_turn, conversation_id, is_torn_down

_TOOL_EXECUTORS = "strands.tools.executors"
_CALLERS = StackRule(
    checked_with="strands-agents 1.52 to 1.62",
    modules=(_TOOL_EXECUTORS,),
    caller="strands.",
)
_warn = WarnOnce("commonplace_strands")


@dataclass(slots=True, kw_only=True, eq=False)
class MultiAgentRun:
    """One task of a graph or swarm, also when interrupts cut it into several invocations.

    Attributes:
        state: a reference to the framework's state of it; another task has another.
        run_id: unique among all runs.
        task: what the user asked; empty if that cannot be told, None before the first node.
        owners: the memories to write to, one for each memory and user.
        answers: by the id of an agent, what its model answered last.
    """

    state: "weakref.ref[Any]"
    run_id: str
    task: str | None = None
    owners: dict[tuple[int, str | None], tuple[AgentMemory, Scope]] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)

    def take_task(self, given: str) -> str:
        """Return the user's task for a node that is given a text; empty if it cannot be told.

        A task that a node does not get word by word was redacted.
        """
        if self.task is None:
            self.task = _task_of(self.state())
        if given and self.task not in given:
            self.task = ""
        return self.task

    def join(self, memory: AgentMemory, scope: Scope) -> None:
        """Have the run written to a memory, for the first scope of each of its users."""
        key = id(memory.lazy), scope.user_id or scope.agent_id
        self.owners.setdefault(key, (memory, scope))

    def take_over(
        self, inner: "MultiAgentRun", ended: MultiAgentBase, outer: MultiAgentBase
    ) -> None:
        """Take over a run within this one that began before this one was known."""
        for memory, scope in inner.owners.values():
            is_own = scope == in_session(scope.owner, conversation_id(ended))
            moved = in_session(scope.owner, conversation_id(outer)) if is_own else scope
            self.join(memory, moved)
            if (moved, self.run_id) != (scope, inner.run_id):
                memory.withdraw(inner.messages(), scope)
        self.answers |= inner.answers
        if inner.task:
            self.take_task(_task_of(inner.state()))
        else:
            self.task = ""

    def withdraw(self) -> None:
        """Take back the task: a tool gave it, which cannot be seen from within a node."""
        for memory, scope in self.owners.values():
            memory.withdraw(self.messages(), scope)

    async def accept(self, memory: AgentMemory) -> None:
        """Accept the user's task in the scopes that `join` gave for a memory."""
        for owner, scope in list(self.owners.values()):
            if owner.lazy is memory.lazy:
                await owner.aaccept(self.messages(), scope)

    def messages(self, answer: str = "") -> list[Message]:
        """Make the messages of the run; their ids are the same each time."""
        if not self.task:
            return []
        task = to_messages(self.task, "user", "", f"{self.run_id}:task")
        return task + to_messages(answer, "assistant", "", f"{self.run_id}:answer")


_runs: WeakKeyDictionary[MultiAgentBase, MultiAgentRun] = WeakKeyDictionary()
_watched: WeakKeyDictionary[MultiAgentBase, bool] = WeakKeyDictionary()


def run_of(orchestrator: MultiAgentBase, run_id: str | None = None) -> MultiAgentRun | None:
    """Find or begin the run of a graph or swarm; None for a kind that does not announce its end.

    Args:
        run_id: of a new run, if it goes on with one of another process.
    """
    state, hooks = (getattr(orchestrator, name, None) for name in ("state", "hooks"))
    if state is None or hooks is None:
        return None
    run = _runs.get(orchestrator)
    if run is None or run.state() is not state:
        run = MultiAgentRun(state=weakref.ref(state), run_id=run_id or uuid.uuid4().hex)
        _runs[orchestrator] = run
    if orchestrator not in _watched:
        _watched[orchestrator] = True
        hooks.add_callback(BeforeNodeCallEvent, _begin_node)
        hooks.add_callback(AfterMultiAgentInvocationEvent, _end_run)
    return run


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls an agent, if it is not a program that hands on what a human said.

    Attributes:
        is_tool: it is called by a tool of another agent.
        orchestrator: the outermost graph or swarm around it.
    """

    is_tool: bool = False
    orchestrator: MultiAgentBase | None = None

    def __bool__(self) -> bool:
        return self.is_tool or self.orchestrator is not None


def caller_of(called: Any, state: Mapping[str, Any]) -> Caller:
    """Tell who calls an agent, graph or swarm, from within one of its hooks; falsy for a program.

    A graph or swarm that nobody calls is its own `orchestrator`. Where it cannot be told who calls,
    because the framework has changed, a tool does.
    """
    if calling_turn() is not None:
        return Caller(is_tool=True)
    if (call := _node_call_of(called)) is not None:
        return Caller(orchestrator=call.outermost)
    orchestrator = None
    try:
        for frame in read_stack(_CALLERS):
            if frame.module.startswith(_TOOL_EXECUTORS):
                return Caller(is_tool=True)
            if isinstance(owner := frame.variables.get("self"), MultiAgentBase):
                orchestrator = owner
    except UnknownCallerError as error:
        _warn("caller", error)
        return Caller(is_tool=True)
    if orchestrator is not None:
        call = _node_call_of(orchestrator)
        return Caller(orchestrator=orchestrator if call is None else call.outermost)
    return Caller(is_tool=_is_handed_on(called, state))


def _is_handed_on(agent: Any, state: Mapping[str, Any]) -> bool:
    """Return whether a state is that of another agent, which waits for its tools."""
    outer, cycle = state.get("agent"), state.get("event_loop_cycle_trace")
    is_running = cycle is not None and getattr(cycle, "end_time", 0) is None
    if outer is agent or not isinstance(outer, Agent) or not is_running or not outer.messages:
        return False
    return any("toolUse" in block for block in outer.messages[-1]["content"])


# -- nodes that run ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _NodeCall:
    """A call of a node.

    Attributes:
        executor: the agent, graph or swarm that is called.
        outermost: the outermost graph or swarm around it that is known.
        outer: the call of the graph or swarm that calls it; None if that is no node, or unknown.
    """

    executor: Any
    outermost: MultiAgentBase
    outer: "_NodeCall | None"


_node_call: ContextVar[_NodeCall | None] = ContextVar("commonplace_strands_node", default=None)


def _node_call_of(executor: Any) -> _NodeCall | None:
    """Find the call of a node around here whose executor this is."""
    call = _node_call.get()
    while call is not None and call.executor is not executor:
        call = call.outer
    return call


def _begin_node(event: BeforeNodeCallEvent) -> None:
    node = getattr(event.source, "nodes", {}).get(event.node_id)
    outermost = caller_of(event.source, event.invocation_state or {}).orchestrator
    outer = _node_call_of(event.source)
    _node_call.set(_NodeCall(getattr(node, "executor", None), outermost or event.source, outer))


# -- the end of a run ----------------------------------------------------------------------------


async def _end_run(event: AfterMultiAgentInvocationEvent) -> None:
    outermost = caller_of(event.source, event.invocation_state or {}).orchestrator
    _node_call.set(_node_call_of(event.source))
    run = _runs.get(event.source)
    if run is None:
        return
    state = run.state()
    status = _status_of(state)
    if status != "interrupted":
        del _runs[event.source]
    if outermost is not event.source:
        if outermost is None:
            run.withdraw()
            return
        outer_run = run_of(outermost, run.run_id)
        if outer_run is None:
            return
        outer_run.take_over(run, event.source, outermost)
        if not is_torn_down():
            return
        run, status = outer_run, ""  # whose end may have come before: its task is stored here
    for memory, scope in run.owners.values():
        with memory.warn.catch("write"):  # a hook that raises would lose the answer
            messages = run.messages(_final_answer(run, state) if status == "completed" else "")
            if is_torn_down():
                memory.write_later(messages, scope)
            else:
                await memory.awrite(messages, scope)


def _status_of(state: Any) -> str:
    status = getattr(state, "status", None) or getattr(state, "completion_status", None)
    return str(getattr(status, "value", status))


def _final_answer(run: MultiAgentRun, state: Any) -> str:
    """Return what the last agent answered; empty if several did, or it cannot be told."""
    node = _last_node(state)
    if node is None:
        return ""
    if id(node.executor) in run.answers:
        return run.answers[id(node.executor)]
    result = getattr(state.results.get(node.node_id), "result", None)
    if hasattr(result, "results"):  # of a graph or swarm within
        return _final_answer(run, result)
    return answer_of(result) if isinstance(result, AgentResult) else ""


def _last_node(state: Any) -> Any:
    """Find the node whose answer is that of the whole; None if there is none, or several."""
    history = getattr(state, "node_history", None)
    if history is not None:  # of a swarm, where one follows the other
        return history[-1] if history else None
    order: Sequence[Any] = getattr(state, "execution_order", ())
    last = {id(node): place for place, node in enumerate(order)}
    went_on = {
        id(node)
        for node, successor in getattr(state, "edges", ())
        if id(node) in last and last.get(id(successor), -1) > last[id(node)]
    }
    final = [node for place, node in enumerate(order) if last[id(node)] == place]
    final = [node for node in final if id(node) not in went_on]
    return final[0] if len(final) == 1 else None


def _task_of(state: Any) -> str:
    task = getattr(state, "task", None)
    if isinstance(task, str):
        return clean(task)
    return text_of({"content": task}) if isinstance(task, list) else ""
