"""What laws of distance ask of a space, the area of its geodesic spheres, and what makes sense as a scale."""

from __future__ import annotations

from dpmanifold._check import positive_float
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.areas import Area

# Scales outside this range make no sense, and their squares or reciprocals leave the doubles.
_SCALES = (1e-300, 1e300)


def checked_scale(scale: object) -> float:
    """Return a scale as a float in the range that makes sense, or say what is wrong with it.

    Examples
    --------
    >>> checked_scale(0.5)
    0.5
    """
    number = positive_float(scale, "scale")
    if not _SCALES[0] <= number <= _SCALES[1]:
        raise InvalidArgumentError(f"scale must be between {_SCALES[0]:g} and {_SCALES[1]:g}, got {number:g}.")
    return number


def area_of(space: Manifold) -> Area:
    """Return the area function of a space, or say that it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Sphere
    >>> area = area_of(Sphere(2))
    >>> t = np.array([np.pi / 2])
    >>> bool(np.isclose(np.exp(area.log_shape(t) + area.log_factor), 2 * np.pi)[0])    # the equator's length
    True
    """
    area = space.sphere_area()
    if area is None:
        raise InvalidArgumentError(
            f"no noise law about a point is known on {space!r}: the area of its geodesic spheres is not. Use noise on "
            "tangent means, which every space has."
        )
    return area


__all__ = ["Area", "area_of", "checked_scale"]
