"""For those who write a space of their own: what it states, compared with what it computes.

The laws of :mod:`dpmanifold.manifolds.laws`, by name; and the guarantee of Gaussian noise, measured. Not for private
data, and no proof: samples of a space can show that a fact is wrong, never that a bound holds everywhere.
"""

from __future__ import annotations

import math
from functools import partial, update_wrapper

import numpy as np
from scipy import special, stats

from dpmanifold._check import FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.laws import LAWS, Law, Reference, rounding_bounds_hold, what_is_wrong, words_of
from dpmanifold.manifolds.laws.geometry import directions, points, reach, require
from dpmanifold.noise import RiemannianLaplace, SimulationSource, exact_sampler, grid_of
from dpmanifold.noise.products import gaussian_law, has_gaussian_law
from dpmanifold.privacy import GDP, calibrate_gaussian
from dpmanifold.privacy.profile import has_exact_profile

# Points that stand for a space, the most dimensions in which they are enough, and the standard errors that are allowed.
_POINTS, _MOST_DIMENSIONS, _ERRORS = 200_000, 6, 4.0
# Exact draws that are looked at, the most dimensions in which they are, and how seldom a right sampler is refused.
_DRAWS, _MOST_DRAWN, _FALSE_ALARMS = 150, 30, 1e-6


def check_space(space: Manifold, reference: Reference | None = None) -> dict[str, str | None]:
    """Return what is wrong with a space, law by law, or None where nothing was found.

    Every ball on a space of another distribution is refused where one of these laws is broken, the last two aside,
    which take longer. Points, directions and batches are samples, the same each time: a fact that is wrong somewhere
    else, or a bound on rounding that is too small by a little, may pass. Prove bounds, and give a reference.

    Parameters
    ----------
    space : the space
    reference : a function of two points as they are stored, which returns their distance and the normal coordinates of
        the second at the first in numbers of many digits (mpmath). With it, `dist_error` and `log_error` are compared
        with the errors of 25 pairs; without it, with what relations between computed numbers show

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> found = check_space(Sphere(2))
    >>> found["curvature is one story"], any(found.values())
    (None, False)

    >>> class Wrong(Sphere):
    ...     def curvature_operator(self, second_moment):
    ...         return np.zeros((self.dim, self.dim))
    >>> check_space(Wrong(2))["curvature is one story"]
    'curvature_operator has curvatures from 0 to 0, outside (1.0, 1.0)'
    """
    if not isinstance(space, Manifold):
        raise InvalidArgumentError(f"`space` must be a space such as Sphere(2), got {shown(space)}.")
    laws: list[Law] = [*LAWS, exact_draws_have_the_law, the_gaussian_guarantee_is_kept]
    if reference is not None:
        held = update_wrapper(partial(rounding_bounds_hold, reference=reference), rounding_bounds_hold)
        laws[laws.index(rounding_bounds_hold)] = held
    return {words_of(law): what_is_wrong(law, space) for law in laws}


def exact_draws_have_the_law(space: Manifold, rng: np.random.Generator) -> None:
    """Compare distances of exact draws from their footpoint with draws in doubles; bits must not know the footpoint.

    Kolmogorov and Smirnov's test of two samples: a right sampler is refused about once in a million times.
    """
    p, q = points(space, rng, 2, 0.5 * reach(space))
    for law, kind in (("laplace", RiemannianLaplace), ("gaussian", gaussian_law)):
        sampler = exact_sampler(space, law)
        if sampler is None or (law == "gaussian" and not has_gaussian_law(space)) or space.dim > _MOST_DRAWN:
            continue
        scale = 0.5 * reach(space) / (space.dim if law == "laplace" else math.sqrt(space.dim))
        while not sampler.usable(scale):
            scale /= 2
        grid = grid_of(scale, sampler.largest(reach(space)))
        sources = SimulationSource(0), SimulationSource(0)
        for _ in range(5):
            require(len(sampler.draw(p, scale, grid, sources[0])) == sampler.size, "size is not how many are drawn")
            sampler.draw(q, scale, grid, sources[1])
        after = {int(source.bits(1)[0]) for source in sources}
        require(len(after) == 1, f"{law}: how many bits a draw takes depends on the footpoint")
        drawn = [space.dist(p, sampler.place(sampler.draw(p, scale, grid, sources[0]))) for _ in range(_DRAWS)]
        true = space.dist(p, kind(space, p, scale).sample(20 * _DRAWS, rng=1))
        chance = stats.ks_2samp(np.array(drawn), true).pvalue
        require(chance > _FALSE_ALARMS, f"{law}: distances of exact draws from their footpoint have another law")


def the_gaussian_guarantee_is_kept(space: Manifold, rng: np.random.Generator) -> None:
    """Measure how well the best test tells two Gaussian laws apart, by distances from uniform points alone.

    Total variation, less four standard errors: a right space is refused less than once in 30,000 times.
    """
    if not space.has_gaussian or math.isinf(space.diameter) or space.dim > _MOST_DIMENSIONS:
        return
    everywhere, e = space.random_point(_POINTS, rng=rng), directions(space, rng, 1)[0]
    near = np.asarray(space.dist(space.origin, everywhere))
    for share, mu in ((0.6, 0.5), (0.3, 0.2)):
        distance = share * space.injectivity_radius
        far = np.asarray(space.dist(space.exp_coords(space.origin, e * distance), everywhere))
        scales = {"distance/mu": distance / mu}
        if has_exact_profile(space):
            scales["the exact profile"] = calibrate_gaussian(space, distance, GDP(mu))
        for name, scale in scales.items():
            reached = _reached(near, far, scale)
            require(reached <= mu, f"with the scale of {name}, mu = {mu} is promised and a test reaches {reached:.3f}")


def _reached(near: FloatArray, far: FloatArray, scale: float) -> float:
    """Return the mu that a test surely reaches, from distances of uniform points from both footpoints."""
    p, q = (np.exp(-((distance / scale) ** 2) / 2) for distance in (near, far))
    gained, mass = np.maximum(p - q, 0.0), (p + q) / 2
    variation = gained.mean() / mass.mean()
    error = (gained - variation * mass).std() / mass.mean() / math.sqrt(len(near))
    return float(2 * special.ndtri((1 + variation - _ERRORS * error) / 2))
