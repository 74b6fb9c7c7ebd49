"""Four adapters in four processes on one folder: nothing is lost, left over or piled up."""

import itertools
import os
import sys
from pathlib import Path

import pytest

from commonplace import Memory, Scope

from .soak_run import Counts, Plan, Report, check_ledgers, long_form, run, save

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are measured in /proc"),
]
SECONDS = float(os.environ.get("SOAK_SECONDS", "0"))  # of the long form
_FEW = 3  # threads or files: a pool may still fill; a leak is one a user, and there are dozens


@pytest.fixture(autouse=True)
def frameworks() -> None:
    """Ask for all four frameworks."""
    for name in ("agentscope", "langchain", "langgraph", "strands"):
        pytest.importorskip(name)


def grown(report: Report) -> list[str]:
    """List the threads, open files and files of the folder that got more."""
    kinds = (" threads", " files", "files of the folder")
    return [
        f"{one.name}: {one.first} -> {one.last}"
        for one in report.growth()
        if one.name.endswith(kinds) and one.last > one.first + _FEW
    ]


def test_the_check_counts_what_is_lost_doubled_and_foreign(tmp_path: Path):
    here, other = "xqcanarya1qx", "xqcanaryb1qx"
    texts = [f"{here}n1 tea", f"{here}n1 coffee", f"{here}n3 milk", f"{here}n9 water"]
    with Memory.open(str(tmp_path)) as memory:
        memory.add(texts, Scope(user_id=here), infer=False)
        memory.add(f"{other}n1 juice", Scope(user_id=other), infer=False)
    tokens = [f"{here}n{number}" for number in (1, 2)]
    ledger = {"user": here, "tokens": tokens, "maybe": [f"{here}n3"], "said": 0, "wrong": {}}
    counts = Counts()

    check_ledgers(tmp_path, [ledger], counts)

    assert (counts.lost, counts.doubled, counts.foreign) == (1, 1, 2), counts.examples


def test_growth_beyond_the_limit_is_found():
    plan = Plan(seconds=60, warm_up=0)
    samples = [{"t": t, "strands rss": 100 + t / 5, "strands files": 9} for t in range(60)]
    growth = {one.name: one for one in Report(plan, samples=samples).growth()}

    assert growth["strands files"].ratio == 1
    assert not growth["strands rss"].is_beyond
    steeper = [{"t": t, "strands rss": 100 + t / 3} for t in range(60)]
    [found] = Report(plan, samples=steeper).growth()
    assert found.is_beyond


@pytest.mark.timeout(600)
def test_four_adapters_in_one_folder_lose_nothing_and_leave_nothing(tmp_path: Path):
    # The long form is `benchmarks/soak.py`.
    plan = Plan(seconds=25, warm_up=8, rate=6, users=3, steps=12, sample_every=1)
    report = run(tmp_path / "memory", plan)

    assert report.counts.faults == 0, report.counts.examples[:10]
    assert report.counts.forgotten >= 10
    assert report.counts.records > 10
    assert report.counts.messages > 4
    assert grown(report) == []


@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.every_engine("neo4j+qdrant")
def test_four_adapters_lose_nothing_on_servers_that_are_killed(
    tmp_path: Path, engines: str, killable_neo4j, qdrant_place
):
    # The long form is `benchmarks/soak.py --servers`.
    servers = itertools.cycle(filter(None, (killable_neo4j, qdrant_place.process)))

    def outage() -> None:
        server = next(servers)
        server.kill()
        server.start()

    plan = Plan(
        seconds=30, warm_up=6, rate=2, users=3, steps=12, sample_every=1, outage=outage,
        outage_every=20,
    )  # fmt: skip
    if SECONDS:
        plan = long_form(SECONDS, outage)
    report = run(tmp_path / "memory", plan)
    if SECONDS:
        save(report, Path(os.environ["SOAK_REPORT"]))

    assert report.counts.faults == 0, report.counts.examples[:10]
    assert report.counts.outages >= 1
    assert report.counts.forgotten >= 1
    assert report.counts.records > 0
