"""Arguments and options that several commands share."""

from typing import Annotated

from ..errors import MissingExtraError
from ..model import KINDS

try:
    import typer
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

SENTENCE = "sentence-encoder"
_HOW = r"A folder, or graph=URL,vectors=URL\[,journal=FOLDER]"  # the backslash is for rich

PlaceName = Annotated[str, typer.Argument(metavar="LOCATION", help=f"{_HOW}.")]
OptionalPlaceName = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCATION",
        help=f"{_HOW}; when left out, COMMONPLACE_PATH and the other settings say, else ./memory.",
        show_default=False,
    ),
]
EmbedderName = Annotated[
    str,
    typer.Option(
        "--embedder",
        envvar="COMMONPLACE_EMBEDDER",
        help=r"sentence-encoder, minilm-tokens, fastembed:MODEL or openai:MODEL\[@DIMENSIONS].",
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user", help="Whose memory: the id of a user. Without it, only what belongs to no user."
    ),
]
Agent = Annotated[str | None, typer.Option("--agent", help="Only of this agent.")]
Session = Annotated[str | None, typer.Option("--session", help="Only of this session.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
FilterText = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help='Such as {"city": "Lyon", "year": {"gte": 2020}}.'
    ),
]
KindNames = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help=f"Only {', '.join(KINDS)}; may be repeated.", autocompletion=lambda: KINDS
    ),
]
Superseded = Annotated[bool, typer.Option("--superseded", help="Also what is no longer true.")]
Expired = Annotated[bool, typer.Option("--expired", help="Also what has expired.")]
