"""A vector plus noise, rounded to a public grid, with no floating-point arithmetic in between.

A double is not a real number: which doubles `v + noise` can be depends on v, and the low bits of such a sum can tell
neighbouring data apart whatever was promised. Here the noise is an ideal draw, an interval of real numbers refined
until the nearest multiple of 2^grid to v + noise is certain (:mod:`dpmanifold.noise.lazy`). What leaves is a
function of the ideal sum, so every statement about the real-valued mechanism (pure, approximate, concentrated,
Gaussian) holds for every bit, by post-processing, without a term for rounding.

What this module does not do: bound a sensitivity or choose a scale; know of spaces (that is `exact_curved`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real

import numpy as np
import numpy.typing as npt
from flint import arb, fmpq

from dpmanifold._check import FloatArray, numeric_array, positive_float, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.exact_points import precision_kept
from dpmanifold.noise.lazy import (
    Uniforms,
    as_doubles,
    checked_source,
    chi_square,
    chi_square_needs,
    first_bits,
    normals,
    rounded,
    settled,
)
from dpmanifold.noise.source import RandomSource

# The grid is this many halvings finer than the scale: rounding adds 2^-62 of the noise's variance or less.
_FINER = 30
# The smallest power of two among the doubles, and the largest.
_FINEST, _COARSEST = -1074, 1023


@lru_cache(maxsize=1024, typed=True)
def grid_of(scale: float, largest: float) -> int:
    """Return the exponent k of the grid 2^k on which noise of a scale is released. A function of public numbers.

    2^k is 2^-30 to 2^-31 of the scale, but coarser where values up to `largest` in size, plus noise of up to 2^21
    scales, would not fit into 2^53 multiples (all such multiples are doubles); never below 2^-1074.

    Parameters
    ----------
    scale : scale of the noise, above 0
    largest : a public bound on the size of the numbers that noise is added to, 0 or more

    Returns
    -------
    int

    Examples
    --------
    >>> grid_of(1.0, 10.0), grid_of(0.75, 10.0), grid_of(1e-12, 10.0)
    (-30, -31, -48)
    """
    scale = positive_float(scale, "scale")
    if isinstance(largest, bool) or not isinstance(largest, Real) or not 0 <= float(largest) < math.inf:
        raise InvalidArgumentError(f"largest must be finite and at least 0, got {shown(largest)}.")
    fine = math.frexp(scale)[1] - 1 - _FINER
    fitting = math.frexp(largest)[1] - 52 if largest > 0 else _FINEST
    return max(fine, fitting, _FINEST)


def noisy_vector(v: npt.ArrayLike, law: str, scale: float, grid: int, source: RandomSource) -> FloatArray:
    """Return the point of the grid nearest to v + V, V an ideal draw of a spherical law.

    Parameters
    ----------
    v : finite doubles, shape (d,), d at least 1; each stands for exactly the number it is
    law : "gaussian", V normal with variance scale^2 in each coordinate; or "laplace", V with density proportional to
        exp(-|z|_2/scale) in R^d (for d = 1 the ordinary Laplace law)
    scale : above 0, a double that stands for exactly the number it is
    grid : exponent k of the grid, see :func:`grid_of`
    source : where the random bits come from; only `source.bits` is used

    Returns
    -------
    array of float64, shape (d,): multiples of 2^grid. A multiple above 2^53 is rounded to a double, and one beyond
    the doubles to the largest that is a multiple of 2^grid: fixed functions of the multiple.

    Notes
    -----
    Normal numbers are Box and Muller's. The Laplace law is the product of two independent draws, a normal vector in
    R^d and the square root of a chi-square number of d + 1 degrees: given W = w the density of sqrt(W) N at z is
    proportional to w^(-d/2) exp(-|z|^2/2w), W has density w^((d-1)/2) exp(-w/2), and the integral over w of
    w^(-1/2) exp(-|z|^2/2w - w/2) is a constant times exp(-|z|). A chi-square number of 2m degrees is -2 log of a
    product of m uniforms. So d normals and about d/2 further uniforms do, without a Gamma sampler or a division.

    *Work.* With b bits per uniform and 2^a grid steps in the scale (b = 128 and a = 31 as a rule) the interval of a
    coordinate is about 2^(a+1-b)/u steps long, u the smallest uniform in it. u lies between 2^(-j-1) and 2^-j with
    probability 2^(-j-1), and then v + V comes that close to the middle between two grid points with a probability of
    the order of 2^(a+j-b): summed over j up to b, a coordinate is refined with a probability of the order of b 2^(a-b),
    2^-90 as a rule (up to sqrt(d) times as much for the Laplace law). It is of that order for every v of at most
    2^53 grid steps. So the work is the same for all data but for an event of that probability, and what comes out does
    not depend on it at all.

    Examples
    --------
    >>> from dpmanifold.noise import as_source
    >>> grid = grid_of(0.5, 10.0)
    >>> drawn = noisy_vector([1.0, 2.0, 3.0], "gaussian", 0.5, grid, as_source(7))
    >>> drawn.shape, bool((drawn % 2.0**grid == 0).all())
    ((3,), True)
    """
    values = _checked_vector(v)
    scale, grid, law = positive_float(scale, "scale"), checked_grid(grid), checked_law(law)
    d = len(values)
    # Two uniforms make two normal numbers; an odd d leaves one of them unused.
    paired = d + d % 2
    further = chi_square_needs(d + 1) if law == "laplace" else 0
    uniforms = Uniforms(paired + further, first_bits(scale, grid), checked_source(source))

    def attempt() -> list[int] | None:
        balls = uniforms.balls()
        step = arb((1, -grid))
        factor = arb(scale) * step
        if law == "laplace":
            factor *= chi_square(balls[paired:], d + 1).sqrt()
        # An odd d has a normal number too many: `zip` leaves it.
        return rounded([arb(x) * step + factor * z for x, z in zip(values, normals(balls[:paired]), strict=False)])

    with precision_kept():
        multiples = settled(uniforms, attempt)
    return as_doubles(multiples, grid)


def likeliest(scores: Sequence[Fraction], source: RandomSource) -> int:
    """Draw an index with probability proportional to exp(score), exactly: the exponential mechanism.

    Parameters
    ----------
    scores : fractions (or whole numbers), at least one. For an epsilon-private choice give epsilon u / (2 Delta), u the
        utilities and Delta their sensitivity, as fractions: nothing is rounded on the way
    source : where the random bits come from

    Returns
    -------
    int

    Notes
    -----
    Report noisy max (the Gumbel trick): the index of the largest score + G, G independent Gumbel numbers -log(-log U),
    is each with probability proportional to exp(score). Sums are compared as intervals, refined until one lies above
    all others.

    Examples
    --------
    >>> from dpmanifold.noise import as_source
    >>> source = as_source(7)
    >>> drawn = [likeliest([Fraction(0), Fraction(1, 2)], source) for _ in range(1000)]
    >>> 560 < sum(drawn) < 680                                          # 1000/(1 + exp(-1/2)) = 622 expected
    True
    """
    exact = [_checked_score(score) for score in scores]
    if not exact:
        raise InvalidArgumentError("scores must hold at least one number, got none.")
    # Only differences matter. Without their common part large scores need no more precision than small ones.
    top = max(exact)
    below = [fmpq((score - top).numerator, (score - top).denominator) for score in exact]
    uniforms = Uniforms(len(exact), first_bits(1.0, 0), checked_source(source))

    def attempt() -> int | None:
        sums = [arb(score) - (-ball.log()).log() for score, ball in zip(below, uniforms.balls(), strict=True)]
        best = 0
        for index, total in enumerate(sums):
            if not sums[best].mid() >= total.mid():
                best = index
        # A comparison of balls is true only if it is true of all their numbers, and never of a ball that is NaN.
        return best if all(sums[best] > total for index, total in enumerate(sums) if index != best) else None

    with precision_kept():
        return settled(uniforms, attempt)


def checked_law(law: object) -> str:
    """Return the name of a law of noise, or say which there are.

    Examples
    --------
    >>> checked_law("laplace")
    'laplace'
    """
    if law not in ("gaussian", "laplace"):
        raise InvalidArgumentError(f'law must be "gaussian" or "laplace", got {shown(law)}.')
    return str(law)


def checked_grid(grid: object) -> int:
    """Return the exponent of a grid, or say what is wrong with it.

    Examples
    --------
    >>> checked_grid(-30)
    -30
    """
    if isinstance(grid, bool) or not isinstance(grid, Integral) or not _FINEST <= int(grid) <= _COARSEST:
        raise InvalidArgumentError(
            f"grid must be a whole number from {_FINEST} to {_COARSEST}, the exponent of the grid 2^grid, got "
            f"{shown(grid)}. Take it from dpmanifold.noise.grid_of."
        )
    return int(grid)


def _checked_vector(v: object) -> list[float]:
    """Return a vector of finite doubles. The messages say nothing of its entries."""
    array = numeric_array(v, "v")
    if array.dtype.kind != "f" or array.ndim != 1 or array.size == 0:
        raise InvalidArgumentError(f"v must be a real vector of shape (d,), d at least 1, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InvalidArgumentError("v must hold finite numbers. Replace what is not finite before noise is added.")
    values: list[float] = array.tolist()
    return values


def _checked_score(score: object) -> Fraction:
    if isinstance(score, bool) or not isinstance(score, Rational):
        raise InvalidArgumentError(
            f"scores must be fractions.Fraction, got {type(score).__name__}. Fraction(x) takes a double exactly."
        )
    return Fraction(int(score.numerator), int(score.denominator))
