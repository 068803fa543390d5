"""What a release promises: pure, approximate, zero-concentrated and Gaussian differential privacy.

A promise is a frozen, validated value: it says what is promised, not how it is kept. Whichever the kind, the
neighbouring relation is the same: one unit (a person, or a record where every record is its own unit) is replaced
by another, and the number of units is public (theory section 1).
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, final

from dpmanifold._check import positive_float, shown
from dpmanifold.errors import InvalidArgumentError

# The largest exponent whose exponential a sentence still spells out: e^20 is half a billion, and says nothing.
_LARGEST_SPELT_EPSILON = 20.0


@dataclass(frozen=True)
class Promise(ABC):
    """A guarantee about how little one unit can change the law of a release.

    Promises are ordered as sets are: `a <= b` means that keeping a keeps b, as does `a.implies(b)`. The order is
    partial: of two promises that cannot be compared neither `a <= b` nor `b <= a` is true.
    """

    @abstractmethod
    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""

    @final
    def implies(self, other: Promise) -> bool:
        """Return True if whatever keeps this promise is known to keep `other` (theory section 5).

        Rounding is on the safe side: True is a fact, while False is also the answer on the last few units of the
        last place.

        Parameters
        ----------
        other : the promise wanted, of any kind

        Examples
        --------
        >>> GDP(1.0).implies(ApproxDP(epsilon=4.4, delta=1e-5)), GDP(1.0).implies(PureDP(100.0))
        (True, False)
        """
        # Imported here because the conversions build promises: their module comes after this one.
        from dpmanifold.privacy.convert import implies

        return implies(self, other)

    @final
    def to_dict(self) -> dict[str, str | float]:
        """Return the kind and the parameters, ready for JSON; `promise_from_dict` is the way back, bit for bit.

        Examples
        --------
        >>> ApproxDP(epsilon=0.5, delta=1e-5).to_dict()
        {'kind': 'ApproxDP', 'epsilon': 0.5, 'delta': 1e-05}
        """
        return {"kind": type(self).__name__, **asdict(self)}

    @final
    def __le__(self, other: object) -> bool:
        return self.implies(other) if isinstance(other, Promise) else NotImplemented

    @final
    def __lt__(self, other: object) -> bool:
        return self.implies(other) and not other.implies(self) if isinstance(other, Promise) else NotImplemented

    @final
    def __ge__(self, other: object) -> bool:
        return other.implies(self) if isinstance(other, Promise) else NotImplemented

    @final
    def __gt__(self, other: object) -> bool:
        return other.implies(self) and not self.implies(other) if isinstance(other, Promise) else NotImplemented


@final
@dataclass(frozen=True)
class PureDP(Promise):
    """Pure differential privacy: no event becomes more than e^epsilon times as likely.

    Parameters
    ----------
    epsilon : above 0 and finite; 0.1 is strong, 1 usual, above 10 hardly a promise

    Examples
    --------
    >>> PureDP(0.5) <= PureDP(1.0)
    True
    >>> print(PureDP(0.5).describe())
    Replacing one unit by another makes no outcome more than e^0.5 = 1.649 times as likely.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return f"Replacing one unit by another makes no outcome more than {_factor(self.epsilon)} times as likely."


@final
@dataclass(frozen=True)
class ApproxDP(Promise):
    """Approximate differential privacy: pure up to an additional probability delta.

    Parameters
    ----------
    epsilon : above 0 and finite
    delta : above 0 and below 1; well below 1 / number of units, or the promise may be kept by publishing somebody

    Examples
    --------
    >>> print(ApproxDP(epsilon=0.5, delta=1e-5).describe())
    Replacing one unit by another makes no outcome more than e^0.5 = 1.649 times as likely, give or take a
    probability of 1e-05.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))
        object.__setattr__(self, "delta", as_delta(self.delta))

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return (
            f"Replacing one unit by another makes no outcome more than {_factor(self.epsilon)} times as likely, "
            f"give or take a probability of {self.delta:.4g}."
        )


@final
@dataclass(frozen=True)
class ZCDP(Promise):
    """Zero-concentrated differential privacy (Bun and Steinke 2016).

    Parameters
    ----------
    rho : above 0 and finite; the Rényi divergence of order alpha is at most rho alpha, for every alpha above 1

    Examples
    --------
    >>> print(ZCDP(0.5).describe())
    Replacing one unit by another moves the law of the result by at most 0.5 alpha in Rényi divergence, at every
    order alpha above 1.
    """

    rho: float

    def __post_init__(self) -> None:
        remedy = "0.5 is what Gaussian noise as large as the sensitivity keeps; smaller is more private."
        object.__setattr__(self, "rho", _parameter(self.rho, "rho", remedy))

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return (
            f"Replacing one unit by another moves the law of the result by at most {self.rho:.4g} alpha in "
            "Rényi divergence, at every order alpha above 1."
        )


@final
@dataclass(frozen=True)
class GDP(Promise):
    """Gaussian differential privacy (Dong, Roth and Su 2022).

    Parameters
    ----------
    mu : above 0 and finite; 0.5 is strong, 1 usual, above 6 hardly a promise

    Examples
    --------
    >>> print(GDP(1.0).describe())
    Telling from the result whether one unit was replaced by another is at least as hard as telling one draw of a
    normal law with mean 0 from one with mean 1, both of variance 1.
    """

    mu: float

    def __post_init__(self) -> None:
        remedy = "1 is what Gaussian noise as large as the sensitivity keeps; smaller is more private."
        object.__setattr__(self, "mu", _parameter(self.mu, "mu", remedy))

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return (
            "Telling from the result whether one unit was replaced by another is at least as hard as telling one "
            f"draw of a normal law with mean 0 from one with mean {self.mu:.4g}, both of variance 1."
        )


_KINDS: dict[str, type[Promise]] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP)}


def promise_from_dict(record: Mapping[str, Any]) -> Promise:
    """Return the promise that `to_dict` wrote down.

    Parameters
    ----------
    record : a mapping with "kind" and the parameters of that kind, no more and no less

    Examples
    --------
    >>> promise_from_dict({"kind": "GDP", "mu": 0.3})
    GDP(mu=0.3)
    """
    if not isinstance(record, Mapping):
        raise InvalidArgumentError(
            f"record must be a mapping such as PureDP(1.0).to_dict() returns, got {shown(record)}."
        )
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidArgumentError(f"record['kind'] must be one of {', '.join(_KINDS)}, got {shown(kind)}.")
    found = _KINDS[kind]
    wanted = {field.name for field in fields(found)}
    given = {str(key) for key in record} - {"kind"}
    if given != wanted:
        raise InvalidArgumentError(
            f"record of kind {kind} must hold {', '.join(sorted(wanted))} and nothing else, "
            f"got {', '.join(sorted(given)) or 'nothing'}."
        )
    return found(**{name: record[name] for name in wanted})


def as_promise(value: object, name: str = "privacy") -> Promise:
    """Return `value` if it is a promise, or say what to give.

    Examples
    --------
    >>> as_promise(GDP(1.0))
    GDP(mu=1.0)
    """
    if isinstance(value, Promise):
        return value
    raise InvalidArgumentError(
        f"{name} must be a promise, got {shown(value)}. Give PureDP(epsilon), ApproxDP(epsilon, delta), ZCDP(rho) "
        "or GDP(mu)."
    )


def as_epsilon(value: object) -> float:
    """Return `value` as an epsilon, a finite float above 0, or say what is wrong with it.

    Examples
    --------
    >>> as_epsilon(1)
    1.0
    """
    return _parameter(value, "epsilon", "1 is usual; smaller is more private, and 0 would be no release at all.")


def as_delta(value: object) -> float:
    """Return `value` as a delta, a float strictly between 0 and 1, or say what is wrong with it.

    Examples
    --------
    >>> as_delta(1e-300)
    1e-300
    """
    remedy = "Choose one well below 1 / number of units, such as 1e-6; for delta = 0 the promise is PureDP(epsilon)."
    delta = _parameter(value, "delta", remedy)
    if delta >= 1:
        raise InvalidArgumentError(f"delta must be below 1, got {delta!r}. {remedy}")
    return delta


def _parameter(value: object, name: str, remedy: str) -> float:
    """Check a parameter of a promise and add what to do to what is wrong."""
    try:
        return positive_float(value, name)
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(f"{problem} {remedy}") from None
    except OverflowError:  # a whole number beyond the range of floats
        raise InvalidArgumentError(f"{name} must be finite and above 0, got one beyond 1e308. {remedy}") from None


def _factor(epsilon: float) -> str:
    power = f"e^{epsilon:.4g}"
    return power if epsilon > _LARGEST_SPELT_EPSILON else f"{power} = {math.exp(epsilon):.4g}"


# -------------------------------------------------------------------- rounding to the safe side


def float_up(value: Fraction) -> float:
    """Return the smallest float of at least `value`, which is 0 or more; infinity beyond the range of floats.

    Examples
    --------
    >>> float_up(Fraction(1, 4)), float_up(Fraction(1, 10)) >= Fraction(1, 10)
    (0.25, True)
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float of at most `value`, which is 0 or more.

    Examples
    --------
    >>> float_down(Fraction(1, 4)), float_down(Fraction(1, 10)) <= Fraction(1, 10)
    (0.25, True)
    """
    above = min(float_up(value), sys.float_info.max)
    return above if above <= value else math.nextafter(above, 0.0)


def sqrt_up(value: Fraction) -> float:
    """Return the smallest float whose square is at least `value`, which is 0 or more.

    Examples
    --------
    >>> sqrt_up(Fraction(1, 4)), Fraction(sqrt_up(Fraction(2))) ** 2 >= 2
    (0.5, True)
    """
    # An integer root with more bits than a float has, of the value times a power of 4 that leaves it enough.
    shift = max(0, 64 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    scaled = math.ceil(value * 4**shift)
    root = math.isqrt(scaled)
    exact_or_above = root if root * root == scaled else root + 1
    estimate = float_up(Fraction(exact_or_above, 2**shift))
    below = math.nextafter(estimate, 0.0)
    return below if estimate > 0 and Fraction(below) ** 2 >= value else estimate


def sqrt_down(value: Fraction) -> float:
    """Return the largest float whose square is at most `value`, which is 0 or more.

    Examples
    --------
    >>> sqrt_down(Fraction(1, 4)), Fraction(sqrt_down(Fraction(2))) ** 2 <= 2
    (0.5, True)
    """
    above = min(sqrt_up(value), sys.float_info.max)
    return above if Fraction(above) ** 2 <= value else math.nextafter(above, 0.0)
