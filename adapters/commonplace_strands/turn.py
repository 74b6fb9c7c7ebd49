"""Running turns of agents, and the calls in their course.

Hooks get the agent and the `invocation_state`, which together identify a turn. A memory store or a
tool gets neither, so each model call and tool call also stands in a context variable while it runs.
"""

import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from commonplace import InvalidScopeError, Match, Memory, Scope

from .scope import NO_OWNER

MODEL_CALL = "model call"
ASKER_KEY = "commonplace.asked"


@dataclass(slots=True, kw_only=True, eq=False)
class StrandsTurn:
    """One invocation of an agent, or a part of one that an interrupt has cut in two.

    Attributes:
        memory: the memory it uses.
        scope: its owner and session; None without an owner.
        plugin: the plugin that serves it.
        asker: who asked what it answers, as `asker_of` returns; not always who resumed it.
        asked: the new messages of the user.
        run_id: unique among all turns.
        matches: what was recalled for it; None before the recall.
    """

    memory: Memory
    scope: Scope | None
    plugin: object
    asker: dict[str, str | None] | None = None
    asked: list[Any] = field(default_factory=list)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    matches: list[Match] | None = None
    message_count: int = 0

    def next_id(self) -> str:
        """Make the id of the next message of the turn."""
        self.message_count += 1
        return f"{self.run_id}:{self.message_count}"


class TurnRegistry:
    """The turns that one plugin serves now."""

    def __init__(self) -> None:
        # The agent and the state are kept alive, so that their ids stay unique.
        self._running: dict[tuple[int, int], list[tuple[Any, Any, StrandsTurn]]] = {}
        self._conversations: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def conversation_id(self, agent: Any) -> str:
        """Return an id of an agent's conversation; the same for as long as the agent lives."""
        return self._conversations.setdefault(agent, uuid.uuid4().hex)

    def begin(self, agent: Any, state: Mapping[str, Any], turn: StrandsTurn) -> None:
        """Register a turn."""
        self._running.setdefault((id(agent), id(state)), []).append((agent, state, turn))

    def find(self, agent: Any, state: Mapping[str, Any]) -> StrandsTurn | None:
        """Find the turn of an agent with this very state; the newest if callers share one."""
        running = self._running.get((id(agent), id(state)))
        return running[-1][2] if running else None

    def end(self, agent: Any, state: Mapping[str, Any]) -> StrandsTurn | None:
        """Remove and return a turn; None for one that was never registered."""
        running = self._running.get((id(agent), id(state)))
        if not running:
            return None
        turn = running.pop()[2]
        if not running:
            del self._running[id(agent), id(state)]
        return turn


# -- calls in the course of a turn ---------------------------------------------------------------


@dataclass(slots=True, kw_only=True, eq=False)
class ActiveCall:
    """A model call or tool call of a turn, as code that runs inside it finds it.

    Attributes:
        key: `MODEL_CALL`, or the agent and the id of the tool use.
        shown_ids: ids of records that the model is shown in this call already.
        has_note: the model is shown a note of what was recalled for the turn.
        has_ended: a context that was copied from the call's outlives it.
    """

    turn: StrandsTurn
    key: str
    shown_ids: set[str] = field(default_factory=set)
    has_note: bool = False
    has_ended: bool = False


_active_calls: ContextVar[tuple[ActiveCall, ...]] = ContextVar(
    "commonplace_strands_active_calls", default=()
)


def enter_call(turn: StrandsTurn, key: str) -> None:
    """Begin a call in this context."""
    exit_call(key, turn.plugin)
    _active_calls.set((*_active_calls.get(), ActiveCall(turn=turn, key=key)))


def exit_call(key: str, plugin: object) -> None:
    """End a plugin's call in this context; nothing if there is none."""
    _end_calls(lambda call: call.turn.plugin is plugin and call.key == key)


def exit_turn(turn: StrandsTurn) -> None:
    """End every call of a turn in this context."""
    _end_calls(lambda call: call.turn is turn)


def active_call(memory: Memory, plugin: object = None) -> ActiveCall | None:
    """Find the innermost call of a turn with this memory, and this plugin if given."""
    for call in reversed(_active_calls.get()):
        if call.turn.memory is memory and plugin in (None, call.turn.plugin):
            return call
    return None


def active_model_call(memory: Memory) -> ActiveCall | None:
    """Find the model call that is about to begin, of a turn with this memory."""
    call = active_call(memory)
    return call if call is not None and call.key == MODEL_CALL else None


def active_scope(memory: Memory, plugin: object = None) -> Scope:
    """Return the scope of the turn around here, found as `active_call` does.

    Raises:
        InvalidScopeError: there is no turn, or it has no owner.
    """
    call = active_call(memory, plugin)
    if call is None or call.turn.scope is None:
        raise InvalidScopeError(field="user_id", value=None, reason=NO_OWNER)
    return call.turn.scope


def calling_turn() -> StrandsTurn | None:
    """Find the turn that calls a tool here, as around an agent that is used as a tool."""
    for call in reversed(_active_calls.get()):
        if call.key != MODEL_CALL and not call.has_ended:
            return call.turn
    return None


def _end_calls(is_meant: Callable[[ActiveCall], bool]) -> None:
    calls = _active_calls.get()
    left = tuple(one for one in calls if not is_meant(one))
    for call in calls:
        call.has_ended = call.has_ended or call not in left
    if len(left) < len(calls):
        _active_calls.set(left)


# -- who asked what is not answered yet ----------------------------------------------------------
# Stored in the agent's `state`, which a session carries into another process, so that another user
# who resumes the turn is recognised.


def asker_of(scope: Scope | None) -> dict[str, str | None]:
    """Describe the owner of a turn, as JSON; no owner has a description too."""
    return {
        "user_id": None if scope is None else scope.user_id,
        "agent_id": None if scope is None else scope.agent_id,
    }


def load_asker(agent: Any, plugin: str) -> Any:
    """Read who asked what an agent has not answered; None if nothing is open."""
    return (agent.state.get(ASKER_KEY) or {}).get(plugin)


def save_asker(agent: Any, plugin: str, asker: dict[str, str | None] | None) -> None:
    """Keep who asked, or that nothing is open any more."""
    saved = agent.state.get(ASKER_KEY) or {}
    askers = {name: one for name, one in saved.items() if name != plugin}
    if asker is not None:
        askers[plugin] = asker
    if askers:
        agent.state.set(ASKER_KEY, askers)
    elif saved:
        agent.state.delete(ASKER_KEY)
