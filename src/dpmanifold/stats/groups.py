"""A private test that several groups have the same mean (theory: groups)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmanifold._check import open_fraction
from dpmanifold._labels import checked_names
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.inference import GroupsTest
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.statistic import Header
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.group_plan import GroupsPlan
from dpmanifold.stats.requests import Question
from dpmanifold.stats.samples import Groups


def private_groups(
    X: object,
    labels: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any],
    level: float = 0.95,
    estimand: str | None = None,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> GroupsTest:
    """Test whether several groups have the same mean, and say which differ and how far (theory: groups).

    Labels are public, and nobody is in two groups: each group's mean and second moment keep the whole promise, released
    as for :func:`private_region`, so that all comparisons together cost what one of them would. A unit with records in
    two groups is refused before anything is spent.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP
    labels : one group per record; or the name of a column, where X has columns; None where X is registered with them
    classes : the public list of groups, two or more; a label outside it is an error
    level : the confidence of the intervals for the distances between means, of all of them together, in (0, 1)
    estimand : which mean: "frechet", the default, or "tangent", that of coordinates at the ball's centre, which takes
        one draw of each group on every space. On flat spaces they are the same
    refine : spend a fifth of the promise on one smaller ball for all groups first, found from all units together

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> labels = np.repeat(["a", "b", "c"], 400)
    >>> X = np.random.default_rng(0).standard_normal((1200, 2)) + 2.0 * (labels == "c")[:, None]
    >>> ball = Ball(Euclidean(2), [0.0, 0.0], 6.0)
    >>> found = private_groups(X, labels, ball, GDP(1.0), units=EACH_RECORD, classes=["a", "b", "c"])
    >>> found.p_value < 1e-6, [pair.names for pair in found.pairs if pair.p_value < 1e-6]
    (True, [('a', 'c'), ('b', 'c')])
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = Question(GroupsPlan.label, groups_plan, {"estimand": estimand, "refine": refine})
    sample = Groups(X, labels, checked_names(classes))
    releases = ask(question, sample, ball, privacy, terms).releases
    return GroupsTest(dict(zip(sample.names, releases, strict=True)), level)


def groups_plan(
    header: Header,
    *,
    classes: Sequence[Any],
    counts: Sequence[int],
    estimand: str | None = None,
    refine: bool = False,
) -> GroupsPlan:
    """Return what :func:`private_groups` draws, or refuse: from public numbers.

    Parameters
    ----------
    header : what all groups are about
    classes, estimand, refine : as in :func:`private_groups`
    counts : how many units each group has
    """
    if len(counts) != len(classes):
        raise InvalidArgumentError(
            "counts must be one per group, got {n_counts} for {n_classes} groups.",
            n_counts=Public(len(counts)),
            n_classes=Public(len(classes)),
        )
    return GroupsPlan(header, counts, estimand=estimand, refine=refine)
