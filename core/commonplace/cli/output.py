"""What a command shows: progress and sentences on stderr, what was asked for on stdout."""

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
WRONG, USAGE = 1, 2


def say(sentence: str, *, style: str = "") -> None:
    """Show a sentence beside the answer."""
    Console(stderr=True).print(sentence, style=style, markup=False, highlight=False, soft_wrap=True)


def answer(sentence: str) -> None:
    """Show what was asked for."""
    Console().print(sentence, markup=False, highlight=False, soft_wrap=True)


def told(command: Callable[P, T]) -> Callable[P, T]:
    """Let a command end with a sentence and an exit code where it would raise an error of ours."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except CommonplaceError as error:
            say(str(error), style="red")
            is_usage = isinstance(error, (InvalidRecordError, MissingExtraError))
            raise typer.Exit(USAGE if is_usage else WRONG) from None
        except OSError as error:
            say(str(error), style="red")
            raise typer.Exit(WRONG) from None

    return run


@contextmanager
def progress() -> Iterator[Callable[[str, int], None]]:
    """Show how far each stage of a long command is, where somebody looks."""
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    stages: dict[str, TaskID] = {}
    with bars:

        def told(stage: str, done: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage, total=None)
            bars.update(stages[stage], completed=done)

        yield told
