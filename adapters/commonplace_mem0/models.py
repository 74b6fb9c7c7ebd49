"""Language models, embedders and rerankers as mem0's users configure them, as the core takes them.

A language model is a function of a system prompt, a prompt and the schema of the answer or None; it
returns text or an object that has it, in either shape that mem0's prompts ask for, with or without
other text around it. Nothing is sent, loaded or looked up before the first use.
"""

import asyncio
import importlib
import inspect
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Literal

from commonplace import MissingExtraError
from commonplace.agents import short_repr
from commonplace.models.openai import OpenAIChat, OpenAIEmbedder
from commonplace.ports import Embedder

from .config import ConfigSection, UnknownKeys, split_url
from .exceptions import ConfigurationError, DependencyError

logger: logging.Logger = logging.getLogger("commonplace_mem0")
ModelFunction = Callable[..., Any]
Purpose = Literal["query", "document"]
Items = list[dict[str, Any]]
_MAX_CALLS = 64
_OPENROUTER = "https://openrouter.ai/api/v1"
_OLLAMA = "http://localhost:11434"
_SAMPLING = ("temperature", "top_p", "max_tokens", "reasoning_effort", "store")
_ROUTING = ("models", "route")
_LLM_KEYS = (
    *_SAMPLING, *_ROUTING, "model", "api_key", "openai_base_url", "ollama_base_url",
    "openrouter_base_url", "site_url", "app_name", "http_client_proxies", "base_url",
)  # fmt: skip
_URLS = (
    "openai_base_url", "ollama_base_url", "openrouter_base_url", "huggingface_base_url", "base_url",
    "http_client_proxies",
)  # fmt: skip
_LLMS = ("openai", "ollama", "litellm", "langchain")
_EMBEDDER_KEYS: Mapping[str, tuple[str, ...]] = {
    "commonplace": ("model",),
    "openai": ("model", "api_key", "openai_base_url", "embedding_dims", "http_client_proxies"),
    "ollama": ("model", "ollama_base_url", "embedding_dims"),
    "huggingface": ("model", "model_kwargs", "huggingface_base_url", "api_key", "embedding_dims"),
    "langchain": ("model", "embedding_dims"),
}
_DEFAULT_LLMS = {"openai": "gpt-5-mini", "ollama": "llama3.1:70b"}
_DEFAULT_EMBEDDERS = {
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
    "huggingface": "tei",
}
_DEFAULT_LOCAL = "multi-qa-MiniLM-L6-cos-v1"
_DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L-6-v2"
_TEXT_KEYS = ("text", "fact", "memory", "data")
_OLD_EVENTS = ("NONE", "DELETE")
_TEXT_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


# -- LLM output parsing -------------------------------------------------------------------------


def reply_text(reply: Any) -> str:
    """Read the text of a model's reply: itself, or its content, whole or in parts."""
    content = getattr(reply, "content", reply)
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [one.get("text") if isinstance(one, Mapping) else one for one in content]
        return "".join(one for one in parts if isinstance(one, str))
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def normalize_facts(reply: str) -> str:
    """Write `{"memory": [{"text": "..."}]}` or `{"facts": ["..."]}` as the core reads it.

    `{}` means that nothing was found. A reply in no known shape is returned as it is.
    """
    found = _parse(re.sub(r"<think>.*?</think>", "", reply, flags=re.DOTALL))
    if isinstance(found, dict):
        lists = [found[name] for name in ("facts", "memory", "memories") if name in found]
        found = next((one for one in lists if one), lists[0] if lists else found or [])
    if not isinstance(found, list):
        return reply
    return json.dumps({"facts": [_fact(one) for one in found if _is_new(one)]}, ensure_ascii=False)


def _fact(given: Any) -> Any:
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, Mapping) and "text" not in given:
        text = next((given[name] for name in _TEXT_KEYS if isinstance(given.get(name), str)), None)
        return {**given, "text": text}
    return given


def _is_new(given: Any) -> bool:
    event = given.get("event") if isinstance(given, Mapping) else None
    return not (isinstance(event, str) and event.upper() in _OLD_EVENTS)


def _parse(text: str) -> Any:
    for part in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            bare = re.sub(r"^\s*```(?:json)?|```\s*$", "", part).strip()
            return json.loads(bare, strict=False)  # raw line breaks and tabs are read
        except (ValueError, RecursionError):
            continue
    return None


# -- language models ----------------------------------------------------------------------------


class _ExchangeableModel:
    """A model that may be exchanged between two calls.

    Attributes:
        model: None for none yet.
    """

    id = "mem0"

    def __init__(self, model: ModelFunction | None) -> None:
        self.model = model

    def _given(self) -> ModelFunction:
        if self.model is None:
            raise ConfigurationError("No language model is configured any more. Configure llm.")
        return self.model


class Mem0ChatModel(_ExchangeableModel):
    """A model as the core's chat model."""

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        return normalize_facts(reply_text(self._given()(system, user, schema)))


class AsyncMem0ChatModel(_ExchangeableModel):
    """Any model as the core's asynchronous one: many wait at once, none blocks the loop."""

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; a coroutine function is awaited on the running loop."""
        model = self._given()
        if is_async(model):
            reply = await model(system, user, schema)
        else:
            loop = asyncio.get_running_loop()
            reply = await loop.run_in_executor(_model_threads(), model, system, user, schema)
        return normalize_facts(reply_text(reply))


def to_model(given: ConfigSection | None, unknown: UnknownKeys) -> ModelFunction | None:
    """Make the configured language model; None for none.

    Raises:
        ConfigurationError: the provider is not known.
    """
    if given is None:
        return None
    if given.model is not None:
        return as_model(given.model)
    if given.provider in _DEFAULT_LLMS:
        return _openai_model(given.provider, given.values, unknown)
    if given.provider == "litellm":
        return _litellm(given.values)
    if given.provider == "langchain":
        return as_model(given.values.get("model"))
    return as_model(_mem0_provider("llm", given, _LLMS))


def as_model(given: Any) -> ModelFunction:
    """Take a model of any kind: the core's, mem0's, LangChain's, or a function of messages.

    Raises:
        ConfigurationError: it is none of them.
    """
    if isinstance(given, type):
        raise ConfigurationError(f"llm is the class {given.__name__}. Give an instance of it.")
    if hasattr(given, "complete"):
        return _awaiting(
            given.complete, lambda system, user, schema: ((system, user), {"schema": schema})
        )
    if hasattr(given, "generate_response"):
        shape = {"response_format": {"type": "json_object"}}
        return lambda system, user, schema=None: given.generate_response(
            _messages(system, user), **(shape if schema else {})
        )
    asked = getattr(given, "invoke", given)
    if not callable(asked):
        raise ConfigurationError(
            f"llm={short_repr(given)} must be a model. Give a provider, a LangChain chat model, an "
            "object with generate_response(messages), or a function of messages."
        )
    return _awaiting(asked, lambda system, user, schema: ((_messages(system, user, schema),), {}))


def is_async(model: Any) -> bool:
    """Return whether a model is a coroutine function, or an object with one as its call."""
    called = getattr(type(model), "__call__", None)  # noqa: B004 -- the method, not whether there is one
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def procedure_text(reply: Any) -> str:
    """Read the text that a model was asked for without a schema of the caller."""
    text = reply_text(reply)
    found = _parse(text)
    inner = found.get("text") if isinstance(found, dict) else None
    return inner if isinstance(inner, str) else text


def _awaiting(asked: Callable[..., Any], arguments: Callable[..., Any]) -> ModelFunction:
    """Make a model of what is asked with other arguments; a coroutine function if that is one."""
    if is_async(asked):

        async def aask(system: str, user: str, schema: Any = None) -> Any:
            args, options = arguments(system, user, schema)
            return await asked(*args, **options)

        return aask

    def ask(system: str, user: str, schema: Any = None) -> Any:
        args, options = arguments(system, user, schema)
        return asked(*args, **options)

    return ask


def _openai_model(provider: str, values: Mapping[str, Any], unknown: UnknownKeys) -> ModelFunction:
    unknown.add("llm.config", [name for name in values if name not in _LLM_KEYS])
    _check_urls("llm", values)
    name = values.get("model")
    if name is None and not values.get("models"):
        name = _DEFAULT_LLMS[provider]
        logger.warning("llm.config names no model, so %r is used. Name one.", name)
    options = {name: values[name] for name in _SAMPLING if name in values}
    routing = {name: values[name] for name in _ROUTING if name in values}
    if routing:  # OpenRouter chooses among `models` itself
        options["extra_body"] = routing
    make = cache(
        lambda: OpenAIChat(name or "", request_options=options, **_server(provider, values))
    )
    return lambda system, user, schema=None: make().complete(
        system, user, schema=schema or _TEXT_SCHEMA
    )


def _check_urls(section: str, values: Mapping[str, Any]) -> None:
    for name in _URLS:
        if values.get(name):
            split_url(f"{section}.config.{name}", values[name], "http://localhost:11434/v1.")


def _server(provider: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Write the server, the key and the options of OpenAI's client, by mem0's keys."""
    base, key, more = values.get("openai_base_url"), values.get("api_key"), dict[str, Any]()
    if provider == "ollama":
        base = values.get("ollama_base_url") or values.get("base_url") or _OLLAMA
        base, key = f"{base.rstrip('/')}/v1", "ollama"
    elif provider == "huggingface":
        base = values["huggingface_base_url"]
        key = key or os.environ.get("HUGGINGFACE_API_KEY", "hf")
    elif "openrouter_base_url" in values or "models" in values:
        base = values.get("openrouter_base_url") or _OPENROUTER
        key = key or os.environ.get("OPENROUTER_API_KEY")
        headers = {"HTTP-Referer": values.get("site_url"), "X-Title": values.get("app_name")}
        more["default_headers"] = {name: value for name, value in headers.items() if value}
    if proxies := values.get("http_client_proxies"):
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError(package="openai", extra="openai") from error
        more["http_client"] = openai.DefaultHttpxClient(proxy=proxies)
    return {"base_url": base or values.get("base_url"), "api_key": key, "client_options": more}


def _litellm(values: Mapping[str, Any]) -> ModelFunction:
    options = {
        {"litellm_base_url": "api_base", "base_url": "api_base"}.get(name, name): value
        for name, value in values.items()
    }

    def ask(system: str, user: str, schema: Any = None) -> str:
        try:
            import litellm
        except ImportError as error:
            raise ConfigurationError("litellm is not installed. pip install litellm") from error
        shape = {"response_format": {"type": "json_object"}} if schema else {}
        answer = litellm.completion(messages=_messages(system, user), **shape, **options)
        return answer.choices[0].message.content or ""

    return ask


def _messages(system: str, user: str, schema: Any = None) -> list[dict[str, str]]:
    """Write a prompt as messages, with a schema in it: every model can read it there."""
    if schema:
        system += f"\n\nJSON schema of the answer:\n{json.dumps(schema)}"
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


@cache
def _model_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix="commonplace-mem0-model")


# -- embedders ----------------------------------------------------------------------------------


class Mem0Embedder:
    """An embedder whose dimensions are measured with its first vector.

    Args:
        name: of the model, with that of its provider.
        vectors: embeds texts for a purpose.
        wanted: the length that was configured; another one is an error that names both.
    """

    def __init__(
        self,
        name: str,
        vectors: Callable[[Sequence[str], Purpose], list[list[float]]],
        wanted: int | None = None,
    ) -> None:
        self._name = name
        self._vectors = vectors
        self._wanted = wanted
        self._size: int | None = None
        self._measuring = threading.Lock()

    @property
    def id(self) -> str:
        """Name of the model, with the length of its vectors."""
        return f"{self._name}/{self.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of every vector.

        Raises:
            ConfigurationError: it is another one than was configured.
        """
        with self._measuring:
            if self._size is None:
                self._size = len(self._vectors(["dimensions"], "document")[0])
        if self._wanted is not None and self._wanted != self._size:
            raise ConfigurationError(
                f"embedding_dims={self._wanted}, but {self._name!r} gives vectors of {self._size}. "
                f"Leave it out, or write {self._size}."
            )
        return self._size

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        return self._vectors(texts, purpose)


def to_embedder(given: ConfigSection | None, unknown: UnknownKeys) -> Embedder | None:
    """Make the configured embedder; None for the one that ships with the core.

    Raises:
        ConfigurationError: the provider is not known, or its model is not an embedder.
    """
    if given is None:
        return None
    provider, values = given.provider, given.values
    if given.model is not None:
        return _as_embedder(given.model, None)
    if provider not in _EMBEDDER_KEYS:
        made = _mem0_provider("embedder", given, tuple(_EMBEDDER_KEYS), {})
        return _of_mem0(made, provider)
    known = _EMBEDDER_KEYS[provider]
    unknown.add("embedder.config", [name for name in values if name not in known])
    if provider == "commonplace":
        return None
    wanted = values.get("embedding_dims")
    if wanted is not None and (type(wanted) is not int or wanted < 1):
        raise ConfigurationError(
            f"embedder.config.embedding_dims={short_repr(wanted)} must be a whole number above "
            "zero."
        )
    if provider == "langchain":
        return _as_embedder(values.get("model"), wanted)
    is_local = provider == "huggingface" and "huggingface_base_url" not in values
    return (
        _of_sentence_transformers(values, wanted)
        if is_local
        else _of_openai(provider, values, wanted)
    )


def _of_openai(provider: str, values: Mapping[str, Any], wanted: int | None) -> Mem0Embedder:
    """Make an embedder of OpenAI or a compatible server."""
    _check_urls("embedder", values)
    name = str(values.get("model") or _DEFAULT_EMBEDDERS[provider])
    shortened = wanted if name.startswith("text-embedding-3") else None
    make = cache(lambda: OpenAIEmbedder(name, dimensions=shortened, **_server(provider, values)))
    return Mem0Embedder(
        f"openai/{name}", lambda texts, purpose: make().embed(texts, purpose=purpose), wanted
    )


def _as_embedder(given: Any, wanted: int | None) -> Embedder:
    if isinstance(given, type):
        raise ConfigurationError(f"embedder is the class {given.__name__}. Give an instance of it.")
    if isinstance(given, Embedder):
        return given
    if hasattr(given, "embed_documents"):
        return _of_langchain(given, wanted)
    if hasattr(given, "embed") and not inspect.iscoroutinefunction(given.embed):
        return _of_mem0(given, type(given).__name__)
    raise ConfigurationError(
        f"embedder={short_repr(given)} must be an embedder. Give a provider, LangChain's "
        "Embeddings, or an object with id, dimensions and embed(texts, purpose=...)."
    )


def _of_sentence_transformers(values: Mapping[str, Any], wanted: int | None) -> Mem0Embedder:
    """Make an embedder of a model on this machine, loaded on first use."""
    name, options = str(values.get("model") or _DEFAULT_LOCAL), values.get("model_kwargs") or {}
    load = _loader("embedder 'huggingface'", "SentenceTransformer", name, options)
    return Mem0Embedder(
        f"huggingface/{name}", lambda texts, _: load().encode(list(texts)).tolist(), wanted
    )


def _of_langchain(model: Any, wanted: int | None) -> Mem0Embedder:
    """Make an embedder of LangChain's `Embeddings`, which tell documents from queries."""
    name = getattr(model, "model", None) or getattr(model, "model_name", "")

    def vectors(texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        if purpose == "query":
            return [model.embed_query(text) for text in texts]
        return list(model.embed_documents(list(texts)))

    return Mem0Embedder(f"langchain/{type(model).__name__}/{name}", vectors, wanted)


def _of_mem0(model: Any, name: str) -> Mem0Embedder:
    """Make an embedder of one with mem0's interface, `embed(text, memory_action)`."""
    called = getattr(getattr(model, "config", None), "model", None) or ""

    def vectors(texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        action = "search" if purpose == "query" else "add"
        if hasattr(model, "embed_batch"):
            found = model.embed_batch(list(texts), action)
        else:
            found = [model.embed(text, action) for text in texts]
        return [list(map(float, one)) for one in found]

    return Mem0Embedder(f"mem0/{name}/{called}", vectors)


# -- rerankers ----------------------------------------------------------------------------------


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers on this machine, loaded on first use."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._top_k: int | None = values.get("top_k")
        name = str(values.get("model") or _DEFAULT_RERANKER)
        options = {"device": values["device"]} if "device" in values else {}
        what = "reranker 'sentence_transformer'"
        self._load: Callable[[], Any] = _loader(what, "CrossEncoder", name, options)

    def rerank(self, query: str, documents: Sequence[dict[str, Any]], top_k: int | None) -> Items:
        """Order memories by a `rerank_score`, best first."""
        scores = self._load().predict([(query, one["memory"]) for one in documents])
        scored = [
            {**one, "rerank_score": float(score)}
            for one, score in zip(documents, scores, strict=True)
        ]
        scored.sort(key=lambda one: -one["rerank_score"])
        return scored[: top_k or self._top_k]


def to_reranker(given: ConfigSection | None) -> Any:
    """Make the configured reranker; None for none."""
    if given is None:
        return None
    if given.model is not None:
        if isinstance(given.model, type) or not hasattr(given.model, "rerank"):
            raise ConfigurationError(
                f"reranker={short_repr(given.model)} must be a reranker. Give a provider, or an "
                "object with rerank(query, documents, top_k)."
            )
        return given.model
    if given.provider == "sentence_transformer":
        return CrossEncoderReranker(given.values)
    return _mem0_provider("reranker", given, ("sentence_transformer",))


def rerank(reranker: Any, query: str, items: Items, limit: int) -> Items:
    """Order memories with a reranker; if it fails, log that and leave their order."""
    try:
        return list(reranker.rerank(query, [dict(one) for one in items], limit))
    except DependencyError:
        raise
    except Exception as error:  # somebody else's model may raise anything
        logger.warning("Reranking failed, the order is that of the search: %r", error)
        return items


def _loader(what: str, kind: str, name: str, options: Mapping[str, Any]) -> Callable[[], Any]:
    """Make what loads a model of sentence-transformers once, also from several threads."""
    loading = threading.Lock()
    loaded: list[Any] = []

    def load() -> Any:
        try:
            import sentence_transformers
        except ImportError as error:
            hint = ", or give huggingface_base_url" if what.startswith("embedder") else ""
            raise DependencyError(
                f"{what} needs sentence-transformers. pip install sentence-transformers{hint}."
            ) from error
        with loading:
            if not loaded:
                loaded.append(getattr(sentence_transformers, kind)(name, **options))
            return loaded[0]

    return load


# -- mem0's own providers -----------------------------------------------------------------------


def _mem0_provider(
    what: str, given: ConfigSection, native: Sequence[str], *more: Mapping[str, Any]
) -> Any:
    """Make what mem0 has for this provider, without its telemetry.

    Args:
        what: `llm`, `embedder` or `reranker`.
        native: the providers that need no mem0.
        more: arguments of mem0's factory beside the configuration.

    Raises:
        ConfigurationError: mem0ai is not installed, or does not know the provider.
    """
    if "mem0.memory.telemetry" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
    try:
        factory = getattr(importlib.import_module("mem0.utils.factory"), f"{what.title()}Factory")
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"The {what} provider {short_repr(given.provider)} is one of mem0's own. "
            f"pip install mem0ai, or use one of {', '.join(native)}; 'openai' with "
            "openai_base_url speaks to any compatible server."
        ) from error
    known: Mapping[str, Any] = getattr(factory, "provider_to_class", {})
    if known and given.provider not in known:
        raise ConfigurationError(
            f"Neither we nor mem0 know the {what} provider {short_repr(given.provider)}. "
            f"mem0 knows {', '.join(sorted(known))}."
        )
    return factory.create(given.provider, dict(given.values), *more)
