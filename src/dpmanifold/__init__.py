"""Differentially private statistics for data on curved spaces.

>>> import numpy as np
>>> import dpmanifold as dpm
>>> space = dpm.SPD(3)
>>> ball = dpm.Ball(space, center=np.eye(3), radius=2.0, origin="tissue atlas")
>>> dpm.sensitivity.of_mean(ball, n=1000).value < 0.00401
True
"""

from dpmanifold import frechet, noise, sensitivity
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.errors import ConvergenceError, DPManifoldError, InvalidArgumentError, InvalidDataError, SamplerError
from dpmanifold.manifolds import SPD, Euclidean, Hyperbolic, KendallShapes, Manifold, Sphere

__all__ = [
    "SPD",
    "Ball",
    "ConvergenceError",
    "DPManifoldError",
    "Euclidean",
    "Hyperbolic",
    "InvalidArgumentError",
    "InvalidDataError",
    "KendallShapes",
    "Manifold",
    "SamplerError",
    "Sphere",
    "__version__",
    "frechet",
    "noise",
    "sensitivity",
]
