"""Model ports: an embedder and a chat model that the caller provides."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from ..errors import InvalidRecordError
from ..types import TokenEmbedding
from ..validation import check_integer, is_sound

MAX_DIMENSIONS = 65_536


@runtime_checkable
class Embedder(Protocol):
    """Model that turns texts into vectors; texts are never empty.

    `id` names the model and everything else that defines its vector space; a store remembers the
    id and refuses another.
    """

    @property
    def id(self) -> str:
        """Name of the model, with its revision."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> "Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]":
        """Embed texts, one vector each, in their order; may be an `async def`."""


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """Embedder that also gives the vectors of a text's tokens, by which turns are compared closely.

    `token_space` names everything that defines the space of these vectors. A store whose points
    have other token vectors, or none, does without them until its index is rebuilt.
    """

    @property
    def token_space(self) -> str:
        """Name of the space of the token vectors."""

    @property
    def token_dimensions(self) -> int:
        """Length of every token vector."""

    def embed_tokens(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> Sequence[TokenEmbedding] | Awaitable[Sequence[TokenEmbedding]]:
        """Embed texts with their tokens, in their order; an `async def` where `embed` is one.

        The vectors are those of `embed`. Tokens that mean little by themselves may be left out, and
        those of a long text beyond a maximum.
        """


@runtime_checkable
class ChatModel(Protocol):
    """Language model that completes a prompt; used for extraction only."""

    @property
    def id(self) -> str:
        """Name of the model."""

    def complete(
        self, system: str, user: str, *, schema: Mapping[str, Any]
    ) -> "str | Awaitable[str]":
        """Return JSON text that should fit `schema`; may be an `async def`."""


def check_models(embedder: object, chat: object) -> None:
    """Refuse an object that is not a model of the kind that its argument needs.

    Args:
        chat: None for none.

    Raises:
        InvalidRecordError: naming the argument.
    """
    if isinstance(embedder, type) or not isinstance(embedder, Embedder):
        raise InvalidRecordError(
            field="embedder",
            value=embedder,
            reason="must be an object with id, dimensions and embed",
            hint="Pass an Embedder, as in commonplace.models, or none for the default.",
        )
    if not callable(embedder.embed):
        raise InvalidRecordError(
            field="embedder.embed", value=embedder.embed, reason="must be a method"
        )
    _check_model_id("embedder.id", embedder.id)
    check_integer("embedder.dimensions", embedder.dimensions, 1, MAX_DIMENSIONS)
    if chat is None:
        return
    if isinstance(chat, type) or not isinstance(chat, ChatModel) or not callable(chat.complete):
        raise InvalidRecordError(
            field="chat",
            value=chat,
            reason="must be an object with id and complete",
            hint="Pass a ChatModel, such as OpenAIChat of commonplace.models.openai.",
        )
    _check_model_id("chat.id", chat.id)


def _check_model_id(field: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip() or "\0" in name or not is_sound(name):
        raise InvalidRecordError(
            field=field, value=name, reason="must be a text that is not empty, without NUL"
        )
