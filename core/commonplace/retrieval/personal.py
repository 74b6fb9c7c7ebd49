"""What tells of its speaker: a statement about a life, not a reaction, a task, a question or code.

Told by the vectors of the default embedder, of which a weighted sum is taken together with a few
features of the text. `benchmarks/train_personal.py` measures the weights on sentences that were
judged by hand, and writes `personal.npy`.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 400
"""Characters of a text at most: longer ones tell of several matters, and count as personal."""
_SPEAKER = re.compile(
    r"\b(?:i|me|my|mine|we|us|ours?|ich|mi[cr]h?|mein\w*|wir|uns\w*|yo|mis?|nos|nuestr\w*|je|moi|mon"
    r"|mes|nous|notre)\b|\bj['’]|[我咱私僕]",
    re.IGNORECASE,
)
_CODE = re.compile(r"[{}()\[\]<>=;_|$\\/]")

FEATURES: Mapping[str, Callable[[str], float]] = {
    "length": lambda text: math.log1p(len(text.encode())),  # a Chinese character tells as much as 3
    "speaker": lambda text: _SPEAKER.search(text) is not None,
    "code": lambda text: len(_CODE.findall(text)) / max(1, len(text)),
}
"""The features of a text, by name."""


def is_personal(text: str, vector: Sequence[float]) -> bool:
    """Tell whether a text states something of its speaker; in doubt it does.

    Args:
        vector: of the default embedder.
    """
    weights = _weights()
    return len(text) > LONGEST or bool(row(text, vector) @ weights[:-1] + weights[-1] >= 0)


def row(text: str, vector: Sequence[float]) -> NDArray[Any]:
    """Compute what has a weight each: the features of a text, then the numbers of its vector."""
    return np.array([*(compute(text) for compute in FEATURES.values()), *vector])


@cache
def _weights() -> NDArray[Any]:
    found: NDArray[Any] = np.load(str(files(__package__).joinpath("personal.npy")))
    return found
