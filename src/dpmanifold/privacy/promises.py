"""What a release promises: pure, approximate, zero-concentrated and Gaussian differential privacy.

A promise is a frozen, validated value: it says what is promised, not how it is kept. Whichever the kind, the
neighbouring relation is the same: one unit (a person, or a record where every record is its own unit) is replaced
by another, and the number of units is public (theory section 1).

A parameter is a number or text. Text is the number it says, and a float the number it is: PureDP("0.1") promises a
tenth, and PureDP(0.1) slightly more. The attribute is the float itself, or the float below what the text says, so
that whatever is calibrated to it keeps the promise; `exact` has the numbers that were promised.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, final

from dpmanifold._check import positive_float, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy.exact_decimals import decimal_fraction, decimal_text, float_down, float_up

_EPSILON = "1 is usual; smaller is more private, and 0 would be no release at all."
_DELTA = "Choose one well below 1 / number of units, such as 1e-6; for delta = 0 the promise is PureDP(epsilon)."
# The largest exponent whose exponential a sentence still spells out: e^20 is half a billion, and says nothing.
_LARGEST_SPELT_EPSILON = 20.0


@dataclass(frozen=True, eq=False, repr=False)
class Promise(ABC):
    """A guarantee about how little one unit can change the law of a release.

    Promises are ordered as sets are: `a <= b` means that keeping a keeps b, as does `a.implies(b)`. The order is
    partial: of two promises that cannot be compared neither `a <= b` nor `b <= a` is true.

    Equality, order and hash go by the exact numbers.
    """

    # What was typed and is no float: canonical text by name. Not a field, as it is another writing of the same.
    _typed: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @abstractmethod
    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""

    @final
    @property
    def exact(self) -> dict[str, Fraction]:
        """The parameters as the numbers that are promised: of a float that float, of text what it says.

        Examples
        --------
        >>> PureDP("0.1").exact, PureDP("0.1").epsilon < Fraction(1, 10)
        ({'epsilon': Fraction(1, 10)}, True)
        """
        return {name: Fraction(value) for name, value in self.stated.items()}

    @final
    @property
    def stated(self) -> dict[str, float | str]:
        """The parameters without loss, as this kind of promise takes them: floats, and text where no float will do.

        Examples
        --------
        >>> ApproxDP("0.50", "1e-6").stated
        {'epsilon': 0.5, 'delta': '1e-6'}
        """
        return {field.name: self._typed.get(field.name, getattr(self, field.name)) for field in fields(self)}

    @final
    @property
    def above(self) -> tuple[float, ...]:
        """The parameters in order, each rounded up to a float: for whatever follows from a promise that was made.

        Examples
        --------
        >>> PureDP(0.5).above, PureDP("0.1").above
        ((0.5,), (0.1,))
        """
        return tuple(float_up(value) for value in self.exact.values())

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
    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the parameters, ready for JSON; `promise_from_dict` is the way back, without loss.

        Text that is no float comes in addition, under "exact", in its shortest form.

        Examples
        --------
        >>> ApproxDP(epsilon=0.5, delta=1e-5).to_dict()
        {'kind': 'ApproxDP', 'epsilon': 0.5, 'delta': 1e-05}
        >>> GDP("0.30").to_dict()
        {'kind': 'GDP', 'mu': 0.3, 'exact': {'mu': '0.3'}}
        """
        record = {"kind": type(self).__name__, **asdict(self)}
        return {**record, "exact": dict(self._typed)} if self._typed else record

    @final
    def _state(self, name: str, value: object, remedy: str) -> None:
        """Set a parameter to a number, or to the float below a typed decimal, which is then kept beside it."""
        if not isinstance(value, str):
            object.__setattr__(self, name, _number(value, name, remedy))
            return
        exact, below = _decimal(value, name, remedy)
        object.__setattr__(self, name, below)
        text = decimal_text(exact)
        if below != exact and text is not None:  # text of at most 50 digits has one
            object.__setattr__(self, "_typed", {**self._typed, name: text})

    @final
    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.stated.items())})"

    @final
    def __str__(self) -> str:
        """For people: the numbers, whether they were typed as text or are floats."""
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.stated.items())})"

    @final
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Promise):
            return NotImplemented
        return self is other or (type(self) is type(other) and self._key == other._key)

    @final
    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[str | Fraction, ...]:
        return type(self).__name__, *self.exact.values()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the key out: a promise that was compared is copied and hashed as one that was not."""
        return {name: value for name, value in vars(self).items() if name != "_key"}

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
@dataclass(frozen=True, eq=False, repr=False, init=False)
class PureDP(Promise):
    """Pure differential privacy: no event becomes more than e^epsilon times as likely.

    Parameters
    ----------
    epsilon : above 0 and finite; 0.1 is strong, 1 usual, above 10 hardly a promise. Text is exact: "0.1" is a tenth

    Examples
    --------
    >>> PureDP(0.5) <= PureDP(1.0)
    True
    >>> print(PureDP(0.5).describe())
    Replacing one unit by another makes no outcome more than e^0.5 = 1.649 times as likely.
    """

    epsilon: float

    def __init__(self, epsilon: float | str) -> None:
        self._state("epsilon", epsilon, _EPSILON)

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return f"Replacing one unit by another makes no outcome more than {_factor(self.epsilon)} times as likely."


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ApproxDP(Promise):
    """Approximate differential privacy: pure up to an additional probability delta.

    Parameters
    ----------
    epsilon : above 0 and finite. Text is exact, here and for `delta`: "0.1" is a tenth
    delta : above 0 and below 1; well below 1 / number of units, or the promise may be kept by publishing somebody

    Examples
    --------
    >>> print(ApproxDP(epsilon=0.5, delta=1e-5).describe())
    Replacing one unit by another makes no outcome more than e^0.5 = 1.649 times as likely, give or take a
    probability of 1e-05.
    """

    epsilon: float
    delta: float

    def __init__(self, epsilon: float | str, delta: float | str) -> None:
        self._state("epsilon", epsilon, _EPSILON)
        as_delta(delta)
        self._state("delta", delta, _DELTA)

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return (
            f"Replacing one unit by another makes no outcome more than {_factor(self.epsilon)} times as likely, "
            f"give or take a probability of {self.delta:.4g}."
        )


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ZCDP(Promise):
    """Zero-concentrated differential privacy (Bun and Steinke 2016).

    Parameters
    ----------
    rho : above 0 and finite; the Rényi divergence of order alpha is at most rho alpha, for every alpha above 1. Text
        is exact: "0.1" is a tenth

    Examples
    --------
    >>> print(ZCDP(0.5).describe())
    Replacing one unit by another moves the law of the result by at most 0.5 alpha in Rényi divergence, at every
    order alpha above 1.
    """

    rho: float

    def __init__(self, rho: float | str) -> None:
        remedy = "0.5 is what Gaussian noise as large as the sensitivity keeps; smaller is more private."
        self._state("rho", rho, remedy)

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return (
            f"Replacing one unit by another moves the law of the result by at most {self.rho:.4g} alpha in "
            "Rényi divergence, at every order alpha above 1."
        )


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class GDP(Promise):
    """Gaussian differential privacy (Dong, Roth and Su 2022).

    Parameters
    ----------
    mu : above 0 and finite; 0.5 is strong, 1 usual, above 6 hardly a promise. Text is exact: "0.1" is a tenth

    Examples
    --------
    >>> print(GDP(1.0).describe())
    Telling from the result whether one unit was replaced by another is at least as hard as telling one draw of a
    normal law with mean 0 from one with mean 1, both of variance 1.
    """

    mu: float

    def __init__(self, mu: float | str) -> None:
        remedy = "1 is what Gaussian noise as large as the sensitivity keeps; smaller is more private."
        self._state("mu", mu, remedy)

    def describe(self) -> str:
        """Say in one sentence, for people, what is promised."""
        return (
            "Telling from the result whether one unit was replaced by another is at least as hard as telling one "
            f"draw of a normal law with mean 0 from one with mean {self.mu:.4g}, both of variance 1."
        )


KINDS: dict[str, type[Promise]] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP)}
"""The kinds of promise, by the names that records of them have."""


def promise_from_dict(record: Mapping[str, Any]) -> Promise:
    """Return the promise that `to_dict` wrote down.

    Parameters
    ----------
    record : a mapping with "kind" and the parameters of that kind as numbers, perhaps "exact" with the same as text,
        and nothing else

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
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidArgumentError(f"record['kind'] must be one of {', '.join(KINDS)}, got {shown(kind)}.")
    found = KINDS[kind]
    wanted = {field.name for field in fields(found)}
    given = {str(key) for key in record} - {"kind", "exact"}
    if given != wanted:
        raise InvalidArgumentError(
            f"record of kind {kind} must hold {', '.join(sorted(wanted))} and nothing else, "
            f"got {', '.join(sorted(given)) or 'nothing'}."
        )
    numbers = {name: positive_float(record[name], name) for name in wanted}
    promise = found(**{**numbers, **_texts(record.get("exact", {}), wanted)})
    for name, number in numbers.items():
        if getattr(promise, name) != number:
            raise InvalidArgumentError(
                f"record['{name}'] must be the float below record['exact']['{name}'], got {number!r} for "
                f"{promise.stated[name]!r}: one of them was changed."
            )
    return promise


def _texts(texts: object, wanted: set[str]) -> dict[str, str]:
    if (
        isinstance(texts, Mapping)
        and wanted.issuperset(texts)
        and all(isinstance(text, str) for text in texts.values())
    ):
        return dict(texts)
    raise InvalidArgumentError(
        f"record['exact'] must hold text for {', '.join(sorted(wanted))} and nothing else, got {shown(texts)}."
    )


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


def as_delta(value: object) -> float:
    """Return `value`, a number or text, as a delta between 0 and 1, rounded down, or say what is wrong with it.

    Examples
    --------
    >>> as_delta(1e-300), as_delta("0.25")
    (1e-300, 0.25)
    """
    if isinstance(value, str):
        exact, below = _decimal(value, "delta", _DELTA)
    else:
        below = _number(value, "delta", _DELTA)
        exact = Fraction(below)
    if float_up(exact) >= 1:
        raise InvalidArgumentError(f"delta must be below 1, got {shown(value)}. {_DELTA}")
    return below


def _number(value: object, name: str, remedy: str) -> float:
    """Check a parameter of a promise and add what to do to what is wrong."""
    try:
        return positive_float(value, name)
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(f"{problem} {remedy}") from None
    except OverflowError:  # a whole number beyond the range of floats
        raise InvalidArgumentError(f"{name} must be finite and above 0, got one beyond 1e308. {remedy}") from None


def _decimal(text: str, name: str, remedy: str) -> tuple[Fraction, float]:
    """Return what a text says and the float below it, which must be above 0."""
    try:
        exact = decimal_fraction(text, name)
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(f"{problem} {remedy}") from None
    below = float_down(exact)
    if below == 0 or math.isinf(float_up(exact)):
        raise InvalidArgumentError(f"{name} must be above 0 and within the range of floats, got {text!r}. {remedy}")
    return exact, below


def _factor(epsilon: float) -> str:
    power = f"e^{epsilon:.4g}"
    return power if epsilon > _LARGEST_SPELT_EPSILON else f"{power} = {math.exp(epsilon):.4g}"
