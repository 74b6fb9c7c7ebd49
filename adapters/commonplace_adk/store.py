"""Memory service: what agents of ADK were told in earlier sessions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session

from commonplace import Memory, Policy, RecordNotFoundError, Scope
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    Conversation,
    MemoryCounters,
    MemorySource,
    OnEvent,
    await_within,
    hinting_init,
    in_session,
    render,
    search_scope,
    to_scope,
)

from .convert import messages_of, said_at, text_of, to_entry, to_fact

_DEFAULT = Policy()
_ADDED = "adk.added"  # in the state of a session of `Memory`: the last event that is written


@hinting_init
class CommonplaceMemoryService(BaseMemoryService):
    """A memory service of ADK on a commonplace memory, for any number of users and apps.

    ADK's `user_id` is the user, its `app_name` the agent. A memory that fails is logged once and
    fails no turn: a search finds nothing, and what was said is written later. `add_memory` and
    `delete_memory`, with which a program changes one memory, raise what `Memory` raises.

    Args:
        memory: an open memory, the path of its folder, or None for the environment's location,
            which is `./memory` by default.
        policy: what is found, how it is written and shown; not its `mode` and `tools`, as ADK's
            tools are the model's, and what is written is given here.
        on_event: is called with each recall and write.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
        InvalidRecordError: an argument cannot be used.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        policy: Policy = _DEFAULT,
        on_event: OnEvent | None = None,
    ) -> None:
        self._memory = AgentMemory(
            memory, policy, log="commonplace_adk", keeps_notes=False,
            first_recall_timeout=WRITE_PATIENCE, on_event=on_event,
        )  # fmt: skip
        self._memory.lazy.prepare()

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember what was said since the session was last added, here or elsewhere.

        What `delete_memory` or `Memory.forget` removed is not brought back.

        Raises:
            InvalidScopeError: no scope can hold the user's id or the app's name; as everywhere.
        """
        scope = _scope(session.app_name, session.user_id, session.id)
        await _write(self._memory, session.events, scope, in_parts=True)

    async def add_events_to_memory(
        self, *, app_name: str, user_id: str, events: Sequence[Event],
        session_id: str | None = None, custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Remember what was said in these events, with metadata beside the policy's.

        Raises:
            InvalidRecordError: the metadata are not JSON.
        """
        policy = self._memory.policy
        metadata = {**policy.metadata, **(custom_metadata or {})}
        memory = self._memory.with_policy(replace(policy, metadata=metadata))
        await _write(memory, events, _scope(app_name, user_id, session_id))

    async def add_memory(
        self, *, app_name: str, user_id: str, memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Remember facts as they are, in no session; raises as `Memory.add`."""
        policy = self._memory.policy
        metadata = {**policy.metadata, **(custom_metadata or {})}
        facts = [to_fact(entry, metadata) for entry in memories]
        wait = WRITE_PATIENCE if policy.await_write else False
        memory, scope = await self._memory.lazy.aget(), _scope(app_name, user_id)
        await memory.aadd(facts, scope, infer=False, identity=tuple(metadata), wait=wait)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Find what helps to answer, best first after the user's profile and instructions."""
        found = await self._memory.arecall(_scope(app_name, user_id), query)
        return SearchMemoryResponse(memories=[to_entry(match) for match in found])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory by the id of its entry, if there is one; raises as `Memory.delete`."""
        scope = search_scope(_scope(app_name, user_id), self._memory.policy)
        if memory_id:
            with suppress(RecordNotFoundError):
                await (await self._memory.lazy.aget()).adelete(memory_id, scope)

    async def note(self, session: Session, query: str, held: Sequence[str]) -> str:
        """Write the note for a turn; empty if there is nothing to show, or the memory fails.

        Args:
            query: what the user said.
            held: texts that the model is shown already.
        """
        scope = _scope(session.app_name, session.user_id, session.id)
        found = await self._memory.arecall(scope, query, Conversation(texts=held))
        return render(found, self._memory.policy)

    def counters(self) -> MemoryCounters:
        """Read how often each event happened."""
        return self._memory.counters()


def _scope(app_name: str, user_id: str, session_id: str | None = None) -> Scope:
    return in_session(to_scope(user_id, app_name), session_id)


async def _write(
    memory: AgentMemory, events: Sequence[Event], scope: Scope, *, in_parts: bool = False
) -> None:
    """Write what was said, and the summary where ADK compacted it."""
    with suppress(Exception):  # the write tells of a memory that fails
        opened = await await_within(WRITE_PATIENCE, "write", memory.lazy.aget())
        events = await opened.admin.run(_new, opened, events, scope, in_parts)
    is_accepted = bool(events) and await memory.awrite(messages_of(events), scope)
    for made in [one.actions.compaction for one in events if one.actions.compaction]:
        later = messages_of(one for one in events if one.timestamp > made.end_timestamp)
        held = Conversation(texts=[one.text for one in later])
        await memory.asummarize(text_of(made.compacted_content), scope, held)
    if is_accepted and in_parts:
        with suppress(Exception):  # then they are written again, which changes nothing
            session = (await memory.lazy.aget()).session(scope)
            await session.aput_state({_ADDED: events[-1].id})


def _new(memory: Memory, events: Sequence[Event], scope: Scope, in_parts: bool) -> list[Event]:
    """Leave out what is written, and what was said before the user was last forgotten."""
    ids = [event.id for event in events]
    last = memory.session(scope).state().get(_ADDED) if in_parts else None
    new = events[ids.index(last) + 1 if last in ids else 0 :]
    return [*dropwhile(lambda one: memory.admin.was_forgotten(scope, since=said_at(one)), new)]
