"""Are deliberate faults caught by the tests? Each is planted alone, in a copy of the checkout.

    python -m integrations_tests.planted [NAME ...]

Names choose faults whose names contain one of them. Last, the tests that caught something are run
without a fault: one that fails then has proved nothing. The end is 1 when one of them does, when a
fault survives, when its text no longer occurs once, or when its tests cannot be run.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from . import FAULTS
from .fault import Fault

ROOT = Path(__file__).parents[2]
_TEST_SECONDS = 90  # a test that hangs has caught the fault
_RUN_SECONDS = 1200
_NONE_SELECTED = 5
_WIDTH = 90
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:\[.*\])?(?: - .*)?$", re.MULTILINE)


def main(names: list[str]) -> int:
    """Plant the chosen faults one after the other; print a row for each as it is done."""
    chosen = [one for one in FAULTS if not names or any(name in one.name for name in names)]
    caught: dict[str, str] = {}
    began = time.monotonic()
    print(" seconds  fault, where, and by which test it is caught")
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder).resolve() / "copy"
        copy_checkout(copy)
        for fault in chosen:
            start = time.monotonic()
            is_caught, by = try_fault(copy, fault)
            if is_caught:
                caught[fault.name] = by
            print(to_row(fault, time.monotonic() - start, is_caught, by), flush=True)
        is_sound = not caught or are_sound(copy, sorted(set(caught.values())))
    print(to_counts(chosen, caught))
    minutes = (time.monotonic() - began) / 60
    survived = len(chosen) - len(caught)
    print(f"{len(chosen)} faults, {len(caught)} caught, {survived} survived, {minutes:.0f} minutes")
    return 0 if is_sound and len(caught) == len(chosen) else 1


def to_row(fault: Fault, seconds: float, is_caught: bool, by: str) -> str:
    """Write what became of a fault in three lines, or more of one that survived."""
    first = f"{seconds:8.1f}  {fault.name:<36}  {fault.file.removeprefix('core/commonplace/')}"
    if not is_caught:
        return f"{first}\n{'':10}{fault.what}\n{'':10}SURVIVED: {by}"
    path, _, test = by.partition("::")
    return f"{first}\n{'':10}{fault.what}\n{'':10}{clip(f'{Path(path).name}::{test}')}"


def clip(text: str) -> str:
    """Shorten what is too wide for the table."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def to_counts(chosen: Sequence[Fault], caught: Collection[str]) -> str:
    """Count the faults of each folder, and how many of them are caught."""
    of_folder = Counter(folder_of(one) for one in chosen)
    of_caught = Counter(folder_of(one) for one in chosen if one.name in caught)
    rows = [
        f"{folder:<40}{number:>8}{of_caught[folder]:>8}"
        for folder, number in sorted(of_folder.items())
    ]
    return "\n".join(["", f"{'folder':<40}{'faults':>8}{'caught':>8}", *rows, ""])


def folder_of(fault: Fault) -> str:
    """Name the folder that a fault is counted in."""
    return str(Path(fault.file).parent)


def copy_checkout(target: Path) -> None:
    """Copy what Git knows of, and new files that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def are_sound(copy: Path, tests: Sequence[str]) -> bool:
    """Run tests without a fault."""
    code, output = run_tests(copy, tests)
    if code:
        print(f"Without a fault some of the tests do not pass:\n{output}")
    return code == 0


def try_fault(copy: Path, fault: Fault) -> tuple[bool, str]:
    """Plant a fault, run its tests and take it out; return whether and by what it was caught."""
    path = copy / fault.file
    before = path.read_text("utf-8")
    try:
        fault.plant(copy)
        forget_compiled(path)
        code, output = run_tests(copy, fault.tests)
    except LookupError as error:
        return False, str(error)
    finally:
        path.write_text(before, "utf-8")
        forget_compiled(path)
    if code == 0:
        return False, "All of its tests pass."
    failed = _FAILED.findall(output)
    if code == _NONE_SELECTED or not failed:
        return False, f"Its tests do not run: {output[-2000:]}"
    return True, failed[0]


def forget_compiled(path: Path) -> None:
    """Remove the compiled module: its check of time and size may miss a quick change."""
    for one in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        one.unlink()


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests until one fails; return the exit code and what is printed."""
    paths = os.pathsep.join(str(copy / one) for one in ("core", "adapters"))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    options = ["-q", "-x", "-p", "no:cacheprovider", f"--timeout={_TEST_SECONDS}"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return 1, f"FAILED {' '.join(tests)}: no end"
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
