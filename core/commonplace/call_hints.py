"""Hints in the errors of calls that do not fit a signature."""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from .errors import short_repr

P = ParamSpec("P")
T = TypeVar("T")
_SCOPE = ("user_id", "agent_id", "session_id")
# What other libraries call a parameter.
_ELSEWHERE = {
    "limit": ("top_k", "max_search_results"), "k": ("top_k",), "n": ("top_k",),
    "filter": ("where",), "filters": ("where",), "query": ("text",), "message": ("text", "content"),
    "messages": ("content",), "content": ("text",), "text": ("content",), "data": ("text",),
    "memory_id": ("record_id",), "id": ("record_id",), "user": ("user_id",), "llm": ("chat",),
    "model": ("chat",), "config": ("settings",), "memory": ("client", "core"),
    "client": ("memory", "core"), "path": ("memory", "config"),
    "top_k": ("max_search_results",), "namespace": ("scope",),
}  # fmt: skip
_OF_POLICY = (
    "mode", "top_k", "threshold", "kinds", "where", "await_write", "recall_timeout", "inject",
    "instructions", "header", "intro", "tool_instructions", "scope_search_by_agent",
)  # fmt: skip
_BY_TYPE = {"Memory": ("client", "core"), "Policy": ("policy",), "Scope": ("scope",)}


def hinting_call(method: Callable[P, T]) -> Callable[P, T]:
    """Add to the error of a wrong call what the method takes; the call itself is unchanged."""
    names = [one for one in inspect.signature(method).parameters if one not in ("self", "cls")]
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def acall(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                return await method(*args, **kwargs)
            except TypeError as error:
                _hint(error, names, kwargs)
                raise

        return acall  # type: ignore[return-value]  # a coroutine function, as `method`

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except TypeError as error:
            _hint(error, names, kwargs)
            raise

    return call


def hinting_init(made: type[T]) -> type[T]:
    """Do the same for the making of a class."""
    init: Callable[..., None] = vars(made)["__init__"]
    parameters = list(inspect.signature(init).parameters.values())[1:]
    names = [one.name for one in parameters]
    takes_names_only = all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters)

    @functools.wraps(init)
    def call(self: T, /, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            name = type(self).__name__
            if args and takes_names_only:
                fitting = (*_BY_TYPE.get(type(args[0]).__name__, ()), names[0])
                meant = next(one for one in fitting if one in names)
                raise TypeError(
                    f"{name}() takes its values by name, not {short_repr(args[0])} alone. "
                    f"Give {name}({meant}=...); its parameters are {', '.join(names)}."
                ) from None
            _hint(error, names, kwargs, name)
            raise

    type.__setattr__(made, "__init__", call)
    return made


def _hint(
    error: TypeError, names: Sequence[str], given: Mapping[str, object], made: str = ""
) -> None:
    """Raise a better error for a call that does not fit the parameters; else do nothing.

    Args:
        made: the name of the class, if one was to be made.
    """
    frame = error.__traceback__
    if frame is None or frame.tb_next is not None:
        return  # from within the method
    wrong = next((one for one in given if one not in names), "")
    known = [one for one in _ELSEWHERE.get(wrong, ()) if one in names and one not in given]
    like = known or difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if wrong in _SCOPE and "scope" in names:
        hint = f" Give scope=Scope({wrong}=...)."
    elif wrong in _OF_POLICY and "policy" in names:
        hint = f" Give policy=Policy({wrong}=...)."
    elif like:
        hint = f" Did you mean {like[0]!r}?"
    elif wrong:
        hint = f" Its parameters are {', '.join(names)}."
    else:
        hint = " Give scope=Scope(user_id=...)." if "'scope'" in str(error) else ""
        hint = hint or f" Its parameters are {', '.join(names)}."
    text = re.sub(r"^\w+\.__init__\(\)", f"{made}()", str(error)) if made else str(error)
    raise TypeError(f"{text.removesuffix('.')}.{hint}") from None
