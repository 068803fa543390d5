"""Results that say what was promised: frozen, names and numbers only, and JSON in and out.

A release never holds a law, data or anything that still knows the data. What it states can be recomputed by
anybody (`stats.verify`), and it says what nobody can check from it.
"""

from __future__ import annotations

import ast
import html
import json
import os
import pathlib
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmanifold import manifolds
from dpmanifold._check import Array, FloatArray
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms import Calibration, Forecast, get
from dpmanifold.privacy import Promise, promise_from_dict
from dpmanifold.sensitivity import Sensitivity

NEIGHBOURS = "replace one unit; the number of units is public"
_FORMAT = "dpmanifold release 1"
# A file that names a larger space is not one of ours.
_LARGEST_SPACE = 100_000


@dataclass(frozen=True, eq=False)
class Release:
    """A private statistic with everything an auditor needs.

    Attributes
    ----------
    statistic : "mean", "variance" or "ball"
    value : a point of the space, a number or a Ball
    privacy : the promise, in total: everything this release needed is in it
    share : the part of it that this step's noise was calibrated to (the same, if there was one step)
    mechanism, scale, rule : how the noise was drawn
    sensitivity : the bound the scale was made from
    ball : the public (or released) ball, with its origin
    n, unit : how many units, and what a unit is
    tol : the public tolerance the mean was solved to
    projected : whether the draw was moved into the ball afterwards
    private : False if a seed or a generator was used, or anything was revealed
    timing : whether the running time is covered by the promise
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
    timing: str = "covered"
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

        Exact, or an upper bound where the plan says so; moving the value into the ball only makes it smaller. Clipping
        and sampling are not in it.
        """
        return self._forecast().mean

    def noise_quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Return the distance that the noise stays below with probability q."""
        return self._forecast().quantile(q)

    # ---------------------------------------------------------------- for people

    def __repr__(self) -> str:
        lines = [
            f"Release of a private {self.statistic}" + ("" if self.private else " -- NOT PRIVATE (seeded or revealed)")
        ]
        lines += [f"  {name:<12} {text}" for name, text in self._facts()]
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        value = (
            np.array2string(np.asarray(self.value), precision=5, threshold=30)
            if self.statistic != "ball"
            else repr(self.value)
        )
        facts = [
            ("value", value.replace("\n", "\n               ")),
            ("promise", f"{self.privacy} for each {self.unit}, {self.n:,} of them"),
            ("mechanism", f"{self.mechanism}, scale {self.scale:.6g} ({self.rule})"),
            ("sensitivity", f"{self.sensitivity.value:.6g} ({self.sensitivity.bound} bound, {self.sensitivity.proof})"),
            ("ball", repr(self.ball)),
        ]
        if self.statistic == "mean" and not get(self.mechanism).baseline:
            forecast = self._forecast()
            word = "expected" if forecast.exact else "at most, expected"
            facts.append(("noise error", f"{forecast.mean:.4g} {word}; {float(forecast.quantile(0.95)):.4g} with 95 %"))
        facts.append(("not covered", "floating-point attacks" + ("" if self.timing == "covered" else ", running time")))
        return facts

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(a)}</th><td><pre>{html.escape(b)}</pre></td></tr>" for a, b in self._facts()
        )
        mark = "" if self.private else " <b>NOT PRIVATE</b>"
        return f"<table><caption>Private {html.escape(self.statistic)}{mark}</caption>{rows}</table>"

    # ---------------------------------------------------------------- JSON

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON; numbers round-trip bit for bit."""
        return {
            "format": _FORMAT,
            "statistic": self.statistic,
            "value": _value_to_json(self.value),
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
            "steps": [step.to_dict() for step in self.steps],
            "details": dict(self.details),
            "version": self.version,
        }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Release:
        """Rebuild a release from :meth:`to_dict`."""
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise InvalidDataError(f"not a release: expected format {_FORMAT!r}. Give a file written by Release.save.")
        try:
            known = {
                k: v
                for k, v in record.items()
                if k not in ("format", "value", "privacy", "share", "sensitivity", "ball", "steps")
            }
            ball = ball_from_dict(record["ball"])
            return Release(
                **known,
                value=_value_from_json(record["value"], ball.space),
                privacy=promise_from_dict(record["privacy"]),
                share=promise_from_dict(record["share"]),
                sensitivity=Sensitivity(**record["sensitivity"]),
                ball=ball,
                steps=tuple(Release.from_dict(step) for step in record["steps"]),
            )
        except (KeyError, TypeError) as problem:
            raise InvalidDataError(f"the release is damaged: {problem}. Write it again with Release.save.") from problem

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release as JSON, whole or not at all."""
        target = pathlib.Path(path)
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8") as part:
            part.write(text + "\n")
        os.replace(part.name, target)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release written by :meth:`save`."""
        try:
            record = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        except json.JSONDecodeError as problem:
            raise InvalidDataError(f"{os.fspath(path)} is not JSON: {problem}.") from problem
        return Release.from_dict(record)


# -------------------------------------------------------------------- spaces, balls and values as JSON


def space_from_text(text: str) -> Manifold:
    """Rebuild a space from its repr, by its name and literal arguments alone: nothing is evaluated.

    Examples
    --------
    >>> space_from_text('SPD(3, metric="riemann")')
    SPD(3, metric="riemann")
    """
    try:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        assert call.func.id in manifolds.__all__
        arguments = [ast.literal_eval(a) for a in call.args]
        keywords = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, AssertionError, ValueError) as problem:
        raise InvalidDataError(f"not a space: {text!r}.") from problem
    if any(isinstance(a, int) and a > _LARGEST_SPACE for a in [*arguments, *keywords.values()]):
        raise InvalidDataError(f"not a space: {text!r} is larger than a release can hold.")
    space = getattr(manifolds, call.func.id)(*arguments, **keywords)
    assert isinstance(space, Manifold)
    return space


def ball_to_dict(ball: Ball) -> dict[str, Any]:
    """Return a ball as names and numbers."""
    return {
        "space": repr(ball.space),
        "center": _array_to_json(ball.center),
        "radius": ball.radius,
        "origin": ball.origin,
    }


def ball_from_dict(record: dict[str, Any]) -> Ball:
    """Rebuild a ball from :func:`ball_to_dict`."""
    space = space_from_text(record["space"])
    return Ball(space, _array_from_json(record["center"], space.dtype), record["radius"], record["origin"])


def _array_to_json(array: Array) -> Any:
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


def _value_to_json(value: Any) -> Any:
    if isinstance(value, Ball):
        return {"ball": ball_to_dict(value)}
    if isinstance(value, np.ndarray):
        return {"point": _array_to_json(value)}
    return {"number": float(value)}


def _value_from_json(record: dict[str, Any], space: Manifold) -> Any:
    if "ball" in record:
        return ball_from_dict(record["ball"])
    if "point" in record:
        return _array_from_json(record["point"], space.dtype)
    return float(record["number"])
