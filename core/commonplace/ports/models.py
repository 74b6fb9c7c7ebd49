"""Model ports: an embedder and a chat model that the caller provides."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from ..model import TokenEmbedding


@runtime_checkable
class Embedder(Protocol):
    """Model that turns texts into vectors; texts are never empty.

    `id` names the model and all else that defines its vector space; a store remembers the id and
    refuses another.
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

    `token_space` names all that defines the space of these vectors; a store whose points have
    others, or none, goes without until it is rebuilt by `reembed`.
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

        The vectors are those of `embed`. Tokens that say little by themselves may be left out, and
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
