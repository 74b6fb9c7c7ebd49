"""Shared vector index on a Qdrant server, behind URLs of `qdrant://`, `http://` and `https://`."""

from typing import Any

from ...ports.engines import IndexSpec
from ...ports.stores import VectorIndex
from ...settings import Settings, parse_server_url

_OPTIONS = {
    **dict.fromkeys(("grpc_port", "shards", "replicas", "buckets", "timeout"), int),
    **dict.fromkeys(("prefer_grpc", "quantize"), bool),
}


class QdrantEngine:
    """An `IndexEngine`: `qdrant://key@host:6333/collection?option=value`, a collection each."""

    def open_index(self, url: str, spec: IndexSpec, settings: Settings) -> VectorIndex:
        """Open or create the collection; its options are those of `QdrantIndex`."""
        from .index import QdrantIndex

        return QdrantIndex(
            **_arguments(url, spec.generation, settings),
            dimensions=spec.dimensions,
            meta=spec.meta,
            token_dimensions=spec.token_dimensions,
        )

    def drop_index(self, url: str, generation: int, settings: Settings) -> None:
        """Remove the collection; a missing one is ignored."""
        from .collection import drop

        drop(**_arguments(url, generation, settings))


def _arguments(url: str, generation: int, settings: Settings) -> dict[str, Any]:
    server = parse_server_url("vectors", url, _OPTIONS)
    name = server.name or "commonplace"
    return {
        "url": server.url,
        "api_key": server.password or server.user or settings.qdrant_api_key or None,
        "collection": name if generation == 1 else f"{name}__generation_{generation}",
        **server.options,
    }
