"""Exact numbers: decimals as they are typed, and the floats on the safe side of a fraction.

The float 0.1 is slightly more than a tenth, and the text "0.1" is a tenth. What is typed as text is kept as the
number it says.
"""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction

from dpmanifold.errors import InvalidArgumentError

_DECIMAL = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]{1,3}))?", re.ASCII)
_MOST_DIGITS, _LARGEST_EXPONENT = 50, 400
# Where people stop writing zeros, as floats do: 0.0001 and 1e-5, 1000000000000000 and 1e16.
_FIRST_PLACE, _LAST_PLACE = -4, 15
_LONGEST_SHOWN = 60
# A sum of floats below 2^53 that is no float has 16 digits or more, so that what has 15 and is none was typed.
_TYPED_DIGITS, _TYPED_BELOW = 15, 2**53


def decimal_fraction(text: str, name: str) -> Fraction:
    """Return the number that a text says, exactly, or say what is wrong with it.

    Parameters
    ----------
    text : ASCII digits, perhaps a point and digits, perhaps e and an exponent; at most 50 digits, and an exponent
        between -400 and 400
    name : what the number is, for the error

    Examples
    --------
    >>> decimal_fraction("0.1", "epsilon"), decimal_fraction("2.5e-3", "epsilon")
    (Fraction(1, 10), Fraction(1, 400))
    """
    found = _DECIMAL.fullmatch(text)
    if found is not None:
        whole, places, exponent = found[1], found[2] or "", int(found[3] or 0)
        if len(whole) + len(places) <= _MOST_DIGITS and abs(exponent) <= _LARGEST_EXPONENT:
            return int(whole + places) * Fraction(10) ** (exponent - len(places))
    received = repr(text) if len(text) <= _LONGEST_SHOWN else f"text of {len(text)} characters"
    raise InvalidArgumentError(
        f'{name} must be a number above 0, or one as text such as "0.1" or "1e-6" (digits with at most one point '
        f"between them, at most {_MOST_DIGITS} digits, an exponent of at most {_LARGEST_EXPONENT}), got {received}."
    )


def decimal_text(value: Fraction, most: int = _MOST_DIGITS) -> str | None:
    """Return a number of 0 or more as the text that `decimal_fraction` reads; None if `most` digits are not enough.

    Examples
    --------
    >>> decimal_text(Fraction(1, 10)), decimal_text(Fraction(1, 10**6)), decimal_text(Fraction(1, 3))
    ('0.1', '1e-6', None)
    """
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    # With more places than this it has more than 50 digits, or is far below every float.
    if rest != 1 or places > _MOST_DIGITS + _LARGEST_EXPONENT or value >= Fraction(10) ** _LARGEST_EXPONENT:
        return None
    whole = str(value.numerator * (10**places // value.denominator))
    digits = whole.rstrip("0") or "0"
    if len(digits) > most:
        return None
    first = len(whole) - 1 - places  # the power of ten of the first digit
    if _FIRST_PLACE <= first <= _LAST_PLACE and len(digits) - min(first, 0) <= _MOST_DIGITS:
        filled = digits.ljust(first + 1, "0") if first >= 0 else "0" * -first + digits
        point = max(first, 0) + 1
        return filled[:point] + (f".{filled[point:]}" if filled[point:] else "")
    return digits[0] + (f".{digits[1:]}" if digits[1:] else "") + f"e{first}"


def stated_up(value: Fraction) -> float | str:
    """Return a number as a promise can state it: as it is if that is a float or a short decimal, else the float above.

    Examples
    --------
    >>> stated_up(Fraction(1, 4)), stated_up(Fraction(1, 10)), stated_up(Fraction(1, 3)) > Fraction(1, 3)
    (0.25, '0.1', True)
    """
    return _as_it_is(value) or float_up(value)


def stated_down(value: Fraction) -> float | str:
    """Return a number as a promise can state it: as it is if that is a float or a short decimal, else the float below.

    Examples
    --------
    >>> stated_down(Fraction(1, 4)), stated_down(Fraction(1, 10)), stated_down(Fraction(1, 3)) < Fraction(1, 3)
    (0.25, '0.1', True)
    """
    return _as_it_is(value) or float_down(value)


def root_of(value: Fraction) -> Fraction | None:
    """Return the square root of a number of 0 or more if it is a fraction, and None if it is not.

    Examples
    --------
    >>> root_of(Fraction(1, 4)), root_of(Fraction(1, 2))
    (Fraction(1, 2), None)
    """
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return root if root * root == value else None


def _as_it_is(value: Fraction) -> float | str | None:
    below = float_down(value)
    if below == value:
        return below
    return decimal_text(value, _TYPED_DIGITS) if 0 < value < _TYPED_BELOW and below > 0 else None


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
