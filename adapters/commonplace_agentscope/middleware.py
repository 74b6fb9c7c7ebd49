"""AgentScope middleware: recall and accept when a reply starts, write its answer, scope per reply.

It keeps the names and defaults of AgentScope's own memory middleware. A memory that fails is
logged as `commonplace_agentscope`, and the reply goes on without it; only what somebody must mend
is raised: an id that cannot be used, a memory that can never be opened as it is configured.
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentscope.event import ReplyEndEvent, ReplyStartEvent
from agentscope.middleware import MiddlewareBase

from commonplace import ChatModel, Embedder, InvalidRecordError, Memory, Policy
from commonplace.agents import (
    UNSET,
    WRITE_PATIENCE,
    AgentMemory,
    Inject,
    MemoryCounters,
    MemorySource,
    Mode,
    OnEvent,
    Unset,
    acquire_memory,
    check_id_source,
    check_prefix,
    fold_policy,
    given_once,
    hinting_init,
    instructions,
    to_folder,
    to_scope,
)

from .convert import question_last, to_conversation, to_summary
from .models import to_chat
from .shared_models import to_embedder
from .tools import memory_tools
from .turn import AgentScopeTurn
from .turn_owner import ReplyTracker, UserId

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.embedding import EmbeddingModelBase
    from agentscope.model import ChatModelBase, ChatResponse
    from agentscope.tool import ToolBase

# Part of a key in saved states, so it outlives a class's name.
_STATE_KEY = "MemoryMiddleware"
_POLICY_NAMES = {"memory_section_header": "header", "memory_section_intro": "intro"}


@hinting_init
class CommonplaceMiddleware(MiddlewareBase):
    """Long-term memory for an AgentScope agent; one instance serves many users at once.

    Cheap to construct: the memory is opened on first use, away from the event loop.

    Args:
        memory: an open commonplace `Memory`, the path of its folder, or None for the environment's
            `COMMONPLACE_PATH`, which is `./memory` by default. `client` and `path` are other names
            of it.
        user_id: the user's id, or a function of the agent, called, and awaited if it is `async`,
            for every reply; with None from it the reply has no memory.
        agent_id: the agent's part of the scope; without it the user's memory is one for all agents.
        policy: how the agent uses the memory. `inject="replace"` changes the conversation before
            the newest message, so a provider's prompt cache ends at the old note.
        on_event: is called with each recall, write and tool call.
        tool_prefix: put in front of the tools' names, for toolkits with several memories.
        chat_model: extracts facts into a memory that is opened here; without it turns are kept
            verbatim.
        embedding_model: of a memory that is opened here; replaces the offline default.
        mem0_config: refused; it configures another library.
        mode, top_k, threshold, scope_search_by_agent, await_write, memory_section_header,
            memory_section_intro, tool_instructions, recall_timeout, inject: of the policy, in place
            of `policy`, with the names that AgentScope's own memory middleware has for them.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used, or has two values; a
            memory or a model of another library is a `TypeError` too.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        user_id: UserId,
        agent_id: str | int | None = None,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
        tool_prefix: str = "",
        chat_model: "ChatModelBase | ChatModel | None" = None,
        embedding_model: "EmbeddingModelBase[Any] | Embedder | None" = None,
        client: MemorySource = None,
        path: MemorySource = None,
        mem0_config: object | None = None,
        mode: Mode | Unset = UNSET,
        top_k: int | Unset = UNSET,
        threshold: float | Unset | None = UNSET,
        scope_search_by_agent: bool | Unset = UNSET,
        await_write: bool | Unset = UNSET,
        memory_section_header: str | Unset = UNSET,
        memory_section_intro: str | Unset = UNSET,
        tool_instructions: str | Unset = UNSET,
        recall_timeout: float | Unset = UNSET,
        inject: Inject | Unset = UNSET,
    ) -> None:
        if mem0_config is not None:
            raise InvalidRecordError(
                field="mem0_config",
                value=type(mem0_config).__name__,
                reason="must be None: it configures mem0",
                hint="Leave it out; pass memory=Memory.open(...) with its settings, or a path.",
            )
        is_read = check_id_source("user_id", user_id, may_be_async=True)
        to_scope("anybody" if is_read else user_id, agent_id)
        check_prefix("tool_prefix", tool_prefix)
        given = {
            "mode": mode,
            "top_k": top_k,
            "threshold": threshold,
            "scope_search_by_agent": scope_search_by_agent,
            "await_write": await_write,
            "memory_section_header": memory_section_header,
            "memory_section_intro": memory_section_intro,
            "tool_instructions": tool_instructions,
            "recall_timeout": recall_timeout,
            "inject": inject,
        }
        memory = given_once("memory", memory, client=client, path=path)
        lazy = acquire_memory(
            self,
            memory,
            chat=to_chat(chat_model),
            embedder=to_embedder(embedding_model),
            models=(chat_model, embedding_model),
        )
        # The first recall may have to open the memory and to load a model.
        self._memory = AgentMemory(
            lazy,
            fold_policy(policy, given, _POLICY_NAMES),
            log="commonplace_agentscope",
            first_recall_timeout=WRITE_PATIENCE,
            on_event=on_event,
        )
        self._replies = ReplyTracker(user_id, agent_id)
        self._prefix = tool_prefix
        self._key = _state_key(tool_prefix, memory)

    @property
    def policy(self) -> Policy:
        """How the agent uses the memory."""
        return self._memory.policy

    async def get_middleware_key(self) -> str:
        """Return the key of this memory's entry in an agent's state."""
        return self._key

    async def on_reply(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., AsyncGenerator[Any, None]],
    ) -> AsyncGenerator[Any, None]:
        """Recall and accept after the reply's first event, write before its last; pass all else on.

        Raises:
            InvalidScopeError: the user's id is one that no scope can hold; the agent has not begun.
            InvalidRecordError, SchemaMismatchError, StoreRefusedError, MissingExtraError: as
                `Memory.open`, if it cannot be opened as it is configured.
        """
        self._memory.lazy.holders.add(self)
        reply = await self._replies.begin(agent, self._memory.warn)
        await self._memory.reopen_misconfigured()
        turn = AgentScopeTurn(
            reply=reply,
            key=await self.get_middleware_key(),
            memory=self._memory,
            raises_cancellation=agent.react_config.interruption_raise_cancelled_error,
        )
        await turn.begin(input_kwargs.get("inputs"))
        try:
            async for item in self._replies.track(reply, next_handler(**input_kwargs)):
                turn.follow(item)
                if isinstance(item, ReplyEndEvent):
                    self._replies.leave(reply)
                    # Before the event: a consumer that stops there has its answer.
                    await turn.write(item)
                yield item
                if isinstance(item, ReplyStartEvent):
                    note = await turn.recall()
                    await turn.accept()
                    self._memory.raise_misconfiguration()
                    if note is not None:
                        yield note
                turn.drop_notes_if_isolated()
        except BaseException:
            turn.leave()
            raise
        finally:
            turn.end()
            self._replies.leave(reply)

    async def on_compress_context(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., Awaitable[None]],
    ) -> None:
        """Interrupt a reply that was cancelled while it recalled; show no note for another user.

        This is the first hook inside the agent's own loop, which ends such a reply properly. A
        summary that the agent makes here is kept as the session's (`Session.summary`).
        """
        self._replies.resume(agent.state)
        key = await self.get_middleware_key()
        agent.state.context[:] = self._replies.drop_foreign_notes(
            agent.state, key, agent.state.context
        )
        before = agent.state.summary
        with question_last(agent.state, key):
            await next_handler(**input_kwargs)
        if agent.state.summary != before:
            await self._keep_summary(agent)

    async def _keep_summary(self, agent: "Agent") -> None:
        """Keep what the agent made of its older messages as the summary of the session."""
        with self._memory.warn.catch("summary"):
            reply = self._replies.current(agent.state)
            if reply is not None and reply.owner is not None:
                text = to_summary(agent.state.summary)
                held = to_conversation(agent.state, await self.get_middleware_key())
                await self._memory.asummarize(text, reply.owner, held)

    async def on_model_call(
        self,
        agent: "Agent",
        input_kwargs: dict[str, Any],
        next_handler: "Callable[..., Awaitable[ChatResponse | AsyncGenerator[ChatResponse, None]]]",
    ) -> "ChatResponse | AsyncGenerator[ChatResponse, None]":
        """Show the model no note for another user, whenever it came into the conversation."""
        key = await self.get_middleware_key()
        messages = self._replies.drop_foreign_notes(agent.state, key, input_kwargs["messages"])
        return await next_handler(**{**input_kwargs, "messages": messages})

    async def on_system_prompt(self, agent: "Agent", current_prompt: str) -> str:
        """Add the tools' instructions where the agent has the tools."""
        text = instructions(self.policy, self._prefix)
        if not text or not await self._has_tools(agent):
            return current_prompt
        return f"{current_prompt}\n\n{text}"

    async def list_tools(self) -> "list[ToolBase]":
        """List the tools for the agent's toolkit; empty in `static_control`.

        Opens the memory meanwhile, for 10 seconds at most, so that the first reply need not wait.
        """
        with self._memory.warn.catch("opening"):
            await self._memory.lazy.await_open(WRITE_PATIENCE)
        return memory_tools(self._memory, self._replies.find, self._prefix)

    def counters(self) -> MemoryCounters:
        """Read how often each event happened, for all middlewares that share the memory."""
        return self._memory.counters()

    async def aclose(self, timeout: float = 10.0) -> None:
        """Wait for writes that still run, then close the memory if no other middleware uses it.

        A memory that was given stays open.

        Args:
            timeout: seconds that the writes are waited for.
        """
        await self._memory.aclose(self, timeout)

    async def _has_tools(self, agent: "Agent") -> bool:
        """Return whether the agent's toolkit holds every tool that the instructions name."""
        for name in self.policy.tools:
            if await agent.toolkit.get_tool(f"{self._prefix}{name}") is None:
                return False
        return True


def _state_key(prefix: str, memory: MemorySource) -> str:
    """Make the key of a memory in agents' states; the same in another process."""
    if isinstance(memory, Memory):
        location = memory.location
    else:
        location = "" if memory is None else to_folder("memory", memory)
    digest = hashlib.sha256(json.dumps([prefix, location]).encode()).hexdigest()
    return f"{_STATE_KEY}:{digest[:16]}"
