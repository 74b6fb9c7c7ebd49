"""Store reads: checked gets, searches and namespace listings, and the filters they take.

A filter is a mapping from outside; it becomes a predicate of an item's value, or an error. Keys are
AND-ed; where a value has no such key, dots lead to nested ones. `{"a": 1}` equals,
`{"a": {"b": 1}}` is part of, `{"a": {"$gt": 1}}` compares; besides the framework's `$eq $ne $gt
$gte $lt $lte` there are `$in`, `$nin` and `$exists`, and at the top `$or` with a list of filters
and `$threshold` for the least score.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, get_args

from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    SearchOp,
    validate_op_namespace,
)

from commonplace import InvalidFilterError, InvalidRecordError, Kind, Match, Record, Scope
from commonplace.agents import Plan, call, check_choice, check_integer, check_list

from .store_items import (
    PLAIN_SCOPE,
    ItemAddress,
    Namespace,
    NamespaceTemplate,
    StoredItem,
    StoreOptions,
    check_namespace,
    from_labels,
    is_indexable,
    plain_scalar,
    storable_text,
    to_labels,
    to_stored_item,
)

ValuePredicate = Callable[[Any], bool]
ScoredItems = list[tuple[StoredItem, float | None]]

_MAX_QUERY_BYTES = 8 * 1024
_MAX_FILTER_DEPTH = 32
_MAX_ENGINE_CONDITIONS = 12
_MISSING = object()
_COMPARISONS = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_LAST_LABEL = chr(0x10FFFF)  # sorts after the labels of every namespace but a few odd ones
IS_ITEM: Mapping[str, Any] = {"namespace": []}  # others may have a namespace, too
# A conversation is no item.
_KINDS = tuple(kind for kind in get_args(Kind) if kind not in ("episode", "summary"))

# A memory ranks the candidates for 50, or for as many as are asked for. So the first 50 are always
# ranked among those, the next among 200, and so on: whatever the pages, they are one order.
_STEPS = (50, 200, 1_000, 10_000)
_PAGE_SIZE = 1000


# -- checked ops -------------------------------------------------------------------------------


@dataclass(slots=True)
class ItemGet:
    """A checked get."""

    address: ItemAddress
    refreshes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSearch:
    """A checked search.

    Attributes:
        query: empty to list.
        shows_others: what others learned about the user is found too.
        matches: tells whether a value fits the filter; None if every value does.
        where: a filter of the memory, at least as wide.
        start, end: the items that are wanted of all that fit; none if `end` is 0.
        threshold: see `StoreOptions`.
    """

    prefix: Namespace
    query: str
    shows_others: bool
    matches: ValuePredicate | None
    where: Mapping[str, Any]
    start: int
    end: int
    threshold: float | None
    refreshes: bool

    def wants(self, item: StoredItem) -> bool:
        """Tell whether an item is under the prefix, and may be found there and by the query."""
        return (
            item.namespace[: len(self.prefix)] == self.prefix
            and (item.has_place or self.shows_others)
            and (item.indexed or not self.query)
        )


@dataclass(frozen=True, slots=True)
class NamespaceListing:
    """A checked listing of namespaces; each condition is `prefix` or `suffix` and a path."""

    conditions: Sequence[tuple[str, Namespace]]
    max_depth: int | None
    start: int
    end: int

    def wants(self, namespace: Namespace) -> bool:
        """Tell whether a namespace fits the conditions."""
        return all(_fits(namespace, kind, path) for kind, path in self.conditions)


def check_get(op: GetOp, options: StoreOptions) -> ItemGet:
    """Check a get; a `ValueError` if it cannot be carried out."""
    refreshes = options.refreshes if op.refresh_ttl is None else bool(op.refresh_ttl)
    return ItemGet(ItemAddress.of_op(op, options.template), refreshes)


def check_search(op: SearchOp, options: StoreOptions) -> ItemSearch:
    """Check a search; a `ValueError` if it cannot be carried out."""
    prefix = check_namespace(op.namespace_prefix)
    check_integer("limit", op.limit, 0)
    check_integer("offset", op.offset, 0)
    if op.query is not None and not isinstance(op.query, str):
        raise InvalidRecordError(field="query", value=op.query, reason="must be a string")
    matches, threshold, where = check_filter(op.filter)
    shows_others = options.template.shows_others(prefix)
    return ItemSearch(
        prefix=prefix,
        query=storable_text(op.query or "", _MAX_QUERY_BYTES),
        shows_others=shows_others,
        matches=matches,
        where=where if shows_others else {**where, "namespace": to_labels(prefix)},
        start=op.offset,
        end=op.offset + op.limit if op.limit else 0,
        threshold=options.threshold if threshold is None else threshold,
        refreshes=options.refreshes if op.refresh_ttl is None else bool(op.refresh_ttl),
    )


def check_listing(op: ListNamespacesOp) -> NamespaceListing:
    """Check a listing of namespaces; a `ValueError` if it cannot be carried out."""
    conditions = [_condition_of(given) for given in op.match_conditions or ()]
    validate_op_namespace(op._replace(match_conditions=tuple(conditions)))
    check_integer("limit", op.limit, 0)
    check_integer("offset", op.offset, 0)
    if op.max_depth is not None:
        check_integer("max_depth", op.max_depth, 1)
    paths = [(condition.match_type, tuple(condition.path)) for condition in conditions]
    return NamespaceListing(paths, op.max_depth, op.offset, op.offset + op.limit)


def _condition_of(given: Any) -> MatchCondition:
    if not isinstance(given, MatchCondition):
        raise InvalidRecordError(
            field="match_conditions",
            value=given,
            reason="must be a MatchCondition",
            hint="Give MatchCondition(match_type='prefix', path=('memories',)).",
        )
    check_choice("match_type", given.match_type, ("prefix", "suffix"))
    path: Any = given.path
    path = (path,) if isinstance(path, str) else path
    check_list("path", path, "labels")
    return given._replace(path=tuple(path))


# -- search ------------------------------------------------------------------------------------


def scopes_of(prefix: Namespace, template: NamespaceTemplate) -> Plan[list[Scope]]:
    """List the scopes that may hold items under a prefix, the one of no user first."""
    if not template.is_open(prefix):
        return [template.scope_of(prefix)]
    users = yield call("admin.list_users", to_labels(prefix))
    return [PLAIN_SCOPE, *(template.scope_of_user(prefix, user) for user in users)]


def search(op: ItemSearch, options: StoreOptions) -> Plan[ScoredItems]:
    """Find the items from `start` to `end`: best first by a query, else newest first."""
    if op.end == 0:
        return []
    scopes = yield from scopes_of(op.prefix, options.template)
    found = yield from (_ranked if op.query else _listed)(op, scopes, options)
    return found[op.start : op.end]


def _predicate(
    op: ItemSearch, template: NamespaceTemplate, read: dict[str, StoredItem] | None = None
) -> Callable[[Record], bool] | None:
    """Make the predicate of records that hold an item which is asked for.

    None where the memory's own filter is exact: for a query alone, where there are only items.

    Args:
        read: takes the items that are let through, by record, so that they are decoded once.
    """
    if op.query and op.matches is None and not op.shows_others:
        return None

    def predicate(record: Record) -> bool:
        item = to_stored_item(record, template)
        if not op.wants(item) or (not op.query and item.part):
            return False
        if op.matches is not None and not op.matches(item.value()):
            return False
        if read is not None:
            read[record.id] = item
        return True

    return predicate


def _listed(op: ItemSearch, scopes: Sequence[Scope], options: StoreOptions) -> Plan[ScoredItems]:
    read: dict[str, StoredItem] = {}
    asking = {"predicate": _predicate(op, options.template, read), "where": op.where}
    found: list[Record] = []
    cursors: dict[Scope, str | None] = dict.fromkeys(scopes)
    while cursors:
        # Of many scopes each has but few of the newest.
        size = min(_PAGE_SIZE, 1 + (op.end - 1) // len(cursors))
        pages = yield [
            call("list", scope, limit=size, cursor=cursor, kinds=_KINDS, **asking)
            for scope, cursor in cursors.items()
        ]
        found = sorted((*found, *(record for page in pages for record in page)), key=_age)
        del found[op.end :]
        last = _age(found[-1]) if len(found) == op.end else None
        cursors = {
            scope: page.cursor
            for scope, page in zip(cursors, pages, strict=True)
            if page.cursor and (last is None or _age(page[-1]) < last)
        }
    return [(read[record.id], None) for record in found]


def _age(record: Record) -> tuple[float, int]:
    """Order records as a page does, newest first."""
    return -record.created_at.timestamp(), -int(record.id.replace("-", ""), 16)


def _ranked(op: ItemSearch, scopes: Sequence[Scope], options: StoreOptions) -> Plan[ScoredItems]:
    template = options.template
    by_cosine = options.ranking == "similarity"
    asking = {
        "where": op.where,
        "predicate": _predicate(op, template),
        "threshold": None if by_cosine else op.threshold,
        "ranking": options.ranking,
    }
    found: ScoredItems = []
    seen: set[tuple[Namespace, str]] = set()
    lowest = 1.0
    # By cosine alone the order is the same whatever is asked for.
    first = op.end if by_cosine else min(op.end, _STEPS[0])
    for step in (first, *(step for step in _STEPS if step > first)):
        if step > _STEPS[-1]:
            break
        matches = yield call("search", op.query, scopes, top_k=step, kinds=_KINDS, **asking)
        for item, score in (yield from _resolve_parts(matches, op, template)):
            if (item.namespace, item.key) not in seen:
                seen.add((item.namespace, item.key))
                lowest = min(lowest, score)
                found.append((item, lowest))
        if len(found) >= op.end or len(matches) < step:
            least = op.threshold if by_cosine and op.threshold is not None else -1.0
            return [(item, score) for item, score in found if (score or 0.0) >= least]
    raise InvalidRecordError(
        field="limit",
        value=op.end,
        reason=f"goes with the offset beyond the {_STEPS[-1]:,} best of a query",
        hint="Ask for fewer, narrow the filter, or list without a query.",
    )


def _resolve_parts(
    matches: Sequence[Match], op: ItemSearch, template: NamespaceTemplate
) -> Plan[list[tuple[StoredItem, float]]]:
    """Put the item in the place of a part that was found; drop parts that it no longer has."""
    found = [(to_stored_item(match.record, template), match.score) for match in matches]
    # The memory has compared it already; this check does not depend on that being right.
    found = [(item, score) for item, score in found if op.wants(item)]
    wanted: dict[Scope, dict[str, None]] = {}
    for item, _ in found:
        if item.part:
            wanted.setdefault(template.scope_of(item.namespace), {})[item.of] = None
    if not wanted:
        return found
    read = yield [call("get_many", list(ids), scope) for scope, ids in wanted.items()]
    wholes = {record.id: to_stored_item(record, template) for some in read for record in some}
    pairs = [(wholes.get(item.of) if item.part else item, item, score) for item, score in found]
    return [(whole, score) for whole, item, score in pairs if whole and whole.round == item.round]


# -- namespaces --------------------------------------------------------------------------------


def list_namespaces(op: NamespaceListing, options: StoreOptions) -> Plan[list[Namespace]]:
    """List the namespaces of live items, each once, in their order."""
    if op.start == op.end:
        return []
    prefixes = [path for kind, path in op.conditions if kind == "prefix"]
    literal = (path[: path.index("*")] if "*" in path else path for path in prefixes)
    prefix = max(literal, key=len, default=())
    if options.template.shows_others(prefix):
        held = yield from _namespaces_of_user(prefix, options.template)
        found = sorted({namespace[: op.max_depth] for namespace in held if op.wants(namespace)})
    else:
        others = [one for one in op.conditions if one != ("prefix", prefix)]  # what is read fits it
        op = replace(op, conditions=others)
        found = yield from _namespaces_of_items(op, prefix, options.template)
    return found[op.start : op.end]


def _namespaces_of_items(
    op: NamespaceListing, prefix: Namespace, template: NamespaceTemplate
) -> Plan[list[Namespace]]:
    """List the namespaces of items up to `op.end`, and read few more."""
    found: dict[Namespace, None] = {}
    depth, conditions, scope_of = op.max_depth, op.conditions, template.scope_of
    size, after = op.end, ()
    while True:
        size = min(max(size, 1), _PAGE_SIZE)
        page = yield call("admin.list_namespaces", to_labels(prefix), after=after, limit=size)
        for labels, scopes in page.items():
            after = labels
            namespace = from_labels(labels)
            if not namespace or not any(map(scope_of(namespace).covers, scopes)):
                continue
            if not conditions or op.wants(namespace):
                found[namespace[:depth] if depth else namespace] = None
                if depth and len(labels) > depth:  # the rest below is the same
                    after = (*labels[:depth], _LAST_LABEL)
        if len(found) >= op.end or len(page) < size:
            return [*found]
        size *= 4


def _namespaces_of_user(prefix: Namespace, template: NamespaceTemplate) -> Plan[set[Namespace]]:
    """List the namespaces of what is shown of a user, items or not."""
    scope = template.scope_of(prefix)
    elsewhere: list[Mapping[str, Any]] = [{"NOT": [IS_ITEM]}]
    held: set[Namespace] = set()
    for labels in (yield call("admin.namespaces", scope)):
        namespace = from_labels(labels)
        own = template.scope_of(namespace)
        if namespace and (own.covers(scope) or scope.covers(own)):
            held.add(namespace)
        else:
            elsewhere.append({"namespace": labels})
    is_one = template.shows_others_in_one(scope)

    def predicate(record: Record) -> bool:
        item = to_stored_item(record, template)
        held.add(item.namespace)
        return is_one and not item.has_place  # else none gets onto the page, and all are looked at

    for where in elsewhere:
        yield call("list", scope, where=where, predicate=predicate, kinds=_KINDS, limit=1)
    return held


def _fits(namespace: Namespace, kind: str, path: Namespace) -> bool:
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(want in ("*", held) for held, want in zip(part, path, strict=True))


# -- filters -----------------------------------------------------------------------------------


class _StoreFilterError(InvalidFilterError):
    """A filter that this language does not have; also a ValueError, as in every other store."""

    def __init__(self, part: object, reason: str) -> None:
        hint = (
            "There are {'field': value}, $eq $ne $gt $gte $lt $lte $in $nin $exists under a field, "
            "and $or and $threshold beside fields."
        )
        super().__init__(part=part, reason=reason, hint=hint)


def check_filter(
    given: Mapping[str, Any] | None,
) -> tuple[ValuePredicate | None, float | None, Mapping[str, Any]]:
    """Check a filter.

    Returns:
        What tells whether a value fits, None if every value does; the threshold, None for the
        store's own; and a filter of the memory that is at least as wide.

    Raises:
        InvalidFilterError: it has an unknown operator, or a value that JSON does not have.
    """
    if given and not isinstance(given, Mapping):
        raise _StoreFilterError(given, "must be a mapping")
    plain = dict(given or {})
    threshold = plain.pop("$threshold", None)
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0 <= threshold <= 1):
        raise _StoreFilterError({"$threshold": threshold}, "must be in 0..1")
    if not plain:
        return None, threshold, {}
    matches = _all(plain, 0)
    narrowing = [(key, _engine_condition(key, value)) for key, value in plain.items()]
    known = [(key, condition) for key, condition in narrowing if condition is not None]
    first = dict(known[:_MAX_ENGINE_CONDITIONS])
    return matches, threshold, {"OR": [first, {"spill": True}]} if known else {}


def _engine_condition(key: str, given: object) -> Any:
    """Make the memory's own condition on an indexed field; None when it has none."""
    if isinstance(given, Mapping):
        if len(given) != 1:
            return None
        ((operator, given),) = given.items()
        if operator == "$in" and isinstance(given, list | tuple) and 0 < len(given) <= 16:
            return list(given) if all(is_indexable(key, option) for option in given) else None
        if operator != "$eq":
            return None
    return given if is_indexable(key, given) else None


def _all(given: Mapping[str, Any], depth: int) -> ValuePredicate:
    predicates = [_entry(key, part, depth) for key, part in given.items()]
    return lambda value: isinstance(value, Mapping) and all(fits(value) for fits in predicates)


def _entry(key: object, given: Any, depth: int) -> ValuePredicate:
    if key == "$or":
        is_list = isinstance(given, list | tuple) and bool(given) and depth <= _MAX_FILTER_DEPTH
        if not is_list or not all(isinstance(part, Mapping) for part in given):
            raise _StoreFilterError({"$or": given}, "must be a list of filters")
        predicates = [_all(part, depth + 1) for part in given]
        return lambda value: any(fits(value) for fits in predicates)
    if not isinstance(key, str) or key.startswith("$"):
        raise _StoreFilterError(key, "must be a field, as operators stand under one")
    predicate = _condition(given, depth)
    return lambda value: predicate(_value_at(value, key))


def _value_at(value: Mapping[str, Any], key: str) -> Any:
    """Read the value of a key, else that to which its dots lead; `_MISSING` if there is none."""
    if key in value or "." not in key:
        return value.get(key, _MISSING)
    held: Any = value
    for part in key.split("."):
        if not isinstance(held, Mapping) or part not in held:
            return _MISSING
        held = held[part]
    return held


def _condition(given: Any, depth: int) -> ValuePredicate:
    if depth > _MAX_FILTER_DEPTH:
        raise _StoreFilterError("…", f"must not be nested deeper than {_MAX_FILTER_DEPTH}")
    if isinstance(given, Mapping):
        if any(isinstance(key, str) and key.startswith("$") for key in given):
            predicates = [_operator(key, operand, depth) for key, operand in given.items()]
            return lambda held: all(fits(held) for fits in predicates)
        return _all(given, depth + 1)
    if isinstance(given, list | tuple):
        each = [_condition(element, depth + 1) for element in given]
        return lambda held: (
            isinstance(held, list)
            and len(held) == len(each)
            and all(fits(element) for fits, element in zip(each, held, strict=True))
        )
    given = _operand(given)
    if given is None:
        return lambda held: held is None or held is _MISSING
    return lambda held: held == given and isinstance(held, bool) == isinstance(given, bool)


def _operator(name: object, given: Any, depth: int) -> ValuePredicate:
    if name in ("$eq", "$ne"):
        same = _condition(given, depth + 1)
        return same if name == "$eq" else lambda held: not same(held)
    if name in ("$in", "$nin"):
        if not isinstance(given, list | tuple | set | frozenset):
            raise _StoreFilterError({name: given}, "must be a list")
        predicates = [_condition(option, depth + 1) for option in given]
        return lambda held: any(fits(held) for fits in predicates) == (name == "$in")
    if name == "$exists":
        return lambda held: (held is not _MISSING) == bool(given)
    compare = _COMPARISONS.get(str(name))
    if compare is None:
        raise _StoreFilterError({name: given}, "has an unknown operator")
    limit = _operand(given)
    return lambda held: _compares(compare, held, limit)


def _compares(compare: Callable[[Any, Any], bool], held: Any, limit: Any) -> bool:
    if isinstance(held, str) and isinstance(limit, str):
        return compare(*_comparable(held, limit))
    # A number that came as text is one beside a number.
    held, limit = _number(held), _number(limit)
    return held is not None and limit is not None and compare(held, limit)


def _comparable(held: str, limit: str) -> tuple[Any, Any]:
    """Make times of two texts that both are ISO times; else compare them as texts."""
    try:
        moments = [datetime.fromisoformat(text) for text in (held, limit)]
    except ValueError:
        return held, limit
    first, second = (at if at.tzinfo else at.replace(tzinfo=UTC) for at in moments)
    return first, second


def _number(value: object) -> float | int | None:
    if isinstance(value, int | float):
        return None if isinstance(value, bool) else value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _operand(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, float):  # NaN equals nothing, and is above nothing
        return value
    try:
        return plain_scalar("filter", value)
    except InvalidRecordError:
        raise _StoreFilterError(value, "must be a JSON value") from None
