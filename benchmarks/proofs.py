"""Does the embedded engine lose, double or leak anything? The long forms of tests of the suite.

    python benchmarks/proofs.py crashes [--engines embedded,folders,neo4j+folder,neo4j+qdrant]
    python benchmarks/proofs.py faults [--engines embedded,folders,neo4j+folder,neo4j+qdrant]
    python benchmarks/proofs.py processes [--rounds 10] [--seconds 10]
    python benchmarks/proofs.py hosts [--seconds 120]
    python benchmarks/proofs.py disk [--times 20]
    python benchmarks/proofs.py damage [--number 120]
    python benchmarks/proofs.py erasure [--times 20]
    python benchmarks/proofs.py workers [--rounds 10]
    python benchmarks/proofs.py isolation [--operations 1000000]

Each prints counts, and ends with 1 if anything is wrong. What it does with a seed, it does again
with that seed, as far as the machine has the same speed. `disk` mounts a small file system, for
which it needs to be root.
"""

import dataclasses
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1] / "integrations_tests"))
sys.path.append(str(Path(__file__).parents[1] / "integrations_tests" / "crash"))
import erased_bytes
import file_damage
import full_disk
import many_processes
import web_worker
from isolation.play import play

app = typer.Typer(add_completion=False, no_args_is_help=True)
console = Console()
PYTEST = (sys.executable, "-m", "pytest", "-q", "-s", "--timeout=0", "-p", "no:cacheprovider")
ALL_ENGINES = "embedded,folders,neo4j+folder,neo4j+qdrant"
Seed = Annotated[int, typer.Option(help="Of all random choices.")]


def show(counts: dict[str, Any], faults: int, examples: list[str]) -> None:
    """Print counts and some examples of faults."""
    table = Table()
    for name in counts:
        table.add_column(name, justify="right")
    table.add_row(*(f"{number:,}" for number in counts.values()))
    console.print(table)
    for example in examples[:20]:
        console.print(example, markup=False)
    if faults:
        raise typer.Exit(1)


def numbers(counts: Any) -> dict[str, int]:
    """Take what is a number."""
    found = dataclasses.asdict(counts)
    return {name: value for name, value in found.items() if isinstance(value, int)}


def load_report(file: Path) -> dict[str, Any]:
    """Read what a test has counted; without it, end with 1."""
    if not file.exists():
        console.print("It did not get to its end: see what pytest says above.")
        raise typer.Exit(1)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@app.command()
def crashes(engines: str = ALL_ENGINES, form: str = "long") -> None:
    """Let processes die at every point of every action, and print what they left, by action."""
    run_matrix("test_crash.py", "CRASHES", engines, form)


@app.command()
def faults(engines: str = ALL_ENGINES, form: str = "long") -> None:
    """Let each call of each store fail in each way; print what that left, by kind of fault."""
    run_matrix("test_port_faults.py", "PORT_FAULTS", engines, form)


def run_matrix(tests: str, variable: str, engines: str, form: str) -> None:
    """Run the test of a file that has a long form, on some engines, and print its counts.

    Args:
        variable: of the environment, that asks it for a form; with `_REPORT`, for its counts.
    """
    names = ("runs", "killed", "missed", "lost", "doubled", "diverged", "left", "failed")
    total, examples = dict.fromkeys(names, 0), []
    for one in engines.split(","):
        with tempfile.TemporaryDirectory() as home:
            report = Path(home) / "report.json"
            subprocess.run(
                [*PYTEST, f"integrations_tests/crash/{tests}", "-k", f"[{one}]"],
                env={**os.environ, variable: form, f"{variable}_REPORT": str(report)},
                cwd=Path(__file__).parents[1],
                check=False,
            )
            found = load_report(report)
        table = Table("", *names, title=f"{one}: {found['seconds']:,.0f} s")
        for action, counts in found["actions"].items():
            table.add_row(action, *(f"{counts[name]:,}" for name in names))
            examples += [f"{one}: {example}" for example in counts["examples"]]
            total = {name: number + counts[name] for name, number in total.items()}
        console.print(table)
    show(total, len(examples), examples)


@app.command()
def processes(rounds: int = 10, seconds: float = 10.0, seed: Seed = 1) -> None:
    """Let eight processes read and write one folder while random ones are killed."""
    total, ledger = many_processes.Counts(), many_processes.Ledger()
    with tempfile.TemporaryDirectory() as home:
        for number in range(rounds):
            one = many_processes.Round(Path(home) / "memory", ledger, seed * 1000 + number)
            total += one.run(seconds, kill_every=0.7)
            console.print(f"round {number + 1}: {total.accepted:,} accepted, {total.faults} faults")
    show(numbers(total), total.faults, total.examples)


@app.command()
def hosts(seconds: float = 120.0) -> None:
    """Let hosts with clocks 5 s apart write to one pair of servers while random ones are killed."""
    with tempfile.TemporaryDirectory() as home:
        report = Path(home) / "report.json"
        subprocess.run(
            [*PYTEST, "integrations_tests/crash/test_many_processes.py", "-k", "hosts"],
            env={**os.environ, "HOSTS_SECONDS": str(seconds), "HOSTS_REPORT": str(report)},
            cwd=Path(__file__).parents[1],
            check=False,
        )
        counts = many_processes.Counts(**load_report(report))
    show(numbers(counts), counts.faults, counts.examples)


@app.command()
def disk(times: int = 20, size: str = "8m", seed: Seed = 1) -> None:
    """Fill a small file system at every kind of write, and limit the size of a file."""
    program = [sys.executable, full_disk.__file__]
    faults = 0
    with tempfile.TemporaryDirectory() as home:
        place = Path(home) / "disk"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
        try:
            outputs = {
                how: subprocess.run(
                    [*program, folder, how, str(seed), str(times)],
                    check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                ).stdout
                for how, folder in (("disk", place), ("limit", Path(home) / "memory"))
            }  # fmt: skip
        finally:
            subprocess.run(["umount", place], check=True)
    for how, output in outputs.items():
        counts = json.loads(output)
        console.print(how)
        examples, wrong = counts.pop("examples"), counts.pop("faults")
        faults += wrong
        show(counts, 0, examples)
    if faults:
        raise typer.Exit(1)


@app.command()
def damage(number: int = 120, seed: Seed = 1) -> None:
    """Damage the file in many ways, and read it in every way."""
    with tempfile.TemporaryDirectory() as home:
        counts = file_damage.run(Path(home), number, seed)
    for way, times in sorted(counts.ways.items()):
        console.print(f"{times:4} {way}", markup=False)
    show(numbers(counts), counts.faults, counts.examples)


@app.command()
def erasure(times: int = 20, records: int = 200) -> None:
    """Forget a user and look for his bytes in all files, which another process has open too."""
    logging.disable()
    counts = {"runs": 0, "open": 0, "backup": 0, "closed": 0}
    examples: list[str] = []
    for number in range(times):
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "memory"
            memory = erased_bytes.fill(folder, max(5, records * (number + 1) // times))
            with erased_bytes.Other(folder) as other:
                if number % 2:
                    other.tell("read")
                memory.forget(erased_bytes.USER)
                if number % 2:
                    other.tell("end")
                found = {
                    "open": erased_bytes.wait_until_gone(folder, 15),
                    "backup": erased_bytes.found_in_backup(folder),
                }
                memory.close()
            found["closed"] = erased_bytes.found_in(folder)
        counts["runs"] += 1
        for when, files in found.items():
            counts[when] += bool(files)
            examples += [f"{when}: {files}"] if files else []
    show(counts, len(examples), examples)


@app.command()
def workers(rounds: int = 10, turns: int = 50) -> None:
    """Let two workers of a web server recall what the other learnt; kill one in each round."""
    counts = {"runs": 0, "accepted": 0, "unseen": 0, "lost": 0}
    with tempfile.TemporaryDirectory() as home:
        accepted: list[str] = []
        for number in range(rounds):
            with (
                web_worker.Worker(Path(home)) as one,
                web_worker.Worker(Path(home)) as other,
            ):
                for turn in range(turns):
                    here, there = (one, other) if turn % 2 else (other, one)
                    accepted.append(text := f"fact r{number}t{turn} of alice")
                    here.ask("/learn", text)
                    counts["unseen"] += text not in there.ask("/recall", f"r{number}t{turn}")
                for turn in range(turns):
                    accepted.append(text := f"fact r{number}l{turn} of alice")
                    one.ask("/later", text)
                one.kill()
            counts["runs"] += 1
        counts["accepted"] = len(accepted)
        with web_worker.Worker(Path(home)) as again:
            again.wait_for(accepted[-1], 15)
            counts["lost"] = sum(text not in again.ask("/recall", text) for text in accepted)
    show(counts, counts["unseen"] + counts["lost"], [])


@app.command()
def isolation(operations: int = 1_000_000, seed: Seed = 1) -> None:
    """Call every function as owners with confusable ids; count rows of others that are seen."""
    done: Counter[str] = Counter()
    rows, foreign = 0, 0
    examples: list[str] = []
    while done.total() < operations:
        left = operations - done.total()
        seen = play(min(left, 50_000), seed)
        done += seen.operations
        rows += seen.rows.total()
        foreign += seen.foreign
        examples += seen.examples
        console.print(f"{done.total():,} operations, {rows:,} rows, {foreign} foreign", style="dim")
        seed += 1
    table = Table("function", "operations")
    for name, number in sorted(done.items()):
        table.add_row(name, f"{number:,}")
    console.print(table)
    show({"operations": done.total(), "rows": rows, "foreign rows": foreign}, foreign, examples)


if __name__ == "__main__":
    app()
