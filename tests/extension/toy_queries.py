"""Two queries that the library does not know, of two groups and with a covariate. Everything about them is here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from dpmanifold import Query, Release, Result
from dpmanifold._check import open_fraction
from dpmanifold.codec import from_record, to_record
from dpmanifold.features.geodesics import Geodesic
from dpmanifold.statistic import STATISTICS, Kind
from dpmanifold.stats import AveragedStatistic, AverageProgram, Pair, Parallel, Terms, WithCovariate, ask
from dpmanifold.stats.query import LEVEL


class FromReleases(Result):
    """What the results of both queries share: their fields are what they are written by."""

    @property
    def privacy(self):
        return self.released[0].privacy

    @property
    def private(self):
        return all(release.private for release in self.released)

    @property
    def is_exact(self):
        return all(release.is_exact for release in self.released)

    def to_dict(self, answers=True):
        record = to_record(self)
        return record if answers else {name: entry for name, entry in record.items() if name != "answers"}

    @classmethod
    def from_dict(cls, record):
        return from_record(cls, record)

    def facts(self):
        return [*((name, f"{value:.4g}") for name, value in self.answers().items()), ("promise", str(self.privacy))]


def bars(result):
    """Draw the numbers of a result."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.bar(list(result.answers()), list(result.answers().values()))
    axes.set_title(result.title)
    return figure


# -------------------------------------------------------------------- two groups


class Inner(AveragedStatistic):
    """The share of the units within half the radius."""

    name, words, kind = "inner share", "share of the units within half the radius", Kind.NUMBER

    def per_unit(self, block, ball):
        return (ball.frame.dist(ball.frame.origin, block) <= ball.radius / 2)[:, None]

    def middle(self, ball):
        return np.array([0.5])

    def bound(self, ball):
        return 0.5


INNER = Inner()


class ContrastProgram(Parallel):
    """A share of each group; nobody is in both, and each keeps the whole promise."""

    def __init__(self, header, *, counts):
        self.header, self.groups = header, len(counts)
        self._shares = [INNER.prepared(header.about(group, n)) for group, n in enumerate(counts)]

    def steps(self):
        named = enumerate(self._shares, start=1)
        return tuple(replace(step, group=f"group {number}") for number, share in named for step in share.steps())

    def branch(self, group, units, before):
        return self._shares[group].draws(units)


@dataclass(frozen=True, repr=False)
class Contrast(FromReleases, format="toy contrast 1"):
    """The difference of the shares of two groups, with a confidence interval."""

    first: Release
    second: Release
    level: float = 0.95

    title = "Difference of shares"

    @property
    def released(self):
        return self.first, self.second

    def answers(self):
        one, two = (float(np.asarray(release.value)) for release in self.released)
        spread = sum(release.scale**2 + 0.25 / release.n for release in self.released)
        margin = NormalDist().inv_cdf(0.5 + self.level / 2) * math.sqrt(spread)
        return {"difference": two - one, "low": two - one - margin, "high": two - one + margin}


def private_contrast(X, Y, ball, privacy, *, units, classes=None, level=0.95, **terms):
    """Release the difference of two groups' shares of units near the centre.

    Nobody is in both.
    """
    level = open_fraction(level, "level")
    first, second = ask(CONTRAST.asked(), Pair(X, Y, classes), ball, privacy, Terms(units, **terms)).releases
    return Contrast(first, second, level)


CONTRAST = Query(
    name="contrast",
    title="Difference of shares",
    call=private_contrast,
    sample=Pair,
    plan=ContrastProgram,
    result=Contrast,
    options=(LEVEL,),
    releases=(INNER.name,),
    figure=f"{__name__}:bars",
    views=("picture",),
)


# -------------------------------------------------------------------- a covariate


class Products(AveragedStatistic):
    """The average of the covariate times the coordinates at the ball's centre, over the radius."""

    name, words, kind = "covariate products", "average product of covariate and coordinates", Kind.VECTOR

    def prepared(self, header, *, covariate_range, covariate_public=False, mechanism="auto"):
        ball, planned = header.ball, super().prepared(header, mechanism=mechanism)
        resting = Geodesic.resting(ball.frame)
        return AverageProgram(self, header, planned.calibration, lambda points: points.scored(resting, ball.radius))

    def average(self, points):
        dim = points.ball.frame.dim
        return points.units.mean_of(lambda block: block[:, dim : 2 * dim], 1.0)

    def per_unit(self, block, ball):
        """Return what units count for whose covariates are in the middle of the range."""
        return np.zeros((len(block), ball.frame.dim))

    def size(self, ball):
        return ball.frame.dim

    def middle(self, ball):
        return np.zeros(ball.frame.dim)

    def bound(self, ball):
        return 1.0


PRODUCTS = Products()
for statistic in (INNER, PRODUCTS):
    STATISTICS.register(statistic.name, statistic)


def trend_plan(header, *, covariate_range=(-1.0, 1.0), covariate_public=False):
    """Return the plan of a trend; a covariate that is public is protected all the same."""
    return PRODUCTS.prepared(header, covariate_range=covariate_range, covariate_public=covariate_public)


@dataclass(frozen=True, repr=False)
class Trend(FromReleases, format="toy trend 1"):
    """How coordinates go along with a covariate."""

    release: Release

    title = "Trend along a covariate"

    @property
    def released(self):
        return (self.release,)

    def answers(self) -> Mapping[str, Any]:
        return {f"axis {axis}": float(entry) for axis, entry in enumerate(self.release.value, start=1)}


def private_trend(X, covariate, ball, privacy, *, units, covariate_range, covariate_public=False, **terms):
    """Release the average product of a covariate and coordinates.

    The covariate is private.
    """
    sample = WithCovariate(X, covariate, covariate_range, covariate_public)
    return Trend(ask(TREND.asked(), sample, ball, privacy, Terms(units, **terms)).release)


TREND = Query(
    name="trend",
    title="Trend along a covariate",
    call=private_trend,
    sample=WithCovariate,
    plan=trend_plan,
    result=Trend,
    releases=(PRODUCTS.name,),
    figure=f"{__name__}:bars",
    views=("picture",),
)
