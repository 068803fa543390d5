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
from dpmanifold.progress import bar
from dpmanifold.release import Release
from dpmanifold.statistic import NEIGHBOURS_BY_CLASS, Header
from dpmanifold.stats.asking import Terms
from dpmanifold.stats.content import content_of
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import fresh_bits
from dpmanifold.stats.group_plan import GroupsPlan, refuse_in_several
from dpmanifold.stats.inputs import checked_question
from dpmanifold.stats.means import counted_by_class
from dpmanifold.stats.records import as_batch
from dpmanifold.stats.registered import Registered
from dpmanifold.stats.registering import opened_by_class
from dpmanifold.stats.rehearsal import Rehearsal, public_groups
from dpmanifold.stats.requests import Question
from dpmanifold.stats.settling import Request


@bar("clipping and solving")
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
    names = checked_names(classes)
    checked_question(ball, privacy, "X, labels")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    terms.check(ball)
    X = X if isinstance(X, Registered) else as_batch(X, ball, labels=labels, units=units)
    known, found = counted_by_class(X, labels, ball, terms, names)
    refuse_in_several(known.touched)
    header = Header(ball, known.n, privacy, known.unit, NEIGHBOURS_BY_CLASS, arithmetic)
    asked: dict[str, Any] = {"counts": known.counts, "estimand": estimand, "refine": refine}
    plan = GroupsPlan(header, **asked)
    question = Question(GroupsPlan.label, groups_plan, {"classes": names, **asked})
    bits = fresh_bits(rng, ball, arithmetic)

    def request(account: Account) -> Request:
        if isinstance(X, Registered):
            return question.request(header, [X.id]), ()
        data = account.marked(content_of(X, ball, units, labels, names), known.facts(ball, names))
        return question.request(header, [data.id]), (data,)

    def draw() -> Sequence[Release]:
        return plan.release(opened_by_class(X, ball, names, terms.told) if isinstance(X, Registered) else found, bits)

    rehearsal = Rehearsal(
        question, header, bits.exact, plan.steps,
        lambda bits: plan.release(public_groups(header, known.counts), bits),
    )  # fmt: skip
    releases = terms.settle(privacy, plan.label, request, draw, rehearsal)
    return GroupsTest(dict(zip(names, releases, strict=True)), level)


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
