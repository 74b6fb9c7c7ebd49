"""What a turn left unanswered is never the words of another user who asks in the same thread."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from commonplace import Memory, Scope
from commonplace_langgraph import MemoryMiddleware, recall_hook, remember_node
from commonplace_langgraph.testing import ScriptedModel


class Failing(ScriptedModel):
    """A model that fails for as long as `fails` says."""

    fails: bool = True

    def _generate(self, *args: Any, **options: Any) -> Any:
        if self.fails:
            raise RuntimeError("no model")
        return super()._generate(*args, **options)


@pytest.fixture
def model() -> Failing:
    return Failing("Noted.")


def _config(user: str | None) -> Any:
    named = {} if user is None else {"user_id": user}
    return {"configurable": {"thread_id": "shared", **named}}


def _say(graph: Any, user: str | None, text: str, model: Failing, *, fails: bool = False) -> None:
    model.fails = fails
    if fails:
        with pytest.raises(RuntimeError, match="no model"):
            graph.invoke({"messages": text}, _config(user))
    else:
        graph.invoke({"messages": text}, _config(user))


def _said(memory: Memory, user: str) -> list[str]:
    memory.flush()
    found = memory.list(Scope(user_id=user)).records
    return sorted(one.text for one in found if one.role == "user")


def _agent(memory: Memory, model: Failing, **options: Any) -> Any:
    middleware = [MemoryMiddleware(memory)]
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver(), **options)


def _graph(memory: Memory, model: Failing) -> Any:
    chain = recall_hook(memory) | model
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [chain.invoke(state)]})
    builder.add_node("remember", remember_node(memory))
    builder.add_edge(START, "model")
    builder.add_edge("model", "remember")
    return builder.compile(checkpointer=InMemorySaver())


def _nested(memory: Memory, model: Failing) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", create_agent(model, middleware=[MemoryMiddleware(memory)]))
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("make", [_agent, _graph, _nested])
def test_what_failed_turns_of_others_left_is_not_the_next_users(
    make: Any, memory: Memory, model: Failing
) -> None:
    graph = make(memory, model)
    _say(graph, "alice", "My salary is 5000.", model, fails=True)
    _say(graph, "carol", "I like coffee.", model, fails=True)

    _say(graph, "bob", "I like tea.", model)

    assert _said(memory, "bob") == ["I like tea."]
    assert "I like tea." not in _said(memory, "alice") + _said(memory, "carol")


@pytest.mark.parametrize("make", [_agent, _graph])
def test_what_nobody_known_asked_is_not_the_next_users(
    make: Any, memory: Memory, model: Failing
) -> None:
    graph = make(memory, model)
    _say(graph, None, "My salary is 5000.", model, fails=True)

    _say(graph, "bob", "I like tea.", model)

    assert _said(memory, "bob") == ["I like tea."]


def test_what_an_interrupted_turn_left_is_not_the_next_users_of_another_process(
    memory: Memory, model: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = InMemorySaver()
    for user, text in (("alice", "My salary is 5000."), ("carol", "I like coffee.")):
        monkeypatch.setattr("commonplace_langgraph.turn._caches", {})
        stopped = create_agent(
            model,
            middleware=[MemoryMiddleware(memory)],
            checkpointer=kept,
            interrupt_before=["model"],
        )
        _say(stopped, user, text, model)
    monkeypatch.setattr("commonplace_langgraph.turn._caches", {})
    agent = create_agent(model, middleware=[MemoryMiddleware(memory)], checkpointer=kept)

    _say(agent, "bob", "I like tea.", model)

    assert _said(memory, "bob") == ["I like tea."]


@pytest.mark.parametrize("make", [_agent, _graph])
def test_what_a_user_left_unanswered_himself_stays_his(
    make: Any, memory: Memory, model: Failing
) -> None:
    graph = make(memory, model)
    _say(graph, "alice", "My salary is 5000.", model, fails=True)

    _say(graph, "alice", "Per month.", model)

    assert _said(memory, "alice") == ["My salary is 5000.", "Per month."]
