"""Whose memory a run is about: by its login, its context or its config, and nothing else."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables.config import RunnableConfig, ensure_config
from langgraph.runtime import get_runtime

from commonplace import InvalidScopeError, Scope
from commonplace.agents.messages import in_session


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run says of who asks.

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


Id = str | Callable[[Run], str]


def user_of(run: Run) -> str:
    """Read the user's id: of the login, else `user_id` of the context, else that of the config.

    The client decides about the latter two, so neither ever stands before a login.

    Raises:
        InvalidScopeError: none of them names a user.
    """
    login = getattr(run.server_info, "user", None)
    found = (
        getattr(login, "identity", None)
        if login is not None
        else _named(run.context, "user_id") or run.configurable.get("user_id")
    )
    if found is None:
        raise InvalidScopeError(
            field="user_id", value=None, reason="is in neither login, context nor config"
        )
    return found  # type: ignore[no-any-return]  # `scope_of` checks it


def this_run(runtime: object = None, config: RunnableConfig | None = None) -> Run:
    """Describe the run in whose course this is called; outside a run it says nothing."""
    if runtime is None:
        with contextlib.suppress(RuntimeError, KeyError):  # not in the course of a graph
            runtime = get_runtime()
    return Run(
        context=getattr(runtime, "context", None),
        config=ensure_config(config or getattr(runtime, "config", None)),
        server_info=getattr(runtime, "server_info", None),
    )


def check_ids(user_id: Id, agent_id: Id | None) -> None:
    """Refuse fixed ids that no scope can hold.

    Raises:
        InvalidScopeError: naming the one.
    """
    _scope("anybody" if callable(user_id) else user_id, None if callable(agent_id) else agent_id)


def scope_of(run: Run, user_id: Id, agent_id: Id | None) -> Scope:
    """Tell whose memory a run is about, in the session that is its thread.

    Raises:
        InvalidScopeError: an id is none; nobody's memory is reached then.
    """
    user = user_id(run) if callable(user_id) else user_id
    agent = agent_id(run) if callable(agent_id) else agent_id
    if agent_id is not None and type(agent) is not str:
        raise InvalidScopeError(field="agent_id", value=agent, reason="is not a string")
    owner = _scope(user, agent)
    thread = run.configurable.get("thread_id")
    return owner if thread is None else in_session(owner, str(thread))


def _scope(user: object, agent: object) -> Scope:
    if type(user) is not str:
        raise InvalidScopeError(field="user_id", value=user, reason="is not a string")
    return Scope(user_id=user, agent_id=agent)  # type: ignore[arg-type]  # Scope checks it


def _named(context: object, name: str) -> Any:
    if isinstance(context, Mapping):
        return context.get(name)
    return getattr(context, name, None)
