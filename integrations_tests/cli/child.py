"""A command that stops dead when a stage of it has come so far: `child.py STAGE NUMBER WORDS`."""

import contextlib
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from populated import embedder_of

from commonplace.cli import app, arguments, operators


def main(stage: str, number: int, words: list[str]) -> None:
    """Run a command and end it as a crash would."""

    @contextlib.contextmanager
    def progress():
        def tell(reached: str, done: int, total: int | None = None) -> None:
            if reached == stage and done >= number:
                os.kill(os.getpid(), signal.SIGKILL)

        yield tell

    arguments.embedder_of = embedder_of
    operators.progress = progress
    app.app(words)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
