"""mem0's class `Memory` of every era, on the core's memory."""

import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from commonplace.agents import MemoryCounters, OnEvent

from . import operations
from .arguments import (
    UNSET,
    Compat,
    Unset,
    add_request,
    clean_query,
    erase_scope,
    read_request,
    refuse_hosted,
    refuse_unknown,
)
from .config import (
    ConfigSection,
    CoreHandle,
    Mem0Settings,
    MemoryConfig,
    UnknownKeys,
    check_compat,
    find_location,
    has_graph,
    read_config,
    read_section,
)
from .exceptions import ConfigurationError
from .models import AsyncMem0ChatModel, Mem0ChatModel, is_async, to_embedder, to_model, to_reranker
from .operations import count_add, count_search, run

if TYPE_CHECKING:
    from commonplace import Memory as CoreMemory


class Mem0Base:
    """Construction that `Memory` and `AsyncMemory` share.

    Attributes:
        config: as it was given.
        core: the core's memory that it works on, opened when it is first asked for.
    """

    _awaits: ClassVar[bool]

    def __init__(
        self,
        config: object = None,
        *,
        compat: Compat = "auto",
        core: "CoreMemory | None" = None,
        on_event: OnEvent | None = None,
    ) -> None:
        """Read a configuration: a dict, a `MemoryConfig`, or mem0's; None is all offline.

        Nothing is opened and nothing is sent yet.

        Args:
            compat: `v1` or `v2` gives every call that era's defaults; `v2` also refuses what it
                refuses.
            core: an open memory to use; then no store, embedder or llm may be configured.
            on_event: is called with what became of each `search` and `add`: see `counters`.

        Raises:
            ConfigurationError: it contradicts itself, or names something that does not exist.
        """
        self.config = config
        self._settings, self._handle = _build(config, compat, core, on_event, awaits=self._awaits)

    @classmethod
    def from_config(
        cls,
        config_dict: Mapping[str, Any],
        *,
        compat: Compat = "auto",
        on_event: OnEvent | None = None,
    ) -> Self:
        """Make a memory from a dict, which is not changed; the rest as of the constructor."""
        return cls(config_dict, compat=compat, on_event=on_event)

    def counters(self) -> MemoryCounters:
        """Read what became of the calls of `search` and `add` so far.

        A search has `recalled` something or was `empty`; an addition is `written`, or `late` if it
        was accepted only, with `wait=False`. What raised an error has `failed`, a search that took
        too long has `timed_out`. A call that is refused with a `ValidationError` is not counted.
        """
        return self._handle.health.counters()

    @property
    def core(self) -> "CoreMemory":
        """The core's memory, with everything that mem0 has no word for."""
        return self._handle.get()


class Mem0Memory(Mem0Base):
    """Remembers for users, agents and runs; blocks until each call is done.

    Calls written for mem0 0.1, 1.x and 2.x mean what they meant there: see `arguments` for how the
    two shapes are distinguished, `filters` for the filter language, `results` for the answers.
    """

    _awaits = False

    def add(
        self,
        messages: Any,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        infer: bool | str | Unset = UNSET,
        memory_type: str | None = None,
        prompt: str | None = None,
        *,
        timestamp: Any = None,
        expiration_date: Any = None,
        wait: bool = True,
    ) -> Any:
        """Remember messages, or the facts in them when a model is configured; one call of it.

        A known fact answers `NONE`, or `UPDATE` where it brings something new, with the id it has.
        Without `wait` the answer has a `ticket`
        and comes once nothing can be lost any more.
        """
        request = add_request(
            messages,
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id},
            filters,
            compat=self._settings.compat,
            metadata=metadata,
            infer=infer,
            prompt=prompt,
            memory_type=memory_type,
            timestamp=timestamp,
            expiration_date=expiration_date,
            wait=wait,
        )
        plan = operations.add(self._settings, request)
        return run(count_add(self._handle.health, request, plan), self._handle.get)

    def search(
        self,
        query: str,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
        *,
        top_k: int | None = None,
        threshold: float | Unset | None = UNSET,
        rerank: bool | None = None,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **unknown: Any,
    ) -> Any:
        """Find memories that answer a query, best first, none below the threshold."""
        refuse_unknown("search", unknown)
        refuse_hosted("reference_date", reference_date)
        request = read_request(
            "search",
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id},
            filters,
            compat=self._settings.compat,
            limit=limit,
            top_k=top_k,
            threshold=threshold,
            rerank=rerank,
        )
        plan = operations.search(
            self._settings, clean_query(query), request, explain=explain, show_expired=show_expired
        )
        return run(count_search(self._handle.health, request, plan), self._handle.get)

    def get(self, memory_id: str | uuid.UUID) -> dict[str, Any] | None:
        """Read one memory; None if there is none with this id."""
        return run(operations.get(memory_id), self._handle.get)

    def get_all(
        self,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        limit: int | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        cursor: str | None = None,
        **unknown: Any,
    ) -> Any:
        """List memories, newest first; a `cursor` in the answer asks for the next ones."""
        refuse_unknown("get_all", unknown)
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        request = read_request(
            "get_all", ids, filters, compat=self._settings.compat, limit=limit, top_k=top_k
        )
        plan = operations.get_all(self._settings, request, show_expired=show_expired, cursor=cursor)
        return run(plan, self._handle.get)

    def update(
        self,
        memory_id: str | uuid.UUID,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory's text, add to its metadata, or set when it ends.

        Raises:
            MemoryNotFoundError: there is none with this id.
        """
        plan = operations.update(self._settings, memory_id, text, metadata, expiration_date, data)
        return run(plan, self._handle.get)

    def delete(self, memory_id: str | uuid.UUID) -> dict[str, str]:
        """Delete a memory.

        Raises:
            MemoryNotFoundError: there is none with this id.
        """
        return run(operations.delete(memory_id), self._handle.get)

    def delete_all(
        self, user_id: Any = None, agent_id: Any = None, run_id: Any = None
    ) -> dict[str, str]:
        """Erase all memories of a user, agent or run, with their history and relations."""
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        scope = erase_scope(ids, compat=self._settings.compat)
        return run(operations.delete_all(scope), self._handle.get)

    def history(self, memory_id: str | uuid.UUID) -> list[dict[str, Any]]:
        """Read every change of a memory, oldest first."""
        return run(operations.history(memory_id), self._handle.get)

    def reset(self) -> None:
        """Erase everything in this store, and nothing else."""
        run(operations.reset(), self._handle.get)

    def flush(self, timeout: float = 30.0) -> dict[str, Any]:
        """Wait for what was added without waiting; return what is pending, what failed and why.

        Args:
            timeout: seconds.
        """
        return run(operations.flush(timeout), self._handle.get)

    def chat(self, query: str) -> None:
        """Do nothing, as in mem0.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Chat function not implemented yet.")

    def close(self) -> None:
        """Finish the writes under way and close; repeating it does nothing."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()


# -- configuration to memory --------------------------------------------------------------------


def _build(
    config: object,
    compat: Compat,
    core: "CoreMemory | None",
    on_event: OnEvent | None,
    *,
    awaits: bool,
) -> tuple[Mem0Settings, CoreHandle]:
    """Read a configuration and make what it names.

    Args:
        awaits: the models will be awaited.
    """
    check_compat(compat)
    unknown = UnknownKeys()
    read = read_config(config, unknown)
    if core is not None and (read.vector_store or read.embedder or read.llm):
        raise ConfigurationError("core= is open already: leave out vector_store, embedder and llm.")
    graph = read_section("graph_store", read.graph_store)
    location = find_location(read_section("vector_store", read.vector_store), graph, unknown)
    model = to_model(read_section("llm", _llm(read, graph)), unknown)
    if model is not None and is_async(model) and not awaits:
        raise ConfigurationError(
            "llm is asynchronous and Memory is not. Use AsyncMemory, or a synchronous model."
        )
    embedder = to_embedder(read_section("embedder", read.embedder), unknown)
    settings = Mem0Settings(
        compat=compat,
        shows_relations=has_graph(graph, enabled=read.enable_graph),
        bare_lists=read.version == "v1.0",
        instructions=_instructions(read, graph),
        model=model,
        has_core=core is not None,
        reranker=to_reranker(read_section("reranker", read.reranker)),
    )
    unknown.report(strict=read.strict)
    chat = None if model is None else AsyncMem0ChatModel(model) if awaits else Mem0ChatModel(model)
    falls_back = read.fallback == "embedded"
    if read.fallback is not None and not falls_back:
        raise ConfigurationError(f"fallback={read.fallback!r} must be 'embedded' or left out.")
    handle = CoreHandle(
        location, embedder, chat, falls_back=falls_back, core=core, on_event=on_event
    )
    return settings, handle


def _llm(read: MemoryConfig, graph: ConfigSection | None) -> Any:
    """Choose the model of the one call: the graph's own where there is one."""
    return read.llm if graph is None else graph.extra.get("llm", read.llm)


def _instructions(read: MemoryConfig, graph: ConfigSection | None) -> str | None:
    given = [read.instructions, None if graph is None else graph.extra.get("custom_prompt")]
    return "\n".join(one for one in given if one) or None
