"""Shared vector index on a Qdrant server, behind URLs of `qdrant://`, `http://` and `https://`."""

import contextlib
from typing import Any

from ...ports.engines import IndexSpec, VectorIndex
from ...settings import Settings, parse_server_url

_CONNECTION = {"grpc_port": int, "timeout": int, "prefer_grpc": bool}
_LAYOUT = {"shards": int, "replicas": int, "buckets": int, "quantize": bool}


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
        from .client import connect
        from .collection import drop

        given = _arguments(url, generation, settings)
        connection = {name: value for name, value in given.items() if name not in _LAYOUT}
        with contextlib.closing(connect(**connection)) as client:
            drop(client, given["collection"])


def _arguments(url: str, generation: int, settings: Settings) -> dict[str, Any]:
    server = parse_server_url("vectors", url, _CONNECTION | _LAYOUT)
    name = server.name or "commonplace"
    return {
        "url": server.url,
        "api_key": server.password or server.user or settings.qdrant_api_key or None,
        "collection": name if generation == 1 else f"{name}__generation_{generation}",
        **server.options,
    }
