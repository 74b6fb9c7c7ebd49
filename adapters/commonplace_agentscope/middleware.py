"""The middleware: recall when a reply starts, write when it ends, scope per reply.

It keeps the names and defaults of AgentScope's own memory middleware. No hook raises: a memory
that fails is told to the log `commonplace_agentscope`, and the reply goes on without it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from agentscope.event import ReplyEndEvent, ReplyStartEvent
from agentscope.middleware import MiddlewareBase

from commonplace.errors import InvalidRecord, InvalidScope
from commonplace.memory import Memory
from commonplace.model import Scope
from commonplace.policy import HEADER, INTRO, TOOL_INSTRUCTIONS, Inject, Mode, Policy

from .convert import to_pending
from .models import to_chat, to_embedder
from .opening import Opening
from .tools import memory_tools
from .turn import Turn, Warn, logger

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.embedding import EmbeddingModelBase
    from agentscope.model import ChatModelBase
    from agentscope.state import AgentState
    from agentscope.tool import ToolBase

    from commonplace.ports import ChatModel, Embedder

NO_MEMORY = "client={!r} is no commonplace Memory. Pass Memory.open(...), or path= instead."


class MemoryMiddleware(MiddlewareBase):
    """Long-term memory for an AgentScope agent; one instance serves many users at once.

    Cheap to construct: the memory is opened on first use, away from the event loop.

    Args:
        user_id: whose memory, or what tells it for the agent that replies.
        client: an open memory; then `path` and the models are ignored.
        path: the memory's folder; without it the environment's `COMMONPLACE_PATH`, or `./memory`.
        chat_model: extracts facts; without it turns are kept verbatim.
        embedding_model: replaces the offline default.
        mem0_config: refused; it configures another library.
        tool_prefix: goes in front of the tools' names, for toolkits with several memories.

    The other arguments are those of `Policy`. `inject="replace"` changes the conversation before
    the newest message, so a provider's prompt cache ends at the old note.

    Raises:
        InvalidScope, InvalidRecord: an argument cannot be used.
        TypeError: the client or a model is of another library.
    """

    def __init__(
        self,
        *,
        user_id: "str | Callable[[Agent], str]",
        client: Memory | None = None,
        path: str | None = None,
        chat_model: "ChatModelBase | ChatModel | None" = None,
        embedding_model: "EmbeddingModelBase[Any] | Embedder | None" = None,
        mem0_config: object | None = None,
        mode: Mode = "both",
        agent_id: str | None = None,
        top_k: int = 5,
        threshold: float | None = None,
        scope_search_by_agent: bool = True,
        await_write: bool = True,
        memory_section_header: str = HEADER,
        memory_section_intro: str = INTRO,
        tool_instructions: str = TOOL_INSTRUCTIONS,
        recall_timeout: float = 2.0,
        inject: Inject = "replace",
        tool_prefix: str = "",
    ) -> None:
        if mem0_config is not None:
            raise InvalidRecord(
                field="mem0_config",
                value=type(mem0_config).__name__,
                reason="configures mem0, which has no part here",
                hint="Leave it out; pass path=, or client=Memory.open(...) with its settings.",
            )
        if client is not None and not isinstance(client, Memory):
            raise TypeError(NO_MEMORY.format(client))
        if not callable(user_id):
            _scope(user_id, agent_id, None)
        self.policy = Policy(
            mode=mode,
            top_k=top_k,
            threshold=threshold,
            scope_search_by_agent=scope_search_by_agent,
            await_write=await_write,
            recall_timeout=recall_timeout,
            inject=inject,
            header=memory_section_header,
            intro=memory_section_intro,
            tool_instructions=tool_instructions,
        )
        given = {"path": path, "chat_model": chat_model, "embedding_model": embedding_model}
        if client is not None and any(value is not None for value in given.values()):
            logger.warning("client is given, so %s are ignored", ", ".join(given))
        self._user_id = user_id
        self._agent_id = agent_id
        self._prefix = tool_prefix
        self._opening = Opening(
            client, path=path, chat=to_chat(chat_model), embedder=to_embedder(embedding_model)
        )
        self._scopes: dict[int, Scope] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._warn = Warn()

    async def on_reply(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., AsyncGenerator[Any, None]],
    ) -> AsyncGenerator[Any, None]:
        """Recall after the reply's first event, write before its last; pass all else on."""
        state = agent.state
        scope = self._scope_of(agent)
        if scope is not None:
            self._scopes[id(state)] = scope
        turn = Turn(
            state=state,
            name=agent.name,
            key=await self.get_middleware_key(),
            scope=scope if self.policy.is_static else None,
            said=to_pending(input_kwargs.get("inputs")),
            policy=self.policy,
            reach=self._opening.reach,
            writes=self._writes,
            warn=self._warn,
        )
        try:
            async for item in next_handler(**input_kwargs):
                turn.hear(item)
                if isinstance(item, ReplyEndEvent):
                    # Before the event: whoever stops listening there has been answered.
                    await turn.finish(item)
                yield item
                if isinstance(item, ReplyStartEvent):
                    shown = await turn.start()
                    if shown is not None:
                        yield shown
        finally:
            turn.leave()
            # A generator that is finalised late must not take away a newer reply's scope.
            if scope is not None and self._scopes.get(id(state)) is scope:
                del self._scopes[id(state)]

    async def on_system_prompt(self, agent: "Agent", current_prompt: str) -> str:
        """Add the tools' instructions where the agent has the tools."""
        text = self.policy.tool_instructions
        if not self.policy.has_tools or not text:
            return current_prompt
        for name in ("search_memory", "add_memory"):
            text = text.replace(name, f"{self._prefix}{name}")
        return f"{current_prompt}\n\n{text}"

    async def list_tools(self) -> "list[ToolBase]":
        """List the tools for the agent's toolkit; empty in `static_control`."""
        shown = self.policy.has_tools
        return memory_tools(self.policy, self._reach, self._prefix) if shown else []

    async def aclose(self, timeout: float = 10.0) -> None:
        """Wait for writes that still run, then close the memory if it was opened here."""
        loop = asyncio.get_running_loop()
        running = {task for task in self._writes if task.get_loop() is loop}
        if running:
            await asyncio.wait(running, timeout=timeout)
        await self._opening.aclose()

    async def _reach(self, state: "AgentState | None") -> tuple[Memory, Scope]:
        scope = self._scopes.get(id(state))
        if scope is None and not callable(self._user_id):
            scope = _scope(self._user_id, self._agent_id, None)
        if scope is None:
            raise InvalidScope(
                field="user_id", value=None, reason="is unknown outside a reply of this agent"
            )
        return await self._opening.reach(), scope

    def _scope_of(self, agent: "Agent") -> Scope | None:
        try:
            user_id = self._user_id(agent) if callable(self._user_id) else self._user_id
            return _scope(user_id, self._agent_id, agent.state.session_id)
        except Exception as error:  # noqa: BLE001 -- nobody's memory is better than a lost reply
            self._warn("scope", error)
            return None


def _scope(user_id: object, agent_id: str | None, session_id: str | None) -> Scope:
    if type(user_id) is not str:
        raise InvalidScope(field="user_id", value=user_id, reason="is not a string")
    return Scope(user_id=user_id, agent_id=agent_id, session_id=session_id)
