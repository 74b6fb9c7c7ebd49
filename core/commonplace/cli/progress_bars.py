"""Progress bars of long commands: how much of how much, how fast, and the time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from .output import size

_BYTES = ("verify", "backup")  # stages that count bytes
_BAR = 20  # columns


class _Amount(ProgressColumn):
    """How much is done, of how much, and how much of it in a second."""

    def render(self, task: Task) -> Text:
        """Write the numbers of one stage."""
        write = size if task.description in _BYTES else "{:,}".format
        done = write(int(task.completed))
        whole = "" if task.total is None else f" of {write(int(task.total))}"
        speed = task.finished_speed or task.speed
        rate = "" if speed is None else f", {write(int(speed))}/s"
        return Text(f"{done}{whole}{rate}")


@contextmanager
def progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """Show the progress of each stage of a long command on stderr, if that is a terminal.

    Yields:
        A function of a stage, the number that is done, and of how many if that is known.
    """
    console = Console(stderr=True)
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR),
        _Amount(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,  # the report follows
        disable=not console.is_terminal,
    )
    stages: dict[str, TaskID] = {}
    with bars:

        def show(stage: str, done: int, total: int | None = None) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage, total=None)
            # Others may write meanwhile: then there is more than was counted at first.
            whole = None if total is None else max(total, done)
            bars.update(stages[stage], completed=done, total=whole)

        yield show
