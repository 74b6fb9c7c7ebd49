"""Reading: items of a namespace and below, by a query, a filter or both, page by page."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import MatchCondition

from commonplace import InvalidRecordError, Match, Record, Scope

from .calls import Ask, Plan
from .conditions import Wanted
from .items import Kept, kept
from .namespaces import PLAIN, Namespace, Template, Users, folder

# What is ranked depends a little on how much is asked for. So the first 10 are always ranked among
# 10, the next among 25: whatever the pages, together they are one order.
_STEPS = (10, 25, 100, 400, 1000)
_PAGE = 1000

Found = list[tuple[Kept, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A checked search.

    Attributes:
        scopes: where items that begin with `prefix` may be.
        query: empty to list.
        until: items wanted, from the first.
    """

    prefix: Namespace
    scopes: Sequence[Scope]
    query: str
    wanted: Wanted
    until: int
    threshold: float | None


def judge_of(look: Look, scope: Scope, template: Template) -> Callable[[Record], bool] | None:
    """Make the function that says of a record whether it is an item that was asked for.

    None where the memory's own filter is exact: in a folder, by a query alone.
    """
    size, matches = len(look.prefix), look.wanted.matches
    if look.query and matches is None and _is_folder(look, scope, template):
        return None

    def judge(record: Record) -> bool:
        one = kept(record, template)
        if one.namespace[:size] != look.prefix or (not look.query and one.part):
            return False
        if look.query and not one.indexed:
            return False
        return matches is None or matches(one.read())

    return judge


def search(look: Look, template: Template) -> Plan[Found]:
    """Find items: by a query best first, ties by record; else newest first."""
    if look.until == 0:
        return []
    several: list[Found] = []
    for scope in look.scopes:
        how = _ranked if look.query else _listed
        several.append((yield from how(look, scope, template)))
    if len(several) == 1:
        return several[0][: look.until]
    found = [one for some in several for one in some]
    if look.query:
        found.sort(key=lambda one: (-(one[1] or 0.0), one[0].record.id))
    return found[: look.until]


def _where(look: Look, scope: Scope, template: Template) -> dict[str, Any] | None:
    where = dict(look.wanted.where or {})
    if _is_folder(look, scope, template):
        where["under"] = folder(look.prefix)
    return where or None


def _is_folder(look: Look, scope: Scope, template: Template) -> bool:
    return bool(look.prefix) and (scope == PLAIN or template.narrows(look.prefix))


def _listed(look: Look, scope: Scope, template: Template) -> Plan[Found]:
    judge, where = judge_of(look, scope, template), _where(look, scope, template)
    found: Found = []
    cursor = None
    while len(found) < look.until:
        limit = min(_PAGE, look.until - len(found))
        page = yield Ask("list", scope, where=where, predicate=judge, limit=limit, cursor=cursor)
        found += [(kept(one, template), None) for one in page.records]
        cursor = page.cursor
        if cursor is None:
            break
    return found


def _ranked(look: Look, scope: Scope, template: Template) -> Plan[Found]:
    judge, where = judge_of(look, scope, template), _where(look, scope, template)
    asked = {"where": where, "predicate": judge, "threshold": look.threshold}
    found: Found = []
    seen: set[tuple[Namespace, str]] = set()
    lowest = 1.0
    for step in _STEPS:
        matches = yield Ask("search", look.query, scope, top_k=step, **asked)
        whole = yield from _whole(matches, look, scope, template)
        for one, score in whole:
            if (one.namespace, one.key) not in seen:
                seen.add((one.namespace, one.key))
                lowest = min(lowest, score)
                found.append((one, lowest))
        if len(found) >= look.until or len(matches) < step:
            return found
    raise InvalidRecordError(
        field="limit", value=look.until, reason="goes beyond the 1,000 best of a query",
        hint="Ask for fewer, narrow the filter, or list without a query.",
    )  # fmt: skip


def _whole(
    matches: Sequence[Match], look: Look, scope: Scope, template: Template
) -> Plan[list[tuple[Kept, float]]]:
    """Put the item in the place of a part that was found; drop parts that it no longer has."""
    found = [(kept(one.record, template), one.score) for one in matches]
    # The memory has looked already; this look does not depend on it being right.
    found = [one for one in found if one[0].namespace[: len(look.prefix)] == look.prefix]
    wanted = list({one.of for one, _ in found if one.part})
    if not wanted:
        return found
    records = yield Ask("get_many", wanted, scope)
    items = {one.id: kept(one, template) for one in records}
    whole = []
    for one, score in found:
        item = items.get(one.of) if one.part else one
        if item is not None and item.round == one.round:
            whole.append((item, score))
    return whole


def namespaces(
    conditions: Iterable[MatchCondition],
    max_depth: int | None,
    template: Template,
    users: Users | None,
) -> Plan[list[Namespace]]:
    """List the namespaces of live items, each once, sorted."""
    said = [(one.match_type, tuple(one.path)) for one in conditions]
    literal = [path[: path.index("*")] if "*" in path else path for _, path in said]
    prefixes = [path for path, (kind, _) in zip(literal, said, strict=True) if kind == "prefix"]
    prefix = max(prefixes, key=len, default=())
    nothing = Wanted()
    scopes = template.scopes(prefix, users)
    look = Look(prefix=prefix, scopes=scopes, query="", wanted=nothing, until=0, threshold=None)
    held: set[Namespace] = set()
    for scope in scopes:
        # Names are all that is wanted: no record gets as far as the page.
        names: set[Namespace] = set()

        def judge(record: Record, names: set[Namespace] = names) -> bool:
            names.add(kept(record, template).namespace)
            return False

        yield Ask("list", scope, where=_where(look, scope, template), predicate=judge, limit=1)
        held |= names
    fitting = (one for one in held if all(_fits(one, kind, path) for kind, path in said))
    return sorted({one if max_depth is None else one[:max_depth] for one in fitting})


def _fits(namespace: Namespace, kind: str, path: Namespace) -> bool:
    if len(path) > len(namespace):
        return False
    end = len(namespace) - len(path)
    part = namespace[: len(path)] if kind == "prefix" else namespace[end:]
    return all(want in ("*", held) for held, want in zip(part, path, strict=True))
