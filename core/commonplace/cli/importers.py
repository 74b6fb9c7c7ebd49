"""Subcommands of `commonplace import` that adapters bring with them.

An adapter names a function in the entry point group `commonplace.importers`; it becomes a
subcommand, with the arguments that it has, and is loaded when it is asked for.
"""

from importlib.metadata import entry_points
from typing import Any

from ..errors import MissingExtra

try:
    import typer
    from typer.core import TyperGroup
except ImportError as error:
    raise MissingExtra(package="typer", extra="cli") from error

from .shown import told

GROUP = "commonplace.importers"


class Importers(TyperGroup):
    """Our own subcommands and those of installed adapters."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name them all, sorted."""
        return sorted({*super().list_commands(ctx), *entry_points(group=GROUP).names})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find ours, or load an adapter's."""
        found = super().get_command(ctx, cmd_name)
        for one in entry_points(group=GROUP, name=cmd_name) if found is None else ():
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(told(told(one.load)()))
            return typer.main.get_command(alone)
        return found
