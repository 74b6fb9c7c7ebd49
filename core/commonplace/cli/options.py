"""Arguments and options that several commands share; an option given twice is refused."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from .output import NOTHING_CHANGED, exit_on_error

SENTENCE = "sentence-encoder"
_HOW = r"A folder, or graph=URL,vectors=URL\[,journal=FOLDER]"  # the backslash is for rich

PlaceName = Annotated[str, typer.Argument(metavar="LOCATION", help=f"{_HOW}.")]
OptionalPlaceName = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCATION",
        help=f"{_HOW}; by default from COMMONPLACE_PATH and the other settings, else ./memory.",
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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]


class OnceCommand(TyperCommand):
    """A command that refuses an option of one value that is given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        if not ctx.resilient_parsing:
            given = self.make_parser(ctx).parse_args([*args])[2]
            options: list[Any] = [one for one in self.params if one.param_type_name == "option"]
            for option in options:
                if not (option.multiple or option.is_flag) and given.count(option) > 1:
                    message = f"{option.opts[0]} is given twice. Give it once."
                    raise typer.BadParameter(message, ctx)
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """A group of such commands, which print an error and exit with its code."""

    def __init__(self, panel: str | None = None, **options: Any) -> None:
        self._panel = panel
        super().__init__(**options)

    def register(
        self, name: str | None = None, *, again: str = NOTHING_CHANGED
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a command."""
        add = self.command(name, cls=OnceCommand, rich_help_panel=self._panel)
        return lambda function: add(exit_on_error(function, again))
