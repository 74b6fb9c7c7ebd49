"""What the models of AgentScope 1.x and 2.x have in common: the embedder, names and errors.

Models are only ever awaited where the memory is awaited: on the caller's event loop.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

from agentscope.embedding import EmbeddingModelBase

from commonplace import Embedder, InvalidRecordError, WrongTypeError
from commonplace.agents import hinting_init

_NAME = "model" if find_spec("agentscope.memory") is None else "model_name"  # as in 1.x


@hinting_init
class AgentScopeEmbedder:
    """Embedding with an AgentScope embedding model.

    Attributes:
        dimensions: the length of every vector; the model's own unless given.
    """

    def __init__(self, model: "EmbeddingModelBase[Any]", dimensions: int | None = None) -> None:
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
        return model_id(self.model)

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> Sequence[Sequence[float]]:
        """Embed texts, one vector each, in their order; `purpose` is not passed on."""
        answer = await self.model(list(texts))
        return [[float(value) for value in vector] for vector in answer.embeddings]


def to_embedder(model: "EmbeddingModelBase[Any] | Embedder | None") -> Embedder | None:
    """Wrap an embedding model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, Embedder) else AgentScopeEmbedder(model)


def model_id(model: Any) -> str:
    """Return a model's class and name."""
    return f"{type(model).__name__}:{getattr(model, _NAME)}"


def wrong_model(field: str, model: object, theirs: str, ours: str) -> WrongTypeError:
    """Make the error for a model that is neither AgentScope's nor one of the core's protocol."""
    return WrongTypeError(
        field=field,
        value=model,
        takes=f"an AgentScope {theirs} or a commonplace {ours}",
        hint="Pass an instance of one.",
    )
