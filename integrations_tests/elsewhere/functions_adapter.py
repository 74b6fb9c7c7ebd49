"""Memory for agents that are a function: they take a list of messages and return the answer."""

from collections.abc import Callable

from commonplace import Memory, Message, Policy, Scope
from commonplace.agents import AgentMemory, check_memory, check_policy, render

Agent = Callable[[list[str]], str]
DEFAULT = Policy()


def with_memory(
    agent: Agent, memory: Memory, *, policy: Policy = DEFAULT
) -> Callable[[str, Scope], str]:
    """Wrap an agent; the function that is returned also takes whose turn it is."""
    check_memory(memory)
    check_policy(policy)
    remembering = AgentMemory(memory, policy, log="functions_adapter", first_recall_timeout=10.0)

    def turn(question: str, scope: Scope) -> str:
        note = render(remembering.recall(scope, question), policy)
        answer = agent([*([note] if note else []), question])
        said = [Message(text=question), Message(text=answer, role="assistant")]
        remembering.write(said, scope)
        return answer

    return turn
