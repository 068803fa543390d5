"""What can be asked from afar: the private calls by name, with those of their options that are not about records.

One table says which; methods of clients and commands of `dpm remote` are made from it and from the signatures of the
calls, so that a word means the same here and there.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar, overload

import numpy as np

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import Components, Discriminant, GroupsTest, Interval, Region, Regression, TwoSampleTest
from dpmanifold.mechanisms import Mechanism
from dpmanifold.privacy import Promise
from dpmanifold.privacy.promises import as_promise
from dpmanifold.release import Release
from dpmanifold.remote.pending import Pending
from dpmanifold.statistic import statistic_named
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

R_co = TypeVar("R_co", covariant=True)

CALLS: dict[str, tuple[Callable[..., Any], type[Any]]] = {
    "mean": (private_mean, Release),
    "median": (private_median, Release),
    "variance": (private_variance, Release),
    "ball": (private_ball, Release),
    "components": (private_components, Components),
    "region": (private_region, Region),
    "interval": (private_interval, Interval),
    "means": (private_means, dict),
    "test": (private_test, TwoSampleTest),
    "groups": (private_groups, GroupsTest),
    "classes": (private_classes, Discriminant),
    "regression": (private_regression, Regression),
}
"""The private calls, and what they return; whatever else is registered returns a Release."""
OFFERED = ("estimand", "mechanism", "refine", "shape", "shrink", "level", "coverage", "count", "about")
"""Options that can be said over the network; all others are about records, and whoever registered those said them."""

BallGiven = Ball | Release | Pending[Any] | str | None


class Call(Protocol[R_co]):
    """A private call of a client: it returns what the library's own call returns, or a handle where nobody waits."""

    @overload
    def __call__(
        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,
        wait: Literal[True] = ..., timeout: float | None = ..., **options: Any,
    ) -> R_co: ...  # fmt: skip

    @overload
    def __call__(
        self, dataset: str, privacy: Promise, *, wait: Literal[False], ball: BallGiven = ..., key: str | None = ...,
        timeout: float | None = ..., **options: Any,
    ) -> Pending[R_co]: ...  # fmt: skip


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the options of a call that can be said over the network, as its signature has them.

    Examples
    --------
    >>> [option.name for option in options_of("region").values()]
    ['level', 'estimand', 'refine']
    """
    taken = inspect.signature(CALLS[name][0]).parameters if name in CALLS else {}
    return {option: parameter for option, parameter in taken.items() if option in OFFERED}


def kind_of(name: str) -> type[Any]:
    """Return what a call by this name returns: a class of results, or dict."""
    return CALLS[name][1] if name in CALLS else Release


def checked_name(name: object) -> str:
    """Return the name of what can be asked and read here, or say what there is."""
    return name if isinstance(name, str) and name in CALLS else statistic_named(name).name


def promise_record(privacy: Promise) -> dict[str, Any]:
    """Return a promise for a question: exact, text where it was typed as text.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> promise_record(GDP("0.3"))
    {'kind': 'GDP', 'mu': '0.3'}
    """
    return {"kind": type(as_promise(privacy)).__name__, **privacy.stated}


def options_record(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a question: those that are not what is meant anyway.

    Examples
    --------
    >>> options_record("region", {"level": 0.9, "refine": False})
    {'level': 0.9}
    """
    known = options_of(name)
    unknown = [word for word in given if word not in known]
    if unknown:
        raise InvalidArgumentError(
            f"{name} takes the options {', '.join(known) or '(none)'} over the network, got {', '.join(unknown)}. What "
            "is about records (units, labels, invalid) was said when they were registered."
        )
    found = {word: _plain(word, value) for word, value in given.items()}
    return {word: value for word, value in found.items() if value != known[word].default}


def _plain(name: str, value: Any) -> Any:
    """Return an option as JSON has it."""
    if isinstance(value, Mechanism):
        return value.name
    plain = value.item() if isinstance(value, np.generic) else value
    endless = isinstance(plain, float) and not math.isfinite(plain)
    if endless or not (plain is None or isinstance(plain, (bool, int, float, str))):
        raise InvalidArgumentError(f"{name} must be text or a number over the network, got {shown(value)}.")
    return plain


def asking(name: str) -> Any:
    """Return the method of a client for a call of the library: the data set's name comes where records would."""
    call = CALLS[name][0]

    def method(
        self: Any, dataset: str, privacy: Promise, *, ball: BallGiven = None, key: str | None = None, wait: bool = True,
        timeout: float | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        return self.ask(name, dataset, privacy, ball=ball, key=key, wait=wait, timeout=timeout, **options)

    first = list(inspect.signature(method).parameters.values())[:-1]
    own = [p.replace(annotation=inspect.Parameter.empty) for p in options_of(name).values()]
    method.__signature__ = inspect.Signature([*first, *own])  # type: ignore[attr-defined]
    method.__name__, method.__qualname__ = name, f"Client.{name}"
    method.__doc__ = (
        f"{(call.__doc__ or '').partition(chr(10))[0]}\n\n    As :func:`dpmanifold.{call.__name__}`, of registered "
        "data; :meth:`Client.ask` says what all calls share.\n"
    )
    return method


def asking_by_name() -> Any:
    """Return the method of a client for statistics by name, those of other distributions included."""

    def statistic(
        self: Any, dataset: str, privacy: Promise, *, statistic: str, ball: BallGiven = None, key: str | None = None,
        wait: bool = True, timeout: float | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        name = checked_name(statistic)
        return self.ask(name, dataset, privacy, ball=ball, key=key, wait=wait, timeout=timeout, **options)

    statistic.__qualname__, statistic.__doc__ = "Client.statistic", private_statistic.__doc__.partition("\n")[0]  # type: ignore[union-attr]
    return statistic
