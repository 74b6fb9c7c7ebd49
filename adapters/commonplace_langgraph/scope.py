"""Scope of a run, and the memory of the user who runs an agent.

The scope comes from the run's login, its context or its config, never from what a model says.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables.config import RunnableConfig, ensure_config
from langgraph.runtime import get_runtime

from commonplace import InvalidRecordError, InvalidScopeError, Memory, Policy, Scope
from commonplace.agents import WRITE_PATIENCE, AgentMemory, WarnOnce, in_session

DEFAULT_POLICY = Policy()
_NOT_A_MEMORY = "memory={!r} must be a commonplace Memory. Pass Memory.open(...)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is known of who runs an agent.

    Attributes:
        context: what was given as `context=`; None if nothing was.
        config: what was given as `config=`, with `configurable` in it.
        server_info: a LangGraph server's, with the user who is logged in; None elsewhere.
    """

    context: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    server_info: Any = None

    @property
    def configurable(self) -> Mapping[str, Any]:
        """The part of the config that names the thread, and often the user."""
        found = self.config.get("configurable")
        return found if isinstance(found, Mapping) else {}


IdSource = str | Callable[[Run], str]


def user_of(run: Run) -> str:
    """Read the user's id: of the login, else `user_id` of the context, else that of the config.

    The client decides about the latter two, so neither ever overrides a login.

    Raises:
        InvalidScopeError: none of them names a user.
    """
    login = getattr(run.server_info, "user", None)
    found = (
        getattr(login, "identity", None)
        if login is not None
        else _attribute(run.context, "user_id") or run.configurable.get("user_id")
    )
    if found is None:
        raise InvalidScopeError(
            field="user_id", value=None, reason="must be in the login, the context or the config"
        )
    return found  # type: ignore[no-any-return]  # `scope_of` checks it


def current_run(runtime: object = None, config: RunnableConfig | None = None) -> Run:
    """Describe the run during which this is called; outside a run all of it is empty."""
    if runtime is None:
        with contextlib.suppress(RuntimeError, KeyError):  # not called by a graph
            runtime = get_runtime()
    return Run(
        context=getattr(runtime, "context", None),
        config=ensure_config(config or getattr(runtime, "config", None)),
        server_info=getattr(runtime, "server_info", None),
    )


def scope_of(run: Run, user_id: IdSource, agent_id: IdSource | None) -> Scope:
    """Make the scope of a run, in the session that is its thread.

    Raises:
        InvalidScopeError: an id is missing or cannot be used; then no memory is touched.
    """
    user = user_id(run) if callable(user_id) else user_id
    agent = agent_id(run) if callable(agent_id) else agent_id
    if agent_id is not None and type(agent) is not str:
        raise InvalidScopeError(field="agent_id", value=agent, reason="must be a string")
    owner = _scope(user, agent)
    thread = run.configurable.get("thread_id")
    return owner if thread is None else in_session(owner, str(thread))


class ScopeResolver:
    """Resolves the scope of each run from what was configured once.

    Args:
        user_id, agent_id: an id, or what reads it from a `Run`.
        warn: logs a scope that cannot be resolved.

    Raises:
        InvalidScopeError: a fixed id cannot be used.
    """

    def __init__(self, user_id: IdSource, agent_id: IdSource | None, warn: WarnOnce) -> None:
        any_user = "anybody" if callable(user_id) else user_id
        _scope(any_user, None if callable(agent_id) else agent_id)
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
        """Resolve the scope of the run during which this is called.

        Args:
            asker: `Scope.key` of who asked in this turn; nobody else may go on with it.
            config: where the surroundings do not have it.

        Raises:
            InvalidScopeError: the run names nobody, or somebody else than the asker.
        """
        scope = scope_of(current_run(runtime, config), self._user_id, self._agent_id)
        if asker not in (None, scope.key):
            raise InvalidScopeError(
                field="user_id", value=None, reason="is not who asked in this turn"
            )
        return scope

    def find(self, runtime: object = None, *, asker: str | None = None) -> Scope | None:
        """Resolve the scope, as `resolve`; None, and a line in the log, where that raises."""
        try:
            return self.resolve(runtime, asker=asker)
        except Exception as error:  # no memory is better than a lost turn
            self._warn("scope", error)
            return None


def agent_memory(memory: Memory, policy: Policy) -> AgentMemory:
    """Wrap a memory for agents; its first recall gets more time, as it may load a model.

    Raises:
        TypeError: `memory` is not a `Memory`.
        InvalidRecordError: the policy keeps notes in the conversation.
    """
    if not isinstance(memory, Memory):
        raise TypeError(_NOT_A_MEMORY.format(memory))
    if policy.inject == "persist":
        raise InvalidRecordError(
            field="inject",
            value=policy.inject,
            reason="would put notes into checkpoints",
            hint="A note here lives for one request; leave `inject` as it is.",
        )
    return AgentMemory(
        memory, policy, log="commonplace_langgraph", first_recall_timeout=WRITE_PATIENCE
    )


def _scope(user: object, agent: object) -> Scope:
    if type(user) is not str:
        raise InvalidScopeError(field="user_id", value=user, reason="must be a string")
    return Scope(user_id=user, agent_id=agent)  # type: ignore[arg-type]  # Scope checks it


def _attribute(context: object, name: str) -> Any:
    if isinstance(context, Mapping):
        return context.get(name)
    return getattr(context, name, None)
