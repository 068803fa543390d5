"""A linear discriminant from class sums, counts and a second moment, released in one draw (theory: lda).

Class means with known noise are moved towards the mean of all as far as noise hides them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from dpmanifold._cells import checked_names, numbers_of_labels
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import COUNT_WEIGHT, WEIGHT, ClassMoments, coordinates
from dpmanifold.inference.estimate import features_of
from dpmanifold.inference.hotelling import denoised
from dpmanifold.inference.inference_result import FromRelease, VarianceShares
from dpmanifold.linalg import from_vecd, symmetrize
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.release import Release
from dpmanifold.summary import all_told

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


NUMBER_OF_CLASSES = "n_classes"
"""What releases state the number of classes as."""

# A count within so many standard deviations of its noise from 0 may be that of a class without units.
_MAY_BE_EMPTY = 3.0
# What is told of classes at most, in words.
_MOST_TOLD = 12
# Classes that are no farther apart than this many standard deviations can hardly be told apart.
_HARDLY_APART = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class LinearDiscriminant(FromRelease, format="dpmanifold lda 2"):
    """A linear discriminant: tells the class of a record by its coordinates at the ball's centre.

    Everything follows from one release: class sums and counts give means and priors, the second moment less what the
    means explain gives one covariance for all classes, freed of its known noise. `predict` and what goes with it cost
    nothing; what they say of private records is not private.

    Parameters
    ----------
    release : statistic "class moments", as :func:`private_lda` makes it
    classes : the public names of the classes, in the order of the release
    counts : where labels are public, how many units each class has; a unit in several counts for its part in each

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(2, size=3000)
    >>> X = rng.normal(size=(3000, 2)) + np.array([[0.0, 0.0], [3.0, 0.0]])[labels]
    >>> ball = dpm.Ball(dpm.Euclidean(2), [1.5, 0.0], 5.0, source="the range of the scale")
    >>> found = dpm.private_lda(X, labels, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=[0, 1])
    >>> found.predict([[-1.0, 0.0], [4.0, 0.0]])
    array([0, 1])
    >>> bool(np.allclose(found.covariance, np.eye(2), atol=0.3))
    True
    """

    release: Release
    classes: tuple[Any, ...]
    counts: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(checked_names(self.classes)))
        if not isinstance(features_of(self.release), ClassMoments):
            raise InvalidArgumentError(f"release must be of class moments, got a {self.release.statistic}.")
        if self.release.details[NUMBER_OF_CLASSES] != len(self.classes):
            raise InvalidArgumentError(
                f"`classes` must be as many as the release has, {self.release.details[NUMBER_OF_CLASSES]:g}, got "
                f"{len(self.classes)}."
            )
        if (self.counts is None) == self.labels_public:
            raise InvalidArgumentError("counts are given where labels are public, and nowhere else.")
        if self.counts is not None:
            counts = tuple(float(count) for count in self.counts)
            object.__setattr__(self, "counts", counts)
            add_up = math.isclose(math.fsum(counts), self.n, rel_tol=1e-9)
            if len(counts) != len(self.classes) or not min(counts) > 0 or not add_up:
                raise InvalidArgumentError("counts must be one above 0 for each class, and add up to the units.")

    @property
    def labels_public(self) -> bool:
        """Whether who is in which class was public; else labels are protected with the records."""
        return self.release.details[COUNT_WEIGHT] == 0

    @property
    def dim(self) -> int:
        """The dimension."""
        return self.ball.frame.dim

    # ---------------------------------------------------------------- what was released

    @cached_property
    def _map(self) -> ClassMoments:
        details = self.release.details
        return ClassMoments(len(self.classes), details[WEIGHT], details[COUNT_WEIGHT])

    @cached_property
    def _blocks(self) -> FloatArray:
        """For every class the sum of its coordinates and its count, over n, (classes, block)."""
        block = self._map.block(self.dim)
        value = np.asarray(self.release.value, dtype=np.float64)
        return value[: len(self.classes) * block].reshape(-1, block)

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on the counts; 0 where they are public."""
        return 0.0 if self.labels_public else self.release.scale * self.n / math.sqrt(self._map.count)

    @cached_property
    def units_by_class(self) -> FloatArray:
        """How many units each class has, (classes,): as released, with noise, or as is public."""
        return np.array(self.counts) if self.counts is not None else self._blocks[:, -1] * self.n

    @cached_property
    def _sizes(self) -> FloatArray:
        """The same for computing: none below its noise, adding up to n."""
        sizes = np.maximum(self.units_by_class, self.count_noise)
        return np.asarray(sizes * (self.n / sizes.sum()))

    # ---------------------------------------------------------------- the discriminant

    @property
    def priors(self) -> FloatArray:
        """The share of the units that each class has, (classes,), all above 0."""
        return np.asarray(self._sizes / self.n)

    @cached_property
    def _drawn_means(self) -> FloatArray:
        return np.asarray(self._blocks[:, : self.dim] * (self.n / self._sizes)[:, None])

    @cached_property
    def mean_coordinates(self) -> FloatArray:
        """The class means in coordinates at the ball's centre, (classes, dim), none outside the ball."""
        return shorten(self._drawn_means, self.ball.radius)

    @cached_property
    def mean_noise(self) -> FloatArray:
        """Standard deviation of the noise on each coordinate of the class means, (classes,)."""
        return np.asarray(self.release.scale * self.ball.radius * (self.n / self._sizes))

    @property
    def means(self) -> Array:
        """The tangent means of the classes at the ball's centre, (classes, *space.shape)."""
        frame = self.ball.frame
        return self.ball.from_frame(frame.exp_coords(frame.origin, self.mean_coordinates))

    @cached_property
    def spread(self) -> FloatArray:
        """Covariance within classes as released, (dim, dim): on average the sample's, and not necessarily positive."""
        second = from_vecd(np.asarray(self.release.value, dtype=np.float64)[self._blocks.size :])
        means, priors = self._drawn_means, self.priors
        explained = sum(share * np.outer(mean, mean) for share, mean in zip(priors.tolist(), means, strict=True))
        # The noise on the means adds its own variance to what they explain, which is known.
        return symmetrize(second - explained + float(priors @ self.mean_noise**2) * np.eye(self.dim))

    @cached_property
    def spread_noise(self) -> float:
        """Standard deviation of the noise in `spread`, on vecd: of the second moment, and of what the means explain."""
        moment = self.release.scale * float(self._map.units(self.dim, self.ball.radius)[-1])
        own = self.release.scale * self.ball.radius
        away = (self.mean_coordinates**2).sum(axis=1) / self.dim
        return math.sqrt(moment**2 + own**2 * float((4 * away + 2 * self.mean_noise**2 * self.priors).sum()))

    @cached_property
    def _denoised(self) -> FloatArray:
        """Covariance within classes, positive: freed of noise as far as its size tells."""
        return denoised(self.spread, self.spread_noise)

    @cached_property
    def shrunken_means(self) -> FloatArray:
        """The class means that records are told by, (classes, dim): moved to the mean of all where noise hides them.

        In coordinates at the ball's centre.
        """
        return shrunken_means(self.mean_coordinates, self._denoised, self.priors, self.mean_noise)

    @cached_property
    def slope(self) -> float:
        """By what the covariance is divided, so that noise makes scores less sure of themselves: at most 1."""
        return slope(self.shrunken_means, self._denoised, self.priors, self.mean_noise, self.spread_noise)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance within classes, (dim, dim), positive: freed of noise and enlarged by what noise makes too sure."""
        return np.asarray(self._denoised / self.slope)

    @cached_property
    def _weights(self) -> FloatArray:
        """What coordinates are multiplied with, (classes, dim)."""
        return np.asarray(np.linalg.solve(self.covariance, self.shrunken_means.T).T)

    @cached_property
    def separation(self) -> FloatArray:
        """Distances between classes in standard deviations of one, (classes, classes): an estimate.

        Mahalanobis distances between `shrunken_means` by `covariance`; small, but not 0, between classes that noise
        hides.
        """
        placed = np.linalg.solve(np.linalg.cholesky(self.covariance), self.shrunken_means.T)
        return np.asarray(np.sqrt(np.sum([(axis[:, None] - axis[None]) ** 2 for axis in placed], axis=0)))

    @cached_property
    def axes(self) -> FloatArray:
        """Directions in which the classes differ most, (dim, at most classes - 1), the clearest first.

        Coordinates times these are scores in which the spread within classes is 1 along each and the same for all.
        """
        means, priors = self.shrunken_means, self.priors
        root = np.linalg.cholesky(self.covariance)
        away = np.linalg.solve(root, (means - priors @ means).T) * np.sqrt(priors)
        turned = np.linalg.svd(away)[0][:, : min(self.dim, len(self.classes) - 1)]
        return np.asarray(np.linalg.solve(root.T, turned))

    # ---------------------------------------------------------------- telling classes

    def coordinates(self, X: object) -> FloatArray:
        """Return records (n, *space.shape) as the discriminant sees them: clipped, in coordinates at the centre."""
        points = self.ball.space.as_points(self.ball.space.batch(X), "X", batch=True)
        return coordinates(self.ball.into_frame(points), self.ball) * self.ball.radius

    def decision_function(self, X: object, *, priors: object = None) -> FloatArray:
        """Return the score of every class, (n, classes): the logarithm of its probability but for a constant.

        Parameters
        ----------
        X : records, (n, *space.shape). Of private ones, what comes back is not private
        priors : how frequent each class is where the records are from, if that is known; as released if left out
        """
        weights = self._weights
        shares = self.priors if priors is None else _checked_priors(priors, len(self.classes))
        constant = np.log(shares) - (weights * self.shrunken_means).sum(axis=1) / 2
        return np.asarray(self.coordinates(X) @ weights.T + constant)

    def predict_proba(self, X: object, *, priors: object = None) -> FloatArray:
        """Return the probability of every class if classes were normal with these means, (n, classes)."""
        return np.asarray(special.softmax(self.decision_function(X, priors=priors), axis=1))

    def predict(self, X: object, *, priors: object = None) -> Array:
        """Return the most probable class of each record, (n,)."""
        one_kind = len({isinstance(name, str) for name in self.classes}) == 1
        names = np.array(self.classes, dtype=None if one_kind else object)
        return np.asarray(names[self.decision_function(X, priors=priors).argmax(axis=1)])

    def score(self, X: object, labels: object, *, priors: object = None) -> float:
        """Return the share of records whose class it tells; of private records that is not private.

        Parameters
        ----------
        X, priors : as in :meth:`decision_function`
        labels : one class per record
        """
        given, said = numbers_of_labels(labels, list(self.classes)), self.decision_function(X, priors=priors)
        if len(given) != len(said):
            raise InvalidArgumentError(f"`labels` must have shape ({len(said)},), one per record, got ({len(given)},).")
        return float(np.mean(given == said.argmax(axis=1)))

    # ---------------------------------------------------------------- for people and machines

    @property
    def variance_shares(self) -> VarianceShares:
        """What the squared error of the class means is made of, on average over units: noise and sampling."""
        noise = self.dim * float(self.priors @ self.mean_noise**2)
        sampling = max(float(np.trace(self.spread)), 0.0) * len(self.classes) / self.n
        return VarianceShares.of(noise, sampling, noise + sampling)

    @property
    def _means(self) -> tuple[Release, ...]:
        return (self.release,)

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"Linear discriminant of {len(self.classes)} classes"

    @property
    def apart_told(self) -> str:
        """How far classes are apart, in words."""
        away = self.separation[np.triu_indices(len(self.classes), 1)]
        low, high = f"{away.min():.2g}", f"{away.max():.2g}"
        return f"about {low if low == high else f'{low} to {high}'} standard deviations of a class"

    def faults(self) -> list[str]:
        """Return whether public counts of classes are none of the units, or none that the released sums allow."""
        if self.counts is None:
            return []
        statistic: Any = self.release.definition
        found: list[str] = statistic.counts_faults(self.release, np.array(self.counts))
        if self.release.unit == "record" and not all(count.is_integer() for count in self.counts):
            found.append("counts: each record is of one class, and they are whole numbers")
        return found

    def _facts(self) -> list[tuple[str, str]]:
        names = [
            f"{name}: {round(count):,}" for name, count in zip(self.classes, self.units_by_class.tolist(), strict=True)
        ]
        more = [] if len(names) <= _MOST_TOLD else [f"and {len(names) - _MOST_TOLD} more"]
        off = "public" if self.labels_public else f"with noise of {self.count_noise:.3g} each"
        return [
            ("classes", f"{', '.join([*names[:_MOST_TOLD], *more])} ({off})"),
            ("means", f"{self.apart_told} apart"),
            ("promise", f"{self.privacy} for each {self.release.unit}, {self.n:,} of them"),
            ("labels", "public" if self.labels_public else "protected with the records"),
            ("limited by", f"{self.dominant_source}; squared error of the means: {self.variance_shares}"),
            ("ball", repr(self.ball)),
        ]

    def _worth(self) -> list[str]:
        found = []
        few = [
            str(name)
            for name, count in zip(self.classes, self.units_by_class.tolist(), strict=True)
            if count < _MAY_BE_EMPTY * self.count_noise
        ]
        if few:
            found.append(
                f"these classes may be without units, by their noisy counts, and their means mostly noise: "
                f"{', '.join(few[:_MOST_TOLD])}"
            )
        if self.separation.max() < _HARDLY_APART:
            found.append("no two classes are farther apart than they spread: this hardly tells any apart")
        return found

    def _numbers_told(self) -> dict[str, Any]:
        # Not what inverts the covariance: where that is nearly singular, another machine finds other digits.
        return all_told(self, "units_by_class", "count_noise", "priors", "mean_noise", "mean_coordinates")


def _checked_priors(priors: Any, classes: int) -> FloatArray:
    """Return shares that add up to 1, or refuse what are none."""
    given = np.asarray(priors, dtype=np.float64)
    if given.shape != (classes,) or not (np.isfinite(given).all() and (given > 0).all()):
        raise InvalidArgumentError(
            f"priors must be {classes} numbers above 0, one for each class, got {shown(priors)}."
        )
    return np.asarray(given / given.sum())


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
