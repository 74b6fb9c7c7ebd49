"""One person, one id: what becomes of a user's id is the same in every adapter."""

import enum
import functools
import logging
from typing import Any

import pytest
from agents import RunConfig, Runner
from agentscope.message import UserMsg
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from strands import Agent

from commonplace import InvalidScopeError, Policy, Scope
from commonplace.agents import to_scope
from commonplace_agentscope import CommonplaceMiddleware
from commonplace_langgraph import MemoryMiddleware
from commonplace_mem0 import AsyncMemory, Memory
from commonplace_mem0.exceptions import ValidationError
from commonplace_openai_agents import MemoryHooks
from commonplace_strands import MemoryPlugin

from .langgraph.agent.conftest import Context, Scripted
from .strands.conftest import ScriptedModel
from .test_agentscope import make
from .test_openai_agents import agent_of

FACT = "My cat is called Miso."
QUESTION = "What is the name of my cat?"


class Who(enum.StrEnum):
    ALICE = "alice"


class Number(enum.IntEnum):
    SEVEN = 7


class Plain(enum.Enum):
    ALICE = "alice"


TAKEN = {
    "integer": (42, "42"),
    "negative integer": (-1, "-1"),
    "e-mail": ("Alice+Cat@example.com", "Alice+Cat@example.com"),
    "StrEnum": (Who.ALICE, "alice"),
    "IntEnum": (Number.SEVEN, "7"),
    "Enum": (Plain.ALICE, "alice"),
    "inner space": ("Alice Liddell", "Alice Liddell"),
    "Chinese": ("爱丽丝", "爱丽丝"),
}
REFUSED = {
    "outer spaces": " alice ",
    "NFD": "E\u0301lise",
    "wildcard": "*",
    "300 characters": "x" * 300,
    "control character": "ali\nce",
    "invisible character": "ali\u200bce",
    "bool": True,
    "list": ["alice"],
    "float": 42.0,
    "bytes": b"alice",
}


def table(rows: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("given", rows.values(), ids=rows.keys())


def words(given: Any) -> str:
    """Return what is said of an id that is refused."""
    with pytest.raises(InvalidScopeError) as caught:
        to_scope(given)
    return str(caught.value)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a turn wait for its memories as long as a machine under load may need."""
    begin = Policy.__init__

    @functools.wraps(begin)
    def patient(self: Policy, *args: Any, **given: Any) -> None:
        begin(self, *args, **{"recall_timeout": 30.0} | given)

    monkeypatch.setattr(Policy, "__init__", patient)


# -- agents ------------------------------------------------------------------------------------


class Driver:
    """An agent with a memory, whose user is known from the start or with each turn.

    Args:
        ids: `user_id` and `agent_id` that are fixed.
    """

    def __init__(self, memory: Any, **ids: Any) -> None:
        self.models: list[Any] = []
        self.prepare(memory, ids)

    @property
    def calls(self) -> int:
        return sum(len(one.seen) for one in self.models)

    def prepare(self, memory: Any, ids: dict[str, Any]) -> None:
        raise NotImplementedError

    async def turn(self, text: str, **user: Any) -> str:
        """Take one turn in a new conversation; return what the model was shown.

        Args:
            user: its `user_id`, where that is not fixed.
        """
        raise NotImplementedError


class AgentScope(Driver):
    log = "commonplace_agentscope"

    def prepare(self, memory, ids):
        self.given: Any = None
        ids.setdefault("user_id", lambda _agent: self.given)
        self.middleware = CommonplaceMiddleware(client=memory, **ids)

    async def turn(self, text, **user):
        self.given = user.get("user_id")
        agent = await make(self.middleware)
        self.models.append(agent.model)
        await agent.reply(UserMsg("user", text))
        return agent.model.shown()


class LangGraph(Driver):
    log = "commonplace_langgraph"

    def prepare(self, memory, ids):
        self.middleware = MemoryMiddleware(memory, **ids)

    async def turn(self, text, **user):
        model = Scripted(script=[], seen=[], tools=[])
        self.models.append(model)
        agent = create_agent(model, middleware=[self.middleware], context_schema=Context)
        context = Context(**user) if user else None
        await agent.ainvoke({"messages": [HumanMessage(text)]}, context=context)
        return model.shown()


class LangGraphConfig(LangGraph):
    async def turn(self, text, **user):
        model = Scripted(script=[], seen=[], tools=[])
        self.models.append(model)
        agent = create_agent(model, middleware=[self.middleware])
        asked = {"messages": [HumanMessage(text)]}
        await agent.ainvoke(asked, {"configurable": user})
        return model.shown()


class LangGraphThreads(LangGraph):
    async def turn(self, text, **user):
        model = Scripted(script=[], seen=[], tools=[])
        self.models.append(model)
        agent = create_agent(model, middleware=[self.middleware])
        agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": user})
        return model.shown()


class Strands(Driver):
    log = "commonplace_strands"

    def prepare(self, memory, ids):
        self.plugin = MemoryPlugin(memory, **ids)

    async def turn(self, text, **user):
        model = ScriptedModel()
        self.models.append(model)
        agent = Agent(model=model, plugins=[self.plugin], callback_handler=None)
        await agent.invoke_async(text, invocation_state=dict(user))
        return model.shown()


class OpenAIAgents(Driver):
    log = "commonplace_openai_agents"

    def prepare(self, memory, ids):
        self.middleware = MemoryHooks(memory, **ids)

    async def turn(self, text, **user):
        agent = agent_of(self.middleware)
        self.models.append(agent.model)
        quiet = RunConfig(tracing_disabled=True)
        await Runner.run(agent, text, context=user, hooks=self.middleware, run_config=quiet)
        return agent.model.shown


DRIVERS = [AgentScope, LangGraph, LangGraphConfig, LangGraphThreads, OpenAIAgents, Strands]
every_agent = pytest.mark.parametrize("driver", DRIVERS, ids=lambda one: one.__name__)


@every_agent
@table(TAKEN)
async def test_the_id_of_a_turn_is_one_person_however_it_is_written(memory, driver, given):
    user, name = given
    agent = driver(memory)
    await agent.turn(FACT, user_id=user)

    assert {name} == {one.user_id for one in memory.admin.list_scopes()}
    assert FACT in [one.text for one in memory.list(Scope(user_id=name)).records]
    assert "Miso" in await agent.turn(QUESTION, user_id=name)
    assert {name} == {one.user_id for one in memory.admin.list_scopes()}


@every_agent
@table(TAKEN)
async def test_a_fixed_id_is_one_person_however_it_is_written(memory, driver, given):
    user, name = given
    await driver(memory, user_id=user).turn(FACT)

    assert {name} == {one.user_id for one in memory.admin.list_scopes()}
    assert "Miso" in await driver(memory, user_id=name).turn(QUESTION)


@every_agent
@table(REFUSED)
async def test_an_id_that_comes_with_a_turn_is_refused_before_the_model_is_called(
    memory, driver, given
):
    agent = driver(memory)
    with pytest.raises(InvalidScopeError) as caught:
        await agent.turn(FACT, user_id=given)

    assert words(given) == str(caught.value)
    assert 0 == agent.calls
    assert [] == list(memory.admin.list_scopes())
    assert "Miso" not in await agent.turn(QUESTION, user_id="bob")  # it goes on with the next


@every_agent
@table(REFUSED)
def test_a_fixed_id_is_refused_where_it_is_given(memory, driver, given):
    with pytest.raises(InvalidScopeError) as caught:
        driver(memory, user_id=given)

    assert words(given) == str(caught.value)


@every_agent
async def test_who_is_not_known_has_no_memory_and_one_line_in_the_log(memory, driver, caplog):
    agent = driver(memory)
    with caplog.at_level(logging.WARNING, driver.log):
        for _ in range(2):
            await agent.turn(FACT, user_id=None)

    assert 2 == agent.calls
    assert [] == list(memory.admin.list_scopes())
    assert 1 == len([one for one in caplog.records if one.name == driver.log])


AGENTS = [AgentScope, LangGraph, OpenAIAgents, Strands]
every_adapter = pytest.mark.parametrize("driver", AGENTS, ids=lambda one: one.__name__)


@every_adapter
@table(TAKEN)
async def test_an_agent_has_one_id_too(memory, driver, given):
    agent, name = given
    await driver(memory, user_id="tom", agent_id=agent).turn(FACT)

    assert {("tom", name)} == {(one.user_id, one.agent_id) for one in memory.admin.list_scopes()}


@every_adapter
@table(REFUSED)
def test_the_id_of_an_agent_is_refused_where_it_is_given(memory, driver, given):
    with pytest.raises(InvalidScopeError) as caught:
        driver(memory, user_id="tom", agent_id=given)

    assert words(given).replace("user_id=", "agent_id=", 1) == str(caught.value)


# -- code for mem0 -----------------------------------------------------------------------------

CALLS = {
    "add": (["add", FACT], {"infer": False}),
    "search": (["search", QUESTION], {}),
    "get_all": (["get_all"], {}),
    "delete_all": (["delete_all"], {}),
}
# It normalises what is not in the form NFC, and tells that in a warning.
REFUSED_BY_MEM0 = {name: given for name, given in REFUSED.items() if name != "NFD"}
IN_FILTERS = {name: CALLS[name] for name in ("add", "search", "get_all")}


@pytest.fixture(params=[Memory, AsyncMemory], ids=["Memory", "AsyncMemory"])
def mem0(request, memory):
    """Make a call of code for mem0, awaited or not."""
    face = request.param(core=memory)

    async def call(name, *args, **options):
        answer = getattr(face, name)(*args, **options)
        return await answer if request.param is AsyncMemory else answer

    return call


def texts(answer):
    return [one["memory"] for one in answer["results"]]


@pytest.mark.parametrize("name", ["user_id", "agent_id"])
@table(TAKEN)
async def test_code_for_mem0_knows_one_person_however_the_id_is_written(mem0, memory, given, name):
    user, text = given
    await mem0("add", FACT, infer=False, **{name: user})

    assert [text] == [
        one.user_id if name == "user_id" else one.agent_id for one in memory.admin.list_scopes()
    ]
    for one in (user, text):
        assert [FACT] == texts(await mem0("get_all", **{name: one}))
        assert [FACT] == texts(await mem0("get_all", filters={name: one}))
        assert [FACT] == texts(await mem0("search", QUESTION, **{name: one}))
        assert [FACT] == texts(await mem0("search", QUESTION, filters={name: one}))
        both = {name: text, "OR": [{name: {"eq": one}}, {name: ["nobody"]}]}
        assert [FACT] == texts(await mem0("get_all", filters=both))
        assert [FACT] == texts(await mem0("get_all", **{name: one}, filters={name: text}))
    await mem0("delete_all", **{name: user})
    assert [] == list(memory.admin.list_scopes())


@pytest.mark.parametrize("name", ["user_id", "agent_id"])
@pytest.mark.parametrize(("call", "options"), CALLS.values(), ids=CALLS.keys())
@table(REFUSED_BY_MEM0)
async def test_code_for_mem0_is_refused_an_id(mem0, memory, given, name, call, options):
    memory.add(FACT, Scope(user_id="alice"))
    with pytest.raises(ValidationError) as caught:
        await mem0(*call, **{name: given}, **options)

    assert words(given).replace("user_id=", f"{name}=", 1) == str(caught.value)
    assert [Scope(user_id="alice")] == list(memory.admin.list_scopes())


@pytest.mark.parametrize(("call", "options"), IN_FILTERS.values(), ids=IN_FILTERS.keys())
@table(REFUSED_BY_MEM0)
async def test_code_for_mem0_is_refused_an_id_in_filters(mem0, memory, given, call, options):
    with pytest.raises(ValidationError) as caught:
        await mem0(*call, filters={"user_id": given}, **options)

    assert words(given) == str(caught.value)
    assert [] == list(memory.admin.list_scopes())


@pytest.mark.parametrize("given", [" alice ", True], ids=["spaces", "bool"])
async def test_code_for_mem0_is_refused_an_id_inside_a_filter(mem0, given):
    for inner in (
        {"OR": [{"user_id": {"eq": given}}]},
        {"NOT": [{"user_id": given}]},
        {"AND": [{"user_id": {"ne": given}}]},
        {"OR": [{"agent_id": {"in": ["bot", given]}}]},
    ):
        with pytest.raises(ValidationError, match=r"_id=.*Give a string of 1 to 256 characters"):
            await mem0("search", QUESTION, filters={"user_id": "alice", **inner})


@pytest.mark.parametrize(("call", "options"), CALLS.values(), ids=CALLS.keys())
async def test_code_for_mem0_that_names_nobody_is_refused(mem0, call, options):
    with pytest.raises(ValidationError):
        await mem0(*call, user_id=None, **options)
