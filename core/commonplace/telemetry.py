"""Spans and metrics of OpenTelemetry, where the application has imported its API.

The names are those of the semantic conventions for generative AI. Nothing is imported here, so that
a process without OpenTelemetry pays for one look-up a call. Texts are recorded only when
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` asks for it, and ids of users never are.
"""

import functools
import hashlib
import inspect
import json
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPERATIONS = {
    "search": "search_memory",
    "add": "create_memory",
    "update": "update_memory",
    "feedback": "update_memory",
    "restore": "update_memory",
    "batch": "upsert_memory",
    "delete": "delete_memory",
    "forget": "delete_memory",
    # The conventions have no name for these.
    "get": "get_memory",
    "get_many": "get_memory",
    "get_excerpts": "get_memory",
    "list": "list_memory",
    "history": "get_memory_history",
    "relations": "get_memory_relations",
    "entities": "get_memory_relations",
}
"""The operation that each method of a memory is, its async version too."""
_NAME = "commonplace"
_API = "opentelemetry"
_INSIDE = "commonplace-operation"  # what a method calls of the same memory is part of its span
_NOTHING: AbstractContextManager[None] = nullcontext()
_ASKED = ("true", "1", "span_only", "span_and_event")
_LAST = {"trace": "use_span", "metrics": "get_meter"}  # of each, what is there when all is
_signature = functools.cache(inspect.signature)
_memories: "weakref.WeakSet[Any]" = weakref.WeakSet()  # whose backlog is a metric


def traced_methods(made: type[T]) -> type[T]:
    """Make a span of each call of the methods that `OPERATIONS` names."""
    for name, operation in OPERATIONS.items():
        for method in (name, f"a{name}"):
            if method in vars(made):
                setattr(made, method, _traced(vars(made)[method], operation))
    return made


def model_call(operation: str, model: str) -> AbstractContextManager[Any]:
    """Make a span of a call of a model, inside that of the operation that needs it."""
    if not _is_provided("trace", "get_tracer_provider"):
        return _NOTHING
    attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": model}
    return _span(f"{operation} {model}", "INTERNAL", attributes)


def applying(submitters: Sequence[Any]) -> AbstractContextManager[Any]:
    """Make a span of work on accepted writes, as a part of the first one; the others are linked."""
    known = [one for one in submitters if one]
    if not known or not _is_imported("trace"):
        return _NOTHING
    trace = sys.modules["opentelemetry.trace"]
    spans = [trace.get_current_span(one).get_span_context() for one in known[1:]]
    attributes = {"commonplace.operation.count": len(submitters)}
    links = [trace.Link(one) for one in spans if one.is_valid]
    return _span("apply_memory", "INTERNAL", attributes, known[0], links)


def current() -> Any:
    """Return what later work on another thread is a part of; None if nothing is traced."""
    if not _is_imported("trace"):
        return None
    return sys.modules["opentelemetry.context"].get_current() or None


def carried(call: Callable[P, T]) -> Callable[P, T]:
    """Let a call on another thread be a part of what is traced here."""
    here = current()
    if here is None:
        return call

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        context = sys.modules["opentelemetry.context"]
        token = context.attach(here)
        try:
            return call(*args, **kwargs)
        finally:
            context.detach(token)

    return run


def count_event(name: str, operation: str) -> None:
    """Count an event of an agent's memory in the metric `commonplace.agent.events`."""
    if _is_imported("metrics"):
        _metrics()["events"].add(1, {"commonplace.event": name, "commonplace.operation": operation})


def _traced(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def acall(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not _is_traced():
                return await method(self, *args, **kwargs)
            with _operation(self, method, operation, args, kwargs) as tell:
                return tell(await method(self, *args, **kwargs))

        return acall

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not _is_traced():
            return method(self, *args, **kwargs)
        with _operation(self, method, operation, args, kwargs) as tell:
            return tell(method(self, *args, **kwargs))

    return call


def _is_traced() -> bool:
    if _API not in sys.modules:  # as most; then no more is looked up
        return False
    has_provider = _is_provided("trace", "get_tracer_provider")
    if not (has_provider or _is_provided("metrics", "get_meter_provider")):
        return False
    return not sys.modules["opentelemetry.context"].get_value(_INSIDE)


def _is_provided(part: str, given_by: str) -> bool:
    """Tell whether anything takes what is recorded: until a provider is set, the API drops it."""
    if not _is_imported(part):
        return False
    provider = getattr(sys.modules[f"opentelemetry.{part}"], given_by)()
    return "Proxy" not in type(provider).__name__


def _is_imported(part: str) -> bool:
    """Tell whether the application has imported a part of the API, and not only begun to."""
    module = sys.modules.get(f"opentelemetry.{part}")
    return module is not None and hasattr(module, _LAST[part])


@contextmanager
def _operation(
    memory: Any,
    method: Callable[..., Any],
    operation: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Iterator[Callable[[T], T]]:
    """Make a span of a call of a memory; what it yields is given the result."""
    store: str = memory.location
    if kwargs.get("upsert") is True:
        operation = "upsert_memory"
    name = {"gen_ai.operation.name": operation}
    kind = "CLIENT" if "://" in store else "INTERNAL"
    began = time.perf_counter()
    failed: dict[str, str] = {}
    try:
        with _span(operation, kind, {**name, "gen_ai.memory.store.id": store}) as span:
            if not span.is_recording():
                yield _same
                return
            given = bound_arguments(method, (memory, *args), kwargs)
            is_asked = os.environ.get(CONTENT, "").lower() in _ASKED
            span.set_attributes(_described(given) | (_content(memory, given) if is_asked else {}))

            def tell(result: T) -> T:
                if isinstance(result, Iterable):
                    found = list(result)
                    if "record_id" not in given:
                        span.set_attribute("gen_ai.memory.record.count", len(found))
                    if is_asked:
                        texts = [one.text for one in found if hasattr(one, "text")]
                        span.set_attribute("gen_ai.memory.records", _json(texts))
                return result

            yield tell
    except BaseException as error:
        failed = {"error.type": type(error).__name__}
        raise
    finally:
        if _is_imported("metrics"):
            _memories.add(memory)
            _metrics()["duration"].record(time.perf_counter() - began, {**name, **failed})


def _same(result: T) -> T:
    return result


@contextmanager
def _span(
    name: str, kind: str, attributes: Mapping[str, Any], parent: Any = None, links: Any = None
) -> Iterator[Any]:
    """Make a span the current one; an error is told by its class, as its text may be content."""
    trace, context = sys.modules["opentelemetry.trace"], sys.modules["opentelemetry.context"]
    span = _tracer().start_span(
        name, parent, kind=trace.SpanKind[kind], attributes=attributes, links=links
    )
    inside = context.set_value(_INSIDE, value=True, context=trace.set_span_in_context(span, parent))
    token = context.attach(inside)
    try:
        yield span
    except BaseException as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(trace.StatusCode.ERROR)
        raise
    finally:
        context.detach(token)
        span.end()


def bound_arguments(
    method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Name the arguments of a call as its method does; nothing of a call that is wrong."""
    try:
        return _signature(method).bind(*args, **kwargs).arguments
    except TypeError:  # the call is wrong, as it will tell
        return {}


def _described(given: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a call: the records and the owner that it is about, the latter hashed."""
    found: dict[str, Any] = {}
    if isinstance(record := given.get("record_id"), str):
        found["gen_ai.memory.record.id"] = record
        found["gen_ai.memory.record.count"] = 1
    for written in ("content", "commands"):
        if written in given:
            found["gen_ai.memory.record.count"] = len(listed(given[written]))
    keys = [key for one in listed(given.get("scope")) if (key := getattr(one, "key", None))]
    if keys:
        found["commonplace.scope"] = [hashlib.sha256(key.encode()).hexdigest()[:16] for key in keys]
    return found


def _content(memory: Any, given: Mapping[str, Any]) -> dict[str, str]:
    redaction = getattr(memory, "_redaction", None)
    said = [
        text if redaction is None else redaction.text(text)
        for one in listed(given.get("content", given.get("text")))
        if isinstance(text := getattr(one, "text", one), str)
    ]
    if not said:
        return {}
    is_query = "content" not in given and "record_id" not in given
    name = "gen_ai.memory.query.text" if is_query else "gen_ai.memory.records"
    return {name: said[0] if is_query else _json(said)}


def listed(value: Any) -> list[Any]:
    """Make a list of one value or many; an empty one of None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _json(texts: Sequence[str]) -> str:
    return json.dumps([{"content": text} for text in texts], ensure_ascii=False)


@functools.cache
def _tracer() -> Any:
    return sys.modules["opentelemetry.trace"].get_tracer(_NAME)


@functools.cache
def _metrics() -> dict[str, Any]:
    meter = sys.modules["opentelemetry.metrics"].get_meter(_NAME)
    for kind in ("pending", "dead"):
        observe = functools.partial(_backlogs, kind)
        meter.create_observable_gauge(f"commonplace.backlog.{kind}", [observe])
    return {
        "duration": meter.create_histogram("gen_ai.client.operation.duration", unit="s"),
        "events": meter.create_counter("commonplace.agent.events"),
    }


def _backlogs(kind: str, _options: Any) -> Iterator[Any]:
    """Count the accepted writes or dead letters of every open store that was used."""
    found = {}
    for memory in list(_memories):
        with suppress(Exception):  # closed, or away: there is nothing to count
            found[memory.location] = memory.flush(0.0)
    observation = sys.modules["opentelemetry.metrics"].Observation
    for store, left in found.items():
        yield observation(getattr(left, kind), {"gen_ai.memory.store.id": store})
