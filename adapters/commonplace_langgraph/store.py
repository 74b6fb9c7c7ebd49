"""`CommonplaceStore`: a memory as LangGraph's long-term store.

A batch is checked whole; then come its reads, then all its writes at once.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Self, get_args

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
)

from commonplace import (
    Command,
    Excerpt,
    InvalidRecordError,
    Memory,
    Ranking,
    Record,
    Scope,
    WriteResult,
)
from commonplace.agents import (
    MemorySource,
    Plan,
    aon,
    arun_plan,
    call,
    check_choice,
    check_flag,
    check_list,
    check_mapping,
    hinting_init,
    on,
    run_plan,
)

from .models import check_index, to_embedder
from .store_items import NamespaceTemplate, StoredItem, StoreOptions, find_item
from .store_queries import (
    ItemGet,
    ItemSearch,
    NamespaceListing,
    check_get,
    check_listing,
    check_search,
    list_namespaces,
    search,
)
from .store_writes import (
    ItemPut,
    Sweeper,
    Sweeping,
    check_minutes,
    check_put,
    check_ttl,
    put_commands,
    refresh_commands,
    restart_commands,
    stale_part_commands,
    sweep_expired,
)
from .turn_owner import ConnString, Count, OpenedMemory, open_lazily

_CheckedOp = ItemGet | ItemPut | ItemSearch | NamespaceListing


@hinting_init
class CommonplaceStore(OpenedMemory, BaseStore):
    """A LangGraph store on a memory: other agents recall what is put here, and vice versa.

    Safe in any thread and on any event loop; `batch` and `abatch` are both native. All ops of a
    batch are checked before the first takes effect, reads see what was there before its writes,
    and its writes are accepted together or not at all.

    Besides the framework's filters there are `$in`, `$nin`, `$exists`, `$or` and `$threshold`
    (`store_queries`). A query finds by meaning and by words; `score` is in 0..1. Expired items are
    never shown, whatever `omit_expired` says.

    Whatever was put through a store is found by `get`, `search` and `list_namespaces` under every
    prefix of its namespace, the empty one included. Facts that others learned about a user are
    found where the namespace or prefix names the user by the template, and nowhere else.

    Args:
        memory: an open memory, which the caller closes; the path of its folder, opened on first use
            and closed by `close`; or None for the location that the environment names, `./memory`
            by default.
        index: `fields` to embed, `["$"]` (the whole value) when missing. `dims` and `embed` name
            the model of a memory that is opened here; without them it has its own.
        ttl: as the framework's stores take it, in minutes. As in `SqliteStore`, a read extends a
            time to live only with `refresh_on_read`; or with `refresh_ttl` of the call.
        template: the labels of namespaces that are a user's memory, such as `("memories",
            "{user_id}", "{agent_id}")`: what others know of that user is found there. Everything
            else is the store's alone. None makes every namespace such.
        agent_id: of what is put and found under the template, when that does not name it.
        ranking: `calibrated`, or `similarity` for order and score by the cosine alone, -1..1, as
            the framework's stores give them.
        threshold: leave out what a query finds with a lower score, 0..1; by similarity, with a
            lower score.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is neither open nor a path.
        InvalidRecordError: `index` is not what the given memory has, the template names no user, or
            another argument cannot be used.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        template: Sequence[str] | None = ("memories", "{user_id}"),
        agent_id: str | None = None,
        ranking: Ranking = "calibrated",
        threshold: float | None = None,
    ) -> None:
        check_choice("ranking", ranking, get_args(Ranking))
        _check_threshold(threshold, ranking)
        _check_index({} if index is None else index)
        _check_ttl({} if ttl is None else ttl)
        self.template: NamespaceTemplate = NamespaceTemplate(template, agent_id)
        # `BaseStore` refreshes where a config is silent, and `SqliteStore` does not.
        self.ttl_config: TTLConfig = {"refresh_on_read": False, **(ttl or {})}
        self.index_config = index
        given = memory if isinstance(memory, Memory) else None
        if given is not None:
            check_index(index, given)
        self._lazy = open_lazily(memory, to_embedder(index) if given is None else None)
        self._options = StoreOptions(
            template=self.template,
            fields=tuple((index or {}).get("fields") or ("$",)),
            threshold=threshold,
            ranking=ranking,
            refreshes=self.ttl_config["refresh_on_read"],
            redact=None if given is None else given.admin.redact,
        )
        self._sweeper = Sweeper(self.sweep_ttl, (ttl or {}).get("sweep_interval_minutes"))

    @property
    def memory(self) -> Memory:
        """The memory, which is opened now if it was not."""
        return self._lazy.given or self._lazy.get()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        template: Sequence[str] | None = ("memories", "{user_id}"),
        agent_id: str | None = None,
        ranking: Ranking = "calibrated",
        threshold: float | None = None,
    ) -> Self:
        """Open a store in a folder; leave it with `with` or `async with`, or `close` it."""
        return cls(
            path,
            index=index,
            ttl=ttl,
            template=template,
            agent_id=agent_id,
            ranking=ranking,
            threshold=threshold,
        )

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """Make a store by a connection string, for `with` and `async with`.

        Args:
            conn_string: see `CommonplaceSaver.from_conn_string`.

        Raises:
            InvalidRecordError: an argument cannot be used.
        """
        return cls(ConnString(conn_string), index=index, ttl=ttl)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out ops; one result each, in their order.

        Raises:
            ValueError: an op cannot be carried out; then none had an effect.
        """
        return run_plan(_batch(_check_ops(ops, self._options), self._options), on(self.memory))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out ops, as `batch`, on the running loop."""
        memory = await self._lazy.aget()
        plan = _batch(_check_ops(ops, self._options), self._options)
        # A caller who stops waiting must not leave half a batch.
        work = asyncio.ensure_future(arun_plan(plan, aon(memory)))
        return await asyncio.shield(work)

    # -- expiry --------------------------------------------------------------------------------

    def sweep_ttl(self) -> Count:
        """Delete what has expired; return how many items. Works at once, awaited or not."""
        at = datetime.now(UTC)
        return Count(run_plan(sweep_expired(self._options, at), on(self.memory)))

    async def asweep_ttl(self) -> int:
        """Delete what has expired, as `sweep_ttl`."""
        plan = sweep_expired(self._options, datetime.now(UTC))
        return await arun_plan(plan, aon(await self._lazy.aget()))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeping:
        """Sweep every so many minutes, 5 by default, on a thread; cancel the future to stop."""
        return self._sweeper.start(sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> Count:
        """Stop sweeping; 0 if a sweep was still running after `timeout` seconds, else 1."""
        return Count(self._sweeper.stop(timeout))

    # -- lifecycle -----------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the sweeper and close the memory, unless it was given."""
        self._sweeper.stop(10.0)
        super().close()

    async def aclose(self) -> None:
        """Close, as `close`."""
        await asyncio.to_thread(self._sweeper.stop, 10.0)
        await super().aclose()


def _check_threshold(threshold: Any, ranking: Ranking) -> None:
    least = -1 if ranking == "similarity" else 0
    is_number = type(threshold) in (int, float)
    if threshold is not None and not (is_number and least <= threshold <= 1):
        raise InvalidRecordError(
            field="threshold", value=threshold, reason=f"must be a number in {least}..1"
        )


def _check_index(index: Any) -> None:
    check_mapping("index", index, "{'fields': ['text']}")
    if index.get("fields") is not None:
        check_list("index['fields']", index["fields"], "paths")
        for path in index["fields"]:
            if type(path) is not str:
                raise InvalidRecordError(
                    field="index['fields']", value=path, reason="must be a path, such as 'text'"
                )


def _check_ttl(ttl: Any) -> None:
    check_mapping("ttl", ttl, "{'default_ttl': 60}")
    check_flag("ttl['refresh_on_read']", ttl.get("refresh_on_read", False))
    check_ttl("ttl['default_ttl']", ttl.get("default_ttl"))
    if ttl.get("sweep_interval_minutes") is not None:
        check_minutes("ttl['sweep_interval_minutes']", ttl["sweep_interval_minutes"])


def _check_ops(ops: Iterable[Op], options: StoreOptions) -> list[_CheckedOp]:
    if not isinstance(ops, Iterable):
        raise InvalidRecordError(field="ops", value=ops, reason="must be a list of ops of a store")
    return [_check(op, options) for op in ops]


def _check(op: Op, options: StoreOptions) -> _CheckedOp:
    if isinstance(op, GetOp):
        return check_get(op, options)
    if isinstance(op, PutOp):
        return check_put(op, options)
    if isinstance(op, SearchOp):
        return check_search(op, options)
    if isinstance(op, ListNamespacesOp):
        return check_listing(op)
    raise InvalidRecordError(field="op", value=op, reason="must be an op of a store")


def _batch(ops: Sequence[_CheckedOp], options: StoreOptions) -> Plan[list[Result]]:
    """Carry out checked ops; one result each."""
    template = options.template
    puts = {(op.address.namespace, op.address.key): op for op in ops if isinstance(op, ItemPut)}
    found: dict[str, Excerpt] = yield from read_records(ops, ItemGet, "get_excerpts")
    replaced: dict[str, Record | Excerpt] = {}
    if puts:
        # Only what others wrote is changed as a whole record, and has its own id as the key.
        of_others = any(len(put.address.record_ids) > 1 for put in puts.values())
        method = "get_many" if of_others else "get_excerpts"
        replaced = yield from read_records(ops, ItemPut, method)
    results: list[Result] = []
    read: list[StoredItem] = []
    for op in ops:
        result: Any = None
        if isinstance(op, ItemGet):
            item = find_item(found, op.address, template)
            result = item and item.to_item()
            read += [item] if item and op.refreshes else []
        elif isinstance(op, ItemSearch):
            matches = yield from search(op, options)
            result = [item.to_search_item(score) for item, score in matches]
            read += [item for item, _ in matches] if op.refreshes else []
        elif isinstance(op, NamespaceListing):
            result = yield from list_namespaces(op, options)
        results.append(result)
    ending = [one for one in read if one.ttl and (one.namespace, one.key) not in puts]
    if not (puts or ending):
        return results
    commands = yield from refresh_commands(ending, template, datetime.now(UTC))
    commands += put_commands(
        [(op, find_item(replaced, op.address, template)) for op in puts.values()]
    )
    written: list[WriteResult] = []
    if commands:
        written = yield call("batch", commands, wait=bool(puts))
    after: list[Command] = []
    # What there was no record of has no parts: who deleted it deletes them.
    if any(change.event != "ADD" for result in written for change in result.changes):
        after = yield from stale_part_commands(puts.values(), template)
    after += yield from restart_commands(puts.values())
    if after:
        yield call("batch", after)
    return results


def read_records(
    ops: Iterable[_CheckedOp], kind: type[ItemGet | ItemPut], method: str
) -> Plan[dict[str, Any]]:
    """Read the records that may hold the items of one kind of ops, in one call for each scope."""
    ids_of: dict[Scope, dict[str, None]] = {}
    for op in ops:
        if isinstance(op, kind):
            ids_of.setdefault(op.address.scope, {}).update(dict.fromkeys(op.address.record_ids))
    found: dict[str, Any] = {}
    for scope, ids in ids_of.items():
        records = yield call(method, list(ids), scope)
        found |= {record.id: record for record in records}
    return found
