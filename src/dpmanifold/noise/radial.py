"""Exact draws from a density on the half-line whose logarithm is concave piece by piece.

The radius of every distance-based noise law has such a density (theory section 4): an area factor times a
decreasing function of the distance, known up to a constant. Concavity gives a ceiling for free, since tangents
lie above the curve: a few tens of them make a piecewise exponential envelope that is easy to draw from, and
rejection sampling against it is exact. There is no chain, no grid and no truncation of the law, and work depends on the
law alone. All of it is done with logarithms, so scales of 1e-300 and dimensions in the thousands are ordinary.

What this module does not do: know any space or privacy parameter, or repair a caller's formula. What cancels
in `log_density` stays cancelled; `RadialLaw.rounding` says how much, and beyond a limit the law is refused.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import final

import numpy as np
import numpy.typing as npt

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.noise.source import MAX_ROUNDS, RandomSource, Size, as_shape
from dpmanifold.noise.tangents import Curve, Function, Panels, lifted_envelope, refined_tangents

# How far a computed log density may lie above its envelope before a draw is refused (as log of the ratio).
_EXCESS = 1e-9

# Numbers held at a time in sampling and in quadrature.
_BLOCK = 262_144

# A law keeps so many answers for quantiles, each of so many numbers at most.
_KEPT, _KEPT_SIZE = 32, 1024


@final
class RadialLaw:
    """A law on [b_0, b_m] whose log density is concave on each interval between neighbouring breaks.

    Parameters
    ----------
    log_density : function of an array of shape (n,), giving the log of the density at each entry, up to one
        constant. -inf means no density there; it may go to -inf at any break
    derivative : its derivative, same shapes. It needs not be continuous across breaks
    breaks : increasing, b_0 >= 0; the last may be `inf`. The functions are never called at a break itself

    Attributes
    ----------
    breaks : the breaks, shape (m + 1,)
    rounding : how far rounding was seen to move the computed log density in the bulk of the law; the law that
        is drawn from has a density within this relative distance of the exact one

    Raises
    ------
    InvalidArgumentError : NaN, no mass, infinite mass, not concave, a derivative of another function, or a
        density that double precision cannot resolve

    Notes
    -----
    Theory section 4. On each piece: the mode by bisection on the derivative, over the bits of a double, so
    that every scale takes the same work; tangents where the log density has dropped to fixed levels; more of
    them where tangents and chords still differ. The envelope is the lower of the two neighbouring tangents.
    A proposal t is accepted with probability exp(log density - envelope) at t; were that ever above 1 + 1e-9,
    :class:`SamplerError` says so and nothing is returned.

    Integrals are Gauss-Legendre between neighbouring tangent points, to 1e-10 of the result, or to `rounding` where
    that is larger, if the functions are smooth between breaks.

    Examples
    --------
    The distance from the footpoint of a Laplace law on the sphere S^2, exp(-t/s) sin(t) on [0, pi]:

    >>> s = 0.2
    >>> law = RadialLaw(
    ...     log_density=lambda t: np.log(np.sin(t)) - t / s,
    ...     derivative=lambda t: 1 / np.tan(t) - 1 / s,
    ...     breaks=[0, np.pi],
    ... )
    >>> law.acceptance() > 0.98
    True
    >>> from dpmanifold.noise import SimulationSource
    >>> law.sample(3, SimulationSource(7)).shape
    (3,)
    >>> round(float(law.quantile(0.95)), 4), round(law.mean(), 4)
    (0.9018, 0.3846)
    """

    def __init__(self, log_density: Function, derivative: Function, breaks: npt.ArrayLike) -> None:
        self.breaks = _as_breaks(breaks)
        curve = Curve(log_density, derivative, self.breaks)
        self._curve = curve
        # What the caller's functions do at extreme arguments is expected here and dealt with: no warnings.
        with np.errstate(all="ignore"):
            ceiling, tangents = refined_tangents(curve)
            self._panels = Panels(curve, tangents, ceiling)
            self._envelope, self.rounding = lifted_envelope(curve, tangents, ceiling, self._panels)
        self._ceiling = ceiling
        self._known: dict[bytes, FloatArray] = {}  # quantiles that were asked for

    def __repr__(self) -> str:
        return f"RadialLaw(breaks={self.breaks.tolist()!r})"

    # ---------------------------------------------------------------- draws

    def sample(self, size: Size, source: RandomSource) -> FloatArray:
        """Draw from the law.

        Parameters
        ----------
        size : int or tuple of ints
        source : where the random bits come from

        Returns
        -------
        array of float64, shape `size`, strictly between the first and the last break

        Examples
        --------
        >>> from dpmanifold.noise import SimulationSource
        >>> law = RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), [0, np.inf])
        >>> bool(abs(law.sample(10_000, SimulationSource(7)).mean() - 1) < 0.05)
        True
        """
        return self.sample_counted(size, source)[0]

    def sample_counted(self, size: Size, source: RandomSource) -> tuple[FloatArray, int]:
        """Draw from the law, and say how many proposals that took.

        The number depends on the law and the random bits, never on data; mechanisms whose law does depend on
        data can show here what their running time tells.

        Parameters
        ----------
        size : int or tuple of ints
        source : where the random bits come from

        Returns
        -------
        draws : array of float64, shape `size`
        proposals : int

        Examples
        --------
        >>> from dpmanifold.noise import SimulationSource
        >>> law = RadialLaw(lambda t: -t * t / 2, lambda t: -t, [0, np.inf])
        >>> draws, proposals = law.sample_counted(10_000, SimulationSource(7))
        >>> 10_000 <= proposals < 10_300
        True
        """
        shape = as_shape(size)
        if not isinstance(source, RandomSource):
            raise InvalidArgumentError(
                f"`source` must be a RandomSource, got {source!r}. Make one with dpmanifold.noise.as_source."
            )
        draws = np.empty(math.prod(shape))
        proposals = 0
        for start in range(0, draws.size, _BLOCK):
            block = draws[start : start + _BLOCK]
            missing = np.arange(block.size)
            for _ in range(MAX_ROUNDS):
                t, taken = self._propose(missing.size, source)
                proposals += missing.size
                block[missing[taken]] = t[taken]
                missing = missing[~taken]
                if missing.size == 0:
                    break
            else:
                raise SamplerError(f"{self!r} did not end after {MAX_ROUNDS} rounds.")
        return draws.reshape(shape), proposals

    def _propose(self, n: int, source: RandomSource) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Return n draws from the envelope, and which of them are accepted as draws from the law."""
        with np.errstate(all="ignore"):
            t, log_envelope = self._envelope.draw(n, source)
            log_ratio = self._curve.value(t) - self._ceiling - log_envelope
            # "not <=" so that NaN is caught as well. The message keeps the draw to itself.
            if not (log_ratio <= math.log1p(_EXCESS)).all():
                raise SamplerError(
                    "log_density rises above its envelope between two tangents: it is not concave there, or rounding "
                    f"moves it by more than the {self.rounding:.1e} seen when the law was made."
                )
            return t, source.uniform(n) <= np.exp(log_ratio)

    def acceptance(self) -> float:
        """Return the probability that a proposal is accepted: the area under the density over the envelope's.

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), [0, np.inf])
        >>> round(law.acceptance(), 6)
        1.0
        """
        return math.exp(self._panels.log_total - self._envelope.log_total)

    # ---------------------------------------------------------------- the law itself

    def log_normalizer(self) -> float:
        """Return the log of the integral of exp(log_density) over the whole interval.

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t * t / 2, lambda t: -t, [0, np.inf])
        >>> bool(abs(law.log_normalizer() - np.log(np.pi / 2) / 2) < 1e-12)
        True
        """
        return self._ceiling + self._panels.log_total

    def cdf(self, t: npt.ArrayLike) -> FloatArray:
        """Return the probability of a value up to `t`; with relative accuracy in the lower tail, to 1e-45.

        Parameters
        ----------
        t : array-like of any shape

        Returns
        -------
        array of float64, shape of `t`

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), [0, np.inf])
        >>> law.cdf([0.0, np.log(2.0)]).round(12)
        array([0. , 0.5])
        """
        return self._share(t, upper=False)

    def sf(self, t: npt.ArrayLike) -> FloatArray:
        """Return the probability of a value above `t`; with relative accuracy in the upper tail, to 1e-45.

        Parameters
        ----------
        t : array-like of any shape

        Returns
        -------
        array of float64, shape of `t`

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), [0, np.inf])
        >>> bool(abs(law.sf(60.0) / np.exp(-60.0) - 1) < 1e-10)
        True
        """
        return self._share(t, upper=True)

    def _share(self, t: npt.ArrayLike, upper: bool) -> FloatArray:
        points = np.asarray(t, dtype=np.float64)
        if np.isnan(points).any():
            raise InvalidArgumentError("t must be a number or an array of numbers without NaN.")
        with np.errstate(all="ignore"):
            return self._panels.share(points.ravel(), upper).reshape(points.shape)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Return where the CDF reaches `q`.

        Parameters
        ----------
        q : probabilities in [0, 1], any shape; 0 and 1 give the first and the last break

        Returns
        -------
        array of float64, shape of `q`

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), [0, np.inf])
        >>> bool(abs(law.quantile(0.5) - np.log(2.0)) < 1e-12)
        True
        """
        wanted = np.asarray(q, dtype=np.float64)
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise InvalidArgumentError(f"q must be probabilities between 0 and 1, got {q!r}.")
        result: FloatArray = np.where(wanted > 0.5, self.breaks[-1], self.breaks[0])
        inside = (wanted > 0) & (wanted < 1)
        result[inside] = self._quantile(wanted[inside])
        return result

    def _quantile(self, q: FloatArray) -> FloatArray:
        """Solve for quantiles, or take them from a cache: plans and results ask for the same few levels."""
        key = q.tobytes()
        found = self._known.get(key)
        if found is None:
            with np.errstate(all="ignore"):
                found = self._panels.quantile(q)
            if q.size <= _KEPT_SIZE and len(self._known) < _KEPT:
                self._known[key] = found
        return found

    def mean(self) -> float:
        """Return the expectation.

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t / 3, lambda t: np.full_like(t, -1 / 3), [0, np.inf])
        >>> round(law.mean(), 10)
        3.0
        """
        return self.moment(1)

    def moment(self, k: float) -> float:
        """Return the expectation of t^k, to 1e-10 for k up to about 20; inf if it is beyond the largest double.

        Parameters
        ----------
        k : the power, 0 or more

        Examples
        --------
        >>> law = RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), [0, np.inf])
        >>> round(law.moment(4), 8)
        24.0
        """
        if isinstance(k, bool) or not isinstance(k, Real) or not 0 <= float(k) < math.inf:
            raise InvalidArgumentError(f"k must be a finite number of at least 0, got {k!r}.")
        with np.errstate(all="ignore"):
            return float(np.exp(self._panels.log_moment(float(k))))


def _as_breaks(breaks: npt.ArrayLike) -> FloatArray:
    try:
        array = np.array(breaks, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidArgumentError(f"breaks must be an increasing list of numbers, got {breaks!r}.") from problem
    increasing = array.ndim == 1 and array.size >= 2 and bool((array[1:] > array[:-1]).all())
    if not (increasing and array[0] >= 0 and array[-2] < np.inf):
        raise InvalidArgumentError(
            "breaks must be at least two increasing numbers, the first at least 0 and only the last infinite, "
            f"got {breaks!r}."
        )
    array.flags.writeable = False
    return array
