"""Command `commonplace`: its groups of commands, its version, and imports of adapters.

An installed adapter adds a subcommand to `commonplace import` by the entry point group
`commonplace.importers`: a function, loaded when its name is used.
"""

from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import commonplace

from .connections import connections
from .memories import memories
from .operators import imports, operators
from .options import Commands
from .output import answer, exit_on_error

GROUP = "commonplace.importers"
_IMPORTING = "Run the same command again: what is here already is not imported twice."


class Importers(TyperGroup):
    """Our own subcommands and those of installed adapters."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of all subcommands, sorted."""
        return sorted({*super().list_commands(ctx), *entry_points(group=GROUP).names})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a subcommand of ours, or load an adapter's."""
        found = super().get_command(ctx, cmd_name)
        for importer in entry_points(group=GROUP, name=cmd_name) if found is None else ():
            alone = Commands(add_completion=False)
            alone.register(cmd_name, again=_IMPORTING)(exit_on_error(importer.load)())
            return typer.main.get_command(alone)
        return found


app: typer.Typer = typer.Typer(
    name="commonplace",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(memories)
app.add_typer(operators)
app.add_typer(connections)
app.add_typer(
    imports,
    name="import",
    cls=Importers,
    no_args_is_help=True,
    help="Read memories from a file or another system.",
    rich_help_panel="Operators",
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        answer(f"commonplace {commonplace.__version__}")
        raise typer.Exit


@app.callback()
def run(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Long-term memories on the command line: use them, and copy, back up, check and repair them.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 nobody reads the output.
    """
