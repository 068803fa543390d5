"""What all estimators share: who pays, who owns a record, how records come in, and what a pickle leaves behind."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import BudgetError, InvalidArgumentError, InvalidDataError, MissingPackageError, Public
from dpmanifold.inference import LinearDiscriminant, PrincipalComponents
from dpmanifold.linalg.cards import CardArray, fetched
from dpmanifold.manifolds import Manifold
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Account, Budget, Promise
from dpmanifold.release import Release
from dpmanifold.stats.inputs import EACH_RECORD, checked_flag, is_each_record
from dpmanifold.stats.registered_data import Registered

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as problem:
    raise MissingPackageError(
        'dpmanifold.estimators needs scikit-learn 1.6 or newer: pip install "dpmanifold[sklearn]".'
    ) from problem

R = TypeVar("R", LinearDiscriminant, PrincipalComponents)
_SEEDS = np.iinfo(np.int32).max


class LeftBehind:
    """Stands for a budget that stayed in the process that made it."""

    def __repr__(self) -> str:
        return "a budget that stayed in another process"


class Carried:
    """What pays, inside an estimator's state: copies in this process keep it, and a pickle leaves it behind.

    joblib hides what a budget says when it is pickled. So it is left out, and the fit in the other process says it. An
    account goes with an estimator that is yet to be fitted, and is left out of a fitted one: whoever gets that is to
    predict, and need not know where a ledger is kept.
    """

    def __init__(self, budget: Budget | Account) -> None:
        self.budget = budget

    def __deepcopy__(self, memo: object) -> Carried:
        return self

    def __reduce__(self) -> tuple[type[LeftBehind], tuple[()]]:
        return LeftBehind, ()


def marked_public(release: Release) -> Release:
    """Mark a release of data that were declared public: nobody was protected by it, and no budget paid for it."""
    found = release.value
    if isinstance(found, Ball) and found != release.ball:
        found = replace(found, simulated=True)
    ball = release.ball
    if any(isinstance(step.value, Ball) and step.value == ball != step.ball for step in release.steps):
        ball = replace(ball, simulated=True)
    return replace(
        release, value=found, ball=ball, private=False, steps=tuple(marked_public(step) for step in release.steps)
    )


def _labels(y: Any) -> Any:
    """Return one class per record, each as it is: scikit-learn would give all one type, and print some of them."""
    if y is None:
        raise InvalidArgumentError("y should be a 1d array, one class per record, got None.")
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if getattr(y, "ndim", 1) != 1:
        raise InvalidArgumentError(
            "y should be a 1d array, one class per record, got shape {shape}.", shape=Public(y.shape)
        )
    return y


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What all estimators share: who pays, who owns a record, and how records come in."""

    _released: ClassVar[str] = "release_"  # the attribute that a fit makes
    n_features_in_: int

    def __init__(
        self,
        ball: Ball,
        privacy: Promise,
        refine: bool,
        units: object,
        invalid: str,
        budget: Budget | Account | LeftBehind | None,
        key: str | None,
        public_data: bool,
        confirm: bool,
        random_state: object,
    ) -> None:
        self.ball = ball
        self.privacy = privacy
        self.refine = refine
        self.units = units
        self.invalid = invalid
        self.budget = budget
        self.key = key
        self.public_data = public_data
        self.confirm = confirm
        self.random_state = random_state

    def _terms(self, units: object) -> dict[str, Any]:
        """Return the arguments of a release that say who is protected and who pays, or refuse."""
        if checked_flag(self.public_data, "public_data") and self.budget is not None:
            raise InvalidArgumentError(
                "budget and public_data=True contradict each other: data that may be shown need no budget. Give one."
            )
        if not self.public_data and self.budget is None:
            raise InvalidArgumentError(
                "`budget` must be given: every fit is a release, and scikit-learn fits many times. Give "
                "budget=dpm.Budget(...) or a population of a ledger, or public_data=True for data that may be "
                "shown to anyone."
            )
        if isinstance(self.budget, LeftBehind):
            raise BudgetError(
                "the budget stayed in the process that made it: this estimator was sent to another one (n_jobs above "
                "1), or loaded from a file. Nothing was spent. Use n_jobs=1, or threads: joblib.parallel_config("
                '"threading", n_jobs=2). One that was loaded takes a new budget: set_params(budget=dpm.Budget(...)).'
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
                "`units` must say who owns each record: give fit one id per record, fit(X, ..., units=ids), or "
                'make the estimator with `units="each-record"` if nobody owns two. Protecting a single record of '
                "a person with many protects nobody."
            )
        if given is None:
            raise InvalidArgumentError(
                '`units` must be "each-record" or None in the constructor, got {got}. Ids belong to the records '
                "and are given with them: fit(X, ..., units=ids).",
                got=shown(chosen),
            )
        return given

    def _rng(self) -> Rng:
        """Return what `rng` expects; a RandomState, which scikit-learn passes on, gives a seed."""
        state = self.random_state
        if state is None or isinstance(state, (Integral, np.random.Generator)):
            return state  # type: ignore[return-value]
        return int(check_random_state(state).randint(_SEEDS))

    def _records(self, X: Any, space: Manifold | None, *, y: Any = "no_validation", fitting: bool) -> Any:
        """Return X (and y, if given) as arrays of the width seen before; whether they are points is the space's to say.

        NaN and infinite entries pass here: the space names the record, or `invalid="center"` replaces it. With the
        latter everything but plain numbers passes as it is: scikit-learn would refuse all records for the sake of one,
        and show some of them.
        """
        if isinstance(X, Registered):
            raise InvalidArgumentError(
                "`X` must be records, got registered data, which scikit-learn would have to open before they are "
                "paid for. Use private_mean or private_class_means."
            )
        X = fetched(X, "X") if space is None or not fitting else space.from_card(X)
        plain = isinstance(X, np.ndarray) and X.dtype.kind in "iuf"
        there = isinstance(X, CardArray)  # scikit-learn would fetch it
        if space is not None and fitting and (there or (self.invalid == "center" and not plain)):
            shaped = X if hasattr(X, "columns") else space.origin[None]
            validate_data(self, shaped, skip_check_array=True, reset=True)
            return X if isinstance(y, str) else (X, _labels(y))
        if space is not None and space.dtype.kind == "c" and np.iscomplexobj(X):
            # scikit-learn refuses complex numbers, and pre-shapes are complex: only the width is checked.
            X = validate_data(self, np.asarray(X), skip_check_array=True, reset=fitting)
            return X if isinstance(y, str) else (X, _labels(y))
        if not isinstance(y, str):
            labels = _labels(y)
            records = self._records(X, space, fitting=fitting)
            check_consistent_length(records, labels)
            return records, labels
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
            state["budget"] = Carried(self.budget)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the budget of a copy; a fitted model that was loaded has none."""
        super().__setstate__(state)
        if isinstance(self.budget, Carried):
            self.budget = self.budget.budget
        elif isinstance(self.budget, LeftBehind) and self.__sklearn_is_fitted__():
            self.budget = None

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that was refused leaves n_features_in_ behind, which scikit-learn would take for a fitted model.
        return self._released in vars(self)

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


class ResultEstimator(PrivateEstimator, Generic[R]):
    """An estimator whose fit makes a result with one release."""

    def _keep(self, found: R) -> Self:
        """Keep a result, marked where the data were declared public."""
        marked = replace(found, release=marked_public(found.release)) if self.public_data else found
        setattr(self, self._released, marked)
        return self

    @property
    def _fitted(self) -> R:
        check_is_fitted(self)
        found: R = getattr(self, self._released)
        return found

    @property
    def release_(self) -> Release:
        """The release of the last fit."""
        return self._fitted.release


def refuse_fractions(labels: list[Any]) -> None:
    """Refuse fractions, among names or labels, in the words that scikit-learn expects.

    A look at each label by itself: what scikit-learn itself says depends on all of them, and would tell.
    """
    if not all(label.is_integer() for label in labels if isinstance(label, float) and math.isfinite(label)):
        raise InvalidDataError(
            "Unknown label type: fractions are no classes of a classifier. Give whole numbers or text, as labels and "
            "in classes."
        )


def sorted_names(classes: Any) -> list[Any]:
    """Return the public classes in scikit-learn's order, as plain values; a mixture of kinds has none."""
    if isinstance(classes, str) or np.ndim(classes) != 1 or len({isinstance(name, str) for name in classes}) != 1:
        raise InvalidArgumentError(
            "`classes` must be a list of names, all text or all numbers, got {got}. It is public: do not take "
            "it from private labels.",
            got=shown(classes),
        )
    return sorted(np.asarray(classes).tolist())
