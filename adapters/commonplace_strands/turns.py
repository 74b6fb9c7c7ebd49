"""Which turns run, for whom, and in whose course a piece of code is called.

Whose turn it is hangs on the agent and the `invocation_state` that the framework hands to a hook.
Where it hands over neither, as to a memory store, it hangs on the context: each model call and tool
call enters its turn there and leaves it again.
"""

import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from commonplace import InvalidScopeError, Match, Memory, Scope

from .scopes import NOBODY

MODEL_CALL = "model call"


@dataclass(slots=True, kw_only=True, eq=False)
class Turn:
    """One invocation of an agent, or a part of one that an interrupt has cut in two.

    Attributes:
        memory: what it remembers with.
        scope: whose memory it is about; None if nobody said so.
        holder: the plugin that serves it.
        asker: who said what it answers, as `unanswered` tells it; not he who goes on with it.
        said: what the user said in it.
        run: names it among all turns.
        matches: what it called to mind; None before it has asked.
    """

    memory: Memory
    scope: Scope | None
    holder: object
    asker: dict[str, str | None] | None = None
    said: list[Any] = field(default_factory=list)
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    matches: tuple[Match, ...] | None = None
    steps: int = 0

    def step(self) -> str:
        """Name the next message of the turn."""
        self.steps += 1
        return f"{self.run}:{self.steps}"


@dataclass(slots=True, kw_only=True, eq=False)
class Visit:
    """A model call or tool call in the course of a turn.

    Attributes:
        key: `MODEL_CALL`, or the agent and the id of the tool use.
        shown: ids of records that the model is shown in this call already.
        has_note: it is shown a note of what the turn calls to mind.
        is_over: whoever finds it in a copied context was called from it, but it has ended.
    """

    turn: Turn
    key: str
    shown: set[str] = field(default_factory=set)
    has_note: bool = False
    is_over: bool = False


_visits: ContextVar[tuple[Visit, ...]] = ContextVar("commonplace_strands_visits", default=())


def enter(turn: Turn, key: str) -> None:
    """Begin a call in this context."""
    leave(key, turn.holder)
    _visits.set((*_visits.get(), Visit(turn=turn, key=key)))


def leave(key: str, holder: object) -> None:
    """End a holder's call in this context; nothing if there is none."""
    _end(lambda visit: visit.turn.holder is holder and visit.key == key)


def leave_all(turn: Turn) -> None:
    """End every call of a turn in this context."""
    _end(lambda visit: visit.turn is turn)


def visit_to(memory: Memory, holder: object = None) -> Visit | None:
    """Find the call in whose course this is called, of a turn with this memory, and this holder."""
    for visit in reversed(_visits.get()):
        if visit.turn.memory is memory and holder in (None, visit.turn.holder):
            return visit
    return None


def owner_here(memory: Memory, holder: object = None) -> Scope:
    """Tell whose memory the call is about in whose course this is called, found as `visit_to` does.

    Raises:
        InvalidScopeError: it is nobody's.
    """
    visit = visit_to(memory, holder)
    if visit is None or visit.turn.scope is None:
        raise InvalidScopeError(field="user_id", value=None, reason=NOBODY)
    return visit.turn.scope


def model_call(memory: Memory) -> Visit | None:
    """Find the model call that is about to begin, of a turn with this memory."""
    visit = visit_to(memory)
    return visit if visit is not None and visit.key == MODEL_CALL else None


def around() -> Turn | None:
    """Find the turn that called an agent as a tool, in whose course this is called."""
    for visit in reversed(_visits.get()):
        if visit.key != MODEL_CALL and not visit.is_over:
            return visit.turn
    return None


def _end(is_meant: Callable[[Visit], bool]) -> None:
    visits = _visits.get()
    left = tuple(one for one in visits if not is_meant(one))
    for visit in visits:
        visit.is_over = visit.is_over or visit not in left
    if len(left) < len(visits):
        _visits.set(left)


class Turns:
    """The turns that one plugin serves now."""

    def __init__(self) -> None:
        # What is held stays alive, so that no id is another one's.
        self._running: dict[tuple[int, int], list[tuple[Any, Any, Turn]]] = {}
        self._conversations: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def conversation(self, agent: Any) -> str:
        """Name what an agent's messages make up: the same for as long as the agent lives."""
        return self._conversations.setdefault(agent, uuid.uuid4().hex)

    def begin(self, agent: Any, state: Mapping[str, Any], turn: Turn) -> None:
        """Take a turn up."""
        self._running.setdefault((id(agent), id(state)), []).append((agent, state, turn))

    def find(self, agent: Any, state: Mapping[str, Any]) -> Turn | None:
        """Find the turn of an agent with this very state; the newest if callers share one."""
        running = self._running.get((id(agent), id(state)))
        return running[-1][2] if running else None

    def end(self, agent: Any, state: Mapping[str, Any]) -> Turn | None:
        """Let a turn go."""
        running = self._running.get((id(agent), id(state)))
        if not running:
            return None
        turn = running.pop()[2]
        if not running:
            del self._running[id(agent), id(state)]
        return turn
