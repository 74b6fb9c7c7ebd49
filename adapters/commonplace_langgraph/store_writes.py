"""Store writes: checked puts, the commands that carry them out, and the sweep of expired items."""

import json
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from langgraph.store.base import PutOp

from commonplace import Command, Delete, Fact, InvalidRecordError, Record, Revise, Scope, Upsert
from commonplace.agents import Plan, call

from .store_items import (
    ENTRY,
    ItemAddress,
    ItemNamespaceError,
    NamespaceTemplate,
    StoredItem,
    StoreOptions,
    item_facts,
    storable_text,
    text_hash,
    texts_of,
    to_plain,
    to_stored_item,
)
from .store_queries import IS_ITEM, scopes_of

_MAX_FACTS = 1000  # in one command
_SWEEP_PAGE_SIZE = 1000
_DEFAULT_SWEEP_MINUTES = 5.0
_MAX_SWEEP_MINUTES = 1e7  # a thread waits for no longer
_SLACK = 0.01  # of its minutes that an item may end too early, so that not every read is a write

_log = logging.getLogger("commonplace_langgraph")


@dataclass(frozen=True, slots=True)
class ItemPut:
    """A checked write of one item.

    Attributes:
        facts: what holds it: itself, then its other texts. None deletes it.
        ttl: minutes; None for ever.
    """

    address: ItemAddress
    facts: tuple[Fact, ...] = ()
    ttl: float | None = None


def check_put(op: PutOp, options: StoreOptions) -> ItemPut:
    """Check a put or delete; a `ValueError` if it cannot be carried out."""
    address = ItemAddress.of_op(op, options.template)
    if op.value is None:
        return ItemPut(address)
    namespace = address.namespace
    if not namespace or namespace[0] == "langgraph":
        why = "must not begin with 'langgraph'" if namespace else "must not be empty"
        raise ItemNamespaceError(namespace, why)
    value = to_plain(op.value)
    if options.redact is not None:
        value = options.redact(value)
    ttl = check_ttl("ttl", op.ttl)
    texts = texts_of(value, options.fields if op.index is None else _check_paths(op.index))
    return ItemPut(address, item_facts(address, value, texts, ttl), ttl)


def _check_paths(paths: object) -> Sequence[str]:
    if paths is False:
        return ()
    if isinstance(paths, str) or not (
        isinstance(paths, Sequence) and all(isinstance(path, str) for path in paths)
    ):
        raise InvalidRecordError(
            field="index", value=paths, reason="must be False or a list of paths, such as 'text'"
        )
    return paths


def put_commands(puts: Sequence[tuple[ItemPut, StoredItem | None]]) -> list[Command]:
    """Make the commands that carry out puts, each given with the item that it replaces.

    A put to a record that others wrote changes that record, so that they see the correction.
    """
    commands: list[Command] = []
    upserts: dict[Scope, list[Fact]] = {}
    for put, before in puts:
        address, facts = put.address, list(put.facts)
        if before is not None:
            commands += address.delete_parts(max(1, len(facts)), before.parts)
            if not facts:
                commands.append(Delete(record_id=before.record.id, scope=before.record.scope))
            elif before.record.id != address.id:
                facts = [_part_of(fact, before.record.id) for fact in facts]
                commands.append(_revise(cast("Record", before.record), facts.pop(0)))
        upserts.setdefault(address.scope, []).extend(facts)
    for scope, facts in upserts.items():
        for start in range(0, len(facts), _MAX_FACTS):
            some = facts[start : start + _MAX_FACTS]
            commands.append(Upsert(facts=some, scope=scope, unredacted=(ENTRY,)))
    return commands


def stale_part_commands(
    puts: Iterable[ItemPut], template: NamespaceTemplate
) -> Plan[list[Command]]:
    """Make the commands that delete the parts of concurrent writes which these replaced.

    Another thread may have put more texts under a key after it was read here; the item has them
    no more, but other agents would find them.
    """
    commands: list[Command] = []
    by_scope: dict[Scope, dict[str, ItemAddress]] = {}
    for put in puts:
        next_part = put.address.part_id(max(1, len(put.facts)))
        by_scope.setdefault(put.address.scope, {})[next_part] = put.address
    for scope, addresses in by_scope.items():
        records = yield call("get_excerpts", list(addresses), scope)
        parts = [(addresses[record.id], to_stored_item(record, template)) for record in records]
        if not parts:
            continue
        records = yield call("get_excerpts", list({part.of for _, part in parts}), scope)
        items = {record.id: to_stored_item(record, template) for record in records}
        for address, part in parts:
            item = items.get(part.of)
            if item is None or item.round != part.round:
                commands += address.delete_parts(part.part, part.parts)
    return commands


def refresh_commands(
    items: Iterable[StoredItem], template: NamespaceTemplate, at: datetime
) -> Plan[list[Command]]:
    """Make the commands that extend the time to live of items that were read, with all parts."""
    commands: list[Command] = []
    parts: dict[Scope, dict[str, datetime]] = {}
    for item in {item.record.id: item for item in items}.values():
        later = _later_end(item.record.expires_at, item.ttl, at)
        if later is None:
            continue
        address = ItemAddress.of(item.namespace, item.key, template)
        ids = (item.record.id, *(address.part_id(part) for part in range(1, item.parts)))
        parts.setdefault(address.scope, {}).update(dict.fromkeys(ids, later))
    for scope, end_of in parts.items():
        records = yield call("get_many", list(end_of), scope)
        commands += [Revise(record=record, expires_at=end_of[record.id]) for record in records]
    return commands


def restart_commands(puts: Iterable[ItemPut]) -> Plan[list[Command]]:
    """Make the commands that let times to live count from now, when their items are stored.

    A slow model may have used up some of them.
    """
    at = datetime.now(UTC)
    commands: list[Command] = []
    for put in puts:
        ends = put.facts[0].expires_at if put.facts else None
        later = _later_end(ends, put.ttl, at)
        if later is None:
            continue
        address = put.address
        parts = (address.part_id(part) for part in range(1, len(put.facts)))
        records = yield [
            call("get", record_id, address.scope, include_expired=True)
            for record_id in (*address.record_ids, *parts)
        ]
        commands += [
            Revise(record=record, expires_at=later)
            for record in records
            if record and record.expires_at == ends
        ]
    return commands


def _later_end(ends: datetime | None, minutes: float | None, at: datetime) -> datetime | None:
    """Compute when what lives so many minutes from `at` on ends; None if that is hardly later."""
    if ends is None or minutes is None:
        return None
    lives = timedelta(minutes=minutes)
    return at + lives if at + lives - ends > lives * _SLACK else None


def _revise(record: Record, fact: Fact) -> Revise:
    entry = fact.metadata[ENTRY]
    # Who wrote the record reads its text, which the store shows as `content`.
    content = json.loads(entry["value"]).get("content")
    text = (storable_text(content) if isinstance(content, str) else "") or fact.text
    return Revise(
        record=record,
        text=text,
        metadata={**fact.metadata, ENTRY: {**entry, "told": text_hash(text)}},
        namespace=fact.namespace,
        expires_at=fact.expires_at,
        unredacted=(ENTRY,),
    )


def _part_of(fact: Fact, record_id: str) -> Fact:
    entry = fact.metadata[ENTRY]
    if "of" not in entry:
        return fact
    return replace(fact, metadata={**fact.metadata, ENTRY: {**entry, "of": record_id}})


def check_ttl(field: str, ttl: object) -> float | None:
    """Return a number of minutes; None is for ever.

    Raises:
        InvalidRecordError: it is none.
    """
    if ttl is None:
        return None
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and 0 <= ttl < 1e9:
        return float(ttl)
    raise InvalidRecordError(
        field=field, value=ttl, reason="must be a number of minutes, or None for ever"
    )


# -- expiry ------------------------------------------------------------------------------------


def sweep_expired(options: StoreOptions, at: datetime) -> Plan[int]:
    """Delete the expired items of every namespace; return how many."""
    count = 0

    def is_expired(record: Record) -> bool:
        ends = record.expires_at
        if ends is None or ends > at:
            return False
        return to_stored_item(record, options.template).encoded is not None

    for scope in (yield from scopes_of((), options.template)):
        cursor = None
        while True:
            page = yield call(
                "list",
                scope,
                where=IS_ITEM,
                predicate=is_expired,
                include_superseded=True,
                include_expired=True,
                limit=_SWEEP_PAGE_SIZE,
                cursor=cursor,
            )
            if page:
                deletions = [Delete(record_id=record.id, scope=record.scope) for record in page]
                yield call("batch", deletions)
            count += sum(not to_stored_item(record, options.template).part for record in page)
            cursor = page.cursor
            if cursor is None:
                break
    return count


def check_minutes(field: str, value: object) -> None:
    """Refuse what is not a number of minutes above zero."""
    is_number = type(value) in (int, float)
    if not (is_number and 0 < cast("float", value) <= _MAX_SWEEP_MINUTES):
        raise InvalidRecordError(
            field=field, value=value, reason="must be a number of minutes above zero"
        )


class Sweeping(Future[None]):
    """The future of a sweeper; awaiting it does not wait for its end, as with async stores."""

    def __await__(self) -> Generator[None, None, "Sweeping"]:
        """Return self at once."""
        yield from ()
        return self


class Sweeper:
    """Calls a sweep every so many minutes, on a thread of its own, until it is stopped."""

    def __init__(self, sweep: Callable[[], int], minutes: float | None) -> None:
        self._sweep = sweep
        self._minutes = minutes or _DEFAULT_SWEEP_MINUTES
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float | None = None) -> Sweeping:
        """Start, unless it runs already; the future ends with it, and cancelling that stops it."""
        if minutes is not None:
            check_minutes("sweep_interval_minutes", minutes)
        future = Sweeping()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stopped = threading.Event()
                given = (60.0 * (minutes or self._minutes), self._stopped, future)
                self._thread = threading.Thread(
                    target=self._run, args=given, name="commonplace-sweeper", daemon=True
                )
                self._thread.start()
            stopped = self._stopped
        future.add_done_callback(lambda done: stopped.set() if done.cancelled() else None)
        return future

    def stop(self, timeout: float | None = None) -> bool:
        """Stop; False if a sweep was still running after `timeout` seconds."""
        with self._lock:
            thread = self._thread
            self._stopped.set()
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, seconds: float, stopped: threading.Event, future: Sweeping) -> None:
        while not stopped.wait(seconds):
            try:
                self._sweep()
            except Exception:  # the next sweep may succeed
                _log.warning("A sweep of expired items failed", exc_info=True)
        if not future.done():
            future.set_result(None)
