"""The error for another release of AgentScope than a module is for."""

from collections.abc import Iterator
from contextlib import contextmanager

from commonplace import CommonplaceError


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
