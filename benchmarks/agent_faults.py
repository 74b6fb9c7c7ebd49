"""Turns of an agent under a memory that is slow, fails for a while, or loses its caller.

A turn is kept when the user's words are listed in the memory after a flush at the end. The
embedder is a fake that costs nothing but the time that is asked for.
"""

import asyncio
import logging
import sqlite3
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent_days import LANGUAGES, lives
from agent_drivers import Driver, make_driver

from commonplace import Memory, Scope, Settings, StoreUnavailableError
from commonplace.ports.stores import arm_crash_points
from commonplace.testing.fakes import HashEmbedder

SLOW, SLOWEST, FAILING = "slow 0.7 s", "slow 6 s", "embedder fails"
AWAY, LOCKED, CANCELLED = "store away", "file locked", "cancelled"
CROWD = "24 users, 6 s"
FAULTS = (SLOW, SLOWEST, CROWD, FAILING, AWAY, LOCKED, CANCELLED)
_USERS, _CROWD = 2, 24
_OUTAGE = 3.0  # seconds
_MODEL, _GIVES_UP = 0.5, 0.1
_EVERY = 3  # which turn's caller gives up
_FLUSH = 90.0
_RETRY_AFTER = 0.05  # seconds; its doubling would make the end of the outage a long wait
_TURNS = {SLOW: 4, SLOWEST: 3, FAILING: 5, AWAY: 3, LOCKED: 5, CANCELLED: 6, CROWD: 1}
_QUICK_TURNS = {
    SLOW: 2,
    SLOWEST: 1,
    FAILING: 3,
    AWAY: 2,
    LOCKED: 3,
    CANCELLED: 3,
}  # a crowd takes long


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of the turns under one fault: the user's words that were said, and were lost.

    Attributes:
        errors: what the agent's caller was told, where it was told anything.
        seconds: of the longest turn.
    """

    adapter: str
    fault: str
    said: int
    lost: tuple[str, ...]
    errors: tuple[str, ...]
    seconds: float


class _Embedder(HashEmbedder):
    """An embedder that takes its time, or fails.

    Attributes:
        is_slow_for: the purposes that take `seconds`; empty for both.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(64)
        self.seconds = seconds
        self.is_slow_for: tuple[str, ...] = ("query", "document")
        self.fails = False

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed after a while."""
        if self.fails:
            raise ConnectionError("the embedder is away")
        if self.seconds and purpose in self.is_slow_for:
            time.sleep(self.seconds)
        return super().embed(texts, purpose=purpose)


def play_faults(adapter: str, seed: int, *, quick: bool = False) -> list[Kept]:
    """Play all faults through one adapter; to be called in a process of its own."""
    logging.disable(logging.CRITICAL)  # the adapters tell that the memory fails
    # Alone, for it is away for the whole process.
    away = asyncio.run(_Play(adapter, AWAY, seed, quick=quick).run())
    rest = [one for one in (_QUICK_TURNS if quick else _TURNS) if one != AWAY]
    with ThreadPoolExecutor(len(rest)) as threads:
        played = threads.map(
            lambda fault: asyncio.run(_Play(adapter, fault, seed, quick=quick).run()), rest
        )
        return [away, *played]


class _Play:
    """Some turns of a few users at once, under one fault.

    The last user's program runs each turn in an event loop of its own, as blocking code does.
    """

    def __init__(self, adapter: str, fault: str, seed: int, *, quick: bool) -> None:
        self._adapter, self._fault = adapter, fault
        turns = (_QUICK_TURNS if quick else _TURNS)[fault]
        users = _CROWD if fault == CROWD else _USERS
        both = [life for one in LANGUAGES for life in lives(one, users // 2, seed)]
        self._texts = {
            life.name: [turn.text for session in life.sessions for turn in session.turns][:turns]
            for life in both
        }
        self._embedder = _Embedder({SLOW: 0.7, SLOWEST: 6.0, CROWD: 6.0}.get(fault, 0.0))
        self._in_loops = list(self._texts)[-1]
        self._errors: list[str] = []
        self._longest = 0.0
        self._has_begun = False

    async def run(self) -> Kept:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            # A journal of its own is what a host has beside stores on servers.
            journal = str(Path(folder) / "journal") if self._fault == AWAY else None
            place = str(Path(folder) / "memory")
            memory = await Memory.aopen(
                place,
                journal=journal,
                embedder=self._embedder,
                settings=Settings(retry_after=_RETRY_AFTER) if journal else None,
            )
            try:
                await asyncio.gather(*(self._user(memory, name, place) for name in self._texts))
                await asyncio.sleep(_MODEL)  # for what callers that gave up left behind
                await memory.aflush(_FLUSH)
                lost = [text for name in self._texts for text in self._lost(memory, name)]
            finally:
                await memory.aclose(1.0)
        return Kept(
            adapter=self._adapter,
            fault=self._fault,
            said=sum(map(len, self._texts.values())),
            lost=tuple(lost),
            errors=tuple(self._errors),
            seconds=self._longest,
        )

    async def _user(self, memory: Memory, name: str, place: str) -> None:
        driver = make_driver(self._adapter, memory, name)
        if self._fault == CANCELLED and self._adapter == "mem0":
            # Its loop adds a turn after the model's answer: the caller gives up while it is added.
            self._embedder.seconds, self._embedder.is_slow_for = _MODEL, ("document",)
        elif self._fault == CANCELLED:
            driver.script.pause = _MODEL
        await driver.begin(f"{name} 1")
        for number, text in enumerate(self._texts[name], 1):
            if number == 2:
                self._break(place)
            start = time.monotonic()
            try:
                if self._fault == CANCELLED and number % _EVERY == 0:
                    await self._give_up(driver, text)
                elif self._fault != CANCELLED and name == self._in_loops:
                    await asyncio.to_thread(asyncio.run, driver.say(text, "I see."))
                else:
                    await driver.say(text, "I see.")
            except Exception as error:  # noqa: BLE001 -- counted
                self._errors.append(f"{type(error).__name__}: {error}")
            self._longest = max(self._longest, time.monotonic() - start)

    async def _give_up(self, driver: Driver, text: str) -> None:
        driver.script.was_called.clear()
        work: Coroutine[Any, Any, list[str]] = driver.say(text, "I see.")
        turn = asyncio.create_task(work)
        called = asyncio.create_task(driver.script.was_called.wait())
        await asyncio.wait({turn, called}, return_when=asyncio.FIRST_COMPLETED)
        called.cancel()
        await asyncio.sleep(_GIVES_UP)
        turn.cancel()
        await asyncio.wait({turn})

    def _break(self, place: str) -> None:
        """Begin the outage, once for all users; it ends by itself."""
        if self._has_begun:
            return
        self._has_begun = True
        mend: Callable[[], object] | None = None
        if self._fault == FAILING:
            self._embedder.fails = True
            mend = self._mend
        elif self._fault == AWAY:
            arm_crash_points(_away)
            mend = _back
        elif self._fault == LOCKED:
            other = sqlite3.connect(
                Path(place) / "memory.db", isolation_level=None, check_same_thread=False
            )
            other.execute("BEGIN IMMEDIATE")
            mend = other.close
        if mend is not None:
            asyncio.get_running_loop().call_later(_OUTAGE, mend)

    def _mend(self) -> None:
        self._embedder.fails = False

    def _lost(self, memory: Memory, name: str) -> list[str]:
        records = memory.list(Scope(user_id=name), limit=1_000).records
        kept = {one.text.strip() for one in records}
        return [text for text in self._texts[name] if text not in kept]


def _away(point: str) -> None:
    if point == "before_graph":
        raise StoreUnavailableError(store="the server", reason="no answer")


def _back() -> None:
    arm_crash_points(None)
