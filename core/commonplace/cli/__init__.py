"""The command line, `commonplace`; its packages come with the extra `cli`."""

import sys

from ..errors import MissingExtraError


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from .app import app  # noqa: PLC0415 -- only who runs it needs its packages
    except MissingExtraError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
    app()
