"""Language models, embedders and rerankers as mem0's users configure them, as the core takes them.

`openai`, `ollama` and servers that speak OpenAI's interface are called with the openai client; any
other provider is mem0's own and needs mem0ai. A language model becomes a function of a system
prompt, a prompt and the schema of the answer or None. It returns text, or an object that has it, in
either shape that mem0's prompts ask for, with or without other text around it.
"""

import asyncio
import importlib
import inspect
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Literal

from commonplace import MissingExtraError
from commonplace.agents import short_repr, with_schema
from commonplace.models.openai import OpenAIChat, OpenAIEmbedder
from commonplace.ports import Embedder

from .config import ConfigSection, Mem0Settings, split_url
from .exceptions import ConfigurationError, DependencyError

logger: logging.Logger = logging.getLogger("commonplace_mem0")
ModelFunction = Callable[..., Any]
Purpose = Literal["query", "document"]
Items = list[dict[str, Any]]
_MAX_CALLS = 64
_OPENROUTER = "https://openrouter.ai/api/v1"
_NATIVE = ("openai", "ollama")  # called with the openai client even where mem0ai is installed
# What else the openai client can call where it is not; None is the client's own default.
_SERVERS: Mapping[str, str | None] = {
    "openai": None,
    "ollama": "http://localhost:11434",
    "deepseek": "https://api.deepseek.com",
    "groq": "https://api.groq.com/openai/v1",
    "lmstudio": "http://localhost:1234/v1",
    "together": "https://api.together.xyz/v1",
    "vllm": "http://localhost:8000/v1",
    "xai": "https://api.x.ai/v1",
}
_CLIENT_KEYS = ("model", "api_key", "http_client_proxies")  # and those that end in base_url
_SAMPLING = ("temperature", "top_p", "max_tokens", "reasoning_effort", "store")
_ROUTING = ("models", "route")
_LLM_KEYS = (*_CLIENT_KEYS, *_SAMPLING, *_ROUTING, "site_url", "app_name")
_EMBEDDER_KEYS = (*_CLIENT_KEYS, "embedding_dims")
_DEFAULT_LLMS = {"openai": "gpt-5-mini", "ollama": "llama3.1:70b"}
_DEFAULT_EMBEDDERS = {
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
    "huggingface": "tei",
}
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
        texts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        return "".join(text for text in texts if isinstance(text, str))
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


# -- language models ----------------------------------------------------------------------------


class _ExchangeableModel:
    """The model of the settings, which may be replaced between two calls."""

    id = "mem0"

    def __init__(self, settings: Mem0Settings) -> None:
        self._settings = settings

    def _given(self) -> ModelFunction:
        if self._settings.model is None:
            raise ConfigurationError("No language model is configured any more. Configure llm.")
        return self._settings.model


class Mem0ChatModel(_ExchangeableModel):
    """A model as the core's chat model."""

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with a text, which the core reads in either shape of mem0's."""
        return reply_text(self._given()(system, user, schema))


class AsyncMem0ChatModel(_ExchangeableModel):
    """Any model as the core's asynchronous one, without blocking the loop."""

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with a text; a coroutine function is awaited on the running loop."""
        model = self._given()
        if is_async(model):
            reply = await model(system, user, schema)
        else:
            loop = asyncio.get_running_loop()
            reply = await loop.run_in_executor(_model_threads(), model, system, user, schema)
        return reply_text(reply)


def to_model(given: ConfigSection | None, unknown: list[str]) -> ModelFunction | None:
    """Make the configured language model; None for none."""
    if given is None:
        return None
    if given.model is not None:
        return as_model(given.model)
    if given.provider == "langchain":
        return as_model(given.values.get("model"))
    if given.provider in _NATIVE or _only_by_openai(given.provider):
        return _openai_model(given.provider, given.values, unknown)
    return as_model(_made_by_mem0("llm", given))


def as_model(given: Any) -> ModelFunction:
    """Take a model of any kind: the core's, mem0's, LangChain's, or a function of messages."""
    if isinstance(given, type):
        raise ConfigurationError(f"llm is the class {given.__name__}. Give an instance of it.")
    if hasattr(given, "complete"):
        return _calling(given.complete, lambda *asked: (asked[:2], {"schema": asked[2]}))
    if hasattr(given, "generate_response"):
        shape = {"response_format": {"type": "json_object"}}
        return lambda system, user, schema=None: given.generate_response(
            _messages(system, user), **(shape if schema else {})
        )
    function = getattr(given, "invoke", given)
    if not callable(function):
        raise ConfigurationError(
            f"llm={short_repr(given)} must be a model. Give a provider, a LangChain chat model, an "
            "object with generate_response(messages), or a function of messages."
        )
    return _calling(function, lambda *asked: ((_messages(*asked),), {}))


def is_async(model: Any) -> bool:
    """Return whether a model is a coroutine function, or an object with one as its call."""
    called = getattr(type(model), "__call__", None)  # noqa: B004 -- the method, not whether there is one
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def procedure_text(reply: Any) -> str:
    """Read the text that a model was asked for without a schema of the caller."""
    text = reply_text(reply)
    braced = text[text.find("{") : text.rfind("}") + 1]  # there may be a fence or words around it
    try:
        inner = json.loads(braced, strict=False).get("text")  # raw line breaks and tabs are read
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) else text


def _calling(function: Callable[..., Any], arguments: Callable[..., Any]) -> ModelFunction:
    """Wrap a function or coroutine function with other arguments as a model of the same kind."""

    def ask(system: str, user: str, schema: Any = None) -> Any:
        args, options = arguments(system, user, schema)
        return function(*args, **options)

    async def aask(system: str, user: str, schema: Any = None) -> Any:
        return await ask(system, user, schema)

    return aask if is_async(function) else ask


def _messages(system: str, user: str, schema: Any = None) -> list[dict[str, str]]:
    """Write a prompt as messages, with the schema in the text, where every model reads it."""
    system = with_schema(system, schema) if schema else system
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


@cache
def _model_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix="commonplace-mem0-model")


# -- servers with OpenAI's interface ------------------------------------------------------------


def _openai_model(provider: str, values: Mapping[str, Any], unknown: list[str]) -> ModelFunction:
    _check_keys("llm", values, _LLM_KEYS, unknown)
    name = values.get("model")
    if name is None and not values.get("models"):
        name = _default_model("llm", provider, _DEFAULT_LLMS)
        logger.warning("llm.config names no model, so %r is used. Name one.", name)
    options = {key: values[key] for key in _SAMPLING if key in values}
    if routing := {key: values[key] for key in _ROUTING if key in values}:
        options["extra_body"] = routing  # OpenRouter chooses among `models` itself
    make = cache(
        lambda: OpenAIChat(name or "", request_options=options, **_client(provider, values))
    )
    return lambda system, user, schema=None: make().complete(
        system, user, schema=schema or _TEXT_SCHEMA
    )


def _openai_embedder(
    provider: str, values: Mapping[str, Any], wanted: int | None, unknown: list[str]
) -> "Mem0Embedder":
    _check_keys("embedder", values, _EMBEDDER_KEYS, unknown)
    name = values.get("model") or _default_model("embedder", provider, _DEFAULT_EMBEDDERS)
    shortened = wanted if str(name).startswith("text-embedding-3") else None
    make = cache(lambda: OpenAIEmbedder(name, dimensions=shortened, **_client(provider, values)))
    return Mem0Embedder(
        f"openai/{name}", lambda texts, purpose: make().embed(texts, purpose=purpose), wanted
    )


def _check_keys(
    section: str, values: Mapping[str, Any], known: Sequence[str], unknown: list[str]
) -> None:
    urls = [key for key in values if key.endswith("base_url")]
    unknown += [f"{section}.config.{key}" for key in values if key not in (*known, *urls)]
    for key in (*urls, "http_client_proxies"):
        if values.get(key):
            split_url(f"{section}.config.{key}", values[key], "http://localhost:11434/v1.")


def _default_model(section: str, provider: str, defaults: Mapping[str, str]) -> str:
    if provider not in defaults:
        raise ConfigurationError(
            f"{section}.config names no model of {short_repr(provider)}. Give one as model."
        )
    return defaults[provider]


def _client(provider: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert mem0's keys to the server, the key and the options of the openai client."""
    router = provider == "openai" and ("openrouter_base_url" in values or "models" in values)
    name = "openrouter" if router else provider
    base = values.get(f"{name}_base_url") or values.get("base_url")
    base = base or (_OPENROUTER if router else _SERVERS.get(provider))
    if provider == "ollama":
        base = f"{str(base).rstrip('/')}/v1"
    key = values.get("api_key") or os.environ.get(f"{name.upper()}_API_KEY")
    if key is None and name not in ("openai", "openrouter"):
        key = "unused"  # a local server takes any; OpenAI's own key is nobody else's to see
    options: dict[str, Any] = {}
    if router:
        headers = {"HTTP-Referer": values.get("site_url"), "X-Title": values.get("app_name")}
        options["default_headers"] = {key: value for key, value in headers.items() if value}
    if proxies := values.get("http_client_proxies"):
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError(package="openai", extra="openai") from error
        options["http_client"] = openai.DefaultHttpxClient(proxy=proxies)
    return {"base_url": base, "api_key": key, "client_options": options}


# -- embedders ----------------------------------------------------------------------------------


class Mem0Embedder:
    """An embedder whose dimensions are measured with its first vector.

    Args:
        name: of the model, with that of its provider.
        vectors: embeds texts for a purpose.
        wanted: the configured length; another one is an error that names both.
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
        """The length of every vector."""
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


def to_embedder(given: ConfigSection | None, unknown: list[str]) -> Embedder | None:
    """Make the configured embedder; None for the one that ships with the core."""
    if given is None:
        return None
    provider, values = given.provider, given.values
    if given.model is not None:
        return _as_embedder(given.model, None)
    if provider == "commonplace":
        unknown += [f"embedder.config.{key}" for key in values if key != "model"]
        return None
    wanted = values.get("embedding_dims")
    if wanted is not None and (type(wanted) is not int or wanted < 1):
        raise ConfigurationError(
            f"embedder.config.embedding_dims={short_repr(wanted)} must be a whole number above "
            "zero."
        )
    if provider == "langchain":
        return _as_embedder(values.get("model"), wanted)
    is_server = provider == "huggingface" and "huggingface_base_url" in values
    if is_server or provider in _NATIVE or _only_by_openai(provider):
        return _openai_embedder(provider, values, wanted, unknown)
    return _of_mem0(_made_by_mem0("embedder", given, {}), provider, wanted)


def _as_embedder(given: Any, wanted: int | None) -> Embedder:
    if isinstance(given, type):
        raise ConfigurationError(f"embedder is the class {given.__name__}. Give an instance of it.")
    if isinstance(given, Embedder):
        return given
    if hasattr(given, "embed_documents"):
        return _of_langchain(given, wanted)
    if hasattr(given, "embed") and not inspect.iscoroutinefunction(given.embed):
        return _of_mem0(given, type(given).__name__, None)
    raise ConfigurationError(
        f"embedder={short_repr(given)} must be an embedder. Give a provider, LangChain's "
        "Embeddings, or an object with id, dimensions and embed(texts, purpose=...)."
    )


def _of_langchain(model: Any, wanted: int | None) -> Mem0Embedder:
    """Wrap LangChain's `Embeddings`, which tell documents from queries."""
    name = getattr(model, "model", None) or getattr(model, "model_name", "")

    def vectors(texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        if purpose == "query":
            return [model.embed_query(text) for text in texts]
        return list(model.embed_documents(list(texts)))

    return Mem0Embedder(f"langchain/{type(model).__name__}/{name}", vectors, wanted)


def _of_mem0(model: Any, provider: str, wanted: int | None) -> Mem0Embedder:
    """Wrap an embedder with mem0's interface, `embed(text, memory_action)`."""
    name = f"{provider}/{getattr(getattr(model, 'config', None), 'model', None) or ''}"
    if provider != "huggingface":  # a store knows its embedder by this name
        name = f"mem0/{name}"

    def vectors(texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        action = "search" if purpose == "query" else "add"
        if hasattr(model, "embed_batch"):
            found = model.embed_batch(list(texts), action)
        else:
            found = [model.embed(text, action) for text in texts]
        return [list(map(float, vector)) for vector in found]

    return Mem0Embedder(name, vectors, wanted)


# -- rerankers ----------------------------------------------------------------------------------


def to_reranker(given: ConfigSection | None) -> Any:
    """Make the configured reranker; None for none."""
    if given is None:
        return None
    if given.model is None:
        return _made_by_mem0("reranker", given)
    if isinstance(given.model, type) or not hasattr(given.model, "rerank"):
        raise ConfigurationError(
            f"reranker={short_repr(given.model)} must be a reranker. Give a provider, or an "
            "object with rerank(query, documents, top_k)."
        )
    return given.model


def rerank(reranker: Any, query: str, items: Items, limit: int) -> Items:
    """Order memories with a reranker; if it fails, log that and leave their order."""
    try:
        return list(reranker.rerank(query, [dict(item) for item in items], limit))
    except Exception as error:  # somebody else's model may raise anything
        logger.warning("Reranking failed, the order is that of the search: %r", error)
        return items


# -- mem0's own providers -----------------------------------------------------------------------


def _only_by_openai(provider: str) -> bool:
    """Tell whether this is a server for the openai client, as mem0ai is not installed."""
    return provider in _SERVERS and _mem0_factory("llm") is None


def _mem0_factory(what: str) -> Any:
    """Import mem0's factory of `llm`, `embedder` or `reranker`; None if there is none."""
    if "mem0.memory.telemetry" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
    try:
        module = importlib.import_module("mem0.utils.factory")
    except ImportError:
        return None
    return getattr(module, f"{what.title()}Factory", None)


def _made_by_mem0(what: str, given: ConfigSection, *more: Mapping[str, Any]) -> Any:
    """Make what mem0 has for this provider, without its telemetry."""
    provider, factory = short_repr(given.provider), _mem0_factory(what)
    if factory is None:
        raise ConfigurationError(
            f"The {what} provider {provider} is one of mem0's own. pip install mem0ai, or use "
            "'openai' with openai_base_url, which works with any compatible server."
        )
    known: Mapping[str, Any] = getattr(factory, "provider_to_class", {})
    if known and given.provider not in known:
        raise ConfigurationError(
            f"Neither commonplace nor mem0 knows the {what} provider {provider}. "
            f"mem0 knows {', '.join(sorted(known))}."
        )
    try:
        return factory.create(given.provider, dict(given.values), *more)
    except ImportError as error:
        raise DependencyError(f"The {what} provider {provider} needs a package: {error}") from error
    except Exception as error:  # any of its classes may raise anything
        raise ConfigurationError(
            f"mem0 refuses the configuration of the {what} provider {provider}: {error}"
        ) from error
