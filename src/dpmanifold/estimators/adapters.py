"""The estimators: a private mean, a classifier by the nearest mean, a linear discriminant, principal components."""

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
from dpmanifold.estimators.base import PrivateEstimator, ResultEstimator, marked_public, refuse_fractions, sorted_names
from dpmanifold.inference import LinearDiscriminant, PrincipalComponents
from dpmanifold.mechanisms import get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import Account, Budget, Promise
from dpmanifold.release import Release
from dpmanifold.stats.inputs import refuse_other_rows
from dpmanifold.stats.lda import private_lda
from dpmanifold.stats.means import private_class_means, private_mean
from dpmanifold.stats.pga import private_pga

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
    mechanism, refine, noise_shape, invalid : as in :func:`~dpmanifold.private_mean`, for `fit`; the extrinsic baselines
        are refused
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
        noise_shape: object = None,
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
        self.noise_shape = noise_shape
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
            noise_shape=self.noise_shape,
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
        noise_shape: object = None,
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
        self.noise_shape = noise_shape

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
            noise_shape=self.noise_shape,
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


# -------------------------------------------------------------------- linear discriminants


class PrivateLDA(ClassifierMixin, ResultEstimator[LinearDiscriminant]):  # type: ignore[misc]
    """Classify by a linear discriminant of tangent coordinates: a private one beside pyRiemann's `TSclassifier`.

    Every fit is one call of :func:`~dpmanifold.private_lda` under `privacy` and spends it from `budget`. Labels are
    private unless `labels_public=True`; either way the list of classes is public. A unit's records of a class are
    averaged first, and the covariance is that of such averages. The module's docstring says what of a pipeline is not
    private: scores, predictions for private records, and steps in front that learn from them.

    Parameters
    ----------
    ball, privacy, units, budget, key, public_data, confirm, random_state : as in :class:`PrivateFrechetMean`
    classes : the public list of classes; a label outside it is an error
    priors : how frequent each class is where records to be classified are from, in the order of the sorted classes,
        if that is known; as released if left out
    labels_public, refine, invalid : as in :func:`~dpmanifold.private_lda`, for `fit`

    Attributes
    ----------
    discriminant_ : the :class:`~dpmanifold.LinearDiscriminant`, which can be saved, verified and drawn
    release_ : the release that it is computed from
    classes_ : the classes, sorted
    priors_ : the share of the units that each class has, with noise unless labels are public
    means_ : tangent means of the classes, shape (n_classes, *space.shape)
    covariance_ : the covariance within classes, freed of noise, in coordinates at the ball's centre
    n_features_in_ : size of the first axis of a record; `feature_names_in_` as usual where X had column names

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> from dpmanifold.estimators import PrivateLDA
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 3 * y[:, None]
    >>> ball = dpm.Ball(dpm.Euclidean(2), [1.5, 1.5], 6.0, source="the range of the scale")
    >>> budget = dpm.Budget(dpm.GDP(1.0))
    >>> model = PrivateLDA(ball, dpm.GDP(1.0), classes=[0, 1], units="each-record", budget=budget).fit(X, y)
    >>> model.predict([[0.0, 0.0], [3.0, 3.0]])
    array([0, 1])
    >>> model.release_.private, budget.remaining is None
    (True, True)
    """

    _released = "discriminant_"
    discriminant_: LinearDiscriminant

    def __init__(
        self,
        ball: Ball,
        privacy: Promise,
        *,
        classes: Sequence[Any],
        priors: Sequence[float] | None = None,
        labels_public: bool = False,
        refine: bool = False,
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
        self.priors = priors
        self.labels_public = labels_public

    def fit(self, X: object, y: object, units: object = None) -> Self:
        """Release the discriminant and spend the promise.

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
        refuse_fractions(names if self.invalid == "center" else [*names, *plain_labels(labels)])
        found = private_lda(
            records,
            labels,
            self.ball,
            self.privacy,
            classes=names,
            labels_public=self.labels_public,
            refine=self.refine,
            invalid=self.invalid,
            **terms,
        )
        self.classes_ = np.array(names)
        return self._keep(found)

    # ---------------------------------------------------------------- what was released

    @property
    def priors_(self) -> FloatArray:
        """The share of each class, in the order of `classes_`."""
        return self._fitted.priors

    @property
    def means_(self) -> Array:
        """The tangent means of the classes, in the order of `classes_`."""
        return self._fitted.means

    @property
    def covariance_(self) -> FloatArray:
        """The covariance within classes, in coordinates at the ball's centre."""
        return self._fitted.covariance

    # ---------------------------------------------------------------- telling classes

    def _scores(self, X: object) -> FloatArray:
        found = self._fitted
        return found.decision_function(self._points(X, found.ball.space), priors=self.priors)

    def decision_function(self, X: object) -> FloatArray:
        """Return the score of each class, (n, n_classes); of two classes that of the second over the first, (n,)."""
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def predict(self, X: object) -> Array:
        """Return the most probable class, (n,)."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: object) -> FloatArray:
        """Return the probability of each class, (n, n_classes), if classes were normal."""
        found = self._fitted
        return found.predict_proba(self._points(X, found.ball.space), priors=self.priors)


# -------------------------------------------------------------------- principal components


class PrivateComponents(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ResultEstimator[PrincipalComponents]):  # type: ignore[misc]
    """Private principal components as a transformer: coordinates of records along the released directions.

    Every fit is one release under `privacy` and spends it from `budget`. The directions are released; coordinates
    ("scores") of private records are not private, whoever computes them. The module's docstring says what else of a
    pipeline is not.

    Parameters
    ----------
    ball, privacy, refine, units, invalid, budget, key, public_data, confirm, random_state : as in
        :class:`PrivateFrechetMean`; ApproxDP, ZCDP or GDP
    n_components : how many; on a space of fewer dimensions, as many as it has
    level : the confidence of each interval, in (0, 1)

    Attributes
    ----------
    decomposition_ : the :class:`~dpmanifold.PrincipalComponents`, with intervals, to be saved, verified and drawn
    release_ : the release that they are computed from
    components_ : directions in an orthonormal frame at the released mean, (n_components, dim)
    explained_variance_, explained_variance_ratio_ : variances along them, and shares of the total (nan where noise
        hides it)
    n_features_in_ : size of the first axis of a record; `feature_names_in_` as usual where X had column names

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> from dpmanifold.estimators import PrivateComponents
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 3.0, source="textbook")
    >>> X = dpm.SPD(2).random_point(500, rng=0)
    >>> budget = dpm.Budget(dpm.GDP(1.0))
    >>> model = PrivateComponents(ball, dpm.GDP(1.0), n_components=2, units="each-record", budget=budget).fit(X)
    >>> model.components_.shape, model.transform(X).shape, model.release_.private
    ((2, 3), (500, 2), True)
    """

    _released = "decomposition_"
    decomposition_: PrincipalComponents

    def __init__(
        self,
        ball: Ball,
        privacy: Promise,
        *,
        n_components: int = 3,
        level: float = 0.95,
        refine: bool = False,
        units: object = None,
        invalid: str = "raise",
        budget: Budget | Account | None = None,
        key: str | None = None,
        public_data: bool = False,
        confirm: bool = False,
        random_state: object = None,
    ) -> None:
        super().__init__(ball, privacy, refine, units, invalid, budget, key, public_data, confirm, random_state)
        self.n_components = n_components
        self.level = level

    def fit(self, X: object, y: object = None, units: object = None) -> Self:
        """Release the components of records, shape (n, *space.shape), and spend the promise.

        Parameters
        ----------
        X : records, shape (n, *space.shape); a data frame (n, d) for vectors
        y : ignored
        units : one id per record; may be routed, `set_fit_request(units=True)`
        """
        refuse_other_rows(X=X, units=units)
        terms = self._terms(units)
        records = self._records(X, self._space(), fitting=True)
        found = private_pga(
            records, self.ball, self.privacy, count=self.n_components, level=self.level, refine=self.refine,
            invalid=self.invalid, **terms,
        )  # fmt: skip
        return self._keep(found)

    @property
    def components_(self) -> FloatArray:
        """The released directions."""
        return self._fitted.directions

    @property
    def explained_variance_(self) -> FloatArray:
        """Variances along the directions."""
        return self._fitted.variances

    @property
    def explained_variance_ratio_(self) -> FloatArray:
        """Shares of the total variance along the directions."""
        return self._fitted.shares

    @property
    def _n_features_out(self) -> int:
        return self.decomposition_.count

    def transform(self, X: object) -> FloatArray:
        """Return coordinates along the directions, (n, n_components). Of private records: not private."""
        return self._fitted.scores(self._points(X, self._fitted.space))
