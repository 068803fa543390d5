"""A private mean with a confidence region for the population's (theory section 7)."""

from __future__ import annotations

from dpmanifold._check import open_fraction
from dpmanifold.ball import Ball
from dpmanifold.inference import Region
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.second_moment import SECOND_MOMENT


def private_region(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Region:
    """Release the mean with a confidence region for the population's Fréchet mean (theory section 7).

    Four fifths of the promise pay for the mean and one fifth for a second moment about it. The mean Hessian costs
    nothing: its bound follows from the second moment.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`; ApproxDP,
        ZCDP or GDP
    level : the confidence, in (0, 1)
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`; the region is then about
        the mean of the population clipped to that ball

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> X = Sphere(2).exp_coords(ball.center, 0.1 * np.random.default_rng(0).standard_normal((500, 2)))
    >>> region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> bool(region.contains(region.center)), region.effective_radius < 0.05
    (True, True)
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, rng)
    return Region(ask(lambda header: SECOND_MOMENT.prepared(header, refine=refine), X, ball, privacy, terms), level)
