"""Command line `commonplace`; its packages come with the extra `cli`.

What an adapter's own command needs is imported from here. Every import of a module of this package
runs this one first, in which `output` tells what to install if those packages are missing.
"""

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
    "opened",
    "progress",
    "say",
    "show_refused",
    "show_tally",
]
