import subprocess
import sys
from enum import StrEnum
from types import SimpleNamespace

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime, ServerInfo

from commonplace.errors import InvalidScopeError
from commonplace.types import Scope
from commonplace_langgraph import (
    CommonplaceSaver,
    MemoryMiddleware,
    MemoryRetriever,
    Run,
    memory_tools,
    recall_hook,
    remember_node,
)
from commonplace_langgraph.turn_owner import scope_of, user_of

ASK = {"messages": [HumanMessage("I like tea")]}


def login(name):
    user = SimpleNamespace(identity=name)
    return ServerInfo(assistant_id="a", graph_id="g", user=user)


def config(**configurable):
    return {"configurable": configurable}


@pytest.mark.parametrize(
    ("run", "user"),
    [
        (Run(context={"user_id": "alice"}), "alice"),
        (Run(context=SimpleNamespace(user_id="alice")), "alice"),
        (Run(config=config(user_id="alice")), "alice"),
        (Run(context={"user_id": "alice"}, config=config(user_id="bob")), "alice"),
        (Run(server_info=login("alice"), context={"user_id": "bob"}), "alice"),
        (Run(server_info=login("alice"), config=config(user_id="bob")), "alice"),
        (Run(server_info=ServerInfo("a", "g"), context={"user_id": "alice"}), "alice"),
    ],
)
def test_a_login_counts_before_what_the_client_says(run, user):
    assert user == user_of(run)


@pytest.mark.parametrize(
    "run",
    [
        Run(),
        Run(context={"user": "alice"}),
        Run(config={"configurable": None}),
        Run(server_info=login(None), context={"user_id": "bob"}),
    ],
)
def test_a_run_that_names_nobody_has_no_scope(run):
    with pytest.raises(InvalidScopeError):
        scope_of(run, user_of, None)


def test_a_run_without_an_id_reaches_no_memory(memory, make, model, caplog):
    agent = make(model(), MemoryMiddleware(memory, user_id=lambda run: None))
    for _ in range(2):
        out = agent.invoke(ASK)

    assert out["messages"][-1].text == "All right."
    assert memory.list(Scope(agent_id="nobody")).records == ()
    assert len([one for one in caplog.records if "scope failed" in one.message]) == 1


class User(StrEnum):
    """A user as an application may name one."""

    ALICE = "alice"


IDS = [
    (42, "42"),
    ("alice@example.org", "alice@example.org"),
    (User.ALICE, "alice"),
    (0, "0"),
    (" alice ", None),
    ("Zoe\u0308", None),
    ("*", None),
    ("a" * 300, None),
    ("a\nb", None),
    ("", None),
    (True, None),
    (["alice"], None),
    (b"alice", None),
]


@pytest.mark.parametrize("by", ["fixed", "function", "context", "config", "login"])
@pytest.mark.parametrize(("user", "stored"), IDS)
def test_an_id_is_stored_as_text_or_refused_before_the_model_is_called(
    memory, make, model, texts, by, user, stored
):
    scripted, source = model(), user if by == "fixed" else lambda run: user
    given = {"user_id": source} if by in ("fixed", "function") else {}
    context = {"user_id": user} if by == "context" else None
    where = config(user_id=user) if by == "config" else {}

    def turn():
        middleware = MemoryMiddleware(memory, **given)
        if by == "login":
            middleware.before_agent(ASK, Runtime(server_info=login(user)))
            middleware = MemoryMiddleware(memory, user_id=user)
        make(scripted, middleware, context_schema=None).invoke(ASK, where, context=context)

    if stored is None:
        with pytest.raises(InvalidScopeError):
            turn()
        assert scripted.seen == []
    else:
        turn()
        assert texts(stored) == ["I like tea", "All right."]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("part", ["hook", "node", "tools", "retriever", "saver"])
@pytest.mark.parametrize(("user", "stored"), IDS[:5])
async def test_an_id_means_the_same_in_every_part(
    memory, make, model, call, texts, is_async, part, user, stored
):
    where = config(user_id=user, thread_id="t1")
    question = {"messages": [HumanMessage("I like tea", id="1")]}
    add = call("add_memory", thinking="", content=["I like tea"])
    work, given = {
        "hook": lambda: (recall_hook(memory), question),
        "node": lambda: (remember_node(memory), question),
        "tools": lambda: (make(model(add), tools=memory_tools(memory)), question),
        "retriever": lambda: (MemoryRetriever(memory=memory), "tea"),
        "saver": lambda: (
            make(
                model(), checkpointer=CommonplaceSaver(memory, owner=lambda _, run: run["user_id"])
            ),
            question,
        ),
    }[part]()

    async def run():
        return await work.ainvoke(given, where) if is_async else work.invoke(given, where)

    if stored is None:
        with pytest.raises(InvalidScopeError):
            await run()
    else:
        if part in ("hook", "retriever"):
            memory.add("Somebody likes tea", Scope(user_id=stored))
        found = await run()
        if part == "saver":
            receipt = memory.forget(Scope(user_id=stored, session_id="t1"))
            assert receipt.removed["checkpoints.threads"] == 1
        else:
            assert "likes tea" in str(found) or texts(stored) == ["I like tea"]


def test_a_function_for_the_agent_that_names_none_does_not_open_all_agents():
    with pytest.raises(InvalidScopeError, match="agent_id"):
        scope_of(Run(), "alice", lambda run: None)


def test_functions_are_asked_in_each_run(memory, make, model, texts):
    middleware = MemoryMiddleware(memory, user_id=lambda run: run.configurable["who"])
    agent = make(model(), middleware, context_schema=None)
    for who in ("alice", "bob"):
        agent.invoke({"messages": [HumanMessage(f"I am {who}")]}, config(who=who))

    assert texts("alice")[0] == "I am alice"
    assert texts("bob")[0] == "I am bob"


def test_a_function_that_fails_is_told_to_the_log_and_the_answer_comes(memory, make, model, caplog):
    agent = make(model(), MemoryMiddleware(memory, user_id=lambda run: run.context["user"]))

    assert agent.invoke(ASK)["messages"][-1].text == "All right."
    assert "memory scope failed" in caplog.text


@pytest.mark.parametrize("name", ["t" * 300, "a\nb", "*", " x", 7])
def test_any_thread_id_makes_a_session_of_its_own(name):
    scope = scope_of(Run(config=config(thread_id=name)), "alice", None)
    other = scope_of(Run(config=config(thread_id=f"{name}!")), "alice", None)

    assert scope.user_id == "alice"
    assert scope.session_id is not None
    assert scope.session_id != other.session_id


@pytest.mark.parametrize("given", [{}, config(thread_id=None), config(thread_id="")])
def test_a_run_without_a_thread_is_in_no_session(given):
    assert scope_of(Run(config=given), "alice", "bot") == Scope(user_id="alice", agent_id="bot")


def test_hooks_see_the_login_of_a_server(memory, model):
    middleware = MemoryMiddleware(memory)
    runtime = Runtime(context={"user_id": "bob"}, server_info=login("alice"))
    turn = middleware.before_agent({"messages": [HumanMessage("hi")]}, runtime)

    assert turn["commonplace_turn"]["owner"] == Scope(user_id="alice").key


@pytest.mark.parametrize("missing", ["langchain", "langgraph", "langchain_core"])
def test_a_part_says_what_to_install_when_its_library_is_missing(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import commonplace_langgraph as one; "
    run = subprocess.run(
        [sys.executable, "-c", code + "print('imported'); one.MemoryMiddleware"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert run.stdout.strip() == "imported"
    assert run.returncode == 1
    assert "pip install 'commonplace-memory[langgraph]'" in run.stderr


def test_importing_the_package_imports_no_framework():
    code = (
        "import sys, commonplace_langgraph; "
        "print([one for one in ('langchain', 'langchain_core', 'langgraph') if one in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )

    assert run.stdout.strip() == "[]"


def test_every_public_name_is_there_and_no_other():
    import commonplace_langgraph

    assert all(getattr(commonplace_langgraph, one) for one in commonplace_langgraph.__all__)
    assert not hasattr(commonplace_langgraph, "Memory")
