"""Configuration as mem0's users write it, and the location and settings that it names.

It may be a dict, our `MemoryConfig`, or mem0's own object. Objects are read attribute by attribute
and dicts are never changed, because a live model may be among the values. Unknown keys are named in
one warning, or refused if the configuration is strict. Whatever else cannot be used raises a
`ConfigurationError`.
"""

import ipaddress
import logging
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, quote, urlsplit

from commonplace import InvalidRecordError, Settings
from commonplace.agents import check_name, is_sound, short_repr

from .arguments import Compat
from .exceptions import ConfigurationError

logger: logging.Logger = logging.getLogger("commonplace_mem0")
_SECTIONS = ("vector_store", "llm", "embedder", "graph_store", "reranker")
_PROMPTS = ("custom_instructions", "custom_fact_extraction_prompt", "custom_prompt")
_TYPES: Mapping[str, type] = {
    **dict.fromkeys((*_PROMPTS, "custom_update_memory_prompt", "version"), str),
    **dict.fromkeys(("enable_graph", "strict"), bool),
}
_QDRANT = (
    "collection_name", "embedding_model_dims", "client", "host", "port", "path", "url", "api_key",
    "https", "on_disk",
)  # fmt: skip
_NEO4J = ("url", "username", "password", "database", "base_label")
_CREDENTIALS = ("username", "password")
_FOLDERS = ("faiss", "chroma")
_DEFAULT_COLLECTION = "mem0"
# Arguments of the core's `Memory.open`, and keys of a store outside of its section: mem0 never had
# them here, and whoever gives them means them, so that a warning is not enough.
_NOT_MEM0 = {
    "path", "vectors", "graph", "journal", "chat", "settings",
    "host", "port", "url", "collection_name",
}  # fmt: skip
_WARNINGS = {
    "no_model": "No language model is configured, so add() stores texts as they are. Configure "
    '"llm", or pass infer=False if that is intended.',
    "limit": "search() returns at most 10000 memories. get_all() pages through all of them.",
    "data": "update(data=...) is mem0's old name. Use text=...",
    "users": "A call that names no user acts on memories of no user: there were none, or those of "
    "users stay. Give the user_id, or use Memory(..., compat='v1') or 'v2' to act on every user's "
    "memories with the agent or run, as in mem0.",
}


@dataclass(kw_only=True)
class MemoryConfig:
    """A configuration, with the keys of every version of mem0.

    Attributes:
        vector_store, llm, embedder, graph_store, reranker: `{"provider": ..., "config": {...}}`,
            or a model itself.
        history_db_path: has no effect, as history is stored with the memories.
        version: `v1.0` answers with bare lists.
        custom_instructions, custom_fact_extraction_prompt, custom_prompt: instructions for the
            model with every extraction; three names of one setting.
        custom_update_memory_prompt: added to them, as there is one call.
        enable_graph: False switches a configured graph off.
        fallback: `embedded` opens a folder if no server answers; without it that is an error.
        strict: unknown keys are an error.
    """

    vector_store: Any = None
    llm: Any = None
    embedder: Any = None
    graph_store: Any = None
    reranker: Any = None
    history_db_path: str | None = None
    version: str = "v1.1"
    custom_instructions: str | None = None
    custom_fact_extraction_prompt: str | None = None
    custom_prompt: str | None = None
    custom_update_memory_prompt: str | None = None
    enable_graph: bool = True
    fallback: Literal["embedded"] | None = None
    strict: bool = False

    @property
    def instructions(self) -> str | None:
        """All prompts, one after the other; None if there is none."""
        names = (*_PROMPTS, "custom_update_memory_prompt")
        prompts = dict.fromkeys(text for name in names if (text := getattr(self, name)))
        return "\n".join(prompts) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSection:
    """One section.

    Attributes:
        provider: its name; empty if the section is a model itself.
        values: those of `config` that are not None.
        extra: keys beside provider and config.
        model: the section, if it is a model.
    """

    provider: str
    values: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    model: Any = None


@dataclass(slots=True, kw_only=True)
class Mem0Settings:
    """Settings that the methods of a memory need, read from its configuration.

    Attributes:
        compat: the era of calls, see `arguments`.
        shows_relations: a graph is configured, so answers have `relations`.
        bare_lists: answers are lists, as with `version: "v1.0"`.
        instructions: for the model with every extraction.
        model: see `models`; None for none.
        has_core: an open memory was given, whose own model extracts facts if `infer=True`.
        reranker: has `rerank(query, documents, top_k)`; None for none.
    """

    compat: Compat = "auto"
    shows_relations: bool = False
    bare_lists: bool = False
    instructions: str | None = None
    model: Callable[..., Any] | None = None
    has_core: bool = False
    reranker: Any = None
    _logged: set[str] = field(default_factory=set)

    def warn_once(self, what: str) -> None:
        """Log one of the warnings, once for each memory."""
        if what not in self._logged:
            self._logged.add(what)
            logger.warning(_WARNINGS[what])

    def shape(self, answer: dict[str, Any]) -> Any:
        """Return the answer in the configured version's shape."""
        if self.bare_lists and "relations" not in answer and "ticket" not in answer:
            return answer["results"]
        return answer


# -- reading ------------------------------------------------------------------------------------


def report_unknown(keys: Sequence[str], *, strict: bool) -> None:
    """Log keys without an effect in one warning, or refuse them if the configuration is strict."""
    if keys:
        message = f"These configuration keys have no effect here: {', '.join(keys)}."
        if strict:
            raise ConfigurationError(f"{message} Leave them out, or leave out `strict`.")
        logger.warning(message)


def read_config(given: object, unknown: list[str]) -> MemoryConfig:
    """Read a configuration of any kind; None is all defaults.

    Args:
        unknown: is given the keys that have no effect, here and below.
    """
    if given is None:
        return MemoryConfig()
    if isinstance(given, MemoryConfig):
        return given
    if callable(getattr(given, "search", None)):
        raise ConfigurationError(
            f"config must be a dict or a MemoryConfig, not {type(given).__name__}. To use an open "
            "commonplace Memory, pass it by name: Memory(core=...)."
        )
    if isinstance(given, Mapping):
        values = {str(name): value for name, value in given.items()}
    elif any(hasattr(given, name) for name in _SECTIONS) and not isinstance(given, type):
        values = _values(given) or {}
    else:
        raise ConfigurationError(
            f"config must be a dict or a MemoryConfig, not {type(given).__name__}."
        )
    known = {item.name for item in fields(MemoryConfig)}
    if meant := sorted(_NOT_MEM0 & values.keys()):
        raise ConfigurationError(
            f"config[{meant[0]!r}]={_shown(values[meant[0]])} is no key of mem0's. For a folder "
            'give {"vector_store": {"provider": "qdrant", "config": {"path": ...}}}, for a server '
            "give url instead of path; or open the memory yourself: "
            "Memory(core=commonplace.Memory.open(...))."
        )
    unknown += [name for name in values if name not in known]
    found = {name: value for name, value in values.items() if name in known and value is not None}
    for name, value in found.items():
        wanted = _TYPES.get(name, object)
        if not isinstance(value, wanted):
            reason = f"must be of the type {wanted.__name__}."
            raise ConfigurationError.of(f"config[{name!r}]", value, reason)
    return MemoryConfig(**found)


def read_section(name: str, given: object) -> ConfigSection | None:
    """Read a section; None if there is none."""
    if given is None or given == {}:
        return None
    values = _values(given)
    if values is None or not ({"provider", "config"} & values.keys()):
        if isinstance(given, Mapping):
            raise ConfigurationError(
                f"{name} has the keys {sorted(values or ())} and no provider. Give one, and config."
            )
        return ConfigSection(provider="", model=given)
    config = values.pop("config", None)
    provider = values.pop("provider", None)
    if not isinstance(provider, str) or not provider:
        raise ConfigurationError.of(f"{name}.provider", provider, "must be the name of a provider.")
    inner = _values(config) if config is not None else {}
    if inner is None:
        raise ConfigurationError(
            f"{name}.config must be a mapping, not {type(config).__name__}. Give a dict."
        )
    extra = {key: value for key, value in values.items() if value is not None}
    return ConfigSection(provider=provider, values=inner, extra=extra)


def _values(given: object) -> dict[str, Any] | None:
    """Read what a dict or a plain object has that is not None; None for a model."""
    if isinstance(given, Mapping):
        return {str(key): value for key, value in given.items() if value is not None}
    if callable(given) or any(hasattr(given, name) for name in ("complete", "embed", "invoke")):
        return None
    names = getattr(given, "__dict__", None)
    if names is None:
        return None
    if (assigned := getattr(given, "model_fields_set", None)) is not None:
        names = {*assigned, *({"provider", "config"} & set(names))}  # not its own defaults
    found = {name: getattr(given, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


# -- location -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0Location:
    """Location of a memory, by the arguments of `Memory.open`.

    Attributes:
        path: the folder of the embedded engines; None for that of the environment.
        vectors, graph: URLs of servers; None for embedded engines, or those of the environment.
        dimensions: the length that the store's vectors must have; None for any.
    """

    path: str | None = None
    vectors: str | None = None
    graph: str | None = None
    dimensions: int | None = None


def find_location(
    vector: ConfigSection | None, graph: ConfigSection | None, unknown: list[str]
) -> Mem0Location:
    """Find the location that the sections of the stores name."""
    return Mem0Location(**_vector_location(vector, unknown), graph=_graph_url(graph, unknown))


def _vector_location(given: ConfigSection | None, unknown: list[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if given.provider in _FOLDERS:
        path = given.values.get("path")
        if path is None:
            raise ConfigurationError(f"vector_store {given.provider!r} needs a path here.")
        rest = [name for name in given.values if name not in ("path", "collection_name")]
        unknown += [f"vector_store.config.{name}" for name in rest]
        unknown.append(f"vector_store.provider={given.provider} (our engine is used in {path})")
        return {"path": _folder(given.values)}
    if given.provider != "qdrant":
        raise ConfigurationError.of(
            "vector_store.provider",
            given.provider,
            "is not supported. Use 'qdrant', a server or none, and import its memories with "
            "`commonplace import mem0`.",
        )
    values = dict(given.values)
    _refuse_unknown("vector_store", values, _QDRANT)
    if values.get("path") == str(Path(tempfile.gettempdir()) / "qdrant"):
        del values["path"]  # mem0's own default
    size = {"dimensions": values.get("embedding_model_dims")}
    if "client" in values:
        return {"vectors": _client_url(values["client"], values), **size}
    if "host" in values or "url" in values:
        unused = [name for name in ("on_disk", "path") if name in values]
        unknown += [f"vector_store.config.{name}" for name in unused]
        return {"vectors": _server_url(values), **size}
    if "api_key" in values:
        raise ConfigurationError("vector_store.config has an api_key and no host or url. Give one.")
    return {"path": _folder(values), **size}


def _server_url(values: Mapping[str, Any]) -> str:
    if "url" in values:
        parts = split_url("vector_store.config.url", values["url"], "http://localhost:6333.")
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port or 6333
    else:
        scheme, host, port = "http", values["host"], values.get("port", 6333)
        scheme = "https" if values.get("https") else scheme
        _check_server(host, port)
    scheme = {"http": "qdrant"}.get(scheme, scheme)
    host = f"[{host}]" if ":" in host else host
    given = values.get("api_key")
    key = f"{_quoted('vector_store.config.api_key', given)}@" if given else ""
    name = quote(_collection(values), safe="")
    # mem0 speaks HTTP, so the other port may not be open.
    return f"{scheme}://{key}{host}:{port}/{name}?prefer_grpc=false"


def _client_url(client: Any, values: Mapping[str, Any]) -> str:
    remote = getattr(client, "_client", client)
    host, port = getattr(remote, "_host", None), getattr(remote, "_port", None)
    if host is None:
        raise ConfigurationError(
            "vector_store.config.client is in local mode, which loses rows when two write at "
            "once. Leave it out for our embedded engine, or give a client of a server."
        )
    https = getattr(remote, "_https", False)
    key = getattr(remote, "_api_key", None)
    return _server_url({**values, "host": host, "port": port, "https": https, "api_key": key})


def _graph_url(given: ConfigSection | None, unknown: list[str]) -> str | None:
    if given is None:
        return None
    known = ("llm", "custom_prompt")
    unknown += [f"graph_store.{name}" for name in given.extra if name not in known]
    if given.provider == "embedded":
        unknown += [f"graph_store.config.{name}" for name in given.values]
        return None
    if given.provider == "kuzu":
        unknown.append("graph_store.provider=kuzu (its file is not read; ours is embedded)")
        return None
    if given.provider != "neo4j":
        reason = "is not supported. Use 'neo4j' or 'embedded'."
        raise ConfigurationError.of("graph_store.provider", given.provider, reason)
    values = given.values
    if not values and Settings.from_env().graph:
        return None
    _refuse_unknown("graph_store", values, _NEO4J)
    if values.get("base_label"):
        unknown.append("graph_store.config.base_label (our labels are always set)")
    if ("username" in values) != ("password" in values):
        raise ConfigurationError("graph_store.config has one of username and password. Give both.")
    parts = split_url(
        "graph_store.config.url",
        values.get("url", ""),
        "neo4j://localhost:7687. Give it, or set COMMONPLACE_GRAPH, or name the provider "
        "'embedded'.",
    )
    user, at, host = parts.netloc.rpartition("@")
    if "username" in values:
        quoted = [_quoted(f"graph_store.config.{key}", values[key]) for key in _CREDENTIALS]
        user, at = ":".join(quoted), "@"
    database = ""
    if "database" in values:
        database = f"/{_quoted('graph_store.config.database', values['database'])}"
    options = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{user}{at}{host}{database or parts.path}{options}"


def _refuse_unknown(section: str, values: Mapping[str, Any], known: Sequence[str]) -> None:
    if wrong := sorted(set(values) - set(known)):
        raise ConfigurationError(
            f"{section}.config has unknown keys {short_repr(wrong)}. There are: {', '.join(known)}."
        )


def split_url(field: str, url: object, hint: str) -> SplitResult:
    """Split the URL of a server, which must have a scheme and a host."""
    try:
        text = str(url)
        parts = urlsplit(text)
        if parts.scheme and _is_host(parts.hostname) and parts.port != 0 and is_sound(text):
            return parts
    except (RecursionError, ValueError):
        pass
    raise ConfigurationError(
        f"{field}={_shown(url)} must be a URL with a host and, if any, a port up to 65535, such as "
        f"{hint}"
    )


def _shown(value: object) -> str:
    """Show a value, without what may be secret in a malformed URL."""
    text = value if isinstance(value, str) else short_repr(value)
    scheme, mark, _ = text.partition("://")
    if "@" in text:
        return "'…'"
    return short_repr(f"{scheme}{mark}…" if mark else value)


def _is_host(host: object) -> bool:
    """Tell whether this is a name or an address, without a port or brackets."""
    if not isinstance(host, str):
        return False
    with suppress(ValueError):
        ipaddress.IPv6Address(host)
        return True
    return re.fullmatch(r"[\w.-]+", host) is not None


def _check_server(host: object, port: object) -> None:
    if not _is_host(host):
        raise ConfigurationError(
            f"vector_store.config.host={_shown(host)} must be the name of a host, such as "
            "'localhost'. Give a port as port, and a URL as url."
        )
    number = int(port) if isinstance(port, str) and re.fullmatch("[0-9]{1,5}", port) else port
    if type(number) is not int or not 1 <= number <= 65535:
        reason = "must be a number from 1 to 65535."
        raise ConfigurationError.of("vector_store.config.port", port, reason)


def _quoted(field: str, value: object) -> str:
    """Write a part of a URL; the error does not show it, as it may be secret."""
    if type(value) is not int and not (isinstance(value, str) and is_sound(value)):
        raise ConfigurationError(
            f"{field} of the type {type(value).__name__} must be a text without a lone surrogate."
        )
    return quote(str(value), safe="")


def _collection(values: Mapping[str, Any]) -> str:
    name = values.get("collection_name", _DEFAULT_COLLECTION)
    try:
        check_name("collection_name", name)
    except InvalidRecordError as error:
        raise ConfigurationError(f"vector_store.config.{error}") from error
    return str(name)


def _folder(values: Mapping[str, Any]) -> str | None:
    """Return the folder of a collection; that of the default one is the path itself."""
    path = values.get("path")
    if not isinstance(path, str | PathLike | None):
        raise ConfigurationError.of(
            "vector_store.config.path", path, "must be the path of a folder."
        )
    name = _collection(values)
    if name == _DEFAULT_COLLECTION:
        return None if path is None else str(path)
    if name in ("", ".", "..") or Path(name).name != name:
        raise ConfigurationError(f"collection_name={name!r} cannot be the name of a folder.")
    if path is None and (settings := Settings.from_env()).vectors:
        raise ConfigurationError(
            f"collection_name={name!r} names a folder here, and COMMONPLACE_VECTORS names another "
            "place. Give the collection a path, host or url, or leave collection_name out."
        )
    return str(Path(settings.path if path is None else str(path)) / name)
