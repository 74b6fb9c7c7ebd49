"""Fit weights to many examples by stochastic gradient descent."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_DECAY, _SQUARE_DECAY = 0.9, 0.999


def descended(
    slopes: Callable[[Array, Array], Array],
    start: Array,
    number: int,
    *,
    batch: int,
    rounds: int,
    rate: float,
) -> Array:
    """Go down from a start by Adam (arXiv 1412.6980), with a rate that falls to 0 as a cosine does.

    Args:
        slopes: the slopes of the loss at some weights, over some examples, by their places.
        start: the weights to begin with.
        number: how many examples there are.
        batch: examples of a step.
        rounds: how often it goes through all examples.
        rate: of the first step.

    Returns:
        The weights in the end, of the start's shape.
    """
    draw = np.random.default_rng(1)
    order = np.concatenate([draw.permutation(number) for _ in range(rounds)])
    batches = np.array_split(order, max(1, len(order) // batch))
    found, mean, square = start.astype(np.float32), np.zeros_like(start), np.zeros_like(start)
    for step, some in enumerate(batches, 1):
        slope = slopes(found, some)
        mean += (1 - _DECAY) * (slope - mean)
        square += (1 - _SQUARE_DECAY) * (slope**2 - square)
        step_rate = rate / 2 * (1 + math.cos(math.pi * step / len(batches)))
        spread = np.sqrt(square / (1 - _SQUARE_DECAY**step)) + 1e-12
        found -= (step_rate / (1 - _DECAY**step) * mean / spread).astype(np.float32)
    return found
