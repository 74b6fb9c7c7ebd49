"""Former blocking face of the agent operations; goes when no adapter imports it."""

from collections.abc import Sequence

from ..concurrency import MAX_THREADS as MOST_THREADS
from ..concurrency import call_within as within
from ..memory import Memory
from ..model import Match, Scope
from . import operations
from .operations import SearchAnswer
from .policy import WRITE_PATIENCE, Policy
from .sansio import on, run_plan


def recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    """Recall for a turn."""
    plan = operations.recall(scope, query, policy)
    return within(policy.recall_timeout, "recall", lambda: run_plan(plan, on(memory)))


def search_memory(
    memory: Memory, scope: Scope, policy: Policy, keywords: Sequence[str], limit: int | None = None
) -> SearchAnswer:
    """Carry out the search tool."""
    plan = operations.search_memory(scope, policy, keywords, limit)
    return within(policy.recall_timeout, "search_memory", lambda: run_plan(plan, on(memory)))


def add_memory(
    memory: Memory, scope: Scope, policy: Policy, thinking: str, content: Sequence[str]
) -> str:
    """Carry out the add tool."""
    plan = operations.add_memory(scope, policy, thinking, content)
    return within(WRITE_PATIENCE, "add_memory", lambda: run_plan(plan, on(memory)))


__all__ = ["MOST_THREADS", "add_memory", "recall", "search_memory", "within"]
