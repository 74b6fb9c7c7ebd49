"""Output of the commands: results on stdout, messages and questions on stderr.

Stored text is data of others: what could steer a terminal, such as escape sequences or marks that
reverse the direction of writing, is shown escaped.
"""

import contextlib
import functools
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import msgspec

from ..errors import (
    CommonplaceError,
    InvalidFilterError,
    InvalidRecordError,
    InvalidScopeError,
    MissingExtraError,
)

try:
    import typer
    from rich.cells import cell_len, set_cell_size
    from rich.console import Console
    from rich.filesize import decimal
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

if TYPE_CHECKING:
    from ..admin import ImportTally

P = ParamSpec("P")
T = TypeVar("T")
DONE, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130
_MAX_IDS = 5
READER_GONE = 141  # as a shell reports of a program that the signal SIGPIPE ended
NOTHING_CHANGED = "Nothing was changed; run the same command again."
_USAGE_ERRORS = (InvalidFilterError, InvalidRecordError, InvalidScopeError, MissingExtraError)
_JOINERS = "\u200c\u200d"  # scripts and emoji need them, and they hide nothing
_SHORT_ID = 8
_GAP = "  "
_LEAST_WIDTH = 24  # columns of a terminal for the text beside the other cells
_LONG_TEXT = 300  # characters of a text that a table on a terminal shows


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to `exit_on_error`."""
        raise BrokenPipeError


def say(sentence: str, *, style: str = "") -> None:
    """Print a message to stderr, on one line."""
    text = Text(printable(sentence), style=style)
    _Console(stderr=True).print(text, soft_wrap=True)


def refuse(sentence: str) -> NoReturn:
    """End a command that is not given as it must be."""
    say(sentence, style="red")
    raise typer.Exit(USAGE)


def answer(sentence: str) -> None:
    """Print a result to stdout, on one line."""
    write(printable(sentence))


def write(line: str) -> None:
    """Print a line of a result as it is."""
    sys.stdout.write(f"{line}\n")


def document(value: object) -> None:
    """Print data as one JSON document on one line, for programs.

    What could steer a terminal, and what its encoding lacks, is escaped; both are the same JSON.
    """
    plain = msgspec.to_builtins(value, enc_hook=_to_plain, str_keys=True)
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    text = json.dumps(plain, ensure_ascii=not encoding.startswith("utf"))
    write(text if text.isprintable() else "".join(map(_in_json, text)))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a table on a terminal, else as lines with tabs between the columns.

    Args:
        columns: the headings; cells of the last column may take several lines of a terminal, below
            the others where it is narrow.
    """
    escaped = [[printable(cell) for cell in row] for row in rows]
    if not on_terminal():
        for row in (columns, *escaped):
            write("\t".join(row))
        return
    console = _Console()
    *widths, longest = [
        max(cell_len(_shortened(row[at])) for row in (columns, *escaped))
        for at in range(len(columns))
    ]
    used = sum(widths) + len(_GAP) * len(widths)
    if console.width - used >= min(longest, _LEAST_WIDTH):
        shown = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0))
        for heading in columns:
            shown.add_column(heading, overflow="fold", no_wrap=heading != columns[-1])
        for row in escaped:
            shown.add_row(*(Text(_shortened(cell)) for cell in row))
        console.print(shown)
        return
    for row in (columns, *escaped):  # the last cell below the others
        parts = (set_cell_size(cell, width) for cell, width in zip(row, widths, strict=False))
        console.print(Text(_GAP.join(parts).rstrip()), soft_wrap=True)
        console.print(Padding(Text(_shortened(row[-1]), overflow="fold"), (0, 0, 0, len(_GAP))))


def fields(values: Mapping[str, str]) -> None:
    """Print names and values, one below the other, as `table` does."""
    escaped = {printable(name): printable(value) for name, value in values.items()}
    if not on_terminal():
        for name, value in escaped.items():
            write(f"{name}\t{value}")
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in escaped.items():
        grid.add_row(Text(name), Text(value))
    _Console().print(grid)


def show_tally(tally: "ImportTally", *, dry_run: bool) -> None:
    """Print what became of each kind of thing as a table, and why some were refused."""
    taken = "would be taken" if dry_run else "taken"
    rows: list[Sequence[str]] = []
    for kind in tally.kinds:
        counts = (tally.taken[kind], tally.known[kind], tally.refused(kind))
        rows.append((*map(str, counts), kind))
    if not rows:
        answer("There is nothing to import.")
        return
    table((taken, "here already", "refused", "what"), rows)
    for reasons in tally.reasons.values():
        show_refused(reasons)


def show_refused(reasons: dict[str, list[str]]) -> None:
    """Print each reason with how many were refused for it, and the first ids."""
    for reason, ids in reasons.items():
        shown = ", ".join(ids[:_MAX_IDS]) + (", …" if len(ids) > _MAX_IDS else "")
        say(f"{len(ids)} × {reason}: {shown}")


def printable(text: str) -> str:
    """Escape what could steer a terminal or hide text: controls, line breaks, bidi marks."""
    if text.isprintable():
        return text
    return "".join(
        mark if _is_harmless(mark) else mark.encode("unicode_escape").decode() for mark in text
    )


def short_id(record_id: str) -> str:
    """Shorten an id on a terminal to what `show` takes; programs are given all of it."""
    return record_id[:_SHORT_ID] if on_terminal() else record_id


def day(at: datetime | None) -> str:
    """Write the day of a time, in UTC."""
    return "" if at is None else at.astimezone(UTC).date().isoformat()


def moment(at: datetime | None) -> str:
    """Write a time to the second, in UTC."""
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def size(number: int) -> str:
    """Write a number of bytes for people."""
    return f"{number} B" if number < 1000 else decimal(number)


def on_terminal() -> bool:
    """Tell whether results go to a terminal."""
    return _Console().is_terminal


def can_ask() -> bool:
    """Tell whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def exit_on_error(command: Callable[P, T], again: str = NOTHING_CHANGED) -> Callable[P, T]:
    """Make a command print an error and exit with its code instead of raising.

    Args:
        again: what to say when it is interrupted: whether and how it can be run again.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            result = command(*args, **kwargs)
            if not sys.stdout.closed:  # as a server closes it that talked over it
                sys.stdout.flush()
        except CommonplaceError as error:
            say(str(error), style="red")
            code = USAGE if isinstance(error, _USAGE_ERRORS) else FAILURE
        except (KeyboardInterrupt, typer.Abort):
            say(f"Interrupted. {again}")
            code = INTERRUPTED
        except BrokenPipeError:
            _abandon_stdout()
            code = READER_GONE
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            say(f"{where}{error.strerror or error}.", style="red")
            code = FAILURE
        else:
            return result
        raise typer.Exit(code) from None

    return run


def _abandon_stdout() -> None:
    """Keep Python from failing once more at its end, when it flushes what nobody reads."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_harmless(character: str) -> bool:
    if character.isprintable() or character in _JOINERS:
        return True
    # Zs: spaces of other scripts, Cn: what Python does not know yet, Co: private.
    return unicodedata.category(character) in ("Zs", "Cn", "Co")


def _in_json(character: str) -> str:
    """Escape a character of a JSON string, where it must be; no other part of JSON has such."""
    if _is_harmless(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _shortened(text: str) -> str:
    if len(text) <= _LONG_TEXT:
        return text
    return f"{text[:_LONG_TEXT]}… ({len(text)} characters)"


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
