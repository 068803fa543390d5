"""Points as numbers that are refined until they are certain: what exact draws about a point are made of.

Noise draws a distance and normal numbers, as balls of real numbers (python-flint); a space moves a footpoint by them,
and the numbers of the point that is reached are rounded to a public grid. What a footpoint's doubles stand for is
exactly the numbers that they are.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, ctx

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError, Public

if TYPE_CHECKING:
    from dpmanifold.manifolds.base import Manifold


# flint.ctx.prec belongs to the process. Whoever changes it holds this lock; reentrant, as a source may draw itself.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits for the draw of another thread: the child finds the lock free and the precision as it was.
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


@contextmanager
def precision_kept() -> Iterator[None]:
    """Hold the lock on flint's precision, and leave the precision as it was on every way out.

    Examples
    --------
    >>> before = ctx.prec
    >>> with precision_kept():
    ...     ctx.prec = 1000
    >>> ctx.prec == before
    True
    """
    with _LOCK:
        before = ctx.prec
        try:
            yield
        finally:
            ctx.prec = before


class ExactVolume(ABC):
    """A volume density J that depends on the direction, below (sinh(a t)/(a t))^pairs at every distance t.

    Attributes
    ----------
    pairs : the exponent, as in :meth:`Manifold.volume_ceiling`
    """

    pairs: int

    @abstractmethod
    def stretch(self) -> arb:
        """Return a, to working precision."""

    @abstractmethod
    def at(self, distance: arb, gaussian: list[arb], *, quick: bool) -> arb | None:
        """Return J in the direction of normal numbers; None where it is open. `quick` asks for few digits."""


class ExactPoints(ABC):
    """How a space's points are moved and written down exactly; by default in the numbers that they are stored as.

    The numbers of a drawn point must be a function of that point alone: which of several arrays stood for the footpoint
    is private.

    Parameters
    ----------
    space : whose `origin` is complete

    Attributes
    ----------
    size : how many numbers leave
    normals : how many normal numbers make a direction: they are the same law after every rotation
    volume : where J depends on the direction
    """

    volume: ExactVolume | None = None

    def __init__(self, space: Manifold) -> None:
        self.space = space
        self.size = self.normals = int(space.origin.view(np.float64).size)

    @abstractmethod
    def moved(self, footpoint: Array, distance: arb, gaussian: list[arb]) -> list[arb] | None:
        """Return the numbers of the point at a distance from a footpoint, the direction that of normal numbers.

        Once the footpoint's frame is applied the direction must be uniform. None, or balls that are not finite, where
        more digits are needed.
        """

    def largest(self, radius: float) -> float:
        """Return a bound on the numbers of a point within `radius` of the origin: the grid is chosen for it."""
        return float(np.abs(self.space.origin).max())

    def require_footpoint(self, footpoint: Array) -> None:
        """Refuse finite numbers, of the space's shape and type, that stand for no point. Says nothing of them."""
        if not footpoint.any() or bool(self.space.degenerate(footpoint)):
            raise InvalidArgumentError("footpoint must be a point of {space!r}.", space=Public(self.space))

    def place(self, numbers: FloatArray) -> Array:
        """Return the point that finite numbers stand for, whatever they are; those without a direction, the origin."""
        most = np.abs(numbers).max()
        # By a power of two, exactly: the squares of huge or tiny numbers leave the doubles.
        array = np.ldexp(numbers, -int(np.frexp(most)[1])).view(self.space.dtype)
        if most == 0 or self.space.degenerate(array):
            return self.space.origin.copy()
        return self.space.canonical(self.space.project(array))


def total(terms: list[arb]) -> arb:
    """Return the sum of balls.

    Examples
    --------
    >>> float(total([arb(1), arb(2)]))
    3.0
    """
    return sum(terms, start=arb(0))


def norm(terms: list[arb]) -> arb:
    """Return the root of the sum of squares.

    Examples
    --------
    >>> float(norm([arb(3), arb(4)]))
    5.0
    """
    return total([x * x for x in terms]).sqrt()
