"""Shared vector index: a collection on a Qdrant server, cluster or cloud."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ...ports.stores import Hit, Point, Query
from ...types import Record, Scope, TokenEmbedding
from ..shared.late_interaction import asked_tokens
from ..shared.rows import to_vector
from .client import connect
from .client import models as m
from .collection import CollectionLayout, open_collection
from .payload import TOKENS, payload_of, read_row, read_tokens, tokens_of, uuids
from .query import (
    best_hits,
    covered,
    equals,
    filter_requests,
    has_id,
    matching_hits,
    older,
    scorers,
    to_vectors,
    union_requests,
    visible,
    within,
)

__all__ = ["QdrantIndex"]

T = TypeVar("T")

_BATCH = 64  # points in one request
_MOST_BYTES = 8 * 2**20  # about, of the rows in one request; a server takes 32 MiB by default
_DELETE_BATCH = 1024
_PAGE = 1024
_ROW = ["row", TOKENS]
_LEAST_LENGTH = 1e-6  # of a vector that has a direction


class QdrantIndex:
    """A `VectorIndex` on a Qdrant server 1.19 or newer, which any number of processes may share.

    A server works from 1.16 on, but weights terms by their rarity in the whole collection.
    When a call returns, its writes are durable and every reader sees them. A search is one round
    trip unless a filter that the server cannot evaluate exactly hides most of what it finds; an
    upsert is one round trip for 64 points.

    A long text is one point with a vector for each passage. In a collection that was made before
    there were passages it has their mean, until the index is rebuilt.

    Scopes of up to some 50,000 records are searched exactly; for a larger one that belongs to one
    user Qdrant builds a graph.

    With `url=":memory:"` nothing is sent: the driver imitates a server inside this process, without
    indexes, shards or speed, one call at a time, and closing discards everything.

    Args:
        url: such as `http://localhost:6333`, `https://…` or `qdrant://host:6333`.
        api_key: sent with every request; use `https` then.
        collection: its name; made if missing.
        dimensions, meta, token_dimensions: as in `IndexSpec`. Token vectors are in the payload, and
            those of the hits are compared here: the server would return only their sum over the
            query's tokens, and a query for each token would cost twice the time (docs/scaling.md).
        prefer_grpc: use gRPC, on `grpc_port`, which is a little faster than HTTP.
        timeout: seconds for a call and its retries; the last attempt may take as long again.
        quantize: keep 8-bit vectors of a new collection in memory, a quarter of the size, to find
            candidates, which are scored by the full vectors on disk.
        shards, replicas: of a new collection; None for the server's settings. Without buckets every
            user is spread over all shards, and each shard counts the rarity of terms by itself.
        buckets: number of shard keys of a new collection on a cluster, of `shards` shards each. All
            records of a user are under one of them. It cannot be changed later.

    Raises:
        SchemaMismatchError: another program made the collection, or it has other `meta`.
        StoreRefusedError: the server denies access; give the right `api_key`.
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
        token_dimensions: int = 0,
        prefer_grpc: bool = True,
        grpc_port: int = 6334,
        timeout: float = 10.0,
        quantize: bool = False,
        shards: int | None = None,
        replicas: int | None = None,
        buckets: int = 1,
    ) -> None:
        self._dimensions = dimensions
        self._name = collection
        self._layout = CollectionLayout(
            quantize=quantize, shards=shards, replicas=replicas, buckets=buckets
        )
        self._client = connect(
            url,
            collection,
            api_key=api_key,
            prefer_grpc=prefer_grpc,
            grpc_port=grpc_port,
            timeout=timeout,
        )
        try:
            self._traits = open_collection(
                self._client, collection, dimensions=dimensions, meta=meta, layout=self._layout
            )
        except BaseException:
            self._client.close()
            raise
        self._token_dimensions = token_dimensions if self._traits.tokens else 0

    def search(self, query: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms; best dense first."""
        vector = to_vector(query.vector, self._dimensions).tolist()
        self._client.check_open()
        if limit < 1:
            return []
        traits, bucket = self._traits, self._layout.bucket(query.scope)
        conditions = visible(query, ranges=traits.ranges)
        nearest = traits.nearest(vector)
        candidates = scorers(query, nearest, traits.candidate_params(query.scope))
        final = scorers(query, nearest, traits.scoring_params())
        asked = asked_tokens(query, self._token_dimensions)
        fields = ["row"] if asked is None else _ROW
        wanted = limit
        while True:
            requests = union_requests(
                candidates, final, conditions, wanted, traits.shards, bucket, fields
            )
            found = best_hits(self._query(requests), query, asked, wanted, limit)
            if found is not None:
                return found
            wanted *= 4

    def score(self, query: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records of these turns, or with these ids, both ways; best dense first."""
        vector = to_vector(query.vector, self._dimensions).tolist()
        self._client.check_open()
        known = uuids(ids)
        chosen: list[Any] = [equals("turn", *turns)] if turns else []
        chosen += [has_id(known)] if known else []
        if not chosen:
            return []
        conditions = m.Filter(must=[m.Filter(should=chosen), equals("scopes", query.scope.key)])
        final = scorers(query, self._traits.nearest(vector), self._traits.scoring_params())
        asked = asked_tokens(query, self._token_dimensions)
        fields = ["row"] if asked is None else _ROW
        wanted, bucket = 2 * len(turns) + len(known) + 1, self._layout.bucket(query.scope)
        while True:
            responses = self._query(filter_requests(final, conditions, wanted, bucket, fields))
            if len(responses[0].points) < wanted:
                return matching_hits(responses, query, asked)
            wanted *= 4

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, 64 at a time; a version that is not greater than the stored is ignored."""
        newest: dict[str, tuple[Record, m.PointStruct]] = {}
        sizes: dict[str, int] = {}
        for point in points:
            parts = [to_vector(one.vector, self._dimensions).tolist() for one in point.passages]
            held = newest.get(point.record.id)
            if held is None or held[0].version < point.record.version:
                made = self._struct(point, parts)
                newest[point.record.id] = (point.record, made)
                sizes[point.record.id] = len((made.payload or {})["row"]) + 8 * self._dimensions * (
                    len(parts) - 1
                )
        for bucket, part in self._by_bucket([record for record, _ in newest.values()], sizes):
            self._client.write(
                self._client.driver.upsert,
                self._name,
                [newest[record.id][1] for record in part],
                update_filter=older(part),
                ordering=m.WriteOrdering.MEDIUM,
                shard_key_selector=bucket,
            )

    def amend(self, records: Sequence[Record]) -> None:
        """Replace the payload of records that are stored and not newer: two round trips for 64."""
        newest = {
            record.id: record for record in sorted(records, key=lambda record: record.version)
        }
        for bucket, part in self._by_bucket(list(newest.values())):
            held = self._client.call(
                self._client.driver.retrieve,
                self._name,
                [record.id for record in part],
                with_payload=_ROW,
                shard_key_selector=bucket,
            )
            payloads = {str(row.id): row.payload or {} for row in held}
            kept = [record for record in part if record.id in payloads]
            changes = [_overwrite(record, payloads[record.id], bucket) for record in kept]
            sizes = [len(payloads[record.id]["row"]) for record in kept]
            for some in _parts(changes, sizes):
                self._client.write(
                    self._client.driver.batch_update_points,
                    self._name,
                    some,
                    ordering=m.WriteOrdering.MEDIUM,
                )

    def vectors(self, records: Sequence[Record]) -> dict[str, TokenEmbedding]:
        """Read the vectors of these records, where they are stored with the same text."""
        found: dict[str, TokenEmbedding] = {}
        for bucket, part in self._by_bucket(records):
            texts = {str(uuid.UUID(record.id)): (record.id, record.indexed_text) for record in part}
            rows: list[Any] = self._client.call(
                self._client.driver.retrieve,
                self._name,
                list(texts),
                with_payload=_ROW,
                with_vectors=["dense"],
                shard_key_selector=bucket,
            )
            for row in rows:
                name, text = texts[str(row.id)]
                if read_row(row.payload["row"])[0].indexed_text == text:
                    vectors, tokens = to_vectors(row.vector["dense"]), read_tokens(row.payload)
                    tokens += [b""] * (len(vectors) - len(tokens))
                    first, *following = (
                        TokenEmbedding(vector=vector, tokens=some)
                        for vector, some in zip(vectors, tokens, strict=True)
                    )
                    found[name] = replace(first, following=tuple(following))
        return found

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them, except newer ones."""
        known = uuids(ids)
        conditions = [covered(scope, version)] if scope else []
        for start in range(0, len(known), _DELETE_BATCH):
            here = has_id(known[start : start + _DELETE_BATCH])
            self._remove(scope, m.Filter(must=[here, *conditions]))

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove every record that the scope covers, except newer ones; return how many."""
        erased = self._count(scope, version)
        self._remove(scope, covered(scope, version))
        return erased

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, superseded and expired ones included."""
        return self._count(scope, None)

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of every record that the scope covers, in no order."""
        after = None
        while True:
            found, after = self._client.call(
                self._client.driver.scroll,
                self._name,
                covered(scope) if scope else None,
                limit=_PAGE,
                offset=after,
                with_payload=["scopes", "version"],
                shard_key_selector=self._layout.bucket(scope) if scope else None,
            )
            for row in found:
                payload = row.payload or {}
                if scope is None or scope.key in payload["scopes"]:
                    yield str(row.id), payload["version"]
            if after is None:
                return

    def flush(self) -> None:
        """Do nothing: a write returns when the server has it on its disk."""
        self._client.check_open()

    def describe(self) -> dict[str, str | int]:
        """Return the version of the server, and the state of the collection."""
        driver = self._client.driver
        found = self._client.call(driver.get_collection, self._name)
        return {
            "qdrant": self._client.call(driver.info).version, "collection": self._name,
            "status": found.status.value, "points": found.points_count or 0,
            "segments": found.segments_count,
        }  # fmt: skip

    def close(self) -> None:
        """Release the connections; repeating it does nothing."""
        self._client.close()

    def _struct(self, point: Point, vectors: list[list[float]]) -> m.PointStruct:
        # Empty ones too: the server counts only points with terms as the corpus of rarity.
        terms = m.SparseVector(indices=list(point.terms.indices), values=list(point.terms.weights))
        tokens = [one.tokens for one in point.passages]
        has_passages = self._traits.passages
        return m.PointStruct(
            id=point.record.id,
            vector={"dense": vectors if has_passages else _mean(vectors), "terms": terms},
            payload=payload_of(point.record, point.words)
            | tokens_of(tokens if has_passages else tokens[:1], self._token_dimensions),
        )

    def _count(self, scope: Scope, version: int | None) -> int:
        bucket, chosen = self._layout.bucket(scope), covered(scope, version)
        count = self._client.driver.count
        return self._client.call(count, self._name, chosen, shard_key_selector=bucket).count

    def _query(self, requests: Sequence[m.QueryRequest]) -> Sequence[Any]:
        return self._client.call(self._client.driver.query_batch_points, self._name, requests)

    def _remove(self, scope: Scope | None, chosen: m.Filter) -> None:
        self._client.write(
            self._client.driver.delete,
            self._name,
            m.FilterSelector(filter=chosen),
            ordering=m.WriteOrdering.STRONG,
            shard_key_selector=self._layout.bucket(scope) if scope else None,
        )

    def _by_bucket(
        self, records: Sequence[Record], sizes: Mapping[str, int] | None = None
    ) -> Iterator[tuple[str | None, list[Record]]]:
        """Divide records into requests."""
        self._client.check_open()
        buckets: dict[str | None, list[Record]] = {}
        for record in records:
            buckets.setdefault(self._layout.bucket(record.scope), []).append(record)
        for bucket, part in buckets.items():
            for some in _parts(part, [sizes[record.id] if sizes else 0 for record in part]):
                yield bucket, some


def _parts(items: Sequence[T], sizes: Sequence[int]) -> Iterator[list[T]]:
    """Divide items into parts of `_BATCH` and, unless it is a single one, of `_MOST_BYTES`."""
    part: list[T] = []
    total = 0
    for item, size in zip(items, sizes, strict=True):
        if part and (len(part) == _BATCH or total + size > _MOST_BYTES):
            yield part
            part, total = [], 0
        part.append(item)
        total += size
    if part:
        yield part


def _mean(vectors: list[list[float]]) -> list[float]:
    """Make the one vector of a text from those of its passages."""
    if len(vectors) == 1:
        return vectors[0]
    total = np.sum(vectors, axis=0)
    length = float(np.linalg.norm(total))
    return (total / length).tolist() if length > _LEAST_LENGTH else vectors[0]


def _overwrite(
    record: Record, held: Mapping[str, Any], bucket: str | None
) -> m.OverwritePayloadOperation:
    here = m.Filter(must=[has_id([record.id]), within("version", lte=record.version)])
    payload = payload_of(record, read_row(held["row"])[1])
    payload |= {key: value for key, value in held.items() if key == TOKENS}
    return m.OverwritePayloadOperation(
        overwrite_payload=m.SetPayload(payload=payload, filter=here, shard_key=bucket)
    )
