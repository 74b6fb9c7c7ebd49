"""Memory store: a commonplace memory, or a part of one, for Strands' `MemoryManager`."""

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from strands.memory import AddMessagesContext, ExtractionConfig, MemoryEntry, SearchOptions
from strands.types.content import Message as StrandsMessage
from strands.types.tools import AgentTool

from commonplace import (
    Fact,
    InvalidRecordError,
    InvalidScopeError,
    Kind,
    Memory,
    MemoryTimeoutError,
    Message,
    Policy,
    Scope,
    WriteResult,
)
from commonplace.agents import (
    SCOPE_FIELDS,
    WRITE_PATIENCE,
    AgentMemory,
    await_until_warm,
    await_within,
    check_kinds,
    check_scope,
    start_call,
    start_warming,
    to_messages,
    to_query,
)
from commonplace.filters import parse_filter

from .convert import changes_of, text_of, to_entry
from .extraction import OwnedMetadata, extraction_config
from .scope import NO_OWNER, read_tag
from .tools import MemoryTools, ToolName
from .turn import active_model_call, active_scope

DESCRIPTION = "What is known from earlier conversations with this user."
MAX_RESULTS = 100
_GRACE = 2.0  # seconds that a cancelled caller waits


class CommonplaceMemoryStore:
    """A store of Strands' `MemoryManager` on a commonplace memory.

    Several stores may share one memory, distinguished by `scope`, `kinds` or `where`.

    Args:
        memory: an open memory; the store does not close it.
        scope: whose memory. When missing, that of the user of the agent's turn, which a
            `MemoryPlugin` of the same memory on that agent provides; without one nothing is found
            and nothing is kept.
        name: as models read it.
        description: as models read it.
        kinds: finds only these, and adds the first of them; all and `fact` when empty.
        where: a filter (`commonplace.filters`), AND-ed with every search.
        threshold: least score of what is found, 0..1.
        max_search_results: when the caller gives none; the manager's default when missing.
        writable: whether the manager may write.
        extraction: as the manager takes it. With an extractor its texts are added; without one
            the messages are, and the memory extracts with its own chat model, if it has one.
        tools: tools that the store adds to the agent, named after the store, `_` and their name.

    Raises:
        InvalidScopeError, InvalidRecordError, InvalidFilterError: an argument cannot be used.
        TypeError: `memory` is not a `Memory`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        scope: Scope | None = None,
        name: str = "commonplace",
        description: str | None = DESCRIPTION,
        kinds: Sequence[Kind] = (),
        where: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        tools: Sequence[ToolName] = (),
    ) -> None:
        if scope is not None:
            check_scope(scope)
        check_kinds(kinds)
        parse_filter(where)
        top_k = Policy().top_k if max_search_results is None else max_search_results
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction: ExtractionConfig | bool | None = extraction_config(
            extraction, memory, scope
        )
        self._memory = memory
        self._fixed_scope = scope
        self._kinds = tuple(kinds)
        self._where = where
        self._is_part = scope is not None or bool(kinds or where)
        self._policy = Policy(threshold=threshold, top_k=top_k)
        self._agent_memory = AgentMemory(memory, self._policy, log="commonplace_strands")
        self._run_id = uuid.uuid4().hex
        made = MemoryTools(memory, self._agent_memory, self._scope)
        self._tools = made.select(tools, f"{name}_")

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Find what answers a query, best first; an empty list if nothing does.

        Each entry's metadata has the record's `id`, `score`, `kind` and times, as JSON. For a model
        call that has the plugin's note, a store of all that the turn's user has finds nothing, and
        any other leaves out what the call is shown already.

        Raises:
            InvalidScopeError: the store follows the turn's user, and there is none.
            MemoryTimeoutError: it took longer than 2 seconds.
        """
        scope = self._scope().owner
        text = to_query(query)
        call = active_model_call(self._memory)
        is_shown = call is not None and call.has_note and not self._is_part
        if is_shown or not text:
            return []
        await await_until_warm(self._memory, WRITE_PATIENCE)
        limit = (options or {}).get("max_search_results")
        searching = self._memory.asearch(
            text,
            scope,
            top_k=self._policy.top_k if limit is None else max(1, min(limit, MAX_RESULTS)),
            where=self._where,
            kinds=self._kinds,
            threshold=self._policy.threshold,
        )
        matches = await await_within(self._policy.recall_timeout, "search", searching)
        if call is not None:
            matches = [one for one in matches if one.record.id not in call.shown_ids]
            call.shown_ids.update(one.record.id for one in matches)
        return [to_entry(one, self.name) for one in matches]

    async def add(
        self, content: str, metadata: dict[str, Any] | None = None
    ) -> list[dict[str, str | None]]:
        """Remember a text as it is, in no session, and return when it can be found.

        Metadata that would name a scope is left out.

        Returns:
            Its id, the text and what happened: `ADD`, or `NONE` if it was known.

        Raises:
            InvalidScopeError: as `search`.
            InvalidRecordError: the text or its metadata cannot be stored.
            MemoryTimeoutError: it takes longer than 10 seconds; it goes on.
        """
        is_extracted = isinstance(metadata, OwnedMetadata)
        scope = metadata.scope if isinstance(metadata, OwnedMetadata) else self._scope()
        kept = {name: one for name, one in (metadata or {}).items() if name not in SCOPE_FIELDS}
        try:
            fact = Fact(text=content, kind=(*self._kinds, "fact")[0], metadata=kept)
            written = await self._memory.aadd(
                fact, scope.owner, infer=False, origin="assistant", wait=WRITE_PATIENCE
            )
            if written.pending:
                raise MemoryTimeoutError(call="add", seconds=WRITE_PATIENCE)
        except InvalidRecordError as error:
            if not is_extracted:
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
            BackpressureError, StoreUnavailableError: not all were; retrying does no harm.
        """
        numbers = context.sequence_numbers if context is not None else None
        if numbers is None:
            converted = [self._convert(one, uuid.uuid4().hex) for one in messages]
        else:
            pairs = zip(messages, numbers, strict=True)
            converted = [self._convert(one, f"{self._run_id}:{number}") for one, number in pairs]
        owned = [one for one in converted if one is not None]
        for scope, run in groupby(owned, lambda one: one[0]):
            parts = [one for _, parts in run for one in parts]
            await _accept(partial(self._memory.add, parts, scope, wait=False))
        await self._memory.aflush(0.0)  # an asynchronous model needs this loop
        return len(owned)

    async def initialize(self) -> None:
        """Have the embedder loaded meanwhile; the memory is open, and belongs to no event loop."""
        start_warming(self._memory)

    def get_tools(self) -> list[AgentTool]:
        """List the tools that the store adds to the agent; often none."""
        return list(self._tools)

    # -- wiring --------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        return self._fixed_scope or active_scope(self._memory)

    def _convert(self, message: StrandsMessage, key: str) -> tuple[Scope, list[Message]] | None:
        """Return a message's owner and parts; None if it has no owner or no text."""
        text = text_of(message)
        tag = read_tag(message, self._memory)
        scope = self._fixed_scope or (tag.scope if tag is not None else None)
        if scope is None and text:
            error = InvalidScopeError(field="user_id", value=None, reason=NO_OWNER)
            self._agent_memory.warn("write", error)
        if tag is not None:
            key = tag.message_id
        else:
            # Numbers begin anew with each agent, so that alone they would name several messages.
            key += ":" + hashlib.sha256(f"{message['role']} {text}".encode()).hexdigest()[:16]
        parts = to_messages(text, message["role"], "", key)
        return (scope, parts) if scope is not None and parts else None


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
