"""Where the configured vector store and graph store are, in the words of `Memory.open`."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from commonplace import Settings

from .config import Section, Unknown
from .exceptions import ConfigurationError

_QDRANT = (
    "collection_name", "embedding_model_dims", "client", "host", "port", "path", "url", "api_key",
    "https", "on_disk",
)  # fmt: skip
_NEO4J = ("url", "username", "password", "database", "base_label")
_SECRET = ("username", "password")
_FOLDERS = ("faiss", "chroma")
_DEFAULT = "mem0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a memory is.

    Attributes:
        path: the folder of what is embedded; None for the core's own.
        vectors, graph: URLs of servers; None for embedded.
        dimensions: what the store's vectors must be long; None for any.
    """

    path: str | None = None
    vectors: str | None = None
    graph: str | None = None
    dimensions: int | None = None

    @property
    def needs_server(self) -> bool:
        """A server must answer."""
        return self.vectors is not None or self.graph is not None


def places(vector: Section | None, graph: Section | None, unknown: Unknown) -> Places:
    """Work out where a memory is.

    Raises:
        ConfigurationError: a store is of a kind that we have not, or its keys contradict.
    """
    return Places(**_vectors(vector, unknown), graph=_graph(graph, unknown))


def has_graph(graph: Section | None, *, enabled: bool) -> bool:
    """Tell whether relations were asked for."""
    return graph is not None and graph.has_config and enabled


def _vectors(given: Section | None, unknown: Unknown) -> dict[str, Any]:
    if given is None:
        return {}
    if given.provider in _FOLDERS:
        path = given.values.get("path")
        if path is None:
            raise ConfigurationError(f"vector_store {given.provider!r} needs a path here.")
        rest = [name for name in given.values if name not in ("path", "collection_name")]
        unknown.note("vector_store.config", rest)
        unknown.note("vector_store", [f"provider={given.provider} (our engine is used in {path})"])
        return {"path": _folder(path, given.values.get("collection_name"))}
    if given.provider != "qdrant":
        raise ConfigurationError(
            f"vector_store.provider={given.provider!r} is not supported. Use 'qdrant', a server "
            "or none, and bring memories over with `commonplace import mem0`."
        )
    values = dict(given.values)
    if wrong := sorted(set(values) - set(_QDRANT)):
        raise ConfigurationError(
            f"vector_store.config has unknown keys {wrong}. There are: {', '.join(_QDRANT)}."
        )
    if values.get("path") == str(Path(tempfile.gettempdir()) / "qdrant"):
        del values["path"]  # mem0 makes that up by itself
    size = {"dimensions": values.get("embedding_model_dims")}
    if "client" in values:
        return {"vectors": _of_client(values["client"], values), **size}
    if "host" in values or "url" in values:
        unused = [name for name in ("on_disk", "path") if name in values]
        unknown.note("vector_store.config", unused)
        return {"vectors": _server(values), **size}
    if "api_key" in values:
        raise ConfigurationError("vector_store.config has an api_key and no host or url. Give one.")
    return {"path": _folder(values.get("path"), values.get("collection_name")), **size}


def _server(values: Mapping[str, Any]) -> str:
    if "url" in values:
        parts = urlsplit(str(values["url"]))
        if not parts.scheme or not parts.hostname:
            raise ConfigurationError(
                "vector_store.config.url is no URL. Give one such as http://localhost:6333."
            )
        scheme, host, port = parts.scheme, parts.hostname, parts.port or 6333
    else:
        scheme, host, port = "http", str(values["host"]), values.get("port", 6333)
        scheme = "https" if values.get("https") else scheme
    scheme = {"http": "qdrant"}.get(scheme, scheme)
    key = f"{quote(str(values['api_key']), safe='')}@" if values.get("api_key") else ""
    name = quote(str(values.get("collection_name", _DEFAULT)), safe="")
    # mem0 speaks HTTP, so the other port may not be open.
    return f"{scheme}://{key}{host}:{port}/{name}?prefer_grpc=false"


def _of_client(client: Any, values: Mapping[str, Any]) -> str:
    remote = getattr(client, "_client", client)
    host, port = getattr(remote, "_host", None), getattr(remote, "_port", None)
    if host is None:
        raise ConfigurationError(
            "vector_store.config.client is in local mode, which loses rows when two write at "
            "once. Leave it out for our embedded engine, or give a client of a server."
        )
    https = getattr(remote, "_https", False)
    key = getattr(remote, "_api_key", None)
    return _server({**values, "host": host, "port": port, "https": https, "api_key": key})


def _graph(given: Section | None, unknown: Unknown) -> str | None:
    if given is None or not given.has_config:
        return None
    known = ("llm", "custom_prompt")
    unknown.note("graph_store", [name for name in given.more if name not in known])
    if given.provider == "embedded":
        unknown.note("graph_store.config", given.values)
        return None
    if given.provider == "kuzu":
        unknown.note("graph_store", ["provider=kuzu (its file is not read; ours is embedded)"])
        return None
    if given.provider != "neo4j":
        raise ConfigurationError(
            f"graph_store.provider={given.provider!r} is not supported. Use 'neo4j' or 'embedded'."
        )
    values = given.values
    if wrong := sorted(set(values) - set(_NEO4J)):
        raise ConfigurationError(
            f"graph_store.config has unknown keys {wrong}. There are: {', '.join(_NEO4J)}."
        )
    if values.get("base_label"):
        unknown.note("graph_store.config", ["base_label (our labels are always set)"])
    if ("username" in values) != ("password" in values):
        raise ConfigurationError("graph_store.config has one of username and password. Give both.")
    parts = urlsplit(str(values.get("url", "")))
    if not parts.scheme or not parts.hostname:
        raise ConfigurationError(
            "graph_store.config.url is no URL. Give one such as neo4j://localhost:7687."
        )
    user, at, host = parts.netloc.rpartition("@")
    if "username" in values:
        user, at = ":".join(quote(str(values[one]), safe="") for one in _SECRET), "@"
    database = f"/{quote(str(values['database']), safe='')}" if "database" in values else ""
    options = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{user}{at}{host}{database or parts.path}{options}"


def _folder(path: object, collection: object) -> str | None:
    """Name the folder: one for each collection, the default's being the path itself."""
    name = _DEFAULT if collection is None else str(collection)
    if name == _DEFAULT:
        return None if path is None else str(path)
    if name in ("", ".", "..") or Path(name).name != name:
        raise ConfigurationError(f"collection_name={name!r} cannot be the name of a folder.")
    return str(Path(Settings.from_env().path if path is None else str(path)) / name)
