"""Where a model call is about to begin: the one place to show the model more than is kept.

What is put into a call here is gone after it. The framework's own history, its sessions and
whoever listens to messages never see it.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from strands import Agent

from commonplace import Match
from commonplace.agents.policy import Policy
from commonplace.agents.prompt import mark, render, shown

from .convert import custom

try:
    from strands.middleware.stages import InvokeModelStage
except ImportError:  # it was private before it was public, and did the same
    from strands._middleware.stages import (  # type: ignore[import-not-found, no-redef]
        InvokeModelStage,
    )

Call = Any
"""The framework's context of a model call, whose class has moved between its versions."""


def before_model_calls(agent: Agent, change: Callable[[Call], Awaitable[Call]]) -> None:
    """Have each of an agent's model calls changed; what raises here would end the agent's turn."""
    registry: Any = agent if hasattr(agent, "add_middleware") else agent._middleware_registry  # noqa: SLF001 -- as above
    registry.add_middleware(InvokeModelStage.Input, change)


def with_note(call: Call, matches: tuple[Match, ...], policy: Policy) -> Call:
    """Show a note at the end of the last user message: what stands before it stays cacheable.

    The call itself if there is nothing to show, or no user to show it to.
    """
    note = render(matches, policy)
    places = [at for at, one in enumerate(call.messages) if one["role"] == "user"]
    if not note or not places:
        return call
    last = call.messages[places[-1]]
    marked = {**custom(last), **mark(shown(matches, policy))}
    folded = {
        **last,
        "content": [*last["content"], {"text": f"\n\n{note}"}],
        "metadata": {**last.get("metadata", {}), "custom": marked},
    }
    messages = [*call.messages[: places[-1]], folded, *call.messages[places[-1] + 1 :]]
    changed: dict[str, Any] = {"messages": messages}
    if hasattr(call, "dynamic_trailing_blocks") and folded is messages[-1]:
        # What changes with each call must not be the end of a provider's cached prefix.
        changed["dynamic_trailing_blocks"] = call.dynamic_trailing_blocks + 1
    return dataclasses.replace(call, **changed)


def with_hint(call: Call, hint: str) -> Call:
    """Add the tools' instructions to the system prompt; nothing for an empty hint."""
    prompt = call.system_prompt
    if not hint:
        return call
    if isinstance(prompt, list):
        return dataclasses.replace(call, system_prompt=[*prompt, {"text": hint}])
    return dataclasses.replace(call, system_prompt=f"{prompt}\n\n{hint}" if prompt else hint)
