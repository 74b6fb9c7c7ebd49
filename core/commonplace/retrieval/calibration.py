"""Calibration of cosines: the scale of each embedder and script.

A cosine means something else with each embedder and in each script. It is put on a scale between
two points, that of texts without relation and that of a question and its answer.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .lexical import has_cjk

_log = logging.getLogger("commonplace")
Script = Literal["latin", "cjk"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Mean cosine of texts without relation, and of questions and their answers.

    `of_default` tells the default embedder's, of whose vectors more was measured than cosines.
    """

    unrelated: float
    related: float
    of_default: bool = False

    def place(self, cosines: NDArray[Any]) -> NDArray[Any]:
        """Place cosines between the two, 0 and 1; 0 if the embedder does not tell them apart."""
        width = self.related - self.unrelated
        return (cosines - self.unrelated) / width if width > _LEAST_WIDTH else 0.0 * cosines


DEFAULT = "use-multilingual-3/"
SHIPPED: Mapping[str, Mapping[Script, Scale]] = {
    DEFAULT: {"latin": Scale(0.046, 0.568, True), "cjk": Scale(0.071, 0.650, True)},
}
"""Scales by how the embedder's id begins."""

_LEAST_WIDTH = 0.05
_PAIRS: Mapping[Script, Sequence[tuple[str, str]]] = {
    "latin": (
        ("Where does the cat sleep at night?", "The cat sleeps on the grey sofa at night."),
        ("When does the library open?", "The library opens at nine in the morning."),
        ("Who repaired the roof?", "Mr. Lindqvist repaired the roof after the storm."),
        ("What did Anna buy at the market?", "At the market Anna bought plums and cheese."),
        ("How old is the bridge?", "The bridge over the river is two hundred years old."),
        ("Which film did we see on Friday?", "On Friday we saw a film about a violin maker."),
        ("Why was the concert cancelled?", "The concert was cancelled because the singer was ill."),
        ("What is the password of the printer?", "The printer's password is seven zeros."),
    ),
    "cjk": (
        ("猫晚上睡在哪里？", "猫晚上睡在灰色的沙发上。"),
        ("图书馆什么时候开门？", "图书馆早上九点开门。"),
        ("屋顶是谁修好的？", "暴风雨以后，老林修好了屋顶。"),
        ("安娜在市场买了什么？", "安娜在市场买了李子和奶酪。"),
        ("这座桥有多少年了？", "河上的这座桥有两百年历史。"),
        ("我们星期五看了什么电影？", "星期五我们看了一部讲制琴师的电影。"),
        ("音乐会为什么取消了？", "因为歌手生病，音乐会取消了。"),
        ("打印机的密码是什么？", "打印机的密码是七个零。"),
    ),
}
PROBES: Mapping[Script, tuple[str, ...]] = {
    script: tuple(text for pair in pairs for text in pair) for script, pairs in _PAIRS.items()
}
"""Texts of each script by whose vectors an embedder's scale is measured."""


def measured_scale(vectors: Sequence[Sequence[float]]) -> Scale:
    """Measure the scale of an embedder for a script.

    Args:
        vectors: of the script's `PROBES`, of unit length, in their order.
    """
    rows = np.array(vectors)
    number = len(rows) // 2
    cosines = rows[::2] @ rows[1::2].T
    others = cosines.sum() - np.trace(cosines)
    return Scale(float(others) / (number * (number - 1)), float(np.diag(cosines).mean()))


class Calibration:
    """The scales of one embedder: those that ship, or those that its first searches measure."""

    def __init__(self, embedder_id: str = DEFAULT) -> None:
        known = (scales for start, scales in SHIPPED.items() if embedder_id.startswith(start))
        self._scales: dict[Script, Scale] = dict(next(known, {}))
        self._embedder_id = embedder_id
        self._is_warned = False

    def probes(self, question: str) -> tuple[str, ...]:
        """List the texts to embed before a search; none once the scale of its script is known.

        As documents: some adapters embed questions one by one.
        """
        script = _script(question)
        return () if script in self._scales else PROBES[script]

    def learn(self, question: str, vectors: Sequence[Sequence[float]]) -> None:
        """Measure the scale of a question's script from the vectors of its `probes`."""
        self._scales[_script(question)] = measured_scale(vectors)

    def miss(self, error: Exception) -> None:
        """Go on without: a search must not fail by what only its scores need."""
        if not self._is_warned:
            self._is_warned = True
            _log.warning(
                "The scores of what is found are not calibrated for %r, as it could not embed %d "
                "short texts at once: %s",
                self._embedder_id, len(PROBES["latin"]), error,
            )  # fmt: skip

    def scale(self, question: str) -> Scale:
        """Return the scale for a question's script; the default embedder's if none was measured."""
        script = _script(question)
        return self._scales.get(script) or replace(SHIPPED[DEFAULT][script], of_default=False)


def _script(question: str) -> Script:
    return "cjk" if has_cjk(question) else "latin"
