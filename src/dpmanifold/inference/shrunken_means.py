"""Class means with known noise, moved towards the mean of all as far as noise hides them (theory: classes)."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray

# How far classes may be apart: the variance of their means in units of that within classes, all as likely beforehand.
_APART = np.geomspace(0.1, 100.0, 31)


def shrunken_means(means: FloatArray, covariance: FloatArray, priors: FloatArray, noise: FloatArray) -> FloatArray:
    """Return class means moved towards the mean of all: most where a class is narrow and noise is large.

    Where a class is narrow a little noise on its mean looks like a lot, and a discriminant looks there. Class means are
    taken to differ as units of a class do: normally, by c times the covariance within classes. What is returned is what
    to expect of them given those released, on average over c, each as likely as the released means say.

    Parameters
    ----------
    means : as released, (classes, dim)
    covariance : within classes, (dim, dim), positive definite
    priors : shares of the classes, (classes,)
    noise : standard deviation of the noise on each coordinate of the means, (classes,), above 0

    Examples
    --------
    >>> means, shares = np.array([[-1.0, 0.1], [1.0, -0.1]]), np.array([0.5, 0.5])
    >>> shrunken_means(means, np.diag([1.0, 0.01]), shares, np.array([0.1, 0.1])).round(1) + 0.0
    array([[-1. ,  0.1],
           [ 1. , -0.1]])
    >>> shrunken_means(means, np.diag([1.0, 0.01]), shares, np.array([0.3, 0.3])).round(1) + 0.0
    array([[-0.9,  0. ],
           [ 0.9,  0. ]])
    """
    values, vectors = np.linalg.eigh(covariance)
    middle = priors @ means
    away = (means - middle) @ vectors
    likelihood, kept = np.zeros(len(_APART)), []
    for offset, variance in zip(away, (noise**2).tolist(), strict=True):
        signal = _APART[:, None] * values
        total = signal + variance
        likelihood -= (np.log(total) + offset**2 / total).sum(axis=1) / 2
        kept.append(signal / total)
    weights = np.exp(likelihood - likelihood.max())
    shares = np.array([weights @ part for part in kept]) / weights.sum()
    return np.asarray(middle + (shares * away) @ vectors.T)
