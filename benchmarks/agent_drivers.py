"""Drivers of four frameworks: each plays turns of one user through its adapter.

The frameworks are real, only the chat model is scripted. A driver answers with the lines of the
note that its model was sent, each without the bullet in front.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Protocol

from commonplace import Memory
from commonplace.agents import HEADER

ADAPTERS = ("agentscope", "langgraph", "strands", "mem0")
AGENT = "assistant"
_SYSTEM = "You are a friendly assistant."
TOP_K = 5  # of mem0's loop; as of `Policy`


@dataclass(slots=True)
class Script:
    """What a scripted model answers, and what it was sent.

    Attributes:
        pause: seconds that it takes to answer.
        sent: all text of its latest call.
        was_called: set by every call.
    """

    answer: str = ""
    pause: float = 0.0
    sent: str = ""
    was_called: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self, sent: str) -> str:
        """Answer a call."""
        self.sent = sent
        self.was_called.set()
        await asyncio.sleep(self.pause)
        return self.answer


class Driver(Protocol):
    """One user's agent."""

    script: Script

    async def begin(self, session: str) -> None:
        """Begin a new conversation."""

    async def say(self, text: str, answer: str, at: datetime | None = None) -> list[str]:
        """Play a turn; return the note's lines, an empty list without a note.

        Args:
            answer: what the model answers.
            at: when the user says it, where the framework lets a message have a time.
        """


def make_driver(adapter: str, memory: Memory, user: str, *, extracts: bool = False) -> Driver:
    """Make the driver of an adapter, whose framework is imported now."""
    made: Driver
    if adapter == "agentscope":
        made = _AgentScope(memory, user)
    elif adapter == "langgraph":
        made = _LangGraph(memory, user)
    elif adapter == "strands":
        made = _Strands(memory, user)
    else:
        made = _Mem0(memory, user, extracts=extracts)
    return made


def note_lines(sent: str) -> list[str]:
    """Read the lines of every note in what a model was sent, without their bullets."""
    found: list[str] = []
    for note in sent.split(HEADER)[1:]:
        begun = False
        for line in note.splitlines():
            if line.startswith("- "):
                begun = True
                found.append(line.removeprefix("- "))
            elif begun:
                break
    return found


def without_speaker(line: str, user: str) -> str:
    """Take a handle such as `[3] `, the times and the speaker's name from a line of a note."""
    line = re.sub(r"^\[\w{1,8}\] ", "", line)
    line = re.sub(r"^(?:\[[^]]*\d{4}-\d\d-\d\d[^]]*\] )?(?:\((?:earlier|较早)\) )?", "", line)
    return re.sub(rf"^(?:user|assistant|{re.escape(user)}): ", "", line)


class _AgentScope:
    def __init__(self, memory: Memory, user: str) -> None:
        from commonplace_agentscope import CommonplaceMiddleware

        self.script = Script()
        self._user = user
        self._middleware = CommonplaceMiddleware(user_id=user, client=memory)
        self._agent: Any = None

    async def begin(self, session: str) -> None:
        from agentscope.agent import Agent
        from agentscope.tool import Toolkit

        self._agent = Agent(
            name=AGENT,
            system_prompt=_SYSTEM,
            model=agentscope_model()(self.script),
            toolkit=Toolkit(tools=await self._middleware.list_tools()),
            middlewares=[self._middleware],
        )

    async def say(self, text: str, answer: str, at: datetime | None = None) -> list[str]:
        from agentscope.message import UserMsg

        self.script.answer, self.script.sent = answer, ""
        time = None if at is None else at.isoformat()
        await self._agent.reply(UserMsg(self._user, text, created_at=time))
        return note_lines(self.script.sent)


@cache
def agentscope_model() -> type[Any]:
    from agentscope.credential import CredentialBase
    from agentscope.formatter import OpenAIChatFormatter
    from agentscope.message import TextBlock
    from agentscope.model import ChatModelBase, ChatResponse

    class Scripted(ChatModelBase):
        def __init__(self, script: Script) -> None:
            super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
            self.formatter = OpenAIChatFormatter()
            self.script = script

        async def _call_api(
            self, model_name: str, messages: list[Any], *_: Any, **__: Any
        ) -> ChatResponse:
            formatted = await self.formatter.format(messages)
            sent = "\n".join(
                part.get("text", "") if isinstance(part, dict) else str(part)
                for message in formatted
                for part in _parts(message.get("content"))
            )
            answer = await self.script.play(sent)
            return ChatResponse(content=[TextBlock(text=answer)], is_last=True)

    return Scripted


def _parts(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else list(content or [])


class _LangGraph:
    def __init__(self, memory: Memory, user: str) -> None:
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        from commonplace_langgraph import MemoryMiddleware

        self.script = Script()
        self._user = user
        self._thread = ""
        self._agent: Any = create_agent(
            _langchain_model()(script=self.script),
            system_prompt=_SYSTEM,
            middleware=[MemoryMiddleware(memory)],
            checkpointer=InMemorySaver(),
        )

    async def begin(self, session: str) -> None:
        self._thread = session

    async def say(self, text: str, answer: str, at: datetime | None = None) -> list[str]:
        self.script.answer, self.script.sent = answer, ""
        run = {"configurable": {"thread_id": self._thread, "user_id": self._user}}
        await self._agent.ainvoke({"messages": [("user", text)]}, run)
        return note_lines(self.script.sent)


@cache
def _langchain_model() -> type[Any]:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        script: Any

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            raise NotImplementedError

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            answer = await self.script.play("\n".join(str(one.text) for one in messages))
            return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])

    return Scripted


class _Strands:
    def __init__(self, memory: Memory, user: str) -> None:
        from commonplace_strands import MemoryPlugin

        self.script = Script()
        self._user = user
        self._plugin = MemoryPlugin(memory)
        self._agent: Any = None

    async def begin(self, session: str) -> None:
        from strands import Agent

        model = _strands_model()(self.script)
        self._agent = Agent(
            model=model, plugins=[self._plugin], system_prompt=_SYSTEM, callback_handler=None
        )

    async def say(self, text: str, answer: str, at: datetime | None = None) -> list[str]:
        self.script.answer, self.script.sent = answer, ""
        await self._agent.invoke_async(text, invocation_state={"user_id": self._user})
        return note_lines(self.script.sent)


@cache
def _strands_model() -> type[Any]:
    from strands.models import Model

    class Scripted(Model):
        def __init__(self, script: Script) -> None:
            self.script = script

        def update_config(self, **_: Any) -> None:
            pass

        def get_config(self) -> dict[str, Any]:
            return {"model_id": "scripted"}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            blocks = (block for one in messages for block in one["content"])
            sent = "\n".join(block["text"] for block in blocks if "text" in block)
            answer = await self.script.play(sent)
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    return Scripted


class _Mem0:
    """The loop of mem0's documentation: search, put what is found in the prompt, answer, add.

    There is no note and nobody hands over the conversation: what was found counts as the lines.
    """

    def __init__(self, memory: Memory, user: str, *, extracts: bool) -> None:
        from commonplace_mem0 import AsyncMemory

        self.script = Script()
        self._user = user
        self._extracts = extracts
        self._memory = AsyncMemory(core=memory)

    async def begin(self, session: str) -> None:
        pass  # mem0's loop keeps one memory for all conversations of a user

    async def say(self, text: str, answer: str, at: datetime | None = None) -> list[str]:
        found: dict[str, Any] = {"results": []}
        with contextlib.suppress(Exception):  # a chat goes on when its search fails
            found = await self._memory.search(text, filters={"user_id": self._user}, top_k=TOP_K)
        self.script.answer = answer
        await self.script.play("\n".join(one["memory"] for one in found["results"]))
        turn = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        options: dict[str, Any] = {"infer": True} if self._extracts else {}
        if at is not None:
            options["timestamp"] = int(at.timestamp())
        await self._memory.add(turn, user_id=self._user, **options)
        return [one["memory"] for one in found["results"]]
