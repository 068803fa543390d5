"""Results that say what was promised: frozen, names and numbers only, and JSON in and out.

A release never holds a law, data or anything that still knows the data. What it states can be recomputed by
anybody (`stats.verify`), and it says what nobody can check from it.

With it stands what was asked for: the query with its options, of how many units, and what was decided. Options are
written as they were given, arrays and releases in full, so that whoever has the file can ask again: that is what
`verify` does with the outputs in place of draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.mechanisms import MECHANISMS, Calibration, Forecast
from dpmanifold.privacy import Promise, Receipt, cautions, promise_from_dict
from dpmanifold.result import Result
from dpmanifold.sensitivity import Sensitivity, of_mean
from dpmanifold.serialization import (
    LONGEST_NAME,
    array_to_json,
    ball_to_dict,
    entries,
    flag,
    number,
    numbers_by_name,
    reading,
    refuse_wrong_answers,
    released_ball_from_dict,
    sensitivity_from_dict,
    value_from_json,
    value_to_json,
    vector_from_json,
    whole_number,
    words,
)
from dpmanifold.statistic import (
    DRAW_COVERED as DRAW_COVERED,
    NOT_COVERED as NOT_COVERED,
    REPLACE_ONE_UNIT,
    STATISTICS,
    Header,
    Kind,
    Statistic,
    private_words,
)
from dpmanifold.summary import array_text, told

REFINE_SKIPPED = "no smaller ball was looked for: public numbers say that it could not help (dpm plan --refine)"
REFINE_UNUSED = "a smaller ball was looked for, at a cost, and none was found that is worth it: the public one is used"
RELEASED = "released under"
BALL_COST = "the ball was released before: what it cost comes on top of this promise, and what it clips is not stated"
CLIPPING_UNSTATED = "in no stated error: clipping to the public ball"
# How noise was drawn: ideal and rounded to a public grid, or as doubles.
EXACT, FLOAT = "exact", "float"
FLOAT_TOLD = "float: all digits of the noise together can tell more than was promised"
NO_ERROR = (
    "without a ball no error can be stated: how far noise turns the average depends on how closely the records agree, "
    "which only the length of what was drawn shows"
)
ESTIMANDS_TOLD = {
    "tangent": "the tangent mean at the ball's centre: near the Fréchet mean, not equal to it on curved spaces",
    "extrinsic": "the extrinsic mean (mean direction, full Procrustes mean): near the Fréchet mean, not equal to it",
}
UNKNOWN_STATISTIC = (
    "there is no statistic {!r} here: register it (dpm.STATISTICS.register), or install the distribution that has it."
)
FORMAT = "dpmanifold release 2"
# A file that nests steps deeper, or holds larger numbers, is not one of ours.
_DEEPEST = 8
_LARGEST_NUMBER = 1e150
_LARGEST_EXPONENT = 1074
# What a comparison with public data adds to the details.
# What a tangent mean states that stands for the Fréchet mean: how far the two can be apart.
TANGENT_GAP = "tangent_gap"
REVEALED = frozenset({"revealed_error", "revealed_clipped_share"})
# Share of the units that a search for a ball leaves out by design.
_LEFT_OUT = 0.01
# One-sided 0.999 quantiles of noise of scale 1.
_LAPLACE_TAIL = math.log(500)
_NORMAL_TAIL = 3.0903
# How the plain entries of a record are read; the others are objects of their own.
_PLAIN: dict[str, Callable[[Any, str], Any]] = {
    "statistic": words, "mechanism": words, "scale": number, "rule": words, "n": whole_number, "unit": words,
    "tol": number, "projected": flag, "private": flag, "timing": words, "adjacency": words, "arithmetic": words,
    "version": words,
}  # fmt: skip
_OBJECTS = ("format", "value", "privacy", "share", "sensitivity", "ball", "draws", "steps", "details")
_OPTIONAL = ("answers", "shrinkage", "raw", "request", "receipt")

_QUANTILES = (0.05, 0.5, 0.95, 0.99)


class Drawn(NamedTuple):
    """One noisy output.

    Attributes
    ----------
    numbers : what was drawn, one axis
    grid : k, where ideal noise was rounded to a public grid: the numbers are multiples of 2^k. None where doubles were
        drawn
    """

    numbers: FloatArray
    grid: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and their grid, ready for JSON."""
        record: dict[str, Any] = {"numbers": self.numbers.tolist()}
        return record if self.grid is None else {**record, "grid": self.grid}

    @staticmethod
    def from_dict(record: Any) -> Drawn:
        """Rebuild an output from :meth:`to_dict`."""
        known = entries(record, "a draw", ("numbers",), ("grid",))
        grid = whole_number(known["grid"], "grid") if "grid" in known else None
        if grid is not None and not -_LARGEST_EXPONENT <= grid <= _LARGEST_EXPONENT:
            raise InvalidDataError("grid must be an exponent that a double can have")
        return Drawn(vector_from_json(known["numbers"], "numbers"), grid)


# -------------------------------------------------------------------- what was asked for


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for.

    Attributes
    ----------
    query : its name, or that of a statistic
    options : all that is not left at its default, and what the sample says
    ball : the public ball
    n : how many units, of all groups together
    group : which of several groups the release is about, from 0 on; None where there is one
    decisions : what was chosen where public or released numbers leave a choice, by name
    """

    query: str
    options: Mapping[str, Any]
    ball: Ball
    n: int
    group: int | None = None
    decisions: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        record = {
            "query": self.query,
            "options": {name: option_to_json(value, name) for name, value in self.options.items()},
            "ball": ball_to_dict(self.ball),
            "n": self.n,
            "decisions": dict(self.decisions),
        }
        return record if self.group is None else {**record, "group": self.group}

    @classmethod
    def from_dict(cls, record: Any, read_release: Callable[[Any], Result]) -> Request:
        """Rebuild one from :meth:`to_dict`."""
        known = entries(record, "the request", ("query", "options", "ball", "n", "decisions"), ("group",))
        options, decisions = (entries(known[name], name, (), known[name]) for name in ("options", "decisions"))
        return Request(
            words(known["query"], "query"),
            {name: _option_from_json(value, name, read_release) for name, value in options.items()},
            released_ball_from_dict(known["ball"]),
            whole_number(known["n"], "n of the request"),
            whole_number(known["group"], "group") if "group" in known else None,
            {name: words(value, name) for name, value in decisions.items()},
        )


def option_to_json(value: Any, name: str) -> Any:
    """Return an option as JSON can hold it, or refuse what nobody could read again.

    Examples
    --------
    >>> option_to_json([1, 0.5, "a"], "counts"), option_to_json(np.eye(2), "noise_shape")
    ([1, 0.5, 'a'], {'array': [[1.0, 0.0], [0.0, 1.0]]})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [option_to_json(entry, name) for entry in value]
    if isinstance(value, Mapping):
        return {"by_name": {key: option_to_json(entry, name) for key, entry in value.items()}}
    if isinstance(value, Result):
        return {"release": value.to_dict(answers=False)}
    if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biufc":
        array = np.asarray(value)
        return {"complex" if array.dtype.kind == "c" else "array": array_to_json(array)}
    stated = getattr(value, "name", None)  # of a mechanism or a statistic
    if isinstance(stated, str):
        return stated
    raise InvalidArgumentError(
        f"{name} must be something that a release can state: text, numbers, arrays, releases, or the name of what is "
        f"registered; got {shown(value)}."
    )


def _option_from_json(value: Any, name: str, read_release: Callable[[Any], Result]) -> Any:
    """Return an option that :func:`option_to_json` wrote."""
    if isinstance(value, list):
        return [_option_from_json(entry, name, read_release) for entry in value]
    if not isinstance(value, dict):
        return number(value, name) if isinstance(value, float) else value
    match list(value.items()):
        case [("release", record)]:
            return read_release(record)
        case [("array", rows)]:
            return _array(rows, name)
        case [("complex", [real, imaginary])]:
            return _array(real, name) + 1j * _array(imaginary, name)
        case [("by_name", dict(options))]:
            return {key: _option_from_json(entry, name, read_release) for key, entry in options.items()}
    raise InvalidDataError(f"option {name!r} is nothing that the library writes")


def _array(rows: Any, name: str) -> Array:
    found = np.array(rows, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InvalidDataError(f"option {name!r} must hold finite numbers")
    return found


# -------------------------------------------------------------------- what was released


@dataclass(frozen=True, eq=False, repr=False)
class Release(Result, format=FORMAT):
    """A private statistic with everything an auditor needs.

    Attributes
    ----------
    statistic : its name: "mean", "variance", "ball", "second moment", "fourth moment", or one that was registered
    value : a point of the space, a number, a vector, a Ball, or a matrix in coordinates of the frame at a released mean
    privacy : what this call promised, all of its steps included. What it was given (a released ball, or the release of
        a mean to take a variance about) was paid for before, and says so itself
    share : the part of it that this step's noise was calibrated to (the same, if there was one step)
    mechanism, scale, rule : how the noise was drawn
    sensitivity : the bound the scale was made from
    ball : the public (or released) ball, with its source
    n, unit : how many units, and what a unit is
    tol : the public tolerance the mean was solved to
    projected : whether the draw was moved into the ball afterwards
    private : False if a seed or a generator was used, anything was revealed, or the data were declared public
    timing : what the running time may tell
    adjacency : which data sets are adjacent, by name (:data:`~dpmanifold.statistic.ADJACENCY`)
    arithmetic : "exact": ideal noise was rounded to a public grid, and the promise holds for every bit (theory: exact
        noise). "float": doubles were drawn, and somebody who reads all their digits can tell more than was promised
    steps : earlier releases this one used and whose cost is included in `privacy`
    details : further public numbers, by name
    version : of the library
    shrinkage : how the value was moved towards the ball's centre after the draw ("james-stein" or "bounded", theory
        section 8); empty if it was not
    raw : the draw itself where the value was moved towards the centre, else None
    draws : every noisy output, in the order in which they were drawn; the value follows from them
    request : what was asked for; None of steps
    receipt : of a release that an account paid for, where it stands in the ledger; else None
    unregistered : the statistic where no registry has it by its name, for this object alone: nothing of it is written
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
    adjacency: str = REPLACE_ONE_UNIT
    arithmetic: str = FLOAT
    steps: tuple[Release, ...] = ()
    details: dict[str, float] = field(default_factory=dict)
    version: str = __version__
    shrinkage: str = ""
    raw: Any = None
    draws: tuple[Drawn, ...] = ()
    request: Request | None = None
    receipt: Receipt | None = None
    unregistered: Statistic | None = None

    @staticmethod
    def of(
        statistic: Statistic,
        value: Any,
        header: Header,
        calibration: Calibration,
        draws: tuple[Drawn, ...],
        steps: tuple[Release, ...] = (),
        details: dict[str, float] | None = None,
        *,
        covers_timing: bool = True,
        **stated: Any,
    ) -> Release:
        """Return a release from what it is about, how its noise was calibrated and drawn, and what is stated besides.

        Parameters
        ----------
        covers_timing : whether the draws take as many steps whatever the data are
        """
        covered = covers_timing and all(step.timing == DRAW_COVERED for step in steps)
        return Release(
            statistic=statistic.name,
            value=value,
            privacy=header.privacy,
            share=calibration.privacy,
            mechanism=calibration.mechanism,
            scale=calibration.scale,
            rule=calibration.rule,
            sensitivity=calibration.sensitivity,
            ball=header.ball,
            n=header.n,
            unit=header.unit,
            adjacency=header.adjacency,
            private=header.private,
            timing=DRAW_COVERED if covered else NOT_COVERED,
            arithmetic=FLOAT if any(drawn.grid is None for drawn in draws) else EXACT,
            draws=draws,
            steps=steps,
            details=details or {},
            unregistered=None if id(statistic) in STATISTICS.held else statistic,
            **stated,
        )

    # ---------------------------------------------------------------- what to expect

    @property
    def definition(self) -> Statistic:
        """The statistic itself: what it is, and how what is stated of it is recomputed."""
        found = self.unregistered or STATISTICS.find(self.statistic)
        if found is None:
            raise InvalidArgumentError(UNKNOWN_STATISTIC.format(self.statistic))
        return found

    @property
    def estimand(self) -> str | None:
        """Which mean: "frechet", "tangent" or "extrinsic" (theory: estimands); None of other statistics."""
        return self.definition.estimand(self)

    @property
    def mean_below(self) -> Release:
        """The release of the mean that this is, or that its steps took it about."""
        found = self
        while found.estimand is None:
            if not found.steps:
                raise InvalidArgumentError(f"this {self.statistic} was not taken about a released mean.")
            found = found.steps[0]
        return found

    @property
    def calibration(self) -> Calibration:
        """The scale and its reason, as mechanisms take them."""
        return Calibration(self.mechanism, self.share, self.scale, self.sensitivity, self.rule)

    def _forecast(self) -> Forecast:
        forecast = self.definition.forecast(self)
        return forecast.moved_into(self.ball) if self.projected else forecast

    def noise_error(self) -> float:
        """Return the expected distance between the value and that of the clipped records: the noise alone.

        Exact for `project=False` where the plan says so; otherwise an upper bound, as moving the draw into the ball
        makes it smaller. Clipping and sampling are not in it. Refused without a ball (:meth:`Ball.whole`), as are
        `noise_quantile` and `error`: how far noise turns an average depends on the records.
        """
        return self._forecast().mean

    def noise_quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Return a distance that the noise stays below with probability q (at least)."""
        return self._forecast().quantile(q)

    @property
    def clipping(self) -> Clipping | None:
        """What a refined mean states about the units that its ball leaves out; None if no smaller ball was found."""
        return self.definition.clipping(self)

    def clipping_to_ball(self) -> Clipping | None:
        """Return it where the first step is the ball that this release is on."""
        for step in self.steps:
            if step.definition.kind is Kind.BALL and self.ball != step.ball:
                return Clipping.of(step, self.n)
        return None

    def error(self) -> float:
        """Return the expected distance between the value and the mean of the records in the public ball.

        The noise and, for a refined mean, what the noisy count of units outside the smaller ball says about clipping
        (theory section 8); and where a tangent mean stands for the Fréchet mean, how far the two can be apart.
        Sampling is not in it, nor is clipping to the public ball.
        """
        clipping = self.clipping
        noise = self.noise_error()
        if self.shrinkage:  # its mean square is not above the draw's: nothing is known of its mean alone
            noise = math.sqrt(self._forecast().second_moment)
        besides = self.definition.besides_noise(self)
        more = 0.0 if besides is None else besides[0]
        return noise + (0.0 if clipping is None else clipping.expected) + self.details.get(TANGENT_GAP, 0.0) + more

    # ---------------------------------------------------------------- for people

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"Release of {private_words(self.statistic)}"

    @property
    def released(self) -> tuple[Release, ...]:
        """The releases it is made of: itself, with its steps."""
        return (self,)

    @property
    def number_or_array(self) -> Any:
        """The released value, unless it is a ball."""
        return None if self.definition.kind is Kind.BALL else self.value

    def facts(self) -> list[tuple[str, str]]:
        """Names and texts to show, notes included."""
        facts = [
            ("value", repr(self.value) if self.definition.kind is Kind.BALL else array_text(self.value)),
            *self._estimand_facts(),
            ("promise", f"{self.privacy} for each {self.unit}, {self.n:,} of them"),
            ("mechanism", f"{self.mechanism}, scale {self.scale:.6g} ({self.rule})"),
            ("arithmetic", self._arithmetic_told),
            (
                "sensitivity",
                f"{self.sensitivity.value:.6g} ({self.sensitivity.bound} bound, proof: {self.sensitivity.proof})",
            ),
            ("ball", repr(self.ball)),
        ]
        if not self.ball.is_whole:
            facts.append(("center", array_text(self.ball.center, digits=4)))
        if self.definition.states_error(self):
            high = float(self.noise_quantile(0.95))
            word = "" if self._forecast().exact else "at most, "
            whose = " (of the draw in raw)" if self.shrinkage else ""
            facts.append(("noise error", f"{self.noise_error():.4g} {word}expected; {high:.4g} with 95 %{whose}"))
            facts += self._error_facts()
        facts += [
            (name.replace("_", " "), f"{self.details[name]:.4g}") for name in sorted(REVEALED) if name in self.details
        ]
        facts += [("note", text) for text in self.notes()]
        facts += receipt_facts(self)
        facts.append(("not covered", self._not_covered))
        return facts

    def _estimand_facts(self) -> list[tuple[str, str]]:
        if TANGENT_GAP in self.details:
            gap = f"at most {self.details[TANGENT_GAP]:.4g} apart, with 99.7 %"
            return [("estimand", f"the Fréchet mean, by the tangent mean at the ball's centre: {gap}")]
        told = ESTIMANDS_TOLD.get(self.estimand or "")
        return [] if told is None or self.ball.space.is_flat else [("estimand", told)]

    @property
    def _arithmetic_told(self) -> str:
        if self.arithmetic == EXACT:
            return f"exact: ideal noise, rounded to multiples of 2^{self.draws[0].grid}"
        return FLOAT_TOLD

    def _error_facts(self) -> list[tuple[str, str]]:
        """Say what the error is made of where that is more than the noise of the draw."""
        clipping = self.clipping
        if clipping is None:
            if TANGENT_GAP in self.details:
                return [("error", f"{self.error():.4g} expected, noise and distance from the Fréchet mean together")]
            besides = self.definition.besides_noise(self)
            if besides is not None:
                return [("error", f"{self.error():.4g} expected, noise and {besides[1]} together")]
            return [("error", f"at most {self.error():.4g} (root mean square)")] if self.shrinkage else []
        gap = "noise, clipping and the distance from the Fréchet mean"
        together = gap if TANGENT_GAP in self.details else "noise and clipping"
        return [
            (
                "clipping",
                f"the counts say that about {clipping.outside:.1%} of the units lie outside the radius that was found: "
                f"about {clipping.expected:.4g} more; at most {clipping.bound:.4g} with 99.9 %",
            ),
            ("error", f"{self.error():.4g} expected, {together} together"),
        ]

    @property
    def _not_covered(self) -> str:
        clipping = "not stated: how far noise turns the mean" if self.ball.is_whole else CLIPPING_UNSTATED
        same = self.ball.space.is_flat or self.estimand in (None, "frechet")
        kind = "" if same else ", the distance from the Fréchet mean"
        return f"{not_promised(self)}; {clipping}, sampling{kind}"

    @property
    def is_exact(self) -> bool:
        """Whether this release, and all that it rests on, was drawn exactly."""
        return self.arithmetic == EXACT and all(step.is_exact for step in self.steps)

    def answers(self) -> dict[str, Any]:
        """Return what a person reads off this release, for machines; None stands for a number that cannot be told.

        All of it follows from the rest of the record.
        """
        found: dict[str, Any] = {"notes": told(self.notes), "not_covered": self._not_covered}
        if self.estimand is not None:
            found["estimand"] = self.estimand
        if self.definition.states_error(self):
            found["noise_error"] = told(self.noise_error)
            found["noise_error_is_exact"] = told(lambda: self._forecast().exact)
            found["noise_quantiles"] = {f"{q:g}": told(partial(self.noise_quantile, q)) for q in _QUANTILES}
            found["error"] = told(self.error)
            if self.clipping is not None:
                found["clipping"] = told(lambda: vars(self.clipping))
        else:
            found["noise_scale"] = self.scale
        return found

    @property
    def caution(self) -> str:
        """A warning in a few words where the noise leaves nothing of the answer; from public numbers."""
        return " (as large as the ball: it says nothing)" if self.is_swamped else ""

    @property
    def is_swamped(self) -> bool:
        """Whether noise is to be expected that is as large as what it hides can be."""
        most = self.definition.range(self.ball)
        return self.definition.states_error(self) and most is not None and self._forecast().mean >= most

    def notes_on_the_ball(self) -> list[str]:
        """Say what became of a smaller ball, and what a ball that was released before cost."""
        if "refinement_skipped" in self.details:
            return [REFINE_SKIPPED]
        if any(step.definition.kind is Kind.BALL for step in self.steps):
            return [REFINE_UNUSED] if self.clipping is None else []
        return [BALL_COST] if self.ball.source.startswith(RELEASED) else []

    def notes(self) -> list[str]:
        """Say what a reader of the released value should know; post-processing of what was released."""
        return [*cautions(self.privacy, self.n), *self.definition.notes(self)]

    # ---------------------------------------------------------------- JSON

    def to_dict(self, answers: bool = True) -> dict[str, Any]:
        """Return names and numbers, ready for JSON; numbers round-trip bit for bit.

        Parameters
        ----------
        answers : add what follows from them and people read (:meth:`answers`); read back it is checked, and not used
        """
        record = {
            "format": FORMAT,
            "statistic": self.statistic,
            "value": value_to_json(self.value, self.definition.kind.value),
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
            "adjacency": self.adjacency,
            "arithmetic": self.arithmetic,
            "draws": [drawn.to_dict() for drawn in self.draws],
            "steps": [step.to_dict(answers=False) for step in self.steps],
            "details": dict(self.details),
            "version": self.version,
            **(
                {"shrinkage": self.shrinkage, "raw": value_to_json(self.raw, Kind.POINT.value)}
                if self.shrinkage
                else {}
            ),
            **({} if self.request is None else {"request": self.request.to_dict()}),
            **({} if self.receipt is None else {"receipt": self.receipt.to_dict()}),
        }
        return {**record, "answers": self.answers()} if answers else record

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Release:
        """Rebuild a release from :meth:`to_dict`; what a release does not write is refused, wherever it stands."""
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise InvalidDataError(f"not a release: expected format {FORMAT!r}. Give a file written by Release.save.")
        with reading("the release", "Release.save"):
            return _release_from(record, depth=0)


def receipt_facts(*releases: Release) -> list[tuple[str, str]]:
    """Return what to show of the receipt that releases of one call have, if they have one."""
    found = {receipt.hash: receipt for receipt in (release.receipt for release in releases) if receipt is not None}
    return [("receipt", f"{receipt}; total spent so far: {receipt.promise}") for receipt in found.values()]


def not_promised(*releases: Release) -> str:
    """Say what somebody could attack that the promise of these releases does not cover; their steps included."""
    exact = all(release.is_exact for release in releases)
    return "running time" if exact else "attacks on the noise's low bits, running time"


@dataclass(frozen=True)
class Clipping:
    """How far clipping to a released ball may move a mean: what the noisy count of the units inside says.

    Attributes
    ----------
    outside : share of the units outside as the count has it, but not less than the hundredth that a search leaves out
    expected : the shift if these lie a quarter of the radius beyond the edge, all on one side
    bound : the shift that is exceeded with probability 0.001 at most, wherever in the public ball they lie
    """

    outside: float
    expected: float
    bound: float

    @staticmethod
    def of(step: Release, n: int) -> Clipping:
        """Read it off the release of a ball, whose details hold the noisy count, for a mean of n of its units.

        In a test the ball was found from both groups: whoever is outside may all be in one of them.
        """
        inner, outer = step.value, step.ball
        beyond = outer.radius + float(outer.space.dist(outer.center, inner.center)) - inner.radius
        # What one unit's move does to a mean, per unit of length: 1 on flat and Hadamard spaces. The sharp bound is for
        # moves across the whole ball, and shorter ones may do more in proportion.
        lever = of_mean(outer, n, bound="tight").value * n / (2 * outer.effective_radius)
        return Clipping.counted(step, n, inner.radius / 4, max(0.0, beyond) * lever)

    @staticmethod
    def counted(step: Release, n: int, typical: float, farthest: float) -> Clipping:
        """Return it, given how far a unit that is cut is moved, typically and at most."""
        inside, noise = step.details["units_inside"], step.details["count_noise"]
        # A Laplace count is off by more than 6.9 of its scale with probability 0.001, a normal one by 3.1.
        surely = inside - noise * (_LAPLACE_TAIL if step.share.to_dict()["kind"] == "PureDP" else _NORMAL_TAIL)
        outside = min(1.0, max((step.n - inside) / n, _LEFT_OUT))
        bound = min(1.0, max(0.0, (step.n - surely) / n)) * farthest
        return Clipping(outside, min(outside * typical, bound), bound)


def _release_from(record: Any, depth: int, is_step: bool = False) -> Release:
    known = entries(record, "a step" if is_step else "the record", [*_PLAIN, *_OBJECTS], _OPTIONAL)
    if known["format"] != FORMAT or depth > _DEEPEST:
        raise InvalidDataError(f"a step is not of format {FORMAT!r}, or steps are nested too deep")
    plain = {name: read(known[name], name) for name, read in _PLAIN.items()}
    if is_step and ("receipt" in known or "request" in known):
        raise InvalidDataError("a step has a receipt or a request of its own: it is asked and paid for with the rest")
    definition = STATISTICS.find(plain["statistic"])
    if definition is None:
        raise InvalidDataError(UNKNOWN_STATISTIC.format(plain["statistic"][:LONGEST_NAME]).rstrip("."))
    if not (0 < plain["scale"] < _LARGEST_NUMBER and 2 <= plain["n"] < _LARGEST_NUMBER):
        raise InvalidDataError("scale must be above 0 and n at least 2, both of a size that can be")
    if not isinstance(known["steps"], list) or not isinstance(known["draws"], list):
        raise InvalidDataError("steps and draws must be lists")
    draws = tuple(map(Drawn.from_dict, known["draws"]))
    if (plain["arithmetic"] == EXACT) != all(drawn.grid is not None for drawn in draws):
        raise InvalidDataError('grids belong to arithmetic "exact", and to no other')
    ball = released_ball_from_dict(known["ball"])
    details = numbers_by_name(known["details"], "details", definition.details)
    shape = definition.shape_stated(ball, details)
    nested = partial(_release_from, depth=depth + 1)
    release = Release(
        **plain,
        value=value_from_json(known["value"], definition.kind.value, ball.space, shape),
        privacy=promise_from_dict(known["privacy"]),
        share=promise_from_dict(known["share"]),
        sensitivity=sensitivity_from_dict(known["sensitivity"]),
        ball=ball,
        steps=tuple(_release_from(step, depth + 1, is_step=True) for step in known["steps"]),
        details=details,
        **_shrunken(known, ball),
        draws=draws,
        request=Request.from_dict(known["request"], nested) if "request" in known else None,
        receipt=Receipt.from_dict(known["receipt"]) if "receipt" in known else None,
    )
    answers = known.get("answers")
    if isinstance(answers, dict) and "estimand" in answers and release.mechanism not in MECHANISMS:
        raise InvalidDataError(
            f"its mechanism {release.mechanism!r} is not known here, and nothing it answers can be checked: install "
            "the distribution that offers it"
        )
    refuse_wrong_answers(known, release)
    return release


def _shrunken(record: dict[str, Any], ball: Ball) -> dict[str, Any]:
    """Return the two entries that a release has if its value was moved towards the centre, and only then."""
    if ("shrinkage" in record) != ("raw" in record):
        raise InvalidDataError("shrinkage and raw belong together")
    if "raw" not in record:
        return {}
    if not record["shrinkage"]:
        raise InvalidDataError("raw is there only where the value was moved")
    raw = value_from_json(record["raw"], Kind.POINT.value, ball.space, ball.space.shape)
    return {"shrinkage": words(record["shrinkage"], "shrinkage"), "raw": raw}
