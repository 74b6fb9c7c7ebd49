"""Building blocks for your own graphs and chains: a recall step, a remember node, a retriever."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Annotated, Any

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, convert_to_messages
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import ConfigDict, PrivateAttr, SkipValidation

from commonplace import InvalidRecordError, Memory, Policy
from commonplace.agents import (
    AgentMemory,
    MemoryCounters,
    MemorySource,
    OnEvent,
    Plan,
    aon,
    arun_plan,
    call,
    hinting_call,
    on,
    render,
    run_plan,
    search_scope,
    shown,
    to_query,
)
from commonplace.filters import parse_filter

from .convert import (
    query_of,
    to_conversation,
    to_document,
    turn_messages,
    user_messages,
    user_texts,
    with_note,
)
from .turn import turn_cache, turn_key
from .turn_owner import IdSource, ScopeResolver, agent_memory, is_called_by_agent, user_of


class MemoryStep(RunnableLambda[Any, Any]):
    """A step of a chain or graph that uses a memory."""

    def __init__(self, agent: AgentMemory, plan: Callable[[Any], Plan[Any]], name: str) -> None:
        def run(given: Any) -> Any:
            return run_plan(plan(given), on(agent))

        async def arun(given: Any) -> Any:
            return await arun_plan(plan(given), aon(agent))

        super().__init__(run, arun, name=name)
        self._agent = agent

    def counters(self) -> MemoryCounters:
        """Return how often each event of this step has happened."""
        return self._agent.counters()


@hinting_call
def recall_hook(
    memory: MemorySource = None,
    *,
    user_id: IdSource = user_of,
    agent_id: IdSource | None = None,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
) -> MemoryStep:
    """Make a step that adds a note to the messages for a chat model.

    `recall_hook(memory) | model` is a model with memory, in a node or a chain. The step takes a
    list of messages, a prompt, or a state with `messages`, and returns messages; the note is in no
    state. If the memory fails there is no note. Where this process also has a `remember_node` with
    the same memory, ids and policy, the step accepts what the user wrote, as `MemoryMiddleware`
    does, so that no crash of the model's call loses it; by itself it stores
    nothing. Arguments and errors are those of `MemoryMiddleware`; a run's id that cannot be used
    raises when the step runs. `counters()` counts what this step did.
    """
    agent = agent_memory(memory, policy, on_event)
    scopes, turns = ScopeResolver(user_id, agent_id, agent.warn), turn_cache(agent)

    def recall(given: Any) -> Plan[list[AnyMessage]]:
        messages, scope = _messages(given), scopes.find()
        texts = turns.own(user_texts(messages), scope, scopes.place())
        if scope is None:
            return messages
        known = turns.of(turn_key(messages, scope)).shown
        found = yield call("recall", scope, query_of(texts), to_conversation(messages, known))
        if turns.has_writer(user_id, agent_id, agent.policy) and not is_called_by_agent():
            yield call("accept", user_messages(texts), scope, known)
        known.add(shown(found, agent.policy))
        note = render(found, agent.policy)
        return with_note(messages, note) if note else messages

    return MemoryStep(agent, recall, "recall")


@hinting_call
def remember_node(
    memory: MemorySource = None,
    *,
    user_id: IdSource = user_of,
    agent_id: IdSource | None = None,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
) -> MemoryStep:
    """Make a node that stores the last turn of a state's `messages`; it changes no state.

    A turn that is stored again, as after a retry, stays one record. A memory that fails does not
    fail the graph. What another user left unanswered is not stored, if that user's `recall_hook`
    or this node ran in this process and reads the user with the same function. In a graph that an
    agent's tool runs nothing is stored. Arguments and errors are those of `MemoryMiddleware`; a
    run's id that cannot be used raises when the node runs. `counters()` counts what this node did.
    """
    agent = agent_memory(memory, policy, on_event)
    scopes, turns = ScopeResolver(user_id, agent_id, agent.warn), turn_cache(agent)

    def remember(given: Any) -> Plan[dict[str, Any]]:
        messages, scope = _messages(given), scopes.find()
        texts = turns.own(user_texts(messages), scope, scopes.place())
        if scope is not None and not is_called_by_agent():
            yield call("write", turn_messages(texts, {"messages": messages}), scope)
        return {}

    turns.add_writer(remember, user_id, agent_id, agent.policy)
    return MemoryStep(agent, remember, "remember")


class MemoryRetriever(BaseRetriever):
    """Retrieves memories of the user for whom a chain runs, best first.

    A memory that fails raises, as retrievers do; `with_fallbacks` handles that.

    Attributes:
        memory, user_id, agent_id: see `MemoryMiddleware`.
        policy: its `top_k`, `threshold`, `kinds`, `where` and `scope_search_by_agent` count.
        where: a filter on the records' metadata (`commonplace.filters`), besides the policy's.

    Raises:
        pydantic.ValidationError: a field cannot be used.
    """

    memory: Annotated[Memory | str | PathLike[str] | None, SkipValidation] = None
    user_id: Annotated[IdSource, SkipValidation] = user_of
    agent_id: Annotated[IdSource | None, SkipValidation] = None
    policy: Policy | None = None
    where: Mapping[str, Any] | None = None
    _agent: AgentMemory = PrivateAttr()
    _scopes: ScopeResolver = PrivateAttr()

    model_config = ConfigDict(extra="forbid")  # a misspelt field would have no effect

    def model_post_init(self, context: Any, /) -> None:
        """Check the fields together."""
        super().model_post_init(context)
        self._agent = agent_memory(self.memory, self.policy)
        parse_filter(self.where)
        self._scopes = ScopeResolver(self.user_id, self.agent_id, self._agent.warn)

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Find documents; the config may name the user."""
        return super().invoke(input, config, **kwargs, run_config=config)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Find documents, see `invoke`."""
        return await super().ainvoke(input, config, **kwargs, run_config=config)

    def _get_relevant_documents(
        self, query: str, *, run_config: RunnableConfig | None = None, **_: Any
    ) -> list[Document]:
        return run_plan(self._search(query, run_config), on(self._agent.lazy.get()))

    async def _aget_relevant_documents(
        self, query: str, *, run_config: RunnableConfig | None = None, **_: Any
    ) -> list[Document]:
        plan = self._search(query, run_config)
        return await arun_plan(plan, aon(await self._agent.lazy.aget()))

    def _search(self, query: str, config: RunnableConfig | None) -> Plan[list[Document]]:
        text, policy = to_query(query), self._agent.policy
        scope = search_scope(self._scopes.resolve(config=config), policy)
        if not text:
            return []
        filters = [where for where in (policy.where, self.where) if where]
        found = yield call(
            "search",
            text,
            scope,
            top_k=policy.top_k,
            threshold=policy.threshold,
            kinds=policy.kinds,
            where={"AND": filters} if filters else None,
        )
        return [to_document(match) for match in found]


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
