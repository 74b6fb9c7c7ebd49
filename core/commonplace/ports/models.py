"""Model ports: an embedder and a chat model that the caller provides."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; texts are never empty.

    `id` names the model and what else decides its space; a store remembers it and refuses another.
    """

    @property
    def id(self) -> str:
        """The model's name, with its revision."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> "Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]":
        """Embed texts, one vector each, in their order; write it `async def` if the model is."""


@runtime_checkable
class ChatModel(Protocol):
    """Answers a prompt; used for extraction only."""

    @property
    def id(self) -> str:
        """The model's name."""

    def complete(
        self, system: str, user: str, *, schema: Mapping[str, Any]
    ) -> "str | Awaitable[str]":
        """Answer with JSON text that should fit `schema`; write it `async def` if the model is."""
