"""Everything that can be asked over the network: the private calls of the house, and what each needs of the data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.release import EXACT
from dpmanifold.service.options import Option, options_of
from dpmanifold.statistic import STATISTICS, Statistic
from dpmanifold.stats import (
    private_ball,
    private_classes,
    private_components,
    private_groups,
    private_interval,
    private_mean,
    private_means,
    private_median,
    private_region,
    private_regression,
    private_statistic,
    private_test,
    private_variance,
)
from dpmanifold.stats.registered import Registered
from dpmanifold.stats.registering import PRIVATE
from dpmanifold.stats.requests import names_in

Answer = Any
"""A Result; of means by class a dict of releases."""
Planned = tuple[Any, dict[str, Any]]
"""What :func:`dpmanifold.plan` is asked about registered data: the number of units, and options."""

CLASSES, COVARIATE = "classes", "covariate"
_ALL, _TWO = ("frechet", "tangent", "extrinsic"), ("frechet", "tangent")
# What a plan is told of the options; the rest makes no difference to it.
_PLANNED = ("estimand", "refine", "shape", "coverage", "count")


def _of_all(X: Registered) -> Planned:
    return X.n, {}


def _of_each_class(X: Registered) -> Planned:
    return list(X.facts["units by class"]), {}


def _of_smallest_class(X: Registered) -> Planned:
    return min(X.facts["units by class"]), {}


def _of_classes(X: Registered) -> Planned:
    public = {"labels_public": True} if labels_public(X.facts) else {}
    return X.n, {"classes": len(classes_of(X.facts) or ()), **public}


def _of_covariate(X: Registered) -> Planned:
    return X.n, {"covariate_public": True} if X.covariate is not None and X.covariate.public else {}


def _any(X: Registered) -> bool:
    return True


def _with_classes(X: Registered) -> bool:
    return classes_of(X.facts) is not None


def _with_public_classes(X: Registered) -> bool:
    return _with_classes(X) and labels_public(X.facts)


def _with_groups(X: Registered) -> bool:
    """Whether there are classes, and nobody is in two of them."""
    return _with_public_classes(X) and len(classes_of(X.facts) or ()) > 1 and X.facts.get("touched", 1) == 1


def _with_two_groups(X: Registered) -> bool:
    return _with_groups(X) and len(classes_of(X.facts) or ()) == 2


def _with_covariate(X: Registered) -> bool:
    return X.covariate is not None


@final
@dataclass(frozen=True)
class Asked:
    """A statistic that can be asked for.

    Attributes
    ----------
    name : in questions
    title : in words
    function : the private call
    fits : tells whether registered data can be asked about so
    counted : gives what a plan is asked about the data
    beside : what the call takes in the second place, and registered data bring: "classes", "covariate" or nothing
    estimands : which means it knows, where it has that option
    plan_as : by which name it is planned, where that is another one
    tells_needs : whether it can be told what an expected error takes
    squares : whether it draws a number for each pair of dimensions, and not for each dimension
    passes : how much longer than a mean it takes to go through the records
    statistic : of a statistic without a call of its own, its name
    """

    name: str
    title: str
    function: Callable[..., Answer]
    fits: Callable[[Registered], bool] = _any
    counted: Callable[[Registered], Planned] = _of_all
    beside: str = ""
    estimands: tuple[str, ...] = ()
    plan_as: str = ""
    tells_needs: bool = False
    squares: bool = True
    passes: float = 1.0
    statistic: str | None = None

    @property
    def options(self) -> tuple[Option, ...]:
        """What can be chosen."""
        return () if self.statistic is not None else options_of(self.function, self.estimands)

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return options that differ from what is meant anyway, or refuse."""
        known = {option.name: option for option in self.options}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InvalidArgumentError(
                f"{self.name} takes the options {', '.join(known) or '(none)'}, got {', '.join(map(shown, unknown))}."
            )
        found = {name: known[name].checked(value) for name, value in given.items()}
        return {name: value for name, value in found.items() if value != known[name].default}

    def call(self, X: Registered, *about: Any, options: Mapping[str, Any], terms: Mapping[str, Any]) -> Answer:
        """Make the private call.

        Parameters
        ----------
        X : the registered data
        about : ball and promise
        options : as :meth:`checked` returns them; `about` is a Release by now
        terms : who pays (`budget`, `key`), and who is told
        """
        # Whoever asks reads every digit: what cannot be drawn exactly is refused before it is paid for.
        given = {**options, "arithmetic": EXACT}
        if self.statistic is not None:
            given["statistic"] = self.statistic
        if self.beside == CLASSES:
            given["classes"] = classes_of(X.facts)
            if "labels_public" in inspect.signature(self.function).parameters:
                given["labels_public"] = labels_public(X.facts)
        if self.beside == COVARIATE:
            assert X.covariate is not None  # or this cannot be asked of the data
            given |= {"covariate_range": None, "covariate_public": X.covariate.public}
        first = (X, None) if self.beside else (X,)
        return self.function(*first, *about, units=None, **given, **terms)

    def parts(self, X: Registered) -> int:
        """Return of how many groups of units it draws something."""
        return len(classes_of(X.facts) or ()) if self.beside == CLASSES else 1

    def planned(self, options: Mapping[str, Any], X: Registered) -> Planned:
        """Return what a plan is asked."""
        number, known = self.counted(X)
        return number, {**{name: options[name] for name in _PLANNED if name in options}, **known}


def classes_of(facts: Mapping[str, Any]) -> list[Any] | None:
    """Return the classes that are registered; None where there are none."""
    return names_in(facts["classes"]) if "classes" in facts else None


def labels_public(facts: Mapping[str, Any]) -> bool:
    """Return whether anybody may know who is in which class."""
    return facts.get("labels") != PRIVATE


_CALLS = (
    Asked("mean", "Mean", private_mean, estimands=_ALL, tells_needs=True, squares=False),
    Asked("median", "Median", private_median, squares=False, passes=2.0),
    Asked("region", "Mean with a confidence region", private_region, estimands=_TWO),
    Asked("variance", "Fréchet variance", private_variance, squares=False),
    Asked("interval", "Variance with a confidence interval", private_interval),
    Asked("components", "Principal components", private_components, passes=2.0),
    Asked("ball", "A smaller ball", private_ball, squares=False),
    Asked("means", "Mean of each class", private_means, _with_public_classes, _of_smallest_class, CLASSES, _ALL,
          plan_as="mean", squares=False),
    Asked("test", "Test of two groups", private_test, _with_two_groups, _of_each_class, CLASSES, _TWO, passes=1.5),
    Asked("groups", "Test of several groups", private_groups, _with_groups, _of_each_class, CLASSES, _TWO, passes=1.5),
    Asked("classes", "Linear discriminant of classes", private_classes, _with_classes, _of_classes, CLASSES),
    Asked("regression", "Geodesic regression", private_regression, _with_covariate, _of_covariate, COVARIATE,
          passes=3.0),
)  # fmt: skip


def askable() -> dict[str, Asked]:
    """Return all that can be asked for, by name: the calls of the house, and every other registered statistic."""
    found = {one.name: one for one in _CALLS}
    for one in STATISTICS:
        if one.name not in found and _by_itself(one):
            title = one.words[0].upper() + one.words[1:]
            found[one.name] = Asked(one.name, title, private_statistic, statistic=one.name)
    return found


def listed(asked: Asked) -> bool:
    """Return whether people are offered it: all but the parts that larger questions are made of."""
    if asked.statistic is None:
        return True
    return not type(STATISTICS.find(asked.statistic)).__module__.startswith("dpmanifold.")


def _by_itself(statistic: Statistic) -> bool:
    """Return whether a statistic can be asked for without options that only a larger question knows."""
    taken = list(inspect.signature(statistic.prepared).parameters.values())[1:]
    return all(p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in taken)


def asked_named(name: object) -> Asked:
    """Return what can be asked for under a name, or say what there is."""
    known = askable()
    if not isinstance(name, str) or name not in known:
        raise InvalidArgumentError(f"`statistic` must be one of {', '.join(known)}, got {shown(name)}.")
    return known[name]
