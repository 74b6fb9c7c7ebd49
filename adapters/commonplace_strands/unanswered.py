"""Who asked what an agent has not answered yet, so that nobody else goes on with it as his own.

It is kept in the agent's `state`: a session brings it along into another process.
"""

from typing import Any

from commonplace import Scope

KEY = "commonplace.asked"


def asker(scope: Scope | None) -> dict[str, str | None]:
    """Tell who asks, as JSON; nobody is somebody too."""
    return {
        "user_id": None if scope is None else scope.user_id,
        "agent_id": None if scope is None else scope.agent_id,
    }


def asked(agent: Any, plugin: str) -> Any:
    """Read who asked what an agent has not answered; None if nothing is open."""
    return (agent.state.get(KEY) or {}).get(plugin)


def remember(agent: Any, plugin: str, who: dict[str, str | None] | None) -> None:
    """Keep who asked, or that nothing is open any more."""
    held = agent.state.get(KEY) or {}
    others = {name: one for name, one in held.items() if name != plugin}
    now = others if who is None else {**others, plugin: who}
    if now:
        agent.state.set(KEY, now)
    elif held:
        agent.state.delete(KEY)
