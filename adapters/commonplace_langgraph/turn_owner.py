"""Scope of a run: whose memory an agent uses; and the opening and closing of that memory.

The scope comes from the run's login, context or config, never from what a model says.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from os import PathLike
from tempfile import TemporaryDirectory
from typing import Any, Self

from langchain_core.runnables.config import RunnableConfig, ensure_config
from langgraph.runtime import get_runtime

from commonplace import (
    Embedder,
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    Policy,
    Scope,
    Settings,
)
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    LazyMemory,
    MemorySource,
    OnEvent,
    WarnOnce,
    check_id_source,
    check_memory,
    field_of,
    in_session,
    is_url,
    split_place,
    to_folder,
    to_scope,
)

_TOOL_NODE = "tools"  # as `create_agent` calls it, and `ToolNode` itself
_in_tool: ContextVar[bool] = ContextVar("commonplace_in_tool", default=False)


class MissingIdError(InvalidScopeError):
    """A run without a user, or without the agent that it should name, has no memory."""


class OtherUserError(InvalidScopeError):
    """Somebody other than the user who asked resumes a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of an agent, from which its user is read.

    Attributes:
        context: the value of `context=`; None if not given.
        config: the value of `config=`, with `configurable` in it.
        server_info: of a LangGraph server, with the user who is logged in; None elsewhere.
    """

    context: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    server_info: Any = None

    @property
    def configurable(self) -> Mapping[str, Any]:
        """The part of the config with the thread's id, and often the user's."""
        found = self.config.get("configurable")
        return found if isinstance(found, Mapping) else {}


IdSource = str | int | Enum | Callable[[Run], str | int | Enum | None]
"""An id, or a function that reads it from a run and returns None if the run has none."""
Place = tuple[Hashable, str]
"""The source of user ids, and the id of a thread."""


def user_of(run: Run) -> Any:
    """Return the user's id from the login, else from the context, else from the config.

    The client sets the latter two, so neither overrides a login. None if none names a user.
    """
    login = getattr(run.server_info, "user", None)
    if login is not None:
        return getattr(login, "identity", None)
    found = field_of(run.context, "user_id")
    return run.configurable.get("user_id") if found is None else found


def current_run(runtime: object = None, config: RunnableConfig | None = None) -> Run:
    """Return the current run; outside a run it is empty."""
    if runtime is None:
        with contextlib.suppress(RuntimeError, KeyError):  # not called by a graph
            runtime = get_runtime()
    return Run(
        context=getattr(runtime, "context", None),
        config=ensure_config(config or getattr(runtime, "config", None)),
        server_info=getattr(runtime, "server_info", None),
    )


@contextlib.contextmanager
def tool_call() -> Iterator[None]:
    """Mark the code inside, with its tasks and threads, as called by an agent's tool."""
    token = _in_tool.set(True)
    try:
        yield
    finally:
        _in_tool.reset(token)


def is_called_by_agent() -> bool:
    """Return whether an agent's tool runs this graph, so that a model wrote its input.

    True in a tool of an agent with `MemoryMiddleware`, and below a node named `tools`, as in every
    agent of `create_agent`, whichever thread the graph has. Not recognised are a tool that starts
    the graph in a bare thread, a tool of an agent without this middleware whose `ToolNode` has
    another name, and a node whose code calls the graph with a message that a model wrote.
    """
    run = current_run()
    own = str(run.configurable.get("checkpoint_ns") or "")
    # Of the caller, for a graph with a thread of its own; else the same.
    calling = str((run.config.get("metadata") or {}).get("checkpoint_ns") or "")
    nodes = own.split("|")[:-1] + (calling.split("|") if calling != own else [])
    return _in_tool.get() or any(node.partition(":")[0] == _TOOL_NODE for node in nodes)


def scope_of(run: Run, user_id: IdSource, agent_id: IdSource | None) -> Scope:
    """Make the scope of a run, with its thread as the session."""
    user = _read_id("user_id", user_id, run)
    agent = None if agent_id is None else _read_id("agent_id", agent_id, run)
    thread = run.configurable.get("thread_id")
    owner = to_scope(user, agent)
    return owner if thread is None else in_session(owner, str(thread))


class ScopeResolver:
    """Resolves the scope of each run.

    Args:
        user_id, agent_id: an id, or a function that reads it from a `Run`.
        warn: logs a run that names nobody.

    Raises:
        InvalidScopeError: a fixed id cannot be used.
    """

    def __init__(self, user_id: IdSource, agent_id: IdSource | None, warn: WarnOnce) -> None:
        any_user = "anybody" if check_id_source("user_id", user_id) else user_id
        to_scope(any_user, None if check_id_source("agent_id", agent_id) else agent_id)
        self._user_id = user_id
        self._agent_id = agent_id
        self._warn = warn

    def resolve(
        self,
        runtime: object = None,
        *,
        asker: str | None = None,
        config: RunnableConfig | None = None,
    ) -> Scope:
        """Resolve the scope of the current run.

        Args:
            asker: `Scope.key` of who asked in this turn; nobody else may continue it.
            config: of the run, if its context does not have it.

        Raises:
            MissingIdError: the run names nobody.
            OtherUserError: it names somebody other than the asker.
            InvalidScopeError: it has an id that cannot be used.
        """
        scope = scope_of(current_run(runtime, config), self._user_id, self._agent_id)
        if asker not in (None, scope.key):
            raise OtherUserError(
                field="user_id",
                value=None,
                reason="is not who asked in this turn",
                hint="Resume it with the user_id of its first call.",
            )
        return scope

    def place(self, runtime: object = None) -> Place | None:
        """Return the source of user ids with the current thread; None outside a thread.

        Two sources may name two users in one run, but one source never does.
        """
        thread = current_run(runtime).configurable.get("thread_id")
        source = self._user_id
        known = source if isinstance(source, Hashable) else id(source)
        return None if thread is None else (known, str(thread))

    @staticmethod
    def branch(scope: Scope, runtime: object = None) -> tuple[str, ...] | None:
        """Return the scope's key with the nodes around the agent; None without a checkpointer.

        Only there a message under a known id is one that was edited: others may give all one id.
        """
        given = current_run(runtime).configurable
        if not given.get("__pregel_checkpointer"):
            return None
        nodes = str(given.get("checkpoint_ns") or "").split("|")[:-1]
        return (scope.key, *(node.partition(":")[0] for node in nodes))

    def find(self, runtime: object = None, *, asker: str | None = None) -> Scope | None:
        """Resolve the scope, see `resolve`; None, logged once, for nobody or another user.

        Raises:
            InvalidScopeError: the run has an id that cannot be used.
        """
        try:
            return self.resolve(runtime, asker=asker)
        except (MissingIdError, OtherUserError) as error:
            self._warn("scope", error)
            return None


def agent_memory(
    memory: MemorySource, policy: Policy | None, on_event: OnEvent | None = None
) -> AgentMemory:
    """Wrap a memory for agents; the first recall gets more time, as it may load a model."""
    return AgentMemory(
        memory,
        policy,
        log="commonplace_langgraph",
        keeps_notes=False,  # they would be in checkpoints
        first_recall_timeout=WRITE_PATIENCE,
        on_event=on_event,
    )


def open_lazily(memory: MemorySource, embedder: Embedder | None = None) -> LazyMemory:
    """Take an open memory, or one by its path, which its one user opens on first use and closes."""
    if isinstance(memory, ConnString):
        return memory.open_lazily(embedder)
    if memory is not None and not isinstance(memory, str | PathLike):
        check_memory(memory, otherwise=", the path of a folder, or nothing for ./memory")
        return LazyMemory(memory)
    folder = None if memory is None else to_folder("memory", memory)
    settings = Settings.from_env() if folder is None else None
    return LazyMemory(partial(Memory.open, folder, settings=settings, embedder=embedder))


class ConnString(str):
    """A text that names a memory as `CommonplaceSaver.from_conn_string` takes it."""

    __slots__ = ()

    def __new__(cls, given: object) -> Self:
        """Check the text."""
        if not isinstance(given, str):
            raise InvalidRecordError(field="conn_string", value=given, reason="must be a string")
        return super().__new__(cls, given)

    def open_lazily(self, embedder: Embedder | None) -> LazyMemory:
        """Take the memory, which its one user opens on first use and closes."""
        if self == ":memory:":
            return TemporaryMemory(embedder)
        place = {"graph": str(self)} if is_url(self) else split_place("conn_string", str(self))
        if (folder := place.get("path")) is not None:
            if os.path.isfile(folder):
                raise InvalidRecordError(
                    field="conn_string",
                    value=folder,
                    reason="is a file and not a folder",
                    hint="`commonplace import langgraph FILE FOLDER` takes over what is in it.",
                )
            place["path"] = to_folder("conn_string", folder)
        return LazyMemory(partial(Memory.open, embedder=embedder, **place))


class TemporaryMemory(LazyMemory):
    """A memory in a folder that is deleted with it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.folder: TemporaryDirectory[str] = TemporaryDirectory(ignore_cleanup_errors=True)
        super().__init__(partial(Memory.open, self.folder.name, embedder=embedder))


class Count(int):
    """A number that may also be awaited, as the framework has async stores apart."""

    def __await__(self) -> Generator[None, None, int]:
        """Return the number at once."""
        yield from ()
        return int(self)


class OpenedMemory:
    """What a store and a saver have in common: a memory, which they close if they opened it."""

    _lazy: LazyMemory

    def setup(self) -> Count:
        """Do nothing, as nothing needs a setup; may be awaited."""
        return Count()

    def close(self) -> None:
        """Close the memory, unless it was given open; delete the folder of `:memory:`."""
        if self._lazy.given is None:
            with contextlib.suppress(Exception):  # who used it got the error of opening
                self._lazy.get().close()
        if isinstance(self._lazy, TemporaryMemory):
            self._lazy.folder.cleanup()

    async def aclose(self) -> None:
        """Close, as `close`."""
        if self._lazy.given is None:
            with contextlib.suppress(Exception):  # who used it got the error of opening
                await (await self._lazy.aget()).aclose()
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _read_id(name: str, source: IdSource, run: Run) -> object:
    if not callable(source):
        return source
    try:
        found = source(run)
    except InvalidScopeError:
        raise
    except Exception as error:
        reason = f"cannot be read from the run ({type(error).__name__}: {error})"
        raise MissingIdError(field=name, value=None, reason=reason) from error
    if found is None:
        reason = "must be in the login, the context or the config"
        raise MissingIdError(field=name, value=None, reason=reason)
    return found
