"""The middleware: recall when a reply starts, write when it ends, scope per reply.

It keeps the names and defaults of AgentScope's own memory middleware. No hook raises: a memory
that fails is told to the log `commonplace_agentscope`, and the reply goes on without it.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentscope.event import ReplyEndEvent, ReplyStartEvent
from agentscope.middleware import MiddlewareBase

from commonplace import InvalidRecordError, Memory
from commonplace.agents.policy import (
    HEADER,
    INTRO,
    TOOL_INSTRUCTIONS,
    WRITE_PATIENCE,
    Inject,
    Mode,
    Policy,
)

from .replies import Replies
from .scopes import to_scope
from .sharing import share
from .tools import Reach, instruct, memory_tools
from .turn import Turn

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.embedding import EmbeddingModelBase
    from agentscope.model import ChatModelBase, ChatResponse
    from agentscope.tool import ToolBase

    from commonplace.ports.models import ChatModel, Embedder

_log = logging.getLogger("commonplace_agentscope")
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
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
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
            raise InvalidRecordError(
                field="mem0_config",
                value=type(mem0_config).__name__,
                reason="configures mem0, which has no part here",
                hint="Leave it out; pass path=, or client=Memory.open(...) with its settings.",
            )
        if client is not None and not isinstance(client, Memory):
            raise TypeError(NO_MEMORY.format(client))
        to_scope("anybody" if callable(user_id) else user_id, agent_id)
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
            _log.warning("client is given, so %s are ignored", ", ".join(given))
        self._prefix = tool_prefix
        self._replies = Replies(user_id, agent_id)
        self._opening = share(self, client, path, chat_model, embedding_model)
        self._key = f"{MemoryMiddleware.__name__}:{self._opening.name(tool_prefix)}"

    async def get_middleware_key(self) -> str:
        """Name this memory's place in an agent's state: by its folder and the tools' prefix."""
        return self._key

    async def on_reply(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., AsyncGenerator[Any, None]],
    ) -> AsyncGenerator[Any, None]:
        """Recall after the reply's first event, write before its last; pass all else on."""
        self._opening.holders.add(self)
        turn = Turn(
            reply=self._replies.begin(agent, self._opening.warn),
            name=agent.name,
            key=await self.get_middleware_key(),
            policy=self.policy,
            opening=self._opening,
            raises=agent.react_config.interruption_raise_cancelled_error,
        )
        turn.begin(input_kwargs.get("inputs"))
        try:
            async for item in self._replies.steps(turn.reply, next_handler(**input_kwargs)):
                turn.heard.hear(item)
                if isinstance(item, ReplyEndEvent):
                    self._replies.leave(turn.reply)
                    # Before the event: whoever stops listening there has been answered.
                    await turn.finish(item)
                yield item
                if isinstance(item, ReplyStartEvent):
                    shown = await turn.start(item.reply_id)
                    if shown is not None:
                        yield shown
                turn.expel()
        finally:
            turn.leave()
            self._replies.leave(turn.reply)

    async def on_compress_context(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., Awaitable[None]],
    ) -> None:
        """Interrupt a reply that was cancelled while it recalled; show no note for another user.

        This is the first hook inside the agent's own loop, which ends such a reply properly.
        """
        self._replies.go_on(agent.state)
        key = await self.get_middleware_key()
        agent.state.context[:] = self._replies.own(agent.state, key, agent.state.context)
        await next_handler(**input_kwargs)

    async def on_model_call(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: "Callable[..., Awaitable[ChatResponse | AsyncGenerator[ChatResponse, None]]]",
    ) -> "ChatResponse | AsyncGenerator[ChatResponse, None]":
        """Show the model no note for another user, whenever it came into the conversation."""
        key = await self.get_middleware_key()
        messages = self._replies.own(agent.state, key, input_kwargs["messages"])
        return await next_handler(**{**input_kwargs, "messages": messages})

    async def on_system_prompt(self, agent: "Agent", current_prompt: str) -> str:
        """Add the tools' instructions where the agent has the tools."""
        return instruct(current_prompt, self.policy, self._prefix)

    async def list_tools(self) -> "list[ToolBase]":
        """List the tools for the agent's toolkit; empty in `static_control`.

        Opens the memory meanwhile, for 10 seconds at most, so that the first reply need not wait.
        """
        await self._opening.warm(WRITE_PATIENCE)
        reach = Reach(owner=self._replies.owner, memory=self._opening.reach)
        return memory_tools(self.policy, reach, self._prefix) if self.policy.has_tools else []

    async def aclose(self, timeout: float = 10.0) -> None:
        """Wait for writes that still run, then close the memory if no other middleware uses it.

        A memory that was given stays open.
        """
        await self._opening.release(self, timeout)
