"""How far exact draws about a point go: laws of the distance from a footpoint, from uniforms that are refined.

The density with respect to volume is exp(-rho/scale) or exp(-rho^2/(2 scale^2)). A distance depends on random bits and
public numbers alone, so how many proposals it took tells nothing of the footpoint and needs no cap. Which of the three
ways below is right follows from what a space states: :func:`exact_radius`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from flint import arb, ctx
from scipy import special

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.exact_matrices import sinhc
from dpmanifold.manifolds.exact_points import ExactVolume, precision_kept, total
from dpmanifold.manifolds.optional_properties import RankOne
from dpmanifold.manifolds.vectors import log_sinc
from dpmanifold.noise.distance import RiemannianLaplace
from dpmanifold.noise.lazy import Uniforms, chi_square, chi_square_needs, first_bits

# Below this share of accepted proposals a law counts as too slow to draw. Of the radii below a ceiling at least the
# second share must be accepted; of the directions, RiemannianLaplace asks for 0.2.
_LEAST_ACCEPTED, _LEAST_BELOW_CEILING = 1e-3, 0.005
# Angles (in radians) below which curvature is not worth a better proposal: sin(u)/u is 1 to 1e-12.
_FLAT = 1e-6
# Precision for the numbers that a quadrature in doubles starts from: nothing of their cancellation is left.
_QUADRATURE_BITS = 192
# Gauss-Legendre: the law is a few tens of its standard deviations wide, and smooth.
_PANELS, _NODES = 20, 20
# Precision at which the largest ratio of densities is bounded, once and for all draws of a scale.
_BOUND_BITS = 128
# Distances beyond this many mean distances of the slowest exponential, and beyond what doubles hold, take refinements:
# hyperbolic functions of them, and exponentials of matrices.
_RARE, _FARTHEST, _LONGEST_LOG = 44.0, 300.0, 145.0


class ExactRadius(ABC):
    """A law of the distance."""

    @property
    @abstractmethod
    def needs(self) -> int:
        """How many uniforms a proposal takes."""

    @property
    @abstractmethod
    def usable(self) -> bool:
        """Whether the law exists and enough proposals are accepted: public, and alike for all footpoints."""

    @abstractmethod
    def bits(self, largest: float, grid: int) -> int:
        """Return how many bits each uniform is drawn to at first, for numbers of a size on a grid."""

    @abstractmethod
    def distance(self, uniforms: Uniforms) -> arb:
        """Return the proposed distance."""

    def accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the proposal is accepted, or None while that is open: always, unless said otherwise."""
        return True

    def direction_accepted(self, uniforms: Uniforms, gaussian: Callable[[], list[arb]]) -> bool | None:
        """Return the same of the direction of normal numbers."""
        return True


def exact_radius(space: Manifold, law: str, scale: float) -> ExactRadius | None:
    """Return the law of the distance in a space that states what it is made of; None elsewhere.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Hyperbolic, Sphere
    >>> exact_radius(Sphere(2), "gaussian", 0.1).usable, exact_radius(Hyperbolic(3), "laplace", 0.5).usable
    (True, False)
    >>> exact_radius(SPD(3, metric="riemann"), "gaussian", 0.1) is None
    True
    """
    facts, points = space.rank_one, space.exact_points
    if facts is not None and math.isfinite(facts.end):
        return closed_radius(law, space.dim, facts, scale)
    if law != "laplace":
        return None
    if facts is not None:
        return SumOfExponentials(space.dim, facts.unit, scale) if facts.double == 0 else None
    return None if points is None or points.volume is None else BelowCeiling(space, points.volume, scale)


# -------------------------------------------------------------------- spaces that close


@dataclass(frozen=True)
class ClosedRadius(ExactRadius):
    """Proposals of a flat law of smaller scale, made by the tangent of h at `contact`.

    With u the angle, distance over unit, the density is u^(d-1) exp(h(u)) times the law's, where
    h(u) = single log(sin u/u) + double log(sin 2u/2u). As log(sin u/u) is the sum over n of log(1 - u^2/(pi n)^2), h is
    concave in u and in u^2. A tangent to it in u (Laplace) or u^2 (Gaussian) therefore lies above it, and together with
    the law's own term makes the radius of a flat law: a Gamma or chi number, proposed and accepted with probability
    exp(h - tangent), decided by a uniform. The point of contact only matters for speed; it is chosen where the
    proposal's own mean (mean square) lies, which is best. Angles beyond the end are rejected.
    """

    law: str
    dim: int
    facts: RankOne
    scale: float
    contact: float

    @property
    def _chi_degrees(self) -> tuple[int, ...]:
        """Degrees whose chi numbers multiply to the proposal: chi_d, and chi_d chi_(d+1) for a Gamma(d) number."""
        return (self.dim,) if self.law == "gaussian" else (self.dim, self.dim + 1)

    @property
    def needs(self) -> int:
        """The first decides on the acceptance."""
        return 1 + sum(chi_square_needs(degrees) for degrees in self._chi_degrees)

    @property
    def usable(self) -> bool:
        """At every scale on spheres and shapes: the draw is exact wherever it ends, and this is about time."""
        return self.acceptance >= _LEAST_ACCEPTED

    def bits(self, largest: float, grid: int) -> int:
        """Return what the numbers' own size asks for."""
        return first_bits(largest, grid)

    def distance(self, uniforms: Uniforms) -> arb:
        """Return unit times the angle."""
        return arb(self.facts.unit) * self.angle(uniforms)

    def angle(self, uniforms: Uniforms) -> arb:
        """Return the proposed angle."""
        balls = uniforms.balls(1, self.needs)
        product, start = arb(1), 0
        for degrees in self._chi_degrees:
            stop = start + chi_square_needs(degrees)
            product *= chi_square(balls[start:stop], degrees)
            start = stop
        inverse = arb(self.facts.unit) / arb(self.scale)
        if self.law == "gaussian":
            return (product / (inverse * inverse + 2 * self._descent())).sqrt()
        return product.sqrt() / (inverse + self._descent())

    def accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the angle is. NaN compares as open."""
        angle = self.angle(uniforms)
        end = arb.pi() * arb(self.facts.end)
        if angle > end:
            return False
        if not angle < end:
            return None
        log_ratio = self._height(angle)
        if self.contact > 0:
            contact = arb(self.contact)
            run = angle * angle - contact * contact if self.law == "gaussian" else angle - contact
            log_ratio += self._descent() * run - self._height(contact)
        return _below(uniforms.balls(0, 1)[0].log(), log_ratio)

    def _height(self, u: arb) -> arb:
        height = arb(0)
        if self.facts.single:
            height += self.facts.single * u.sinc().log()
        if self.facts.double:
            height += self.facts.double * (2 * u).sinc().log()
        return height

    def _descent(self) -> arb:
        """Return minus the slope of h at the contact, with respect to u (Laplace) or u^2 (Gaussian)."""
        if self.contact == 0:
            return arb(0)
        u = arb(self.contact)
        slope = self.facts.single * (u.cot() - 1 / u) + self.facts.double * (2 * (2 * u).cot() - 1 / u)
        return -slope / (2 * u) if self.law == "gaussian" else -slope

    @cached_property
    def acceptance(self) -> float:
        """The expectation of the acceptance probability under the proposal, by quadrature."""
        d, end = self.dim, math.pi * self.facts.end
        with precision_kept():
            ctx.prec = _QUADRATURE_BITS
            descent = float(self._descent())
            height = float(self._height(arb(self.contact))) if self.contact > 0 else 0.0
        inverse = self.facts.unit / self.scale
        if self.law == "gaussian":
            rate = math.hypot(inverse, math.sqrt(2 * descent))
            constant, spread, center = (1 - d / 2) * math.log(2) - math.lgamma(d / 2), 1.0, math.sqrt(d)
        else:
            rate = inverse + descent
            constant, spread, center = -math.lgamma(d), math.sqrt(d), float(d)

        def density(x: FloatArray) -> FloatArray:
            # x = rate u: the proposal in its own units, where it is Gamma(d) or chi_d.
            u = x / rate
            flat = constant + (d - 1) * np.log(x) - (x * x / 2 if self.law == "gaussian" else x)
            weights = (self.facts.single, 1), (self.facts.double, 2)
            lift = sum(weight * log_sinc(times * u) for weight, times in weights if weight)
            run = u * u - self.contact**2 if self.law == "gaussian" else u - self.contact
            return np.asarray(np.exp(flat + lift + descent * run - height))

        # The tails beyond are below 1e-20 of either law.
        low, high = max(0.0, center - 12 * spread), min(rate * end, center + 12 * spread + 50)
        if not low < high:
            return 0.0
        knots = np.linspace(low, high, _PANELS + 1)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        return float(
            sum((b - a) / 2 * (weights * density((b - a) * (nodes + 1) / 2 + a)).sum() for a, b in pairwise(knots))
        )


class WideCircle(ClosedRadius):
    """On a circle, noise as wide as a turn: angles are proposed uniformly, for the flat law would mostly miss."""

    @property
    def needs(self) -> int:
        """One decides on the acceptance, one is the angle."""
        return 2

    def angle(self, uniforms: Uniforms) -> arb:
        """Return the proposed angle, in (0, pi)."""
        return arb.pi() * arb(self.facts.end) * uniforms.balls(1, 2)[0]

    def accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether it is, with the probability that the density has against its largest."""
        apart = self.distance(uniforms) / arb(self.scale)
        log_ratio = -apart * apart / 2 if self.law == "gaussian" else -apart
        return _below(uniforms.balls(0, 1)[0].log(), log_ratio)

    @cached_property
    def acceptance(self) -> float:
        """The expectation of the acceptance probability under the proposal."""
        end = math.pi * self.facts.end * self.facts.unit / self.scale
        if end < _FLAT:  # uniform, to all digits
            return 1.0
        if self.law == "gaussian":
            return math.sqrt(math.pi / 2) * math.erf(end / math.sqrt(2)) / end
        return -math.expm1(-end) / end


@lru_cache(maxsize=256)
def closed_radius(law: str, dim: int, facts: RankOne, scale: float) -> ClosedRadius:
    """Choose the contact where the proposal's mean (of u, or of u^2) lies: there the acceptance is largest.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> round(closed_radius("gaussian", 45, Sphere(45).rank_one, 0.2).acceptance, 2)
    0.98
    """
    single, double, unit = facts.single, facts.double, facts.unit
    if single + double == 0 and scale > unit:
        return WideCircle(law, dim, facts, scale, 0.0)
    flat_size = scale / unit * (dim if law == "laplace" else math.sqrt(dim))
    if flat_size < _FLAT or single + double == 0:
        return ClosedRadius(law, dim, facts, scale, 0.0)

    def excess(u: float) -> float:
        slope = single * (1 / math.tan(u) - 1 / u) + double * (2 / math.tan(2 * u) - 1 / u)
        if law == "laplace":
            return u * (unit / scale - slope) - dim
        return u * u * (unit / scale) ** 2 - u * slope - dim

    # Increasing in u, negative at 0. Forty halvings are far more than speed can tell.
    low, high = 0.0, math.pi * facts.end
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return ClosedRadius(law, dim, facts, scale, high)


# -------------------------------------------------------------------- hyperbolic spaces


@dataclass(frozen=True)
class SumOfExponentials(ExactRadius):
    """The Laplace law of hyperbolic space, of which nothing is rejected.

    In units of curvature the radius has density proportional to exp(-t/s) sinh(t)^(d-1), which is
    exp(-a t) (1 - exp(-2t))^(d-1) with a = 1/s - (d-1), up to a constant. So exp(-2t) has the law Beta(a/2, d), that of
    a product of independent U_j^(1/(a/2 + j)), j = 0, ..., d-1, and t is the sum of independent exponentials with rates
    a, a + 2, ..., a + 2(d-1).
    """

    dim: int
    unit: float
    scale: float

    @property
    def needs(self) -> int:
        """One for each exponential."""
        return self.dim

    @property
    def usable(self) -> bool:
        """Wherever the law exists: 1/scale > (d-1) sqrt(-curvature)."""
        return Fraction(self.unit) > (self.dim - 1) * Fraction(self.scale)

    def bits(self, largest: float, grid: int) -> int:
        """Return more than the scale asks for: the boost of a point at a likely distance t costs a factor exp(2t)."""
        slowest = max(self.unit / self.scale - (self.dim - 1), 1 / _FARTHEST)
        reach = sum(1 / (slowest + 2 * j) for j in range(self.dim)) + _RARE / slowest
        return first_bits(self.scale, grid - math.ceil(2 * min(reach, _FARTHEST) / math.log(2)))

    def distance(self, uniforms: Uniforms) -> arb:
        """Return the sum."""
        balls = uniforms.balls(0, self.dim)
        slowest = arb(self.unit) / arb(self.scale) - (self.dim - 1)
        return -arb(self.unit) * total([ball.log() / (slowest + 2 * j) for j, ball in enumerate(balls)])


# -------------------------------------------------------------------- spaces whose directions differ


class BelowCeiling(ExactRadius):
    """The Laplace law of a space whose volume depends on the direction, drawn below the ceiling of it.

    The ceiling's radius has density proportional to t^(k-1) (1 - exp(-2at))^N exp(-b t), k = d - N, b = 1/scale - N a.
    A Gamma number of shape k + q and rate b, 0 <= q <= N, is accepted with probability (1 - exp(-x))^N x^-q / sup,
    x = 2at: see :func:`proposal`. A uniform direction is then accepted with probability J over the ceiling.
    """

    def __init__(self, space: Manifold, volume: ExactVolume, scale: float) -> None:
        self._space, self._volume, self._scale = space, volume, scale
        self._rank = space.dim - volume.pairs

    @cached_property
    def plan(self) -> Proposal:
        """How the distance is proposed."""
        return proposal(self._rank, *self._space.volume_ceiling(), self._scale)

    @property
    def needs(self) -> int:
        """Two that decide on the distance and on the direction come first."""
        return 2 + self._rank + self.plan.power

    @property
    def usable(self) -> bool:
        """Where :class:`~dpmanifold.noise.RiemannianLaplace` draws."""
        return below_ceiling_is_usable(self._space, self._rank, self._scale)

    def bits(self, largest: float, grid: int) -> int:
        """Return more than the scale asks for: exponentials and factors at a likely distance cost some."""
        reach = (self._rank + self.plan.power + _RARE) / self.plan.rate
        return first_bits(self._scale, grid - math.ceil(2 * min(reach, _LONGEST_LOG) / math.log(2)))

    def distance(self, uniforms: Uniforms) -> arb:
        """Return the Gamma number over its rate."""
        rate = 1 / arb(self._scale) - self._volume.pairs * self._volume.stretch()
        return chi_square(uniforms.balls(2, self.needs), 2 * (self._rank + self.plan.power)) / (2 * rate)

    def accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the distance is."""
        x = 2 * self._volume.stretch() * self.distance(uniforms)
        log_ratio = self._volume.pairs * (-(-x).expm1()).log() - self.plan.power * x.log() - arb(self.plan.top)
        return _below(uniforms.balls(0, 1)[0].log(), log_ratio)

    def direction_accepted(self, uniforms: Uniforms, gaussian: Callable[[], list[arb]]) -> bool | None:
        """Return whether a uniform is below J over the ceiling; first with few digits."""
        distance = self.distance(uniforms)
        ceiling = uniforms.balls(1, 2)[0] * sinhc(self._volume.stretch() * distance) ** self._volume.pairs
        for quick in (True, False):
            volume = self._volume.at(distance, gaussian(), quick=quick)
            found = None if volume is None else _below(ceiling, volume)
            if found is not None:
                return found
        return None


@dataclass(frozen=True)
class Proposal:
    """How a distance is proposed: Gamma(rank + power) at some rate, accepted against exp(top).

    Attributes
    ----------
    rate : in doubles
    power : q
    top : at least the supremum over x > 0 of N log(1 - exp(-x)) - q log(x)
    """

    rate: float
    power: int
    top: float


@lru_cache(maxsize=256)
def below_ceiling_is_usable(space: Manifold, rank: int, scale: float) -> bool:
    """Return whether the law exists and enough proposals are accepted; judged with public numbers.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> matrices = SPD(3, metric="riemann")
    >>> below_ceiling_is_usable(matrices, 3, 0.3), below_ceiling_is_usable(matrices, 3, 0.5)
    (True, False)
    """
    try:
        law = RiemannianLaplace(space, space.origin, scale)
    except InvalidArgumentError:
        return False
    return radius_acceptance(law, rank, proposal(rank, *space.volume_ceiling(), scale)) >= _LEAST_BELOW_CEILING


def radius_acceptance(law: RiemannianLaplace, rank: int, plan: Proposal) -> float:
    """Return the probability that a proposed distance is accepted.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> matrices = SPD(9, metric="riemann")
    >>> law = RiemannianLaplace(matrices, matrices.origin, 0.05)
    >>> 0.7 < radius_acceptance(law, 9, proposal(9, *matrices.volume_ceiling(), 0.05)) < 1
    True
    """
    shape, stretch = rank + plan.power, law.space.volume_ceiling()[1]
    log_gamma = math.lgamma(shape) - shape * math.log(plan.rate)
    return math.exp(law.radius.log_normalizer() - plan.top - plan.power * math.log(2 * stretch) - log_gamma)


@lru_cache(maxsize=256)
def proposal(rank: int, pairs: int, stretch: float, scale: float) -> Proposal:
    """Choose the power q for which most distances are accepted, and bound the ratio of densities.

    With s = q/N the function N log(1 - exp(-x)) - q log(x) has the derivative (N/x) (x/(e^x - 1) - s). As x/(e^x - 1)
    falls from 1 to 0, the supremum is at its only root; at 0 for q = N and at infinity for q = 0, and 0 in both cases.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> ceilings = [SPD(k, metric="riemann").volume_ceiling() for k in (2, 9)]
    >>> proposal(2, *ceilings[0], 1e-3).power, proposal(9, *ceilings[1], 1e-6).power
    (1, 36)
    """
    rate = 1 / scale - pairs * stretch
    powers = np.arange(pairs + 1)
    roots = np.array([_root(q / pairs) for q in powers[1:-1]])
    tops = np.zeros(pairs + 1)
    tops[1:-1] = pairs * np.log(-np.expm1(-roots)) - powers[1:-1] * np.log(roots)
    # Log of the Gamma law's constant, in terms of x, less the log of the ratio's ceiling.
    gain = (rank + powers) * math.log(rate / (2 * stretch)) - special.gammaln(rank + powers) - tops
    best = int(np.argmax(gain))
    top = 0.0 if best in (0, pairs) else _bound(pairs, best, float(roots[best - 1]))
    return Proposal(rate, best, top)


def _root(share: float) -> float:
    """Solve x/(e^x - 1) = share, 0 < share < 1."""
    x = float(-share - special.lambertw(-share * math.exp(-share), -1).real)
    for _ in range(3):  # near share = 1 Lambert's function gives half the digits
        growth = math.expm1(x)
        x -= (x / growth - share) * growth * growth / (growth - x * (growth + 1))
    return x


def _bound(pairs: int, power: int, root: float) -> float:
    """Return a double of at least the supremum, from an interval that certainly holds the root."""
    with precision_kept():
        ctx.prec = _BOUND_BITS
        for width in (1e-12, 1e-9, 1e-6, 1e-3):
            low, high = arb(root * (1 - width)), arb(root * (1 + width))
            if pairs * low / low.expm1() > power and pairs * high / high.expm1() < power:
                x = low.union(high)
                value = pairs * (-(-x).expm1()).log() - power * x.log()
                return math.nextafter(float(value.upper()), math.inf)
    raise SamplerError("the largest ratio of two densities could not be bounded. Please report this.")


def _below(first: arb, second: arb) -> bool | None:
    """Return whether the first number is below the second, or None while that is open (NaN stays open)."""
    if first < second:
        return True
    return False if first > second else None
