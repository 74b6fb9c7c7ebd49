"""One memory for agents of Google's ADK: a memory service, a session service, a note."""

from commonplace import MissingExtraError

try:
    import google.adk as _adk  # noqa: F401 -- only to check that it is installed
except ImportError as _error:
    raise MissingExtraError(package="google-adk", extra="adk") from _error

from .sessions import CommonplaceSessionService
from .store import CommonplaceMemoryService
from .tools import PreloadNoteTool

__all__ = ["CommonplaceMemoryService", "CommonplaceSessionService", "PreloadNoteTool"]
