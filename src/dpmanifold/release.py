"""Results that say what was promised: frozen, names and numbers only, and JSON in and out.

A release never holds a law, data or anything that still knows the data. What it states can be recomputed by
anybody (`stats.verify`), and it says what nobody can check from it.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import pathlib
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmanifold import manifolds
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.facts import array_text, facts_table, facts_text, told
from dpmanifold.files import whole_file
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms import Calibration, Forecast, get
from dpmanifold.privacy import Promise, promise_from_dict
from dpmanifold.sensitivity import Sensitivity

NEIGHBOURS = "replace one unit; the number of units is public"
NEIGHBOURS_BY_CLASS = (
    "replace one unit by one with records in the same classes; labels, and which unit is in which class, are public"
)
DRAW_COVERED = "the draw's work does not depend on the data; clipping and solving are not covered"
NOT_COVERED = "not covered: the draw's work depends on the data"
FORMAT = "dpmanifold release 1"
# A file that names a larger space, or one of another name, or nests steps deeper, is not one of ours.
_LARGEST_SPACE = 2_000
_LONGEST_NAME = 200
_DEEPEST = 8
_LARGEST_NUMBER = 1e150
_SPACES = {"Euclidean", "Hyperbolic", "KendallShapes", "SPD", "Sphere"}
_TYPES: dict[str, type] = {
    "statistic": str, "mechanism": str, "scale": float, "rule": str, "n": int, "unit": str, "tol": float,
    "projected": bool, "private": bool, "timing": str, "neighbours": str, "arithmetic": str, "details": dict,
    "version": str,
}  # fmt: skip

_KINDS = {str: "text", float: "a number with a decimal point", int: "a whole number", bool: "true or false",
          dict: "an object of numbers by name"}  # fmt: skip
_QUANTILES = (0.05, 0.5, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Release:
    """A private statistic with everything an auditor needs.

    Attributes
    ----------
    statistic : "mean", "variance", "ball", "second moment" or "fourth moment"
    value : a point of the space, a number, a Ball, or a matrix in coordinates of the frame at a released mean
    privacy : what this call promised, all of its steps included. What it was given (a released ball, or the release of
        a mean to take a variance about) was paid for before, and says so itself
    share : the part of it that this step's noise was calibrated to (the same, if there was one step)
    mechanism, scale, rule : how the noise was drawn
    sensitivity : the bound the scale was made from
    ball : the public (or released) ball, with its origin
    n, unit : how many units, and what a unit is
    tol : the public tolerance the mean was solved to
    projected : whether the draw was moved into the ball afterwards
    private : False if a seed or a generator was used, anything was revealed, or the data were declared public
    timing : what the running time may tell
    neighbours : the neighbouring relation
    arithmetic : "float": draws are doubles, and attacks on their low bits are not defended against
    steps : earlier releases this one used and whose cost is included in `privacy`
    details : further public numbers, by name
    version : of the library
    """

    statistic: str
    value: Any
    privacy: Promise
    share: Promise
    mechanism: str
    scale: float
    rule: str
    sensitivity: Sensitivity
    ball: Ball
    n: int
    unit: str
    tol: float
    projected: bool
    private: bool
    timing: str = DRAW_COVERED
    neighbours: str = NEIGHBOURS
    arithmetic: str = "float"
    steps: tuple[Release, ...] = ()
    details: dict[str, float] = field(default_factory=dict)
    version: str = __version__

    # ---------------------------------------------------------------- what to expect

    @property
    def calibration(self) -> Calibration:
        """The scale and its reason, as mechanisms take them."""
        return Calibration(self.mechanism, self.share, self.scale, self.sensitivity, self.rule)

    def _forecast(self) -> Forecast:
        if self.statistic != "mean":
            raise InvalidArgumentError(
                f"noise_error is for means, this is a {self.statistic}: its noise has scale {self.scale:g}."
            )
        return get(self.mechanism).forecast(self.ball, self.n, self.calibration)

    def noise_error(self) -> float:
        """Return the expected distance between the value and the mean of the clipped records: the noise alone.

        Exact for `project=False` where the plan says so; otherwise an upper bound, as moving the draw into the ball
        makes it smaller. Clipping and sampling are not in it.
        """
        return self._at_most(self._forecast().mean)

    def noise_quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Return a distance that the noise stays below with probability q (at least)."""
        return np.asarray(np.minimum(self._forecast().quantile(q), self._at_most(np.inf)))

    def _at_most(self, error: float) -> float:
        """Two points of the ball are never farther apart than its diameter."""
        return min(error, 2 * self.ball.effective_radius) if self.projected else error

    # ---------------------------------------------------------------- for people

    def __repr__(self) -> str:
        return facts_text(f"Release of a private {self.statistic}", self.private, self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("value", repr(self.value) if self.statistic == "ball" else array_text(self.value)),
            ("promise", f"{self.privacy} for each {self.unit}, {self.n:,} of them"),
            ("mechanism", f"{self.mechanism}, scale {self.scale:.6g} ({self.rule})"),
            ("sensitivity", f"{self.sensitivity.value:.6g} ({self.sensitivity.bound} bound, {self.sensitivity.proof})"),
            ("ball", repr(self.ball)),
            ("center", array_text(self.ball.center, digits=4)),
        ]
        if self._has_forecast:
            high = float(self.noise_quantile(0.95))
            word = "" if self._is_exact() else "at most, "
            facts.append(("noise error", f"{self.noise_error():.4g} {word}expected; {high:.4g} with 95 %"))
        facts += [("note", text) for text in self._notes()]
        facts.append(("not covered", self._not_covered))
        return facts

    @property
    def _has_forecast(self) -> bool:
        """Whether the noise can be told as a distance: of means that are points."""
        return self.statistic == "mean" and not get(self.mechanism).baseline

    def _is_exact(self) -> bool:
        """Whether the noise error is the expected one and no upper bound."""
        forecast = self._forecast()
        return forecast.exact and (not self.projected or float(forecast.quantile(0.999)) < self.ball.radius)

    @property
    def _not_covered(self) -> str:
        time = "running time of clipping and solving" if self.timing == DRAW_COVERED else "running time"
        return f"floating-point attacks, {time}"

    def answers(self) -> dict[str, Any]:
        """Return what a person reads off this release, for machines; None stands for a number that cannot be told.

        All of it follows from the rest of the record.
        """
        found: dict[str, Any] = {"notes": told(self._notes), "not_covered": self._not_covered}
        if self._has_forecast:
            found["noise_error"] = told(self.noise_error)
            found["noise_error_is_exact"] = told(self._is_exact)
            found["noise_quantiles"] = {f"{q:g}": told(partial(self.noise_quantile, q)) for q in _QUANTILES}
        else:
            found["noise_scale"] = self.scale
        return found

    @property
    def caution(self) -> str:
        """A warning in a few words where the noise leaves nothing of the answer; from public numbers."""
        return " (as large as the ball: it says nothing)" if self._has_forecast and self._swamped() else ""

    def _swamped(self) -> bool:
        return self._forecast().mean >= self.ball.radius

    def _notes(self) -> list[str]:
        """Say what a reader of the released value should know; post-processing of what was released."""
        if not self._has_forecast:
            return []
        notes = []
        if self._swamped():
            notes.append("the noise is as large as the ball: this says nothing. Use more units or a weaker promise")
        elif self.ball.space.dist(self.ball.center, self.value) >= self.ball.radius * (1 - 1e-9):
            notes.append("the mean lies on the ball's edge: check the centre, the radius and the units of measurement")
        return notes

    def _repr_html_(self) -> str:
        return facts_table(f"Private {self.statistic}", self.private, self._facts())

    # ---------------------------------------------------------------- JSON

    def to_dict(self, answers: bool = True) -> dict[str, Any]:
        """Return names and numbers, ready for JSON; numbers round-trip bit for bit.

        Parameters
        ----------
        answers : add what follows from them and people read (:meth:`answers`); reading the record back ignores it
        """
        record = {
            "format": FORMAT,
            "statistic": self.statistic,
            "value": _value_to_json(self.value, self.statistic),
            "privacy": self.privacy.to_dict(),
            "share": self.share.to_dict(),
            "mechanism": self.mechanism,
            "scale": self.scale,
            "rule": self.rule,
            "sensitivity": vars(self.sensitivity).copy(),
            "ball": ball_to_dict(self.ball),
            "n": self.n,
            "unit": self.unit,
            "tol": self.tol,
            "projected": self.projected,
            "private": self.private,
            "timing": self.timing,
            "neighbours": self.neighbours,
            "arithmetic": self.arithmetic,
            "steps": [step.to_dict(answers=False) for step in self.steps],
            "details": dict(self.details),
            "version": self.version,
        }
        return {**record, "answers": self.answers()} if answers else record

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Release:
        """Rebuild a release from :meth:`to_dict`; a damaged or hostile record is refused."""
        return _release_from(record, depth=0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release as JSON, whole or not at all."""
        write_record(path, self.to_dict())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release written by :meth:`save`."""
        return Release.from_dict(read_record(path))


def write_record(path: str | os.PathLike[str], record: dict[str, Any]) -> None:
    """Write names and numbers as JSON, whole or not at all."""
    text = json.dumps(record, indent=2, allow_nan=False)
    with whole_file(path) as file:
        file.write(text + "\n")


def read_record(path: str | os.PathLike[str]) -> Any:
    """Read JSON, or say that the file holds none."""
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:  # not JSON, not text, or a number that no machine reads
        raise InvalidDataError(f"{os.fspath(path)} is not JSON: {problem}.") from problem


# -------------------------------------------------------------------- spaces, balls and values as JSON


def _release_from(record: Any, depth: int) -> Release:
    if not isinstance(record, dict) or record.get("format") != FORMAT or depth > _DEEPEST:
        raise InvalidDataError(f"not a release: expected format {FORMAT!r}. Give a file written by Release.save.")
    try:
        known = {name: record[name] for name in _TYPES}
        for name, kind in _TYPES.items():
            if not isinstance(known[name], kind) or (kind is int and isinstance(known[name], bool)):
                raise TypeError(f"{name} must be {_KINDS[kind]}, got {shown(known[name])}")
        _refuse_impossible(known, record["sensitivity"])
        ball = ball_from_dict(record["ball"])
        return Release(
            **known,
            value=_value_from_json(record["value"], record["statistic"], ball.space),
            privacy=promise_from_dict(record["privacy"]),
            share=promise_from_dict(record["share"]),
            sensitivity=Sensitivity(**record["sensitivity"]),
            ball=ball,
            steps=tuple(_release_from(step, depth + 1) for step in record["steps"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise InvalidDataError(f"the release is damaged: {problem}. Write it again with Release.save.") from problem


def space_from_text(text: str) -> Manifold:
    """Rebuild a space from its repr, by its name and literal arguments alone: nothing is evaluated.

    Examples
    --------
    >>> space_from_text('SPD(3, metric="riemann")')
    SPD(3, metric="riemann")
    """
    call = None
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        call = ast.parse(text, mode="eval").body if len(text) <= _LONGEST_NAME else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _SPACES):
        raise InvalidDataError(f"not a space: {text[:_LONGEST_NAME]!r}.")
    try:
        arguments = [ast.literal_eval(a) for a in call.args]
        keywords = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except ValueError as problem:
        raise InvalidDataError(f"not a space: {text!r}.") from problem
    if any(isinstance(a, int) and a > _LARGEST_SPACE for a in [*arguments, *keywords.values()]):
        raise InvalidDataError(f"not a space: {text!r} is larger than a release can hold.")
    space = getattr(manifolds, call.func.id)(*arguments, **keywords)
    if not isinstance(space, Manifold):
        raise InvalidDataError(f"not a space: {text!r}.")
    return space


def ball_to_dict(ball: Ball) -> dict[str, Any]:
    """Return a ball as names and numbers."""
    return {
        "space": repr(ball.space),
        "center": array_to_json(ball.center),
        "radius": ball.radius,
        "origin": ball.origin,
        "simulated": ball.simulated,
    }


def ball_from_dict(record: dict[str, Any]) -> Ball:
    """Rebuild a ball from :func:`ball_to_dict`."""
    space = space_from_text(record["space"])
    center = _array_from_json(record["center"], space.dtype)
    return Ball(space, center, record["radius"], record["origin"], record["simulated"] is not False)


def array_to_json(array: Array) -> Any:
    """Return an array as lists; complex ones as two, the real and the imaginary parts."""
    if array.dtype.kind == "c":
        return [array.real.tolist(), array.imag.tolist()]
    return array.tolist()


def _array_from_json(entries: Any, dtype: np.dtype[np.generic]) -> Array:
    if dtype.kind == "c":
        real, imag = entries
        result = np.empty(np.shape(real), dtype=np.complex128)
        result.real, result.imag = real, imag
        return result
    return np.asarray(entries, dtype=np.float64)


def _value_to_json(value: Any, statistic: str) -> Any:
    if isinstance(value, Ball):
        return {"ball": ball_to_dict(value)}
    if isinstance(value, np.ndarray):
        return {"matrix" if statistic == "second moment" else "point": array_to_json(value)}
    return {"number": float(value)}


def _value_from_json(record: dict[str, Any], statistic: str, space: Manifold) -> Any:
    """Return a value of the kind that the statistic has; finite, and of the right shape."""
    if statistic == "ball":
        return ball_from_dict(record["ball"])
    if statistic == "mean":
        value, shape = _array_from_json(record["point"], space.dtype), space.shape
    elif statistic == "second moment":
        value, shape = np.asarray(record["matrix"], dtype=np.float64), (space.dim, space.dim)
    elif statistic in ("variance", "fourth moment"):
        value, shape = np.asarray(record["number"], dtype=np.float64), ()
    else:
        raise ValueError(f"there is no statistic {statistic!r}")
    if value.shape != shape or not np.isfinite(value).all():
        raise ValueError(f"value must be finite and of shape {shape}, got shape {value.shape}")
    return value if shape else float(value)


def _refuse_impossible(known: dict[str, Any], sensitivity: dict[str, Any]) -> None:
    """Refuse numbers that no release has."""
    numbers = {"scale": known["scale"], "tol": known["tol"], "sensitivity": sensitivity["value"], **known["details"]}
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise ValueError(f"{name} must be a finite number")
    if not (0 < known["scale"] < _LARGEST_NUMBER and 2 <= known["n"] < _LARGEST_NUMBER):
        raise ValueError("scale must be above 0 and n at least 2, both of a size that can be")
    texts = [text for text in (*known.values(), *sensitivity.values()) if isinstance(text, str)]
    if not all(text.isprintable() for text in texts):
        raise ValueError("a text holds characters that cannot be printed")
