"""How long do the pages of `commonplace serve` take, and how large are they? People are made up.

    python benchmarks/pages.py [--users 200] [--folder DIR]

Each of 200 users has 90 turns in three sessions and ten facts with a relation: 20,000 records and
2,000 relations. Pages are asked for over HTTP, "Why this?" by each user for the first time.
"""

import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Annotated
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import typer
import uvicorn
from rich.console import Console
from rich.table import Table

from commonplace import Memory, Scope
from commonplace.web import create_app
from commonplace.web.views import PAGES

sys.path.append(str(Path(__file__).parents[1] / "integrations_tests" / "web"))
from logged import log_notes
from many import fill_many, session_of

QUESTIONS = (
    "Where did we go last spring?",
    "What am I allergic to?",
    "我住在哪里？",
    "Who is Ana?",
)


def timed(
    site: str, opener: OpenerDirector, name: str, **given: object
) -> tuple[float, float, int]:
    """Ask for a page; return seconds, seconds of the processor, and bytes."""
    began, used = time.perf_counter(), time.process_time()
    with opener.open(f"{site}/{name}?{urlencode(given)}") as answer:
        size = len(answer.read())
    return time.perf_counter() - began, time.process_time() - used, size


def measure(memory: Memory, site: str, users: int, out: Console) -> None:
    """Ask for every page of every tenth user, and for "Why this?" of every user."""
    opener = build_opener(HTTPCookieProcessor())
    opener.open(f"{site}/login?token=once").close()
    table = Table("page", "requests", "median s", "slowest s", "of the processor", "largest KB")
    for name in PAGES:
        found = []
        for number in range(0, users, 1 if name == "why" else 10):
            user = f"user-{number:03}"
            given: dict[str, object] = {"user": user}
            if name == "why":
                given["q"] = QUESTIONS[number % 4]
            elif name == "conversation":
                given |= {"agent": "helper", "session": "day 1"}
            elif name == "record":
                given["id"] = memory.list(Scope(user_id=user), limit=1)[0].id
            elif name in ("people", "operation"):
                given = {"page": number // 50 + 1, "check": number % 20 // 10}
            found.append(timed(site, opener, name, **given))
        seconds, used, sizes = zip(*found, strict=True)
        table.add_row(
            name, str(len(found)), f"{median(seconds):.3f}", f"{max(seconds):.3f}",
            f"{max(used):.3f}", f"{max(sizes) / 1024:.0f}",
        )  # fmt: skip
    out.print(table)


def main(users: Annotated[int, typer.Option(min=10)] = 200, folder: Path | None = None) -> None:
    """Fill a memory, unless the folder holds one, and measure its pages."""
    out = Console()
    with (
        tempfile.TemporaryDirectory() as made,
        Memory.open(str(folder or made)) as memory,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        if not memory.admin.list_scopes():
            fill_many(memory, users)
            for number in range(200):
                log_notes(memory, session_of(f"user-{number % users:03}", 3), QUESTIONS[number % 4])
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(create_app(memory, token="once"), log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            site = f"http://127.0.0.1:{listening.getsockname()[1]}"
            measure(memory, site, users, out)
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    typer.run(main)
