"""Amounts as shares of a cap, for people and for limits. What is spent is counted exactly, elsewhere."""

from __future__ import annotations

from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import Amount, cost_of


def share_of(cap: Promise, amount: Amount) -> float:
    """Return how much of a cap an amount is, in the part that is fuller.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpmanifold import GDP
    >>> share_of(GDP(1.0), (Fraction(1, 4),))
    0.25
    """
    parts = zip(amount, cost_of(cap, cap), strict=True)
    return float(max((used / whole for used, whole in parts if whole), default=0))
