"""A user's turn as an agent's state holds it, and its note, which no state ever holds."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage

from commonplace import Scope

from .convert import UserText, current_texts

TURN_KEY = "commonplace_turn"
MAX_TURNS = 1_000


class LangGraphTurn(TypedDict):
    """A turn that is not over, as checkpoints hold it, so that it survives an interrupt.

    Its keys are a stored format.

    Attributes:
        id: of this turn only.
        owner: `Scope.key` of the user who asked.
        said: what the user wrote since the last answer; a summary may have replaced it in the
            conversation.
    """

    id: str
    owner: str
    said: list[UserText]


_IDS = ("id", "owner")
_PARTS = ("text", "name", "id")


class TurnState(AgentState[Any]):
    """What the middleware keeps in an agent's state; None between turns."""

    commonplace_turn: NotRequired[Annotated[LangGraphTurn | None, PrivateStateAttr]]


def begin_turn(scope: Scope, texts: list[UserText]) -> LangGraphTurn:
    """Begin a turn of the user that the scope names."""
    return LangGraphTurn(id=uuid.uuid4().hex, owner=scope.key, said=texts)


def turn_in(state: object) -> LangGraphTurn | None:
    """Find the turn that is not over in a state; None if there is none.

    A state is saved, loaded and edited by others: what is malformed counts as missing.
    """
    found = state.get(TURN_KEY) if isinstance(state, Mapping) else getattr(state, TURN_KEY, None)
    if not isinstance(found, dict) or not all(type(found.get(one)) is str for one in _IDS):
        return None
    texts = found.get("said")
    return LangGraphTurn(
        id=found["id"],
        owner=found["owner"],
        said=[
            UserText(text=one["text"], name=one["name"], id=one["id"])
            for one in (texts if isinstance(texts, list) else [])
            if isinstance(one, dict) and all(type(one.get(part)) is str for part in _PARTS)
        ],
    )


def turn_query(turn: LangGraphTurn) -> str:
    """Write the query by which a turn is recalled for."""
    return "\n".join(one["text"] for one in turn["said"])


class TurnCache:
    """The notes of turns that are not over in this process: the 1,000 latest."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, tuple[str, list[UserText]]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, turn: LangGraphTurn) -> str | None:
        """Read a turn's note, empty when nothing was recalled; None before the recall."""
        with self._lock:
            cached = self._turns.get(turn["id"])
        return None if cached is None else cached[0]

    def keep(self, turn: LangGraphTurn, note: str) -> None:
        """Keep a turn's note, and the user's texts as they are by now."""
        with self._lock:
            self._turns[turn["id"]] = note, turn["said"]
            while len(self._turns) > MAX_TURNS:
                self._turns.popitem(last=False)

    def latest(self, turn: LangGraphTurn, messages: Sequence[BaseMessage]) -> LangGraphTurn:
        """Read a turn as it is by now: from the conversation, else as it was when last read."""
        with self._lock:
            cached = self._turns.get(turn["id"])
        texts = turn["said"] if cached is None else cached[1]
        return LangGraphTurn(
            id=turn["id"], owner=turn["owner"], said=current_texts(texts, messages)
        )

    def drop(self, turn: LangGraphTurn) -> None:
        """Forget a turn that is over."""
        with self._lock:
            self._turns.pop(turn["id"], None)
