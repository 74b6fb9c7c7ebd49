"""Command `commonplace`, or `python -m commonplace`; its packages come with the extra `cli`."""

import sys
from io import TextIOWrapper

from .errors import MissingExtraError


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from .cli.app import app  # only who runs it needs its packages

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # what its encoding lacks is escaped
                stream.reconfigure(errors="backslashreplace")
        app(prog_name="commonplace")
    except MissingExtraError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # before or after the command itself
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
