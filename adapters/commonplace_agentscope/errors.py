"""Errors of this adapter, for what belongs to another library or to another release."""

from collections.abc import Iterator
from contextlib import contextmanager

from commonplace import CommonplaceError, WrongTypeError


def wrong_model(field: str, model: object, theirs: str, ours: str) -> WrongTypeError:
    """Make the error for a model that is neither AgentScope's nor one of the core's protocol."""
    return WrongTypeError(
        field=field,
        value=model,
        takes=f"an AgentScope {theirs} or a commonplace {ours}",
        hint="Pass an instance of one.",
    )


class MissingReleaseError(CommonplaceError, ImportError):
    """The installed release of a package is not the one that a module is for."""

    def __init__(self, *, requirement: str, reason: str) -> None:
        super().__init__(
            f"This needs {requirement}: {reason}. Install it in an environment of its own, with "
            "the requirements that docs/agentscope.md names."
        )


@contextmanager
def importing(requirement: str) -> Iterator[None]:
    """Say which release is needed, where an import fails in the block.

    Raises:
        MissingReleaseError: it failed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingReleaseError(requirement=requirement, reason=str(error)) from error
