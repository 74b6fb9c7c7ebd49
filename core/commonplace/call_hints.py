"""Hints in the errors of calls that do not fit a signature."""

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from .errors import short_repr

P = ParamSpec("P")
T = TypeVar("T")
_SCOPE = ("user_id", "agent_id", "session_id")
# What other libraries call a parameter.
_ELSEWHERE = {
    "limit": ("top_k",), "k": ("top_k",), "n": ("top_k",), "filter": ("where",),
    "filters": ("where",), "query": ("text",), "message": ("text", "content"),
    "messages": ("content",), "content": ("text",), "text": ("content",), "data": ("text",),
    "memory_id": ("record_id",), "id": ("record_id",), "user": ("user_id",), "llm": ("chat",),
    "model": ("chat",), "config": ("settings",),
}  # fmt: skip


def hinting_call(method: Callable[P, T]) -> Callable[P, T]:
    """Add to the error of a wrong call what the method takes; the call itself is unchanged."""
    names = list(inspect.signature(method).parameters)[1:]
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
    """Do the same for the making of a class whose values are all given by name."""
    init: Callable[..., None] = vars(made)["__init__"]
    names = list(inspect.signature(init).parameters)[1:]

    @functools.wraps(init)
    def call(self: T, /, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            if args:
                raise TypeError(
                    f"{made.__name__}() takes its values by name, not {short_repr(args[0])} alone. "
                    f"Give {made.__name__}({names[0]}=...); its parameters are {', '.join(names)}."
                ) from None
            _hint(error, names, kwargs)
            raise

    type.__setattr__(made, "__init__", call)
    return made


def _hint(error: TypeError, names: Sequence[str], given: Mapping[str, object]) -> None:
    """Raise a better error for a call that does not fit the parameters; else do nothing."""
    frame = error.__traceback__
    if frame is None or frame.tb_next is not None:
        return  # from within the method
    wrong = next((one for one in given if one not in names), "")
    known = [one for one in _ELSEWHERE.get(wrong, ()) if one in names and one not in given]
    like = known or difflib.get_close_matches(wrong, names, n=1, cutoff=0.5)
    if wrong in _SCOPE and "scope" in names:
        hint = f" Give scope=Scope({wrong}=...)."
    elif like:
        hint = f" Did you mean {like[0]!r}?"
    elif wrong:
        hint = f" Its parameters are {', '.join(names)}."
    else:
        hint = " Give scope=Scope(user_id=...)." if "'scope'" in str(error) else ""
        hint = hint or f" Its parameters are {', '.join(names)}."
    raise TypeError(f"{str(error).replace('.__init__()', '()').removesuffix('.')}.{hint}") from None
