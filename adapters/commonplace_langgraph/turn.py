"""A user's turn: what an agent's state says of it, and its note, which no state ever holds."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage

from commonplace import Scope

from .convert import Said, as_now

TURN = "commonplace_turn"
MOST_TURNS = 1_000


class Turn(TypedDict):
    """A turn that is not over. It is kept in checkpoints, so that it survives an interrupt.

    Attributes:
        id: of this turn only.
        owner: `Scope.key` of whoever asked.
        said: since the last answer; a summary may have replaced it in the conversation.
    """

    id: str
    owner: str
    said: list[Said]


_IDS = ("id", "owner")
_PARTS = ("text", "name", "id")


class TurnState(AgentState[Any]):
    """What the middleware keeps in an agent's state; None between turns."""

    commonplace_turn: NotRequired[Annotated[Turn | None, PrivateStateAttr]]


def begin(scope: Scope, said: list[Said]) -> Turn:
    """Begin a turn of whoever the scope names."""
    return Turn(id=uuid.uuid4().hex, owner=scope.key, said=said)


def turn_in(state: object) -> Turn | None:
    """Find the turn that is not over in a state; None if there is none.

    A state is saved, loaded and edited by others: what is none of ours counts as not there.
    """
    found = state.get(TURN) if isinstance(state, Mapping) else getattr(state, TURN, None)
    if not isinstance(found, dict) or not all(type(found.get(one)) is str for one in _IDS):
        return None
    said = found.get("said")
    return Turn(
        id=found["id"],
        owner=found["owner"],
        said=[
            Said(text=one["text"], name=one["name"], id=one["id"])
            for one in (said if isinstance(said, list) else [])
            if isinstance(one, dict) and all(type(one.get(part)) is str for part in _PARTS)
        ],
    )


def query(turn: Turn) -> str:
    """Say what to recall for a turn."""
    return "\n".join(one["text"] for one in turn["said"])


class Turns:
    """What this process knows of turns that are not over: the 1,000 latest."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str, list[Said]]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, turn: Turn) -> str | None:
        """Read a turn's note, empty when nothing was recalled; None when nobody looked yet."""
        with self._lock:
            known = self._known.get(turn["id"])
        return None if known is None else known[0]

    def keep(self, turn: Turn, note: str) -> None:
        """Keep a turn's note, and what was said in it as it is by now."""
        with self._lock:
            self._known[turn["id"]] = note, turn["said"]
            while len(self._known) > MOST_TURNS:
                self._known.popitem(last=False)

    def latest(self, turn: Turn, messages: Sequence[BaseMessage]) -> Turn:
        """Read a turn as it is by now: from the conversation, else as it was when last read."""
        with self._lock:
            known = self._known.get(turn["id"])
        said = turn["said"] if known is None else known[1]
        return Turn(id=turn["id"], owner=turn["owner"], said=as_now(said, messages))

    def drop(self, turn: Turn) -> None:
        """Forget a turn that is over."""
        with self._lock:
            self._known.pop(turn["id"], None)
