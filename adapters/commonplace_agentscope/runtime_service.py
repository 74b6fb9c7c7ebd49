"""Memory service of agentscope-runtime 1.0.x, which its authors have deprecated.

Messages of a service are turns in a session of their user, as those of every other adapter: what an
agent of another framework learned is found here, and the other way round.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from commonplace import (
    ChatModel,
    Embedder,
    Extraction,
    Match,
    Memory,
    Policy,
    Record,
    Scope,
    StoreUnavailableError,
)
from commonplace import Message as Turn
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    MemoryCounters,
    MemorySource,
    OnEvent,
    acquire_memory,
    call,
    check_integer,
    clean,
    field_of,
    fold_policy,
    given_once,
    hash_id,
    hinting_init,
    in_session,
    search_scope,
    to_messages,
    to_query,
    to_scope,
)

from . import importing

with importing("agentscope-runtime>=1.0.5,<1.1"):
    from agentscope_runtime.engine.schemas.agent_schemas import Message, TextContent
    from agentscope_runtime.engine.services.memory import MemoryService as MemoryServiceBase

    from .shared_models import to_embedder
    from .v1.convert import NOTE_NAME
    from .v1.models import to_chat

if TYPE_CHECKING:
    from agentscope.embedding import EmbeddingModelBase
    from agentscope.model import ChatModelBase

_ROLES = ("user", "assistant", "system", "tool")
_DEFAULT_SESSION = "default"
_MAX_TOP_K = 1_000
_PAGE = 1_000
_BATCH = 500


# agentscope-runtime is not there where types are checked.
@hinting_init
class MemoryService(MemoryServiceBase):  # type: ignore[misc, unused-ignore]
    """Memory service of agentscope-runtime on a commonplace memory; serves any number of users.

    Calls before `start` and after `stop` raise `RuntimeError`, as those of the other services.

    Args:
        memory: an open commonplace `Memory`, which `stop` leaves open, the path of its folder, or
            None for the environment's `COMMONPLACE_PATH`, which is `./memory` by default. `client`
            and `path` are other names of it.
        agent_id: the agent's part of the scope; without it a user's memory is one for all agents.
        policy: what is found, how many messages at most, and how long is waited; what metadata
            messages are stored with. By default 10 messages. What it says of notes, of tools and of
            standing instructions has no effect.
        on_event: is called with each search and write.
        chat_model: extracts facts into a memory that is opened here; without it messages are kept
            verbatim.
        embedding_model: of a memory that is opened here; replaces the offline default.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used, or has two values; a
            memory or a model of another library is a `TypeError` too.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        agent_id: str | int | None = None,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
        chat_model: "ChatModelBase | ChatModel | None" = None,
        embedding_model: "EmbeddingModelBase[Any] | Embedder | None" = None,
        client: MemorySource = None,
        path: MemorySource = None,
    ) -> None:
        super().__init__()
        to_scope("anybody", agent_id)
        lazy = acquire_memory(
            self,
            given_once("memory", memory, client=client, path=path),
            chat=to_chat(chat_model),
            embedder=to_embedder(embedding_model),
            models=(chat_model, embedding_model),
        )
        policy = Policy(top_k=10) if policy is None else fold_policy(policy, {})
        self._memory: AgentMemory = AgentMemory(
            lazy, policy, log="commonplace_agentscope", on_event=on_event
        )
        self._agent_id: str | int | None = agent_id
        self._is_started = False

    async def start(self) -> None:
        """Open the memory.

        Raises:
            SchemaMismatchError, StoreRefusedError, StoreUnavailableError: as `Memory.open`.
        """
        self._memory.lazy.holders.add(self)
        await self._memory.lazy.aget()
        self._is_started = True

    async def stop(self) -> None:
        """Close the memory, unless it was given open or somebody else uses it."""
        self._is_started = False
        await self._memory.aclose(self, WRITE_PATIENCE)

    async def health(self) -> bool:
        """Return whether the service is started and its stores answer in time."""
        is_well = False
        if self._is_started:
            with self._memory.warn.catch("health"):
                step = call("list", Scope(user_id="nobody"), limit=1)
                await self._memory.acall(step, self._memory.policy.recall_timeout)
                is_well = True
        return is_well

    async def add_memory(
        self, user_id: str, messages: list[Any], session_id: str | None = None
    ) -> None:
        """Remember messages of a session; one that is known, by its id and text, is not repeated.

        Args:
            user_id: whose.
            messages: of agentscope-runtime, or dicts of that form. Those without text, and notes
                of a long-term memory, are left out. An empty list is fine.
            session_id: `default` when missing.

        Raises:
            InvalidScopeError: an id is one that no scope can hold.
            StoreUnavailableError, ModelFailedError: as `Memory.add`.
        """
        memory, scope = await self._opened(), self._scope(user_id)
        scope = in_session(scope, session_id or _DEFAULT_SESSION)
        turns = [turn for message in messages for turn in _to_turns(message)]
        policy = self._memory.policy
        extraction = Extraction(metadata=policy.metadata) if policy.metadata else None
        reporting = self._memory.reporting(
            "add_memory", scope, len(turns), late="failed", mistakes=()
        )
        with reporting:
            for place in range(0, len(turns), _BATCH):
                await memory.aadd(
                    turns[place : place + _BATCH],
                    scope,
                    infer=extraction,
                    metadata=policy.metadata,
                    identity=policy.identity,
                    wait=WRITE_PATIENCE if policy.await_write else False,
                )

    async def search_memory(
        self, user_id: str, messages: list[Any], filters: dict[str, Any] | None = None
    ) -> list[Any]:
        """Search all that is known of a user, in every session.

        Args:
            user_id: whose.
            messages: the text of the last one is searched for.
            filters: `top_k`, messages at most, 1 to 1,000; `score`, the least score, 0..1. The
                policy's when missing; others are ignored.

        Returns:
            Messages of agentscope-runtime, best first; empty if there is nothing to search for, or
            if the memory fails, which is logged.

        Raises:
            InvalidScopeError: the id is one that no scope can hold.
        """
        await self._opened()
        scope, policy = self._scope(user_id), self._memory.policy
        filters = filters or {}
        query = to_query(_to_text(messages[-1]) if messages else "")
        top_k = filters.get("top_k", policy.top_k)
        if not query or type(top_k) is not int or top_k < 1:
            return []
        search = call(
            "search",
            query,
            search_scope(scope, policy),
            top_k=min(top_k, _MAX_TOP_K),
            threshold=filters.get("score", policy.threshold),
            where=policy.where,
            kinds=policy.kinds,
        )
        found: Sequence[Match] = ()
        reporting = self._memory.reporting("search_memory", scope, late="timed_out", mistakes=())
        with suppress(Exception), reporting as outcome:
            found = await self._memory.acall(search, policy.recall_timeout)
            outcome.count = len(found)
        return [_to_message(match.record, score=match.score) for match in found]

    async def list_memory(self, user_id: str, filters: dict[str, Any] | None = None) -> list[Any]:
        """List what is known of a user, session by session, each in its order.

        Args:
            user_id: whose.
            filters: `page_num`, from 1, and `page_size`; the first 10 when missing.

        Raises:
            InvalidScopeError, InvalidRecordError: the id or a number cannot be used.
        """
        memory, scope = await self._opened(), self._scope(user_id)
        paging = {"page_num": 1, "page_size": 10, **(filters or {})}
        number, size = paging["page_num"], paging["page_size"]
        check_integer("page_num", number, 1)
        check_integer("page_size", size, 1)
        records: list[Record] = []
        cursor: str | None = None
        while True:
            page = await memory.alist(scope, limit=_PAGE, cursor=cursor)
            records += page.records
            if (cursor := page.cursor) is None:
                break
        records.sort(key=_place)
        return [_to_message(record) for record in records[(number - 1) * size : number * size]]

    async def delete_memory(self, user_id: str, session_id: str | None = None) -> None:
        """Erase a session's messages, or everything of a user; what is unknown is fine.

        Facts that a model extracted belong to the user, and stay when a session goes.

        Args:
            user_id: whose.
            session_id: everything of the user when missing, in every framework that shares the
                memory.

        Raises:
            InvalidScopeError: an id is one that no scope can hold.
            StoreUnavailableError: something of it is left.
        """
        memory, scope = await self._opened(), self._scope(user_id)
        receipt = await memory.aforget(in_session(scope, session_id))
        if not receipt.complete:
            left = ", ".join(f"{store}: {count}" for store, count in receipt.left.items() if count)
            raise StoreUnavailableError(store=memory.location, reason=f"rows are left ({left})")

    def counters(self) -> MemoryCounters:
        """Read how often each event happened, for all who share the memory."""
        return self._memory.counters()

    async def __aenter__(self) -> Self:
        """Start, and return self."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop."""
        await self.stop()

    async def _opened(self) -> Memory:
        if not self._is_started:
            raise RuntimeError("Service not started")  # as the other services word it
        return await self._memory.lazy.aget()

    def _scope(self, user_id: object) -> Scope:
        return to_scope(user_id, self._agent_id)


def _to_turns(message: Any) -> list[Turn]:
    """Make turns of a message; none of one without text, or of a note."""
    metadata = field_of(message, "metadata")
    given: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    name = str(given.get("original_name") or "")
    text = _to_text(message)
    if not text or name == NOTE_NAME:
        return []
    message_id = given.get("original_id") or field_of(message, "id") or ""
    role = field_of(message, "role")
    return to_messages(text, role if role in _ROLES else "user", name, hash_id(message_id, text))


def _to_text(message: Any) -> str:
    """Read the text blocks of a message, joined by line breaks; empty if it is a tool call."""
    if (field_of(message, "type") or "message") != "message":
        return ""
    content = field_of(message, "content")
    if isinstance(content, str):
        return clean(content)
    blocks = content if isinstance(content, Sequence) else []
    texts = (field_of(block, "text") for block in blocks if field_of(block, "type") == "text")
    return clean("\n".join(text for text in texts if isinstance(text, str)))


def _to_message(record: Record, **details: float) -> Any:
    """Make a message; its id is the record's, its role that of a turn, None for a fact."""
    metadata = {"kind": record.kind, "session_id": record.scope.session_id, **details}
    if record.name:
        metadata["original_name"] = record.name
    return Message(
        id=record.id,
        role=record.role,
        status="completed",
        content=[TextContent(text=record.text)],
        metadata=metadata,
    )


def _place(record: Record) -> tuple[str, int, float]:
    at = record.occurred_at.timestamp()
    return record.scope.session_id or "", -1 if record.position is None else record.position, at
