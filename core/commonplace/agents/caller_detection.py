"""Reading who calls from the call stack, where a framework tells it in no other way.

An adapter asks the context variable of its own turns first. It reads the stack where the outer
agent has no memory of ours, and relies there on names that a framework may change. `StackRule` says
which; a rule that no longer holds is an error, so that nobody else's words are taken for a user's.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import FrameType

from ..errors import CommonplaceError


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRule:
    """What an adapter relies on in the call stack of its framework.

    Attributes:
        checked_with: the releases of the framework in which it holds, such as "strands-agents 1.52
            to 1.62".
        modules: that the framework must have.
        caller: prefix of the names of modules, one of which must be on the stack; empty if a
            program may call directly.
        package: prefix of the names of the modules whose variables are read; empty for all.
        variables: the local variables that are read.
    """

    checked_with: str
    modules: tuple[str, ...] = ()
    caller: str = ""
    package: str = ""
    variables: tuple[str, ...] = ("self",)


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A function that runs now: the name of its module, and those variables that were read."""

    module: str
    variables: Mapping[str, object]


class UnknownCallerError(CommonplaceError, RuntimeError):
    """A framework is not as a `StackRule` says, so it cannot be told who calls."""

    def __init__(self, *, rule: StackRule, missing: str) -> None:
        super().__init__(
            f"It cannot be told who calls, as {missing}: what is said here is not remembered as a "
            f"user's words. Install a release that was tested: {rule.checked_with}."
        )


def read_stack(rule: StackRule) -> list[StackFrame]:
    """List the functions that run now, innermost first, without the one that asks.

    Raises:
        UnknownCallerError: the framework lacks a module, or does not call here.
    """
    for module in rule.modules:
        if not _exists(module):
            raise UnknownCallerError(rule=rule, missing=f"there is no module {module}")
    frames = []
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 -- Python names it so
    while frame is not None:
        frames.append(_read(frame, rule))
        frame = frame.f_back
    if not any(one.module.startswith(rule.caller) for one in frames):
        raise UnknownCallerError(rule=rule, missing=f"no function of {rule.caller} calls")
    return frames


def _read(frame: FrameType, rule: StackRule) -> StackFrame:
    module = str(frame.f_globals.get("__name__"))
    variables: dict[str, object] = {}
    if module.startswith(rule.package):
        code = frame.f_code
        known = code.co_varnames + code.co_freevars + code.co_cellvars
        names = [name for name in rule.variables if name in known]
        if names:  # to read them costs a copy of all
            variables = {name: frame.f_locals.get(name) for name in names}
    return StackFrame(module, variables)


def _exists(module: str) -> bool:
    try:
        return module in sys.modules or find_spec(module) is not None
    except ImportError:  # of a parent
        return False
