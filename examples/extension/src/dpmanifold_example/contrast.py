"""A question about groups: how far each group's mean is from the others', and how far noise alone would put it.

In coordinates at the ball's center. Who is in which group is public, nobody is in two, and so each group keeps the
whole promise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifold import STATISTICS, Option, Query, Release
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.inference import FromReleases
from dpmanifold.statistic import Kind
from dpmanifold.stats import AveragedStatistic, Groups, Parallel, Terms, ask


class MeanCoordinates(AveragedStatistic):
    """The average of the units' coordinates at the ball's center."""

    name, words, kind = "mean coordinates", "average coordinates at the ball's center", Kind.VECTOR

    def per_unit(self, block, ball):  # points in the ball's frame (b, *frame.shape) -> (b, size)
        """Return the coordinates of each unit's point."""
        return ball.frame.log_coords(ball.frame.origin, block)

    def size(self, ball):
        """Return how many coordinates there are."""
        return ball.space.dim

    def bound(self, ball):  # longer vectors are shortened to it
        """Return how far points are from the center."""
        return ball.radius


MEAN_COORDINATES = STATISTICS.register(MeanCoordinates.name, MeanCoordinates())


class ContrastProgram(Parallel):
    """Mean coordinates of each group."""

    def __init__(self, header, *, counts, classes=()):
        self.header, self.groups = header, len(counts)
        self._means = [MEAN_COORDINATES.prepared(header.about(group, n)) for group, n in enumerate(counts)]

    def steps(self):
        """Return the draws, group by group, as public numbers foresee them."""
        named = enumerate(self._means, start=1)
        return tuple(replace(step, group=f"group {number}") for number, mean in named for step in mean.steps())

    def branch(self, group, units, before):
        """Draw what is about one group."""
        return self._means[group].draws(units)


@dataclass(frozen=True, repr=False)
class Contrast(FromReleases, format="dpmanifold-example contrast 1"):
    """How far groups are from each other, computed from a release of each.

    Parameters
    ----------
    groups : mean coordinates by the names of the groups
    against : "first", the first group; or "rest", the average of the others
    level : the confidence with which noise alone stays within all margins together
    """

    groups: Mapping[Any, Release]
    against: str = "first"
    level: float = 0.95

    title = "Contrast of groups"

    def __post_init__(self):
        refuse_wrong_options(self.against, self.level)
        if len(self.groups) < 2 or {one.statistic for one in self.released} != {MEAN_COORDINATES.name}:
            raise InvalidDataError("groups must be two or more, with mean coordinates of each.")
        if len({(one.ball, one.privacy) for one in self.released}) > 1:
            raise InvalidDataError("groups must have one ball and one promise.")

    @property
    def released(self):
        """The releases of the groups."""
        return tuple(self.groups.values())

    def released_by_name(self):
        """Return the same by name."""
        return {f"group {name!r}": release for name, release in self.groups.items()}

    def weights(self):
        """Return what each group counts for in each contrast, rows that add up to 0, by the name of the contrast."""
        names, own = list(self.groups), np.eye(len(self.groups))
        if self.against == "first":
            return dict(zip(names[1:], own[1:] - own[0], strict=True))
        return dict(zip(names, own - (1 - own) / (len(own) - 1), strict=True))

    def contrasts(self):
        """Return the length of each contrast, and the length that noise alone stays below: by name."""
        values = np.array([release.value for release in self.released])
        # Where every group's noise is within its quantile, all margins hold: a union bound, whatever the noise.
        share = (1 - self.level) / len(self.groups)
        noise = np.array([release.noise_quantile(1 - share) for release in self.released])
        return {
            name: (float(np.linalg.norm(row @ values)), float(np.abs(row) @ noise))
            for name, row in self.weights().items()
        }

    def answers(self):
        """Return the same for machines."""
        return {
            str(name): {"length": length, "noise": noise, "beyond_noise": length > noise}
            for name, (length, noise) in self.contrasts().items()
        }

    def facts(self):
        """Return names and texts to show."""
        found = []
        for name, (length, noise) in self.contrasts().items():
            seen = "beyond what noise explains" if length > noise else "no more than noise explains"
            found.append((f"{name!r} against the {self.against}", f"{length:.4g}, noise up to {noise:.4g}: {seen}"))
        return [*found, ("promise", f"{self.privacy} for each {self.released[0].unit}")]


def private_contrast(X, labels, ball, privacy, *, units, classes, against="first", level=0.95, **terms):
    """Release how far groups' mean coordinates are from each other, with what noise alone explains.

    Parameters
    ----------
    X, labels, ball, privacy, units, classes : as in :func:`dpmanifold.private_k_sample_test`
    against : what each group is held against, "first" or "rest"
    level : the confidence with which noise alone stays within all margins together, in (0, 1)
    terms : as in :func:`dpmanifold.private_mean`

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> labels = np.repeat(["before", "after"], 500)
    >>> X = np.where(labels == "after", 0.4, 0.0)[:, None]
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> about = {"units": dpm.EACH_RECORD, "classes": ["before", "after"]}
    >>> found = private_contrast(X, labels, ball, dpm.GDP(1.0), **about)
    >>> found.answers()["after"]["beyond_noise"], dpm.verify(found).ok
    (True, True)
    """
    refuse_wrong_options(against, level)  # before anything is spent
    sample = Groups(X, labels, classes)
    releases = ask(CONTRAST.asked(), sample, ball, privacy, Terms(units, **terms)).releases
    return Contrast(dict(zip(sample.names, releases, strict=True)), against, level)


def refuse_wrong_options(against, level):
    """Refuse what no contrast can be made with."""
    AGAINST.checked(against)
    if LEVEL.checked(level) == 1:
        raise InvalidArgumentError("level must be below 1: noise has no end.")


def bars(result):
    """Draw the lengths, and what noise alone explains."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    names, found = [str(name) for name in result.contrasts()], np.array(list(result.contrasts().values()))
    axes.bar(names, found[:, 0], color="tab:blue", label="released")
    axes.bar(names, found[:, 1], fill=False, edgecolor="black", hatch="//", label=f"noise alone ({result.level:.0%})")
    axes.set(title=result.title, ylabel="length in coordinates at the center")
    axes.legend()
    return figure


AGAINST = Option(
    "against", "choice", "Held against", "What each group is held against: the first group, or the rest.",
    ("first", "rest"), planned=False,
)  # fmt: skip
LEVEL = Option("level", "fraction", "Confidence", "Confidence of the margins, between 0 and 1.", planned=False)

CONTRAST = Query(
    name="contrast",  # dpm contrast, client.contrast, dpm plan --statistic contrast
    title=Contrast.title,
    call=private_contrast,  # its signature has the defaults of the options
    sample=Groups,  # or Units, Pair, Labelled, WithCovariate
    plan=ContrastProgram,  # from a Header, what the sample knows, and the options
    result=Contrast,
    options=(AGAINST, LEVEL),
    releases=(MEAN_COORDINATES.name,),  # the statistics that its result is made of
    figure=f"{__name__}:bars",
)
