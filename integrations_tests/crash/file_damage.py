"""Damages of the embedded file, and what a memory on it then says.

As a program, `file_damage.py FOLDER...` reads each folder in every way and prints a line of JSON
for each: an answer or an error by the name of the reading. It is a process of its own because a
damaged file might end it.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commonplace import Fact, Memory, Relation, Scope, admin
from commonplace.errors import (
    CannotMoveError,
    RecordNotFoundError,
    SchemaMismatchError,
    StoreUnavailableError,
)
from commonplace.ports.checkpoints import Address, Blob, Checkpoint
from commonplace.settings import Location, Settings
from commonplace.testing.fakes import HashEmbedder

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
SECRET = "zyzzyva"  # in every text of bob, and in no other
RECORDS = 80
PAGE = 4096
WAYS = (
    "flip one byte",
    "flip many bytes",
    "zero a page",
    "fill a page with noise",
    "swap two pages",
    "cut the file",
    "empty the file",
    "overwrite the header",
    "cut the log",
    "flip a byte of the log",
    "remove the log",
    "remove the shared memory",
    "swap the log for an older one",
)
_IDS = "ids.json"
_TYPED = (StoreUnavailableError, SchemaMismatchError, CannotMoveError)
_WAYS_OUT = ("salvage", "backup", "copy")


@dataclass(slots=True)
class Counts:
    """Counts of a proof; those from `untyped` on must be zero.

    Attributes:
        runs: damages. right: all answers as before. refused: at least one error, no wrong answer.
        unseen: an answer differs without an error, in bytes that SQLite cannot check or by the
            loss of a part of the log.
        untyped: another error. mute: an error without the file or the way out. crashed: the process
            ended or hung. foreign: an answer with a text of another user.
    """

    runs: int = 0
    right: int = 0
    refused: int = 0
    unseen: int = 0
    untyped: int = 0
    mute: int = 0
    crashed: int = 0
    foreign: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Counts of what must not happen."""
        return self.untyped + self.mute + self.crashed + self.foreign

    def fault(self, name: str, example: str) -> None:
        """Count a fault."""
        setattr(self, name, getattr(self, name) + 1)
        self.examples.append(f"{name}: {example}")


def make(folder: Path) -> None:
    """Make a memory of two users whose rows lie side by side, partly in the log, and copy it.

    The copy `folder/open` was taken while the memory was open, `folder/older` has an earlier log,
    and `folder/closed` no log.
    """
    home = folder / "memory"
    memory = Memory.open(str(home), embedder=HashEmbedder())
    for number in range(RECORDS):
        for scope, word in ((ALICE, "alice"), (BOB, f"bob {SECRET}")):
            said = Relation(subject=word, predicate="knows", object=f"{word} friend {number % 7}")
            text = f"{word} says number {number} " + f"{word} filler " * (number % 9)
            metadata = {"who": word, "number": number}
            memory.add(Fact(text=text, metadata=metadata, relations=(said,)), scope)
        if number == RECORDS // 2:
            shutil.copytree(home, folder / "older")
    for scope, word in ((ALICE, "alice"), (BOB, SECRET)):
        checkpoint = Checkpoint(
            address=Address(thread=f"thread of {word}", namespace="", id="1"),
            body=Blob(type="text", data=word.encode() * 300),
            metadata=Blob(type="text", data=b"{}"),
            versions={"messages": "1"},
        )
        values = {("messages", "1"): Blob(type="text", data=word.encode() * 3000)}
        memory.admin.checkpoints.put(checkpoint, values, scope)
        first = memory.list(scope, limit=1).records[0]
        memory.update(first.id, f"{word} changed", scope)
    ids = [one.id for one in memory.list(ALICE, limit=1000).records]
    (home / _IDS).write_text(json.dumps(ids))
    shutil.copytree(home, folder / "open")
    memory.close()
    shutil.copytree(home, folder / "closed")


def damage(source: Path, target: Path, way: str, chance: random.Random) -> None:
    """Copy a folder that `make` has made and damage the copy in one way."""
    is_open = "log" in way or "shared" in way or chance.random() < 0.3
    shutil.copytree(source / ("open" if is_open else "closed"), target)
    for lock in target.glob("*.lock"):
        lock.unlink()
    file, log, shared = (target / f"memory.db{suffix}" for suffix in ("", "-wal", "-shm"))
    if way == "swap the log for an older one":
        shutil.copy(source / "older" / log.name, log)
    elif way.startswith("remove"):
        (log if "log" in way else shared).unlink()
    else:
        victim = log if "log" in way else file
        victim.write_bytes(_damaged(bytearray(victim.read_bytes()), way, chance))


def _damaged(data: bytearray, way: str, chance: random.Random) -> bytes:
    pages = len(data) // PAGE
    one, other = (PAGE * chance.randrange(1, pages) for _ in range(2))
    if way in ("flip one byte", "flip a byte of the log"):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way == "flip many bytes":
        for _ in range(50):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif way == "zero a page":
        data[one : one + PAGE] = bytes(PAGE)
    elif way == "fill a page with noise":
        data[one : one + PAGE] = chance.randbytes(PAGE)
    elif way == "swap two pages":
        first, second = data[one : one + PAGE], data[other : other + PAGE]
        data[one : one + PAGE], data[other : other + PAGE] = second, first
    elif way == "overwrite the header":
        size = chance.choice((16, 100, 1000))
        data[:size] = chance.randbytes(size)
    elif way == "empty the file":
        return b""
    else:
        return bytes(data[: chance.randrange(1, len(data))])
    return bytes(data)


# -- readings, in a process of their own -----------------------------------------------------------


def main(*folders: str) -> None:
    """Read each folder and print what came of it."""
    for folder in folders:
        sys.stdout.write(f"{json.dumps(dict(_readings(Path(folder))))}\n")
        sys.stdout.flush()


def _readings(folder: Path) -> Iterator[tuple[str, Any]]:
    doctor = _attempt(lambda: admin.check_files(Location.find(str(folder), Settings())))
    if "answer" in doctor:
        files = doctor["answer"]
        doctor = {"answer": {file.name: found for file, found in files.items()}}
        if any(files.values()):
            [(file, found), *_] = files.items()
            doctor = {"error": "found", "message": f"{file} salvage {found[0]}", "typed": True}
    yield "doctor", doctor
    opened = _attempt(lambda: Memory.open(str(folder), embedder=HashEmbedder()))
    if "error" in opened:
        yield "open", opened
        return
    memory: Memory = opened["answer"]
    ids: list[str] = json.loads((folder / _IDS).read_text())
    calls: dict[str, Callable[[], Any]] = {
        "list": lambda: [one.text for one in memory.list(ALICE, limit=1000).records],
        "get": lambda: [one.text for one in memory.get_many(ids, ALICE)],
        "search": lambda: [
            [one.record.text for one in memory.search(text, ALICE, top_k=10)]
            for text in ("alice says number 7", "who knows alice", "filler", SECRET)
        ],
        "filter": lambda: [
            one.text for one in memory.list(ALICE, where={"number": {"gte": 40}}).records
        ],
        "history": lambda: [[v.text for v in memory.history(one, ALICE)] for one in ids],
        "relations": lambda: sorted(str(one) for one in memory.relations(ALICE)),
        "entities": lambda: [one.name for one in memory.entities(ALICE)],
        "scopes": lambda: sorted(one.user_id or "" for one in memory.admin.list_scopes()),
        "checkpoint": lambda: str(memory.admin.checkpoints.read("thread of alice", "")),
        "dead": lambda: len(memory.admin.dead_letters()),
        "examine": lambda: str(admin.examine(memory, timeout=0.5)),
        "export": lambda: _export(memory, folder),
        "add": lambda: [one.event for one in memory.add("alice adds", ALICE).changes],
        "later": lambda: [one.event for one in memory.add("alice rows", ALICE, wait=2.0).changes],
        "update": lambda: [one.text for one in memory.update(ids[1], "new", ALICE).changes],
        "delete": lambda: [one.event for one in memory.delete(ids[2], ALICE).changes],
        "forget": lambda: dict(memory.forget(ALICE).left),
    }
    for name, call in calls.items():
        yield name, _attempt(call)
    yield "close", _attempt(lambda: memory.close(0.5))


def _export(memory: Memory, folder: Path) -> str:
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "export.jsonl"
        admin.export(memory, file)
        return file.read_text()


def _attempt(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"answer": call()}
    except RecordNotFoundError:  # an answer of an earlier state
        return {"answer": "not found"}
    except Exception as error:  # noqa: BLE001 -- what this is about
        name = f"{type(error).__module__}.{type(error).__name__}"
        return {"error": name, "message": str(error), "typed": isinstance(error, _TYPED)}


# -- their parent ----------------------------------------------------------------------------------


def run(home: Path, number: int, seed: int) -> Counts:
    """Damage a memory that often, in every way in turn, and count what came of it."""
    chance = random.Random(seed)
    source = home / "source"
    source.mkdir()
    make(source)
    cases: list[tuple[str, Path]] = []
    for n in range(number):
        target = home / f"damaged {n}"
        damage(source, target, way := WAYS[n % len(WAYS)], chance)
        cases.append((way, target))
    sound = [home / "sound open", home / "sound closed"]
    for one in sound:
        shutil.copytree(source / one.name.removeprefix("sound "), one)
    counts = Counts()
    expected: Any = None
    for _, read in _run_all([("none", one) for one in sound], counts):
        assert all("error" not in one for one in read.values()), read
        assert expected is None or _lasting(expected) == _lasting(read)
        expected = read
    for way, read in _run_all(cases, counts):
        counts.runs += 1
        _judge(way, read, expected, counts)
    return counts


def _run_all(
    cases: list[tuple[str, Path]], counts: Counts
) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """Read all folders; after a crash a new process goes on."""
    left = list(cases)
    while left:
        command = [sys.executable, __file__, *(str(path) for _, path in left)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=20 + 10 * len(left)
            )
            out, code, error = done.stdout, done.returncode, done.stderr
        except subprocess.TimeoutExpired as expired:
            given = expired.stdout or b""
            out, code, error = given.decode() if isinstance(given, bytes) else given, -1, "hung"
        lines = out.splitlines()
        for (way, _), line in zip(left, lines, strict=False):
            yield way, json.loads(line)
        left = left[len(lines) :]
        if left or code:
            way, path = left.pop(0) if left else ("end", Path())
            counts.fault("crashed", f"{way}: {path}: {code}: {error[-500:]}")


def _lasting(read: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Leave out what has times in it."""
    return {name: one for name, one in read.items() if name not in ("forget",)}


def _judge(way: str, read: dict[str, dict[str, Any]], expected: Any, counts: Counts) -> None:
    errors = {name: one for name, one in read.items() if "error" in one}
    wrong = [name for name, one in read.items() if "answer" in one and one != expected[name]]
    for name, one in errors.items():
        if not one["typed"]:
            counts.fault("untyped", f"{way}, {name}: {one['error']}: {one['message'][:900]}")
        elif "memory.db" not in one["message"] or not any(x in one["message"] for x in _WAYS_OUT):
            counts.fault("mute", f"{way}, {name}: {one['error']}: {one['message'][:300]}")
    for name, one in read.items():
        asked_of_all = name in ("export", "scopes", "examine", "doctor")
        if "answer" in one and not asked_of_all and SECRET in json.dumps(one["answer"]):
            counts.fault("foreign", f"{way}, {name}: {json.dumps(one['answer'])[:300]}")
    outcome = "unseen" if wrong and not errors else "refused" if errors else "right"
    setattr(counts, outcome, getattr(counts, outcome) + 1)
    counts.ways[f"{way}: {outcome}"] += 1
    if wrong:
        silent = "" if not errors else f", though {sorted(errors)} failed"
        counts.ways[f"{way}: differs in {', '.join(wrong)}{silent}"] += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
