"""What once went wrong, or would at a peer: races, odd models, odd times."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from commonplace import Fact, InvalidRecord, Memory, Message, Scope, Settings
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
TURN = Message(text="I moved to Lyon in March", name="Alice", id="1")
QUICK = Settings(retry_after=0.01, max_attempts=3)


class SlowEmbedder(HashEmbedder):
    """Awaits a moment before it answers."""

    seconds = 0.05

    async def embed(self, texts: Sequence[str], *, purpose: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(self.seconds)
        return super().embed(texts, purpose=purpose)  # type: ignore[arg-type]


def open_memory(folder: Path, **given: Any) -> Memory:
    return Memory.open(str(folder), **{"embedder": HashEmbedder(), **given})


def count(memory: Memory) -> int:
    return sum(len(memory.list(Scope(user_id=f"user {n}"), limit=1000).records) for n in range(24))


def test_many_threads_of_many_users_lose_no_answer(memory: Memory) -> None:
    def write(n: int) -> None:
        for k in range(40):
            memory.add(f"note {n} {k}", Scope(user_id=f"user {n}"))

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(write, range(24)))

    assert count(memory) == 24 * 40


def test_many_slow_plans_on_one_loop_lose_no_answer(tmp_path: Path) -> None:
    async def write() -> None:
        async with open_memory(tmp_path, embedder=SlowEmbedder()) as memory:
            await asyncio.gather(
                *[memory.aadd(f"note {k}", Scope(user_id=f"user {k % 24}")) for k in range(960)]
            )
            assert await memory._run(count, memory) == 960

    asyncio.run(asyncio.wait_for(write(), 60))


@pytest.mark.parametrize("answer", ["[" * 100_000, '{"facts": 7}', "null", "7", '{"facts": [7]}'])
def test_a_chat_model_that_answers_nonsense_costs_only_its_facts(
    tmp_path: Path, answer: str
) -> None:
    with open_memory(tmp_path, chat=ScriptedChat([answer, answer])) as memory:
        assert len(memory.add(TURN, ALICE).changes) == 1


async def test_an_asynchronous_chat_model_that_answers_no_text_costs_only_its_facts(
    tmp_path: Path,
) -> None:
    class Wrong(AsyncScriptedChat):
        async def complete(self, system: str, user: str, *, schema: Any) -> Any:
            return {"facts": []}

    async with open_memory(tmp_path, chat=Wrong([])) as memory:
        written = await asyncio.wait_for(memory.aadd(TURN, ALICE), 10)

        assert len(written.changes) == 1


def test_a_model_that_raises_a_cancellation_is_retried(tmp_path: Path) -> None:
    class Cancels(HashEmbedder):
        left = 1

        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if self.left:
                self.left -= 1
                raise asyncio.CancelledError
            return super().embed(texts, purpose=purpose)

    with open_memory(tmp_path, embedder=Cancels(), settings=QUICK) as memory:
        assert memory.add("Alice keeps bees", ALICE).changes[0].event == "ADD"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fact(
            text="far", at=datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
        ),
        lambda: Fact(text="early", at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))),
        lambda: Fact(text="x", relations=("a",)),  # type: ignore[arg-type]
        lambda: Message(text="hi", name=123),  # type: ignore[arg-type]
        lambda: Message(text="hi", name="\ud800"),
        lambda: Message(text="hi", role="bogus"),  # type: ignore[arg-type]
        lambda: Message(text="hi", id=7),  # type: ignore[arg-type]
    ],
)
def test_what_could_not_be_read_back_is_refused(make: Any) -> None:
    with pytest.raises(InvalidRecord):
        make()


def test_an_extracted_date_outside_the_calendar_is_dropped(tmp_path: Path) -> None:
    answer = (
        '{"facts": [{"text": "Alice is old", "kind": "fact",'
        ' "since": "0001-01-01T00:00:00+02:00", "relations": []}]}'
    )
    with open_memory(tmp_path, chat=ScriptedChat([answer])) as memory:
        memory.add(TURN, ALICE)

        assert len(memory.list(ALICE).records) == 2
