"""A private test that two groups have the same mean (theory section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpmanifold._check import open_fraction
from dpmanifold.ball import Ball
from dpmanifold.inference import TwoSampleTest
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.k_sample import K_SAMPLE
from dpmanifold.stats.pair import Pair


def private_two_sample_test(
    X: object,
    Y: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any] | None = None,
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
) -> TwoSampleTest:
    """Test whether two groups have the same mean (theory section 7).

    Who is in which group is public, and nobody is in both: each group's mean and second moment keep the whole promise,
    released as for :func:`private_region`. The noise is part of the test's variance. With ids a unit in both groups is
    refused before anything is spent; with EACH_RECORD that there is none is your word. Where an account pays,
    EACH_RECORD and two registered data sets are taken only if its unit is the record: else the same people may be in
    both, and both groups are given as arrays or sources with ids. One data set that is registered with public labels
    of two classes says itself whether somebody is in both: it is taken as :func:`private_k_sample_test` takes it, with
    None in the place of the other group and the classes by name, of which the first is the first group.

    Parameters
    ----------
    X, Y : records of the two groups, shapes (n, *space.shape) and (m, *space.shape). Or X is registered with labels,
        and Y is None
    ball, privacy, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`; ApproxDP, ZCDP
        or GDP
    units : EACH_RECORD, or a pair: one id per record of X, one id per record of Y; the names of columns, where X and Y
        have columns, or one name for both; None where both groups are registered, each record a unit of its own, or
        both in one data set
    classes : the two classes that X is registered with, in their order; None where Y is given
    level : the confidence of the interval for the distance between the means, in (0, 1)
    estimand : which mean: "frechet", the default, or "tangent", that of coordinates at the ball's centre, which takes
        one draw of each group on every space. On flat spaces they are the same
    refine : spend a fifth of the promise on one smaller ball for both groups first, found from all units together

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> X, Y = np.zeros((2, 300, 1))
    >>> private_two_sample_test(X, Y, Ball(Euclidean(1), [0.0], 1.0), GDP(1.0), units=EACH_RECORD).ball.radius
    1.0
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = TWO_SAMPLE.asked(estimand=estimand, refine=refine)
    first, second = ask(question, Pair(X, Y, classes), ball, privacy, terms).releases
    return TwoSampleTest(first, second, level)


TWO_SAMPLE = replace(
    K_SAMPLE,
    name="two-sample-test",
    title="Test of two groups",
    call=private_two_sample_test,
    sample=Pair,
    result=TwoSampleTest,
    figure="dpmanifold.plots.group_comparisons:test",
)
