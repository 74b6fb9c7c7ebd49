"""Qdrant collection: creation, verification of its metadata, and its shards."""

import logging
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidRecordError, SchemaMismatchError
from ...ports.engines import check_meta, has_tokens
from ...types import Scope
from .client import RetryingClient
from .client import models as m

OWNER = "commonplace"
_log = logging.getLogger("commonplace")

_REQUIRED = (1, 16)  # the first with conditional updates
_RECOMMENDED = (1, 19)  # the first with term statistics of a scope
# Below this size a scope is searched exactly: 50,000 records of 512 numbers.
_EXACT_KB = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionLayout:
    """Layout of a new collection; see `QdrantIndex`."""

    quantize: bool = False
    shards: int | None = None
    replicas: int | None = None
    buckets: int = 1

    def bucket(self, scope: Scope) -> str | None:
        """Name the shard key of all that a scope covers; None without buckets."""
        if self.buckets == 1:
            return None
        return f"bucket-{zlib.crc32(scope.partition.encode()) % self.buckets}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionTraits:
    """Properties of an open collection that its queries depend on.

    Attributes:
        shards: over which one scope is spread.
        quantized: there are quantized vectors beside the full ones.
        ranges: the server allows conditions on numbers without an index.
        local: this is the driver's imitation of a server, where every search is exact.
        tokens: its token vectors are those of the present embedder.
        passages: a record has a vector for each passage; it has one in a collection that was made
            before there were any.
    """

    shards: int
    quantized: bool
    ranges: bool
    local: bool
    tokens: bool
    passages: bool

    def nearest(self, vector: list[float]) -> Any:
        """Put a query's vector as this collection takes it."""
        return [vector] if self.passages else vector

    def candidate_params(self, scope: Scope) -> m.SearchParams | None:
        """Build the parameters of the search for candidates."""
        if self.local:
            return None
        # Graphs are built for users only.
        exact = scope.user_id is None
        quantized = m.QuantizationSearchParams(rescore=True, oversampling=2.0)
        return m.SearchParams(exact=exact, quantization=quantized if self.quantized else None)

    def scoring_params(self) -> m.SearchParams | None:
        """Build the parameters of scoring candidates: by their full vectors."""
        full = m.QuantizationSearchParams(ignore=True)
        return m.SearchParams(quantization=full) if self.quantized else None


def open_collection(
    client: RetryingClient,
    name: str,
    *,
    dimensions: int,
    meta: Mapping[str, str],
    layout: CollectionLayout,
) -> CollectionTraits:
    """Open the collection, and make it if it is missing.

    Raises:
        SchemaMismatchError: another program made it, or it has other `meta`; nothing was touched.
        InvalidRecordError: the server is too old or does not support this layout.
    """
    _check_server(str(client.call(client.driver.info).version))
    wanted = {**meta, "dimensions": str(dimensions), "buckets": str(layout.buckets)}
    if not client.call(client.driver.collection_exists, name):
        try:
            _make(client, name, dimensions, wanted, layout)
        except InvalidRecordError:  # another process was faster, or it cannot be made
            if not client.call(client.driver.collection_exists, name):
                raise
    info = client.call(client.driver.get_collection, name)
    stored = _read_meta(name, info)
    check_meta(stored, wanted)
    _finish(client, name, info.payload_schema, layout)
    strict = info.config.strict_mode_config
    vectors: Any = info.config.params.vectors
    return CollectionTraits(
        shards=1 if client.local else info.config.params.shard_number or 1,
        quantized=info.config.quantization_config is not None,
        ranges=not (strict and strict.enabled and strict.unindexed_filtering_retrieve is False),
        local=client.local,
        tokens=has_tokens(stored, wanted),
        passages=vectors["dense"].multivector_config is not None,
    )


def drop(client: RetryingClient, name: str) -> None:
    """Remove a collection that this package made; a missing one is ignored.

    Raises:
        SchemaMismatchError: another program made it.
    """
    if client.call(client.driver.collection_exists, name):
        _read_meta(name, client.call(client.driver.get_collection, name))
        client.call(client.driver.delete_collection, name)


def _make(
    client: RetryingClient,
    name: str,
    dimensions: int,
    meta: dict[str, str],
    layout: CollectionLayout,
) -> None:
    more: dict[str, Any] = {}
    if layout.quantize:
        small = m.ScalarQuantizationConfig(type=m.ScalarType.INT8, quantile=0.99, always_ram=True)
        more["quantization_config"] = m.ScalarQuantization(scalar=small)
    if layout.replicas:
        # A write that only one replica accepted would be lost with that replica.
        more["replication_factor"] = layout.replicas
        more["write_consistency_factor"] = layout.replicas // 2 + 1
    if layout.buckets > 1:
        more["sharding_method"] = m.ShardingMethod.CUSTOM
    dense = m.VectorParams(
        size=dimensions,
        distance=m.Distance.COSINE,
        on_disk=layout.quantize or None,
        # A vector for each passage of a text, of which the nearest counts.
        multivector_config=m.MultiVectorConfig(comparator=m.MultiVectorComparator.MAX_SIM),
    )
    client.call(
        client.driver.create_collection,
        name,
        vectors_config={"dense": dense},
        sparse_vectors_config={"terms": m.SparseVectorParams(modifier=m.Modifier.IDF)},
        hnsw_config=m.HnswConfigDiff(m=0, payload_m=16, full_scan_threshold=_EXACT_KB),
        shard_number=layout.shards,
        metadata={OWNER: meta},
        **more,
    )


def _finish(
    client: RetryingClient, name: str, known: Mapping[str, Any], layout: CollectionLayout
) -> None:
    """Make missing shard keys and indexes, also after an interrupted creation."""
    if client.local:  # the driver's local mode has no indexes or shards
        return
    if layout.buckets > 1:  # first: without shards no index can be made
        wanted = {f"bucket-{n}" for n in range(layout.buckets)}
        for bucket in sorted(wanted - _buckets(client, name)):
            try:
                client.call(client.driver.create_shard_key, name, bucket)
            except InvalidRecordError:  # another process was faster, or it cannot be made
                if bucket not in _buckets(client, name):
                    raise
    fields: dict[str, Any] = {"user_id": _keyword_index(tenant=True)}
    fields |= {field: _keyword_index() for field in ("scopes", "live", "passing", "turn", "tags")}
    fields |= {f"numbers.{field}": _float_index() for field in ("created_at", "updated_at")}
    fields |= {"numbers.occurred_at": _float_index(), "until": _float_index()}
    fields["version"] = m.IntegerIndexParams(
        type=m.IntegerIndexType.INTEGER, lookup=False, range=True, enable_hnsw=False
    )
    for field, params in fields.items():
        if field not in known:
            client.write(
                client.driver.create_payload_index, name, field_name=field, field_schema=params
            )


def _keyword_index(*, tenant: bool = False) -> m.KeywordIndexParams:
    # Only users get a graph over their vectors; smaller scopes are searched exactly.
    return m.KeywordIndexParams(
        type=m.KeywordIndexType.KEYWORD, is_tenant=tenant or None, enable_hnsw=tenant
    )


def _float_index() -> m.FloatIndexParams:
    return m.FloatIndexParams(type=m.FloatIndexType.FLOAT, enable_hnsw=False)


def _buckets(client: RetryingClient, name: str) -> set[str]:
    return {
        str(found.key)
        for found in client.call(client.driver.list_shard_keys, name).shard_keys or []
    }


def _read_meta(name: str, info: m.CollectionInfo) -> Mapping[str, Any]:
    """Read what this package noted when it made the collection, and refuse another's."""
    stored = (info.config.metadata or {}).get(OWNER)
    if not isinstance(stored, Mapping):
        what = f"the collection {name!r} of"
        raise SchemaMismatchError(what=what, stored="another program", wanted=OWNER)
    return stored


def _check_server(version: str) -> None:
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    given = (int(numbers[1]), int(numbers[2])) if numbers else _RECOMMENDED
    if given < _REQUIRED:
        raise InvalidRecordError(
            field="server",
            value=version,
            reason="has no conditional updates",
            hint="Run Qdrant 1.19 or newer.",
        )
    if given < _RECOMMENDED:
        _log.warning(
            "The Qdrant server %s weights terms by their rarity among the records of all users; "
            "1.19 and newer count within the scope of the search. Scores will differ a little.",
            version,
        )
