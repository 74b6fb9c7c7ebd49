"""Ranking: one score for each candidate, which is its place and a probability at once.

A logit is the sum of the features of `features`, each times its weight; its slope and its
constant depend only on what was searched, so that the order is that of the sum.
All numbers stand in `weights.json`, which `benchmarks/train_ranking.py` writes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files

import numpy as np

from ..ports.stores import Expansion, Hit
from ..types import Match, Scope, turn_key
from .calibration import Calibration, Scale
from .features import (
    BACKGROUND,
    FEATURES,
    KINDS,
    LEADS,
    OF_BEST,
    CandidateArrays,
    Floats,
    background_of,
    distinct,
    kind_of,
    leads_of,
    matrix,
)

_MOST = 30.0  # of a logit; beyond it nothing changes
_LEAST = 1e-12  # of a part; less is what rounding leaves, in one order of candidates or another
_EXPANDED = 12  # candidates whose neighbours are read


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the score.

    Attributes:
        features: of `FEATURES`, a row each with a part for each of `KINDS`.
        slope: logarithm of the factor of the sum: a part for each of `KINDS`.
        offset: of the logit: a part for each of `KINDS`, `BACKGROUND`, `LEADS` and `OF_BEST`.
    """

    features: Floats
    slope: Floats
    offset: Floats


@cache
def shipped_weights() -> Weights:
    """Read the weights that the package brings."""
    made = json.loads(files(__package__).joinpath("weights.json").read_text("utf-8"))
    background = [*KINDS, *BACKGROUND, *LEADS, *OF_BEST]
    return Weights(
        features=np.array([[made["features"][row][one] for one in KINDS] for row in FEATURES]),
        slope=np.array([made["slope"][one] for one in KINDS]),
        offset=np.array([made["offset"][one] for one in background]),
    )


def neighbour_turns(hits: Sequence[Hit]) -> set[str]:
    """List the turns (`Record.turn`) up to two positions away from a good hit that are not hits.

    Good are the dozen best by plain fusion: the neighbours of all hits improve nothing and take
    several times as long.
    """
    positions: dict[Scope, set[int]] = {}
    for hit in hits:
        if hit.record.position is not None:
            positions.setdefault(hit.record.scope, set()).add(hit.record.position)
    if not positions:
        return set()
    fused = _stretched([hit.dense for hit in hits]) + _stretched([hit.lexical for hit in hits])
    ids = [hit.record.id for hit in hits]
    good = sorted(zip((-fused).tolist(), ids, range(len(hits)), strict=True))[:_EXPANDED]
    around: dict[Scope, set[int]] = {}
    for record in (hits[i].record for _, _, i in good):
        if record.position is not None:
            near = {record.position + step for step in (-2, -1, 1, 2)}
            around.setdefault(record.scope, set()).update(near - positions[record.scope])
    return {turn_key(scope, at) for scope, near in around.items() for at in near if at >= 0}


def rank(
    question: str,
    hits: Sequence[Hit],
    neighbours: Sequence[Hit] = (),
    expansions: Sequence[Expansion] = (),
    *,
    at: datetime,
    scale: Scale | None = None,
    vector: Sequence[float] = (),
    now: datetime | None = None,
    limit: int | None = None,
    threshold: float = 0.0,
    weights: Weights | None = None,
) -> list[Match]:
    """Order candidates, best first, ties by id; equal turns and records that come twice count once.

    The newest of equal turns stands for all.

    Args:
        question: the text of the search.
        hits: the union of what vectors and words found, each with both raw scores.
        neighbours: turns next to them, and records that relations lead to; they are ranked too.
        expansions: of the relationship graph, for some of these records.
        at: the moment of the question.
        scale: of the embedder's cosines; the default embedder's when None.
        vector: of the question, by the default embedder; empty of another.
        now: records expired by then are left out; None leaves out none.
        limit: return only that many of the best; all when None.
        threshold: leave out those with a lower score.
        weights: those that the package brings when None.

    Returns:
        Matches whose `score_details` sum to the logit of `score`: a part for each feature that
        says something, and `offset`.
    """
    every = candidates(hits, neighbours, now)
    if not every:
        return []
    weights = weights or shipped_weights()
    scale = scale or Calibration().scale(question)
    found = CandidateArrays(question, every, expansions, scale, at, vector)
    kind = kind_of(found)
    rows = matrix(found)
    parts = rows * (weights.features @ kind)
    sums = parts.sum(axis=1)
    leads = leads_of(sums[found.stating], rows[found.stating])
    background = np.concatenate([background_of(found), leads])
    offset = float(weights.offset @ background)
    slope = np.exp(weights.slope @ kind)
    # Rounded, so that equal candidates are equal whatever stands around them in the array.
    logits = np.minimum(np.maximum(np.round(slope * sums + offset, 9), -_MOST), _MOST)
    scores = (1 / (1 + np.exp(-logits))).tolist()
    records = found.records
    ids = [one.id for one in records]
    ordered = [i for _, _, i in sorted(zip((-logits).tolist(), ids, range(len(ids)), strict=True))]
    matches = []
    for best, standing in distinct(records, ordered)[:limit]:
        if scores[best] < threshold:
            break
        each = zip(FEATURES, (slope * parts[best]).tolist(), strict=True)
        details = {name: part for name, part in each if part > _LEAST or part < -_LEAST}
        details["offset"] = offset
        # One of the day that is asked for stands for later ones.
        shown = best if found.dated[best] > found.dated[standing] else standing
        newer = found.replaced_by.get(shown, {})
        matches.append(
            Match(
                record=records[shown],
                score=scores[best],
                score_details=details,
                excerpt=found.excerpts[shown],
                replaced_by={ids[row]: odds for row, odds in newer.items()},
            )
        )
    return matches


def candidates(hits: Sequence[Hit], neighbours: Sequence[Hit], now: datetime | None) -> list[Hit]:
    """Unite hits and neighbours, each record once, without those that have expired."""
    seen: dict[str, Hit] = {}
    for hit in (*hits, *neighbours):
        expires = hit.record.expires_at
        if now is None or expires is None or expires > now:
            seen.setdefault(hit.record.id, hit)
    return list(seen.values())


def _stretched(values: Sequence[float]) -> Floats:
    """Scale values to 0..1 over themselves and 0."""
    low, high = min((0.0, *values)), max((0.0, *values))
    return (np.array(values) - low) / (high - low or 1.0)
