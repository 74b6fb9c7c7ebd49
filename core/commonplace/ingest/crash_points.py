"""Named crash points of the write path, at which a test may stop the process."""

from collections.abc import Callable

POINTS = (
    "before_journal",
    "after_journal",
    "before_plan",
    "after_plan",
    "before_graph",
    "after_graph",
    "after_index",
    "after_done",
    "before_flush",
    "after_flush",
    "after_prune",
)

_hooks: list[Callable[[str], None]] = []


def arm(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every point that is passed from now on; None disarms."""
    _hooks[:] = [] if hook is None else [hook]


def crash_point(name: str) -> None:
    """Pass a point."""
    for hook in _hooks:
        hook(name)
