"""Commands that refuse an option given twice, of which the last one alone would count."""

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import MissingExtraError

try:
    import typer
    from typer.core import TyperCommand
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

Function = TypeVar("Function", bound=Callable[..., Any])


class OnceCommand(TyperCommand):
    """A command each of whose options of one value is given once at most."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and refuse an option that is among them twice."""
        if not ctx.resilient_parsing:
            given = self.make_parser(ctx).parse_args([*args])[2]
            for option in filter(_has_one_value, self.params):
                if given.count(option) > 1:
                    message = f"{option.opts[0]} is given twice. Give it once."
                    raise typer.BadParameter(message, ctx)
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """A group of such commands."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        """Add a command."""
        return super().command(name, **{"cls": OnceCommand, **options})


def _has_one_value(option: Any) -> bool:
    return option.param_type_name == "option" and not (option.multiple or option.is_flag)
