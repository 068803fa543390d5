"""Wrapped laws: Euclidean noise in the tangent space of a public point, carried over by the exponential.

On flat and Hadamard spaces the logarithm at a public centre is defined everywhere and does not stretch distances,
so noise calibrated in the tangent space keeps its promise (theory section 4). The tangent Gaussian of Utpala and
others (2023) and the exponential-wrapped Gaussian of Jiang and others (2025) are this law.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.noise.distance import DistanceLaw, checked_scale, flat_law
from dpmanifold.noise.radial import RadialLaw
from dpmanifold.noise.source import Rng, Size, as_shape, as_source


class WrappedLaw:
    """The law of exp_center(log_center(value) + Z).

    Parameters
    ----------
    space : flat or Hadamard
    center : a public point (the ball's centre)
    value : the point to be hidden
    scale : of Z, above 0

    Attributes
    ----------
    radius_is_exact : whether `radius`, the law of |Z|, is also that of the distance from `value` (flat spaces only;
        on curved ones that distance is larger)
    """

    _law: str

    def __init__(self, space: Manifold, center: object, value: object, scale: float) -> None:
        if not isinstance(space, Manifold):
            raise InvalidArgumentError(f"`space` must be a space such as SPD(3), got {type(space).__name__}.")
        if not space.is_hadamard:
            raise InvalidArgumentError(
                f"wrapped laws need a flat or Hadamard space, got {space!r}: elsewhere the logarithm stretches "
                "distances. Use the Riemannian Laplace or Gaussian law."
            )
        self.space = space
        self.center = space.as_points(center, "center", batch=False)
        self.value = space.as_points(value, "value", batch=False)
        self.scale = checked_scale(scale)
        self.normalized = True
        self.radius_is_exact = space.is_flat
        self._shift = space.log_coords(self.center, self.value)
        self._longest = space.farthest - float(space.dist(space.origin, self.center))
        if not self._longest > 0:
            raise InvalidArgumentError("`center` is too far from the origin for double precision. Rescale the data.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space!r}, scale={self.scale:.6g})"

    @cached_property
    def _noise(self) -> DistanceLaw:
        """The law of Z."""
        return flat_law(self._law, self.space.dim, self.scale)

    @property
    def radius(self) -> RadialLaw:
        """The law of |Z|, the length of the noise in the tangent space."""
        return self._noise.radius

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw points, shape (*size, *space.shape); one point if size is None.

        Coordinates longer than double precision can carry over are shortened: post-processing, as they are taken at
        the public centre.

        Parameters
        ----------
        size : int, tuple of ints or None
        rng : None for bits of the operating system; a seed, numpy Generator or RandomSource for simulations
        """
        shape = () if size is None else as_shape(size)
        z, _ = self._noise.sample_coords(math.prod(shape), as_source(rng))
        c = shorten(self._shift + z, self._longest)
        return self.space.exp_coords(self.center, c).reshape(*shape, *self.space.shape)

    def logpdf(self, x: object) -> FloatArray:
        """Log density at points (..., *space.shape) with respect to the volume measure, normalised."""
        c = self.space.log_coords(self.center, self.space.as_points(x, "x"))
        return np.asarray(self._noise.logpdf(c - self._shift) - self.space.log_volume_density(c))


class WrappedGaussian(WrappedLaw):
    """exp_center(log_center(value) + Z) with Z normal, standard deviation `scale` in every direction.

    Parameters and attributes are those of :class:`WrappedLaw`.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> WrappedGaussian(SPD(2), np.eye(2), np.diag([1.0, 2.0]), scale=0.1).sample(rng=0).shape
    (2, 2)
    """

    _law = "gaussian"


class WrappedLaplace(WrappedLaw):
    """exp_center(log_center(value) + Z), Z with density exp(-|z|/scale): pure privacy on every Hadamard space.

    Parameters and attributes are those of :class:`WrappedLaw`.

    Examples
    --------
    >>> from dpmanifold.manifolds import Hyperbolic
    >>> h2 = Hyperbolic(2)
    >>> WrappedLaplace(h2, h2.origin, h2.origin, scale=3.0).sample(4, rng=0).shape
    (4, 3)
    """

    _law = "laplace"
