"""A user's turn as an agent's state holds it, and its note, which no state ever holds."""

import hashlib
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypedDict
from weakref import WeakKeyDictionary

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage
from langgraph.managed.is_last_step import RemainingStepsManager

from commonplace import Memory, Scope
from commonplace.agents import LRUCache, ShownRecords

from .convert import UserText, current_texts, last_question_id, messages_in
from .turn_owner import Place

TURN_KEY = "commonplace_turn"
MAX_TURNS = 1_000
MAX_TEXTS = 10_000
_askers: "WeakKeyDictionary[Memory, AskerCache]" = WeakKeyDictionary()
_shown: "WeakKeyDictionary[Memory, LRUCache[str, ShownRecords]]" = WeakKeyDictionary()
_caches_lock = threading.Lock()


class LangGraphTurn(TypedDict):
    """A turn that is not over, as checkpoints hold it, so that it survives an interrupt.

    Its keys are a stored format.

    Attributes:
        id: of this turn only.
        owner: `Scope.key` of the user who asked.
        said: what the user wrote since the last answer; a summary may have replaced it in the
            conversation.
        by_agent: another agent's model wrote that, not the user.
        others: ids of what stands there unanswered, too, and another user wrote, or nobody known.
    """

    id: str
    owner: str
    said: list[UserText]
    by_agent: bool
    others: list[str]


NOBODY = ""  # the owner of a turn whose run named nobody
_IDS = ("id", "owner")
_PARTS = ("text", "name", "id")


class TurnState(AgentState[Any]):
    """What the middleware has in an agent's state.

    Attributes:
        commonplace_turn: None between turns.
        commonplace_steps: how many the run has left before LangGraph ends it with an error.
    """

    commonplace_turn: NotRequired[Annotated[LangGraphTurn | None, PrivateStateAttr]]
    commonplace_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]


def begin_turn(
    scope: Scope | None, texts: list[UserText], left: LangGraphTurn | None, *, by_agent: bool
) -> LangGraphTurn:
    """Begin a turn of the user that the scope names; None is nobody.

    Args:
        texts: what is unanswered; what others wrote of it is not the user's.
        left: the turn before, if it came to no end.
    """
    owner = NOBODY if scope is None else scope.key
    others: set[str] = set()
    if left is not None:
        others.update(left["others"])
        if left["owner"] != owner:
            others.update(one["id"] for one in left["said"])
    others.discard("")  # no id at all
    return LangGraphTurn(
        id=uuid.uuid4().hex,
        owner=owner,
        said=[one for one in texts if one["id"] not in others],
        by_agent=by_agent,
        others=[one["id"] for one in texts if one["id"] in others],
    )


def turn_in(state: object) -> LangGraphTurn | None:
    """Find the turn that is not over in a state; None if there is none.

    A state is saved, loaded and edited by others: what is malformed counts as missing.
    """
    found = state.get(TURN_KEY) if isinstance(state, Mapping) else getattr(state, TURN_KEY, None)
    if not isinstance(found, dict) or not all(type(found.get(one)) is str for one in _IDS):
        return None
    texts, others = found.get("said"), found.get("others")
    return LangGraphTurn(
        id=found["id"],
        owner=found["owner"],
        said=[
            UserText(text=one["text"], name=one["name"], id=one["id"])
            for one in (texts if isinstance(texts, list) else [])
            if isinstance(one, dict) and all(type(one.get(part)) is str for part in _PARTS)
        ],
        by_agent=found.get("by_agent") is True,
        others=[one for one in (others if isinstance(others, list) else []) if type(one) is str],
    )


def turn_query(turn: LangGraphTurn) -> str:
    """Write the query by which a turn is recalled for."""
    return "\n".join(one["text"] for one in turn["said"])


@dataclass(slots=True)
class _OpenTurn:
    note: str | None
    said: list[UserText]
    is_saved: bool = False


class TurnCache:
    """The notes of turns that are not over in this process: the 1,000 latest. Thread-safe."""

    def __init__(self) -> None:
        self._turns: LRUCache[str, _OpenTurn] = LRUCache(MAX_TURNS)

    def note(self, turn: LangGraphTurn) -> str | None:
        """Read a turn's note, empty when nothing was recalled; None before the recall."""
        known = self._turns.get(turn["id"])
        return None if known is None else known.note

    def keep(self, turn: LangGraphTurn, note: str) -> None:
        """Keep a turn's note, and the user's texts as they are by now."""
        with self._turns.lock:
            known = self._open(turn)
            known.note, known.said = note, turn["said"]

    def mark_saved(self, turn: LangGraphTurn) -> bool:
        """Return whether the user's texts are still to be written alone, and say that they are."""
        with self._turns.lock:
            known = self._open(turn)
            is_first, known.is_saved = not known.is_saved, True
        return is_first

    def latest(self, turn: LangGraphTurn, messages: Sequence[BaseMessage]) -> LangGraphTurn:
        """Read a turn as it is by now: from the conversation, else as it was when last read."""
        known = self._turns.get(turn["id"])
        texts = turn["said"] if known is None else known.said
        return LangGraphTurn(**{**turn, "said": current_texts(texts, messages)})

    def drop(self, turn: LangGraphTurn) -> None:
        """Forget a turn that is over."""
        self._turns.pop(turn["id"])

    def _open(self, turn: LangGraphTurn) -> _OpenTurn:
        return self._turns.setdefault(turn["id"], _OpenTurn(None, turn["said"]))


class AskerCache:
    """Who was the first to ask what in a thread, by this process: the 10,000 latest texts.

    A turn that failed leaves its question in the thread, and often no word of who asked.
    """

    def __init__(self) -> None:
        self._askers: LRUCache[tuple[Place, str, str], str | None] = LRUCache(MAX_TEXTS)

    def own(
        self, texts: list[UserText], scope: Scope | None, place: Place | None
    ) -> list[UserText]:
        """Return what nobody else asked before the scope's user; None is nobody.

        Args:
            place: where it is asked, of `ScopeResolver.place`; None outside a thread, where
                nothing is left over.
        """
        if place is None:
            return texts
        asker = NOBODY if scope is None else scope.user_id
        return [text for text in texts if self._first(place, text, asker) == asker]

    def _first(self, place: Place, text: UserText, asker: str | None) -> str | None:
        digest = hashlib.sha256(text["text"].encode("utf-8", "surrogatepass")).hexdigest()
        return self._askers.setdefault((place, text["id"], digest), asker)


def shown_cache(memory: Memory) -> LRUCache[str, ShownRecords]:
    """Find what models were shown of a memory in the 1,000 latest turns, for the tools of those.

    One for all that is made on the memory.
    """
    with _caches_lock:
        return _shown.setdefault(memory, LRUCache(MAX_TURNS))


def asker_cache(memory: Memory) -> AskerCache:
    """Find who asked what of a memory: one for all that is made on it."""
    with _caches_lock:
        return _askers.setdefault(memory, AskerCache())


def shown_key(state: object, scope: Scope) -> str:
    """Name the turn of a state, for its user.

    With `MemoryMiddleware` that is its turn; in other graphs, what follows the user's last message;
    where there is no state, all that the user does in this thread.
    """
    if turn := turn_in(state):
        return turn["id"]
    return f"{scope.key} {last_question_id(messages_in(state))}"
