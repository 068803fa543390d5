"""Where random numbers come from: bits of the operating system, or of a seeded generator for simulations.

A source gives words of 64 random bits. Everything else (uniform, exponential, normal and gamma variates,
directions) is computed from those words by the same code for every source, so that what is tested with a
seed is what runs in a release. Nothing here knows about privacy parameters or spaces.

The transforms keep full floating-point resolution wherever the variate can come close to 0 and in its tails:
no grid of multiples of 2^-53, no largest value that ordinary use could notice. They are still computed in
double precision, and the low bits of a floating-point sum tell: releases use
:mod:`dpmanifold.noise.exact_vector_noise`.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from numbers import Integral
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import FloatArray, positive_float, positive_int
from dpmanifold.engines.base import StaysHere
from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.manifolds.base import vector_norm

Words = npt.NDArray[np.uint64]
Size: TypeAlias = int | tuple[int, ...]
Rng: TypeAlias = "int | np.random.Generator | RandomSource | None"

# Rounds of rejection before a sampler gives up. Ours accept at least 0.95 of the proposals: 200 rounds without
# success have a probability below 1e-260, so giving up means a bug, never bad luck.
MAX_ROUNDS = 200

# How one word is shared out: 52 bits for the significand, 2 free coins, 10 for the binary exponent.
_COIN_SHIFT, _COIN_MASK = np.uint64(10), np.uint64(3)
_EXPONENT_BITS, _EXPONENT_MASK = 10, np.uint64(1023)
_SIGNIFICAND_SHIFT, _SIGNIFICAND_BITS = np.uint64(12), np.uint64(52)
# Biased exponent of [1/2, 1); one less per further halving, and 1 is the smallest normal exponent.
_TOP_EXPONENT = 1022


class RandomSource(ABC, StaysHere):
    """Words of random bits and the exact transforms on top of them.

    A subclass implements `_words` and sets `private`; the transforms are final.

    Sizes are an int or a tuple of ints, as in numpy: `0` gives an empty array and `()` a single number in an
    array without axes.
    """

    private: bool
    """True if the bits are fit for a release: nobody can predict or repeat them."""

    @abstractmethod
    def _words(self, n: int) -> Words:
        """Return n independent words of 64 random bits each, shape (n,), dtype uint64."""

    @final
    def bits(self, n: int) -> Words:
        """Return n words of 64 random bits.

        Parameters
        ----------
        n : how many words, 0 or more

        Returns
        -------
        array, shape (n,), dtype uint64

        Examples
        --------
        >>> SystemSource().bits(3).dtype
        dtype('uint64')
        """
        n = positive_int(n, "n", minimum=0)
        words = np.asarray(self._words(n))
        if words.shape != (n,) or words.dtype != np.uint64:
            raise SamplerError(
                f"{type(self).__name__}._words({n}) must return uint64 of shape ({n},), "
                f"got {words.dtype} of shape {words.shape}."
            )
        return words

    @final
    def uniform(self, size: Size) -> FloatArray:
        """Draw uniformly from the open interval (0, 1), with all 53 significant bits however close to 0.

        The real number that an infinite string of random bits spells, rounded down to a double: every double
        in (0, 1) can occur, with a probability equal to the gap above it. 0 and 1 never occur.

        Parameters
        ----------
        size : int or tuple of ints

        Returns
        -------
        array of float64, shape `size`

        Examples
        --------
        >>> u = SimulationSource(7).uniform((2, 3))
        >>> u.shape, bool(((0 < u) & (u < 1)).all())
        ((2, 3), True)
        """
        shape = as_shape(size)
        return self._fraction(math.prod(shape))[0].reshape(shape)

    @final
    def exponential(self, size: Size) -> FloatArray:
        """Draw from the standard exponential law, -log of a uniform, with both tails right.

        Parameters
        ----------
        size : int or tuple of ints

        Returns
        -------
        array of float64, shape `size`, all above 0

        Examples
        --------
        >>> e = SimulationSource(7).exponential(10_000)
        >>> bool(abs(e.mean() - 1) < 0.05)
        True
        """
        shape = as_shape(size)
        fraction, coins = self._fraction(math.prod(shape))
        # A uniform near 1 lies on a grid of 2^-53, and so would small values of -log(uniform). A coin therefore
        # says on which side of 1/2 the uniform lies, and its distance from that side's end has full resolution.
        half = fraction / 2
        return np.where(coins & 1, -np.log(half), -np.log1p(-half)).reshape(shape)

    @final
    def normal(self, size: Size) -> FloatArray:
        """Draw from the standard normal law, accurate near 0 and in both tails.

        Parameters
        ----------
        size : int or tuple of ints

        Returns
        -------
        array of float64, shape `size`

        Examples
        --------
        >>> z = SimulationSource(7).normal(10_000)
        >>> bool(abs(z.mean()) < 0.05), bool(abs(z.std() - 1) < 0.05)
        (True, True)
        """
        shape = as_shape(size)
        fraction, coins = self._fraction(math.prod(shape))
        # Inversion, and not Box-Muller: one word per variate, independent by construction, monotone in the bits.
        # One coin is the sign. The other picks the inner or the outer half of the law of the absolute value,
        # P(|Z| <= z) = u/2 inside and P(|Z| > z) = u/2 outside: each is inverted from its own end, where u has
        # full resolution (ndtri alone would put values near 0 on a grid, erfinv alone those in the tails).
        inner = (coins & 1) == 1
        size_of_z = np.empty_like(fraction)
        size_of_z[inner] = math.sqrt(2) * special.erfinv(fraction[inner] / 2)
        size_of_z[~inner] = -special.ndtri(fraction[~inner] / 4)
        return np.where(coins & 2, -size_of_z, size_of_z).reshape(shape)

    @final
    def gamma(self, shape: float, size: Size) -> FloatArray:
        """Draw from the gamma law with the given shape and scale 1, exactly, by rejection.

        Marsaglia and Tsang (2000); for shapes below 1, a variate of shape + 1 times a uniform to the power
        1/shape (values below the smallest double come out as 0).

        Parameters
        ----------
        shape : the law's shape parameter, above 0; 5e6 is as fast as 5
        size : int or tuple of ints

        Returns
        -------
        array of float64, shape `size`

        Examples
        --------
        >>> g = SimulationSource(7).gamma(4.0, 10_000)
        >>> bool(abs(g.mean() - 4) < 0.1), bool(abs(g.var() - 4) < 0.4)
        (True, True)
        """
        alpha = positive_float(shape, "shape")
        out_shape = as_shape(size)
        n = math.prod(out_shape)
        draws = self._gamma_above_one(alpha if alpha >= 1 else alpha + 1, n)
        if alpha < 1:
            # In logs, as 1/alpha may be large. The quotient may overflow to infinity: the draw is then 0.
            with np.errstate(over="ignore", under="ignore"):
                draws = draws * np.exp(-self.exponential(n) / alpha)
        return draws.reshape(out_shape)

    @final
    def direction(self, size: Size, d: int) -> FloatArray:
        """Draw unit vectors uniformly from the sphere S^(d-1) in R^d.

        Parameters
        ----------
        size : int or tuple of ints
        d : number of coordinates; 1 gives a sign

        Returns
        -------
        array of float64, shape (*size, d), rows of Euclidean length 1

        Examples
        --------
        >>> v = SimulationSource(7).direction(5, 3)
        >>> v.shape, np.allclose(np.linalg.norm(v, axis=-1), 1, rtol=1e-14)
        ((5, 3), True)
        """
        shape = as_shape(size)
        z = self.normal((*shape, positive_int(d, "d")))
        # No normal variate is 0 (see `_fraction`), so neither is the norm.
        return np.asarray(z / vector_norm(z)[..., None])

    # ---------------------------------------------------------------- how

    def _fraction(self, n: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Return n uniforms in [2^-1022, 1 - 2^-53] of full resolution, and two independent coins for each (0 to 3)."""
        words = self.bits(n)
        coins = ((words >> _COIN_SHIFT) & _COIN_MASK).astype(np.int64)
        # The number of leading zeros of an infinite binary fraction: trailing zeros of fresh random bits.
        low = words & _EXPONENT_MASK
        zeros = np.where(low == 0, _EXPONENT_BITS, _trailing_zeros(low))
        open_ended = np.flatnonzero(low == 0)
        # 16 more words reach the smallest normal double; needing them all has a probability of 2^-1024.
        for _ in range(16):
            if open_ended.size == 0:
                break
            more = self.bits(open_ended.size)
            zeros[open_ended] += np.where(more == 0, 64, _trailing_zeros(more))
            open_ended = open_ended[more == 0]
        exponent = (_TOP_EXPONENT - np.minimum(zeros, _TOP_EXPONENT - 1)).astype(np.uint64)
        # Assembled from its bits, so that nothing rounds: 1.significand times a power of two.
        fraction = (exponent << _SIGNIFICAND_BITS) | (words >> _SIGNIFICAND_SHIFT)
        return fraction.view(np.float64), coins

    def _gamma_above_one(self, alpha: float, n: int) -> FloatArray:
        """Marsaglia and Tsang's method for shapes of at least 1; accepts 0.95 of the proposals or more."""
        d = alpha - 1 / 3
        c = 1 / math.sqrt(9 * d)
        draws = np.empty(n)
        missing = np.arange(n)
        for _ in range(MAX_ROUNDS):
            if missing.size == 0:
                return draws
            x = self.normal(missing.size)
            y = np.maximum(c * x, -1.0)
            # The textbook x^2/2 + d - d v + d log v with v = (1 + y)^3, expanded: the large terms are taken out
            # by hand, and 1e-12 is left of the rounding where d - d v would leave 1e-9 (shape 5e6).
            with np.errstate(divide="ignore"):
                log_ratio = x * x / 2 + d * (3 * (np.log1p(y) - y) - y * y * (3 + y))
            taken = self.exponential(missing.size) >= -log_ratio
            draws[missing[taken]] = d * (1 + y[taken]) ** 3
            missing = missing[~taken]
        if missing.size == 0:
            return draws
        raise SamplerError(f"gamma({alpha!r}) did not end after {MAX_ROUNDS} rounds.")


@final
class SystemSource(RandomSource):
    """The operating system's cryptographic generator: the source of every release.

    Each call reads what it needs and keeps nothing, so threads and forked processes share no state.

    Examples
    --------
    >>> SystemSource().private
    True
    """

    private = True

    def __init__(self) -> None:
        os.urandom(8)  # a machine without random bits fails here, before anything is spent

    def _words(self, n: int) -> Words:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64).copy()

    def __repr__(self) -> str:
        return "SystemSource()"


@final
class SimulationSource(RandomSource):
    """A seeded numpy Generator: for simulations and tests. What is drawn from it is not private.

    Parameters
    ----------
    rng : a seed (int), or a numpy Generator, which is then advanced by every draw

    Examples
    --------
    >>> source = SimulationSource(7)
    >>> source.private, bool(source.uniform(1) == SimulationSource(7).uniform(1))
    (False, True)
    """

    private = False

    def __init__(self, rng: int | np.random.Generator) -> None:
        if isinstance(rng, np.random.Generator):
            self._generator = rng
        else:
            self._generator = np.random.default_rng(positive_int(rng, "rng", minimum=0))

    def _words(self, n: int) -> Words:
        # Not `random_raw`: some bit generators give 32 bits there.
        return self._generator.integers(0, 2**64 - 1, size=n, dtype=np.uint64, endpoint=True)

    def __repr__(self) -> str:
        return f"SimulationSource({type(self._generator.bit_generator).__name__})"


def as_source(rng: Rng = None) -> RandomSource:
    """Return the source that an `rng=` argument stands for.

    Parameters
    ----------
    rng : None for the operating system's bits (private), a seed or a numpy Generator for simulations (not
        private), or a source, returned as it is

    Examples
    --------
    >>> as_source(None), as_source(7)
    (SystemSource(), SimulationSource(PCG64))
    """
    if rng is None:
        return SystemSource()
    if isinstance(rng, RandomSource):
        return rng
    whole = isinstance(rng, Integral) and not isinstance(rng, bool) and int(rng) >= 0
    if isinstance(rng, np.random.Generator) or whole:
        return SimulationSource(rng)
    raise InvalidArgumentError(
        "`rng` must be None (bits of the operating system, private), a seed of at least 0, a numpy.random.Generator "
        f"or a RandomSource, got {rng!r}."
    )


def as_shape(size: object, name: str = "size") -> tuple[int, ...]:
    """Return a numpy-style size as a tuple of ints of at least 0, or say what is wrong with it.

    Examples
    --------
    >>> as_shape(3), as_shape((2, 0)), as_shape(())
    ((3,), (2, 0), ())
    """
    if isinstance(size, tuple):
        return tuple(positive_int(length, f"each length in {name}", minimum=0) for length in size)
    return (positive_int(size, name, minimum=0),)


def _trailing_zeros(words: Words) -> npt.NDArray[np.int64]:
    """Count the zero bits below the lowest one bit; meaningless for a word of 0."""
    lowest = words & (~words + np.uint64(1))
    # A power of two is exact as a double, whatever its size, and frexp reads its exponent.
    return np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1
