"""`memory.admin`: what operators and adapters need of a memory, and its users do not."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, TypeVar

from .blocking_session import MemoryParts
from .concurrency import run_on
from .errors import InvalidRecordError
from .ports.checkpoints import Checkpoints
from .ports.engines import GraphStore
from .ports.snapshot_rows import FenceRow
from .ports.stores import version_at
from .retrieval.decay import RetentionLimits, records_over_limits
from .types import DeadLetter, Kind, Namespace, Record, Scope, WriteResult, check_kinds, now
from .validation import (
    check_callable,
    check_collection,
    check_flag,
    check_ids,
    check_name,
    check_namespace,
    check_time,
)

P = ParamSpec("P")
T = TypeVar("T")
_PRUNE_SECONDS = 30.0


class MemoryAdmin:
    """Administration of one open memory, such as its dead letters, scopes and checkpoints.

    Its methods block. On an event loop, await one with `run`:

        letters = await memory.admin.run(memory.admin.dead_letters)

    Every method raises `MemoryClosedError` after `close`.
    """

    def __init__(self, parts: Callable[..., MemoryParts]) -> None:
        """Administer a memory.

        Args:
            parts: returns what it uses of the memory, which must be open; it checks scopes.
        """
        self._parts = parts
        self._before_close: list[Callable[[], object]] = []

    def prune(
        self,
        scope: Scope,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        unused_for: timedelta | None = None,
        kinds: Sequence[Kind] = (),
        dry_run: bool = True,
    ) -> Sequence[Record]:
        """Delete the records of a scope that exceed limits, or list them.

        Args:
            scope: whose memory.
            keep: number of records to keep, strongest first (`Settings.half_life`).
            older_than: limit on the time since the last change.
            unused_for: limit on the time since the last recall; with both, a record must exceed
                both.
            kinds: only these; empty for all.
            dry_run: True deletes nothing.

        Returns:
            The records to delete, weakest first. Pinned ones stay until they expire.

        Raises:
            InvalidRecordError: there is no limit, or one is below zero.
        """
        parts = self._parts(scope)
        check_kinds(kinds)
        check_flag("dry_run", dry_run)
        limits = RetentionLimits(keep=keep, older_than=older_than, unused_for=unused_for)
        graph, log = parts.runtime.engines.graph, parts.runtime.access_log
        found = records_over_limits(limits, scope, kinds, graph, log, parts.settings.half_life)
        if not dry_run:
            make = partial(parts.operations.deletions, found, scope)
            parts.submission.submit(make, wait=_PRUNE_SECONDS)
        return found

    def namespaces(self, scope: Scope) -> Sequence[Namespace]:
        """List the namespaces of the scope's records, each once, in no order.

        Superseded records count, expired ones do not.
        """
        return self._graph(scope).namespaces(scope)

    def list_namespaces(
        self, prefix: Sequence[str] = (), *, after: Sequence[str] = (), limit: int = 1000
    ) -> Mapping[Namespace, Sequence[Scope]]:
        """List the namespaces of all scopes, each once, a page at a time.

        Args:
            prefix: only this namespace and those below it; empty for all.
            after: the last namespace of the previous page; empty for the first page.
            limit: namespaces a page, 1..1000.

        Returns:
            The scopes of the records in each namespace, in the order of tuples of strings.

        Raises:
            InvalidRecordError: the limit is out of its range, or a namespace is no list of labels.
        """
        graph = self._graph()
        prefix, after = check_namespace("prefix", prefix), check_namespace("after", after)
        return graph.list_namespaces(prefix, after=after, limit=limit)

    def list_users(self, namespace: Sequence[str] = ()) -> Sequence[str]:
        """List the ids of the users with live records in a namespace or below it, in no order.

        Args:
            namespace: empty for any.
        """
        graph = self._graph()
        return graph.list_users(check_namespace("namespace", namespace))

    def outdated_turns(self, scope: Scope, record_ids: Collection[str]) -> Mapping[str, datetime]:
        """Find the turns of which no fact that was extracted from them holds any more.

        For interfaces that show turns as what is true now. See `Record.sources`.

        Args:
            scope: whose memory; one with a session does not cover the facts of its user.
            record_ids: of turns; others are ignored.

        Returns:
            Since when, by id: the facts were superseded, deleted or corrected by then. A turn from
            which nothing was extracted, or of which a fact still holds, is left out.
        """
        graph = self._graph(scope)
        check_ids("record_ids", record_ids)
        return graph.outdated_turns(scope, record_ids, now()) if record_ids else {}

    def statements(self, records: Sequence[Record]) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Find which of a user's records state something of him, and which of these hold.

        For interfaces that list what is known. A search says so of its matches, for its question.

        Args:
            records: facts, and turns of the user. Each is compared with the nearest newer ones of
                the same speaker. Long texts replace nothing and stay.

        Returns:
            By id, the id of the last statement among these that likely took its place, such as a
            new address, else its own id. With the default embedder, turns that only react, ask or
            give a task are left out. Then, with that embedder, by the id of each that a newer one
            says again in other words, the id of the last that does.
        """
        # With numpy, which only importing this does not need.
        from .retrieval.personal import is_personal
        from .retrieval.replacement import last_of, to_statement

        runtime = self._parts().runtime
        for one in check_collection("records", records, "records"):
            if not isinstance(one, Record):
                raise InvalidRecordError(field="records", value=one, reason="must be a record")
        vectors, calibration = runtime.engines.index.vectors(records), runtime.calibration

        def states(one: Record) -> bool:
            if one.kind != "episode" or one.id not in vectors:
                return True
            is_known = calibration.scale(one.text).of_default
            return not is_known or is_personal(one.text, vectors[one.id].vector)

        stating = [one for one in records if states(one)]
        found = [one for one in stating if one.id in vectors]
        told = [to_statement(one) for one in found]
        links = last_of(told, [vectors[one.id].vector for one in found], calibration)
        newest, again = (
            {found[old].id: found[new].id for old, new in one.items()} for one in links
        )
        return {one.id: newest.get(one.id, one.id) for one in stating}, again

    def follow(self, write: WriteResult, on_failed: Callable[[Exception], None]) -> None:
        """Call a function if a pending write fails; does not block.

        Args:
            write: the result of `add` or another write; ignored if it is not pending.
            on_failed: called once with the error, on any thread, when the write has become a dead
                letter or has failed several times and is retried. It must return at once.
        """
        worker = self._parts().runtime.worker
        if not isinstance(write, WriteResult):
            raise InvalidRecordError(
                field="write", value=write, reason="must be the WriteResult of a write"
            )
        check_callable("on_failed", on_failed)
        if write.pending:
            worker.follow(write.operation, on_failed)

    def dead_letters(self, scope: Scope | None = None) -> Sequence[DeadLetter]:
        """Read the accepted writes that cannot be applied, oldest first.

        Args:
            scope: whose; None for everybody's.
        """
        parts = self._parts() if scope is None else self._parts(scope)
        return parts.runtime.engines.journal.dead(scope)

    def retry(self, operations: Collection[str]) -> int:
        """Queue dead letters again; return how many were queued.

        Extraction uses the chat model of this memory, if it has one. Of a write whose extraction
        failed (`DeadLetter.kind` is `extract`) the messages are stored already: it adds the facts.

        Args:
            operations: their ids, `DeadLetter.operation`; unknown ids are ignored.
        """
        parts = self._parts()
        check_ids("operations", operations)
        return parts.runtime.worker.retry(operations, parts.models)

    def scope_of(self, record_id: str) -> Scope | None:
        """Return the scope of a record, live or deleted; None if there never was one.

        For programs that have only an id. Do not use it in an agent's tool, where the model could
        name any id: look ids up in the user's scope.
        """
        graph = self._graph()
        check_name("record_id", record_id)
        return graph.scope_of(record_id)

    def list_scopes(self) -> Sequence[Scope]:
        """List every scope that has records, live, deleted or not written yet, in no order."""
        graph, journal = self._graph(), self._parts().runtime.engines.journal
        pending = journal.pending(limit=max(1, journal.count().pending))
        return list({*graph.list_scopes(), *(op.scope for op in pending)})

    def was_forgotten(self, scope: Scope, *, since: datetime | None = None) -> bool:
        """Tell whether an erasure that covers the scope was accepted, at or after a moment.

        For programs that keep something to write it later, which `forget` cannot find.

        Args:
            since: with a time zone; None for ever.
        """
        graph = self._graph(scope)
        check_time("since", since)
        keys = {one.key for one in scope.covering()}
        version = 0 if since is None else version_at(since)
        rows = graph.dump()
        try:
            for row in rows:
                if not isinstance(row, FenceRow):  # they come first
                    return False
                if row.key in keys and row.version >= version:
                    return True
            return False
        finally:
            if isinstance(rows, Generator):
                rows.close()  # and let go of what it reads from

    def before_close(self, call: Callable[[], object]) -> None:
        """Have a function called before this memory closes, while it can still be written to.

        Args:
            call: is called on the thread that closes, and must not raise; giving it again does
                nothing.
        """
        self._parts()
        check_callable("call", call)
        if call not in self._before_close:
            self._before_close.append(call)

    def _prepare_to_close(self) -> None:
        """Call what `before_close` was given."""
        for prepare in list(self._before_close):
            prepare()

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call that uses this memory on one of its threads, and await it.

        The call sees the context variables of the task that awaits it.

        Args:
            call: a function; its arguments follow.
        """
        check_callable("call", call)
        context, parts = copy_context(), self._parts()
        result = await run_on(parts.runtime.readers, lambda: context.run(call, *args, **kwargs))
        parts.submission.adopt_orphans()  # `retry` may need a model of this loop
        return result

    @property
    def redact(self) -> Callable[[Any], Any] | None:
        """Redacts the texts in JSON values as they would be stored; None if nothing is redacted.

        For adapters that store a value in another form. Keys stay. Called with a text, or a list
        or dict of JSON values, it raises `InvalidRecordError` if the function of
        `Memory.open(redact=...)` fails.
        """
        redaction = self._parts().redaction
        return None if redaction is None else redaction.values

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints of agent runs, stored next to the memories."""
        return self._parts().runtime.engines.checkpoints

    def _graph(self, *scopes: Scope) -> GraphStore:
        return self._parts(*scopes).runtime.engines.graph
