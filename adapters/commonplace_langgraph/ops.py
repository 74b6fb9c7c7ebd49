"""The framework's ops, checked: what a batch does is known to be possible before it begins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from commonplace import CommonplaceError, InvalidRecordError, Scope

from .conditions import wanted
from .items import Put, facts, item_id
from .namespaces import Namespace, Template, Users
from .reads import Look
from .values import texts_of, to_json, visible

_QUESTION = 8 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a store was made.

    Attributes:
        ending: scopes in which something with an end was put or read, for the sweeper.
    """

    template: Template
    users: Users | None
    fields: tuple[str, ...]
    threshold: float | None
    refreshes: bool
    ending: set[Scope] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Get:
    """A checked get."""

    namespace: Namespace
    key: str
    scope: Scope
    id: str
    refreshes: bool


@dataclass(frozen=True, slots=True)
class Search:
    """A checked search; `start` items of what it finds are passed over."""

    look: Look
    start: int
    refreshes: bool


@dataclass(frozen=True, slots=True)
class Names:
    """A checked listing of namespaces."""

    op: ListNamespacesOp


class _BadNamespace(InvalidNamespaceError, CommonplaceError):
    """A namespace that cannot be written to; also the framework's own error."""

    def __init__(self, namespace: object, reason: str) -> None:
        super().__init__(f"The namespace {namespace!r} {reason}. Give a tuple of other labels.")


Checked = Get | Put | Search | Names


def check(ops: Iterable[Op], asked: Asked) -> list[Checked]:
    """Check every op.

    Raises:
        ValueError: one cannot be as it is.
    """
    return [_check(op, asked) for op in ops]


def _check(op: Op, asked: Asked) -> Checked:
    if isinstance(op, GetOp | SearchOp):
        refreshes = asked.refreshes if op.refresh_ttl is None else bool(op.refresh_ttl)
    if isinstance(op, PutOp):
        return _put(op, asked)
    if isinstance(op, GetOp):
        namespace, key = _namespace(op, op.namespace), str(op.key)
        scope = asked.template.scope_of(namespace)
        return Get(namespace, key, scope, item_id(scope, namespace, key), refreshes)
    if isinstance(op, SearchOp):
        return _search(op, asked, refreshes)
    if isinstance(op, ListNamespacesOp):
        conditions = [one._replace(path=_path(one.path)) for one in op.match_conditions or ()]
        op = op._replace(match_conditions=tuple(conditions))
        validate_op_namespace(op)
        for one in conditions:
            if one.match_type not in ("prefix", "suffix"):
                raise _refused("match_type", one.match_type, "is neither prefix nor suffix")
        _count("limit", op.limit)
        _count("offset", op.offset)
        if op.max_depth is not None:
            _count("max_depth", op.max_depth, 1)
        return Names(op)
    raise _refused("op", op, "is no op of a store")


def _search(op: SearchOp, asked: Asked, refreshes: bool) -> Search:  # noqa: FBT001 -- private
    prefix = _namespace(op, op.namespace_prefix)
    _count("limit", op.limit)
    _count("offset", op.offset)
    if op.query is not None and not isinstance(op.query, str):
        raise _refused("query", op.query, "is no text")
    said = wanted(op.filter)
    threshold = asked.threshold if said.threshold is None else said.threshold
    look = Look(
        prefix=prefix,
        scopes=asked.template.scopes(prefix, asked.users),
        query=visible(op.query or "", _QUESTION),
        wanted=said,
        until=op.offset + op.limit if op.limit else 0,
        threshold=threshold,
    )
    return Search(look, op.offset, refreshes)


def _put(op: PutOp, asked: Asked) -> Put:
    namespace, key = _namespace(op, op.namespace), str(op.key)
    scope = asked.template.scope_of(namespace)
    own = item_id(scope, namespace, key)
    if op.value is None:
        return Put(namespace=namespace, key=key, scope=scope, id=own)
    if not namespace or namespace[0] == "langgraph":
        why = "is empty" if not namespace else "begins with 'langgraph', which is reserved"
        raise _BadNamespace(namespace, why)
    held = to_json(op.value)  # before its texts are looked for
    ttl = _minutes(op.ttl)
    said = facts(
        namespace,
        key,
        op.value,
        held=held,
        texts=texts_of(op.value, asked.fields if op.index is None else op.index),
        ttl=ttl,
        at=datetime.now(UTC),
        of=own,
    )
    return Put(namespace=namespace, key=key, scope=scope, id=own, facts=said, ends=ttl is not None)


def _namespace(op: Op, given: Sequence[str]) -> Namespace:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise _BadNamespace(given, "is no tuple of labels")
    validate_op_namespace(op)
    return tuple(str.__str__(one) for one in given)


def _path(given: Any) -> Namespace:
    return (given,) if isinstance(given, str) else tuple(given)


def _count(name: str, value: object, least: int = 0) -> None:
    if type(value) is not int or value < least:
        raise _refused(name, value, f"is no whole number of {least} or more")


def _minutes(ttl: object) -> float | None:
    if ttl is None:
        return None
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and 0 <= ttl < 1e9:
        return float(ttl)
    raise _refused("ttl", ttl, "is no number of minutes; None is for ever")


def _refused(field: str, value: object, reason: str) -> InvalidRecordError:
    return InvalidRecordError(field=field, value=value, reason=reason)
