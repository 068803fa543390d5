"""What a promise means for a single person, in a number that people can judge, and when it means next to nothing."""

from __future__ import annotations

import math

from scipy import special

from dpmanifold._check import positive_int
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP, as_promise

# How often an observer may be right before a promise is said to protect next to nobody, and nobody.
_NEXT_TO_NOBODY, _NOBODY = 0.99, 0.9999
# How far below 1/n a delta must be for nothing to be said.
_WELL_BELOW = 10
_USUAL = {
    PureDP: "1 is a usual epsilon",
    ApproxDP: "1 is a usual epsilon",
    ZCDP: "0.5 is a usual rho",
    GDP: "1 is a usual mu",
}


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
        case PureDP():
            return float(special.expit(promise.above[0]))
        case ApproxDP():
            epsilon, delta = promise.above
            return min(1.0, float(special.expit(epsilon)) + delta * float(special.expit(-epsilon)))
        case GDP():
            return float(special.ndtr(promise.above[0] / 2))
        case ZCDP():
            return min(1.0, (1 + math.sqrt(promise.above[0] / 2)) / 2)
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


def cautions(privacy: Promise, n: int) -> tuple[str, ...]:
    """Say why a promise about n units protects nobody, or next to nobody: a text for each reason, or ().

    Only what a release may do that keeps the promise, whatever the mechanism (theory section 5):

    - delta: to publish each record with probability delta is (0, delta)-DP. A delta of 1/n or more lets a release
      publish somebody, and one above 1/(10 n) is called too close to that;
    - the rest: where an observer as in :func:`best_guess` can be right 99 % of the time (from epsilon 4.6, mu 4.65 or
      rho 10.8 on) next to nobody is protected, and where it is 99.99 % (9.2, 7.4 or 27.7) nobody.

    Parameters
    ----------
    privacy : of any kind
    n : number of units, public

    Examples
    --------
    >>> cautions(GDP(1.0), 150), cautions(ApproxDP(1.0, 1e-6), 150)
    ((), ())
    >>> print(*cautions(ApproxDP(1.0, 0.5), 150))
    delta = 0.5 is not below 1/n: a release of 150 units that publishes 75 of them whole can keep this promise.
    Choose a delta well below 1/n, such as 1e-05.
    >>> print(*cautions(PureDP(100.0), 150))
    PureDP(epsilon=100.0) protects nobody: somebody who hesitates between two records of a person, and knows
    everybody else's, can be right practically always after seeing a result that keeps it. 1 is a usual epsilon.
    """
    privacy, n = as_promise(privacy), positive_int(n, "n")
    found = [_caution_about_delta(privacy.above[1], n)] if isinstance(privacy, ApproxDP) else []
    found.append(_caution_about_guesses(privacy))
    return tuple(filter(None, found))


def _caution_about_delta(delta: float, n: int) -> str:
    if delta <= 1 / (_WELL_BELOW * n):
        return ""
    published = delta * n  # how many are published on average if everybody is with probability delta
    if published >= 1:
        count = math.floor(published)
        what = (
            f"delta = {delta:.4g} is not below 1/n: a release of {n} units that publishes "
            f"{'one' if count == 1 else count} of them whole can keep this promise."
        )
    else:
        what = (
            f"delta = {delta:.4g} is not well below 1/n: a release of {n} units that publishes one of them whole with "
            f"probability {published:.2g} can keep this promise."
        )
    # A power of ten, a hundredth of 1/n or less.
    return f"{what} Choose a delta well below 1/n, such as {10.0 ** -math.ceil(math.log10(100 * n)):.0e}."


def _caution_about_guesses(privacy: Promise) -> str:
    wrong = _smallest_chance_to_be_wrong(privacy)
    if wrong > 1 - _NEXT_TO_NOBODY:
        return ""
    often = "practically always" if wrong < 1e-9 else f"all but {100 * wrong:.2g} % of the time"
    return (
        f"{privacy} protects {'nobody' if wrong <= 1 - _NOBODY else 'next to nobody'}: somebody who hesitates between "
        "two records of a person, and knows everybody else's, can be right "
        f"{often} after seeing a result that keeps it. {_USUAL[type(privacy)]}."
    )


def _smallest_chance_to_be_wrong(privacy: Promise) -> float:
    """Return how seldom an observer is wrong about the worst release that keeps a promise: 1 - its best guess.

    The worst are randomised response, the same with a whole record at probability delta, and Gaussian noise. For zCDP
    that is a release there is, mu^2/2 = rho, whereas `best_guess` has an upper bound.
    """
    match privacy:
        case PureDP():
            return float(special.expit(-privacy.above[0]))
        case ApproxDP():
            epsilon, delta = privacy.above
            return (1 - delta) * float(special.expit(-epsilon))
        case GDP():
            return float(special.ndtr(-privacy.above[0] / 2))
        case ZCDP():
            return float(special.ndtr(-math.sqrt(privacy.above[0] / 2)))
    raise AssertionError("a promise is one of the four kinds")
