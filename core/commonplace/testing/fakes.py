"""Fakes of models and of time, for tests; engines are never faked."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ..retrieval.lexical import tokens
from ..types import TokenEmbedding


class HashEmbedder:
    """Embeds a text as the sum of random directions of its words: similar texts have near vectors.

    The same text has the same unit vector in every process; no text has a zero vector.

    Attributes:
        calls: the texts of every call, oldest first.
    """

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.calls: list[tuple[str, ...]] = []

    @property
    def id(self) -> str:
        """Name the model; vectors of equal dimensions are comparable."""
        return f"hash-{self.dimensions}"

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one unit vector each, in their order; the purpose makes no difference."""
        self.calls.append(tuple(texts))
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in tokens(text) or [text]:
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            # Four components a word: enough to tell words apart, few enough to be fast.
            for start in range(0, 16, 4):
                number = int.from_bytes(digest[start : start + 4], "big")
                vector[(number >> 1) % self.dimensions] += 1.0 if number & 1 else -1.0
        length = math.sqrt(sum(value * value for value in vector))
        if not length:
            vector[0] = length = 1.0
        return [value / length for value in vector]


class HashTokenEmbedder(HashEmbedder):
    """`HashEmbedder` with a token vector for each word of a text."""

    token_space = "hash-words-8"
    token_dimensions = 8

    def embed_tokens(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[TokenEmbedding]:
        """Embed texts as `embed`; the same word has the same token vector everywhere."""
        vectors = self.embed(texts, purpose=purpose)
        tokens_of = [b"".join(map(_word_vector, tokens(text))) for text in texts]
        return [
            TokenEmbedding(vector=vector, tokens=some)
            for vector, some in zip(vectors, tokens_of, strict=True)
        ]


def _word_vector(word: str) -> bytes:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    parts = [number - 127.5 for number in digest]
    length = math.sqrt(sum(part * part for part in parts))
    return bytes(round(127 * part / length) % 256 for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """Arguments of one call of a scripted chat model."""

    system: str
    user: str
    schema: Mapping[str, Any]


ScriptedAnswer = str | BaseException | Callable[[str, str], str]


class _Script:
    def __init__(self, answers: Sequence[ScriptedAnswer]) -> None:
        self.id = "scripted"
        self.calls: list[ChatCall] = []
        self._answers = list(answers)

    def _next(self, system: str, user: str, schema: Mapping[str, Any]) -> str:
        number = len(self.calls)
        self.calls.append(ChatCall(system=system, user=user, schema=schema))
        if number >= len(self._answers):
            raise AssertionError(f"Call {number + 1} has no answer; {number} were scripted.")
        answer = self._answers[number]
        if isinstance(answer, BaseException):
            raise answer
        return answer(system, user) if callable(answer) else answer


class ScriptedChat(_Script):
    """Answers with the given texts, in order; an exception is raised, a function is called.

    Attributes:
        calls: the arguments of every call, oldest first.
    """

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Return the next answer.

        Raises:
            AssertionError: all answers are used up.
        """
        return self._next(system, user, schema)


class AsyncScriptedChat(_Script):
    """`ScriptedChat` with an asynchronous `complete`."""

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Return the next answer.

        Raises:
            AssertionError: all answers are used up.
        """
        return self._next(system, user, schema)


class FrozenClock:
    """A clock that stands still until `advance` moves it."""

    def __init__(self, at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.at: datetime = at

    def __call__(self) -> datetime:
        """Return the time, in the zone that it was set with."""
        return self.at

    def advance(self, **parts: float) -> datetime:
        """Move on by the parts of a `timedelta`, such as `days=2`, and return the new time."""
        self.at += timedelta(**parts)
        return self.at
