"""How much too sure a discriminant is that was chosen with noise, by a simulation that is always the same."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.inference.denoised import denoised
from dpmanifold.inference.shrunken_means import shrunken_means
from dpmanifold.linalg import from_vecd

# How often noise is added once more, up to which dimension; and in how many it is beyond.
_TIMES, _LARGE, _FEW = 20, 100, 4
# Scores are never multiplied with less: with it they say nothing.
_LEAST = 1e-3


def slope(
    means: FloatArray, covariance: FloatArray, priors: FloatArray, mean_noise: FloatArray, spread_noise: float
) -> float:
    """Return with what scores of a noisy discriminant are to be multiplied so that they say what they are worth.

    Noise makes some directions look narrower than they are, and a discriminant looks where classes look far apart. As
    if what was released were the truth, noise of the same size is added once more, a discriminant is made of that, and
    it is seen how far it tells the true classes apart and how much it spreads within them. The ratio is 1 without
    noise.

    Parameters
    ----------
    means : of the classes, (classes, dim)
    covariance : within classes, (dim, dim), positive definite
    priors : shares of the classes, (classes,)
    mean_noise : standard deviation of the noise on the means, (classes,)
    spread_noise : the same of vecd of the covariance, above 0

    Examples
    --------
    >>> means, priors = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0.5, 0.5])
    >>> quiet, loud = (slope(means, np.eye(2), priors, np.full(2, noise), noise) for noise in (1e-6, 0.5))
    >>> round(quiet, 4), loud < 0.9
    (1.0, True)
    """
    d = len(covariance)
    # Of all generators of numpy this one gives the same numbers in all versions: files hold what is computed with it.
    rng = np.random.RandomState(0)
    away = means - priors @ means
    apart = spread = 0.0
    for _ in range(_TIMES if d <= _LARGE else _FEW):
        noisy = means + mean_noise[:, None] * rng.standard_normal(means.shape)
        matrix = covariance + from_vecd(spread_noise * rng.standard_normal(d * (d + 1) // 2))
        found = denoised(matrix, spread_noise)
        chosen = shrunken_means(noisy, found, priors, mean_noise)
        weights = np.linalg.solve(found, (chosen - priors @ chosen).T).T
        apart += float(priors @ (weights * away).sum(axis=1))
        spread += float(priors @ ((weights @ covariance) * weights).sum(axis=1))
    return min(1.0, max(_LEAST, apart / spread)) if spread > 0 else _LEAST
