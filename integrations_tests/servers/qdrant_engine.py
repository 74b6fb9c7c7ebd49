"""Qdrant's own engine with the methods of a client that our index calls, for a server of ours.

What is asked of points is answered by the engine of the embedded index; collections are
described by the driver's imitation of a server.
"""

import shutil
import tempfile
from typing import Any

import qdrant_edge as qe
from qdrant_client import QdrantClient
from qdrant_client.http import models

_DONE = models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)


class Engine:
    """The points of one collection, in a temporary folder; `clear` makes it as new."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()
        self._described = QdrantClient(":memory:")
        self._shard: Any = None
        self._indexes: set[str] = set()

    def clear(self) -> None:
        """Forget collections and points; the engine's files and indexes stay, to save time."""
        self._described.close()
        self._described = QdrantClient(":memory:")
        if self._shard is not None:
            found, _ = self._shard.scroll(qe.ScrollRequest(limit=10_000, with_payload=False))
            ids = [one.id for one in found]
            self._shard.update(qe.UpdateOperation.delete_points(ids))

    def collection_exists(self, name):
        return self._described.collection_exists(name)

    def get_collection(self, name):
        return self._described.get_collection(name)

    def create_collection(self, name, vectors, *, sparse_vectors_config, metadata):
        self._described.create_collection(
            name, vectors, sparse_vectors_config=sparse_vectors_config, metadata=metadata
        )
        if self._shard is not None:
            return
        size = vectors["dense"].size
        best = qe.MultiVectorConfig(comparator=qe.MultiVectorComparator.MaxSim)
        dense = qe.EdgeVectorParams(size=size, distance=qe.Distance.Cosine, multivector_config=best)
        terms = qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)
        config = qe.EdgeConfig(vectors={"dense": dense}, sparse_vectors={"terms": terms})
        self._shard = qe.EdgeShard.create(self._folder, config)

    def create_index(self, field, params):
        kinds = {
            "keyword": qe.KeywordIndexParams,
            "float": qe.FloatIndexParams,
            "integer": qe.IntegerIndexParams,
        }
        if field not in self._indexes:
            self._indexes.add(field)
            made = kinds[params.type.value]()
            self._shard.update(qe.UpdateOperation.create_field_index(field, made))

    def upsert(self, _name, points, *, update_filter):
        made = [qe.Point(one.id, _vectors(one.vector), one.payload) for one in points]
        condition = _filter(update_filter)
        self._shard.update(qe.UpdateOperation.upsert_points(made, condition=condition))
        return _DONE

    def batch_update_points(self, _name, operations):
        for one in operations:
            change = one.overwrite_payload
            request = qe.ScrollRequest(filter=_filter(change.filter), with_payload=False)
            for point in self._shard.scroll(request)[0]:
                self._shard.update(qe.UpdateOperation.overwrite_payload([point.id], change.payload))

    def delete(self, _name, chosen):
        chosen = _filter(chosen.filter)
        self._shard.update(qe.UpdateOperation.delete_points_by_filter(chosen))

    def retrieve(self, _name, ids, *, with_payload, with_vectors=False):
        found = self._shard.retrieve(list(ids), with_payload, with_vector=with_vectors)
        return [
            models.Record(id=str(one.id), payload=one.payload, vector=one.vector) for one in found
        ]

    def count(self, _name, within):
        count = self._shard.count(qe.CountRequest(filter=_filter(within)))
        return models.CountResult(count=count)

    def scroll(self, _name, within, limit, *, offset, with_payload):
        request = qe.ScrollRequest(
            offset=offset, limit=limit, filter=_filter(within), with_payload=with_payload
        )
        found, after = self._shard.scroll(request)
        rows = [models.Record(id=str(one.id), payload=one.payload) for one in found]
        return rows, None if after is None else str(after)

    def query_batch_points(self, _name, requests):
        return [models.QueryResponse(points=self._query(one)) for one in requests]

    def _query(self, asked):
        lists = [
            qe.Prefetch(
                query=_query(one),
                filter=_filter(one.filter),
                limit=one.limit,
                params=_params(one.params),
            )
            for one in asked.prefetch or []
        ]
        request = qe.QueryRequest(
            prefetches=lists,
            query=_query(asked),
            filter=_filter(asked.filter),
            limit=asked.limit,
            params=_params(asked.params),
            with_payload=asked.with_payload or False,
            with_vector=asked.with_vector or False,
        )
        return [
            models.ScoredPoint(
                id=str(one.id),
                version=0,
                score=one.score,
                payload=one.payload,
                vector=_read(one.vector),
            )
            for one in self._shard.query(request)
        ]

    def close(self):
        if self._shard is not None:
            self._shard.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._described.close()


def _vectors(held):
    terms = held["terms"]
    return {"dense": held["dense"], "terms": qe.SparseVector(terms.indices, terms.values)}


def _read(held):
    terms = (held or {}).get("terms")
    if terms is None:
        return held or None
    return {**held, "terms": models.SparseVector(indices=terms.indices, values=terms.values)}


def _query(way):
    nearest = way.query.nearest
    if isinstance(nearest, models.SparseVector):
        nearest = qe.SparseVector(nearest.indices, nearest.values)
    return qe.Query.Nearest(nearest, using=way.using)


def _params(given):
    if given is None:
        return None
    if given.idf:
        return qe.SearchParams(idf=qe.IdfParams(corpus=_filter(given.idf.corpus)))
    return qe.SearchParams(exact=bool(given.exact))


def _filter(given):
    if given is None:
        return None
    parts = {
        name: [_condition(one) for one in getattr(given, name)]
        for name in ("must", "should", "must_not")
        if getattr(given, name)
    }
    return qe.Filter(**parts)


def _condition(given):
    if isinstance(given, models.Filter):
        return _filter(given)
    if isinstance(given, models.HasIdCondition):
        return qe.HasIdCondition(set(given.has_id))
    if isinstance(given.match, models.MatchValue):
        return qe.FieldCondition(given.key, match=qe.MatchValue(given.match.value))
    if given.match is not None:
        return qe.FieldCondition(given.key, match=qe.MatchAny(given.match.any))
    bounds = given.range
    ahead = qe.RangeFloat(lt=bounds.lt, lte=bounds.lte, gt=bounds.gt, gte=bounds.gte)
    return qe.FieldCondition(given.key, range=ahead)
