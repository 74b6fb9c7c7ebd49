"""Former async face of the agent operations; goes when no adapter imports it."""

from collections.abc import Sequence

from ..concurrency import await_within as within
from ..memory import Memory
from ..model import Match, Scope
from . import operations
from .operations import SearchAnswer
from .policy import WRITE_PATIENCE, Policy
from .sansio import aon, arun_plan


async def recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    """Recall for a turn."""
    plan = operations.recall(scope, query, policy)
    return await within(policy.recall_timeout, "recall", arun_plan(plan, aon(memory)))


async def search_memory(
    memory: Memory, scope: Scope, policy: Policy, keywords: Sequence[str], limit: int | None = None
) -> SearchAnswer:
    """Carry out the search tool."""
    plan = operations.search_memory(scope, policy, keywords, limit)
    return await within(policy.recall_timeout, "search_memory", arun_plan(plan, aon(memory)))


async def add_memory(
    memory: Memory, scope: Scope, policy: Policy, thinking: str, content: Sequence[str]
) -> str:
    """Carry out the add tool."""
    plan = operations.add_memory(scope, policy, thinking, content)
    return await within(WRITE_PATIENCE, "add_memory", arun_plan(plan, aon(memory)))


__all__ = ["add_memory", "recall", "search_memory", "within"]
