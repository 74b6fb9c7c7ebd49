"""Shared vector index: a collection on a Qdrant server, cluster or cloud."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...model import Record, Scope
from ...ports.stores import Hit, Point, Query
from ..shared.payload import checked, payload_of, uuids
from ..shared.payload import read as read_row
from .client import Link, QdrantClient, connect
from .client import models as m
from .collection import Layout, open_collection
from .query import (
    alone,
    best,
    covered,
    equals,
    has_id,
    older,
    seen,
    united,
    visible,
    ways,
    within,
)

__all__ = ["QdrantIndex"]

_CALL = 64
_DELETE = 1024
_PAGE = 1024


class QdrantIndex:
    """A `VectorIndex` on a Qdrant server 1.19 or newer, which any number of processes may share.

    From 1.16 on a server works, but ranks words by how rare they are in the whole collection.
    A write is there for every reader when the call returns, and durable. A search is one round
    trip unless a filter that the server cannot say exactly hides most of what it finds; an
    upsert is one for 64 points.

    Scopes of up to some 50,000 records are searched exactly; of a larger one that belongs to one
    user Qdrant builds a graph.

    With `url=":memory:"` nothing is sent: the driver imitates a server inside this process,
    without indexes, shards or speed, calls take turns, and closing forgets everything.

    Args:
        url: such as `http://localhost:6333`, `https://…` or `qdrant://host:6333`.
        api_key: sent with every request; use `https` then.
        collection: its name; made when missing.
        meta: what the vectors depend on (schema version, embedder); remembered when the
            collection is made and compared at every opening, together with `dimensions`.
        prefer_grpc: speak gRPC, on `grpc_port`, which is a little faster than HTTP.
        timeout: seconds for a call with its retries; the last attempt may add as much.
        quantize: make a new collection that keeps vectors of 8-bit numbers in memory, a quarter
            of the size, to look for candidates, and scores them by the full ones on disk.
        shards, replicas: of a new collection; as the server is set up when None. Shards without
            buckets spread every user over all of them, and each counts how rare a word is.
        buckets: of a new collection; more than one puts every user as a whole under one of so
            many shard keys, of `shards` shards each, on a cluster. It cannot change later.
        client: instead of `url`, `api_key`, `prefer_grpc` and `grpc_port`; closed with the index.

    Raises:
        SchemaMismatchError: the collection was made by another program or with other `meta`.
        StoreRefusedError: the server does not let us in; give the right `api_key`.
        StoreUnavailableError: the server does not answer.
        InvalidRecordError: the server is too old or cannot make such a collection.
    """

    def __init__(
        self,
        url: str = "http://localhost:6333",
        *,
        api_key: str | None = None,
        collection: str = "commonplace",
        dimensions: int,
        meta: Mapping[str, str],
        prefer_grpc: bool = True,
        grpc_port: int = 6334,
        timeout: float = 10.0,
        quantize: bool = False,
        shards: int | None = None,
        replicas: int | None = None,
        buckets: int = 1,
        client: QdrantClient | None = None,
    ) -> None:
        self._dimensions = dimensions
        self._name = collection
        self._layout = Layout(quantize=quantize, shards=shards, replicas=replicas, buckets=buckets)
        self._link = Link(
            client
            or connect(
                url,
                api_key=api_key,
                prefer_grpc=prefer_grpc,
                grpc_port=grpc_port,
                timeout=timeout,
            ),
            store=f"{url.rpartition('@')[2]}/{collection}",
            timeout=timeout,
        )
        try:
            self._traits = open_collection(
                self._link, collection, dimensions=dimensions, meta=meta, layout=self._layout
            )
        except BaseException:
            self._link.close()
            raise

    def search(self, probe: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms; best dense first."""
        vector = checked([probe.vector], self._dimensions)[0]
        self._link.check_open()
        if limit < 1:
            return []
        traits, bucket = self._traits, self._layout.bucket(probe.scope)
        shown = visible(probe, ranges=traits.ranges)
        candidates = ways(probe, vector, traits.first_look(probe.scope))
        scorers = ways(probe, vector, traits.last_look())
        wanted = limit
        while True:
            asked = united(candidates, scorers, shown, wanted, traits.parts, bucket)
            found = best(self._query(asked), probe, wanted, limit)
            if found is not None:
                return found
            wanted *= 4

    def score(self, probe: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records at these places, or with these ids, both ways; best dense first."""
        vector = checked([probe.vector], self._dimensions)[0]
        self._link.check_open()
        known = uuids(ids)
        named: list[Any] = [equals("turn", *turns)] if turns else []
        named += [has_id(known)] if known else []
        if not named:
            return []
        here = m.Filter(must=[m.Filter(should=named), equals("scopes", probe.scope.key)])
        scorers = ways(probe, vector, self._traits.last_look())
        wanted, bucket = 2 * len(turns) + len(known) + 1, self._layout.bucket(probe.scope)
        while True:
            answers = self._query(alone(scorers, here, wanted, bucket))
            if len(answers[0].points) < wanted:
                return seen(answers, probe)
            wanted *= 4

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, 64 at a time; a version that is not greater than the held is ignored."""
        vectors = checked([point.vector for point in points], self._dimensions)
        newest: dict[str, tuple[Record, m.PointStruct]] = {}
        for point, vector in zip(points, vectors, strict=True):
            held = newest.get(point.record.id)
            if held is None or held[0].version < point.record.version:
                newest[point.record.id] = (point.record, _struct(point, vector))
        for bucket, part in self._by_bucket([record for record, _ in newest.values()]):
            self._link.write(
                self._link.client.upsert,
                self._name,
                [newest[record.id][1] for record in part],
                update_filter=older(part),
                ordering=m.WriteOrdering.MEDIUM,
                shard_key_selector=bucket,
            )

    def amend(self, records: Sequence[Record]) -> None:
        """Replace the payload of records that are there and not newer: two round trips for 64."""
        newest = {record.id: record for record in sorted(records, key=lambda one: one.version)}
        for bucket, part in self._by_bucket(list(newest.values())):
            held = self._link.ask(
                self._link.client.retrieve,
                self._name,
                [record.id for record in part],
                with_payload=["row"],
                shard_key_selector=bucket,
            )
            words = {str(row.id): read_row((row.payload or {})["row"])[1] for row in held}
            kept = [one for one in part if one.id in words]
            changes = [_overwrite(one, words[one.id], bucket) for one in kept]
            if changes:
                self._link.write(
                    self._link.client.batch_update_points,
                    self._name,
                    changes,
                    ordering=m.WriteOrdering.MEDIUM,
                )

    def vectors(self, records: Sequence[Record]) -> dict[str, Sequence[float]]:
        """Read the vectors of these records, where they are held with the same text."""
        found: dict[str, Sequence[float]] = {}
        for bucket, part in self._by_bucket(records):
            texts = {str(uuid.UUID(one.id)): (one.id, one.indexed_text) for one in part}
            rows: list[Any] = self._link.ask(
                self._link.client.retrieve,
                self._name,
                list(texts),
                with_payload=["row"],
                with_vectors=["dense"],
                shard_key_selector=bucket,
            )
            for row in rows:
                name, text = texts[str(row.id)]
                if read_row(row.payload["row"])[0].indexed_text == text:
                    found[name] = row.vector["dense"]
        return found

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them, those that are newer excepted."""
        known = uuids(ids)
        of = [covered(scope, version)] if scope else []
        for start in range(0, len(known), _DELETE):
            here = has_id(known[start : start + _DELETE])
            self._remove(scope, m.Filter(must=[here, *of]))

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove every record that the scope covers, newer ones excepted; count them."""
        erased = self._count(scope, version)
        self._remove(scope, covered(scope, version))
        return erased

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, hidden ones included."""
        return self._count(scope, None)

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of every record that the scope covers, in no order."""
        after = None
        while True:
            found, after = self._link.ask(
                self._link.client.scroll,
                self._name,
                covered(scope) if scope else None,
                limit=_PAGE,
                offset=after,
                with_payload=["scopes", "version"],
                shard_key_selector=self._layout.bucket(scope) if scope else None,
            )
            for row in found:
                held = row.payload or {}
                if scope is None or scope.key in held["scopes"]:
                    yield str(row.id), held["version"]
            if after is None:
                return

    def flush(self) -> None:
        """Do nothing: the server had everything on its disk before a write returned."""
        self._link.check_open()

    def close(self) -> None:
        """Let go of the connections; repeating it does nothing."""
        self._link.close()

    def _count(self, scope: Scope, version: int | None) -> int:
        bucket, those = self._layout.bucket(scope), covered(scope, version)
        count = self._link.client.count
        return self._link.ask(count, self._name, those, shard_key_selector=bucket).count

    def _query(self, requests: Sequence[m.QueryRequest]) -> Sequence[Any]:
        return self._link.ask(self._link.client.query_batch_points, self._name, requests)

    def _remove(self, scope: Scope | None, chosen: m.Filter) -> None:
        self._link.write(
            self._link.client.delete,
            self._name,
            m.FilterSelector(filter=chosen),
            ordering=m.WriteOrdering.STRONG,
            shard_key_selector=self._layout.bucket(scope) if scope else None,
        )

    def _by_bucket(self, records: Sequence[Record]) -> Iterator[tuple[str | None, list[Record]]]:
        self._link.check_open()
        buckets: dict[str | None, list[Record]] = {}
        for record in records:
            buckets.setdefault(self._layout.bucket(record.scope), []).append(record)
        for bucket, held in buckets.items():
            for start in range(0, len(held), _CALL):
                yield bucket, held[start : start + _CALL]


def _struct(point: Point, vector: list[float]) -> m.PointStruct:
    # Empty ones too: the server counts only points with terms as the corpus of rarity.
    terms = m.SparseVector(indices=list(point.terms.indices), values=list(point.terms.weights))
    return m.PointStruct(
        id=point.record.id,
        vector={"dense": vector, "terms": terms},
        payload=payload_of(point.record, point.words),
    )


def _overwrite(record: Record, words: int, bucket: str | None) -> m.OverwritePayloadOperation:
    here = m.Filter(must=[has_id([record.id]), within("version", lte=record.version)])
    payload = payload_of(record, words)
    return m.OverwritePayloadOperation(
        overwrite_payload=m.SetPayload(payload=payload, filter=here, shard_key=bucket)
    )
