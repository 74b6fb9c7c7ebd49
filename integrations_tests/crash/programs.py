"""Process that imports everything once, which takes seconds, and forks one for each program.

As a program it reads what to run, a line of JSON each, and answers each with a line.
"""

import contextlib
import dataclasses
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Programs:
    """The process, which is started for the first program."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, module: str, engines: str, form: str, folder: Path) -> dict[str, Any]:
        """Run a program on the servers that the environment names; return its counts."""
        if self._process is None:
            pipe, command = subprocess.PIPE, [sys.executable, __file__]
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        servers = {name: one for name, one in os.environ.items() if name.startswith("TEST_")}
        given = json.dumps([module, engines, form, str(folder), servers])
        try:
            self._process.stdin.write(f"{given}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, f"the process ended with {self._process.wait()}"
            found: dict[str, Any] = json.loads(answer)
        except BaseException:
            self.close()  # the next one shall not read this answer
            raise
        assert "error" not in found, found["error"]
        return found

    def close(self) -> None:
        """End the process, and the program that it runs."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None


def counted(
    module: str, engines: str, form: str, folder: str, servers: dict[str, str],
    say: Callable[..., None],
) -> None:  # fmt: skip
    """Run a program in this process, and say its counts."""
    os.environ.update(servers)
    started = time.monotonic()
    results = importlib.import_module(module).run(engines, form, Path(folder))
    actions = {name: dataclasses.asdict(counts) for name, counts in results.items()}
    say(actions=actions, seconds=time.monotonic() - started)


def main() -> None:
    """Run each program that is asked for in a process of its own."""
    from crash_matrix import forked, warm_up

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a program prints is no answer
    warm_up()
    for line in sys.stdin:
        ended = forked(functools.partial(counted, *json.loads(line)), seconds=0)
        found = ended.said[-1] if ended.said else {"error": f"ended with {ended.code}"}
        answers.write(f"{json.dumps(found)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
