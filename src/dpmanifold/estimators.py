"""scikit-learn adapters: a private mean and a private minimum-distance classifier for pipelines and cross-validation.

They add nothing to what `private_mean` and `private_means` promise; they carry it through scikit-learn's tools, which
fit the same records again and again. Every `fit` is a release of its own, so every estimator spends from one
:class:`~dpmanifold.Budget`, or from one account of a ledger: `clone`, `get_params` and `set_params` hand on the very
same object, and once it is spent `fit` raises :class:`~dpmanifold.BudgetError`.

What is not private, whatever the budget:

- **Scores, predictions for training records and `fit_transform`.** Only releases are protected. `score`,
  `cross_val_score`, `GridSearchCV.best_params_` and distances of private records are computed from the records.
- **Steps in front that learn from the records**: a scaler, PCA, pyRiemann's `TangentSpace`, `Whitening`, CSP or Xdawn.
  What they learnt leaks, and the ball after them is no longer public. Steps that treat each record by itself are safe:
  pyRiemann's `Covariances` works trial by trial.
- **Steps behind that learn**, such as a regression on tangent coordinates: they see transformed records, not releases.

scikit-learn's searches catch what `fit` raises and write `nan` for the score. Give `cross_val_score`, `GridSearchCV`
and the like `error_score="raise"`, so that a spent budget stops them. A search fits once per candidate and fold, and
with `refit=True` once more. Processes cannot share a Budget, so that `n_jobs=2` by itself is refused when it fits: use
`n_jobs=1`, or threads, `with joblib.parallel_config("threading", n_jobs=2)`. An account of a ledger is one and the same
in all processes: it goes with the estimator, and may be pickled.

`key` names one request: one fit, on one data set, with one set of parameters. Fitted again on the same records, the
estimator takes the release that is stored and pays nothing. Clones keep the key, so that a search or a cross-validation
with a key is refused at its second fit, which is another request: leave the key out there, and every fit is paid for by
itself under a random one.

This module needs scikit-learn; `import dpmanifold` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import BudgetError, InvalidArgumentError, MissingPackageError
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms import get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Account, Budget, Promise
from dpmanifold.release import Release
from dpmanifold.stats.inputs import EACH_RECORD, checked_flag, is_each_record
from dpmanifold.stats.means import private_mean, private_means
from dpmanifold.stats.registered import Registered

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as problem:
    raise MissingPackageError(
        'dpmanifold.estimators needs scikit-learn 1.6 or newer: pip install "dpmanifold[sklearn]".'
    ) from problem

_OUTPUTS = ("distances", "tangent")
_SEEDS = np.iinfo(np.int32).max


class _LeftBehind:
    """Stands for a budget that stayed in the process that made it."""

    def __repr__(self) -> str:
        return "a budget that stayed in another process"


class _Carried:
    """What pays, inside an estimator's state: copies in this process keep it, and a pickle leaves it behind.

    joblib hides what a budget says when it is pickled. So it is left out, and the fit in the other process says it. An
    account goes with an estimator that is yet to be fitted, and is left out of a fitted one: whoever gets that is to
    predict, and need not know where a ledger is kept.
    """

    def __init__(self, budget: Budget | Account) -> None:
        self.budget = budget

    def __deepcopy__(self, memo: object) -> _Carried:
        return self

    def __reduce__(self) -> tuple[type[_LeftBehind], tuple[()]]:
        return _LeftBehind, ()


def _marked_public(release: Release) -> Release:
    """Mark a release of data that were declared public: nobody was protected by it, and no budget paid for it."""
    found = release.value
    if isinstance(found, Ball) and found != release.ball:
        found = replace(found, simulated=True)
    ball = release.ball
    if any(isinstance(step.value, Ball) and step.value == ball != step.ball for step in release.steps):
        ball = replace(ball, simulated=True)
    return replace(
        release, value=found, ball=ball, private=False, steps=tuple(_marked_public(step) for step in release.steps)
    )


class _PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What the two estimators share: who pays, who owns a record, and how records come in."""

    ball: Ball
    mechanism: str
    invalid: str
    units: object
    budget: Budget | Account | _LeftBehind | None
    key: str | None
    public_data: bool
    confirm: bool
    random_state: object
    n_features_in_: int

    def _terms(self, units: object) -> dict[str, Any]:
        """Return the arguments of a release that say who is protected and who pays, or refuse."""
        if checked_flag(self.public_data, "public_data") and self.budget is not None:
            raise InvalidArgumentError(
                "budget and public_data=True contradict each other: data that may be shown need no budget. Give one."
            )
        if not self.public_data and self.budget is None:
            raise InvalidArgumentError(
                "budget must be given: every fit is a release, and scikit-learn fits many times. Give "
                "budget=dpm.Budget(...) or a population of a ledger, or public_data=True for data that may be shown to "
                "anyone."
            )
        if isinstance(self.budget, _LeftBehind):
            raise BudgetError(
                "the budget stayed in the process that made it: this estimator was sent to another one (n_jobs above "
                "1), or loaded from a file. Nothing was spent. Use n_jobs=1, or threads: joblib.parallel_config("
                '"threading", n_jobs=2). One that was loaded takes a new budget: set_params(budget=dpm.Budget(...)).'
            )
        if self.mechanism != "auto" and get(self.mechanism).baseline:
            raise InvalidArgumentError(
                f'mechanism "{self.mechanism}" is a baseline whose mean need not be a point: it has no distances.'
            )
        if self.mechanism != "auto" and get(self.mechanism).estimand != FRECHET:
            raise InvalidArgumentError(
                f'mechanism "{self.mechanism}" hides a mean that is not the Fréchet mean, which is what estimators '
                "release. Use private_mean for it."
            )
        return {
            "units": self._owners(units),
            "confirm": self.confirm,
            "budget": self.budget,
            "key": self.key,
            "rng": self._rng(),
        }

    def _owners(self, given: object) -> object:
        chosen = self.units if given is None else given
        if is_each_record(chosen):
            return EACH_RECORD
        if chosen is None:
            raise InvalidArgumentError(
                "units must say who owns each record: give fit one id per record, fit(X, ..., units=ids), or make the "
                'estimator with units="each-record" if nobody owns two. Protecting a single record of a person with '
                "many protects nobody."
            )
        if given is None:
            raise InvalidArgumentError(
                f'units must be "each-record" or None in the constructor, got {shown(chosen)}. Ids belong to the '
                "records and are given with them: fit(X, ..., units=ids)."
            )
        return given

    def _rng(self) -> Rng:
        """Return what `rng` expects; a RandomState, which scikit-learn passes on, gives a seed."""
        state = self.random_state
        if state is None or isinstance(state, (Integral, np.random.Generator)):
            return state  # type: ignore[return-value]
        return int(check_random_state(state).randint(_SEEDS))

    def _records(self, X: Any, space: Manifold | None, *, y: object = "no_validation", fitting: bool) -> Any:
        """Return X (and y, if given) as arrays of the width seen before; whether they are points is the space's to say.

        NaN and infinite entries pass here: the space names the record, or `invalid="center"` replaces it. With the
        latter everything but plain numbers passes as it is: scikit-learn would refuse all records for the sake of one,
        and show some of them.
        """
        if isinstance(X, Registered):
            raise InvalidArgumentError(
                "X must be records, got registered data, which scikit-learn would have to open before they are paid "
                "for. Use private_mean or private_means."
            )
        plain = isinstance(X, np.ndarray) and X.dtype.kind in "iuf"
        if space is not None and fitting and self.invalid == "center" and not plain:
            shaped = X if hasattr(X, "columns") else space.origin[None]
            validate_data(self, shaped, skip_check_array=True, reset=True)
            return X if isinstance(y, str) else (X, validate_data(self, y=y, reset=False))
        if space is not None and space.dtype.kind == "c" and np.iscomplexobj(X):
            # scikit-learn refuses complex numbers, and pre-shapes are complex: only the width is checked.
            X = validate_data(self, np.asarray(X), skip_check_array=True, reset=fitting)
            return X if isinstance(y, str) else (X, validate_data(self, y=y, reset=False))
        return validate_data(
            self,
            X,
            y,
            reset=fitting,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=2 if fitting else 1,
        )

    def _points(self, X: object, space: Manifold) -> Array:
        """Return records to transform or classify as points, or refuse."""
        return space.as_points(self._records(X, space, fitting=False), "X", batch=True)

    def _space(self) -> Manifold | None:
        """Return the space of the ball, if it is one: the release refuses anything else."""
        return self.ball.space if isinstance(self.ball, Ball) else None

    def __getstate__(self) -> dict[str, Any]:
        """Leave a budget behind when the estimator is pickled: what is loaded predicts, and cannot be fitted."""
        state = dict(super().__getstate__())
        stays = isinstance(self.budget, Budget)
        if isinstance(self.budget, (Budget, Account)) and (stays or self.__sklearn_is_fitted__()):
            state["budget"] = _Carried(self.budget)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the budget of a copy; a fitted model that was loaded has none."""
        super().__setstate__(state)
        if isinstance(self.budget, _Carried):
            self.budget = self.budget.budget
        elif isinstance(self.budget, _LeftBehind) and self.__sklearn_is_fitted__():
            self.budget = None

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that was refused leaves n_features_in_ behind, which scikit-learn would take for a fitted model.
        return "release_" in vars(self) or "releases_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        space = self._space()
        tables = space is not None and len(space.shape) == 2
        landmarks = space is not None and space.dtype.kind == "c"
        tags.input_tags.three_d_array = tables or landmarks
        tags.input_tags.two_d_array = not tables
        # With random_state=None the noise differs from fit to fit, as it must.
        tags.non_deterministic = self.random_state is None
        return tags


class PrivateFrechetMean(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _PrivateEstimator):  # type: ignore[misc]
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
        self.ball = ball
        self.privacy = privacy
        self.mechanism = mechanism
        self.refine = refine
        self.shape = shape
        self.output = output
        self.units = units
        self.invalid = invalid
        self.budget = budget
        self.key = key
        self.public_data = public_data
        self.confirm = confirm
        self.random_state = random_state

    def fit(self, X: object, y: object = None, units: object = None) -> Self:
        """Release the mean of records, shape (n, *space.shape), and spend the promise.

        Parameters
        ----------
        X : records, shape (n, *space.shape); a data frame (n, d) for vectors
        y : ignored
        units : one id per record; may be routed, `set_fit_request(units=True)`
        """
        terms = self._terms(units)
        if self.output not in _OUTPUTS:
            raise InvalidArgumentError(f'output must be "distances" or "tangent", got {shown(self.output)}.')
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
        self.release_ = _marked_public(release) if self.public_data else release
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


class PrivateMDM(ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _PrivateEstimator):  # type: ignore[misc]
    """Classify by the nearest private class mean: pyRiemann's `MDM` with private means.

    Every fit is one call of :func:`~dpmanifold.private_means` under `privacy`, all classes together, and spends it from
    `budget`. Labels are public, and so is which unit is in which class. The module's docstring says what of a pipeline
    is not private: scores, predictions for private records, and steps in front that learn from them.

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
    PureDP(epsilon=2.0). Nothing was spent. Ask for less, or plan with a larger budget.
    """

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
        self.ball = ball
        self.privacy = privacy
        self.classes = classes
        self.mechanism = mechanism
        self.refine = refine
        self.shape = shape
        self.units = units
        self.invalid = invalid
        self.budget = budget
        self.key = key
        self.public_data = public_data
        self.confirm = confirm
        self.random_state = random_state

    def fit(self, X: object, y: object, units: object = None) -> Self:
        """Release one mean per class and spend the promise once.

        Parameters
        ----------
        X : records, shape (n, *space.shape); a data frame (n, d) for vectors
        y : one class per record
        units : one id per record; may be routed, `set_fit_request(units=True)`
        """
        terms = self._terms(units)
        names = self._class_names()
        records, labels = self._records(X, self._space(), y=y, fitting=True)
        check_classification_targets(labels)
        releases = private_means(
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
        marked = _marked_public if self.public_data else lambda release: release
        self.releases_ = {name: marked(release) for name, release in releases.items()}
        self.classes_ = np.array(names)
        return self

    def _class_names(self) -> list[Any]:
        """Return the public classes in scikit-learn's order, as plain values; a mixture of kinds has none."""
        given = self.classes
        if isinstance(given, str) or np.ndim(given) != 1 or len({isinstance(name, str) for name in given}) != 1:
            raise InvalidArgumentError(
                f"classes must be a list of names, all text or all numbers, got {shown(given)}. It is public: do not "
                "take it from private labels."
            )
        return sorted(np.asarray(given).tolist())

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


__all__ = ["PrivateFrechetMean", "PrivateMDM"]
