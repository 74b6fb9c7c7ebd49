"""Child processes of tests: several that open one store at once, a server that is killed."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace.errors import StoreUnavailableError

from .server_process import Server

CHILD = str(Path(__file__).with_name("concurrent_child.py"))


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
        errors = [one.communicate(timeout=120)[1] for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0] * number, errors


def kill_among(server: Server, writes: Sequence[Callable[[], object]], after: int) -> int:
    """Write one after the other, kill the server after so many writes, and start it again.

    Answers how many were acknowledged: at least `after`, and not all.
    """
    acknowledged: list[object] = []
    enough = threading.Event()

    def work() -> None:
        for write in writes:
            acknowledged.append(write())
            if len(acknowledged) == after:
                enough.set()

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(work)
        enough.wait(60)
        server.kill()
        with pytest.raises(StoreUnavailableError):
            written.result()
    server.start()
    assert after <= len(acknowledged) < len(writes)
    return len(acknowledged)
