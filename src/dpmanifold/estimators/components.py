"""Private principal components as a transformer."""

from __future__ import annotations

from typing import Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.estimators.base import ResultEstimator
from dpmanifold.inference import PrincipalComponents
from dpmanifold.privacy import Account, Budget, Promise
from dpmanifold.stats.inputs import refuse_other_rows
from dpmanifold.stats.pga import private_pga


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
