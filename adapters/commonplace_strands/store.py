"""`CommonplaceMemoryStore`: a memory, or a part of one, as a store of Strands' `MemoryManager`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from strands.memory import AddMessagesContext, ExtractionConfig, MemoryEntry, SearchOptions
from strands.types.content import Message as StrandsMessage
from strands.types.tools import AgentTool

from commonplace import (
    Fact,
    InvalidRecordError,
    Kind,
    LoopRequiredError,
    Memory,
    Scope,
    WriteResult,
)
from commonplace.agents import to_query as question
from commonplace.agents.handlers import within
from commonplace.agents.policy import WRITE_PATIENCE, Policy
from commonplace.agents.session import WarnOnce
from commonplace.filters import parse_filter
from commonplace.model import check_kinds, check_scope
from commonplace.validation import SCOPE_FIELDS

from .access import Access
from .convert import changes_of, to_entry
from .extraction import Owned, settings
from .handing import hand_over
from .ingest import Ingest
from .tools import ToolName, memory_tools
from .turns import model_call, owner_here
from .warm import ready, warm

DESCRIPTION = "What earlier conversations with this user have told."
MOST = 100
NO_MEMORY = "memory={!r} is no commonplace Memory. Pass Memory.open(...)."


class CommonplaceMemoryStore:
    """A store of Strands' `MemoryManager` that keeps and finds in a commonplace memory.

    Several stores may stand on one memory, told apart by `scope`, `kinds` or `where`.

    Args:
        memory: an open memory; the store does not close it.
        scope: whose memory. When missing, that of the user whom the agent's turn is for, as a
            `MemoryPlugin` of the same memory on that agent tells it; without one nothing is found
            and nothing is kept.
        name, description: as models are told.
        kinds: finds only these, and adds the first of them; all and `fact` when empty.
        where: a filter (`commonplace.filters`), AND-ed with every search.
        threshold: least score of what is found, 0..1.
        max_search_results: when the caller does not say; the manager's default when missing.
        writable: whether the manager may write.
        extraction: as the manager takes it. With an extractor its texts are added; without one
            the messages are, and the memory extracts with its own chat model, if it has one.
        tools: tools that the store brings along, their names behind the store's and `_`.

    Raises:
        InvalidScopeError, InvalidRecordError, InvalidFilterError: an argument cannot be used.
        TypeError: the memory is none.
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
        if not isinstance(memory, Memory):
            raise TypeError(NO_MEMORY.format(memory))
        if scope is not None:
            check_scope(scope)
        check_kinds(kinds)
        parse_filter(where)
        most = Policy().top_k if max_search_results is None else max_search_results
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = settings(extraction, memory, scope)
        self._memory = memory
        self._fixed = scope
        self._kinds = tuple(kinds)
        self._is_part = scope is not None or bool(kinds or where)
        self._policy = Policy(threshold=threshold, top_k=most)
        self._asked: dict[str, Any] = {"where": where, "kinds": self._kinds, "threshold": threshold}
        self._warn = WarnOnce("commonplace_strands")
        self._ingest = Ingest(memory, scope, self._warn)
        access = Access(memory=memory, policy=self._policy, owner=lambda _context: self._owner())
        self._tools = memory_tools(access, tools, f"{name}_")

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Find what answers a query, best first; an empty list if nothing does.

        Each entry's metadata has the record's `id`, `score`, `kind` and times, as JSON. For a model
        call that has the plugin's note, a store of all that the turn's user has finds nothing, and
        any other leaves out what the call is shown already.

        Raises:
            InvalidScopeError: the store follows the turn's user, and there is none.
            MemoryTimeoutError: it took longer than 2 seconds.
        """
        scope = self._owner().owner
        text = question(query)
        call = model_call(self._memory)
        is_told = call is not None and call.has_note and not self._is_part
        if is_told or not text:
            return []
        await ready(self._memory)
        most = (options or {}).get("max_search_results")
        top_k = self._policy.top_k if most is None else max(1, min(most, MOST))
        asked: dict[str, Any] = {**self._asked, "top_k": top_k}
        searching = self._memory.asearch(text, scope, **asked)
        matches = await within(self._policy.recall_timeout, "search", searching)
        if call is not None:
            matches = [one for one in matches if one.record.id not in call.shown]
            call.shown.update(one.record.id for one in matches)
        return [to_entry(one, self.name) for one in matches]

    async def add(
        self, content: str, metadata: dict[str, Any] | None = None
    ) -> list[dict[str, str | None]]:
        """Remember a text as it is, and answer when it can be found; in no session.

        Metadata that would name a scope is left out.

        Returns:
            Its id, the text and what happened: `ADD`, or `NONE` if it was known.

        Raises:
            InvalidScopeError: as `search`.
            InvalidRecordError: the text or its metadata cannot be stored.
            MemoryTimeoutError: it takes longer than 10 seconds; it goes on.
        """
        is_extracted = isinstance(metadata, Owned)
        scope = metadata.scope if isinstance(metadata, Owned) else self._owner()
        told = {name: one for name, one in (metadata or {}).items() if name not in SCOPE_FIELDS}
        try:
            fact = Fact(text=content, kind=(*self._kinds, "fact")[0], metadata=told)
            written = await within(WRITE_PATIENCE, "add", self._put(fact, scope.owner))
        except InvalidRecordError as error:
            if not is_extracted:
                raise
            # The framework would extract the whole batch again and again for the sake of one text.
            self._warn("extraction", error)
            return []
        return changes_of(written)

    async def add_messages(
        self, messages: list[StrandsMessage], context: AddMessagesContext | None = None
    ) -> int:
        """Accept what was said, each message for its own user, and answer at once.

        Accepted messages outlive this loop and this process. The same message twice, as when the
        framework tries again, is one record.

        Returns:
            How many messages were accepted; those of nobody are not.

        Raises:
            BackpressureError, StoreUnavailableError: not all were; trying again does no harm.
        """
        numbers = context.sequence_numbers if context is not None else None
        return await self._ingest.accept(messages, numbers)

    async def initialize(self) -> None:
        """Have the embedder loaded meanwhile; the memory is open, and belongs to no event loop."""
        warm(self._memory)

    def get_tools(self) -> list[AgentTool]:
        """List the tools that the store brings along; often none."""
        return list(self._tools)

    def _owner(self) -> Scope:
        return self._fixed or owner_here(self._memory)

    async def _put(self, fact: Fact, scope: Scope) -> WriteResult:
        add = partial(self._memory.add, fact, scope, infer=False, origin="assistant")
        try:
            return await hand_over(add, waits=True)
        except LoopRequiredError:
            return await self._memory.aadd(fact, scope, infer=False, origin="assistant")
