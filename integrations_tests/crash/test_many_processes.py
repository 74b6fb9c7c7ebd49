"""Many processes in one folder: they see each other's writes, and lose none when killed."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from .many_processes import Ledger, Round
from .web_worker import Worker

pytestmark = pytest.mark.slow


def test_processes_that_are_killed_lose_nothing_and_see_each_other(tmp_path: Path):
    # The long form is `benchmarks/proofs.py processes`.
    counts = Round(tmp_path / "memory", Ledger(), seed=1).run(5, kill_every=0.8)

    assert counts.faults == 0, counts.examples[:10]
    assert counts.killed >= 4
    assert counts.accepted > 20
    assert counts.asked > 5


@pytest.mark.every_engine("neo4j+qdrant")
def test_hosts_with_clocks_apart_that_are_killed_lose_nothing_on_shared_servers(
    tmp_path: Path, engines: str
):
    # The long form is `benchmarks/proofs.py hosts`.
    seconds = float(os.environ.get("HOSTS_SECONDS", "6"))
    one = Round(tmp_path / "hosts", Ledger(), seed=1, apart=5.0)
    counts = one.run(seconds, kill_every=3.0, processes=3, fewest=30)
    if report := os.environ.get("HOSTS_REPORT"):
        Path(report).write_text(json.dumps(dataclasses.asdict(counts)))

    assert counts.faults == 0, counts.examples[:10]
    assert counts.killed >= 2
    assert counts.accepted >= 30


def test_what_one_worker_of_a_web_server_learns_the_other_recalls_in_the_next_request(
    tmp_path: Path,
):
    with Worker(tmp_path) as one, Worker(tmp_path) as other:
        for number in range(20):
            here, there = (one, other) if number % 2 else (other, one)
            here.ask("/learn", f"fact number{number} of alice")
            assert f"fact number{number} of alice" in there.ask("/recall", f"number{number}")


def test_a_worker_that_is_killed_loses_nothing_that_it_has_answered(tmp_path: Path):
    texts = [f"fact number{number} of alice" for number in range(30)]
    with Worker(tmp_path) as one, Worker(tmp_path) as other:
        for text in texts:
            one.ask("/later", text)
        one.kill()
        other.wait_for(texts[-1], 15)
        assert all(text in other.ask("/recall", text) for text in texts)
        with Worker(tmp_path) as again:
            assert all(text in again.ask("/recall", text) for text in texts)
