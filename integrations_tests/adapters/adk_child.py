"""A writer of events to a session of ADK, as a process of its own: `adk_child.py FOLDER NAME`."""

import asyncio
import sys
import warnings

warnings.simplefilter("ignore")

from google.adk.errors import StaleSessionError
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import Session

from commonplace import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace_adk import CommonplaceSessionService

EVENTS = 20
NAMES = {"app_name": "app", "user_id": "alice", "session_id": "s"}


async def write(sessions: CommonplaceSessionService, session: Session, name: str) -> int:
    """Append events, reading the session again when it is stale; return how often it was."""
    stale = 0
    for number in range(EVENTS):
        key = f"{name}{number}"
        delta = {key: number, f"user:{key}": number, f"app:{key}": number}
        while True:
            event = Event(author="user", actions=EventActions(state_delta=delta))
            try:
                await sessions.append_event(session, event)
                break
            except StaleSessionError:
                stale += 1
                session = await sessions.get_session(**NAMES)
    return stale


if __name__ == "__main__":
    with Memory.open(sys.argv[1], embedder=HashEmbedder()) as opened:
        service = CommonplaceSessionService(opened)
        # Read before any process writes: it is stale for all but the first that does.
        read = asyncio.run(service.get_session(**NAMES))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        sys.stdout.write(str(asyncio.run(write(service, read, sys.argv[2]))))
