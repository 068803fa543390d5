"""A question about records with a number each: how coordinates go along with it. The number is private."""

from dataclasses import dataclass

import numpy as np

from dpmanifold import STATISTICS, Query, Release
from dpmanifold.features.regression_features import Geodesic
from dpmanifold.inference import FromReleases
from dpmanifold.statistic import Kind
from dpmanifold.stats import AveragedStatistic, AverageProgram, Terms, WithCovariate, ask


class CovariateProducts(AveragedStatistic):
    """The average of the covariate, from -1 to 1, times the coordinates at the ball's center, over the radius."""

    name, words, kind = "covariate products", "average product of covariate and coordinates", Kind.VECTOR

    def prepared(self, header, *, covariate_range, covariate_public=False, mechanism="auto"):
        """Choose the noise; what is averaged comes from records with their covariates."""
        ball, planned = header.ball, super().prepared(header, mechanism=mechanism)
        resting = Geodesic.resting(ball.frame)
        return AverageProgram(self, header, planned.calibration, lambda points: points.scored(resting, ball.radius))

    def average(self, points):
        """Return the average product."""
        dim = points.ball.frame.dim
        return points.units.mean_of(lambda block: block[:, dim : 2 * dim], 1.0)

    def per_unit(self, block, ball):
        """Return what units count for whose covariates are in the middle of the range."""
        return np.zeros((len(block), ball.frame.dim))

    def size(self, ball):
        """Return how many coordinates there are."""
        return ball.frame.dim

    def bound(self, ball):
        """Return how long a product is at most."""
        return 1.0


PRODUCTS = STATISTICS.register(CovariateProducts.name, CovariateProducts())


def trend_plan(header, *, covariate_range=(-1.0, 1.0), covariate_public=False):
    """Return the plan of a trend; a covariate that is public is protected all the same."""
    return PRODUCTS.prepared(header, covariate_range=covariate_range, covariate_public=covariate_public)


@dataclass(frozen=True, repr=False)
class Trend(FromReleases, format="dpmanifold-example trend 1"):
    """How coordinates go along with a covariate."""

    release: Release

    title = "Trend along a covariate"

    @property
    def released(self):
        """The release that it is."""
        return (self.release,)

    def answers(self):
        """Return the average product for each axis."""
        return {f"axis {axis}": float(entry) for axis, entry in enumerate(self.release.value, start=1)}

    def facts(self):
        """Return names and texts to show."""
        return [*((name, f"{value:.4g}") for name, value in self.answers().items()), ("promise", str(self.privacy))]


def private_trend(X, covariate, ball, privacy, *, units, covariate_range, covariate_public=False, **terms):
    """Release the average product of a covariate and coordinates.

    Parameters
    ----------
    X, covariate, ball, privacy, units, covariate_range, covariate_public : as in :func:`dpmanifold.private_regression`
    terms : as in :func:`dpmanifold.private_mean`
    """
    sample = WithCovariate(X, covariate, covariate_range, covariate_public)
    return Trend(ask(TREND.asked(), sample, ball, privacy, Terms(units, **terms)).release)


def bars(result):
    """Draw the averages."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.bar(list(result.answers()), list(result.answers().values()))
    axes.set_title(result.title)
    return figure


TREND = Query(
    name="trend",
    title=Trend.title,
    call=private_trend,
    sample=WithCovariate,
    plan=trend_plan,
    result=Trend,
    releases=(PRODUCTS.name,),
    figure=f"{__name__}:bars",
)
