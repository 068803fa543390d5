"""Global sensitivity: how far replacing one unit can move a statistic of data in a ball, n units, n public.

Each function returns an upper bound that holds for the program as it runs: it uses the ball's effective
radius (rounding of distances included) and, where a solver is involved, its public tolerance. The proofs
are in the pages of docs named by `Sensitivity.proof`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmanifold import frechet
from dpmanifold._check import positive_int, shown
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.vectors import EPS

# More units than there are people, and still exact as a double.
_MOST_UNITS = 10**15
# Terms of a matrix product that would be added without care for rounding: `_blocked`.
_PRODUCT_BLOCK = 4096

# A few operations with a relative error of eps each: the returned bounds are rounded up by this factor.
_ROUND_UP = 1 + 64 * EPS

# Which bounds there are: of means and gradients, and of everything else.
_OF_MEANS = ("sharp", "tight", "published")
_OF_MOMENTS = ("tight", "published")


@dataclass(frozen=True)
class Sensitivity:
    """An upper bound on how far one unit moves a statistic.

    Attributes
    ----------
    value : the bound, in the statistic's own metric
    statistic : what it is a bound for
    bound : "sharp", "tight" or "published", from the smallest to the largest
    proof : the page of docs/theory that proves it, by name
    """

    value: float
    statistic: str
    bound: str
    proof: str

    def __float__(self) -> float:
        return self.value


def of_mean(ball: Ball, n: int, *, bound: str = "sharp", tol: float | None = None) -> Sensitivity:
    """Bound the distance between the computed Fréchet means, in the ball's frame, of neighbouring data (section 3).

    "published" is 2r(2 - h)/(n h) of Reimherr, Bharath and Soto (2021); "tight" is min(2r, 2rL/(n h*)); "sharp" is
    min(2r, 2 tan(r sqrt(kappa))/(sqrt(kappa) n)) with the space's largest curvature kappa, and no constant below it
    would do for all n. On Hadamard spaces all are 2r/n. Twice the solver's distance from the true mean is added. The
    bound is for means in which every unit has the same weight.

    Parameters
    ----------
    ball : the public ball
    n : number of units (people), not of records
    bound : "sharp" (default), "tight" or "published"
    tol : the public tolerance the mean was or will be solved to, if not the default `frechet.default_tol(ball, n)`

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), center=[0.0, 0.0, 1.0], radius=0.6)
    >>> sharp, published = of_mean(ball, 200), of_mean(ball, 200, bound="published")
    >>> round(sharp.value / published.value, 2)
    0.35
    """
    n = _checked(ball, n, bound, _OF_MEANS)
    r = ball.effective_radius
    low = _low(ball, 2 * r)
    slack = 2 * solver_distance(ball, n, tol=tol)
    if bound == "published":
        value = 2 * r * (2 - low) / (n * low)
    elif bound == "sharp":
        value = farthest_means(r, ball.space.curvature[1]) / n
    else:
        value = 2 * r * _stretch(ball) / (n * _mean_hessian(low, (1 + 2 / n) / 4))
    # Two points of the ball are never farther apart than its diameter, computed or not.
    return Sensitivity(min(2 * r, value + slack) * _ROUND_UP, "mean", bound, "mean")


def of_tangent_mean(ball: Ball, n: int) -> Sensitivity:
    """Bound the change of the average of the units' logarithms at the ball's centre (theory: estimands).

    2r/n on every space: each logarithm is a vector of length at most r, whatever the others are. No solver, no
    curvature.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), center=[0.0, 0.0, 1.0], radius=0.75)
    >>> round(of_tangent_mean(ball, 200).value, 6), round(of_mean(ball, 200).value, 6)
    (0.0075, 0.009316)
    """
    n = _checked(ball, n, "tight")
    # Logarithms are shortened to the radius, which their computed lengths may miss by this share.
    missed = ball.radius * (ball.space.dim + 8) * EPS
    one = ball.frame.log_error(ball.effective_radius) + missed
    return _of_average(2 * (ball.radius + missed), one, n, "tangent mean")


def of_extrinsic_mean(ball: Ball, n: int) -> Sensitivity:
    """Bound the change of the average of the units' points in the space around (theory: estimands).

    On the sphere of radius R: 2 R sin(r/R)/n, as a cap lies in a Euclidean ball of radius R sin(r/R). On planar shapes,
    z z* in the Frobenius norm: sqrt 2 sin(2r)/n. Without a ball (`Ball.whole`): 2R/n and sqrt 2/n.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), center=[0.0, 0.0, 1.0], radius=0.75)
    >>> round(of_extrinsic_mean(ball, 200).value, 6), round(of_extrinsic_mean(Ball.whole(Sphere(2)), 200).value, 6)
    (0.006816, 0.01)
    """
    n = _checked(ball, n, "tight", whole=True)
    embedding = ball.frame.embedding(ball.radius)
    if embedding is None:
        raise InvalidArgumentError(
            "`ball` must lie in a space with extrinsic means, as spheres and planar shapes have, got one in "
            f"{ball.space!r}. Ask for the tangent mean, which every space has."
        )
    return _of_average(embedding.diameter, embedding.rounding(_blocked(n)), n, "extrinsic mean")


def of_average(
    bound: float,
    n: int,
    statistic: str,
    proof: str,
    *,
    size: int = 1,
    offset: float = 0.0,
    diameter: float | None = None,
) -> Sensitivity:
    """Bound the change of an average of vectors that are cut to a length: twice the length over n (theory: averages).

    Parameters
    ----------
    bound : the length that vectors are cut to
    n : number of units
    statistic, proof : what it is a bound of, and the page that proves it
    size : how many numbers a vector has
    offset : length of a public vector that is added to the average afterwards
    diameter : how far apart two computed vectors can be, where that is proven; twice the bound if left out

    Examples
    --------
    >>> round(of_average(1.0, 100, "share", "averages").value, 6)
    0.02
    """
    n = positive_int(n, "n")
    # A computed length may miss the true one by this share.
    missed = (size + 8) * EPS
    apart = 2 * bound * (1 + missed) if diameter is None else diameter
    found = _of_average(apart, EPS * (bound + offset), n, statistic)
    return Sensitivity(found.value, statistic, "tight", proof)


def _of_average(diameter: float, rounding: float, n: int, statistic: str) -> Sensitivity:
    """Bound the change of an average of vectors no two of which are farther apart than `diameter`.

    The computed average is within `rounding`, and what `_summed` allows for the sum, of that of the stored points: both
    times.
    """
    value = diameter * _summed(n) + 2 * rounding
    if not math.isfinite(value):
        raise InvalidArgumentError("the ball is too large for double precision. Choose a smaller one.")
    return Sensitivity(value * _ROUND_UP, statistic, "tight", "estimands")


def solver_distance(ball: Ball, n: int, *, tol: float | None = None) -> float:
    """Bound the distance of the computed from the true Fréchet mean, given the tolerance (theory: solver).

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> solver_distance(Ball(Euclidean(1), [0.0], 1.0), 10, tol=1e-6)
    1e-06
    """
    tol = _tol(ball, _checked(ball, n, "tight"), tol)
    r = ball.effective_radius
    low = _low(ball, 2 * r)
    return tol / _mean_hessian(low, (1 + (tol / r) ** 2 / (2 * low)) / 4)


def of_gradient(ball: Ball, n: int, *, bound: str = "sharp", tol: float | None = None) -> Sensitivity:
    """Bound the change of the gradient of F at any point of the ball, as K-norm gradient noise needs it (section 3).

    "published" is 2r(2 - h)/n of Soto, Bharath, Reimherr and Slavković (2022); "tight" is 2rL/n; "sharp" compares the
    longest difference of two logarithms with the sphere's, 1/n times `farthest_logs`. On Hadamard
    spaces all are 2r/n. Twice the error `tol` allowed in evaluating the gradient is added.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> round(of_gradient(Ball(Euclidean(3), [0.0, 0.0, 0.0], 1.0), 100).value, 6)
    0.02
    """
    n = _checked(ball, n, bound, _OF_MEANS)
    r = ball.effective_radius
    if bound == "published":
        farthest = 2 * r * (2 - _low(ball, 2 * r))
    else:
        farthest = farthest_logs(r, ball.space.curvature[1]) if bound == "sharp" else 2 * r * _stretch(ball)
    return Sensitivity((farthest / n + 2 * _tol(ball, n, tol)) * _ROUND_UP, "gradient", bound, "gradient")


def of_variance(
    ball: Ball, n: int, *, about: object = None, away: float | None = None, bound: str = "tight"
) -> Sensitivity:
    """Bound the change of the mean squared distance to a point that is public or was released (section 6).

    "published" is 4r^2/n (Jiang, Chang and Hu 2025), which needs the point to lie in the ball. "tight" is
    (r + dist(about, centre))^2/n and holds wherever the point is.

    Parameters
    ----------
    ball : the public ball
    n : number of units
    about : the point, public or released before; anywhere in the ball if left out
    away : its distance from the centre, where only that is known
    bound : "tight" (default) or "published"

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> round(of_variance(ball, 100).value, 6), round(of_variance(ball, 100, about=[0.0]).value, 6)
    (0.04, 0.01)
    """
    return _of_moment(ball, n, about, bound, 2, "variance", away)


def of_fourth_moment(
    ball: Ball, n: int, *, about: object = None, away: float | None = None, bound: str = "tight"
) -> Sensitivity:
    """Bound the change of the mean fourth power of the distance to a public or released point (section 6).

    "published" is 16 r^4/n, "tight" is (r + dist(about, centre))^4/n.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> round(of_fourth_moment(Ball(Euclidean(1), [0.0], 1.0), 100).value, 6)
    0.16
    """
    return _of_moment(ball, n, about, bound, 4, "fourth moment", away)


def of_second_moment(
    ball: Ball, n: int, *, about: object = None, away: float | None = None, bound: str = "tight"
) -> Sensitivity:
    """Bound the Frobenius change of the mean of v v', v the normal coordinates at a public point (section 7).

    "tight" is sqrt(2) R^2/n with R = r + dist(about, centre). "published" is the 6 R^2/n of Jiang, Chang and
    Hu (2025) for the sample covariance, which they use instead.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    >>> round(of_second_moment(ball, 100, about=[0.0, 0.0]).value, 6)
    0.014142
    """
    n = _checked(ball, n, bound)
    factor = math.sqrt(2) if bound == "tight" else 6.0
    # A mean of n products of size 1 is wrong by less than this, and so is its neighbour's.
    rounding = _blocked(n) * EPS
    value = factor * reach(ball, about=about, away=away) ** 2 * (1 / n + 2 * rounding)
    return Sensitivity(value * _ROUND_UP, "second moment", bound, "second-moment")


def of_hessian(ball: Ball, n: int, *, about: object = None) -> Sensitivity:
    """Bound the Frobenius change of Lambda, the mean Hessian of the squared distance at a public point (section 7).

    Twice the space's `hessian_diameter` at R = r + dist(about, centre), over n: 2(1 - h_R) m/n on positive and
    2(c_R - 1) m/n on negative curvature, with a factor m of the space's own; 0 on flat spaces.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> of_hessian(Ball(SPD(2), [[1.0, 0.0], [0.0, 1.0]], 1.0), 100).value
    0.0
    """
    n = _checked(ball, n, "tight")
    space, far = ball.space, reach(ball, about=about)
    if space.curvature[1] > 0 and far * math.sqrt(space.curvature[1]) >= math.pi:
        raise InvalidArgumentError(
            f"`about` must be nearer to the ball on {space!r}: at a distance of {far:.4g} the Hessian is unbounded. "
            "Clip it into the ball."
        )
    value = 2 * space.hessian_diameter(far) * _summed(n)
    return Sensitivity(value * _ROUND_UP, "hessian", "tight", "hessian")


def _of_moment(
    ball: Ball, n: int, about: object, bound: str, power: int, statistic: str, away: float | None = None
) -> Sensitivity:
    n = _checked(ball, n, bound)
    far = 2 * ball.effective_radius if bound == "published" else reach(ball, about=about, away=away)
    return Sensitivity(far**power * _summed(n) * _ROUND_UP, statistic, bound, "variance")


def reach(ball: Ball, *, about: object = None, away: float | None = None) -> float:
    """Bound the computed distance from `about`, or from any point of the ball, to any record (section 6, R).

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> round(reach(Ball(Euclidean(1), [0.0], 1.0), away=0.5), 6)
    1.5
    """
    if away is not None:
        return _reach_from(ball, away)
    if about is None:
        return _reach_from(ball, ball.radius)
    frame = ball.frame
    point = ball.space.as_points(about, "about", batch=False)
    return _reach_from(ball, float(frame.dist(frame.origin, ball.space.into_frame(ball.center, point))))


def _reach_from(ball: Ball, computed: float) -> float:
    """Bound it for a point at this computed distance from the frame's origin."""
    if not computed >= 0:
        raise InvalidArgumentError(f"away must be a distance of at least 0, got {computed!r}.")
    frame, r = ball.frame, ball.effective_radius
    away = computed + frame.dist_error(frame.origin, max(computed, ball.radius))
    # Distances are computed between points of the frame: what rounding adds to one of them.
    far = away + r + frame.log_error(max(r, away)) + frame.dist_error(frame.origin, r + away)
    if not math.isfinite(far):
        raise InvalidArgumentError(
            f"`about` is too far from the ball on {ball.space!r} for double precision. Clip it into the ball."
        )
    return float(far)


def _blocked(n: int) -> float:
    """Return the roundings that the bound on a mean of matrices allows for each entry.

    As many as a product over n records, made in blocks of doubles, goes through. Sums are exact now and go through
    fewer; the bound stays generous, so that releases made with it verify (theory: rounding).
    """
    return _PRODUCT_BLOCK + n / _PRODUCT_BLOCK + 8


def _summed(n: int) -> float:
    """Return 1/n plus what the bounds allow for the rounding of two means over n records of size 1.

    As much as pairwise sums of doubles can add. Sums are exact now, and their means are off by less than 2 EPS; the
    bound stays generous, so that releases made with it verify (theory: rounding).
    """
    return 1 / n + 2 * (40 + math.log2(n)) * EPS


def _checked(ball: Ball, n: int, bound: str, bounds: tuple[str, ...] = _OF_MOMENTS, whole: bool = False) -> int:
    """Check the arguments every bound takes, and return n as an int; `whole` says that it needs no ball."""
    if not isinstance(ball, Ball):
        raise InvalidArgumentError(f"`ball` must be a Ball, got {shown(ball)}. The arguments are (ball, n).")
    if not whole:
        require_ball(ball)
    if bound not in bounds:
        *most, last = (f'"{name}"' for name in bounds)
        raise InvalidArgumentError(f"bound must be {', '.join(most)} or {last}, got {shown(bound)}.")
    n = positive_int(n, "n")
    if n > _MOST_UNITS:
        raise InvalidArgumentError(f"`n` must be at most {_MOST_UNITS}, got {n}.")
    return n


def _low(ball: Ball, distance: float) -> float:
    return ball.space.hessian_bounds(distance)[0]


def _stretch(ball: Ball) -> float:
    """L of section 3: how much the logarithm can stretch lengths inside the ball."""
    top = ball.space.curvature[1]
    if top <= 0:
        return 1.0
    s = 2 * ball.effective_radius * math.sqrt(top)
    return s / math.sin(s)


def _mean_hessian(low: float, share: float) -> float:
    """Lower bound of the mean Hessian when the mean squared distance is `share` of (2r)^2 at most (h*)."""
    return 1 - (1 - low) * min(1.0, share)


def _tol(ball: Ball, n: int, tol: float | None) -> float:
    return frechet.public_tol(ball, n, tol)


__all__ = [
    "Sensitivity",
    "of_average",
    "of_extrinsic_mean",
    "of_fourth_moment",
    "of_gradient",
    "of_hessian",
    "of_mean",
    "of_second_moment",
    "of_tangent_mean",
    "of_variance",
    "reach",
    "solver_distance",
]


# -------------------------------------------------------------------- comparison of geodesic triangles


# More halvings than a double has digits.
_HALVINGS = 60


def farthest_means(radius: float, kappa: float) -> float:
    """Bound n times the distance between the Fréchet means of neighbouring data: 2 tan(r sqrt(kappa))/sqrt(kappa).

    Attained in the limit of many records wherever a plane has curvature kappa (theory: mean).

    Examples
    --------
    >>> round(farthest_means(0.6, 1.0), 4), farthest_means(0.6, 0.0)
    (1.3683, 1.2)
    """
    if kappa <= 0:
        return 2 * radius
    root = math.sqrt(kappa)
    return 2 * math.tan(root * radius) / root


def farthest_logs(radius: float, kappa: float) -> float:
    """Bound |log_x p - log_x q| for any three points of the ball (theory: gradient).

    With kappa = 1 it is twice the root of the maximum over [0, r] of r^2 + 4t^2 - 4 r cot(r) t tan(t), rounded up.

    Examples
    --------
    >>> round(farthest_logs(0.6, 1.0), 4), farthest_logs(0.6, 0.0)
    (1.2772, 1.2)
    """
    if kappa <= 0:
        return 2 * radius
    r = math.sqrt(kappa) * radius
    weight = r / math.tan(r)
    low, high = 0.0, r
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if 2 * middle > weight * (math.tan(middle) + middle / math.cos(middle) ** 2):
            low = middle
        else:
            high = middle
    # Each term at the end of the interval where it is larger. Where rounding misplaced the interval, by eps/r at most,
    # the maximum is so flat that it is missed by eps^2.
    return 2 * math.sqrt(r * r + 4 * high * high - 4 * weight * low * math.tan(low)) / math.sqrt(kappa)
