"""Command line `commonplace`; its packages come with the extra `cli`.

What an adapter's own command needs is imported from here; those packages load when it is first
asked for.
"""

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

from ..errors import MissingExtraError

if TYPE_CHECKING:
    from .arguments import embedder_of, importing, opened
    from .options import SENTENCE, EmbedderName, PlaceName
    from .output import answer, say, show_refused, show_tally
    from .progress_bars import progress

__all__ = [
    "SENTENCE",
    "EmbedderName",
    "PlaceName",
    "answer",
    "embedder_of",
    "importing",
    "main",
    "opened",
    "progress",
    "say",
    "show_refused",
    "show_tally",
]

_LAZY = {
    "SENTENCE": ".options",
    "EmbedderName": ".options",
    "PlaceName": ".options",
    "answer": ".output",
    "embedder_of": ".arguments",
    "importing": ".arguments",
    "opened": ".arguments",
    "progress": ".progress_bars",
    "say": ".output",
    "show_refused": ".output",
    "show_tally": ".output",
}


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from .app import app  # only who runs it needs its packages

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # what its encoding lacks is escaped
                stream.reconfigure(errors="backslashreplace")
        app(prog_name="commonplace")
    except MissingExtraError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # before or after the command itself
        raise SystemExit(130) from None


if not TYPE_CHECKING:  # so that type checkers still report unknown names

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        found = getattr(import_module(_LAZY[name], __name__), name)
        globals()[name] = found
        return found
