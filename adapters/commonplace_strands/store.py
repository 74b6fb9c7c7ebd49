"""Memory store: a commonplace memory, or a part of one, for Strands' `MemoryManager`."""

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NoReturn, cast

from strands import Agent, ToolContext
from strands.memory import (
    AddMessagesContext,
    ExtractionConfig,
    MemoryEntry,
    MemoryManager,
    SearchOptions,
)
from strands.types.content import Message as StrandsMessage
from strands.types.tools import AgentTool

from commonplace import (
    Fact,
    InvalidRecordError,
    InvalidScopeError,
    Match,
    MemoryTimeoutError,
    Message,
    Policy,
    Scope,
    WriteResult,
)
from commonplace.agents import (
    DEFAULT_TOOLS,
    SCOPE_FIELDS,
    UNSET,
    WRITE_PATIENCE,
    AgentMemory,
    Conversation,
    MemoryCounters,
    MemorySource,
    OnEvent,
    StackRule,
    UnknownCallerError,
    WarnOnce,
    await_within,
    check_flag,
    check_list,
    check_mapping,
    check_name,
    check_prefix,
    choose,
    fold_policy,
    hinting_init,
    read_stack,
    search_call,
    search_scope,
    start_call,
    to_messages,
    to_query,
)

from .convert import blocks_of, changes_of, conversation_texts, text_of, to_entries
from .extraction import OwnedMetadata, extraction_config
from .plugin import TurnFollower
from .tools import ExtraTool, MemoryTools, ShownSinceQuestion
from .turn import ActiveCall, TurnRecords, active_call, active_model_call, own_turn
from .turn_owner import Id, is_agents, owner_scope, read_tag

DESCRIPTION = "What is known from earlier conversations with this user."
MAX_RESULTS = 100
NO_TURN = (
    "is unknown: pass invocation_state={'user_id': ...} to the agent; if that does not reach its "
    "memory manager, add MemoryPlugin(memory) to the agent, or user_id= to the store"
)
_OVER_FETCHED = 6  # times as many as a note wants, as the best often say nothing new
_LEAST_FETCHED = 30
_GRACE = 2.0  # seconds that a cancelled caller waits
_SETUP = StackRule(
    checked_with="strands-agents 1.52 to 1.62", package="strands.", variables=("self", "agent")
)


@hinting_init
class CommonplaceMemoryStore:
    """A store of Strands' `MemoryManager` on a commonplace memory.

    Several stores may share one memory, distinguished by their owner or by `where` and `kinds` of
    their policy.

    Args:
        memory: see `MemoryPlugin`.
        user_id, agent_id: whose memory, whoever asks. When both are missing, that of the user of
            the agent's turn, as its caller names it in `invocation_state`, or a `MemoryPlugin` of
            the same memory on that agent; without a user nothing is found and nothing is kept.
        policy: what is found, and how it is written: `add` writes the first of its `kinds`, and
            notes are the manager's. Its tools are added to the agent, named after the store, `_`
            and their name: all in the mode `agent_control`, in `both` without `search_memory` and
            `add_memory`, which are the manager's too.
        on_event: is called with each search, write and tool call.
        session_id: the session of all messages, for a store with an owner.
        name: as models read it.
        description: as models read it.
        max_search_results: `top_k` of the policy, under the name that the manager reads.
        writable: whether the manager may write.
        extraction: as the manager takes it. With an extractor its texts are added; without one
            the messages are, and the memory extracts with its own chat model, if it has one.
        extra_tools: tools beside the policy's, unless its mode is `static_control`.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        user_id: Id | None = None,
        agent_id: Id | None = None,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
        session_id: str | int | None = None,
        name: str = "commonplace",
        description: str | None = DESCRIPTION,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        extra_tools: Sequence[ExtraTool] = (),
    ) -> None:
        scope = owner_scope(user_id, agent_id, session_id)
        check_name("name", name)
        if description is not None:
            check_name("description", description)
        check_flag("writable", writable)
        given = {"max_search_results": UNSET if max_search_results is None else max_search_results}
        folded = fold_policy(policy, given, {"max_search_results": "top_k"})
        if folded.mode == "both":
            lacking = (tool for tool in folded.tools if tool not in DEFAULT_TOOLS)
            folded = replace(folded, tools=tuple(lacking))
        self._policy: Policy = folded
        self._agent_memory = AgentMemory(
            memory, folded, log="commonplace_strands", on_event=on_event
        )
        self._memory = self._agent_memory.lazy
        self.name = name
        self.description = description
        self.max_search_results = max_search_results if policy is None else policy.top_k
        self.writable = writable
        self.extraction: ExtractionConfig | bool | None = extraction_config(
            extraction, self._memory, scope
        )
        self._fixed_scope = scope
        self._is_part = scope is not None or bool(folded.kinds or folded.where)
        self._run_id = uuid.uuid4().hex
        self._shown: ShownSinceQuestion = ShownSinceQuestion(self._memory)
        made = MemoryTools(self._agent_memory, self._tool_turn)
        self._tools = made.select(extra_tools, f"{name}_")
        if self._tools:
            check_prefix("name", f"{name}_")

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Find what answers a query, best first; an empty list if nothing does.

        Each entry's metadata has the record's `id`, `kind` and times, as JSON, and as `score` its
        score, which is never below `threshold`. For a model
        call that has the plugin's note, a store of all that the turn's user has finds nothing. For
        any other it finds what helps to answer, and that the conversation and the call do not hold.

        Raises:
            InvalidScopeError: the store follows the turn's user, and there is none.
            InvalidRecordError: the query is no text, or the options are none.
            MemoryTimeoutError: it took longer than 2 seconds.
        """
        limit = _limit(options)
        scope = self._scope().owner
        model_call = active_model_call(self._memory)
        note = "" if model_call is None else model_call.note
        # The manager reads the note as a part of what the user said.
        text = to_query(query)
        text = to_query(text.replace(note, "")) if note else text
        if not text or (note and not self._is_part):
            return []
        top_k = self._policy.top_k if limit is None else max(1, min(limit, MAX_RESULTS))
        with self._agent_memory.reporting("search", scope, late="timed_out") as outcome:
            matches = await self._search(text, scope, top_k, model_call)
            outcome.count = len(matches)
        if (turn := own_turn(self._memory, scope)) is not None:
            turn.shown.add(matches)
        return to_entries(matches, self.name)

    async def _search(
        self, text: str, scope: Scope, top_k: int, model_call: ActiveCall | None
    ) -> Sequence[Match]:
        """Search; for a model call that is about to begin, choose what it is not shown already."""
        where = search_scope(scope, self._policy)
        most = top_k if model_call is None else max(_LEAST_FETCHED, top_k * _OVER_FETCHED)
        await self._memory.await_open(WRITE_PATIENCE)
        step = search_call(where, text, self._policy, most)
        matches: Sequence[Match] = await self._agent_memory.acall(step, self._policy.recall_timeout)
        if model_call is not None:
            held = Conversation(
                texts=conversation_texts(model_call.agent.messages), ids=model_call.shown_ids
            )
            matches = choose(matches, text, top_k=top_k, held=held)
            model_call.shown_ids.update(match.record.id for match in matches)
        return matches

    async def add(
        self, content: str, metadata: dict[str, Any] | None = None
    ) -> list[dict[str, str | None]]:
        """Remember a text as it is, in no session, and return when it can be found.

        Metadata that would name a scope is left out.

        Returns:
            Its id, the text and what happened: `ADD`, or `NONE` if it was known with the same
            metadata.

        Raises:
            InvalidScopeError: as `search`.
            InvalidRecordError: the text or its metadata cannot be stored.
            MemoryTimeoutError: it takes longer than 10 seconds; it goes on.
        """
        if metadata is not None:
            check_mapping("metadata", metadata, "{'source': 'chat'}")
        owned = metadata if isinstance(metadata, OwnedMetadata) else None
        scope = self._scope() if owned is None else owned.scope
        given = {key: value for key, value in (metadata or {}).items() if key not in SCOPE_FIELDS}
        kept = {**self._policy.metadata, **given}
        wait = WRITE_PATIENCE if self._policy.await_write else False
        try:
            with self._agent_memory.reporting("write", scope, 1, late="late"):
                fact = Fact(text=content, kind=(*self._policy.kinds, "fact")[0], metadata=kept)
                memory = await self._memory.aget()
                written = await memory.aadd(
                    fact, scope.owner, infer=False, identity=tuple(kept), origin="assistant",
                    wait=wait,
                )  # fmt: skip
                if written.pending and wait:
                    raise MemoryTimeoutError(call="add", seconds=WRITE_PATIENCE)
        except InvalidRecordError as error:
            if owned is None:
                raise
            # The framework would extract the whole batch again and again because of one text.
            self._agent_memory.warn("extraction", error)
            return []
        return changes_of(written)

    async def add_messages(
        self, messages: list[StrandsMessage], context: AddMessagesContext | None = None
    ) -> int:
        """Accept messages, each for its own owner, and return at once.

        Accepted messages outlive this loop and this process. The same message twice, as when the
        framework retries, is one record.

        Returns:
            How many messages were accepted; those without an owner are not.

        Raises:
            InvalidRecordError: they are no messages of Strands; none was accepted. One that a
                manager gives is left out instead, and logged.
            BackpressureError, StoreUnavailableError: not all were; retrying does no harm.
        """
        check_list("messages", messages, "messages")
        numbers = context.sequence_numbers if context is not None else None
        if numbers is None:
            for message in messages:
                _check_message(message)
            converted = [self._convert(message, uuid.uuid4().hex) for message in messages]
        else:
            converted = [
                self._convert(message, f"{self._run_id}:{number}")
                for message, number in zip(messages, numbers, strict=True)
                if self._is_readable(message)
            ]
        owned = [parts for parts in converted if parts is not None]
        for scope, run in groupby(owned, lambda parts: parts[0]):
            parts = [part for _, message_parts in run for part in message_parts]
            with self._agent_memory.reporting("write", scope, len(parts), late="failed"):
                await _accept(partial(self._agent_memory.add, parts, scope, False))
        await (await self._memory.aget()).aflush(0.0)  # an asynchronous model needs this loop
        return len(owned)

    async def initialize(self) -> None:
        """Follow the turns of the agent that begins, and open the memory, or raise as that does.

        What may be over at the first call, such as a lock, is not raised.
        """
        self._memory.prepare()
        agent = _beginning_agent(self._agent_memory.warn) if self._fixed_scope is None else None
        if agent is not None:
            TurnFollower(self._memory).init_agent(agent)
        with suppress(Exception):
            await await_within(WRITE_PATIENCE, "opening the memory", self._memory.aget())
        self._agent_memory.raise_misconfiguration()

    def get_tools(self) -> list[AgentTool]:
        """List the tools that the store adds to the agent; often none."""
        return list(self._tools)

    def counters(self) -> MemoryCounters:
        """Read how often each event happened."""
        return self._agent_memory.counters()

    # -- wiring --------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        call = active_call(self._memory)
        scope = self._fixed_scope or (None if call is None else call.turn.scope)
        if scope is None:
            error = InvalidScopeError(field="user_id", value=None, reason=NO_TURN)
            self._agent_memory.warn("scope", error)
            raise error
        return scope

    def _tool_turn(self, context: ToolContext) -> tuple[Scope, TurnRecords]:
        """Return the scope of a tool call, and what its model was shown in this turn."""
        scope = self._scope()
        return scope, self._shown.of(context, scope)

    def _is_readable(self, message: StrandsMessage) -> bool:
        try:
            _check_message(message)
        except InvalidRecordError as error:
            # The framework would give the whole batch again and again because of one message.
            self._agent_memory.warn("extraction", error)
            return False
        return True

    def _convert(self, message: StrandsMessage, key: str) -> tuple[Scope, list[Message]] | None:
        """Return a message's owner and parts; None if it has no owner or no text."""
        text = "" if is_agents(message) else text_of(message)
        tag = read_tag(message, self._memory)
        scope = self._fixed_scope or (tag.scope if tag is not None else None)
        if scope is None and text:
            error = InvalidScopeError(field="user_id", value=None, reason=NO_TURN)
            self._agent_memory.warn("scope", error)
        if tag is not None:
            key = tag.message_id
        else:
            # Numbers begin anew with each agent, so that alone they would name several messages.
            key += ":" + hashlib.sha256(f"{message['role']} {text}".encode()).hexdigest()[:16]
        parts = to_messages(text, message["role"], "", key)
        return (scope, parts) if scope is not None and parts else None


def _limit(options: object) -> int | None:
    if options is not None:
        check_mapping("options", options, "{'max_search_results': 5}")
    limit = cast("SearchOptions", options or {}).get("max_search_results")
    if limit is not None and type(limit) is not int:
        raise InvalidRecordError(
            field="max_search_results", value=limit, reason="must be a whole number"
        )
    return limit


def _check_message(given: object) -> None:
    message: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not isinstance(content, str | list):
        _refuse("message", given, "must be a message of Strands")
    for block in blocks_of(message):
        if not isinstance(block, Mapping):
            _refuse("content", block, "must be a content block of Strands")
        if not isinstance(block.get("text", ""), str):
            _refuse("text", block["text"], "must be a string")


def _refuse(field: str, value: object, reason: str) -> NoReturn:
    hint = "Give {'role': 'user', 'content': [{'text': '...'}]}."
    raise InvalidRecordError(field=field, value=value, reason=reason, hint=hint)


def _beginning_agent(warn: WarnOnce) -> Agent | None:
    """Find the agent whose memory manager initializes its stores here; None for a program.

    The manager has it and gives its stores nothing of it, so the call stack is read. Where it is
    not found, a store without a scope of its own keeps nothing.
    """
    try:
        frames = [frame.variables for frame in read_stack(_SETUP)]
        managed = [frame for frame in frames if isinstance(frame.get("self"), MemoryManager)]
        for variables in managed:
            if isinstance(agent := variables.get("agent"), Agent):
                return agent
        if managed:
            missing = f"no variable `agent` stands in {MemoryManager.__qualname__}"
            raise UnknownCallerError(rule=_SETUP, missing=missing)
    except UnknownCallerError as error:
        warn("caller", error)
    return None


async def _accept(write: Callable[[], WriteResult]) -> WriteResult:
    """Accept a write on a thread; return the result also if the caller is cancelled meanwhile.

    The framework saves in tasks of a loop that may end before them, and after one that was
    cancelled it never saves again.

    Raises:
        CancelledError: the caller is cancelled, and it takes 2 more seconds; it goes on.
    """
    done = asyncio.wrap_future(start_call("write", write))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait({done}, timeout=_GRACE)
        if not done.done():
            raise
        return done.result()
