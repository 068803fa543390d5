"""Several releases from the same units taken together, and a promise shared out among several releases.

Sequential composition, for a list fixed in advance. What is decided on the way, from earlier results, goes through a
`Budget`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from fractions import Fraction
from numbers import Integral
from typing import TypeVar, cast

from dpmanifold._check import positive_float, positive_int, shown
from dpmanifold.errors import InvalidArgumentError, PromiseError
from dpmanifold.privacy.convert import rho_of, to_approx, to_gdp
from dpmanifold.privacy.exact_decimals import float_down, float_up, root_of, sqrt_down, sqrt_up, stated_up
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP, as_promise

P = TypeVar("P", bound=Promise)


def compose(promises: Iterable[Promise], *, delta: float | None = None) -> Promise:
    """Return what a fixed list of releases from the same units promises together (theory section 5).

    One kind stays that kind: epsilons add, rhos add, mus add in squares, approximate promises add epsilons and
    deltas. Mixed kinds meet at the strongest kind all of them convert to: pure and Gaussian at GDP, whatever else
    has no ApproxDP at ZCDP, and everything with an ApproxDP at ApproxDP. Rounded up.

    Parameters
    ----------
    promises : one or more, of any kinds
    delta : the delta at which ZCDP and GDP promises are stated where they meet an ApproxDP; it comes on top of the
        other deltas. Needed there, and not used otherwise.

    Examples
    --------
    >>> compose([PureDP(0.5), PureDP(0.25)]), compose([GDP(3.0), GDP(4.0)]), compose([ZCDP(0.25), GDP(1.0)])
    (PureDP(epsilon=0.75), GDP(mu=5.0), ZCDP(rho=0.75))
    >>> compose([ApproxDP(0.5, 1e-6), PureDP(0.5)])
    ApproxDP(epsilon=1.0, delta=1e-06)
    """
    if isinstance(promises, Promise) or not isinstance(promises, Iterable):
        raise InvalidArgumentError(f"promises must be a list of promises, got {shown(promises)}. Write [promise, ...].")
    parts = [as_promise(part, f"promises[{i}]") for i, part in enumerate(promises)]
    if not parts:
        raise InvalidArgumentError("promises must hold at least one promise, got none: there is nothing to compose.")
    if any(isinstance(part, ApproxDP) for part in parts):
        return _compose_approx(parts, delta)
    return _compose_without_delta(parts)


def split(promise: P, parts: int | Sequence[float]) -> list[P]:
    """Share a promise out: promises of the same kind that `compose` back to it, and to no more (theory section 5).

    Shares are of epsilon (and delta), of rho, or of mu^2, which is what adds up. Rounded down.

    Parameters
    ----------
    promise : of any kind
    parts : how many equal shares, or one weight above 0 for each; only the ratios of the weights matter

    Returns
    -------
    list of promises, one per share

    Examples
    --------
    >>> split(PureDP(1.0), 2), split(GDP(5.0), [9, 16])
    ([PureDP(epsilon=0.5), PureDP(epsilon=0.5)], [GDP(mu=3.0), GDP(mu=4.0)])
    """
    as_promise(promise, "promise")
    if isinstance(parts, Integral):
        count = positive_int(parts, "parts")
        return [cast(P, _share(promise, Fraction(1, count)))] * count
    return [cast(P, _share(promise, weight)) for weight in _weights(parts)]


def _compose_without_delta(parts: Sequence[Promise]) -> Promise:
    kinds = {type(part) for part in parts}
    if kinds == {PureDP}:
        return PureDP(stated_up(_total_epsilon(parts)))
    if ZCDP in kinds:
        return ZCDP(stated_up(sum((rho_of(part) for part in parts), Fraction(0))))
    square = sum((to_gdp(part).exact["mu"] ** 2 for part in parts), Fraction(0))
    root = root_of(square)
    return GDP(sqrt_up(square) if root is None else stated_up(root))


def _compose_approx(parts: Sequence[Promise], delta: float | None) -> ApproxDP:
    """Add up epsilons and deltas, after stating what has no delta at the given one."""
    linear = [part for part in parts if isinstance(part, ApproxDP | PureDP)]
    curved = [part for part in parts if not isinstance(part, ApproxDP | PureDP)]
    if curved:
        if delta is None:
            raise PromiseError(
                f"delta is missing: {curved[0]} meets an ApproxDP, and has to be stated at some delta of its own. "
                "Give delta=, well below 1 / number of units."
            )
        # Pure promises may add their epsilon or join the curved ones, whichever comes out smaller.
        pure = [part for part in parts if isinstance(part, PureDP)]
        apart = to_approx(_compose_without_delta(curved), delta)
        joined = to_approx(_compose_without_delta([*curved, *pure]), delta)
        if _total_epsilon([joined]) < _total_epsilon([apart, *pure]):
            linear = [joined, *(part for part in linear if isinstance(part, ApproxDP))]
        else:
            linear.append(apart)
    total = sum((part.exact["delta"] for part in linear if isinstance(part, ApproxDP)), Fraction(0))
    if float_up(total) >= 1:
        raise PromiseError(f"promises have deltas that add up to {float_up(total):.4g}: nothing is promised any more.")
    return ApproxDP(stated_up(_total_epsilon(linear)), stated_up(total))


def _total_epsilon(parts: Iterable[Promise]) -> Fraction:
    return sum((part.exact["epsilon"] for part in parts if isinstance(part, PureDP | ApproxDP)), Fraction(0))


def _weights(parts: object) -> list[Fraction]:
    """Return the shares that a list of weights stands for, which add up to 1 exactly."""
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise InvalidArgumentError(
            f"parts must be a number of shares or a list of weights, got {shown(parts)}. Write 3, or [2, 1, 1]."
        )
    weights = [Fraction(positive_float(weight, f"parts[{i}]")) for i, weight in enumerate(parts)]
    if not weights:
        raise InvalidArgumentError("parts must hold at least one weight, got none.")
    total = sum(weights)
    return [weight / total for weight in weights]


def _share(promise: Promise, weight: Fraction) -> Promise:
    # Of the floats below a typed promise: what such shares add up to, rounded up, is not above them.
    if isinstance(promise, GDP):
        return GDP(sqrt_down(weight * Fraction(promise.mu) ** 2))
    return type(promise)(*(float_down(weight * Fraction(number)) for number in asdict(promise).values()))
