"""Construction, opening, closing and running of plans, for `Memory` and `AsyncMemory`.

Stores are opened by the first call that needs them: a constructor connects to no server, and the
dimensions of a model may have to be measured.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar, get_args

from commonplace import Settings, StoreUnavailableError
from commonplace.agents import (
    AgentMemory,
    LazyMemory,
    MemoryCounters,
    OnEvent,
    Plan,
    Policy,
    aon,
    arun_plan,
    check_memory,
    hinting_init,
    on,
    run_plan,
    short_repr,
)
from commonplace.ports import Embedder

from .arguments import Compat
from .config import (
    Mem0Location,
    Mem0Settings,
    find_location,
    read_config,
    read_section,
    report_unknown,
)
from .exceptions import ClosedError, ConfigurationError, as_mem0
from .models import (
    AsyncMem0ChatModel,
    Mem0ChatModel,
    ModelFunction,
    as_model,
    is_async,
    to_embedder,
    to_model,
    to_reranker,
)

if TYPE_CHECKING:  # it loads the engines
    from commonplace import Memory

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("commonplace_mem0")
_INSIDES = {
    "vector_store": "core",
    "embedding_model": "core.embedder",
    "graph": "core.relations(...)",
    "db": "history(memory_id)",
    "enable_graph": 'the key "graph_store" of the configuration',
    "entity_store": "core.entities(...)",
    "reranker": 'the key "reranker" of the configuration',
    "collection_name": 'the key "vector_store" of the configuration',
    "custom_instructions": "the key of the configuration, or add(..., prompt=...)",
    "custom_fact_extraction_prompt": "the key of the configuration, or add(..., prompt=...)",
    "custom_update_memory_prompt": "the key of the configuration",
    "api_version": 'the key "version" of the configuration',
}


@hinting_init
class Mem0Base:
    """Base of `Memory` and `AsyncMemory`.

    Attributes:
        config: as given.
        core: the core's memory below, opened on first use.
        llm: the language model, as given; another may be assigned.
    """

    _awaits: ClassVar[bool]

    def __init__(
        self,
        config: object = None,
        *,
        compat: Compat = "auto",
        core: "Memory | None" = None,
        on_event: OnEvent | None = None,
    ) -> None:
        """Read a configuration: a dict, a `MemoryConfig`, or mem0's; None is all offline.

        Opens no store and sends nothing.

        Args:
            compat: `v1` or `v2` gives every call that era's defaults, and lets one with an agent or
                a run alone act on every user's memories with it, as in mem0; `v2` also refuses what
                mem0 2.x refuses.
            core: an open memory to use; then no store, embedder or llm may be configured.
            on_event: called with the outcome of each `search` and `add`: see `counters`.

        Raises:
            ConfigurationError: it contradicts itself, or names something that does not exist.
            DependencyError: a provider needs a package that is not installed.
            ValidationError, ClosedError: `core` is no open memory, or `on_event` no function.
        """
        if compat not in get_args(Compat):
            raise ConfigurationError.of("compat", compat, "must be 'auto', 'v1' or 'v2'.")
        unknown: list[str] = []
        read = read_config(config, unknown)
        if core is not None and (read.vector_store or read.embedder or read.llm):
            raise ConfigurationError(
                "core= is open already: leave out vector_store, embedder and llm."
            )
        if read.fallback not in (None, "embedded"):
            raise ConfigurationError.of(
                "fallback", read.fallback, "must be 'embedded' or left out."
            )
        graph = read_section("graph_store", read.graph_store)
        extra = {} if graph is None else graph.extra
        prompts = [read.instructions, extra.get("custom_prompt")]
        self.config = config
        self._location = find_location(
            read_section("vector_store", read.vector_store), graph, unknown
        )
        self._falls_back = read.fallback is not None
        self._llm = extra.get("llm", read.llm)  # the graph's own model makes the one call
        model = self._checked(to_model(read_section("llm", self._llm), unknown))
        self._embedder = to_embedder(read_section("embedder", read.embedder), unknown)
        self._settings = Mem0Settings(
            compat=compat,
            shows_relations=graph is not None and read.enable_graph,
            bare_lists=read.version == "v1.0",
            instructions="\n".join(text for text in prompts if text) or None,
            model=model,
            has_core=core is not None,
            reranker=to_reranker(read_section("reranker", read.reranker)),
        )
        self._chat = (AsyncMem0ChatModel if self._awaits else Mem0ChatModel)(self._settings)
        report_unknown(unknown, strict=read.strict)
        self._is_closed = False
        self._lazy = LazyMemory(self._open if core is None else core)
        with as_mem0(self._lazy):
            if core is not None:
                check_memory(core, "core")
            self._health = AgentMemory(self._lazy, Policy(), log=logger.name, on_event=on_event)

    @classmethod
    def from_config(
        cls,
        config_dict: Mapping[str, Any],
        *,
        compat: Compat = "auto",
        on_event: OnEvent | None = None,
    ) -> Self:
        """Make a memory from a dict, which is not changed; see the constructor for the rest."""
        return cls(config_dict, compat=compat, on_event=on_event)

    def counters(self) -> MemoryCounters:
        """Count the outcomes of the calls of `search` and `add` so far.

        A search has `recalled` something or was `empty`; an addition was `written`, or is `late` if
        it was only accepted, with `wait=False`. A call with an error has `failed`, a search that
        took too long has `timed_out`. Calls refused with a `ValidationError` are not counted.
        """
        return self._health.counters()

    @property
    def core(self) -> "Memory":
        """The core's memory, with all that mem0 does not have.

        Raises:
            ClosedError: it was closed.
            ConfigurationError: vectors have another length than configured, or the folder is
                mem0's own.
        """
        self._check_open()
        return self._lazy.get()

    @property
    def llm(self) -> Any:
        """The language model, as given or assigned; None if there is none.

        Any `llm` of a configuration can be assigned, except a section with a provider.
        """
        return self._llm

    @llm.setter
    def llm(self, model: Any) -> None:
        if self._settings.has_core:
            raise ConfigurationError("core= has a model of its own: open it with chat=...")
        found = None if model is None else self._checked(as_model(model))
        was_without = self._settings.model is None
        self._llm, self._settings.model = model, found
        if was_without:  # the next call opens the memory again, with the model
            self._close_core()

    if not TYPE_CHECKING:  # so that type checkers still report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            """Name what replaces mem0's internals."""
            there = f" Here there is {_INSIDES[name]}." if name in _INSIDES else ""
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}.{there}")

    def _checked(self, model: ModelFunction | None) -> ModelFunction | None:
        if model is not None and is_async(model) and not self._awaits:
            raise ConfigurationError(
                "llm is asynchronous and Memory is not. Use AsyncMemory, or a synchronous model."
            )
        return model

    # -- opening and closing -------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("This memory is closed. Make a new one.")

    def _open(self) -> "Memory":
        self._check_open()  # it may have been closed since it was asked for
        _check_dimensions(self._location, self._embedder)
        settings, where = Settings.from_env(), self._location
        folder = Path(where.path or settings.path).expanduser()
        engines = [where.vectors, where.graph]
        if where.path is None:
            engines = [where.vectors or settings.vectors, where.graph or settings.graph]
        if not all(engines):
            _check_folder(folder)
        try:
            return self._open_at(where)
        except StoreUnavailableError as error:
            if not (self._falls_back and any(engines)):
                raise
            logger.warning("No server answers (%s), so memories are stored in %s.", error, folder)
            _check_folder(folder)
            return self._open_at(Mem0Location(path=str(folder)))

    def _open_at(self, location: Mem0Location) -> "Memory":
        from commonplace import Memory  # it loads the engines

        # A path alone is a folder; without one the environment says what is not given.
        return Memory.open(
            location.path,
            vectors=location.vectors,
            graph=location.graph,
            embedder=self._embedder,
            chat=None if self._settings.model is None else self._chat,
        )

    def _release(self) -> "Memory | None":
        """Return the memory to close, after waiting for one that is being opened."""
        opening = self._lazy.release()
        return None if opening is None or opening.exception() else opening.result()

    def _close_core(self) -> None:
        memory = self._release()
        if memory is not None:
            memory.close()

    def _close(self) -> None:
        self._is_closed = True
        self._close_core()


class BlockingBase(Mem0Base):
    """Runs plans on the calling thread."""

    _awaits = False

    def _run(self, plan: Plan[T]) -> T:
        """Run a plan; its first call of the core opens the memory."""

        def perform(step: Any) -> Any:
            if isinstance(step, partial):
                return step()  # an asynchronous model was refused
            return on(self.core)(step)

        with as_mem0(self._lazy):
            return run_plan(plan, perform)

    def close(self) -> None:
        """Finish pending writes and close; repeating it does nothing."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close()


class AwaitedBase(Mem0Base):
    """Runs plans on the running loop, without blocking it."""

    _awaits = True

    async def _run(self, plan: Plan[T]) -> T:
        """Run a plan; a blocking model runs in a thread."""

        async def perform(step: Any) -> Any:
            if isinstance(step, partial):
                return await (step() if is_async(step.func) else asyncio.to_thread(step))
            self._check_open()
            return await aon(await self._lazy.aget())(step)

        with as_mem0(self._lazy):
            return await arun_plan(plan, perform)

    def close(self) -> Awaitable[None]:
        """Close, in the background unless the result is awaited; repeating it does nothing."""
        return _Closing(self._close)

    def __await__(self) -> Generator[Any, None, Self]:
        """Return self, as `from_config` is awaited in some versions of mem0."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._is_closed = True
        memory = await asyncio.to_thread(self._release)
        if memory is not None:
            await memory.aclose()  # after this loop's own writes


class _Closing:
    """Closing in a thread, which may be awaited and need not be, as in mem0."""

    def __init__(self, close: Callable[[], None]) -> None:
        thread = ThreadPoolExecutor(1, thread_name_prefix="commonplace-mem0-close")
        self._done = thread.submit(close)
        thread.shutdown(wait=False)
        self._done.add_done_callback(_log_failure)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait until the location can be opened again; raise the error of closing, if any."""
        return asyncio.wrap_future(self._done).__await__()


def _log_failure(closing: Future[None]) -> None:
    if error := closing.exception():  # which somebody may await, or nobody
        logger.warning("Closing failed: %s", error)


def _check_dimensions(location: Mem0Location, embedder: Embedder | None) -> None:
    wanted = location.dimensions
    actual = 512 if embedder is None or wanted is None else embedder.dimensions
    if wanted not in (None, actual):
        raise ConfigurationError(
            f"vector_store says embedding_model_dims={short_repr(wanted)}, the embedder gives "
            f"{actual}. Leave it out, or configure the embedder that it was meant for."
        )


def _check_folder(folder: Path) -> None:
    for path in (folder, folder.parent):  # a collection's folder is inside that of the path
        if (path / "meta.json").is_file() and (path / "collection").is_dir():
            raise ConfigurationError(
                f"The folder {str(path)!r} was written by mem0. Import its memories with "
                "`commonplace import mem0`, and give another path here; it is left as it is."
            )
