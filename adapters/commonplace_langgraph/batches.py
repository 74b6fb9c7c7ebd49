"""A batch of checked ops: first the reads, then all writes at once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import Result

from commonplace import Record, Scope

from .calls import Ask, Plan
from .items import Kept, Put
from .ops import Asked, Checked, Get, Names, Search
from .reads import namespaces, search
from .writes import find, ids_of, overtaken, refresh, write


def plan(ops: Sequence[Checked], asked: Asked) -> Plan[list[Result]]:
    """Carry out checked ops; one result each."""
    template = asked.template
    last = {(op.namespace, op.key): op for op in ops if isinstance(op, Put)}
    records = yield from _records(ops)
    results: list[Result] = []
    read: list[Kept] = []
    for op in ops:
        result: Any = None
        if isinstance(op, Get):
            held = find(records, op, template)
            result = held and held.item()
            read += [held] if held and op.refreshes else []
        elif isinstance(op, Search):
            found = (yield from search(op.look, template))[op.start :]
            result = [one.match(score) for one, score in found]
            read += [one for one, _ in found] if op.refreshes else []
        elif isinstance(op, Names):
            said = op.op
            conditions = said.match_conditions or ()
            names = yield from namespaces(conditions, said.max_depth, template, asked.users)
            result = names[said.offset : said.offset + said.limit]
        results.append(result)
    at = datetime.now(UTC)
    commands = yield from refresh(
        (one for one in read if (one.namespace, one.key) not in last), template, at
    )
    for op in last.values():
        if op.ends:
            asked.ending.add(op.scope)
    asked.ending.update(template.scope_of(one.namespace) for one in read if one.ttl is not None)
    puts = [(op, find(records, op, template)) for op in last.values()]
    commands += write(puts)
    if commands:
        yield Ask("batch", commands, wait=bool(puts))
    late = yield from overtaken(last.values(), template)
    if late:
        yield Ask("batch", late)
    return results


def _records(ops: Sequence[Checked]) -> Plan[dict[str, Record]]:
    """Read the records that may hold what is got or replaced, in one call for each scope."""
    wanted_of: dict[Scope, dict[str, None]] = {}
    for op in ops:
        if isinstance(op, Get | Put):
            wanted_of.setdefault(op.scope, {}).update(dict.fromkeys(ids_of(op.id, op.key)))
    found: dict[str, Record] = {}
    for scope, ids in wanted_of.items():
        records = yield Ask("get_many", list(ids), scope)
        found |= {one.id: one for one in records}
    return found
