"""Geometry of the pictures: bars of a score's parts, and a graph of names; in units of an SVG."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from ..types import Relation, fold
from .strings import PARTS, group_of

BAR_WIDTH = 600
GRAPH_WIDTH, GRAPH_HEIGHT = 900.0, 560.0
HOURS_WIDTH, HOURS_HEIGHT = 360, 80
MAX_NODES = 40
_ROUNDS = 150
_MARGIN_X, _MARGIN_Y = 95.0, 50.0
_LABEL = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of a bar: where it begins, its width, and the group of parts that it stands for."""

    group: str
    x: float
    width: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarScale:
    """One scale for several bars: how far the parts of any go below zero and above."""

    below: float
    above: float

    @property
    def zero(self) -> float:
        """Where zero is."""
        return round(self._place(0.0), 1)

    def bar(self, value: float) -> tuple[float, float]:
        """Return where the bar of one part begins, and its width."""
        start, end = sorted((self._place(0.0), self._place(value)))
        return round(start, 1), round(max(end - start, 1.0), 1)

    def stack(self, details: Mapping[str, float]) -> list[Segment]:
        """Lay the groups of a score's parts side by side: those against it left of zero."""
        sums = _sums(details)
        found: list[Segment] = []
        right = left = 0.0
        for group in PARTS:
            value = sums.get(group, 0.0)
            if value > 0:
                start, right = right, right + value
            else:
                start = left = left + value
            width = self._place(abs(value)) - self.zero
            if width >= 0.5:
                x = round(self._place(start), 1)
                found.append(Segment(group=group, x=x, width=round(width, 1), value=value))
        return found

    def _place(self, value: float) -> float:
        return (value + self.below) / ((self.below + self.above) or 1.0) * BAR_WIDTH


def bar_scale(scores: Sequence[Mapping[str, float]]) -> BarScale:
    """Find the scale that the parts of all these scores fit on."""
    below = above = 0.0
    for details in scores:
        parts = [*_sums(details).values()]
        below = max(below, -sum(one for one in parts if one < 0), *(-v for v in details.values()))
        above = max(above, sum(one for one in parts if one > 0), *details.values())
    return BarScale(below=below, above=above)


def _sums(details: Mapping[str, float]) -> dict[str, float]:
    """Add up the parts of a score by their groups."""
    sums: dict[str, float] = {}
    for name, value in details.items():
        sums[group_of(name)] = sums.get(group_of(name), 0.0) + value
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class HourBar:
    """The bar of an hour, with its number."""

    at: datetime
    number: int
    x: float
    y: float
    width: float
    height: float


def draw_hours(since: datetime, numbers: Sequence[int]) -> list[HourBar]:
    """Draw a bar for each hour from `since` on; the highest fills the height."""
    most, width = max(numbers, default=0) or 1, HOURS_WIDTH / len(numbers)
    return [
        HourBar(
            at=since + timedelta(hours=place), number=number, x=round(place * width + 1, 1),
            y=round(HOURS_HEIGHT * (1 - number / most), 1), width=round(width - 2, 1),
            height=round(HOURS_HEIGHT * number / most, 1),
        )
        for place, number in enumerate(numbers)
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A name in a drawing, its place and that of its label, and how many relations it has."""

    name: str
    label: str
    x: float
    y: float
    label_y: float
    radius: float
    degree: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEdge:
    """A relation in a drawing, with the place of its label; `is_over` when it has ended."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str
    label_x: float
    label_y: float
    is_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDrawing:
    """A drawn graph; `omitted` names, those with the fewest relations, are left out."""

    nodes: Sequence[Node]
    edges: Sequence[DrawnEdge]
    omitted: int


def draw_graph(relations: Sequence[Relation]) -> GraphDrawing:
    """Lay out the names with the most relations, at most 40; the same relations look the same."""
    names: dict[str, str] = {}
    degrees: Counter[str] = Counter()
    for one in relations:
        for name in (one.subject, one.object):
            names.setdefault(fold(name), name)
            degrees[fold(name)] += 1
    chosen = sorted(names, key=lambda key: (-degrees[key], key))[:MAX_NODES]
    at = {key: i for i, key in enumerate(chosen)}
    drawn: dict[tuple[int, int], list[Relation]] = {}
    for one in relations:
        if fold(one.subject) in at and fold(one.object) in at:
            drawn.setdefault((at[fold(one.subject)], at[fold(one.object)]), []).append(one)
    places = _layout(len(chosen), [pair for pair in drawn if pair[0] != pair[1]])
    above = [0.0] * len(chosen)  # how far the others of its relations are below it
    for i, j in drawn:
        above[i] += places[j][1] - places[i][1]
        above[j] += places[i][1] - places[j][1]
    nodes = [
        _node(names[key], degrees[key], places[i], is_label_above=above[i] > 0)
        for i, key in enumerate(chosen)
    ]
    edges = [_edge(nodes[i], nodes[j], told) for (i, j), told in drawn.items()]
    return GraphDrawing(nodes=nodes, edges=edges, omitted=len(names) - len(chosen))


def _node(name: str, degree: int, place: tuple[float, float], *, is_label_above: bool) -> Node:
    x, y = place
    radius = round(5 + 2 * math.sqrt(degree), 1)
    label_y = y - radius - 6 if is_label_above else y + radius + 15
    return Node(
        name=name, label=_short(name), x=x, y=y, label_y=round(label_y, 1), radius=radius,
        degree=degree,
    )  # fmt: skip


def _edge(start: Node, end: Node, told: Sequence[Relation]) -> DrawnEdge:
    length = math.hypot(end.x - start.x, end.y - start.y) or 1.0
    dx, dy = (end.x - start.x) / length, (end.y - start.y) / length
    names = list(dict.fromkeys(one.predicate.replace("_", " ") for one in told))
    return DrawnEdge(
        x1=round(start.x + dx * start.radius, 1), y1=round(start.y + dy * start.radius, 1),
        x2=round(end.x - dx * (end.radius + 4), 1), y2=round(end.y - dy * (end.radius + 4), 1),
        label=_short(", ".join(names)),
        label_x=round((start.x + end.x) / 2, 1), label_y=round((start.y + end.y) / 2 - 4, 1),
        is_over=all(one.valid_to is not None or one.expired_at is not None for one in told),
    )  # fmt: skip


def _layout(number: int, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Place points by springs between those of a pair, and a push between all (Fruchterman)."""
    if number == 0:
        return []
    angles = np.arange(number) * 2.399963  # the golden angle, so that none begin in one place
    places = (
        np.stack([np.cos(angles), np.sin(angles)], 1) * np.sqrt(np.arange(number) + 0.5)[:, None]
    )
    places *= 0.5 / math.sqrt(number)
    distance = 1.0 / math.sqrt(number)
    first = np.array([pair[0] for pair in pairs], int)
    second = np.array([pair[1] for pair in pairs], int)
    for step in range(_ROUNDS):
        apart = places[:, None] - places[None]
        lengths = np.sqrt((apart**2).sum(-1)) + 1e-6
        moves = (apart * (distance**2 / lengths**2)[..., None]).sum(1)
        if len(first):
            pulled = places[first] - places[second]
            pull = pulled * (np.sqrt((pulled**2).sum(-1)) / distance)[:, None]
            np.add.at(moves, first, -pull)
            np.add.at(moves, second, pull)
        moves -= places * 0.3
        most = 0.1 * (1 - step / _ROUNDS)
        sizes = np.sqrt((moves**2).sum(-1))[:, None] + 1e-6
        places = places + moves / sizes * np.minimum(sizes, most)
    low, high = places.min(0), places.max(0)
    span = np.where(high - low > 1e-3, high - low, 1.0)
    margin = np.array([_MARGIN_X, _MARGIN_Y])
    room = np.array([GRAPH_WIDTH, GRAPH_HEIGHT]) - 2 * margin
    centred = np.where(high - low > 1e-3, (places - low) / span, 0.5)
    return [(round(float(x), 1), round(float(y), 1)) for x, y in centred * room + margin]


def _short(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"
