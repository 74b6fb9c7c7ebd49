"""A user's turn, as an agent's state holds it, and what only this process knows of it."""

import hashlib
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict
from weakref import WeakKeyDictionary

import msgspec
from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage

from commonplace import Memory, Message, Scope
from commonplace.agents import AgentMemory, LazyMemory, LRUCache, ShownRecords, field_of

from .convert import UserText, current_texts, last_question_id, messages_in
from .turn_owner import Place

TURN_KEY = "commonplace_turn"
MAX_TURNS = 1_000
MAX_TEXTS = 10_000
_caches: "WeakKeyDictionary[Memory | LazyMemory, TurnCache]" = WeakKeyDictionary()
_caches_lock = threading.Lock()


class LangGraphTurn(TypedDict):
    """A turn that is not over, kept in checkpoints so that it survives an interrupt.

    Its keys are a stored format.

    Attributes:
        id: unique to this turn.
        owner: `Scope.key` of the user who asked.
        said: what the user wrote since the last answer; a summary may have replaced it in the
            conversation.
        by_agent: `said` was written by another agent's model, not by the user.
        others: ids of unanswered messages that somebody else wrote, or nobody known.
    """

    id: str
    owner: str
    said: list[UserText]
    by_agent: bool
    others: list[str]


NOBODY = ""  # the owner of a turn whose run named nobody


class TurnState(AgentState[Any]):
    """What the middleware has in an agent's state.

    Attributes:
        commonplace_turn: None between turns.
    """

    commonplace_turn: NotRequired[Annotated[LangGraphTurn | None, PrivateStateAttr]]


def begin_turn(
    scope: Scope | None, texts: list[UserText], left: LangGraphTurn | None, *, by_agent: bool
) -> LangGraphTurn:
    """Begin a turn of a scope's user; None is nobody.

    Args:
        texts: what is unanswered; it may include what others wrote.
        left: the previous turn, if it did not end.
    """
    owner = NOBODY if scope is None else scope.key
    others: set[str] = set()
    if left is not None:
        others.update(left["others"])
        if left["owner"] != owner:
            others.update(text["id"] for text in left["said"])
    others.discard("")  # no id at all
    return LangGraphTurn(
        id=uuid.uuid4().hex,
        owner=owner,
        said=[text for text in texts if text["id"] not in others],
        by_agent=by_agent,
        others=[text["id"] for text in texts if text["id"] in others],
    )


def turn_in(state: object) -> LangGraphTurn | None:
    """Return a copy of the turn in a state that is not over; None if there is none.

    Others save, load and edit states, so a malformed turn counts as none.
    """
    found = field_of(state, TURN_KEY)
    try:
        return None if found is None else msgspec.convert(found, LangGraphTurn)
    except msgspec.ValidationError:
        return None


@dataclass(slots=True)
class OpenTurn:
    """What this process knows of a turn that is not over.

    Attributes:
        note: what the model is shown, empty if nothing was recalled; None before the recall.
        said: what the user wrote, when last read; None before that.
        accepted: messages of what the user wrote, as the model was first shown it.
        shown: the records that the model was shown, which its tools may change.
    """

    note: str | None = None
    said: list[UserText] | None = None
    accepted: Sequence[Message] = ()
    shown: ShownRecords = field(default_factory=ShownRecords)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """What was stored of a message of the user and its answer, whose id is LangChain's."""

    said: Sequence[Message] = ()
    answer: Sequence[Message] = ()
    answer_id: str | None = None


class TurnCache:
    """The last 1,000 open turns on a memory, and who asked the last 10,000 texts. Thread-safe.

    A turn that failed leaves its question in the thread, often without saying who asked.
    """

    def __init__(self) -> None:
        self._writers: WeakKeyDictionary[Any, tuple[object, ...]] = WeakKeyDictionary()
        self._turns = LRUCache[str, OpenTurn](MAX_TURNS)
        self._askers = LRUCache[tuple[Place, str, str], str](MAX_TEXTS)
        self._stored = LRUCache[tuple[str, ...], StoredTurn](MAX_TEXTS)

    def of(self, key: str) -> OpenTurn:
        """Return the turn of a key, see `turn_key`; a new one if there is none."""
        return self._turns.setdefault(key, OpenTurn())

    def drop(self, turn: LangGraphTurn) -> None:
        """Forget a turn that is over."""
        self._turns.pop(turn["id"])

    def latest(self, turn: LangGraphTurn, messages: Sequence[BaseMessage]) -> LangGraphTurn:
        """Return a turn with its texts as the conversation has them now."""
        said = self.of(turn["id"]).said
        texts = turn["said"] if said is None else said
        return LangGraphTurn(**{**turn, "said": current_texts(texts, messages)})

    def replace(
        self, key: tuple[str, ...], turn: StoredTurn, held: Sequence[BaseMessage] = ()
    ) -> list[Message]:
        """Note what is stored of a message; return what was, and is withdrawn.

        That is an earlier text under its id, and an answer that the conversation no longer holds.

        Args:
            key: the scope, the place in the graph and the message's id.
            held: the conversation, if the message is not answered yet.
        """
        with self._stored.lock:
            former = self._stored.get(key) or StoredTurn()
            if former.answer_id in {message.id for message in held}:
                turn = StoredTurn(turn.said, former.answer, former.answer_id)
            self._stored[key] = turn
        ids = {one.id for one in (*turn.said, *turn.answer)}
        return [one for one in (*former.said, *former.answer) if one.id not in ids]

    def add_writer(self, writer: object, *whose: object) -> None:
        """Note what writes turns at their end while it lives, and whose: sources of ids, policy."""
        with self._turns.lock:
            self._writers[writer] = whose

    def has_writer(self, *whose: object) -> bool:
        """Return whether something writes such turns at their end."""
        with self._turns.lock:
            return whose in self._writers.values()

    def own(
        self, texts: list[UserText], scope: Scope | None, place: Place | None
    ) -> list[UserText]:
        """Return the texts that nobody else asked before the scope's user; None is nobody.

        Args:
            place: see `ScopeResolver.place`; None outside a thread, where nothing is left over.
        """
        if place is None:
            return texts
        asker = (scope and scope.user_id) or NOBODY
        return [text for text in texts if self._first_asker(place, text, asker) == asker]

    def _first_asker(self, place: Place, text: UserText, asker: str) -> str:
        digest = hashlib.sha256(text["text"].encode("utf-8", "surrogatepass")).hexdigest()
        return self._askers.setdefault((place, text["id"], digest), asker)


def turn_cache(agent: AgentMemory) -> TurnCache:
    """Return the open turns on a memory, the same for all objects that use it."""
    memory = agent.lazy.given or agent.lazy
    with _caches_lock:
        return _caches.setdefault(memory, TurnCache())


def turn_key(state: object, scope: Scope) -> str:
    """Return the key of a user's turn in `TurnCache`.

    With `MemoryMiddleware` that is the turn in the state; in other graphs, what follows the user's
    last message; without a state, everything that the user does in this thread.
    """
    if turn := turn_in(state):
        return turn["id"]
    return f"{scope.key} {last_question_id(messages_in(state))}"
