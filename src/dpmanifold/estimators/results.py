"""Estimators whose fit makes a result with one release: a linear discriminant, and principal components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from dpmanifold._cells import plain_labels
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.estimators.base import ResultEstimator, refuse_fractions, sorted_names
from dpmanifold.inference import LinearDiscriminant, PrincipalComponents
from dpmanifold.privacy import Account, Budget, Promise
from dpmanifold.stats.inputs import refuse_other_rows
from dpmanifold.stats.lda import private_lda
from dpmanifold.stats.pga import private_pga


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
