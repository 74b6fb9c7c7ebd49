"""Long-term memory for AgentScope agents: a middleware, its tools, and model wrappers."""

from commonplace import MissingExtraError

try:
    import agentscope as _agentscope  # noqa: F401 -- is it installed?
except ImportError as error:
    raise MissingExtraError(package="agentscope", extra="agentscope") from error

from commonplace.agents import MemoryCounters, MemoryEvent, OnEvent

from .middleware import CommonplaceMiddleware
from .models import AgentScopeChat, AgentScopeEmbedder

__all__ = [
    "AgentScopeChat",
    "AgentScopeEmbedder",
    "CommonplaceMiddleware",
    "MemoryCounters",
    "MemoryEvent",
    "OnEvent",
]
