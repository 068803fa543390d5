"""Options of private calls that can be chosen over the network, each with its words for people and its check."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.stats.shaping import PRIVATE as PRIVATE_SHAPE
from dpmanifold.stats.shrinkage import JAMES_STEIN


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
        good = {
            "choice": value in self.choices if value is None or isinstance(value, str) else False,
            "flag": isinstance(value, bool),
            "number": isinstance(value, (int, float)) and _is_bounded(value),
            "whole": isinstance(value, int) and _is_bounded(value),
            "release": value is None or isinstance(value, str),
        }[self.kind]
        if not good:
            wanted = f"one of {', '.join(map(str, self.choices))}" if self.kind == "choice" else _WANTED[self.kind]
            raise InvalidArgumentError(f"{self.name} must be {wanted}, got {shown(value)}.")
        return float(value) if self.kind == "number" else value  # type: ignore[arg-type]


LARGEST = 10**9
"""Of numbers that are chosen: none has a use for more, and whatever is computed from one is finite."""


def _is_bounded(value: float) -> bool:
    """Return whether a number is one that can be chosen; NaN is none, and neither are true and false."""
    return not isinstance(value, bool) and -LARGEST <= value <= LARGEST


_WANTED = {
    "flag": "true or false",
    "number": f"a number of at most {LARGEST}",
    "whole": f"a whole number of at most {LARGEST}",
    "release": "the id of a release",
}
# Those whose steps depend on data are drawn in doubles, too: neither is for somebody who only sees the result.
_MECHANISMS = ("auto", *(one.name for one in MECHANISMS if not one.baseline and one.covers_timing))
_OPTIONS = {
    "estimand": ("choice", "Which mean", "The Fréchet mean, the mean in the tangent space at the centre, or the "
                 "extrinsic mean.", ()),
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


def options_of(call: Callable[..., object], estimands: tuple[str, ...] = ()) -> tuple[Option, ...]:
    """Return the options of a private call, with the defaults that it has itself.

    Parameters
    ----------
    call : the function
    estimands : which means it knows, where it has that option

    Examples
    --------
    >>> from dpmanifold import private_interval
    >>> [(option.name, option.default) for option in options_of(private_interval)]
    [('refine', False), ('level', 0.95)]
    """
    taken = inspect.signature(call).parameters
    found = []
    for name, (kind, label, words, choices) in _OPTIONS.items():
        if name in taken:
            known = (None, *estimands) if name == "estimand" else choices
            found.append(Option(name, kind, taken[name].default, label, words, known))
    return tuple(found)
