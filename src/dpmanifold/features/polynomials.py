"""The largest value of a polynomial on [0, 1], from above and in exact arithmetic: what certifies a diameter."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

# A bound is at most this share above the largest value.
_SLACK = Fraction(1, 2**45)


def largest_on_unit_interval(coefficients: Sequence[Fraction]) -> Fraction:
    """Bound a polynomial on [0, 1] from above, given its coefficients from the constant one on (theory: features).

    In Bernstein's basis a polynomial lies below the largest of its coefficients, the first and the last of which are
    its values at the ends. Intervals are halved until none of them rises above the largest value seen by more than a
    share of 2^-45. Fractions throughout: nothing is rounded. Where the maximum is at an end and the polynomial is
    monotone near it, the bound is the maximum itself.

    Parameters
    ----------
    coefficients : at least one; the polynomial's largest value must be above 0

    Examples
    --------
    >>> largest_on_unit_interval([Fraction(0), Fraction(1)])
    Fraction(1, 1)
    >>> float(largest_on_unit_interval([Fraction(0), Fraction(1), Fraction(-1)]))
    0.25
    """
    degree = len(coefficients) - 1
    bernstein = [
        sum((Fraction(math.comb(j, i), math.comb(degree, i)) * coefficients[i] for i in range(j + 1)), Fraction(0))
        for j in range(degree + 1)
    ]
    pieces, highest = [bernstein], max(bernstein[0], bernstein[-1])
    bound = highest
    while pieces:
        piece = pieces.pop()
        highest = max(highest, piece[0], piece[-1])
        if max(piece) <= highest * (1 + _SLACK):
            bound = max(bound, max(piece))
        else:
            pieces += _halves(piece)
    return bound


def _halves(piece: list[Fraction]) -> list[list[Fraction]]:
    """Return Bernstein's coefficients on both halves of an interval, by de Casteljau's triangle."""
    left, right, row = [piece[0]], [piece[-1]], piece
    while len(row) > 1:
        row = [(a + b) / 2 for a, b in itertools.pairwise(row)]
        left.append(row[0])
        right.append(row[-1])
    return [left, right[::-1]]


def root_up(square: Fraction) -> float:
    """Return a double that is at least the square root of a fraction, and no farther above it than two roundings.

    Examples
    --------
    >>> root_up(Fraction(4)), Fraction(root_up(Fraction(3))) ** 2 >= 3
    (2.0, True)
    """
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
