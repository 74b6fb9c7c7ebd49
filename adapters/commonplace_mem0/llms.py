"""Language models as mem0's users configure them, as one callable and as the core's `ChatModel`.

Each is `model(messages, schema=None)` with messages as dicts of role and content; it answers text
or an object that has it (`answers`).
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from .answers import as_facts, text_of
from .compatible import CompatibleModel
from .config import Section, Unknown
from .exceptions import ConfigurationError
from .foreign import foreign

Model = Callable[..., Any]
NATIVE = ("openai", "ollama", "litellm", "langchain")
_MOST_AT_ONCE = 64


class Chat:
    """A blocking model as the core's chat model."""

    id = "mem0"

    def __init__(self, model: Model) -> None:
        self.model = model

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        return as_facts(text_of(self.model(_prompt(system, user), schema)))


class AsyncChat:
    """Any model as the core's asynchronous chat model: many wait at once, none blocks the loop."""

    id = "mem0"

    def __init__(self, model: Model) -> None:
        self.model = model

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; a coroutine function is awaited on the running loop."""
        prompt = _prompt(system, user)
        if is_async(self.model):
            return as_facts(text_of(await self.model(prompt, schema)))
        loop = asyncio.get_running_loop()
        return as_facts(text_of(await loop.run_in_executor(_pool(), self.model, prompt, schema)))


def to_model(given: Section | None, unknown: Unknown) -> Model | None:
    """Make the configured model; nothing is sent yet, and no key is looked for.

    Raises:
        ConfigurationError: nobody knows the provider.
    """
    if given is None:
        return None
    if given.itself is not None:
        return as_model(given.itself)
    if given.provider in ("openai", "ollama"):
        return CompatibleModel(given.provider, given.values, unknown)
    if given.provider == "litellm":
        return _litellm(given.values)
    if given.provider == "langchain":
        return as_model(given.values.get("model"))
    return as_model(foreign("llm", given, NATIVE))


def is_async(model: Any) -> bool:
    """Tell whether a model is a coroutine function, or an object with one as its call."""
    called = getattr(type(model), "__call__", None)  # noqa: B004 -- the method, not whether there is one
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def _prompt(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def as_model(given: Any) -> Model:
    """Take a model of any kind: ours, mem0's, LangChain's, or a function of messages.

    Raises:
        ConfigurationError: it is none of them.
    """
    if hasattr(given, "complete"):
        return _of_ours(given)
    if hasattr(given, "generate_response"):
        shape = {"type": "json_object"}
        return lambda messages, schema=None: given.generate_response(
            messages, **({"response_format": shape} if schema else {})
        )
    if hasattr(given, "invoke"):
        return lambda messages, schema=None: given.invoke(_told(messages, schema))
    if not callable(given):
        raise ConfigurationError(
            f"llm={given!r} is no model. Give a provider, a LangChain chat model, an object with "
            "generate_response(messages), or a function of messages."
        )
    if is_async(given):

        async def ask(messages: Any, schema: Any = None) -> Any:
            return await given(_told(messages, schema))

        return ask
    return lambda messages, schema=None: given(_told(messages, schema))


def _of_ours(given: Any) -> Model:
    def parts(messages: Sequence[Mapping[str, str]]) -> tuple[str, str]:
        said = [f"{one['role']}: {one['content']}" for one in messages[1:-1]]
        return messages[0]["content"], "\n".join([*said, messages[-1]["content"]])

    if inspect.iscoroutinefunction(given.complete):

        async def ask(messages: Any, schema: Any = None) -> Any:
            return await given.complete(*parts(messages), schema=schema or {})

        return ask
    return lambda messages, schema=None: given.complete(*parts(messages), schema=schema or {})


def _told(messages: Sequence[Mapping[str, str]], schema: Any) -> list[dict[str, str]]:
    """Put the schema into the prompt: every model can read it there."""
    told = [dict(one) for one in messages]
    if schema:
        told[0]["content"] += f"\n\nJSON schema of the answer:\n{json.dumps(schema)}"
    return told


def _litellm(values: Mapping[str, Any]) -> Model:
    options = {
        {"litellm_base_url": "api_base", "base_url": "api_base"}.get(name, name): value
        for name, value in values.items()
    }

    def ask(messages: Any, schema: Any = None) -> str:
        try:
            import litellm  # noqa: PLC0415 -- on first use
        except ImportError as error:
            raise ConfigurationError("litellm is not installed. pip install litellm") from error
        shape = {"response_format": {"type": "json_object"}} if schema else {}
        answer = litellm.completion(messages=messages, **shape, **options)
        return answer.choices[0].message.content or ""

    return ask


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="commonplace-mem0-model")
