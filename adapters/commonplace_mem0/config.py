"""Configuration as mem0's users write it: a dict, our `MemoryConfig`, or mem0's own object.

Objects are read attribute by attribute and dicts are never changed, because a live model may be
among the values. What nobody understands is named in one warning, or refused when strict.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .exceptions import ConfigurationError

logger = logging.getLogger("commonplace_mem0")
_SECTIONS = ("vector_store", "llm", "embedder", "graph_store", "reranker")
_PROMPTS = ("custom_instructions", "custom_fact_extraction_prompt", "custom_prompt")


@dataclass(kw_only=True)
class MemoryConfig:
    """What can be configured, by mem0's names of every era.

    Attributes:
        vector_store, llm, embedder, graph_store, reranker: `{"provider": ..., "config": {...}}`;
            a model may also stand there itself.
        history_db_path: history is kept with the memories; only the importer reads this.
        version: `v1.0` answers with bare lists.
        custom_instructions, custom_fact_extraction_prompt, custom_prompt: told to the model with
            every extraction; names of one thing.
        custom_update_memory_prompt: told with them, for there is one call.
        enable_graph: False switches a configured graph off.
        fallback: `embedded` opens a folder when no server answers; without it that is an error.
        strict: what is not understood is an error.
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
        """All prompts that were given, one after the other; None for none."""
        names = (*_PROMPTS, "custom_update_memory_prompt")
        said = dict.fromkeys(text for name in names if (text := getattr(self, name)))
        return "\n".join(said) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section.

    Attributes:
        provider: its name; empty when the value itself is the model.
        values: of its `config`, those that are not None.
        more: what stands beside provider and config.
        itself: the value, when it is a model.
    """

    provider: str
    values: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    itself: Any = None
    has_config: bool = True


class Unknown:
    """Collects what was not understood, to tell it once."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def note(self, section: str, names: Iterable[str]) -> None:
        """Remember these keys of a section."""
        self.keys += [f"{section}.{name}" if section else name for name in names]

    def tell(self, *, strict: bool) -> None:
        """WarnOnce of all of them.

        Raises:
            ConfigurationError: there are some, and the configuration is strict.
        """
        if not self.keys:
            return
        message = f"These configuration keys have no effect here: {', '.join(self.keys)}."
        if strict:
            raise ConfigurationError(f"{message} Leave them out, or leave out `strict`.")
        logger.warning(message)


def read_config(given: object, unknown: Unknown) -> MemoryConfig:
    """Read a configuration of any kind; None is all defaults.

    Raises:
        ConfigurationError: it is no configuration.
    """
    if given is None:
        return MemoryConfig()
    if isinstance(given, MemoryConfig):
        return given
    if isinstance(given, Mapping):
        values = dict(given)
    elif any(hasattr(given, name) for name in _SECTIONS):
        values = _values(given) or {}
    else:
        raise ConfigurationError(
            f"config is neither a dict nor a MemoryConfig, but {type(given).__name__}."
        )
    known = {one.name for one in fields(MemoryConfig)}
    unknown.note("", [name for name in values if name not in known])
    found = {name: value for name, value in values.items() if name in known and value is not None}
    return MemoryConfig(**found)


def section(name: str, given: object) -> Section | None:
    """Read a section; None when there is none.

    Raises:
        ConfigurationError: it has no provider.
    """
    if given is None or given == {}:
        return None
    values = _values(given)
    if values is None or not ({"provider", "config"} & values.keys()):
        if isinstance(given, Mapping):
            raise ConfigurationError(
                f"{name} has the keys {sorted(values or ())} and no provider. Give one, and config."
            )
        return Section(provider="", itself=given)
    held = values.pop("config", None)
    provider = values.pop("provider", None)
    if not isinstance(provider, str) or not provider:
        raise ConfigurationError(f"{name}.provider={provider!r} is no name of a provider.")
    inner = _values(held) if held is not None else {}
    if inner is None:
        raise ConfigurationError(
            f"{name}.config is no mapping, but {type(held).__name__}. Give a dict."
        )
    more = {key: value for key, value in values.items() if value is not None}
    return Section(provider=provider, values=inner, more=more, has_config=held is not None)


def _values(given: object) -> dict[str, Any] | None:
    """Read a dict or a plain object's attributes, those that are not None; None for a model."""
    if isinstance(given, Mapping):
        return {str(key): value for key, value in given.items() if value is not None}
    if callable(given) or any(hasattr(given, name) for name in ("complete", "embed", "invoke")):
        return None
    names = getattr(given, "__dict__", None)
    if names is None:
        return None
    if (said := getattr(given, "model_fields_set", None)) is not None:
        names = {*said, *({"provider", "config"} & set(names))}  # not what it makes up by itself
    found = {name: getattr(given, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
