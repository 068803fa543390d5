"""The Metropolis chains the papers draw their noise with: a baseline, never used for a release.

A chain that has not mixed does not have the law its promise is about, and nothing tells when it has. The
acceptance rule is the corrected one: min(1, exp(-(phi(new) - phi(old)))), phi(t) = t/sigma or t^2/(2 sigma^2).
"""

from __future__ import annotations

import numpy as np

from dpmanifold._check import Array, positive_float, positive_int
from dpmanifold.noise.distance import DistanceLaw


def metropolis(law: DistanceLaw, steps: int, step: float, rng: int, chains: int = 1) -> tuple[Array, float]:
    """Run random-walk chains for a law of distance; returns their last points and the share of accepted steps.

    A step goes from x to exp_x(v) with v normal of standard deviation `step` in every direction: symmetric, because
    the space is homogeneous. Chains start at the footpoint and do not see one another.

    Parameters
    ----------
    law : a RiemannianLaplace or RiemannianGaussian on the whole space
    steps : length of each chain
    step : standard deviation of the proposals, per coordinate
    rng : seed
    chains : how many chains to run side by side

    Returns
    -------
    points : last states, shape (chains, *space.shape)
    accepted : share of proposals that were accepted

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.noise import RiemannianLaplace
    >>> law = RiemannianLaplace(Sphere(2), [1.0, 0.0, 0.0], scale=0.2)
    >>> points, accepted = metropolis(law, steps=50, step=0.2, rng=0, chains=10)
    >>> points.shape
    (10, 3)
    """
    steps, chains = positive_int(steps, "steps"), positive_int(chains, "chains")
    step = positive_float(step, "step")
    generator = np.random.default_rng(rng)
    space = law.space
    x = np.broadcast_to(law.footpoint, (chains, *space.shape)).copy()
    height = -np.asarray(law.logpdf(x))
    accepted = 0
    for _ in range(steps):
        new = space.exp_coords(x, step * generator.standard_normal((chains, space.dim)))
        new_height = -np.asarray(law.logpdf(new))
        taken = generator.random(chains) < np.exp(np.minimum(0.0, height - new_height))
        x[taken], height[taken] = new[taken], new_height[taken]
        accepted += int(taken.sum())
    return x, accepted / (steps * chains)


def flat_laplace_chain(dim: int, scale: float, steps: int, step: float, rng: int) -> tuple[Array, float]:
    """Run one chain for the Laplace law on R^dim, written as well as one can: the log-domain chain of a flat space.

    Random numbers are drawn in blocks, and a step costs one addition and one norm.

    Parameters
    ----------
    dim : dimension
    scale : of the Laplace law
    steps : length of the chain
    step : standard deviation of the proposals, per coordinate
    rng : seed

    Returns
    -------
    point : last state, shape (dim,)
    accepted : share of proposals that were accepted

    Examples
    --------
    >>> flat_laplace_chain(3, 0.1, steps=100, step=0.1, rng=0)[0].shape
    (3,)
    """
    generator = np.random.default_rng(rng)
    x = np.zeros(positive_int(dim, "dim"))
    length = 0.0
    accepted = 0
    block = 1000
    for start in range(0, steps, block):
        count = min(block, steps - start)
        moves = step * generator.standard_normal((count, dim))
        thresholds = -scale * np.log(generator.random(count))
        for move, threshold in zip(moves, thresholds, strict=True):
            new = x + move
            new_length = float(np.sqrt(new @ new))
            if new_length - length <= threshold:
                x, length = new, new_length
                accepted += 1
    return x, accepted / steps
