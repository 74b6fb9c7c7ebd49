"""A browser, and the pages of a small memory for it: for tests, and for pictures in the docs."""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.web import create_app

from .logged import log_notes

ALICE = Scope(user_id="alice")
PLANNING = Scope(user_id="alice", agent_id="planner", session_id="trip-to-kyoto")
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_HOW = f"no browser: put one of {', '.join(_NAMES)} on the PATH"
_LIFE = [  # days since the beginning, what is known, and its relations
    (0, "Alice lives in Rome.", [("Alice", "lives_in", "Rome")]),
    (1, "Alice is allergic to peanuts.", [("Alice", "allergic_to", "peanuts")]),
    (3, "Alice works as a botanist at the Museum of Natural History.",
     [("Alice", "works_at", "Museum of Natural History")]),
    (5, "Bob is Alice's brother and lives in Oslo.",
     [("Bob", "brother_of", "Alice"), ("Bob", "lives_in", "Oslo")]),
    (9, "Alice learns Japanese with Yuki on Thursdays.",
     [("Alice", "learns", "Japanese"), ("Yuki", "teaches", "Japanese")]),
    (20, "Yuki was born in Kyoto.", [("Yuki", "born_in", "Kyoto")]),
    (60, "Alice moved to Lyon in May.", [("Alice", "lives_in", "Lyon")]),
    (62, "Alice prefers trains to planes.", [("Alice", "prefers", "trains")]),
]  # fmt: skip
_TALK = [
    ("user", "I want to see the gardens of Kyoto in April."),
    ("assistant", "Early April is best for the cherry trees. How long would you stay?"),
    ("user", "Ten days, and I'd like to stay near the botanical garden."),
    (
        "assistant",
        "The way: https://trains.example/plan?from=lyon&to=kyoto&days=10&near=" + "garden" * 9,
    ),
    ("user", "Which food am I allergic to?"),
    ("assistant", "Peanuts, so I left out the restaurant with the satay."),
]


def fill(memory: Memory) -> None:
    """Tell a memory of Alice's spring, and of 15 other people."""
    for day, text, told in _LIFE:
        at = BEGIN + timedelta(days=day)
        relations = [Relation(subject=one, predicate=how, object=two) for one, how, two in told]
        memory.add(Fact(text=text, relations=relations, at=at), ALICE)
    turns = [
        Message(text=text, role=role, at=BEGIN + timedelta(days=70, minutes=number))
        for number, (role, text) in enumerate(_TALK)
    ]
    memory.add(turns, PLANNING, infer=False)
    memory.session(PLANNING).summarize("Alice plans ten days in Kyoto in April, near the gardens.")
    [known] = [one.id for one in memory.list(ALICE) if "prefers" in one.text]
    memory.update(known, "Alice prefers night trains to planes.", ALICE)
    for number in range(15):
        other = Scope(user_id=f"visitor-{number:02}", agent_id="planner", session_id="visit")
        memory.add(
            [Message(text=f"I came {n} times. 我来过。") for n in range(6)], other, infer=False
        )
    log_notes(memory, PLANNING, "Which food am I allergic to?", "Where does Alice live?")


def addresses(memory: Memory) -> dict[str, str]:
    """Write the address of each view of Alice, with something in it; `error` has nothing."""
    [known] = [one.id for one in memory.list(ALICE) if "night trains" in one.text]
    return {
        "why": "why?user=alice&q=Where+does+Alice+live%3F&top_k=3",
        "people": "people",
        "person": "person?user=alice",
        "records": "records?user=alice",
        "conversation": "conversation?user=alice&agent=planner&session=trip-to-kyoto",
        "record": f"record?user=alice&id={known}",
        "about": "about?user=alice",
        "graph": "graph?user=alice",
        "forget": "forget?user=alice",
        "rights": "rights?user=alice",
        "operation": "operation?check=1",
        "error": "record?user=alice&id=none",
    }


@contextmanager
def serving(memory: Memory, **options: Any) -> Iterator[str]:
    """Serve the pages of a memory on a thread, with the operator's token `once`."""
    app = create_app(memory, token="once", **options)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser of this machine, without a window.

    Raises:
        Skipped: there is none.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(_HOW)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        yield browser
        browser.close()


def log_in(browser: Browser, at: str) -> Any:
    """Log the operator in; return what a context must have to be logged in, too."""
    with browser.new_context() as context:
        page: Page = context.new_page()
        page.goto(f"{at}/login?token=once")
        return context.storage_state()
