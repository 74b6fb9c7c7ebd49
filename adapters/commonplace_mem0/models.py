"""Language models, embedders and rerankers as mem0's users configure them, as the core takes them.

A language model is `model(messages, schema=None)` with messages as dicts of role and content; it
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
from commonplace.ports import Embedder

from .config import ConfigSection, UnknownKeys
from .exceptions import ConfigurationError, DependencyError

logger: logging.Logger = logging.getLogger("commonplace_mem0")
ModelFunction = Callable[..., Any]
Purpose = Literal["query", "document"]
Items = list[dict[str, Any]]
_MAX_CALLS = 64
_BATCH = 100
_LLMS = ("openai", "ollama", "litellm", "langchain")
_EMBEDDERS = ("commonplace", "openai", "ollama", "huggingface", "langchain")
_RERANKERS = ("sentence_transformer",)
_OPENROUTER = "https://openrouter.ai/api/v1"
_OLLAMA = "http://localhost:11434"
_SAMPLING = ("temperature", "top_p", "max_tokens", "reasoning_effort", "store")
_LLM_KEYS = (
    *_SAMPLING, "model", "api_key", "openai_base_url", "ollama_base_url", "openrouter_base_url",
    "models", "route", "site_url", "app_name", "http_client_proxies", "base_url",
)  # fmt: skip
_EMBEDDER_KEYS: Mapping[str, tuple[str, ...]] = {
    "openai": ("model", "api_key", "openai_base_url", "embedding_dims", "http_client_proxies"),
    "ollama": ("model", "ollama_base_url", "embedding_dims"),
    "huggingface": ("model", "model_kwargs", "huggingface_base_url", "api_key", "embedding_dims"),
    "langchain": ("model", "embedding_dims"),
    "commonplace": ("model",),
}
_DEFAULT_LLMS = {"openai": "gpt-5-mini", "ollama": "llama3.1:70b"}
_DEFAULT_EMBEDDERS = {
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
    "huggingface": "multi-qa-MiniLM-L6-cos-v1",
}
_DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L-6-v2"
_OPENAI_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_MEM0_FACTORIES = {
    "llm": "LlmFactory",
    "embedder": "EmbedderFactory",
    "reranker": "RerankerFactory",
}
_TEXT_KEYS = ("text", "fact", "memory", "data")
_OLD_EVENTS = ("NONE", "DELETE")


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

    A reply in neither shape is returned as it is.
    """
    found = _parse(re.sub(r"<think>.*?</think>", "", reply, flags=re.DOTALL))
    if isinstance(found, dict):
        lists = [found[name] for name in ("facts", "memory", "memories") if name in found]
        facts = next((one for one in lists if one), lists[0] if lists else None)
    else:
        facts = found
    if not isinstance(facts, list):
        return reply
    new = [_fact(one) for one in facts if _is_new(one)]
    return json.dumps({"facts": new}, ensure_ascii=False)


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
            return json.loads(re.sub(r"^\s*```(?:json)?|```\s*$", "", part).strip())
        except (ValueError, RecursionError):
            continue
    return None


# -- language models ----------------------------------------------------------------------------


class Mem0ChatModel:
    """A blocking model as the core's chat model."""

    id = "mem0"

    def __init__(self, model: ModelFunction) -> None:
        self.model = model

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        return normalize_facts(reply_text(self.model(_prompt(system, user), schema)))


class AsyncMem0ChatModel:
    """Any model as the core's asynchronous chat model: many wait at once, none blocks the loop."""

    id = "mem0"

    def __init__(self, model: ModelFunction) -> None:
        self.model = model

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; a coroutine function is awaited on the running loop."""
        prompt = _prompt(system, user)
        if is_async(self.model):
            reply = await self.model(prompt, schema)
        else:
            loop = asyncio.get_running_loop()
            reply = await loop.run_in_executor(_model_threads(), self.model, prompt, schema)
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
    if given.provider in ("openai", "ollama"):
        return OpenAICompatibleModel(given.provider, given.values, unknown)
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
    if hasattr(given, "complete"):
        return _core_model(given)
    if hasattr(given, "generate_response"):
        shape = {"type": "json_object"}
        return lambda messages, schema=None: given.generate_response(
            messages, **({"response_format": shape} if schema else {})
        )
    if hasattr(given, "invoke"):
        return lambda messages, schema=None: given.invoke(_with_schema(messages, schema))
    if not callable(given):
        raise ConfigurationError(
            f"llm={given!r} must be a model. Give a provider, a LangChain chat model, an object "
            "with generate_response(messages), or a function of messages."
        )
    if is_async(given):

        async def ask(messages: Any, schema: Any = None) -> Any:
            return await given(_with_schema(messages, schema))

        return ask
    return lambda messages, schema=None: given(_with_schema(messages, schema))


def is_async(model: Any) -> bool:
    """Return whether a model is a coroutine function, or an object with one as its call."""
    called = getattr(type(model), "__call__", None)  # noqa: B004 -- the method, not whether there is one
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def _core_model(given: Any) -> ModelFunction:
    def parts(messages: Sequence[Mapping[str, str]]) -> tuple[str, str]:
        middle = [f"{one['role']}: {one['content']}" for one in messages[1:-1]]
        return messages[0]["content"], "\n".join([*middle, messages[-1]["content"]])

    if inspect.iscoroutinefunction(given.complete):

        async def ask(messages: Any, schema: Any = None) -> Any:
            return await given.complete(*parts(messages), schema=schema or {})

        return ask
    return lambda messages, schema=None: given.complete(*parts(messages), schema=schema or {})


def _litellm(values: Mapping[str, Any]) -> ModelFunction:
    options = {
        {"litellm_base_url": "api_base", "base_url": "api_base"}.get(name, name): value
        for name, value in values.items()
    }

    def ask(messages: Any, schema: Any = None) -> str:
        try:
            import litellm
        except ImportError as error:
            raise ConfigurationError("litellm is not installed. pip install litellm") from error
        shape = {"response_format": {"type": "json_object"}} if schema else {}
        answer = litellm.completion(messages=messages, **shape, **options)
        return answer.choices[0].message.content or ""

    return ask


def _prompt(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _with_schema(messages: Sequence[Mapping[str, str]], schema: Any) -> list[dict[str, str]]:
    """Put the schema into the prompt: every model can read it there."""
    prompt = [dict(one) for one in messages]
    if schema:
        prompt[0]["content"] += f"\n\nJSON schema of the answer:\n{json.dumps(schema)}"
    return prompt


@cache
def _model_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix="commonplace-mem0-model")


# -- embedders ----------------------------------------------------------------------------------


class MeasuredEmbedder:
    """An embedder whose dimensions are measured with its first vector.

    The configured number is compared with what the model gives, and a difference is an error that
    names both.
    """

    def __init__(self, embedder_id: str, wanted: int | None) -> None:
        self.id = embedder_id
        self._wanted = wanted
        self._size: int | None = None
        self._measuring = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector.

        Raises:
            ConfigurationError: it is another one than was configured.
        """
        with self._measuring:
            if self._size is None:
                self._size = len(self.embed(["dimensions"], purpose="document")[0])
        if self._wanted is not None and self._wanted != self._size:
            raise ConfigurationError(
                f"embedding_dims={self._wanted}, but {self.id!r} gives vectors of {self._size}. "
                f"Leave it out, or write {self._size}."
            )
        return self._size

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        raise NotImplementedError


class SentenceTransformersEmbedder(MeasuredEmbedder):
    """A model of sentence-transformers on this machine, loaded on first use."""

    def __init__(self, name: str, options: Mapping[str, Any], wanted: int | None) -> None:
        super().__init__(f"huggingface/{name}", wanted)
        self._name, self._options = name, options
        self._loading = threading.Lock()
        self._model: Any = None

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        with self._loading:
            if self._model is None:
                library = _sentence_transformers("embedder 'huggingface'")
                self._model = library.SentenceTransformer(self._name, **self._options)
        found: list[list[float]] = self._model.encode(list(texts)).tolist()
        return found


class Mem0LangChainEmbedder(MeasuredEmbedder):
    """LangChain's `Embeddings`, which embed documents and queries differently."""

    def __init__(self, model: Any, wanted: int | None) -> None:
        name = getattr(model, "model", None) or getattr(model, "model_name", "")
        super().__init__(f"langchain/{type(model).__name__}/{name}", wanted)
        self._model = model

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        if purpose == "query":
            return [self._model.embed_query(text) for text in texts]
        found: list[list[float]] = self._model.embed_documents(list(texts))
        return found


class Mem0Embedder(MeasuredEmbedder):
    """An embedder with mem0's interface, `embed(text, memory_action)`."""

    def __init__(self, model: Any, name: str) -> None:
        config = getattr(model, "config", None)
        super().__init__(f"mem0/{name}/{getattr(config, 'model', None) or ''}", None)
        self._model = model

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        action = "search" if purpose == "query" else "add"
        if hasattr(self._model, "embed_batch"):
            found = self._model.embed_batch(list(texts), action)
            return [list(map(float, one)) for one in found]
        return [list(map(float, self._model.embed(text, action))) for text in texts]


def to_embedder(given: ConfigSection | None, unknown: UnknownKeys) -> Embedder | None:
    """Make the configured embedder; None for the one that ships with the core.

    Raises:
        ConfigurationError: the provider is not known, or its model is not an embedder.
    """
    if given is None:
        return None
    if given.model is not None:
        return _as_embedder(given.model, None)
    if given.provider not in _EMBEDDERS:
        return Mem0Embedder(_mem0_provider("embedder", given, _EMBEDDERS, {}), given.provider)
    known = _EMBEDDER_KEYS[given.provider]
    unknown.add("embedder.config", [name for name in given.values if name not in known])
    return None if given.provider == "commonplace" else _native_embedder(given)


def _native_embedder(given: ConfigSection) -> Embedder:
    values = given.values
    if given.provider == "langchain":
        return _as_embedder(values.get("model"), values.get("embedding_dims"))
    name = str(values.get("model") or _DEFAULT_EMBEDDERS[given.provider])
    if given.provider == "huggingface" and "huggingface_base_url" not in values:
        options = values.get("model_kwargs") or {}
        return SentenceTransformersEmbedder(name, options, values.get("embedding_dims"))
    if given.provider == "huggingface":
        name = str(values.get("model") or "tei")
    return OpenAICompatibleEmbedder(given.provider, name, values)


def _as_embedder(given: Any, wanted: int | None) -> Embedder:
    if isinstance(given, Embedder):
        return given
    if hasattr(given, "embed_documents"):
        return Mem0LangChainEmbedder(given, wanted)
    if hasattr(given, "embed") and not inspect.iscoroutinefunction(given.embed):
        return Mem0Embedder(given, type(given).__name__)
    raise ConfigurationError(
        f"embedder={given!r} must be an embedder. Give a provider, LangChain's Embeddings, or an "
        "object with id, dimensions and embed(texts, purpose=...)."
    )


# -- rerankers ----------------------------------------------------------------------------------


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers on this machine, loaded on first use."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._name = str(values.get("model") or _DEFAULT_RERANKER)
        self._top_k: int | None = values.get("top_k")
        self._options = {"device": values["device"]} if "device" in values else {}
        self._loading = threading.Lock()
        self._model: Any = None

    def rerank(self, query: str, documents: Sequence[dict[str, Any]], top_k: int | None) -> Items:
        """Order memories by a `rerank_score`, best first."""
        with self._loading:
            if self._model is None:
                library = _sentence_transformers("reranker 'sentence_transformer'")
                self._model = library.CrossEncoder(self._name, **self._options)
        scores = self._model.predict([(query, one["memory"]) for one in documents])
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
        return given.model
    if given.provider == "sentence_transformer":
        return CrossEncoderReranker(given.values)
    return _mem0_provider("reranker", given, _RERANKERS)


def rerank(reranker: Any, query: str, items: Items, limit: int) -> Items:
    """Order memories with a reranker; if it fails, log that and leave their order."""
    try:
        return list(reranker.rerank(query, [dict(one) for one in items], limit))
    except DependencyError:
        raise
    except Exception as error:  # somebody else's model may raise anything
        logger.warning("Reranking failed, the order is that of the search: %r", error)
        return items


def _sentence_transformers(what: str) -> Any:
    try:
        import sentence_transformers
    except ImportError as error:
        hint = ", or give huggingface_base_url" if what.startswith("embedder") else ""
        raise DependencyError(
            f"{what} needs sentence-transformers. pip install sentence-transformers{hint}."
        ) from error
    return sentence_transformers


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
    factory = _mem0_factory(what, given.provider, native)
    known: Mapping[str, Any] = getattr(factory, "provider_to_class", {})
    if known and given.provider not in known:
        raise ConfigurationError(
            f"Neither we nor mem0 know the {what} provider {given.provider!r}. "
            f"mem0 knows {', '.join(sorted(known))}."
        )
    return factory.create(given.provider, dict(given.values), *more)


def _mem0_factory(what: str, provider: str, native: Sequence[str]) -> Any:
    if "mem0.memory.telemetry" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
    try:
        return getattr(importlib.import_module("mem0.utils.factory"), _MEM0_FACTORIES[what])
    except (ImportError, AttributeError) as error:
        known = ", ".join(native)
        raise ConfigurationError(
            f"The {what} provider {provider!r} is one of mem0's own. pip install mem0ai, or use "
            f"one of {known}; 'openai' with openai_base_url speaks to any compatible server."
        ) from error


# -- OpenAI's HTTP interface --------------------------------------------------------------------


class OpenAICompatibleClient:
    """Client of OpenAI, OpenRouter, Ollama or any compatible server, by mem0's keys.

    It is made with the first use: until then no key is needed.
    """

    def __init__(self, provider: str, values: Mapping[str, Any]) -> None:
        self._provider = provider
        self._values = values
        self._lock = threading.Lock()
        self._client: Any = None

    def connect(self) -> Any:
        """Return the client of the openai package, made once.

        Raises:
            MissingExtraError: openai is not installed.
        """
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError(package="openai", extra="openai") from error
        options: dict[str, Any] = {"api_key": self._values.get("api_key"), **self._server()}
        proxies = self._values.get("http_client_proxies")
        if proxies:
            options["http_client"] = openai.DefaultHttpxClient(proxy=proxies)
        return openai.OpenAI(**options)

    def _server(self) -> dict[str, Any]:
        values = self._values
        if self._provider == "ollama":
            base = values.get("ollama_base_url") or values.get("base_url") or _OLLAMA
            return {"base_url": f"{base.rstrip('/')}/v1", "api_key": "ollama"}
        if self._provider == "huggingface":
            key = values.get("api_key") or os.environ.get("HUGGINGFACE_API_KEY", "hf")
            return {"base_url": values["huggingface_base_url"], "api_key": key}
        if "openrouter_base_url" in values or "models" in values:
            headers = {"HTTP-Referer": values.get("site_url"), "X-Title": values.get("app_name")}
            return {
                "base_url": values.get("openrouter_base_url") or _OPENROUTER,
                "api_key": values.get("api_key") or os.environ.get("OPENROUTER_API_KEY"),
                "default_headers": {name: value for name, value in headers.items() if value},
            }
        return {"base_url": values.get("openai_base_url") or values.get("base_url")}


class OpenAICompatibleModel:
    """A chat model; of the sampling options only those that were given are sent."""

    def __init__(self, provider: str, values: Mapping[str, Any], unknown: UnknownKeys) -> None:
        unknown.add("llm.config", [name for name in values if name not in _LLM_KEYS])
        self._client = OpenAICompatibleClient(provider, values)
        self._model = values.get("model")
        if self._model is None and not values.get("models"):
            self._model = _DEFAULT_LLMS[provider]
            logger.warning("llm.config names no model, so %r is used. Name one.", self._model)
        self._options = {name: values[name] for name in _SAMPLING if name in values}
        routing = {name: values[name] for name in ("models", "route") if name in values}
        if routing:
            self._options["extra_body"] = routing
        self._knows_schemas = True

    def __call__(self, messages: Any, schema: Mapping[str, Any] | None = None) -> str:
        """Answer with text; with JSON when there is a schema.

        A server without schemas is asked for any JSON object from then on.
        """
        if schema is None:
            return self._ask(messages, {})
        from openai import BadRequestError, UnprocessableEntityError

        body = {"name": "answer", "schema": dict(schema), "strict": False}
        if self._knows_schemas:
            shape = {"response_format": {"type": "json_schema", "json_schema": body}}
            try:
                return self._ask(messages, shape)
            except (BadRequestError, UnprocessableEntityError):
                self._knows_schemas = False
        return self._ask(messages, {"response_format": {"type": "json_object"}})

    def _ask(self, messages: Any, shape: Mapping[str, Any]) -> str:
        completions = self._client.connect().chat.completions
        # OpenRouter chooses among `models` itself.
        model = self._model or ""
        answer = completions.create(model=model, messages=messages, **self._options, **shape)
        return answer.choices[0].message.content or "" if answer.choices else ""


class OpenAICompatibleEmbedder(MeasuredEmbedder):
    """An embedding model; OpenAI's own dimensions are known, all others measured."""

    def __init__(self, provider: str, model: str, values: Mapping[str, Any]) -> None:
        super().__init__(f"{provider}/{model}", values.get("embedding_dims"))
        self._client = OpenAICompatibleClient(provider, values)
        self._model = model
        self._takes_dimensions = model.startswith("text-embedding-3")
        if provider == "openai" and model in _OPENAI_DIMENSIONS:
            asks = self._takes_dimensions and self._wanted is not None
            self._size = self._wanted if asks else _OPENAI_DIMENSIONS[model]

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order, a hundred a call."""
        rows = [one.replace("\n", " ") for one in texts]
        starts = range(0, len(rows), _BATCH)
        return [row for start in starts for row in self._ask(rows[start : start + _BATCH])]

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        options = {"dimensions": self._wanted} if self._wanted and self._takes_dimensions else {}
        answer = self._client.connect().embeddings.create(
            model=self._model, input=list(texts), encoding_format="float", **options
        )
        return [one.embedding for one in sorted(answer.data, key=lambda one: one.index)]
