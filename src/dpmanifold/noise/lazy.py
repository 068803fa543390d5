"""Uniform numbers known to as many bits as a decision needs, and arithmetic that knows how much it knows.

A uniform real number is an endless string of random bits. Here it is the interval that its first bits leave open, and
more bits are drawn only if a decision (which way to round, whether to accept) still depends on them. What is computed
from intervals is computed in ball arithmetic (Arb, through python-flint): a ball contains the true value whatever was
rounded on the way. A decision is made when every number of the ball leads to it, so it is the decision that the ideal,
real-valued draw would have led to. The precision never enters a result, only how often more bits are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from flint import arb, ctx

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.noise.source import RandomSource

Found = TypeVar("Found")

_WORD = 64
# Bits of a uniform beyond those that the grid resolves: they leave a decision open with a probability near 2^-87.
_MARGIN = 96
_FEWEST_BITS = 128
# Working precision beyond the uniforms' bits: room for a value of up to 2^53 grid steps next to the noise.
_SPARE = 64
# A fair source stays undecided up to here with a probability below 2^-60000: it takes a broken one.
_MOST_BITS = 2**16


def first_bits(scale: float, grid: int) -> int:
    """Return how many bits of each uniform to draw at first, from public numbers: whole words, 128 as a rule.

    Examples
    --------
    >>> first_bits(1.0, -30), first_bits(1e300, -1074)
    (128, 2176)
    """
    steps = math.frexp(scale)[1] - grid
    return max(_FEWEST_BITS, _WORD * math.ceil((steps + _MARGIN) / _WORD))


class Uniforms:
    """Independent uniform numbers in (0, 1), each known to `bits` bits: n stands for [n/2^bits, (n+1)/2^bits].

    Parameters
    ----------
    count : how many
    bits : how many bits of each to draw at first, a multiple of 64
    source : where they come from

    Examples
    --------
    >>> from dpmanifold.noise import SimulationSource
    >>> uniforms = Uniforms(3, 128, SimulationSource(7))
    >>> coarse = uniforms.balls()
    >>> uniforms.refine()
    >>> uniforms.bits, all(old.overlaps(new) for old, new in zip(coarse, uniforms.balls(), strict=True))
    (256, True)
    """

    def __init__(self, count: int, bits: int, source: RandomSource) -> None:
        self._source = source
        self._numerators: list[int] = []
        self.bits = bits
        self.add(count)

    def add(self, count: int) -> None:
        """Draw further uniforms, to as many bits as the others have."""
        self._numerators += self._continued([0] * count, self.bits // _WORD)

    def refine(self) -> None:
        """Draw as many bits again for each."""
        self._numerators = self._continued(self._numerators, self.bits // _WORD)
        self.bits *= 2

    def _continued(self, numerators: list[int], words_each: int) -> list[int]:
        words = self._source.bits(len(numerators) * words_each).tolist()
        for first in range(words_each):
            numerators = [(n << _WORD) | word for n, word in zip(numerators, words[first::words_each], strict=True)]
        return numerators

    def balls(self, start: int = 0, stop: int | None = None) -> list[arb]:
        """Return balls that contain the uniforms number `start` to `stop`."""
        half = arb((1, -self.bits - 1))
        around = arb(0, half)
        return [arb(2 * n + 1) * half + around for n in self._numerators[start:stop]]


def settled(uniforms: Uniforms, attempt: Callable[[], Found | None]) -> Found:
    """Return what `attempt` finds, refining the uniforms for as long as it finds None.

    To be called within :func:`~dpmanifold.manifolds.exact_points.precision_kept`.

    Examples
    --------
    >>> from dpmanifold.manifolds.exact_points import precision_kept
    >>> from dpmanifold.noise import SimulationSource
    >>> uniforms = Uniforms(1, 64, SimulationSource(7))
    >>> with precision_kept():                                      # the first 100 bits of a uniform, as a number
    ...     n = settled(uniforms, lambda: (uniforms.balls()[0] * 2**100).floor().unique_fmpz())
    >>> 0 <= n < 2**100, uniforms.bits
    (True, 128)
    """
    while uniforms.bits <= _MOST_BITS:
        ctx.prec = uniforms.bits + _SPARE
        found = attempt()
        if found is not None:
            return found
        uniforms.refine()
    raise SamplerError(f"undecided after {_MOST_BITS} random bits: the source of random bits must be broken.")


def normals(balls: Sequence[arb]) -> list[arb]:
    """Return as many independent standard normal numbers as uniforms, an even number (Box and Muller's polar pairs).

    Examples
    --------
    >>> [round(float(z), 6) for z in normals([arb("0.5"), arb("0.25")])]
    [0.0, 1.17741]
    """
    turn = 2 * arb.pi()
    found = []
    for radial, angular in zip(balls[::2], balls[1::2], strict=True):
        length = (-2 * radial.log()).sqrt()
        sine, cosine = (turn * angular).sin_cos()
        found += [length * cosine, length * sine]
    return found


def chi_square_needs(degrees: int) -> int:
    """Return how many uniforms :func:`chi_square` takes.

    Examples
    --------
    >>> chi_square_needs(4), chi_square_needs(5)
    (2, 4)
    """
    return degrees // 2 + 2 * (degrees % 2)


def chi_square(balls: Sequence[arb], degrees: int) -> arb:
    """Return a chi-square number: -2 log of a product of uniforms, and for odd degrees the square of a normal one.

    Examples
    --------
    >>> round(float(chi_square([arb("0.5"), arb("0.25")], 4)), 6)       # -2 log(1/8)
    4.158883
    """
    product = arb(1)
    for ball in balls[: degrees // 2]:
        product *= ball
    total = -2 * product.log()
    if degrees % 2:
        spare = normals(balls[degrees // 2 :])[0]
        total += spare * spare
    return total


def rounded(balls: Sequence[arb]) -> list[int] | None:
    """Return the whole numbers nearest to the balls' true values, or None while one of them is open.

    A ball that touches a half stays open. (A true value is half a whole number with probability 0.)

    Examples
    --------
    >>> rounded([arb("2.2"), arb("-0.7")]), rounded([arb(0.5, 0.001)])
    ([2, -1], None)
    """
    half = arb(0.5)
    whole = []
    for ball in balls:
        number = (ball + half).floor().unique_fmpz()
        if number is None:
            return None
        whole.append(int(number))
    return whole


def as_double(whole: int, grid: int) -> float:
    """Return whole * 2^grid as a double: exact up to 2^53, then the nearest, always a multiple of 2^grid; never raises.

    Beyond the doubles it is the largest multiple that is one.

    Examples
    --------
    >>> as_double(3, -1), as_double(-(10**400), 0), as_double(10**400, -1074) == 10**400 / 2**1074
    (1.5, -1.7976931348623157e+308, True)
    """
    try:
        if abs(whole) <= 2**53:
            return math.ldexp(whole, grid)
        return whole / 2**-grid if grid < 0 else float(whole << grid)
    except OverflowError:
        # The largest double is a multiple of 2^971 and of nothing coarser.
        largest = math.ldexp(2 ** min(53, 1024 - grid) - 1, max(971, grid))
        return largest if whole > 0 else -largest


def as_doubles(multiples: Sequence[int], grid: int) -> FloatArray:
    """Return multiples of 2^grid as doubles, one by one as :func:`as_double` does.

    Examples
    --------
    >>> as_doubles([1, 3], -1)
    array([0.5, 1.5])
    """
    return np.array([as_double(multiple, grid) for multiple in multiples])


def checked_source(source: object) -> RandomSource:
    """Return the source, or say how to make one.

    Examples
    --------
    >>> from dpmanifold.noise import as_source
    >>> checked_source(as_source(7))
    SimulationSource(PCG64)
    """
    if not isinstance(source, RandomSource):
        raise InvalidArgumentError(
            f"`source` must be a RandomSource, got {type(source).__name__}. Make one with dpmanifold.noise.as_source."
        )
    return source
