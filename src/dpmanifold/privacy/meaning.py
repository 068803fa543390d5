"""What a promise means for a single person, in a number that people can judge."""

from __future__ import annotations

import math

from scipy import special

from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP, as_promise


def best_guess(promise: Promise) -> float:
    """Return how often an observer can be right at most, who without the result would be right half of the time.

    The observer knows everybody else's records and guesses which of two records one unit had. That is
    (1 + total variation)/2, bounded by e^epsilon/(1 + e^epsilon), (e^epsilon + delta)/(1 + e^epsilon), Phi(mu/2), and
    for zCDP by Pinsker's inequality (theory section 5).

    Examples
    --------
    >>> round(best_guess(PureDP(1.0)), 3), round(best_guess(GDP(1.0)), 3), round(best_guess(ZCDP(0.5)), 3)
    (0.731, 0.691, 0.75)
    """
    match as_promise(promise):
        case PureDP(epsilon):
            return float(special.expit(epsilon))
        case ApproxDP(epsilon, delta):
            return min(1.0, float(special.expit(epsilon)) + delta * float(special.expit(-epsilon)))
        case GDP(mu):
            return float(special.ndtr(mu / 2))
        case ZCDP(rho):
            return min(1.0, (1 + math.sqrt(rho / 2)) / 2)
    raise AssertionError("a promise is one of the four kinds")


def in_plain_words(promise: Promise) -> str:
    """Say what :func:`best_guess` says in a sentence.

    Examples
    --------
    >>> in_plain_words(GDP(1.0)).startswith("Somebody who would guess a person's record right half of the time")
    True
    """
    return (
        "Somebody who would guess a person's record right half of the time is right at most "
        f"{100 * best_guess(promise):.3g} % of the time after seeing the result, even knowing everybody else's records."
    )
