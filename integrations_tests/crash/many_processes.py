"""Processes that read and write one folder while some of them are killed, and the check of it all.

As a program it is one of these processes: `many_processes.py FOLDER NAME SEED`. It writes until it
is killed or told to stop, announces each write before and after, and answers what it finds. The
parent keeps what each write may have left behind, in `Ledger`.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from engines import find as find_place

from commonplace import Fact, Memory, Relation, Scope, types
from commonplace.backends.sqlite.journal import SqliteJournal
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, Selection
from commonplace.runtime import Runtime
from commonplace.settings import Location
from commonplace.testing.fakes import HashEmbedder

PROCESSES = 8
COMMON = "everyone"  # a user of whom every process writes
KINDS = (
    "add",
    "later",
    "update",
    "update_later",
    "delete",
    "feedback",
    "batch",
    "put",
    "append",
    "forget",
)
_FOUND_SECONDS = 20.0  # until a process has answered


@dataclass(slots=True)
class Counts:
    """Counts of a proof; all but the first four must be zero.

    Attributes:
        runs: rounds. killed: processes. accepted: acknowledged writes. asked: times that another
            process was asked for what had just been acknowledged.
        lost: acknowledged writes without effect. doubled: with more than one effect.
        unseen: not found by another process that was asked afterwards.
        diverged: records whose index differs. left: operations that stayed pending or dead.
        failed: writes that raised an error.
    """

    runs: int = 0
    killed: int = 0
    accepted: int = 0
    asked: int = 0
    lost: int = 0
    doubled: int = 0
    unseen: int = 0
    diverged: int = 0
    left: int = 0
    failed: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Counts of what must not happen."""
        return self.lost + self.doubled + self.unseen + self.diverged + self.left + self.failed

    def fault(self, name: str, example: str) -> None:
        """Count a fault."""
        setattr(self, name, getattr(self, name) + 1)
        self.examples.append(f"{name}: {example}")

    def __add__(self, other: "Counts") -> "Counts":
        """Sum two counts."""
        names = [one.name for one in fields(self)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})


def scope_of(user: str) -> Scope:
    return Scope(user_id=user)


# -- one process -----------------------------------------------------------------------------------


def say(**what: Any) -> None:
    """Write one line, whole or not at all, as a pipe does with so few bytes."""
    os.write(1, f"{json.dumps(what)}\n".encode())


class Writer:
    """Random writes of one process, each announced before and after."""

    def __init__(self, memory: Memory, name: str, seed: int) -> None:
        self._memory = memory
        self._name = name
        self._random = random.Random(seed)
        self._number = 0
        self._mine: dict[str, str] = {}  # id and text of the records that may still change

    def step(self) -> None:
        """Make one write."""
        kind = self._random.choice(KINDS)
        if not self._mine and kind in ("update", "update_later", "delete", "feedback"):
            kind = "add"
        getattr(self, f"_{kind}")()

    def _announced(self, call: Callable[[], object], **what: Any) -> None:
        self._number += 1
        what["number"] = self._number
        say(at="begin", **what)
        try:
            call()
        except Exception as error:  # noqa: BLE001 -- told to the parent, which counts it
            say(at="failed", number=self._number, error=f"{type(error).__name__}: {error}")
            time.sleep(0.1)
        else:
            say(at="done", number=self._number)

    def _text(self) -> str:
        return f"{self._name} number {self._number + 1} says w{self._random.getrandbits(48):x}"

    def _fact(self, text: str) -> Fact:
        said = Relation(subject=self._name, predicate="says", object=text.rsplit(maxsplit=1)[-1])
        return Fact(text=text, key=text, relations=(said,))

    def _new(self, *, wait: bool) -> None:
        user = COMMON if self._random.random() < 0.3 else self._name
        text = self._text()
        record = scope_of(user).record_id("fact", text)
        is_final = wait and self._random.random() < 0.5
        self._announced(
            lambda: self._memory.add(self._fact(text), scope_of(user), wait=wait),
            record=record, user=user, text=text, final=is_final,
        )  # fmt: skip
        if user == self._name and not is_final:
            self._mine[record] = text

    def _add(self) -> None:
        self._new(wait=True)

    def _later(self) -> None:
        self._new(wait=False)

    def _change(self, *, wait: bool) -> None:
        record = self._random.choice(list(self._mine))
        text = self._text()
        is_final = wait and self._random.random() < 0.5
        self._announced(
            lambda: self._memory.update(record, text, scope_of(self._name), wait=wait),
            record=record, user=self._name, text=text, final=is_final,
        )  # fmt: skip
        self._mine[record] = text
        if is_final:
            del self._mine[record]

    def _update(self) -> None:
        self._change(wait=True)

    def _update_later(self) -> None:
        self._change(wait=False)

    def _delete(self) -> None:
        record = self._random.choice(list(self._mine))
        text = self._mine.pop(record)
        self._announced(
            lambda: self._memory.delete(record, scope_of(self._name)),
            record=record, user=self._name, text=None, gone=text, final=True,
        )  # fmt: skip

    def _feedback(self) -> None:
        record = self._random.choice(list(self._mine))
        self._announced(
            lambda: self._memory.feedback(record, scope_of(self._name), helped=True),
            record=record, user=self._name, votes=1,
        )  # fmt: skip

    def _batch(self) -> None:
        text = self._text()
        texts = [f"{text} {n}" for n in range(4)]
        scope = scope_of(self._name)
        self._announced(lambda: self._memory.add(texts, scope), texts=texts, user=self._name)

    def _put(self) -> None:
        thread, channel = f"thread of {self._name}", "messages"
        text = self._text()
        checkpoint = Checkpoint(
            address=Address(thread=thread, namespace="", id=f"{self._number:08}"),
            body=Blob(type="text", data=b"body"),
            metadata=Blob(type="text", data=b"{}"),
            versions={channel: text},
        )
        values = {(channel, text): Blob(type="text", data=text.encode())}
        put = self._memory.admin.checkpoints.put
        self._announced(
            lambda: put(checkpoint, values, scope_of(self._name)), thread=thread, text=text
        )

    def _append(self) -> None:
        """Append a row to a session, as adapters keep the messages of a conversation."""
        thread, text = f"session of {self._name}", self._text()
        row = Blob(type="text/json", data=text.encode())
        address = Address(thread=thread, namespace="messages", id=f"{self._number:08}")
        step = Checkpoint(address=address, body=row, metadata=row, versions={})
        put = self._memory.admin.checkpoints.put
        self._announced(lambda: put(step, {}, scope_of(self._name)), session=thread, text=text)

    def _forget(self) -> None:
        """Forget a user of its own, of whom something is accepted and something is stored."""
        user = f"{self._name} {self._number} to be forgotten"
        text = self._text()
        self._announced(lambda: self._memory.add(text, scope_of(user)), passing=user)
        self._announced(lambda: self._memory.add(text, scope_of(user), wait=False), passing=user)
        self._announced(lambda: self._memory.forget(scope_of(user)), user=user, forgets=True)


def answer(memory: Memory) -> None:
    """Answer the questions of the parent, one a line, until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        found: dict[str, Any] = {}
        try:
            found = find(memory, asked)
        except Exception as error:  # noqa: BLE001 -- told to the parent, which counts it
            found = {"error": f"{type(error).__name__}: {error}"}
        say(at="answer", question=asked["question"], **found)


def find(memory: Memory, asked: dict[str, Any]) -> dict[str, Any]:
    """Look for what a write of another process has left."""
    if "thread" in asked:
        state = memory.admin.checkpoints.read(asked["thread"], "")
        # A later one is as good: ids ascend.
        return {"seen": state is not None and state.checkpoint.address.id >= asked["id"]}
    scope = scope_of(asked["user"])
    if asked.get("forgets"):
        return {"seen": not memory.list(scope).records}
    record = memory.get(asked["record"], scope)
    word = asked["text"] or asked["gone"]
    searched = {one.record.text for one in memory.search(word, scope, top_k=10)}
    if asked["text"] is None:
        return {"seen": record is None and word not in searched}
    return {"seen": record is not None and record.text == word and word in searched}


def shift_clock(seconds: float) -> None:
    """Let all that asks for the time find this host's clock ahead."""
    real = types.now

    def shifted() -> datetime:
        return real() + timedelta(seconds=seconds)

    for module in list(sys.modules.values()):
        if module.__name__.startswith("commonplace") and vars(module).get("now") is real:
            vars(module)["now"] = shifted
    SqliteJournal.__init__.__kwdefaults__["clock"] = shifted


def main(folder: str, name: str, seed: str, ahead: str) -> None:
    """Write until the end of the input, or a signal."""
    if float(ahead):
        shift_clock(float(ahead))
    Location.find = find_place  # type: ignore[method-assign,assignment]  # on the parent's servers
    memory = Memory.open(folder, embedder=HashEmbedder())
    say(at="open")
    reader = threading.Thread(target=answer, args=(memory,))
    reader.start()
    writer = Writer(memory, name, int(seed))
    while reader.is_alive():
        writer.step()
    memory.close()
    say(at="closed")


# -- their parent ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Ledger:
    """What there must be: every state that a record may be in, by user and record.

    A write that was begun and not acknowledged may have happened or not; then there are two states.
    """

    texts: dict[tuple[str, str], set[str | None]] = field(default_factory=dict)
    votes: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    batches: list[tuple[str, tuple[str, ...], bool]] = field(default_factory=list)
    threads: dict[str, set[str | None]] = field(default_factory=dict)
    sessions: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)

    def enter(self, write: dict[str, Any], *, is_done: bool) -> None:
        """Enter a write; one that is not done may still have happened."""
        if "votes" in write:
            fewest, most = self.votes.setdefault((write["user"], write["record"]), [0, 0])
            self.votes[write["user"], write["record"]] = [fewest + is_done, most + 1]
        elif "record" in write:
            key = write["user"], write["record"]
            before = set() if is_done else self.texts.get(key, {None})
            self.texts[key] = before | {write["text"]}
        elif "texts" in write:
            self.batches.append((write["user"], tuple(write["texts"]), is_done))
        elif "thread" in write:
            before = set() if is_done else self.threads.get(write["thread"], {None})
            self.threads[write["thread"]] = before | {write["text"]}
        elif "session" in write:
            self.sessions.setdefault(write["session"], []).append((write["text"], is_done))
        elif write.get("forgets") and is_done:
            self.forgotten.add(write["user"])
        elif "passing" in write:
            self.passing.add(write["passing"])

    def check(self, memory: Memory, counts: Counts) -> None:
        """Compare it with what is there."""
        left = memory.flush(60)
        counts.left += left.pending + left.dead
        runtime: Runtime = memory._runtime
        engines = runtime.engines
        graph, index = (dict(one.versions(None)) for one in (engines.graph, engines.index))
        for record, _ in graph.items() ^ index.items():
            counts.fault("diverged", record)
        self._check_records(memory, counts)
        for user in self.forgotten:
            if memory.list(scope_of(user)).records:
                counts.fault("lost", f"{user} was forgotten")
        for thread, possible in self.threads.items():
            state = memory.admin.checkpoints.read(thread, "")
            latest = None if state is None else state.values["messages"].data.decode()
            if latest not in possible:
                counts.fault("lost", f"{thread}: {latest} is none of {possible}")

        for thread, rows in self.sessions.items():
            found = [one.body.data.decode() for one in list_steps(memory, thread)]
            for text in {text for text, is_done in rows if is_done} - set(found):
                counts.fault("lost", f"{thread}: {text}")
            for text in set(found) - {text for text, _ in rows}:
                counts.fault("doubled", f"{thread}: {text}")

    def _check_records(self, memory: Memory, counts: Counts) -> None:
        users = {user for user, _ in self.texts} | {user for user, _, _ in self.batches}
        found = {(user, one.id): one for user in users for one in list_all(memory, scope_of(user))}
        for key, possible in self.texts.items():
            text = found[key].text if key in found else None
            if text not in possible:
                counts.fault("lost", f"{key}: {text!r} is none of {possible}")
        for key, (fewest, most) in self.votes.items():
            votes = found[key].votes if key in found else None
            if votes is not None and votes < fewest:
                counts.fault("lost", f"{key}: {votes} votes of {fewest}")
            if votes is not None and votes > most:
                counts.fault("doubled", f"{key}: {votes} votes of {most}")
        number = Counter((user, one.text) for (user, _), one in found.items())
        for key, times in number.items():
            if times > 1:
                counts.fault("doubled", f"{key} {times} times")
        for user, texts, is_done in self.batches:
            there = sum(number[user, text] for text in texts)
            if there not in ({4} if is_done else {0, 4}):
                counts.fault("lost", f"{user}: {there} of {texts}")


def list_all(memory: Memory, scope: Scope) -> Iterator[Any]:
    """List every record of a scope."""
    cursor = None
    while True:
        page = memory.list(scope, limit=1000, cursor=cursor)
        yield from page.records
        if (cursor := page.cursor) is None:
            return


def list_steps(memory: Memory, thread: str) -> Iterator[Checkpoint]:
    """List every checkpoint of a thread."""
    after = None
    while page := memory.admin.checkpoints.page(Selection(thread=thread), limit=1000, after=after):
        yield from page
        after = page[-1].address


class Child:
    """A running process, and what it has announced."""

    def __init__(
        self, folder: Path, name: str, seed: int, heard: "SimpleQueue[Any]", ahead: float = 0.0
    ) -> None:
        self.name = name
        self.folder, self.ahead = folder, ahead
        self.begun: dict[str, Any] | None = None
        self.is_open = threading.Event()
        self._heard = heard
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(folder), name, str(seed), str(ahead)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                if said["at"] == "open":
                    self.is_open.set()
                self._heard.put((self, said))
        self._heard.put((self, {"at": "end"}))

    def ask(self, question: dict[str, Any]) -> None:
        """Ask something; a dead process gives no answer."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{json.dumps(question)}\n")
            self.process.stdin.flush()

    def kill(self) -> None:
        """Kill it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Let it finish, and wait for that."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # what it did not read before it was killed
            self.process.stdin.close()


class Round:
    """Some seconds of reading, writing and killing in one folder, and the check afterwards.

    Args:
        apart: seconds from the clock of one host to the next, if each process is a host with a
            folder of its own, beside the servers that the environment names; 0 for one folder.
    """

    def __init__(self, folder: Path, ledger: Ledger, seed: int, *, apart: float = 0.0) -> None:
        self._apart = apart
        self.counts = Counts(runs=1)
        self._folder = folder
        self._ledger = ledger
        self._random = random.Random(seed)
        self._seed = seed
        self._heard: SimpleQueue[tuple[Child, dict[str, Any]]] = SimpleQueue()
        self._started = 0
        self._children: list[Child] = []
        self._running = 0
        self._questions: dict[int, tuple[dict[str, Any], Child]] = {}

    def run(
        self, seconds: float, *, kill_every: float, processes: int = PROCESSES, fewest: int = 0
    ) -> Counts:
        """Run it; at the end half of the processes are killed, and half finish.

        Args:
            fewest: writes that must be acknowledged, for which it goes on up to a minute longer.
        """
        for number in range(processes):
            host = self._folder / f"host {number}" if self._apart else self._folder
            self._start(host, number * self._apart)
        for child in self._children:
            child.is_open.wait(30)
        until = time.monotonic() + seconds
        kill_at = time.monotonic() + kill_every
        latest = until + 60.0
        while (now := time.monotonic()) < until or (self.counts.accepted < fewest and now < latest):
            if now >= kill_at:
                kill_at = now + kill_every
                victim = self._random.choice(self._children)
                if victim.is_open.is_set():
                    self._kill(victim)
                    self._start(victim.folder, victim.ahead)
            self._listen(min(until, kill_at) - now if now < until else 0.1)
        self._finish()
        for host in sorted(self._folder.glob("host *")):  # what its journal has left
            with Memory.open(str(host), embedder=HashEmbedder()) as memory:
                left = memory.flush(60)
                self.counts.left += left.pending + left.dead
        with Memory.open(str(self._folder), embedder=HashEmbedder()) as memory:
            self._ledger.check(memory, self.counts)
        return self.counts

    def _start(self, folder: Path, ahead: float) -> None:
        name = f"process {self._seed}-{self._started}"
        seed = self._random.getrandbits(32)
        self._started += 1
        self._running += 1
        self._children.append(Child(folder, name, seed, self._heard, ahead))

    def _kill(self, child: Child) -> None:
        child.kill()
        self._children.remove(child)
        self.counts.killed += 1

    def _finish(self) -> None:
        for child in self._children[::2]:
            child.kill()
            self.counts.killed += 1
        children, self._children = self._children, []
        until = time.monotonic() + 30
        while self._questions and time.monotonic() < until:
            self._listen(0.1)
        for child in children:
            child.close()
        while self._running and time.monotonic() < until + 60:
            self._listen(0.1)
        for question, child in self._questions.values():
            if child.process.returncode != -signal.SIGKILL:
                self.counts.fault("unseen", f"no answer of {child.name} to {question}")
        for child in children:
            child.reader.join(60)
            if child.process.wait(60) not in (0, -signal.SIGKILL):
                self.counts.fault("failed", f"{child.name} ended with {child.process.returncode}")

    def _listen(self, seconds: float) -> None:
        try:
            child, said = self._heard.get(timeout=max(seconds, 0.001))
        except Empty:
            return
        at = said.pop("at")
        if at == "begin":
            child.begun = said
        elif at == "done":
            assert child.begun is not None
            self.counts.accepted += 1
            write, child.begun = child.begun, None
            self._ledger.enter(write, is_done=True)
            self._ask_another(child, write)
        elif at == "failed":
            assert child.begun is not None
            self.counts.fault("failed", f"{said['error']} of {child.begun}")
            self._ledger.enter(child.begun, is_done=False)
            child.begun = None
        elif at == "answer":
            self._answered(said)
        elif at == "end":
            self._running -= 1
            if child.begun is not None:
                self._ledger.enter(child.begun, is_done=False)
            for number, (_, asked) in list(self._questions.items()):
                if asked is child:  # it was killed before it could answer
                    del self._questions[number]

    def _ask_another(self, child: Child, write: dict[str, Any]) -> None:
        is_lasting = write.get("final") or write.get("forgets") or "thread" in write
        others = [one for one in self._children if one is not child and one.is_open.is_set()]
        if is_lasting and others:
            question = {**write, "question": self.counts.asked, "id": f"{write['number'] - 1:08}"}
            asked = self._random.choice(others)
            self._questions[self.counts.asked] = question, asked
            self.counts.asked += 1
            asked.ask(question)

    def _answered(self, said: dict[str, Any]) -> None:
        found = self._questions.pop(said["question"], None)
        if found is not None and not said.get("seen"):
            question, child = found
            self.counts.fault("unseen", f"{child.name} found {said}, asked for {question}")


if __name__ == "__main__":
    main(*sys.argv[1:])
