"""What each row of a table of misuses must show: a typed error, nothing stored, a working memory.

Each adapter has a table of its own, `test_<adapter>_misuses.py`: one call for each row, the error
that its framework's users expect, and words of the message, which names the parameter or the value
and the way out.
"""

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, Record, Scope
from commonplace.ports import Address, Selection
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
NAN = float("nan")
FACT = "Alice likes tea."
Row = tuple[Callable[[Memory], Any], type[Exception], str]


async def acoroutine(*_: object) -> str:
    """Do what a plain function should."""
    return "alice"


def closed(memory: Memory) -> Memory:
    """Open another folder, and close it."""
    other = Memory.open(f"{memory.location}-closed", embedder=HashEmbedder())
    other.close()
    return other


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory whose one record no misuse may change; what has no path is in a folder beside it."""
    folder = tmp_path_factory.mktemp("misused")
    before = Path.cwd()
    os.chdir(folder)
    with Memory.open(str(folder / "shared"), embedder=HashEmbedder()) as memory:
        memory.add(FACT, ALICE, key="tea")
        yield memory
    os.chdir(before)


def check(row: Row, memory: Memory) -> None:
    """Carry out a misuse, and require what the module promises."""
    call, expected, words = row
    before = _stored(memory)

    with pytest.raises(expected, match=words) as caught:
        _carry_out(call, memory)

    assert len(str(caught.value)) < 1_000
    assert "secret" not in str(caught.value)
    assert _stored(memory) == before
    assert (backlog := memory.flush()).pending == backlog.dead == 0
    assert [FACT] == [one.record.text for one in memory.search("tea", ALICE)]


def _stored(memory: Memory) -> tuple[list[Record], list[Address], list[str]]:
    """Read all that is stored: records, checkpoints, and files beside the memory's."""
    records = [one for scope in memory.admin.list_scopes() for one in memory.list(scope).records]
    threads = memory.admin.checkpoints.page(Selection(), limit=100)
    files = sorted(one.name for one in Path.cwd().iterdir() if not one.name.endswith("-closed"))
    return records, [one.address for one in threads], files


def _carry_out(call: Callable[[Memory], Any], memory: Memory) -> None:
    found = call(memory)
    if inspect.isawaitable(found):
        asyncio.run(_wait(found))


async def _wait(found: Any) -> None:
    await found
