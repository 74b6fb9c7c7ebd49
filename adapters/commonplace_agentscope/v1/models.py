"""Chat and embedding models of AgentScope 1.x as `ChatModel` and `Embedder`.

Both are only ever awaited where the memory is awaited: on the caller's event loop.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentscope.embedding import EmbeddingModelBase
from agentscope.model import ChatModelBase, ChatResponse

from commonplace import ChatModel, Embedder, InvalidRecordError

from ..errors import wrong_model
from ..json_answers import with_schema, without_fence


class AgentScopeV1Chat:
    """Extraction with a chat model of AgentScope 1.x, streaming or not; one call per answer."""

    def __init__(self, model: ChatModelBase) -> None:
        if not isinstance(model, ChatModelBase):
            raise wrong_model("chat_model", model, "ChatModelBase", "ChatModel")
        self.model: Any = model

    @property
    def id(self) -> str:
        """The model's class and name."""
        return f"{type(self.model).__name__}:{self.model.model_name}"

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; the schema goes into the prompt, which every model can read."""
        prompt = with_schema(system, schema)
        answer = await self.model(
            [{"role": "system", "content": prompt}, {"role": "user", "content": user}]
        )
        if isinstance(answer, ChatResponse):
            blocks: Any = answer.content
        else:
            chunks = [chunk async for chunk in answer]
            blocks = chunks[-1].content if chunks else []  # each holds the whole text so far
        return without_fence("".join(one["text"] for one in blocks if one["type"] == "text"))


class AgentScopeV1Embedder:
    """Embedding with an embedding model of AgentScope 1.x.

    Attributes:
        dimensions: the length of every vector; the model's own.
    """

    def __init__(self, model: "EmbeddingModelBase[Any]") -> None:
        if not isinstance(model, EmbeddingModelBase):
            raise wrong_model("embedding_model", model, "EmbeddingModelBase", "Embedder")
        self.model: Any = model
        found = self.model.dimensions
        if type(found) is not int or found <= 0:
            raise InvalidRecordError(field="dimensions", value=found, reason="must be above zero")
        self.dimensions: int = found

    @property
    def id(self) -> str:
        """The model's class and name."""
        return f"{type(self.model).__name__}:{self.model.model_name}"

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> Sequence[Sequence[float]]:
        """Embed texts, one vector each, in their order; `purpose` is not passed on."""
        answer = await self.model(list(texts))
        return [[float(value) for value in vector] for vector in answer.embeddings]


def to_chat(model: "ChatModelBase | ChatModel | None") -> ChatModel | None:
    """Wrap a chat model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, ChatModel) else AgentScopeV1Chat(model)


def to_embedder(model: "EmbeddingModelBase[Any] | Embedder | None") -> Embedder | None:
    """Wrap an embedding model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, Embedder) else AgentScopeV1Embedder(model)
