"""A private mean as a transformer, and the classifier by the nearest private mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpmanifold._cells import plain_labels
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.estimators.base import PrivateEstimator, marked_public, refuse_fractions, sorted_names
from dpmanifold.mechanisms import get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import Account, Budget, Promise
from dpmanifold.release import Release
from dpmanifold.stats.inputs import refuse_other_rows
from dpmanifold.stats.means import private_class_means, private_mean

_OUTPUTS = ("distances", "tangent")


class _MeanEstimator(PrivateEstimator):
    """An estimator whose fit releases Fréchet means by a mechanism of one's choice."""

    mechanism: str

    def _terms(self, units: object) -> dict[str, Any]:
        terms = super()._terms(units)
        if self.mechanism != "auto" and get(self.mechanism).baseline:
            raise InvalidArgumentError(
                'mechanism "{mechanism}" is a baseline whose mean need not be a point: it has no distances.',
                mechanism=self.mechanism,
            )
        if self.mechanism != "auto" and get(self.mechanism).estimand != FRECHET:
            raise InvalidArgumentError(
                'mechanism "{mechanism}" hides a mean that is not the Fréchet mean, which is what estimators '
                "release. Use private_mean for it.",
                mechanism=self.mechanism,
            )
        return terms


class PrivateFrechetMean(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _MeanEstimator):  # type: ignore[misc]
    """The private Fréchet mean as a transformer: distances to it, or tangent coordinates at it.

    Every fit is one release under `privacy` and spends it from `budget`. The module's docstring says what of a pipeline
    is not private: scores, transformed private records, and steps in front that learn from them.

    Parameters
    ----------
    ball : public knowledge about where records lie
    privacy : the promise of one fit
    mechanism, refine, shape, invalid : as in :func:`~dpmanifold.private_mean`, for `fit`; the extrinsic baselines are
        refused
    output : what `transform` returns: "distances" (n, 1), or "tangent" for coordinates (n, dim) of the logarithm
        in an orthonormal frame at the mean
    units : "each-record" if nobody owns two records; with None (default), `fit` must be given ids
    budget : the one budget that every fit spends from, clones included: a Budget, or an account of a ledger
    key : for an account: the name of one fit, as in :func:`~dpmanifold.private_mean`; for searches and
        cross-validation leave it out (the module's docstring says why)
    public_data : True to fit without a budget, for data that may be shown to anyone; marks the release not private
    confirm : True to fit although more than half of the records are clipped or replaced, which is refused otherwise
    random_state : None for a release; a seed, RandomState or Generator marks the release not private

    Attributes
    ----------
    release_ : the release of the last fit
    mean_ : its value, a point of the space
    n_features_in_ : size of the first axis of a record; `feature_names_in_` as usual where X had column names

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> from dpmanifold.estimators import PrivateFrechetMean
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 3.0, source="textbook")
    >>> X = dpm.SPD(2).random_point(500, rng=0)
    >>> budget = dpm.Budget(dpm.GDP(1.0))
    >>> model = PrivateFrechetMean(ball, dpm.GDP(0.5), units="each-record", budget=budget).fit(X)
    >>> model.mean_.shape, model.transform(X).shape, model.release_.private
    ((2, 2), (500, 1), True)
    >>> budget.spent
    GDP(mu=0.5)
    """

    release_: Release

    def __init__(
        self,
        ball: Ball,
        privacy: Promise,
        *,
        mechanism: str = "auto",
        refine: bool = False,
        shape: object = None,
        output: str = "distances",
        units: object = None,
        invalid: str = "raise",
        budget: Budget | Account | None = None,
        key: str | None = None,
        public_data: bool = False,
        confirm: bool = False,
        random_state: object = None,
    ) -> None:
        super().__init__(ball, privacy, refine, units, invalid, budget, key, public_data, confirm, random_state)
        self.mechanism = mechanism
        self.shape = shape
        self.output = output

    def fit(self, X: object, y: object = None, units: object = None) -> Self:
        """Release the mean of records, shape (n, *space.shape), and spend the promise.

        Parameters
        ----------
        X : records, shape (n, *space.shape); a data frame (n, d) for vectors
        y : ignored
        units : one id per record; may be routed, `set_fit_request(units=True)`
        """
        refuse_other_rows(X=X, units=units)
        terms = self._terms(units)
        if self.output not in _OUTPUTS:
            raise InvalidArgumentError('output must be "distances" or "tangent", got {got}.', got=shown(self.output))
        records = self._records(X, self._space(), fitting=True)
        release = private_mean(
            records,
            self.ball,
            self.privacy,
            mechanism=self.mechanism,
            refine=self.refine,
            shape=self.shape,
            invalid=self.invalid,
            **terms,
        )
        self.release_ = marked_public(release) if self.public_data else release
        return self

    @property
    def mean_(self) -> Array:
        """The released mean."""
        check_is_fitted(self)
        return np.asarray(self.release_.value)

    @property
    def _n_features_out(self) -> int:
        return self.release_.ball.space.dim if self.output == "tangent" else 1

    def transform(self, X: object) -> FloatArray:
        """Return distances (n, 1) to the mean, or coordinates (n, dim) at it. Of private records: not private."""
        mean, space = self.mean_, self.release_.ball.space
        points = self._points(X, space)
        return space.log_coords(mean, points) if self.output == "tangent" else space.dist(mean, points)[:, None]


class PrivateMDM(ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _MeanEstimator):  # type: ignore[misc]
    """Classify by the nearest private class mean: pyRiemann's `MDM` with private means.

    Every fit is one call of :func:`~dpmanifold.private_class_means` under `privacy`, all classes together, and spends
    it from `budget`. Labels are public, and so is which unit is in which class. The module's docstring says what of a
    pipeline is not private: scores, predictions for private records, and steps in front that learn from them.

    Parameters
    ----------
    ball, privacy, mechanism, refine, shape, units, invalid, budget, key, public_data, confirm, random_state : as in
        :class:`PrivateFrechetMean`
    classes : the public list of classes; a label outside it is an error, and so is a class without records

    Attributes
    ----------
    releases_ : the release of every class, by its name
    classes_ : the classes, sorted
    means_ : values of the releases in that order, shape (n_classes, *space.shape)
    n_features_in_ : size of the first axis of a record; `feature_names_in_` as usual where X had column names

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> from dpmanifold.estimators import PrivateMDM
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 3.0)
    >>> X, y = np.repeat([[-1.0], [1.0]], 100, axis=0), np.repeat(["left", "right"], 100)
    >>> budget = dpm.Budget(dpm.PureDP(2.0))
    >>> model = PrivateMDM(ball, dpm.PureDP(2.0), classes=["left", "right"], units="each-record", budget=budget)
    >>> model.fit(X, y).predict([[-2.0], [2.0]])
    array(['left', 'right'], dtype='<U5')
    >>> model.fit(X, y)
    Traceback (most recent call last):
    ...
    dpmanifold...BudgetError: promise PureDP(epsilon=2.0) is more than the budget has left, nothing of
    PureDP(epsilon=2.0). Nothing was spent. Plan with a larger budget.
    """

    _released = "releases_"
    releases_: dict[Any, Release]

    def __init__(
        self,
        ball: Ball,
        privacy: Promise,
        *,
        classes: Sequence[Any],
        mechanism: str = "auto",
        refine: bool = False,
        shape: object = None,
        units: object = None,
        invalid: str = "raise",
        budget: Budget | Account | None = None,
        key: str | None = None,
        public_data: bool = False,
        confirm: bool = False,
        random_state: object = None,
    ) -> None:
        super().__init__(ball, privacy, refine, units, invalid, budget, key, public_data, confirm, random_state)
        self.classes = classes
        self.mechanism = mechanism
        self.shape = shape

    def fit(self, X: object, y: object, units: object = None) -> Self:
        """Release one mean per class and spend the promise once.

        Parameters
        ----------
        X : records, shape (n, *space.shape); a data frame (n, d) for vectors
        y : one class per record
        units : one id per record; may be routed, `set_fit_request(units=True)`
        """
        refuse_other_rows(X=X, y=y, units=units)
        terms = self._terms(units)
        names = sorted_names(self.classes)
        records, labels = self._records(X, self._space(), y=y, fitting=True)
        refuse_fractions([*names, *plain_labels(labels)])
        releases = private_class_means(
            records,
            labels,
            self.ball,
            self.privacy,
            classes=names,
            mechanism=self.mechanism,
            refine=self.refine,
            shape=self.shape,
            invalid=self.invalid,
            **terms,
        )
        marked = marked_public if self.public_data else lambda release: release
        self.releases_ = {name: marked(release) for name, release in releases.items()}
        self.classes_ = np.array(names)
        return self

    @property
    def means_(self) -> Array:
        """The released means, in the order of `classes_`."""
        check_is_fitted(self)
        return np.stack([np.asarray(release.value) for release in self.releases_.values()])

    @property
    def _n_features_out(self) -> int:
        return len(self.releases_)

    def transform(self, X: object) -> FloatArray:
        """Return the distance to every class mean, shape (n, n_classes). Of private records: not private."""
        means = self.means_
        space = next(iter(self.releases_.values())).ball.space
        points = self._points(X, space)
        return np.stack([space.dist(mean, points) for mean in means], axis=1)

    def predict(self, X: object) -> Array:
        """Return the class of the nearest mean, shape (n,)."""
        nearest = self.transform(X).argmin(axis=1)
        return np.asarray(self.classes_[nearest])

    def predict_proba(self, X: object) -> FloatArray:
        """Return the softmax of minus the squared distances, as pyRiemann does, shape (n, n_classes)."""
        return np.asarray(special.softmax(-(self.transform(X) ** 2), axis=1))
