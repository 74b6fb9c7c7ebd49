"""A process that stops dead at a named point: `child.py FOLDER POINT ACTION`."""

import os
import signal
import sys

from commonplace import Fact, Memory, Relation, Scope, faults
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


def main(folder: str, point: str, action: str) -> None:
    """Prepare some records, arm the point, act."""
    memory = Memory.open(folder, embedder=HashEmbedder())
    bees, hens = (_keeps(text) for text in (FIRST, HENS))
    memory.add([bees, SECOND], ALICE)
    if action == "reopen":
        memory.add(hens, ALICE)
    memory.drain()  # the points of this write are passed; those to come belong to the action
    known = {one.text: one.id for one in memory.list(ALICE).records}

    def stop(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(stop)
    say("armed")
    if action == "add":
        memory.add(LATER, ALICE, wait=False)
    elif action == "update":
        memory.update(known[SECOND], CHANGED, ALICE, wait=False)
    elif action == "delete":
        memory.delete(known[SECOND], ALICE, wait=False)
    elif action == "supersede":
        memory.add(hens, ALICE, wait=False)
    elif action == "reopen":
        memory.delete(known[HENS], ALICE, wait=False)
    say("accepted")
    if action == "forget":
        memory.forget(ALICE)
        say("forgotten")
    memory.close()
    say("closed")


def _keeps(text: str) -> Fact:
    animal = text.rsplit(maxsplit=1)[-1]
    said = Relation(subject="Alice", predicate="keeps", object=animal, single_valued=True)
    return Fact(text=text, relations=(said,))


if __name__ == "__main__":
    main(*sys.argv[1:])
