"""Full disk under the turns of agents, in a process of its own: they wait, and are written.

As a program, it takes FOLDER SECONDS MAX_WAITING, and prints as JSON what became of turns that are
written without an event loop, and with one. The folder is the whole of a small file system, which
is full for so many seconds.
"""

import asyncio
import json
import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from integrations_tests.crash.small_blocks import fill

from commonplace import Memory, Message, Scope
from commonplace.agents import AgentMemory, MemoryEvent, Policy
from commonplace.testing.fakes import HashEmbedder

USERS = [Scope(user_id=name) for name in ("alice", "bob", "carol")]
TURNS = 40  # of each user, a quarter of them while the disk is full


class Trial:
    """Turns of several users, in the middle of which the disk is full."""

    def __init__(self, folder: Path, seconds: float, max_waiting: int, *, is_async: bool) -> None:
        self._folder = folder
        self._seconds = seconds
        self._is_async = is_async
        self._events: list[MemoryEvent] = []
        self._place = str(folder / f"memory {is_async}")
        self._memory = Memory.open(self._place, embedder=HashEmbedder())
        policy = Policy(max_waiting=max_waiting)
        self._agent = AgentMemory(self._memory, policy, log="trial", on_event=self._events.append)
        self._raised: list[str] = []
        self._slowest = 0.0

    def run(self) -> dict[str, Any]:
        """Take all turns; return what became of them."""
        self._take(range(TURNS // 4))
        filler = fill(self._folder, 0)
        began = time.monotonic()
        self._take(range(TURNS // 4, TURNS // 2))
        counted = self._agent.counters()
        time.sleep(max(0.0, began + self._seconds - time.monotonic()))
        still = self._agent.counters().waiting
        filler.unlink()
        freed = time.monotonic()
        while self._agent.counters().waiting and time.monotonic() < freed + 90:
            time.sleep(0.01)
        by_itself = time.monotonic() - freed
        self._take(range(TURNS // 2, TURNS))
        self._memory.flush()
        told = Counter(one.name for one in self._events)
        found = {
            "waiting": counted.waiting, "still": still, "lost": counted.lost,
            "after": self._agent.counters().waiting, "by_itself": round(by_itself, 2),
            "slowest": round(self._slowest, 3), "raised": self._raised, "told": told,
        }  # fmt: skip
        found["users"] = [self._numbers(user) for user in USERS]
        self._memory.close()
        shutil.rmtree(self._place)
        return found

    def _take(self, numbers: range) -> None:
        for number in numbers:
            for user in USERS:
                said = [Message(text=f"I said {number}. {'z' * 400}")]
                began = time.monotonic()
                try:
                    if self._is_async:
                        asyncio.run(self._awrite(said, user))
                    else:
                        self._agent.write(said, user)
                except Exception as error:  # noqa: BLE001 -- what the count is about
                    self._raised.append(repr(error))
                self._slowest = max(self._slowest, time.monotonic() - began)

    async def _awrite(self, said: list[Message], user: Scope) -> None:
        await self._agent.awrite(said, user)

    def _numbers(self, user: Scope) -> list[int]:
        """List the numbers of the turns of a user that are stored, in the order of storing."""
        records = self._memory.list(user, limit=1_000).records
        return [int(one.text.split()[2].rstrip(".")) for one in reversed(records)]


if __name__ == "__main__":
    folder, seconds, most = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    found = [Trial(folder, seconds, most, is_async=is_async).run() for is_async in (False, True)]
    os.write(1, json.dumps(found).encode())
