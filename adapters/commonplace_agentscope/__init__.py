"""One memory for AgentScope agents: a middleware, its tools, and AgentScope's models as ours."""

from commonplace import MissingExtraError

try:
    import agentscope as _agentscope  # noqa: F401 -- only asks whether it is there
except ImportError as error:
    raise MissingExtraError(package="agentscope", extra="agentscope") from error

from .middleware import MemoryMiddleware
from .models import AgentScopeChat, AgentScopeEmbedder

__all__ = ["AgentScopeChat", "AgentScopeEmbedder", "MemoryMiddleware"]
