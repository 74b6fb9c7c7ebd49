"""Running turns of agents, and the calls in their course.

Hooks get the agent and the `invocation_state`, which together identify a turn. A memory store or a
tool gets neither, so each model call and tool call also stands in a context variable while it runs.
"""

import hashlib
import sys
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from strands.agent import AgentResult
from strands.types.content import Message as StrandsMessage

from commonplace import Match, Message, Scope
from commonplace.agents import LazyMemory, ShownRecords, to_messages

from .convert import answer_of, text_of, tool_results

if TYPE_CHECKING:
    from .multiagent_turns import MultiAgentRun

MODEL_CALL = "model call"
ASKER_KEY = "commonplace.asked"
MAX_SHOWN = 100


class TurnRecords(ShownRecords):
    """The records that a turn's model was shown, also before an interrupt.

    Attributes:
        restored_ids: of those that were shown before the interrupt, and are not read again yet.
    """

    def __init__(self, restored_ids: Collection[str] = ()) -> None:
        super().__init__()
        self.restored_ids: list[str] = list(restored_ids)

    @property
    def ids(self) -> list[str]:
        """The ids of the records, those of before the interrupt first."""
        return [*self.restored_ids, *super().ids]

    def take_restored(self) -> list[str]:
        """Return the ids that are to be read, once."""
        ids, self.restored_ids = self.restored_ids, []
        return ids


@dataclass(slots=True, kw_only=True, eq=False)
class StrandsTurn:
    """One invocation of an agent, or a part of one that an interrupt has cut in two.

    Attributes:
        memory: the memory it uses.
        scope: its owner and session; None without an owner.
        plugin: the plugin that serves it.
        asker: who asked what it answers, as `asker_of` returns; not always who resumed it.
        asked: the new messages of the user; none for an agent that another one calls.
        query: what to recall for.
        is_inner: an agent or a graph calls this one, and remembers the user's words itself.
        run: that of the graph or swarm.
        asked_id: with a number, the ids of the messages in `asked`; a turn that is tried again has
            those of the first try.
        asked_digest: tells a turn that is tried again.
        run_id: with a number, the ids of the other messages; unique among all turns.
        matches: what was recalled for it; None before the recall.
        shown: the records that its model was shown.
        is_model_called: the model call that is running reached the model.
        spoken: what the model said last.
    """

    memory: LazyMemory
    scope: Scope | None
    plugin: object
    asker: dict[str, str | None] | None = None
    asked: list[Any] = field(default_factory=list)
    query: str = ""
    is_inner: bool = False
    run: "MultiAgentRun | None" = None
    asked_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    asked_digest: str = ""
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    matches: list[Match] | None = None
    shown: TurnRecords = field(default_factory=TurnRecords)
    is_model_called: bool = False
    spoken: StrandsMessage | None = None
    message_count: int = 0

    def next_id(self) -> str:
        """Make the id of the next message that is not in `asked`."""
        self.message_count += 1
        return f"{self.run_id}:{self.message_count}"

    def message_ids(self) -> list[str]:
        """Make the ids of the messages in `asked`."""
        return [f"{self.asked_id}:{number}" for number in range(1, len(self.asked) + 1)]

    def messages(self, answer: str) -> list[Message]:
        """Make the messages to remember; an empty answer leaves the user's own words."""
        messages: list[Message] = []
        for message, message_id in zip(self.asked, self.message_ids(), strict=True):
            messages += to_messages(text_of(message), "user", "", message_id)
        return messages + (to_messages(answer, "assistant", "", self.next_id()) if answer else [])

    def answer(self, result: AgentResult | None, history: Sequence[StrandsMessage]) -> str:
        """Return what was answered; empty if the turn was cut off, or no model wrote it.

        Args:
            history: of the agent. An answer of another agent, to which this one left the turn, is
                a result of a tool in it.
        """
        if result is None:
            return ""
        answer = answer_of(result)
        spoken = "" if self.spoken is None else text_of(self.spoken)
        if not answer or answer == spoken or result.structured_output is not None:
            return answer
        return answer if answer in tool_results(history[-2:]) else ""


def is_torn_down() -> bool:
    """Return whether the caller is being cancelled or closed, and must not be held up."""
    error = sys.exception()
    return error is not None and not isinstance(error, Exception)


_conversations: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def conversation_id(agent: Any) -> str:
    """Return the id of the conversation of an agent, graph or swarm.

    It is that of the session manager; without one, the same for as long as the agent lives.
    """
    for name in ("_session_manager", "session_manager"):
        session_id = getattr(getattr(agent, name, None), "session_id", None)
        if type(session_id) is str and session_id:
            return session_id
    return _conversations.setdefault(agent, uuid.uuid4().hex)


class TurnRegistry:
    """The turns that one plugin serves now."""

    def __init__(self) -> None:
        # The agent and the state are kept alive, so that their ids stay unique.
        self._running: dict[tuple[int, int], list[tuple[Any, Any, StrandsTurn]]] = {}

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
        agent: the agent that calls.
        key: `MODEL_CALL`, or the agent and the id of the tool use.
        shown_ids: ids of records that the model is shown in this call already.
        note: what the model is shown of what was recalled for the turn; often empty.
        has_ended: a context that was copied from the call's outlives it.
    """

    turn: StrandsTurn
    agent: Any
    key: str
    shown_ids: set[str] = field(default_factory=set)
    note: str = ""
    has_ended: bool = False


_active_calls: ContextVar[tuple[ActiveCall, ...]] = ContextVar(
    "commonplace_strands_active_calls", default=()
)


def enter_call(turn: StrandsTurn, agent: Any, key: str) -> None:
    """Begin a call in this context."""
    exit_call(key, turn.plugin)
    _active_calls.set((*_active_calls.get(), ActiveCall(turn=turn, agent=agent, key=key)))


def exit_call(key: str, plugin: object) -> None:
    """End a plugin's call in this context; nothing if there is none."""
    _end_calls(lambda call: call.turn.plugin is plugin and call.key == key)


def exit_turn(turn: StrandsTurn) -> None:
    """End every call of a turn in this context."""
    _end_calls(lambda call: call.turn is turn)


def active_call(memory: LazyMemory, plugin: object = None) -> ActiveCall | None:
    """Find the innermost call of a turn with this memory, and this plugin if given."""
    for call in reversed(_active_calls.get()):
        if call.turn.memory is memory and plugin in (None, call.turn.plugin):
            return call
    return None


def active_model_call(memory: LazyMemory) -> ActiveCall | None:
    """Find the model call that is about to begin, of a turn with this memory."""
    call = active_call(memory)
    return call if call is not None and call.key == MODEL_CALL else None


def own_turn(memory: LazyMemory, scope: Scope) -> StrandsTurn | None:
    """Find the turn around here, found as `active_call` does, if it is of this owner."""
    call = active_call(memory)
    turn_scope = None if call is None else call.turn.scope
    is_own = turn_scope is not None and turn_scope.owner == scope.owner
    return call.turn if call is not None and is_own else None


def calling_turn() -> StrandsTurn | None:
    """Find the turn that calls a tool here, as around an agent that is used as a tool."""
    for call in reversed(_active_calls.get()):
        if call.key != MODEL_CALL and not call.has_ended:
            return call.turn
    return None


def _end_calls(is_meant: Callable[[ActiveCall], bool]) -> None:
    calls = _active_calls.get()
    left = tuple(call for call in calls if not is_meant(call))
    for call in calls:
        call.has_ended = call.has_ended or call not in left
    if len(left) < len(calls):
        _active_calls.set(left)


# -- turns that are not answered yet -------------------------------------------------------------
# Stored in the agent's `state`, which a session carries into another process: another user who
# resumes the turn is recognised, and so is a turn that is tried again.


def asker_of(scope: Scope | None) -> dict[str, str | None]:
    """Describe the owner of a turn, as JSON; no owner has a description too."""
    return {
        "user_id": None if scope is None else scope.user_id,
        "agent_id": None if scope is None else scope.agent_id,
    }


def load_open_turn(agent: Any, plugin: str) -> Mapping[str, Any] | None:
    """Read what an agent has not answered, as `save_open_turn` kept it; None if nothing is open."""
    found = (agent.state.get(ASKER_KEY) or {}).get(plugin)
    return found if isinstance(found, Mapping) else None


def save_open_turn(agent: Any, plugin: str, turn: StrandsTurn | None) -> None:
    """Keep a turn that is open, or that none is any more."""
    saved = agent.state.get(ASKER_KEY) or {}
    turns = {name: open_turn for name, open_turn in saved.items() if name != plugin}
    if turn is not None and turn.asker is not None:
        turns[plugin] = {
            **turn.asker,
            "asked_id": turn.asked_id,
            "asked": turn.asked_digest,
            "shown": turn.shown.ids[-MAX_SHOWN:],
        }
    if turns:
        agent.state.set(ASKER_KEY, turns)
    elif saved:
        agent.state.delete(ASKER_KEY)


def digest_of(messages: Sequence[StrandsMessage]) -> str:
    """Return a hash of what messages say."""
    texts = "\x00".join(map(text_of, messages))
    return hashlib.sha256(texts.encode()).hexdigest()[:32]
