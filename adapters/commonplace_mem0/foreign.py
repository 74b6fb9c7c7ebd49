"""Providers that only mem0 knows: its own classes, when mem0ai is installed, without telemetry."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .config import Section
from .exceptions import ConfigurationError

_FACTORIES = {"llm": "LlmFactory", "embedder": "EmbedderFactory", "reranker": "RerankerFactory"}


def foreign(what: str, given: Section, native: Sequence[str], *more: Mapping[str, Any]) -> Any:
    """Make what mem0 has for this provider.

    Args:
        what: `llm`, `embedder` or `reranker`.
        native: the providers that need no mem0.
        more: what mem0's factory takes beside the configuration.

    Raises:
        ConfigurationError: mem0ai is not installed, or does not know it.
    """
    factory = _factory(what, given.provider, native)
    known: Mapping[str, Any] = getattr(factory, "provider_to_class", {})
    if known and given.provider not in known:
        raise ConfigurationError(
            f"Neither we nor mem0 know the {what} provider {given.provider!r}. "
            f"mem0 knows {', '.join(sorted(known))}."
        )
    return factory.create(given.provider, dict(given.values), *more)


def _factory(what: str, provider: str, native: Sequence[str]) -> Any:
    if "mem0.memory.telemetry" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
    try:
        return getattr(importlib.import_module("mem0.utils.factory"), _FACTORIES[what])
    except (ImportError, AttributeError) as error:
        known = ", ".join(native)
        raise ConfigurationError(
            f"The {what} provider {provider!r} is one of mem0's own. pip install mem0ai, or use "
            f"one of {known}; 'openai' with openai_base_url speaks to any compatible server."
        ) from error
