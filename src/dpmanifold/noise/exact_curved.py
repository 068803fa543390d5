"""Exact draws from the Riemannian Laplace and Gaussian laws on spheres and shape spaces (theory section 4).

The density with respect to volume is exp(-rho/scale) or exp(-rho^2/(2 scale^2)), rho the distance from a footpoint.
The radius is drawn by rejection, the direction is uniform in the tangent space at the footpoint, and the drawn point's
ambient coordinates are rounded to a public grid. Uniforms are refined until every decision is certain
(:mod:`dpmanifold.noise.lazy`), so what leaves is the rounded ideal draw, to the last bit.

The footpoint's doubles stand for exactly the numbers they are; scaled to length (and centred, for shapes) in ball
arithmetic they are an exact point. It is looked at only once a radius has been accepted: how many proposals that took
is a function of public numbers and of random bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy
from flint import acb, arb, ctx

from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import KendallShapes, Manifold, Sphere
from dpmanifold.manifolds.vectors import log_sinc
from dpmanifold.noise.areas import checked_scale
from dpmanifold.noise.exact import checked_grid, checked_law
from dpmanifold.noise.lazy import (
    Uniforms,
    as_doubles,
    checked_source,
    chi_square,
    chi_square_needs,
    first_bits,
    normals,
    precision_kept,
    rounded,
    settled,
)
from dpmanifold.noise.source import RandomSource

# Below this share of accepted proposals a law counts as too slow to draw.
_LEAST_ACCEPTED = 1e-3
# Angles (in radians) below which curvature is not worth a better proposal: sin(u)/u is 1 to 1e-12.
_FLAT = 1e-6
# Precision for the numbers that a quadrature in doubles starts from: nothing of their cancellation is left.
_QUADRATURE_BITS = 192
# Gauss-Legendre: the law is a few tens of its standard deviations wide, and smooth.
_PANELS, _NODES = 20, 20


def riemannian_point(
    space: Manifold, footpoint: npt.ArrayLike, law: str, scale: float, grid: int, source: RandomSource
) -> FloatArray:
    """Draw a point about a footpoint and return its ambient coordinates, rounded to a public grid.

    Parameters
    ----------
    space : Sphere or KendallShapes
    footpoint : a point of the space, shape (d+1,) or complex (k,)
    law : "laplace", density exp(-rho/scale); or "gaussian", density exp(-rho^2/(2 scale^2))
    scale : above 0
    grid : exponent of the grid, such as `grid_of(scale, R)`, R the length of the space's points (1 for shapes)
    source : where the random bits come from; only `source.bits` is used

    Returns
    -------
    array of float64, multiples of 2^grid: shape (d+1,) on a sphere, (2k,) for shapes (x and y of each landmark in
    turn). :func:`place_point` makes a point of them.

    Notes
    -----
    On a sphere points are vectors as long as the space's origin, R, and rho is R times the angle. A shape is drawn as
    a shape: of its representatives the one whose inner product with `space.origin` is real and above 0 is rounded.
    The numbers are thus a function of the drawn shape and not of how the footpoint was turned, which no promise covers.

    *Radius.* With u the angle the density is u^(d-1) exp(h(u)) times the law's, where h = (d-1) log(sin u/u) on
    the sphere and (d-2) log(sin u/u) + log(sin 2u/2u) on shapes. As log(sin u/u) is the sum over n of
    log(1 - u^2/(pi n)^2), h is concave in u and in u^2. A tangent to it in u (Laplace) or u^2 (Gaussian) therefore
    lies above it, and together with the law's own term makes the radius of a flat law of smaller scale: a Gamma or chi
    number, proposed and accepted with probability exp(h - tangent), decided by a uniform. The point of contact only
    matters for speed; it is chosen where the proposal's own mean (mean square) lies, which is best.

    *Work.* The radius depends on random bits alone, so the number of proposals is the same whatever the footpoint:
    it needs no cap. Each is accepted with probability :func:`acceptance`.

    Examples
    --------
    >>> from dpmanifold.noise import as_source
    >>> sphere = Sphere(2)
    >>> numbers = riemannian_point(sphere, [0.0, 0.6, 0.8], "laplace", 0.01, -40, as_source(7))
    >>> bool((numbers % 2.0**-40 == 0).all()), bool(sphere.dist([0.0, 0.6, 0.8], place_point(sphere, numbers)) < 0.2)
    (True, True)
    """
    radial = _radial_of(space, law, scale)
    grid = checked_grid(grid)
    point = _checked_footpoint(space, footpoint)
    source = checked_source(source)
    bits = first_bits(float(np.abs(space.origin).max()), grid)
    draw = _NUMBERS[type(space)]
    with precision_kept():
        uniforms = Uniforms(radial.needs, bits, source)
        while not settled(uniforms, partial(radial.accepted, uniforms)):
            uniforms = Uniforms(radial.needs, bits, source)
        # As many normal numbers as the point has real coordinates; they come in pairs.
        ambient = point.view(np.float64).size
        uniforms.add(ambient + ambient % 2)

        def attempt() -> list[int] | None:
            step = arb((1, -grid))
            numbers = draw(space, point, radial.angle(uniforms), normals(uniforms.balls(radial.needs)))
            return rounded([number * step for number in numbers])

        multiples = settled(uniforms, attempt)
    return as_doubles(multiples, grid)


def place_point(space: Manifold, numbers: npt.ArrayLike) -> Array:
    """Turn drawn numbers into a point of the space: scaled to length (and centred, for shapes).

    Numbers without a direction (all 0, a shape whose landmarks coincide, not finite) give the origin.

    Parameters
    ----------
    space : Sphere or KendallShapes
    numbers : shape (d+1,), or (2k,) for shapes

    Returns
    -------
    array, shape `space.shape`

    Examples
    --------
    >>> place_point(Sphere(2), [0.0, 3.0, 0.0]), place_point(Sphere(2), [0.0, 0.0, 0.0])
    (array([0., 1., 0.]), array([1., 0., 0.]))
    >>> triangles = KendallShapes(3)
    >>> bool((place_point(triangles, np.zeros(6)) == triangles.origin).all())
    True
    """
    _refuse_other(space)
    array = numeric_array(numbers, "numbers")
    flat = size(space)
    if array.shape != (flat,) or array.dtype.kind != "f":
        raise InvalidArgumentError(f"numbers must be real and of shape ({flat},) on {space!r}, got {shown(array)}.")
    most = np.abs(array).max()
    if not 0 < most < math.inf:
        return space.origin.copy()
    # By a power of two, exactly: the squares of huge or tiny numbers leave the doubles.
    array = np.ldexp(array.astype(np.float64, copy=False), -int(np.frexp(most)[1]))
    array = array.view(space.dtype)
    if space.degenerate(array):
        return space.origin.copy()
    return space.project(array)


def size(space: Manifold) -> int:
    """Return how many numbers are drawn: the coordinates of the surrounding space.

    Examples
    --------
    >>> size(Sphere(2)), size(KendallShapes(5))
    (3, 10)
    """
    return int(space.origin.view(np.float64).size)


def largest(space: Manifold, radius: float) -> float:
    """Return a bound on the coordinates of a point within `radius` of the origin, for the choice of a grid.

    Examples
    --------
    >>> largest(Sphere(2), 0.5)
    1.0
    """
    return float(np.abs(space.origin).max())


def acceptance(space: Manifold, law: str, scale: float) -> float:
    """Return the probability that a proposed radius is accepted, by quadrature: public, and alike for all footpoints.

    Parameters
    ----------
    space : Sphere or KendallShapes
    law : "laplace" or "gaussian"
    scale : above 0

    Examples
    --------
    >>> round(acceptance(Sphere(2), "laplace", 0.1), 2), round(acceptance(Sphere(45), "gaussian", 0.2), 2)
    (1.0, 0.98)
    """
    return _radial_of(space, law, scale).acceptance


def usable(space: Manifold, law: str, scale: float) -> bool:
    """Return whether the law can be drawn here: on spheres and shapes, at every scale.

    The draw is exact wherever it ends; this is about time. At least two proposals in five are accepted.

    Examples
    --------
    >>> from dpmanifold.manifolds import Hyperbolic
    >>> usable(Sphere(45), "laplace", 1.0), usable(Sphere(1), "laplace", 1e5), usable(Hyperbolic(2), "laplace", 0.1)
    (True, True, False)
    """
    return type(space) in _NUMBERS and acceptance(space, law, scale) >= _LEAST_ACCEPTED


@dataclass(frozen=True)
class _Radial:
    """The law of the angle u = rho/R, and the proposal that its tangent at `contact` makes.

    h(u) = single log(sin u/u) + double log(sin 2u/2u); angles end at pi or, with `double`, at pi/2.
    """

    law: str
    dim: int
    single: int
    double: int
    radius: float
    scale: float
    contact: float

    @property
    def _chi_degrees(self) -> tuple[int, ...]:
        """Degrees whose chi numbers multiply to the proposal: chi_d, and chi_d chi_(d+1) for a Gamma(d) number."""
        return (self.dim,) if self.law == "gaussian" else (self.dim, self.dim + 1)

    @property
    def needs(self) -> int:
        """How many uniforms a proposal takes; the first decides on its acceptance."""
        return 1 + sum(chi_square_needs(degrees) for degrees in self._chi_degrees)

    def angle(self, uniforms: Uniforms) -> arb:
        """Return the proposed angle."""
        balls = uniforms.balls(1, self.needs)
        product, start = arb(1), 0
        for degrees in self._chi_degrees:
            stop = start + chi_square_needs(degrees)
            product *= chi_square(balls[start:stop], degrees)
            start = stop
        inverse = arb(self.radius) / arb(self.scale)
        if self.law == "gaussian":
            return (product / (inverse * inverse + 2 * self._descent())).sqrt()
        return product.sqrt() / (inverse + self._descent())

    def accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the proposal is accepted, or None while that is open. NaN compares as open."""
        angle = self.angle(uniforms)
        end = arb.pi() / (2 if self.double else 1)
        if angle > end:
            return False
        if not angle < end:
            return None
        log_ratio = self._height(angle)
        if self.contact > 0:
            contact = arb(self.contact)
            run = angle * angle - contact * contact if self.law == "gaussian" else angle - contact
            log_ratio += self._descent() * run - self._height(contact)
        log_uniform = uniforms.balls(0, 1)[0].log()
        if log_uniform < log_ratio:
            return True
        return False if log_uniform > log_ratio else None

    def _height(self, u: arb) -> arb:
        total = arb(0)
        if self.single:
            total += self.single * u.sinc().log()
        if self.double:
            total += self.double * (2 * u).sinc().log()
        return total

    def _descent(self) -> arb:
        """Return minus the slope of h at the contact, with respect to u (Laplace) or u^2 (Gaussian)."""
        if self.contact == 0:
            return arb(0)
        u = arb(self.contact)
        slope = self.single * (u.cot() - 1 / u) + self.double * (2 * (2 * u).cot() - 1 / u)
        return -slope / (2 * u) if self.law == "gaussian" else -slope

    @cached_property
    def acceptance(self) -> float:
        """The expectation of the acceptance probability under the proposal."""
        d, end = self.dim, math.pi / (2 if self.double else 1)
        with precision_kept():
            ctx.prec = _QUADRATURE_BITS
            descent = float(self._descent())
            height = float(self._height(arb(self.contact))) if self.contact > 0 else 0.0
        inverse = self.radius / self.scale
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
            lift = sum(weight * log_sinc(times * u) for weight, times in ((self.single, 1), (self.double, 2)) if weight)
            run = u * u - self.contact**2 if self.law == "gaussian" else u - self.contact
            return np.asarray(np.exp(flat + lift + descent * run - height))

        # The tails beyond are below 1e-20 of either law.
        low, high = max(0.0, center - 12 * spread), min(rate * end, center + 12 * spread + 50)
        if not low < high:
            return 0.0
        knots = np.linspace(low, high, _PANELS + 1)
        return float(sum(scipy.integrate.fixed_quad(density, a, b, n=_NODES)[0] for a, b in pairwise(knots)))


class _WideCircle(_Radial):
    """On a circle, noise as wide as a turn: angles are proposed uniformly, for the flat law would mostly miss."""

    @property
    def needs(self) -> int:
        """How many uniforms a proposal takes: one decides on its acceptance, one is the angle."""
        return 2

    def angle(self, uniforms: Uniforms) -> arb:
        """Return the proposed angle, in (0, pi)."""
        return arb.pi() * uniforms.balls(1, 2)[0]

    def accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the proposal is accepted, with the probability that the density has against its largest."""
        apart = self.angle(uniforms) * arb(self.radius) / arb(self.scale)
        log_ratio = -apart * apart / 2 if self.law == "gaussian" else -apart
        log_uniform = uniforms.balls(0, 1)[0].log()
        if log_uniform < log_ratio:
            return True
        return False if log_uniform > log_ratio else None

    @cached_property
    def acceptance(self) -> float:
        """The expectation of the acceptance probability under the proposal."""
        end = math.pi * self.radius / self.scale
        if end < _FLAT:  # uniform, to all digits
            return 1.0
        if self.law == "gaussian":
            return math.sqrt(math.pi / 2) * math.erf(end / math.sqrt(2)) / end
        return -math.expm1(-end) / end


def _radial_of(space: Manifold, law: str, scale: float) -> _Radial:
    _refuse_other(space)
    law, scale, facts = checked_law(law), checked_scale(scale), space.rank_one
    assert facts is not None  # as every space has that is registered below
    return _radial(law, space.dim, facts.single, facts.double, facts.radius, scale)


@lru_cache(maxsize=256)
def _radial(law: str, dim: int, single: int, double: int, radius: float, scale: float) -> _Radial:
    """Choose the contact where the proposal's mean (of u, or of u^2) lies: there the acceptance is largest."""
    if single + double == 0 and scale > radius:
        return _WideCircle(law, dim, single, double, radius, scale, 0.0)
    flat_size = scale / radius * (dim if law == "laplace" else math.sqrt(dim))
    if flat_size < _FLAT or single + double == 0:
        return _Radial(law, dim, single, double, radius, scale, 0.0)

    def excess(u: float) -> float:
        slope = single * (1 / math.tan(u) - 1 / u) + double * (2 / math.tan(2 * u) - 1 / u)
        if law == "laplace":
            return u * (radius / scale - slope) - dim
        return u * u * (radius / scale) ** 2 - u * slope - dim

    # Increasing in u, negative at 0, infinite at the end. Forty halvings are far more than speed can tell.
    low, high = 0.0, math.pi / (2 if double else 1)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return _Radial(law, dim, single, double, radius, scale, high)


def _sphere_numbers(space: Manifold, footpoint: Array, angle: arb, gaussian: list[arb]) -> list[arb]:
    """Return R (cos(angle) p + sin(angle) w), p the footpoint scaled to length 1 and w a uniform unit tangent."""
    p = [arb(x) for x in footpoint.tolist()]
    length = _total([x * x for x in p]).sqrt()
    p = [x / length for x in p]
    along = _total([x * z for x, z in zip(p, gaussian, strict=False)])
    tangent = [z - along * x for x, z in zip(p, gaussian, strict=False)]
    sine, cosine = angle.sin_cos()
    radius = arb(float(space.origin[0]))
    ahead = radius * sine / _total([z * z for z in tangent]).sqrt()
    return [radius * cosine * x + ahead * z for x, z in zip(p, tangent, strict=True)]


def _shape_numbers(space: Manifold, footpoint: Array, angle: arb, gaussian: list[arb]) -> list[arb]:
    """Return the same for pre-shapes: x and y of each landmark of the representative aligned with the origin."""
    p = _centred([acb(z.real, z.imag) for z in footpoint.tolist()])
    size = _size(p)
    p = [z / size for z in p]
    g = _centred([acb(x, y) for x, y in zip(gaussian[::2], gaussian[1::2], strict=True)])
    along = _inner(p, g)
    tangent = [w - along * z for z, w in zip(p, g, strict=True)]
    sine, cosine = angle.sin_cos()
    ahead = sine / _size(tangent)
    drawn = _aligned([cosine * z + ahead * w for z, w in zip(p, tangent, strict=True)], space.origin)
    return [part for z in drawn for part in (z.real, z.imag)]


_Numbers = Callable[[Manifold, Array, arb, list[arb]], list[arb]]
_NUMBERS: dict[type[Manifold], _Numbers] = {Sphere: _sphere_numbers, KendallShapes: _shape_numbers}
"""How a point is moved by an angle in a random direction, on each class of spaces that is drawn on here."""


def _aligned(z: list[acb], origin: Array) -> list[acb]:
    """Turn a pre-shape so that its inner product with the origin is real and above 0 (it is 0 with probability 0)."""
    overlap = _inner([acb(entry.real, entry.imag) for entry in origin.tolist()], z)
    turn = overlap.conjugate() / abs(overlap)
    return [turn * entry for entry in z]


def _total(terms: list[arb]) -> arb:
    return sum(terms, start=arb(0))


def _centred(z: list[acb]) -> list[acb]:
    mean = sum(z, start=acb(0)) / len(z)
    return [entry - mean for entry in z]


def _inner(z: list[acb], w: list[acb]) -> acb:
    return sum((a.conjugate() * b for a, b in zip(z, w, strict=True)), start=acb(0))


def _size(z: list[acb]) -> arb:
    return _total([a.real * a.real + a.imag * a.imag for a in z]).sqrt()


def _refuse_other(space: object) -> None:
    if type(space) not in _NUMBERS:
        raise InvalidArgumentError(
            f"exact draws about a point are known on Sphere and KendallShapes, got {type(space).__name__}. "
            "Add noise in the tangent space of a public centre instead (dpmanifold.noise.noisy_vector)."
        )


def _checked_footpoint(space: Manifold, footpoint: object) -> Array:
    """Return the footpoint's entries. The messages say nothing of them."""
    array = numeric_array(footpoint, "footpoint")
    kind = space.dtype.kind
    usable_entries = array.shape == space.shape and array.dtype.kind == kind and bool(np.isfinite(array).all())
    if not usable_entries or not (np.abs(array) > 0).any() or (kind == "c" and bool(space.degenerate(array))):
        raise InvalidArgumentError(f"footpoint must be a point of {space!r}: finite numbers of shape {space.shape}.")
    return np.ascontiguousarray(array)
