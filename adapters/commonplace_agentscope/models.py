"""AgentScope's chat and embedding models as `ChatModel` and `Embedder`.

Both are only ever awaited where the memory is awaited: on the caller's event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentscope.embedding import EmbeddingModelBase
from agentscope.message import SystemMsg, TextBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.model import FinishedReason as Finished

from commonplace import ChatModel, Embedder, InvalidRecordError, ModelFailedError
from commonplace.agents import hinting_init

from .errors import wrong_model
from .json_answers import with_schema, without_fence


@hinting_init
class AgentScopeChat:
    """Extraction with an AgentScope chat model, streaming or not; one call per answer."""

    def __init__(self, model: ChatModelBase) -> None:
        if not isinstance(model, ChatModelBase):
            raise wrong_model("chat_model", model, "ChatModelBase", "ChatModel")
        self.model = model

    @property
    def id(self) -> str:
        """The model's class and name."""
        return f"{type(self.model).__name__}:{self.model.model}"

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; the schema goes into the prompt, which every model can read.

        Raises:
            ModelFailedError: the call was interrupted.
        """
        prompt = with_schema(system, schema)
        answer = await self.model(
            [SystemMsg(name="system", content=prompt), UserMsg(name="user", content=user)]
        )
        if isinstance(answer, ChatResponse):
            self._check(answer)
            return without_fence(_text(answer))
        parts: list[str] = []
        async for chunk in answer:
            self._check(chunk)
            if chunk.is_last:
                # The last chunk repeats the whole answer.
                return without_fence(_text(chunk) or "".join(parts))
            parts.append(_text(chunk))
        return without_fence("".join(parts))

    def _check(self, response: ChatResponse) -> None:
        if response.finished_reason != Finished.INTERRUPTED:
            return
        # A model of AgentScope swallows a cancellation; its caller still waits for it.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        raise ModelFailedError(model=self.id, reason="the call was interrupted")


@hinting_init
class AgentScopeEmbedder:
    """Embedding with an AgentScope embedding model.

    Attributes:
        dimensions: the length of every vector; the model's own unless given.
    """

    def __init__(self, model: EmbeddingModelBase[Any], dimensions: int | None = None) -> None:
        if not isinstance(model, EmbeddingModelBase):
            raise wrong_model("embedding_model", model, "EmbeddingModelBase", "Embedder")
        found = model.dimensions if dimensions is None else dimensions
        if type(found) is not int or found <= 0:
            raise InvalidRecordError(field="dimensions", value=found, reason="must be above zero")
        self.model = model
        self.dimensions = found

    @property
    def id(self) -> str:
        """The model's class and name."""
        return f"{type(self.model).__name__}:{self.model.model}"

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> Sequence[Sequence[float]]:
        """Embed texts, one vector each, in their order; `purpose` is not passed on."""
        answer = await self.model(list(texts))
        return [[float(value) for value in vector] for vector in answer.embeddings]


def to_chat(model: ChatModelBase | ChatModel | None) -> ChatModel | None:
    """Wrap a chat model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, ChatModel) else AgentScopeChat(model)


def to_embedder(model: EmbeddingModelBase[Any] | Embedder | None) -> Embedder | None:
    """Wrap an embedding model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, Embedder) else AgentScopeEmbedder(model)


def _text(response: ChatResponse) -> str:
    return "".join(block.text for block in response.content if isinstance(block, TextBlock))
