"""Qdrant collection: creation, verification of its metadata, and its shards."""

import logging
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidRecordError, SchemaMismatchError
from ...model import Scope
from .client import Link, connect
from .client import models as m

OWNER = "commonplace"
_log = logging.getLogger("commonplace")

_NEEDED = (1, 16)  # conditional updates
_WANTED = (1, 19)  # term statistics of a scope
# Below this size a scope is searched exactly: 50,000 records of 512 numbers.
_EXACT_KB = 100_000


def _keyword(*, tenant: bool = False) -> m.KeywordIndexParams:
    # Only whole users are worth a graph over their vectors.
    return m.KeywordIndexParams(
        type=m.KeywordIndexType.KEYWORD, is_tenant=tenant or None, enable_hnsw=tenant
    )


def _number() -> m.FloatIndexParams:
    return m.FloatIndexParams(type=m.FloatIndexType.FLOAT, enable_hnsw=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a new collection is laid out; see `QdrantIndex`."""

    quantize: bool = False
    shards: int | None = None
    replicas: int | None = None
    buckets: int = 1

    def bucket(self, scope: Scope) -> str | None:
        """Name the shard key under which all that a scope covers lives; None without buckets."""
        if self.buckets == 1:
            return None
        return f"bucket-{zlib.crc32(scope.partition.encode()) % self.buckets}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What questions must know of a collection.

    Attributes:
        parts: shards over which one scope is spread.
        quantized: there are shortened vectors beside the full ones.
        ranges: numbers without an index may be asked for.
        local: it is the driver's imitation, where every look is exact.
    """

    parts: int
    quantized: bool
    ranges: bool
    local: bool

    def first_look(self, scope: Scope) -> m.SearchParams | None:
        """Say how to look for candidates."""
        if self.local:
            return None
        # Graphs are built for users only.
        exact = scope.user_id is None
        short = m.QuantizationSearchParams(rescore=True, oversampling=2.0)
        return m.SearchParams(exact=exact, quantization=short if self.quantized else None)

    def last_look(self) -> m.SearchParams | None:
        """Say how to score candidates: at their full vectors."""
        full = m.QuantizationSearchParams(ignore=True)
        return m.SearchParams(quantization=full) if self.quantized else None


def open_collection(
    link: Link, name: str, *, dimensions: int, meta: Mapping[str, str], layout: Layout
) -> Traits:
    """Find the collection or make it.

    Raises:
        SchemaMismatchError: it was made by somebody else, or with other `meta`; nothing was touched.
        InvalidRecordError: the server is too old or cannot lay a collection out like this.
    """
    _check_server(str(link.ask(link.client.info).version))
    wanted = {**meta, "dimensions": str(dimensions), "buckets": str(layout.buckets)}
    if not link.ask(link.client.collection_exists, name):
        try:
            _make(link, name, dimensions, wanted, layout)
        except InvalidRecordError:  # somebody else was faster, or it cannot be made
            if not link.ask(link.client.collection_exists, name):
                raise
    info = link.ask(link.client.get_collection, name)
    _agree(name, info.config.metadata or {}, wanted)
    _finish(link, name, info.payload_schema, layout)
    strict = info.config.strict_mode_config
    return Traits(
        parts=1 if link.local else info.config.params.shard_number or 1,
        quantized=info.config.quantization_config is not None,
        ranges=not (strict and strict.enabled and strict.unindexed_filtering_retrieve is False),
        local=link.local,
    )


def drop(
    url: str,
    *,
    collection: str,
    api_key: str | None = None,
    prefer_grpc: bool = True,
    grpc_port: int = 6334,
    timeout: float = 10.0,
    **_layout: Any,
) -> None:
    """Remove a collection of ours; one that is not there is none.

    Raises:
        SchemaMismatchError: it was made by another program.
    """
    client = connect(
        url, api_key=api_key, prefer_grpc=prefer_grpc, grpc_port=grpc_port, timeout=timeout
    )
    link = Link(client, store=f"{url}/{collection}", timeout=timeout)
    try:
        if link.ask(client.collection_exists, collection):
            held = link.ask(client.get_collection, collection).config.metadata or {}
            if OWNER not in held:
                what = f"the collection {collection!r} of"
                raise SchemaMismatchError(what=what, stored="another program", wanted=OWNER)
            link.ask(client.delete_collection, collection)
    finally:
        link.close()


def _make(link: Link, name: str, dimensions: int, meta: dict[str, str], layout: Layout) -> None:
    more: dict[str, Any] = {}
    if layout.quantize:
        small = m.ScalarQuantizationConfig(type=m.ScalarType.INT8, quantile=0.99, always_ram=True)
        more["quantization_config"] = m.ScalarQuantization(scalar=small)
    if layout.replicas:
        # A write that only one replica of several took would be lost with it.
        more["replication_factor"] = layout.replicas
        more["write_consistency_factor"] = layout.replicas // 2 + 1
    if layout.buckets > 1:
        more["sharding_method"] = m.ShardingMethod.CUSTOM
    dense = m.VectorParams(
        size=dimensions, distance=m.Distance.COSINE, on_disk=layout.quantize or None
    )
    link.ask(
        link.client.create_collection,
        name,
        vectors_config={"dense": dense},
        sparse_vectors_config={"terms": m.SparseVectorParams(modifier=m.Modifier.IDF)},
        hnsw_config=m.HnswConfigDiff(m=0, payload_m=16, full_scan_threshold=_EXACT_KB),
        shard_number=layout.shards,
        metadata={OWNER: meta},
        **more,
    )


def _finish(link: Link, name: str, known: Mapping[str, Any], layout: Layout) -> None:
    """Make what is missing, also after a maker that was interrupted."""
    if link.local:  # it has neither indexes nor shards
        return
    if layout.buckets > 1:  # first: without shards nothing makes an index
        wanted = {f"bucket-{n}" for n in range(layout.buckets)}
        for bucket in sorted(wanted - _buckets(link, name)):
            try:
                link.ask(link.client.create_shard_key, name, bucket)
            except InvalidRecordError:  # somebody else was faster, or it cannot be made
                if bucket not in _buckets(link, name):
                    raise
    fields: dict[str, Any] = {"user_id": _keyword(tenant=True)}
    fields |= {field: _keyword() for field in ("scopes", "live", "passing", "turn", "tags")}
    fields |= {f"numbers.{field}": _number() for field in ("created_at", "updated_at")}
    fields |= {"numbers.occurred_at": _number(), "until": _number()}
    fields["version"] = m.IntegerIndexParams(
        type=m.IntegerIndexType.INTEGER, lookup=False, range=True, enable_hnsw=False
    )
    for field, params in fields.items():
        if field not in known:
            link.write(
                link.client.create_payload_index, name, field_name=field, field_schema=params
            )


def _buckets(link: Link, name: str) -> set[str]:
    return {str(one.key) for one in link.ask(link.client.list_shard_keys, name).shard_keys or []}


def _agree(name: str, metadata: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    stored = metadata.get(OWNER)
    if not isinstance(stored, Mapping):
        what = f"the collection {name!r} of"
        raise SchemaMismatchError(what=what, stored="another program", wanted=OWNER)
    for what in sorted({*stored, *wanted}):
        if stored.get(what) != wanted.get(what):
            raise SchemaMismatchError(what=what, stored=stored.get(what), wanted=wanted.get(what))


def _check_server(version: str) -> None:
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    held = (int(numbers[1]), int(numbers[2])) if numbers else _WANTED
    if held < _NEEDED:
        raise InvalidRecordError(
            field="server",
            value=version,
            reason="has no conditional updates",
            hint="Run Qdrant 1.19 or newer.",
        )
    if held < _WANTED:
        _log.warning(
            "The Qdrant server %s ranks words by how rare they are among all users' records; "
            "1.19 and newer count inside the scope that is asked. Scores will differ a little.",
            version,
        )
