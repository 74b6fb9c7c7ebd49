"""Parts for graphs and chains of one's own: a recall step, a remember node, a retriever."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Annotated, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, convert_to_messages
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import ConfigDict, PrivateAttr, SkipValidation

from commonplace import InvalidRecordError, Match, Memory, Message, Policy, Scope
from commonplace.agents import (
    AgentMemory,
    MemoryCounters,
    OnEvent,
    ShownRecords,
    hinting_call,
    render,
    search_scope,
    shown,
    to_query,
)
from commonplace.filters import parse_filter

from .convert import (
    to_conversation,
    to_document,
    turn_messages,
    user_texts,
    with_note,
)
from .turn import asker_cache, shown_cache, shown_key
from .turn_owner import (
    DEFAULT_POLICY,
    IdSource,
    ScopeResolver,
    agent_memory,
    is_called_by_agent,
    user_of,
)

_config: ContextVar[RunnableConfig | None] = ContextVar("config", default=None)


class MemoryStep(RunnableLambda[Any, Any]):
    """A step of a chain or graph that uses a memory."""

    def __init__(self, agent: AgentMemory, work: Any, awork: Any, name: str) -> None:
        super().__init__(work, awork, name=name)
        self._agent = agent

    def counters(self) -> MemoryCounters:
        """Read how often each event of this step happened since it was made."""
        return self._agent.counters()


@hinting_call
def recall_hook(
    memory: Memory,
    *,
    user_id: IdSource = user_of,
    agent_id: IdSource | None = None,
    policy: Policy = DEFAULT_POLICY,
    on_event: OnEvent | None = None,
) -> MemoryStep:
    """Make a step in front of a chat model: messages in, the same with a note out.

    `recall_hook(memory) | model` is a model with memory, inside a node or in a chain. It takes a
    list of messages, a prompt, or a state with `messages`. The note is in no state. A memory that
    fails gives no note. The arguments and errors are those of `MemoryMiddleware`; an id of a run
    that cannot be used raises when the step runs. Its `counters()` count what this step did.
    """
    agent = agent_memory(memory, policy, on_event)
    scopes, cache = ScopeResolver(user_id, agent_id, agent.warn), shown_cache(memory)
    askers = asker_cache(memory)

    def question(messages: list[Any], scope: Scope | None) -> str:
        texts = askers.own(user_texts(messages), scope, scopes.place())
        return "\n".join(one["text"] for one in texts)

    def with_memories(messages: list[Any], scope: Scope, found: Sequence[Match]) -> list[Any]:
        cache.setdefault(shown_key(messages, scope), ShownRecords()).add(shown(found, policy))
        note = render(found, policy)
        return with_note(messages, note) if note else messages

    def recall(given: Any) -> list[AnyMessage]:
        messages, scope = _messages(given), scopes.find()
        query = question(messages, scope)
        if scope is None:
            return messages
        found = agent.recall(scope, query, to_conversation(messages))
        return with_memories(messages, scope, found)

    async def arecall(given: Any) -> list[AnyMessage]:
        messages, scope = _messages(given), scopes.find()
        query = question(messages, scope)
        if scope is None:
            return messages
        found = await agent.arecall(scope, query, to_conversation(messages))
        return with_memories(messages, scope, found)

    return MemoryStep(agent, recall, arecall, "recall")


@hinting_call
def remember_node(
    memory: Memory,
    *,
    user_id: IdSource = user_of,
    agent_id: IdSource | None = None,
    policy: Policy = DEFAULT_POLICY,
    on_event: OnEvent | None = None,
) -> MemoryStep:
    """Make a node that writes the last turn of a state's `messages`; it changes no state.

    A turn that is written again, as after a retry, is known. A memory that fails fails no graph.
    What a turn of another user left unanswered is not written, where that turn's `recall_hook` or
    this node ran in this process and reads the user by the same function.
    In a graph that a tool of an agent runs it writes nothing. The arguments and errors are those
    of `MemoryMiddleware`; an id of a run that cannot be used raises when the node runs. Its
    `counters()` count what this node did.
    """
    agent = agent_memory(memory, policy, on_event)
    scopes, askers = ScopeResolver(user_id, agent_id, agent.warn), asker_cache(memory)

    def last_turn(given: Any) -> tuple[Scope | None, Sequence[Message]]:
        messages, scope = _messages(given), scopes.find()
        texts = askers.own(user_texts(messages), scope, scopes.place())
        if scope is None or is_called_by_agent():
            return None, []
        return scope, turn_messages(texts, {"messages": messages})

    def remember(given: Any) -> dict[str, Any]:
        scope, messages = last_turn(given)
        if scope is not None:
            agent.write(messages, scope)
        return {}

    async def aremember(given: Any) -> dict[str, Any]:
        scope, messages = last_turn(given)
        if scope is not None:
            await agent.awrite(messages, scope)
        return {}

    return MemoryStep(agent, remember, aremember, "remember")


class MemoryRetriever(BaseRetriever):
    """Retrieves memories of the user for whom a chain runs, best first.

    A memory that fails raises, as retrievers do; `with_fallbacks` handles that.

    Attributes:
        memory: an open memory.
        user_id, agent_id: as of `MemoryMiddleware`.
        policy: `top_k`, `threshold` and `scope_search_by_agent` count.
        where: a filter on the records' metadata (`commonplace.filters`), AND-ed with the scope.

    Raises:
        pydantic.ValidationError: a field cannot be used.
    """

    memory: Memory
    user_id: Annotated[IdSource, SkipValidation] = user_of
    agent_id: Annotated[IdSource | None, SkipValidation] = None
    policy: Policy = DEFAULT_POLICY
    where: Mapping[str, Any] | None = None
    _scopes: ScopeResolver = PrivateAttr()

    model_config = ConfigDict(extra="forbid")  # a misspelt field would have no effect

    def model_post_init(self, context: Any, /) -> None:
        """Check the fields together."""
        super().model_post_init(context)
        agent = agent_memory(self.memory, self.policy)
        parse_filter(self.where)
        self._scopes = ScopeResolver(self.user_id, self.agent_id, agent.warn)

    def invoke(
        self,
        input: str,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Find documents; the config may name the user."""
        token = _config.set(config)
        try:
            return super().invoke(input, config, **kwargs)
        finally:
            _config.reset(token)

    async def ainvoke(
        self,
        input: str,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Find documents, as `invoke`."""
        token = _config.set(config)
        try:
            return await super().ainvoke(input, config, **kwargs)
        finally:
            _config.reset(token)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        text, scope = to_query(query), self._search_scope()
        found = self.memory.search(text, scope, **self._options) if text else ()
        return [to_document(one) for one in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        text, scope = to_query(query), self._search_scope()
        found = await self.memory.asearch(text, scope, **self._options) if text else ()
        return [to_document(one) for one in found]

    def _search_scope(self) -> Scope:
        return search_scope(self._scopes.resolve(config=_config.get()), self.policy)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "top_k": self.policy.top_k,
            "threshold": self.policy.threshold,
            "where": self.where,
        }


def _messages(given: Any) -> list[Any]:
    if hasattr(given, "to_messages"):
        return list(given.to_messages())
    found = given.get("messages") if isinstance(given, Mapping) else given
    found = getattr(found, "messages", found)
    if not isinstance(found, list | tuple):
        raise InvalidRecordError(
            field="messages",
            value=found,
            reason="must be a list of messages",
            hint="Give a list, a prompt, or a state with `messages`.",
        )
    return convert_to_messages(found)
