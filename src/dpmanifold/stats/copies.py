"""Outputs of one result held against each other: two that are nearer than draws come are one draw and a copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from dpmanifold.stats.program import Output

COPY_ALARM = 1e-8
"""The probability that an honest result is refused because two of its draws came near each other, at most.

It is shared out evenly among all pairs. Were it much smaller, a single number that was moved by one step of its grid,
2^-30 of the scale, would pass for another draw.
"""


def copy_faults(outputs: Sequence[tuple[str, Output]]) -> list[str]:
    """Return which outputs are copies of earlier ones, given each with whose it is in words."""
    pairs = [
        (one, other)
        for one, other in combinations(outputs, 2)
        if one[1].drawn.numbers.shape == other[1].drawn.numbers.shape
    ]
    return [
        f"{name} is a copy of {first}, or nearly: two draws do not come so near each other"
        for (first, earlier), (name, output) in pairs
        if output.draw.apart(output.drawn, earlier.drawn) <= output.draw.nearest(output.drawn, COPY_ALARM / len(pairs))
    ]
