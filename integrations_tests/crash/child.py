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


def say(word: str) -> None:
    """Tell the parent what was acknowledged, before anything else can happen."""
    os.write(1, f"{word}\n".encode())


def main(folder: str, point: str, action: str) -> None:
    """Prepare two records, arm the point, act."""
    memory = Memory.open(folder, embedder=HashEmbedder())
    bees = Fact(
        text=FIRST, relations=(Relation(subject="Alice", predicate="keeps", object="bees"),)
    )
    memory.add([bees, SECOND], ALICE)
    memory.drain()  # the points of this write are passed; those to come belong to the action
    second = next(one for one in memory.list(ALICE).records if one.text == SECOND)

    def stop(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(stop)
    say("armed")
    if action == "add":
        memory.add(LATER, ALICE, wait=False)
    elif action == "update":
        memory.update(second.id, CHANGED, ALICE, wait=False)
    elif action == "delete":
        memory.delete(second.id, ALICE, wait=False)
    say("accepted")
    if action == "forget":
        memory.forget(ALICE)
        say("forgotten")
    memory.close()
    say("closed")


if __name__ == "__main__":
    main(*sys.argv[1:])
