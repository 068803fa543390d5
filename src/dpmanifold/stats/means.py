"""The private mean, for one group or by class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Mechanism
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Hidden
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, MeanProgram
from dpmanifold.stats.program import Drawing, Parallel, Program
from dpmanifold.stats.query import ESTIMAND, MECHANISM, REFINE, Option, Query
from dpmanifold.stats.refine import Wanted
from dpmanifold.stats.samples import SpanningGroups, Units
from dpmanifold.stats.shaped import SHAPED, plan_shaped
from dpmanifold.stats.shaping import PRIVATE
from dpmanifold.stats.shrinkage import JAMES_STEIN


def refuse_own_records(noise_shape: Any, X: object) -> None:
    """Refuse a shape that is made of the records to be released: it would be written down as it is.

    An array that shares memory with the records, or equals them, is refused. What is computed from them cannot be told
    from what is public.

    Examples
    --------
    >>> X = np.zeros((5, 2))
    >>> refuse_own_records(np.eye(2), X)
    >>> refuse_own_records(X[:3], X)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: noise_shape must be public, got the records themselves...
    """
    if noise_shape is None or isinstance(noise_shape, str):
        return
    own = [part for part in _parts(X) if part.size]
    if noise_shape is X or any(_same(one, other) for one in _parts(noise_shape) for other in own):
        raise InvalidArgumentError(
            "`noise_shape` must be public, got the records themselves: their spread would be written into the release. "
            'Give other records, which may be shown, or `noise_shape="private"`.'
        )


def _parts(given: object) -> list[Array]:
    parts = given if isinstance(given, tuple) else (given,)
    return [part for part in parts if isinstance(part, np.ndarray)]


def _same(one: Array, other: Array) -> bool:
    return np.may_share_memory(one, other) or (one.shape == other.shape and bool(np.array_equal(one, other)))


def private_mean(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    estimand: str | None = None,
    mechanism: str | Mechanism = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    project: bool = True,
    refine: bool = False,
    noise_shape: Any = None,
    shrinkage: str | None = "auto",
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> Release:
    """Release a mean of clipped records under a promise: the Fréchet mean, or another by name (theory 1, 3, 5).

    Parameters
    ----------
    X : records, shape (n, *space.shape); or a source of them that is read piece by piece, such as a `data.Dataset` of
        files, a data frame or a Dask collection: the bits of the result are those of the same records in an array;
        or data that are registered with a ledger, which are opened once they are paid for
    ball : public knowledge about where they lie
    privacy : PureDP, ApproxDP, ZCDP or GDP
    units : one id per record, all whole numbers or all text, or EACH_RECORD ("each-record"); or the name of a column,
        where X has columns; required, and None where they are registered with X
    estimand : which mean: "frechet" (also if left out); "tangent", the average logarithm at the ball's centre, with
        less noise on spheres and shapes; "extrinsic", the mean direction or the full Procrustes mean, which needs no
        ball (:meth:`Ball.whole`). How far they are apart: theory, estimands
    mechanism : "auto" (exact draws, then the smallest expected noise that keeps the promise), a name or a Mechanism
    invalid : "raise" (the error describes data: for the curator) or "center" (a bad record counts as the centre)
    curator : a function that is told, before anything is spent, how many records were clipped or replaced (a
        :class:`Notice`); of registered data after it, and why a release was lost that was paid for. That is
        data about the data, for whoever holds them and nobody else
    confirm : go on although more than half of the records were clipped or replaced, which is refused otherwise
    project : move the draw into the ball, which costs nothing and never hurts
    refine : spend a tenth (pure promises) or a fifth (others) on a smaller ball first, unless public numbers say that
        this cannot help (theory section 8); `plan_mean(..., refine=True)` says what to expect
    noise_shape : how the data are expected to spread about the ball's centre: public records, in any form that X may
        have as arrays; a matrix (d, d) of second moments in coordinates there; or "private", which spends three tenths
        on the shape and on radii. Records are taken about the ball's centre, not about their own mean, and few of them
        are believed less, which a matrix made of them is not. Noise then has that shape, which is less of it in all if
        the data have it too, and the radius is found privately in its norm (theory: shaped noise). For flat spaces and
        tangent means; `plan_mean(..., noise_shape=...)` says what to expect
    shrinkage : "auto" moves the draw towards the ball's centre where its mean squared error falls by that wherever in
        the ball the mean lies (Gaussian noise on flat spaces, few units; computed, theory section 8), and keeps the
        draw in `raw`; "james-stein" always does, by that rule, whose mean squared error is below that of the draw
        itself for every mean, though not below that of the draw moved into the ball, and is refused with a shape; None
        never does
    arithmetic : "auto" draws ideal noise and rounds it to a public grid, so that no bit of it tells more than the
        promise allows (theory: exact noise), wherever the mechanism offers that; seeded simulations draw doubles of the
        same law, which is faster. "exact" insists, "float" draws doubles
    budget : spend from this budget, before anything is drawn: a Budget, or an account that remembers, such as the
        population of a ledger, which also registers the data and puts a receipt on the release
    key : for an account: the name of this request, answered once. The same request under it returns the same release
        bit for bit and costs nothing, another one is refused. A random one if left out; errors after the spend name it
    rng : None for a release; a seed or generator for simulations, which marks the result not private, and which no
        account pays for

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(SPD(2), np.eye(2), 2.0, source="textbook")
    >>> X = SPD(2).random_point(500, rng=0)
    >>> release = private_mean(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> release.mechanism, round(release.noise_error(), 4)
    ('wrapped-gaussian', 0.0128)
    """
    refuse_own_records(noise_shape, X)
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = MEAN_QUERY.asked(
        mechanism=mechanism,
        estimand=estimand,
        refine=refine,
        noise_shape=noise_shape,
        project=project,
        shrinkage=shrinkage,
    )
    return ask(question, Units(X), ball, privacy, terms).release


def private_class_means(
    X: object,
    labels: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any],
    estimand: str | None = None,
    mechanism: str | Mechanism = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    project: bool = True,
    refine: bool = False,
    noise_shape: Any = None,
    shrinkage: str | None = "auto",
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> dict[Any, Release]:
    """Release one mean per class under one promise in total (theory section 1).

    Labels are public, and so is which unit has records in which class. If every unit is in one class, classes compose
    in parallel and each mean gets the whole promise. If units span classes, every class gets the share that lets a unit
    touch as many of them as any unit does.

    Parameters
    ----------
    X, ball, privacy, units, estimand, mechanism, invalid, curator, confirm, project, refine, shape, shrink,
        arithmetic, budget, key, rng : as in :func:`private_mean`
    labels : one class per record; or the name of a column, where X has columns; None where X is registered with them
    classes : the public list of classes; a label outside it is an error

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import PureDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> X, labels = np.zeros((40, 1)), ["a", "b"] * 20
    >>> releases = private_class_means(X, labels, ball, PureDP(1.0), units=EACH_RECORD, classes=["a", "b"])
    >>> sorted(releases), releases["a"].n, releases["a"].privacy
    (['a', 'b'], 20, PureDP(epsilon=1.0))
    """
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    refuse_own_records(noise_shape, X)
    question = CLASS_MEANS.asked(
        mechanism=mechanism,
        estimand=estimand,
        refine=refine,
        noise_shape=noise_shape,
        project=project,
        shrinkage=shrinkage,
    )
    sample = SpanningGroups(X, labels, classes)
    releases = ask(question, sample, ball, privacy, terms).releases
    return dict(zip(sample.names, releases, strict=True))


class ClassMeansProgram(Parallel):
    """The mean of each class.

    Parameters
    ----------
    header : what all classes are about
    classes, mechanism, estimand, refine, noise_shape, project, shrinkageage : as in :func:`private_class_means`
    counts : how many units each class has
    touched : in how many classes a unit has records, at most
    """

    def __init__(
        self,
        header: Header,
        *,
        classes: list[Any],
        counts: list[int],
        touched: int,
        mechanism: str | Mechanism = "auto",
        estimand: str | None = None,
        refine: bool = False,
        noise_shape: Any = None,
        project: bool = True,
        shrinkage: str | None = "auto",
    ) -> None:
        possible = 1 <= min(counts) <= max(counts) <= header.n <= sum(counts) <= touched * header.n
        if not (possible and 1 <= touched <= len(counts)):
            raise InvalidArgumentError("counts must be of so many units in so many classes each.")
        self.header, self.groups, self.touched = header, len(counts), touched
        share = header.privacy if touched == 1 else divide(header.privacy, touched)[0]
        plan, estimand = (
            (MeanProgram, estimand)
            if noise_shape is None
            else (partial(plan_shaped, noise_shape=noise_shape), estimand or "frechet")
        )
        self._means: dict[int, Program[UnitPoints]] = {
            group: plan(
                header.about(group, counts[group]), Wanted(mechanism, estimand), refine=refine, project=project,
                shrinkage=shrinkage, share=share,
            )
            for group in header.decisions.groups(len(counts))
        }  # fmt: skip

    def steps(self) -> tuple[Step, ...]:
        """Return the draws of one class."""
        return self._means[0].steps()

    def branch(self, group: int, units: Hidden[UnitPoints], before: Any) -> Drawing[Release]:
        """Draw the mean of a class."""
        return self._means[group].draws(units)


SHAPE = Option(
    "noise_shape", "shape", "Shape of the noise",
    "Noise shaped like the data: private spends three tenths on shape and radii. For flat spaces and tangent means.",
    (None, PRIVATE),
    advanced=True,
)  # fmt: skip
SHRINK = Option(
    "shrinkage", "choice", "Shrinkage",
    "Move the draw towards the center, the draw itself being kept as raw: auto (where that can only help), "
    "james-stein (normal noise on flat spaces, three dimensions or more) or none.",
    ("auto", JAMES_STEIN, None),
    planned=False,
    advanced=True,
)  # fmt: skip
MEAN_QUERY = Query(
    name="mean",
    title="Mean",
    call=private_mean,
    sample=Units,
    plan=MEAN.prepared,
    compare=MEAN.comparison,
    options=(ESTIMAND, MECHANISM, REFINE, SHAPE, SHRINK),
    releases=(MEAN.name, SHAPED.name),
    tells_needs=True,
    squares=False,
    views=("npy", "picture", "links"),
)
CLASS_MEANS = Query(
    name="class-means",
    title="Mean of each class",
    call=private_class_means,
    sample=SpanningGroups,
    plan=ClassMeansProgram,
    result=dict,
    options=MEAN_QUERY.options,
    releases=MEAN_QUERY.releases,
    views=(),
    plan_as=MEAN_QUERY.name,
    squares=False,
)
