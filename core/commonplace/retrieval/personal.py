"""What tells of its speaker's life, what asks for what he told before, and what answers it.

The first two are no reaction, no task that stands for itself, and no code. Told by the vectors of
the default embedder and a few features of the text, which a small network of one hidden layer
reads. Logistic sums, without such a layer, tell whether a question is for what no longer holds.
`benchmarks/train_personal.py` measures the weights on texts that were judged by hand, and writes
`personal.npz`, `asking.npz`, `answers.npz` and `former.npz`.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .statement_words import asks_before, asks_first, asks_now

Former = Literal["", "before", "first"]
"""What a question is for: what held before something changed, or at first; "" for all else."""
FORMER: tuple[Former, ...] = ("", "before", "first")
LONGEST = 400
"""Characters of a text at most: longer ones tell of several matters, and count as personal."""
SURE = 5.0
"""Most that `asks_memory` says for or against; more is not to be had from a text alone."""
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
    return len(text) > LONGEST or bool(logits(row(text, vector), _weights("personal")) >= 0)


def asks_memory(text: str, vector: Sequence[float]) -> float:
    """Compute how much speaks for a question to a memory, in -`SURE`..`SURE`; in doubt `SURE`.

    Nothing that was told before helps to go on with a task, or to write a haiku.

    Args:
        vector: of the default embedder, of the text as a question; empty without.
    """
    if len(text) > LONGEST or not len(vector):
        return SURE
    return max(-SURE, min(SURE, float(logits(row(text, vector), _weights("asking")))))


def asks_former(text: str, vector: Sequence[float]) -> Former:
    """Tell whether a question is for what held before something changed, or at first.

    Args:
        vector: of the default embedder, of the text as a question; empty without. Then, and in a
            text of more than `LONGEST` characters, the usual words for it alone tell.
    """
    if len(text) > LONGEST or not len(vector):
        return "first" if asks_first(text) else "before" if asks_before(text) else ""
    return FORMER[int((former_row(text, vector) @ _weights("former")["kinds"]).argmax())]


def former_row(text: str, vector: Sequence[float]) -> NDArray[Any]:
    """Compute what tells it: the usual words, those for what holds now, the vector, and 1."""
    words = asks_before(text), asks_first(text), asks_now(text)
    return np.concatenate([words, vector, [1.0]])


def answers(text: str, vector: Sequence[float], question: Sequence[float]) -> bool:
    """Tell whether an assistant's reply tells something, and not that it knows nothing.

    Args:
        vector: of the default embedder.
        question: the vector of what it may be a reply to.
    """
    if len(text) > LONGEST:
        return True
    return bool(logits(reply_row(text, vector, question), _weights("answers")) >= 0)


def logits(rows: NDArray[Any], weights: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Compute how much speaks for a statement, in any number of rows; from 0 on it is one."""
    units = np.tanh(rows @ weights["units"] + weights["unit_offsets"])
    found: NDArray[Any] = units @ weights["sum"] + weights["offset"]
    return found


def row(text: str, vector: Sequence[float]) -> NDArray[Any]:
    """Compute what the network reads: the features of a text, then the numbers of its vector."""
    return np.concatenate([[compute(text) for compute in FEATURES.values()], vector])


def reply_row(text: str, vector: Sequence[float], question: Sequence[float]) -> NDArray[Any]:
    """Compute the same of a reply, without what it has in common with a question.

    To repeat what is asked for is no answer.
    """
    asked = np.asarray(question)
    rest = vector - (asked @ vector) * asked
    return row(text, rest / (np.linalg.norm(rest) + 1e-9))


@cache
def _weights(name: str) -> Mapping[str, NDArray[Any]]:
    with np.load(str(files(__package__).joinpath(f"{name}.npz"))) as found:
        return {name: found[name].astype(np.float32) for name in found.files}
