"""What users ask: every query once, with its sample, plan, result, options and figure.

Plans, the command line, clients, services, ledgers, figures and the reference pages are made from this table. Another
distribution adds a query by an entry point in the group `dpmanifold.queries`, a script by `QUERIES.register`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.registry import Registry, is_own, is_own_function
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Statistic
from dpmanifold.stats.registered_data import Registered
from dpmanifold.stats.requests import Question, asked
from dpmanifold.stats.samples import Sample, Units

RESERVED = (
    "account", "ask", "audit", "check", "close", "dataset", "datasets", "demo", "descriptors", "fetch", "history",
    "ledger", "login", "mechanisms", "plan", "predict", "price", "release", "releases", "remote", "reproduce",
    "sensitivity", "service", "show", "spaces", "statistic", "statistics", "url", "verify",
)  # fmt: skip
"""Names of commands and of what clients have, which no query may take."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LARGEST = 10**9
"""Of numbers that are chosen: none has a use for more, and whatever is computed from one is finite."""


KINDS = ("choice", "flag", "number", "fraction", "whole", "shape", "release")


@dataclass(frozen=True)
class Option:
    """An option of a query, for the command line, clients and forms.

    Attributes
    ----------
    name : the keyword of the private call
    kind : "choice", "flag", "number", "fraction" (between 0 and 1), "whole", "shape" (of the noise) or "release" (a
        release, or its id)
    label : a few words, for forms
    help : one or two sentences
    choices : the values of a choice, or a function that returns them
    default : what is meant where it is left out; a query takes it from the signature of its call
    planned : whether it makes a difference to what can be said beforehand
    advanced : whether few need it
    """

    name: str
    kind: str
    label: str
    help: str
    choices: tuple[Any, ...] | Callable[[], tuple[Any, ...]] = ()
    default: Any = None
    planned: bool = True
    advanced: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidArgumentError(f"kind of option {self.name!r} must be one of {', '.join(KINDS)}.")
        if not callable(self.choices):
            object.__setattr__(self, "choices", tuple(self.choices))

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of a choice."""
        return self.choices() if callable(self.choices) else self.choices

    def checked(self, value: object) -> Any:
        """Return a value that can be sent over a network, or say what this option takes."""
        good = {
            "choice": isinstance(value, (str, int, type(None))) and value in self.values,
            "flag": isinstance(value, bool),
            "number": isinstance(value, (int, float)) and _is_bounded(value),
            "fraction": isinstance(value, (int, float)) and _is_bounded(value) and 0 < value <= 1,
            "whole": isinstance(value, int) and _is_bounded(value),
            "shape": value is None or (isinstance(value, str) and value in self.values),
            "release": value is None or isinstance(value, str),
        }[self.kind]
        if not good:
            wanted = f"one of {', '.join(map(str, self.values))}" if self.values else _WANTED[self.kind]
            raise InvalidArgumentError(f"{self.name} must be {wanted}, got {shown(value)}.")
        return float(value) if self.kind in ("number", "fraction") else value  # type: ignore[arg-type]


def _is_bounded(value: float) -> bool:
    """Return whether a number is one that can be chosen; NaN is not, and neither are true and false."""
    return not isinstance(value, bool) and -LARGEST <= value <= LARGEST


_WANTED = {
    "flag": "true or false",
    "number": f"a number of at most {LARGEST}",
    "fraction": "a number between 0 and 1",
    "whole": f"a whole number of at most {LARGEST}",
    "release": "the id of a release",
}


def _mechanisms() -> tuple[str, ...]:
    """Return the mechanisms for somebody who sees results alone: their steps do not depend on the data."""
    return ("auto", *(one.name for one in MECHANISMS if not one.baseline and one.covers_timing))


ESTIMAND = Option(
    "estimand", "choice", "Which mean",
    "The mean that is meant: frechet (the default), tangent (of coordinates at the ball's center: less noise on "
    "spheres and shapes), or extrinsic (mean direction, Procrustes mean).",
    (None, "frechet", "tangent", "extrinsic"),
)  # fmt: skip
ESTIMAND_OF_INFERENCE = replace(
    ESTIMAND,
    help="The mean that is meant: frechet (the default), or tangent (of coordinates at the ball's center), which takes "
    "one draw on every space.",
    choices=(None, "frechet", "tangent"),
)
MECHANISM = Option(
    "mechanism",
    "choice",
    "Mechanism",
    "How noise is drawn: auto, or a name from dpm mechanisms.",
    _mechanisms,
    planned=False,
)
REFINE = Option(
    "refine", "flag", "Look for a smaller ball first",
    "Spend a tenth (pure) or a fifth of the promise on a smaller ball first; skipped where useless.",
)  # fmt: skip
LEVEL = Option(
    "level", "fraction", "Confidence", "Confidence of regions, intervals and bands, between 0 and 1.", planned=False
)


@dataclass(frozen=True)
class Query:
    """A question that users ask.

    Attributes
    ----------
    name : on the command line and in requests; the private call is named like it
    title : in words
    call : the private call; its signature has the defaults of the options
    sample : the records that it takes
    plan : returns the plan, given a header, what the sample knows and the options
    result : the class that the call returns; dict for one release per class
    options : what can be chosen
    releases : of which statistics the releases in the result may be
    figure : "module:function" that draws the result; empty where releases are drawn by their statistics
    views : what the result can be written as besides JSON and a report: "npy", "picture" and "links"
    compare : returns a plan that compares mechanisms, given a header and options; or None, as where one is named
    draws : reads the draws off a plan by which its worth can be told; None where that is not known
    plan_as : the query by which it is planned, where each class is answered by one of its own
    tells_needs : whether it can be told what an expected error takes
    squares : whether it draws a number for each pair of dimensions, and not for each dimension
    passes : how much longer than a mean it takes to go through the records
    """

    name: str
    title: str
    call: Callable[..., Any]
    sample: type[Sample[Any]]
    plan: Callable[..., Any]
    result: type[Any] = Release
    options: tuple[Option, ...] = ()
    releases: tuple[str, ...] = ()
    figure: str = ""
    views: tuple[str, ...] = ("picture",)
    compare: Callable[..., Any] | None = None
    draws: Callable[[Any], Sequence[Any]] | None = None
    plan_as: str = ""
    tells_needs: bool = False
    squares: bool = True
    passes: float = 1.0

    def __post_init__(self) -> None:
        taken = inspect.signature(self.call).parameters
        strangers = [option.name for option in self.options if option.name not in taken]
        if strangers:
            raise InvalidArgumentError(f"options of {self.name} must be keywords of its call, got {strangers[0]!r}.")
        options = tuple(replace(option, default=taken[option.name].default) for option in self.options)
        object.__setattr__(self, "options", options)

    @cached_property
    def is_own(self) -> bool:
        """Whether it is the library's own."""
        return all(is_own_function(getattr(one, "__func__", one)) for one in (self.call, self.plan))

    @cached_property
    def asked(self) -> Callable[..., Question[Any]]:
        """Returns the question with some options, given by keyword, as a private call asks it."""
        if self.is_own:  # of others nobody knows what they mean by a word
            return partial(asked, self.name, self.plan, frozenset(option.name for option in self.options))
        if self.name in STATISTICS and self.plan != STATISTICS.get(self.name).prepared:
            raise InvalidArgumentError(f"the query and the statistic {self.name!r} have one name and are not the same.")
        return partial(asked, self.name, self.plan, frozenset())

    @property
    def needed(self) -> list[str]:
        """The keywords besides the header that its plan cannot do without."""
        taken = list(inspect.signature(self.plan).parameters.values())[1:]
        return [p.name for p in taken if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    # ---------------------------------------------------------------- from afar

    @property
    def defaults(self) -> dict[str, Any]:
        """What is meant by options that are left out."""
        return {option.name: option.default for option in self.options}

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return options that differ from what is meant anyway, or refuse: for questions from afar."""
        if self.needed and self.sample is Units:
            raise InvalidArgumentError(f"{self.name} needs {', '.join(self.needed)}, which no network carries.")
        known = {option.name: option for option in self.options}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InvalidArgumentError(
                f"{self.name} takes the options {', '.join(known) or '(none)'}, got {', '.join(map(shown, unknown))}. "
                "What is about records (units, labels, invalid) was said when they were registered."
            )
        found = {name: known[name].checked(value) for name, value in given.items()}
        return {name: value for name, value in found.items() if value != known[name].default}

    def of_registered(self, X: Registered, *about: Any, **terms: Any) -> Any:
        """Make the private call about registered data.

        Parameters
        ----------
        X : the data
        about : ball and promise
        terms : options, and who pays
        """
        before, given = self.sample.given(X)
        return self.call(*before, *about, units=None, **given, **terms)

    def planned(self, X: Registered, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return what a plan of registered data is told: numbers of units, and options."""
        n, known = self.sample.planned(X)
        told = {option.name for option in self.options if option.planned}
        return n, {**{name: value for name, value in options.items() if name in told}, **known}

    def parts(self, X: Registered) -> int:
        """Return of how many groups of units it draws something."""
        return len(X.classes or ()) if self.sample.brings == "classes" else 1


class _Queries(Registry[Query]):
    """Queries by names that commands and methods of clients can have."""

    def _check(self, name: object, item: object) -> None:
        super()._check(name, item)
        if not _NAME.fullmatch(str(name)) or name in RESERVED:
            raise InvalidArgumentError(
                f"name of a query must be small letters, digits and hyphens, and none of {', '.join(RESERVED)}, got "
                f"{shown(name)}."
            )


QUERIES = _Queries("query", "dpmanifold.queries", Query, is_own=lambda query: query.is_own)
"""All queries by name."""


def import_queries() -> None:
    """Import the queries of other distributions, and with them their classes of results."""
    QUERIES.names()


def offered() -> list[Query]:
    """Return what people are offered: the queries, and others' statistics that can be released by themselves.

    The library's own are parts that its queries are made of.
    """
    found = list(QUERIES)
    known = {statistic for query in found for statistic in query.releases}
    others = [one for one in STATISTICS if not is_own(one) and one.name not in known and _by_itself(one)]
    return [*found, *map(of_statistic, others)]


def find_query(name: object) -> Query | None:
    """Return what can be asked for under a name, or None."""
    found = QUERIES.find(name)
    if found is None and isinstance(name, str):
        statistic = STATISTICS.find(name) or STATISTICS.find(name.replace("-", " "))
        found = None if statistic is None else of_statistic(statistic)
    return found


def query_named(name: object) -> Query:
    """Return what can be asked for under a name, or say what there is.

    Examples
    --------
    >>> query_named("pga").title, query_named("second moment").releases
    ('Principal geodesic analysis', ('second moment',))
    """
    found = find_query(name)
    if found is None:
        able = ", ".join(dict.fromkeys([*QUERIES.names(), *STATISTICS.names()]))
        raise InvalidArgumentError("`statistic` must be one of {able}, got {got}.", able=Public(able), got=shown(name))
    return found


def of_statistic(statistic: Statistic) -> Query:
    """Return the query that releases a statistic by itself."""
    from dpmanifold.stats.asking import private_statistic

    return Query(
        name=statistic.name,
        title=statistic.words[0].upper() + statistic.words[1:],
        call=partial(private_statistic, statistic=statistic.name),
        sample=Units,
        plan=statistic.prepared,
        releases=(statistic.name,),
        views=("npy", "picture"),
    )


def _by_itself(statistic: Statistic) -> bool:
    """Return whether a statistic can be asked for without options that only a larger query knows."""
    return not of_statistic(statistic).needed


__all__ = ["QUERIES", "Option", "Query", "find_query", "of_statistic", "offered", "query_named"]
