"""What tests of the agent's half of the adapter may ask for: a scripted model, an agent, a look."""

from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from commonplace.errors import StoreUnavailableError
from commonplace.types import Scope


class Scripted(BaseChatModel):
    """Answers from its script, then always the same; keeps what it was shown and given to call."""

    script: list[Any]
    seen: list[Any]
    tools: list[Any]

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        self.tools.append(tools)
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append(messages)
        answer = self.script.pop(0) if self.script else "All right."
        answer = answer(messages) if callable(answer) else answer
        if isinstance(answer, BaseException):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])

    def shown(self, call=-1):
        """All text that the model was shown in a call."""
        return "\n".join(str(one.text) for one in self.seen[call])


@dataclass
class Context:
    """Who asks, as an application tells it."""

    user_id: str
    agent_id: str = "helper"


@pytest.fixture
def context():
    return Context


@pytest.fixture
def model():
    """Make a model with a script."""
    return lambda *script: Scripted(script=list(script), seen=[], tools=[])


@pytest.fixture
def call():
    """Make a message that calls a tool."""

    def make(name, call_id="c1", /, **arguments):
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])

    return make


@pytest.fixture
def make():
    """Make an agent with some middlewares."""

    def agent(model, *middleware, **more):
        more.setdefault("context_schema", Context)
        return create_agent(model, middleware=middleware, **more)

    return agent


@pytest.fixture
def told(memory):
    """Read what was said and is stored of a user, oldest first, once what was accepted is."""

    def read(user="alice"):
        memory.flush(10)
        page = memory.list(Scope(user_id=user))
        records = [one for one in page if one.kind != "summary"]  # which a framework wrote
        return sorted(
            records, key=lambda one: (one.created_at, one.position or 0, one.role == "assistant")
        )

    return read


@pytest.fixture
def texts(told):
    return lambda user="alice": [one.text for one in told(user)]


@pytest.fixture
def broken(memory, monkeypatch):
    """A memory that fails at every call."""

    def fail(*args, **options):
        raise StoreUnavailableError(store="test", reason="down")

    async def afail(*args, **options):
        fail()

    for name in ("search", "list", "add"):
        monkeypatch.setattr(memory, name, fail)
        monkeypatch.setattr(memory, f"a{name}", afail)
    return memory
