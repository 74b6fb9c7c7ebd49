"""Rules for what may be stored and how calls look: ids, texts, times, metadata; hints in errors."""

import difflib
import functools
import inspect
import math
import re
import unicodedata
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from .errors import InvalidRecordError, InvalidScopeError, short_repr

P = ParamSpec("P")
T = TypeVar("T")

SCOPE_FIELDS = ("user_id", "agent_id", "session_id")
MAX_TEXT_BYTES = 32 * 1024
MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # of one that is not stored: facts are extracted from it
MAX_METADATA_BYTES = 16 * 1024 * 1024  # of records that carry a whole file; it is not embedded
_MAX_LABELS = 256  # of a namespace
_MAX_DEPTH = 9  # keys and indexes on the way to a value
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**63 - 1


def check_id(name: str, value: object) -> None:
    """Refuse an id that could be misread: ids are compared whole and shown to people."""
    fault = None
    if type(value) is not str:
        fault = "must be a string"
    elif not 1 <= len(value) <= 256:
        fault = "must have 1 to 256 characters"
    elif value == "*":
        fault = "must not be a wildcard"
    elif not unicodedata.is_normalized("NFC", value):
        # Two spellings of one name would be two half-memories that look the same.
        fault = "must be in the Unicode form NFC"
    elif value != value.strip():
        fault = "must not begin or end with a space"
    elif not value.isprintable() and _hides(value):  # looking at each character takes far longer
        fault = "must not have a control, invisible or surrogate character"
    if fault is not None:
        raise InvalidScopeError(field=name, value=value, reason=fault)


def _hides(text: str) -> bool:
    # Cc: control, Cs: surrogate, Zl/Zp: line breaks; the explicit ones reverse or hide text.
    return any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in text) or bool(
        re.search("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]", text)
    )


def check_text(text: object, field: str = "text", *, limit: int = MAX_TEXT_BYTES) -> None:
    """Refuse a text that has nothing visible, is too long or cannot be encoded.

    Args:
        limit: bytes in UTF-8.
    """
    is_plain = type(text) is str and text.isascii() and text.isprintable() and text.strip()
    if is_plain and len(str(text)) <= limit:  # as most; to look at each character takes longer
        return
    fault = None
    if type(text) is not str:
        fault = "must be a string"
    elif not any(unicodedata.category(c)[0] not in "ZC" for c in text):
        fault = "must have a visible character"
    elif "\x00" in text:
        fault = "must not have a NUL character"
    elif not is_sound(text):
        fault = "must not have a lone surrogate"
    if fault is not None:
        raise InvalidRecordError(field=field, value=text, reason=fault)
    size = len(cast("str", text).encode())
    if size > limit:
        raise InvalidRecordError(
            field=field,
            value=text,
            reason=f"must have at most {limit} bytes, not {size}",
            hint="Split it into several texts.",
        )


def check_name(field: str, value: object) -> None:
    """Refuse a name that is not a text of 1 to 256 characters."""
    if type(value) is not str or not value.strip() or len(value) > 256:
        raise InvalidRecordError(
            field=field, value=value, reason="must be a text of 1 to 256 characters"
        )
    if not (value.isascii() and value.isprintable()):
        check_text(value, field)


def check_uuid(field: str, value: object) -> None:
    """Refuse what cannot be the id of a record."""
    try:
        uuid.UUID(cast("str", value))
    except (AttributeError, TypeError, ValueError):
        reason = "must be the id of a record, a UUID"
        raise InvalidRecordError(field=field, value=value, reason=reason) from None


def check_collection(field: str, given: object, of: str) -> Collection[Any]:
    """Refuse what is not a list or another collection; a text and a dict are none."""
    is_plain = type(given) is list or type(given) is tuple
    if not is_plain and (isinstance(given, str | Mapping) or not isinstance(given, Collection)):
        raise InvalidRecordError(field=field, value=given, reason=f"must be a list of {of}")
    return cast("Collection[Any]", given)


def check_list(field: str, given: object, of: str) -> None:
    """Refuse what is not a list; a text is none, and neither is a dict."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InvalidRecordError(
            field=field, value=given, reason=f"must be a list of {of}", hint="Give one in [ ]."
        )


def check_mapping(field: str, given: object, example: str) -> None:
    """Refuse what is not a mapping; the error shows a right `example`."""
    if not isinstance(given, Mapping):
        raise InvalidRecordError(
            field=field, value=given, reason="must be a dict", hint=f"Give one such as {example}."
        )


def check_ids(field: str, ids: object) -> None:
    """Refuse what is not a list of ids."""
    for record_id in check_collection(field, ids, "ids"):
        check_name(field, record_id)


def check_keys(field: str, keys: object) -> tuple[str, ...]:
    """Refuse what is not a list of keys of metadata; return each of them once, sorted."""
    for key in (given := check_collection(field, keys, "keys of the metadata")):
        if type(key) is not str or not key or _fault(key) is not None:
            raise InvalidRecordError(field=field, value=key, reason="must be a key of the metadata")
    return tuple(sorted(set(given)))


def check_namespace(field: str, namespace: object) -> tuple[str, ...]:
    """Refuse what is not a namespace, that is, a list of labels; return it as a tuple.

    Raises:
        InvalidRecordError: it has more than 256 labels or 32 KiB, or a label is empty or has a NUL
            or a lone surrogate.
    """
    if not isinstance(namespace, list | tuple) or len(namespace) > _MAX_LABELS:
        raise InvalidRecordError(
            field=field, value=namespace, reason=f"must be a list of at most {_MAX_LABELS} labels"
        )
    for label in namespace:
        if type(label) is not str or not label or _fault(label) is not None:
            raise InvalidRecordError(
                field=field,
                value=label,
                reason="must be a label: a string, not empty, without NUL or lone surrogate",
            )
    if sum(len(label.encode()) for label in namespace) > MAX_TEXT_BYTES:
        raise InvalidRecordError(
            field=field, value=namespace, reason=f"must have at most {MAX_TEXT_BYTES} bytes"
        )
    return tuple(namespace)


def check_function(
    field: str, given: object, *, may_be_async: bool = False, arguments: int = 1
) -> None:
    """Refuse what is not a function that is called, and awaited only if it may be asynchronous.

    A class is refused too: to call it makes an object, whatever it is given.

    Args:
        arguments: that it is called with, by position.
    """
    wrong = partial(InvalidRecordError, field=field, value=given)
    if not callable(given) or isinstance(given, type):
        raise wrong(reason="must be a function", hint="Give the function itself.")
    if inspect.iscoroutinefunction(given) and not may_be_async:
        hint = "Use `def` instead of `async def`."
        raise wrong(reason="must be a plain function, as nobody would await it", hint=hint)
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):  # of a function in C
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        some = f"{arguments} argument{'s' * (arguments != 1)}"
        raise wrong(reason=f"must take {some}: {error}") from error


def check_choice(field: str, value: object, options: Sequence[object]) -> None:
    """Refuse a value that is none of the options."""
    if (type(value) is not str or value not in options) and not any(
        value is option or (isinstance(option, str) and value == option) for option in options
    ):
        known = ", ".join(map(str, options))
        raise InvalidRecordError(field=field, value=value, reason=f"must be one of {known}")


def check_flag(field: str, value: object) -> None:
    """Refuse what is not a truth value: the text "false" and None would be taken for one."""
    if type(value) is not bool:
        raise InvalidRecordError(field=field, value=value, reason="must be True or False")


def check_callable(field: str, value: object) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise InvalidRecordError(field=field, value=value, reason="must be a function")


def check_share(field: str, value: object) -> None:
    """Refuse what is not a number in 0..1."""
    _check_number(field, value, 1, "must be in 0..1")


def check_seconds(field: str, value: object) -> None:
    """Refuse what is not a number of seconds from 0 to a billion, as threads take no more."""
    _check_number(field, value, 1e9, "must be a number of seconds from 0 to a billion")


def _check_number(field: str, value: object, most: float, reason: str) -> None:
    if type(value) not in (int, float) or not 0 <= cast("float", value) <= most:
        raise InvalidRecordError(field=field, value=value, reason=reason)


def check_integer(field: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse what is not an integer from `least` on, and up to `most` if that is given."""
    if type(value) is not int or value < least or (most is not None and value > most):
        span = f"from {least}" if most is None else f"in {least}..{most}"
        raise InvalidRecordError(field=field, value=value, reason=f"must be an integer {span}")


def check_time(name: str, value: object) -> None:
    """Refuse a time without a zone: it would mean another moment on another machine."""
    if value is None:
        return
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidRecordError(
            field=name, value=value, reason="must be a datetime with a time zone"
        )
    try:
        value.astimezone(UTC)
    except OverflowError:
        raise InvalidRecordError(
            field=name, value=value, reason="must be within the years 1 to 9999 in UTC"
        ) from None


def check_metadata(metadata: Mapping[str, Any], field: str = "metadata") -> None:
    """Refuse metadata, or another mapping, that JSON, a filter or an engine cannot hold.

    Raises:
        InvalidRecordError: naming the path of the value.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidRecordError(field=field, value=metadata, reason="must be a mapping")
    if not metadata:
        return
    for key in metadata:
        if type(key) is not str or not key:
            raise InvalidRecordError(
                field=f"{field} key", value=key, reason="must be a string that is not empty"
            )
    plain = dict(metadata)
    _check_held((field,), plain)
    import msgspec  # only importing this module does without

    size = len(msgspec.json.encode(plain))
    if size > MAX_METADATA_BYTES:
        raise InvalidRecordError(
            field=field,
            value=f"{size} bytes of JSON",
            reason=f"must have at most {MAX_METADATA_BYTES} bytes",
            hint="Keep the rest in a file, and its name here.",
        )


def _check_held(path: tuple[Any, ...], held: Any) -> None:
    """Check what a dict or a list holds, which these keys and indexes of a field lead to."""
    is_dict = type(held) is dict
    if held and len(path) > _MAX_DEPTH:
        raise InvalidRecordError(
            field=_shown(path), value="…", reason="must not be nested deeper than 8"
        )
    for key, value in held.items() if is_dict else enumerate(held):
        if is_dict and type(key) is not str:
            raise InvalidRecordError(
                field=_shown(path), value=key, reason="must have strings as keys"
            )
        wrong, fault = key, _fault(key) if is_dict else None
        if fault is None:
            if type(value) in (dict, list, tuple):
                _check_held((*path, key), value)
                continue
            wrong, fault = value, _fault(value)
        if fault is not None:
            raise InvalidRecordError(field=_shown((*path, key)), value=wrong, reason=fault)


def _shown(path: tuple[Any, ...]) -> str:
    return "".join([path[0], *(f"[{key!r}]" for key in path[1:])])


def is_sound(text: str) -> bool:
    """Tell whether a text can be encoded, that is, has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fault(value: object) -> str | None:
    if type(value) is str:
        bad = "\x00" in value or not is_sound(value)
        return "must not have a NUL or lone surrogate" if bad else None
    if value is None or type(value) is bool:
        return None
    if type(value) is int:
        is_held = _LEAST_INTEGER <= value <= _MOST_INTEGER
        return None if is_held else "must be a signed integer of 64 bits"
    if type(value) is float:
        return None if math.isfinite(value) else "must be a finite number"
    return "must be a JSON value"


# -- hints for calls that do not fit a signature -------------------------------------------------

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
    "instructions", "header", "intro", "tool_instructions", "scope_search_by_agent", "metadata",
    "tools",
)  # fmt: skip
_BY_TYPE = {"Memory": ("client", "core"), "Policy": ("policy",), "Scope": ("scope",)}


def hinting_call(method: Callable[P, T]) -> Callable[P, T]:
    """Add to the error of a wrong call what the method takes; the call itself is unchanged."""
    names = [name for name in inspect.signature(method).parameters if name not in ("self", "cls")]
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


def hinting_methods(made: type[T]) -> type[T]:
    """Make the public methods of a class hinting calls."""
    for name, member in list(vars(made).items()):
        method = member.__func__ if isinstance(member, classmethod) else member
        if inspect.isfunction(method) and not name.startswith("_"):
            hinting = hinting_call(method)
            setattr(made, name, classmethod(hinting) if method is not member else hinting)
    return made


def hinting_init(made: type[T]) -> type[T]:
    """Do the same for the making of a class."""
    init: Callable[..., None] = vars(made)["__init__"]
    parameters = list(inspect.signature(init).parameters.values())[1:]
    names = [parameter.name for parameter in parameters]
    takes_names_only = all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)

    @functools.wraps(init)
    def call(self: T, /, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            name = type(self).__name__
            if args and takes_names_only:
                fitting = (*_BY_TYPE.get(type(args[0]).__name__, ()), names[0])
                meant = next(name for name in fitting if name in names)
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
    wrong = next((name for name in given if name not in names), "")
    known = [name for name in _ELSEWHERE.get(wrong, ()) if name in names and name not in given]
    like = known or difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if wrong in SCOPE_FIELDS and "scope" in names:
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
    text = text.replace("BlockingMemory.", "Memory.", 1)
    raise TypeError(f"{text.removesuffix('.')}.{hint}") from None
