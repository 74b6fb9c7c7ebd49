"""Several processes that open one store in the same moment."""

import json
import subprocess
import sys
from pathlib import Path

CHILD = str(Path(__file__).with_name("together.py"))


def open_together(engine: str, number: int, **options: object) -> None:
    """Start processes, let them all open and write at once, and see that each of them could."""
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(
            [sys.executable, CHILD, engine, str(n), json.dumps(options)],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        for n in range(number)
    ]
    try:
        for one in started:
            one.stdout.readline()
        for one in started:
            one.stdin.write("go\n")
            one.stdin.flush()
        told = [one.communicate(timeout=120)[1] for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0] * number, told
