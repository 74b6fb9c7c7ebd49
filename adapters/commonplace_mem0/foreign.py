"""Providers that only mem0 knows: its own classes, when mem0ai is installed, without telemetry."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .config import Section
from .exceptions import ConfigurationError


def foreign_llm(given: Section, native: Sequence[str]) -> Any:
    """Make mem0's language model of this provider.

    Raises:
        ConfigurationError: mem0ai is not installed, or does not know it.
    """
    factory = _factory("LlmFactory", "llm", given.provider, native)
    return _create(factory, "llm", given, (dict(given.values),))


def foreign_embedder(given: Section, native: Sequence[str]) -> Any:
    """Make mem0's embedder of this provider.

    Raises:
        ConfigurationError: mem0ai is not installed, or does not know it.
    """
    factory = _factory("EmbedderFactory", "embedder", given.provider, native)
    return _create(factory, "embedder", given, (dict(given.values), {}))


def foreign_reranker(given: Section, native: Sequence[str]) -> Any:
    """Make mem0's reranker of this provider.

    Raises:
        ConfigurationError: mem0ai is not installed, or does not know it.
    """
    factory = _factory("RerankerFactory", "reranker", given.provider, native)
    return _create(factory, "reranker", given, (dict(given.values),))


def _factory(name: str, what: str, provider: str, native: Sequence[str]) -> Any:
    if "mem0.memory.telemetry" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
    try:
        return getattr(importlib.import_module("mem0.utils.factory"), name)
    except (ImportError, AttributeError) as error:
        known = ", ".join(native)
        raise ConfigurationError(
            f"The {what} provider {provider!r} is one of mem0's own. pip install mem0ai, or use "
            f"one of {known}; 'openai' with openai_base_url speaks to any compatible server."
        ) from error


def _create(factory: Any, what: str, given: Section, args: tuple[Mapping[str, Any], ...]) -> Any:
    known: Mapping[str, Any] = getattr(factory, "provider_to_class", {})
    if known and given.provider not in known:
        raise ConfigurationError(
            f"Neither we nor mem0 know the {what} provider {given.provider!r}. "
            f"mem0 knows {', '.join(sorted(known))}."
        )
    return factory.create(given.provider, *args)
