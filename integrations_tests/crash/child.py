"""A process that stops dead at a named point: `child.py FOLDER POINT ACTION`."""

import os
import signal
import sys
from pathlib import Path

from commonplace import Fact, Memory, Relation, Scope
from commonplace.ingest import direct
from commonplace.ports.stores import arm_crash_points
from commonplace.settings import Location
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
FIRST = "Alice keeps bees"
SECOND = "Alice plays the cello"
CHANGED = "Alice plays the viola"
LATER = "Alice rows at dawn"
HENS = "Alice keeps hens"


def say(word: str) -> None:
    """Tell the parent what was acknowledged, before anything else can happen."""
    os.write(1, f"{word}\n".encode())


def stop() -> None:
    """Stop as a power loss would."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, point: str, action: str) -> None:
    """Prepare some records, arm the point, act; `recover` takes up what an earlier run left."""
    if action == "recover":
        arm_crash_points(lambda reached: stop() if reached == point else None)
    memory = Memory.open(folder, embedder=HashEmbedder())
    if action == "recover":
        memory.flush()
    elif action == "thousand":
        for n in range(1000):
            memory.add(f"note number {n}", ALICE, wait=False)
        stop()
    else:
        act(memory, point, action)
    memory.close()
    say("closed")


def act(memory: Memory, point: str, action: str) -> None:
    """Change something of what is known; stop after that if the point is `acknowledged`."""
    bees, hens = (_keeps(text) for text in (FIRST, HENS))
    memory.add([bees, SECOND], ALICE)
    if action == "reopen":
        memory.add(hens, ALICE)
    memory.flush()  # the points of this write are passed; those to come belong to the action
    known = {one.text: one.id for one in memory.list(ALICE).records}
    arm_crash_points(lambda reached: stop() if reached == point else None)
    say("armed")
    if action == "awaited":
        direct._QUICK_SECONDS = 30.0  # as on a machine that is not busy
        memory.add(LATER, ALICE)
    elif action == "add":
        memory.add(LATER, ALICE, wait=False)
    elif action == "update":
        memory.update(known[SECOND], CHANGED, ALICE, wait=False)
    elif action == "delete":
        memory.delete(known[SECOND], ALICE, wait=False)
    elif action == "tell":
        memory.add(SECOND, ALICE, wait=False)
    elif action == "supersede":
        memory.add(hens, ALICE, wait=False)
    elif action == "reopen":
        memory.delete(known[HENS], ALICE, wait=False)
    elif action == "forget":
        memory.forget(ALICE)
    say("acknowledged")
    if point == "acknowledged":
        stop()


def _keeps(text: str) -> Fact:
    animal = text.rsplit(maxsplit=1)[-1]
    said = Relation(subject="Alice", predicate="keeps", object=animal, single_valued=True)
    return Fact(text=text, relations=(said,))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    from engines import find

    Location.find = find  # type: ignore[method-assign,assignment]  # on the parent's servers
    main(*sys.argv[1:])
