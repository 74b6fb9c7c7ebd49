"""Bytes of a forgotten user: in no file of the folder, whoever has it open, and in no backup."""

import random
import signal
from pathlib import Path

import pytest

from commonplace import Fact, Memory
from commonplace.testing.fakes import HashEmbedder

from .erased_bytes import (
    CANARY,
    OTHER,
    USER,
    Other,
    fill,
    forget_and_die,
    found_in,
    found_in_backup,
    wait_until_gone,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("records", [5, 60, 150])
def test_no_byte_of_a_forgotten_user_is_left(tmp_path: Path, records: int):
    folder = tmp_path / "memory"
    with fill(folder, records) as memory, Other(folder):
        assert found_in(folder)

        assert memory.forget(USER).complete

        assert wait_until_gone(folder, 10) == []
        assert found_in_backup(folder) == []
    assert found_in(folder) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_byte_is_left_where_a_row_moved_to_another_page(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    rows = [(scope, number) for scope in (USER, OTHER) for number in range(100)]
    chance.shuffle(rows)  # rows that do not come in their order split pages
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        for scope, number in rows:
            name = f"{CANARY if scope is USER else 'nothing'} {number}"
            text = f"{name} " + "x" * chance.randint(10, 900)
            memory.add(Fact(text=text, key=name, metadata={"folders": [f"in {name}"]}), scope)
        memory.forget(USER)

        assert wait_until_gone(tmp_path, 10) == []


def test_a_memory_that_is_closed_at_once_leaves_no_byte_either(tmp_path: Path):
    with fill(tmp_path, 60) as memory:
        memory.forget(USER)

    assert found_in(tmp_path) == []


def test_what_another_process_still_reads_goes_when_it_has_read(tmp_path: Path):
    with fill(tmp_path, 30) as memory, Other(tmp_path) as other:
        other.tell("read")
        assert memory.forget(USER).complete
        assert not memory.list(USER).records
        assert found_in(tmp_path)  # SQLite needs it for the other

        other.tell("end")

        assert wait_until_gone(tmp_path, 10) == []


def test_what_a_process_erased_that_was_killed_at_once_goes_when_another_opens_it(tmp_path: Path):
    killed = forget_and_die(tmp_path)
    assert killed == -signal.SIGKILL
    assert found_in(tmp_path)

    with Other(tmp_path):
        assert wait_until_gone(tmp_path, 15) == []
