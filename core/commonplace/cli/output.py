"""Output of the commands: results on stdout, progress and messages on stderr."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from ..errors import CommonplaceError, InvalidRecordError, MissingExtraError

try:
    import typer
    from rich.console import Console
    from rich.progress import (
        Progress,
        SpinnerColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

P = ParamSpec("P")
T = TypeVar("T")
FAILURE, USAGE = 1, 2


def say(sentence: str, *, style: str = "") -> None:
    """Print a message to stderr."""
    Console(stderr=True).print(sentence, style=style, markup=False, highlight=False, soft_wrap=True)


def answer(sentence: str) -> None:
    """Print a result to stdout."""
    Console().print(sentence, markup=False, highlight=False, soft_wrap=True)


def exit_on_error(command: Callable[P, T]) -> Callable[P, T]:
    """Make a command print a `CommonplaceError` and exit with a code instead of raising."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except CommonplaceError as error:
            say(str(error), style="red")
            is_usage = isinstance(error, (InvalidRecordError, MissingExtraError))
            raise typer.Exit(USAGE if is_usage else FAILURE) from None
        except OSError as error:
            say(str(error), style="red")
            raise typer.Exit(FAILURE) from None

    return run


@contextmanager
def progress() -> Iterator[Callable[[str, int], None]]:
    """Show the progress of each stage of a long command, on a terminal."""
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    stages: dict[str, TaskID] = {}
    with bars:

        def show(stage: str, done: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage, total=None)
            bars.update(stages[stage], completed=done)

        yield show
