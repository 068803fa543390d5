"""What can be asked over the network: every statistic of the house by name, with the options of its private call.

A question is text and numbers: which statistic, which promise, which options, and a ball where it is not the one that
the data are registered with. Seeds, revealed records and float arithmetic are no part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy import Promise
from dpmanifold.privacy.promises import KINDS
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
from dpmanifold.stats.shaping import PRIVATE as PRIVATE_SHAPE
from dpmanifold.stats.shrinkage import JAMES_STEIN

Answer = Any
"""A Result; of means by class a dict of releases."""


@final
@dataclass(frozen=True)
class Option:
    """One option of a private call, for forms and for checks.

    Attributes
    ----------
    name : as the call has it
    kind : "choice", "flag", "number", "whole" or "release" (the id of a release)
    default : what is meant where it is left out
    choices : of a choice, the values
    label, help : for people
    """

    name: str
    kind: str
    default: Any
    label: str
    help: str
    choices: tuple[Any, ...] = ()

    def checked(self, value: object) -> Any:
        """Return a value of this option, or say what it takes."""
        plain = (int, float) if self.kind == "number" else int
        good = {
            "choice": value in self.choices if value is None or isinstance(value, str) else False,
            "flag": isinstance(value, bool),
            "number": isinstance(value, plain) and not isinstance(value, bool),
            "whole": isinstance(value, int) and not isinstance(value, bool),
            "release": value is None or isinstance(value, str),
        }[self.kind]
        if not good:
            wanted = f"one of {', '.join(map(str, self.choices))}" if self.kind == "choice" else _WANTED[self.kind]
            raise InvalidArgumentError(f"{self.name} must be {wanted}, got {shown(value)}.")
        return float(value) if self.kind == "number" else value  # type: ignore[arg-type]


_WANTED = {"flag": "true or false", "number": "a number", "whole": "a whole number", "release": "the id of a release"}
_MECHANISMS = ("auto", *(one.name for one in MECHANISMS if not one.baseline))
_OPTIONS = {
    "estimand": ("choice", "Which mean", "The Fréchet mean, the mean in the tangent space at the centre, or the "
                 "extrinsic mean.", (None, "frechet", "tangent", "extrinsic")),
    "mechanism": ("choice", "Mechanism", "How noise is drawn; auto takes the best that keeps it.", _MECHANISMS),
    "refine": ("flag", "Look for a smaller ball first", "Spends a part of the promise on a smaller ball; worth it "
               "where the public ball is generous.", ()),
    "shape": ("choice", "Shape of the noise", "Round, or fitted privately to how the data spread.",
              (None, PRIVATE_SHAPE)),
    "shrink": ("choice", "Shrinkage", "Whether the answer is moved towards the public centre where noise is large.",
               ("auto", JAMES_STEIN, None)),
    "level": ("number", "Confidence", "Of regions, intervals and bands, between 0 and 1.", ()),
    "coverage": ("number", "Share of the units", "How many of the units the ball is to hold, between 0 and 1.", ()),
    "count": ("whole", "Components", "How many.", ()),
    "about": ("release", "About a released mean", "The id of a mean that was released before: costs less.", ()),
}  # fmt: skip
# What calls take besides, and nobody may say over the network.
_CLASSES, _COVARIATE = "classes", "covariate"
# What a plan is told of these; the rest makes no difference to it.
_PLANNED = ("estimand", "refine", "shape", "coverage", "count")


@final
@dataclass(frozen=True)
class Asked:
    """A statistic that can be asked for.

    Attributes
    ----------
    name : in questions
    title : in words
    call : the private function
    needs : "classes" where it is about classes that are registered, "covariate" likewise, else ""
    """

    name: str
    title: str
    call_of: Callable[..., Answer]
    needs: str = ""
    statistic: str | None = None

    @property
    def options(self) -> tuple[Option, ...]:
        """What can be chosen."""
        taken = inspect.signature(self.call_of).parameters
        if self.statistic is not None:
            return ()
        found = [(name, taken[name].default, *_OPTIONS[name]) for name in _OPTIONS if name in taken]
        return tuple(
            Option(name, kind, default, label, words, _narrowed(self.name, name, choices))
            for name, default, kind, label, words, choices in found
        )

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
        given = dict(options)
        first: tuple[Any, ...] = (X,)
        if self.statistic is not None:
            given["statistic"] = self.statistic
        if self.needs == _CLASSES:
            first = (X, None)
            given["classes"] = classes_of(X.facts)
            if "labels_public" in inspect.signature(self.call_of).parameters:
                given["labels_public"] = labels_public(X.facts)
        if self.needs == _COVARIATE:
            first = (X, None)
            assert X.covariate is not None  # or this cannot be asked of the data
            given |= {"covariate_range": None, "covariate_public": X.covariate.public}
        return self.call_of(*first, *about, units=None, **given, **terms)

    def planned(self, options: Mapping[str, Any], X: Registered) -> tuple[Any, dict[str, Any]]:
        """Return what :func:`dpmanifold.plan` is asked about registered data: its number of units, and options."""
        facts = X.facts
        taken = {name: options[name] for name in _PLANNED if name in options}
        if self.name in ("groups", "test"):
            return list(facts["units by class"]), taken
        if self.name == "means":
            return min(facts["units by class"]), taken
        if self.name == "classes":
            taken |= {"classes": len(classes_of(facts) or ())} | (
                {"labels_public": True} if labels_public(facts) else {}
            )
        if self.needs == _COVARIATE and X.covariate is not None and X.covariate.public:
            taken["covariate_public"] = True
        return facts["n"], taken

    def fits(self, X: Registered) -> bool:
        """Return whether registered data can be asked about so."""
        facts = X.facts
        if self.needs == _COVARIATE:
            return X.covariate is not None
        if self.needs != _CLASSES:
            return True
        known = classes_of(facts)
        if known is None or (not labels_public(facts) and self.name != "classes"):
            return False
        disjoint = facts.get("touched", 1) == 1
        return {"test": len(known) == 2 and disjoint, "groups": len(known) > 1 and disjoint}.get(self.name, True)


def _narrowed(statistic: str, option: str, choices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the choices that a statistic has: only means are of every kind."""
    if option == "estimand" and statistic not in ("mean", "means"):
        return tuple(choice for choice in choices if choice != "extrinsic")
    return choices


def classes_of(facts: Mapping[str, Any]) -> list[Any] | None:
    """Return the classes that are registered; None where there are none."""
    return names_in(facts["classes"]) if "classes" in facts else None


def labels_public(facts: Mapping[str, Any]) -> bool:
    """Return whether anybody may know who is in which class."""
    return facts.get("labels") != PRIVATE


_CALLS: dict[str, tuple[str, Callable[..., Answer], str]] = {
    "mean": ("Mean", private_mean, ""),
    "median": ("Median", private_median, ""),
    "region": ("Mean with a confidence region", private_region, ""),
    "variance": ("Fréchet variance", private_variance, ""),
    "interval": ("Variance with a confidence interval", private_interval, ""),
    "components": ("Principal components", private_components, ""),
    "ball": ("A smaller ball", private_ball, ""),
    "means": ("Mean of each class", private_means, _CLASSES),
    "test": ("Test of two groups", private_test, _CLASSES),
    "groups": ("Test of several groups", private_groups, _CLASSES),
    "classes": ("Linear discriminant of classes", private_classes, _CLASSES),
    "regression": ("Geodesic regression", private_regression, _COVARIATE),
}


def askable() -> dict[str, Asked]:
    """Return all that can be asked for, by name: the calls of the house, and every other registered statistic."""
    found = {name: Asked(name, *known) for name, known in _CALLS.items()}
    for one in STATISTICS:
        if one.name not in found and _by_itself(one):
            found[one.name] = Asked(one.name, one.words[0].upper() + one.words[1:], private_statistic, "", one.name)
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
        raise InvalidArgumentError(f"statistic must be one of {', '.join(known)}, got {shown(name)}.")
    return known[name]


@final
@dataclass(frozen=True)
class Question:
    """What is asked of a data set.

    Attributes
    ----------
    statistic : its name
    privacy : the promise
    options : those of the private call that differ from what is meant anyway
    ball : None for the registered one, {"release": id} for one that was released, or {"radius", "center", "source"}

    Examples
    --------
    >>> asked = Question.from_dict({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "0.3"}})
    >>> asked.privacy, asked.to_dict()["privacy"]
    (GDP(mu='0.3'), {'kind': 'GDP', 'mu': '0.3'})
    """

    statistic: str
    privacy: Promise
    options: Mapping[str, Any] = field(default_factory=dict)
    ball: Mapping[str, Any] | None = None

    @property
    def asked(self) -> Asked:
        """What it asks for."""
        return asked_named(self.statistic)

    @staticmethod
    def from_dict(record: object) -> Question:
        """Read a question, or say what is wrong with it; what it does not know is refused."""
        known = _only(record, "question", ("statistic", "privacy"), ("options", "ball"))
        asked = asked_named(known["statistic"])
        options = known.get("options") or {}
        if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
            raise InvalidArgumentError(f"options must be names with values, got {shown(options)}.")
        return Question(
            asked.name, promise_from_json(known["privacy"]), asked.checked(options), _ball(known.get("ball"))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON: amounts as text, so that nothing is rounded."""
        return {
            "statistic": self.statistic,
            "privacy": promise_to_json(self.privacy),
            "options": dict(self.options),
            "ball": None if self.ball is None else dict(self.ball),
        }


def promise_from_json(record: object, name: str = "privacy") -> Promise:
    """Return a promise that was written as its kind and its amounts, in text as they were typed or as numbers.

    Examples
    --------
    >>> promise_from_json({"kind": "ApproxDP", "epsilon": "0.5", "delta": 1e-6})
    ApproxDP(epsilon=0.5, delta=1e-06)
    """
    if not isinstance(record, Mapping) or record.get("kind") not in KINDS:
        raise InvalidArgumentError(
            f'{name} must be a kind ({", ".join(KINDS)}) with its amounts, such as {{"kind": "GDP", "mu": "0.3"}}, got '
            f"{shown(record)}."
        )
    kind = KINDS[record["kind"]]
    exact = record.get("exact", {})
    wanted = list(inspect.signature(kind).parameters)
    given = {key: value for key, value in record.items() if key not in ("kind", "exact")}
    if sorted(given) != sorted(wanted) or not isinstance(exact, Mapping) or set(exact) - set(wanted):
        raise InvalidArgumentError(f"{name} of kind {record['kind']} has {' and '.join(wanted)}, got {shown(record)}.")
    amounts = {key: exact.get(key, value) for key, value in given.items()}
    if not all(isinstance(value, (str, int, float)) and not isinstance(value, bool) for value in amounts.values()):
        raise InvalidArgumentError(f"{name} has amounts that are text or numbers, got {shown(record)}.")
    return kind(**amounts)


def promise_to_json(promise: Promise) -> dict[str, Any]:
    """Return a promise as its kind and its amounts: text where it was typed, else the number."""
    return {"kind": type(promise).__name__, **promise.stated}


def _ball(record: object) -> dict[str, Any] | None:
    if record is None:
        return None
    if isinstance(record, Mapping) and "release" in record:
        return _only(record, "ball", ("release",))
    return _only(record, "ball", ("radius", "center"), ("source",))


def _only(record: object, what: str, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return a record that has these entries and no others, or refuse."""
    if not isinstance(record, Mapping) or not set(names) <= set(record) <= {*names, *optional}:
        rest = f", and may have {', '.join(optional)}" if optional else ""
        got = ", ".join(map(str, record)) if isinstance(record, Mapping) else shown(record)
        raise InvalidArgumentError(f"{what} must have {', '.join(names)}{rest}, and nothing else; got {got}.")
    return dict(record)
