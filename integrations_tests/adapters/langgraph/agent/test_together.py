"""Store, saver and middleware on one memory in one graph: each sees what the others keep."""

import pytest

from commonplace import Policy, Scope
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore, MemoryMiddleware

ALICE = Scope(user_id="alice")
HERS = ("memories", "alice")


@pytest.fixture
def graph(memory, make, model):
    """Make an agent on one memory, with its model; `given` is for the middleware."""

    def build(**given):
        chat = model()
        agent = make(
            chat,
            MemoryMiddleware(memory, **given),
            store=CommonplaceStore(memory),
            checkpointer=CommonplaceSaver(
                memory, owner=lambda thread, run: Scope(user_id=run["user_id"])
            ),
        )
        return agent, chat

    return build


def config_of(user, thread="t"):
    return {"configurable": {"thread_id": f"{user} {thread}", "user_id": user}}


def ask(agent, context, text, user="alice", thread="t"):
    agent.invoke({"messages": [("user", text)]}, config_of(user, thread), context=context(user))


def test_what_is_put_in_the_store_an_agent_recalls_and_its_turns_are_no_items(graph, context):
    agent, chat = graph()
    ask(agent, context, "I keep bees")
    assert agent.store.search(HERS, query="bees") == agent.store.search(HERS) == []

    agent.store.put((*HERS, "notes"), "k", {"drink": {"name": "tea"}, "hot": True})
    agent.store.put(HERS, "secret", {"content": "The drink is a secret"}, index=False)
    ask(agent, context, "Which drink is hot?", thread="other")
    assert ', today] {"drink": {"name": "tea"}, "hot": true}' in chat.shown()
    assert "secret" not in chat.shown()
    ask(agent, context, "Which drink is hot?", user="bob")
    assert "tea" not in chat.shown()


@pytest.mark.parametrize(("by_agent", "is_shown"), [(True, False), (False, True)])
def test_an_agent_with_an_id_recalls_what_is_put_for_no_agent_if_it_is_to(
    graph, context, by_agent, is_shown
):
    agent, chat = graph(agent_id="helper", policy=Policy(scope_search_by_agent=by_agent))
    agent.store.put(HERS, "k", {"content": "Alice drinks tea"})
    ask(agent, context, "What does Alice drink?")

    assert ("Alice drinks tea" in chat.shown()) is is_shown


def test_a_thread_belongs_to_who_is_named_in_the_context_alone(memory, graph, context):
    agent, _ = graph()
    config = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [("user", "My code is 4711")]}, config, context=context("alice"))
    assert agent.get_state(config).values

    assert memory.forget(ALICE).complete
    assert not agent.get_state(config).values


def test_forgetting_somebody_takes_turns_items_and_threads_at_once(memory, graph, context):
    agent, _ = graph()
    for user in ("alice", "bob"):
        ask(agent, context, "I keep bees", user=user)
        agent.store.put(("memories", user), "k", {"a": "one", "b": "two"}, index=["a", "b"])
    receipt = memory.forget(ALICE)

    assert not any(receipt.left.values())
    assert agent.store.search(HERS) == agent.store.search(HERS, query="bees") == []
    assert agent.store.list_namespaces(prefix=HERS) == []
    assert agent.get_state(config_of("alice")).values == {}
    assert agent.store.get(("memories", "bob"), "k").value == {"a": "one", "b": "two"}
    assert len(agent.get_state(config_of("bob")).values["messages"]) == 2


@pytest.mark.parametrize("with_agent", [False, True])
def test_forgetting_a_session_takes_the_turns_and_the_states_of_that_thread(
    memory, graph, context, with_agent
):
    agent, _ = graph(agent_id="helper" if with_agent else None)
    for thread in ("t", "other"):
        ask(agent, context, f"I keep bees in {thread}", thread=thread)
    agent.checkpointer.copy_thread("alice t", "alice copy")
    receipt = memory.forget(Scope(user_id="alice", session_id="alice t"))

    assert receipt.removed["checkpoints.threads"] == 1
    assert not any(receipt.left.values())
    assert agent.get_state(config_of("alice")).values == {}
    assert {one.scope.session_id for one in memory.list(ALICE).records} == {"alice other"}
    assert len(agent.get_state(config_of("alice", "other")).values["messages"]) == 2

    ask(agent, context, "I keep cows", thread="copy")  # the copy is hers, too
    assert memory.forget(Scope(user_id="alice", session_id="alice copy")).removed[
        "checkpoints.threads"
    ]
    assert agent.get_state(config_of("alice", "copy")).values == {}
