"""Long-term memory for AgentScope agents: a middleware, its tools, and model wrappers for 2.x.

`commonplace_agentscope.v1` is for AgentScope 1.x, `commonplace_agentscope.runtime_service` for
agentscope-runtime. Each name is imported when it is first used, as no environment has all three.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from commonplace import CommonplaceError, MissingExtraError

if TYPE_CHECKING:
    from .middleware import CommonplaceMiddleware
    from .models import AgentScopeChat
    from .offloader import CommonplaceOffloader
    from .shared_models import AgentScopeEmbedder

if find_spec("agentscope") is None:
    raise MissingExtraError(package="agentscope", extra="agentscope")

__all__ = [
    "AgentScopeChat",
    "AgentScopeEmbedder",
    "CommonplaceMiddleware",
    "CommonplaceOffloader",
]

_MODULES = {
    "AgentScopeChat": ".models",
    "AgentScopeEmbedder": ".shared_models",
    "CommonplaceMiddleware": ".middleware",
    "CommonplaceOffloader": ".offloader",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")  # as Python words it
    try:
        module = import_module(_MODULES[name], __name__)
    except ImportError as error:
        if not (error.name or "").startswith("agentscope"):
            raise
        # 1.x lacks the modules and names of 2.x.
        raise MissingExtraError(package="agentscope>=2", extra="agentscope") from error
    globals()[name] = value = getattr(module, name)
    return value


class MissingReleaseError(CommonplaceError, ImportError):
    """The installed release of a package is not the one that a module is for."""

    def __init__(self, *, requirement: str, reason: str) -> None:
        super().__init__(
            f"This needs {requirement}: {reason}. Install it in an environment of its own, with "
            "the requirements that docs/agentscope.md names."
        )


@contextmanager
def importing(requirement: str) -> Iterator[None]:
    """Say which release is needed, where an import fails in the block."""
    try:
        yield
    except ImportError as error:
        raise MissingReleaseError(requirement=requirement, reason=str(error)) from error
