"""Parts for graphs of one's own: what goes in front of a model, and a node that remembers."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableLambda

from commonplace import Memory, Message, Scope
from commonplace.agents.policy import Policy

from .convert import to_exchange, to_question, to_said, with_note
from .reach import DEFAULT, Reach
from .scopes import Id, user_of


def recall_hook(
    memory: Memory,
    *,
    user_id: Id = user_of,
    agent_id: Id | None = None,
    policy: Policy = DEFAULT,
) -> Runnable[Any, list[AnyMessage]]:
    """Make what stands in front of a chat model: messages in, the same with a note out.

    `recall_hook(memory) | model` is a model with memory, inside a node or in a chain. It takes a
    list of messages, a prompt, or a state with `messages`. The note is in no state. A memory that
    fails gives no note. The arguments and errors are those of `MemoryMiddleware`.
    """
    reach = Reach(memory, user_id, agent_id, policy)

    def recall(given: Any) -> list[AnyMessage]:
        messages, scope = _messages(given), reach.owner()
        note = "" if scope is None else reach.note(scope, _query(messages))
        return with_note(messages, note) if note else messages

    async def arecall(given: Any) -> list[AnyMessage]:
        messages, scope = _messages(given), reach.owner()
        note = "" if scope is None else await reach.anote(scope, _query(messages))
        return with_note(messages, note) if note else messages

    return RunnableLambda(recall, arecall, name="recall")


def remember_node(
    memory: Memory,
    *,
    user_id: Id = user_of,
    agent_id: Id | None = None,
    policy: Policy = DEFAULT,
) -> Runnable[Any, dict[str, Any]]:
    """Make a node that writes the last turn of a state's `messages`; it changes no state.

    A turn that is written again, as after a retry, is known. A memory that fails fails no graph.
    The arguments and errors are those of `MemoryMiddleware`.
    """
    reach = Reach(memory, user_id, agent_id, policy)

    def last(given: Any) -> tuple[Scope | None, Sequence[Message]]:
        messages = _messages(given)
        said = to_said(to_question(messages))
        return reach.owner(), to_exchange(said, {"messages": messages})

    def remember(given: Any) -> dict[str, Any]:
        scope, messages = last(given)
        if scope is not None:
            reach.write(messages, scope)
        return {}

    async def aremember(given: Any) -> dict[str, Any]:
        scope, messages = last(given)
        if scope is not None:
            await reach.awrite(messages, scope)
        return {}

    return RunnableLambda(remember, aremember, name="remember")


def _messages(given: Any) -> list[Any]:
    if hasattr(given, "to_messages"):
        return list(given.to_messages())
    if isinstance(given, Mapping):
        given = given["messages"]
    return convert_to_messages(given if isinstance(given, list | tuple) else given.messages)


def _query(messages: Sequence[AnyMessage]) -> str:
    return "\n".join(one["text"] for one in to_said(to_question(messages)))
