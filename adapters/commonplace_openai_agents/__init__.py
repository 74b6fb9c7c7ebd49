"""One memory for agents of the OpenAI Agents SDK: hooks, instructions, tools, sessions."""

from commonplace import MissingExtraError

try:
    import agents as _agents  # noqa: F401 -- only to check that it is installed
except ImportError as _error:
    raise MissingExtraError(package="openai-agents", extra="openai-agents") from _error

from .middleware import MemoryHooks
from .sessions import CommonplaceSession

__all__ = ["CommonplaceSession", "MemoryHooks"]
