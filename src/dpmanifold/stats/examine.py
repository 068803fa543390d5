"""One release held against what the library makes of its request and its outputs (:mod:`dpmanifold.stats.program`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields
from itertools import combinations
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidDataError, PromiseError
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import cost_of, fits
from dpmanifold.release import RELEASED, REVEALED, Release, Request
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import Decisions, Header
from dpmanifold.stats.program import Output, Replayed, replay
from dpmanifold.stats.query import query_named
from dpmanifold.stats.ranges import DRAWN_ROUNDING, QUADRATURE, rounding_of, same_number

# What is not compared: outputs and steps are looked at by themselves, and nobody can recompute the others.
_NOT_COMPARED = ("draws", "steps", "request", "receipt", "unregistered")


@dataclass
class Findings:
    """What was recomputed and agrees, and what is wrong, in words."""

    good: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)

    def add(self, other: Findings, name: str) -> None:
        """Take over what was found about a part."""
        self.good += [name + text for text in other.good]
        self.wrong += [name + text for text in other.wrong]
        self.outputs += other.outputs

    def require(self, holds: object, otherwise: str) -> None:
        """Note what is wrong if something does not hold."""
        if not holds:
            self.wrong.append(otherwise)


def examine(release: Release) -> Findings:
    """Return what a release that stands by itself states rightly and wrongly."""
    request = release.request
    if request is None:
        raise InvalidDataError("it does not say what was asked for")
    decisions = Decisions(request.decisions, request.group)
    found = replayed(release, request, decisions)
    findings = Findings(outputs=found.outputs, wrong=found.faults)
    unmade = sorted(request.decisions.keys() - decisions.asked)
    findings.require(not unmade, f"decisions that nobody makes: {', '.join(unmade)}")
    for computed, stated in found.steps:
        name = "" if stated is release else f"step {stated.statistic!r}: "
        differences = list(_differences(stated, computed))
        findings.wrong += [name + text for text in differences]
        if not differences:
            findings.good.append(f"{name}{_agreeing(stated)}")
    for output in found.outputs:
        name = "" if output.step is release else f"step {output.step.statistic!r}: "
        findings.wrong += [name + fault for fault in _faults(output)]
    findings.require(release.unit in ("record", "unit"), f"unit: a {release.unit!r} is not what the library protects")
    findings.require(
        not (release.private and (_is_revealed(release) or request.ball.simulated)),
        "it calls itself private but rests on a simulation, or shows something of the data",
    )
    if not findings.wrong:
        findings.good.append(f"the draws together cost no more than the stated {release.privacy}")
        findings.good.append("values: ones that follow from what was drawn, and that could have been drawn")
    if request.ball.source.startswith(RELEASED):
        findings.good.append("the ball was itself released before: what that cost comes on top of this promise")
    _compare_receipt(release, findings)
    return findings


def replayed(release: Release, request: Request, decisions: Decisions) -> Replayed:
    """Return what the query that was asked for makes of the outputs of a release."""
    query = query_named(request.query)
    header = Header(
        request.ball,
        request.n,
        release.privacy,
        release.unit,
        query.sample.adjacency(request.options),
        private=release.private or (_is_revealed(release) and all(step.private for step in release.steps)),
        decisions=decisions,
    )
    return replay(query.plan(header, **request.options), release)


def _is_revealed(release: Release) -> bool:
    """Return whether it shows something of the data beside what was drawn."""
    return release.details.keys() >= REVEALED


def _agreeing(release: Release) -> str:
    """Say in a few words what was recomputed."""
    grids = {drawn.grid for drawn in release.draws}
    exact = "" if None in grids else f", multiples of 2^{release.draws[0].grid}"
    return (
        f"sensitivity {release.sensitivity.value:.6g}, share {release.share}, scale {release.scale:.6g}, tolerance "
        f"{release.tol:.6g}{exact}; mechanism, rule, bound, proof, timing and adjacency are the library's"
    )


def _faults(output: Output) -> list[str]:
    """Return why an output cannot have been drawn: off its grid, or where no units and no noise come to."""
    grid = output.drawn.grid
    if grid is not None and grid != output.draw.grid:
        return [f"grid: stated {grid}, recomputed {output.draw.grid}"]
    if grid is not None and not on_grid(output.drawn.numbers, grid):
        return [f"drawn: not multiples of 2^{grid}"]
    return output.draw.faults(output.drawn)


def on_grid(numbers: FloatArray | float, grid: int) -> bool:
    """Return whether numbers are multiples of 2^grid.

    Examples
    --------
    >>> on_grid(0.75, -2), on_grid(0.75, -1)
    (True, False)
    """
    multiples = np.ldexp(numbers, -grid)
    return bool((multiples == np.rint(multiples)).all())


# -------------------------------------------------------------------- comparing


def _differences(stated: Release, computed: Release) -> Iterator[str]:
    """Yield in what a step differs from the one that the library makes of the same outputs."""
    slack = rounding_of(computed.ball, computed.ball.center)
    for one in fields(Release):
        if one.name in _NOT_COMPARED:
            continue
        mine, theirs = getattr(stated, one.name), getattr(computed, one.name)
        if one.name == "details":
            known = {name: value for name, value in mine.items() if stated.private or name not in REVEALED}
            yield from _by_name(one.name, known, theirs, slack)
        elif one.name == "private" and _is_revealed(stated):
            continue
        elif one.name in ("value", "raw"):
            if (mine is None) != (theirs is None) or (mine is not None and not _follows(stated, mine, theirs)):
                yield f"{one.name}: it does not follow from what was drawn"
        elif not _same(mine, theirs):
            yield f"{one.name}: stated {_told(mine, theirs)}, recomputed {_told(theirs, mine)}"


def _by_name(what: str, stated: dict[str, float], computed: dict[str, float], slack: float) -> Iterator[str]:
    for name in sorted(stated.keys() | computed.keys()):
        if name not in stated or name not in computed:
            yield f"{what}: {name!r} is {'missing' if name in computed else 'stated and does not belong there'}"
        elif not math.isclose(stated[name], computed[name], rel_tol=QUADRATURE, abs_tol=slack):
            yield f"{name}: stated {stated[name]:.6g}, recomputed {computed[name]:.6g}"


def _same(stated: Any, computed: Any) -> bool:
    """Return whether two entries are equal, numbers to rounding (shares are rounded down, sums up)."""
    if isinstance(stated, float) and isinstance(computed, float):
        return same_number(stated, computed)
    if isinstance(stated, (Promise, Sensitivity)) and type(stated) is type(computed):
        return all(map(_same, astuple(stated), astuple(computed)))
    return bool(stated == computed)


def _told(one: Any, other: Any) -> str:
    """Return an entry for people, with all digits where fewer would not show the difference."""
    if isinstance(one, float) and isinstance(other, float):
        return f"{one:.6g}" if f"{one:.6g}" != f"{other:.6g}" else repr(one)
    if isinstance(one, Sensitivity) and isinstance(other, Sensitivity):
        return ", ".join(_told(*pair) for pair in zip(astuple(one), astuple(other), strict=True) if pair[0] != pair[1])
    return repr(one) if isinstance(one, (str, Ball, type(None))) else str(one)


def _follows(release: Release, stated: Any, computed: Any) -> bool:
    """Return whether a value is what post-processing makes of the draw, rounding aside."""
    if isinstance(computed, Ball):
        same = stated.space == computed.space and same_number(stated.radius, computed.radius)
        near = same and _follows(release, stated.center, computed.center)
        return near and (stated.source, stated.simulated) == (computed.source, computed.simulated)
    mine, theirs = np.asarray(stated), np.asarray(computed)
    slack = DRAWN_ROUNDING * float(np.abs(theirs).max())
    if theirs.shape == release.ball.space.shape:
        slack += rounding_of(release.ball, theirs)
    return mine.shape == theirs.shape and bool(np.abs(mine - theirs).max() <= slack)


def _compare_receipt(release: Release, findings: Findings) -> None:
    """Say whether a receipt can be of this release; whether it is true, the ledger knows."""
    if release.receipt is None:
        return
    spent = release.receipt.promise
    try:
        paid = fits(cost_of(release.privacy, spent), cost_of(spent, spent))
    except PromiseError:
        findings.wrong.append(f"receipt: no such cap as {spent} was spent from pays for {release.privacy}")
        return
    findings.require(paid, "receipt: less was spent than this release promises")
    findings.require(release.private, "receipt: no account pays for what is not private")
    if paid and release.private:
        findings.good.append(f"receipt: it may be of this release (total spent so far: {spent}); the ledger can tell")


# -------------------------------------------------------------------- copies

COPY_ALARM = 1e-8
"""The probability that an honest result is refused because two of its draws came near each other, at most.

It is shared out evenly among all pairs. Were it much smaller, a single number that was moved by one step of its grid,
2^-30 of the scale, would pass for another draw.
"""


def copy_faults(outputs: Sequence[tuple[str, Output]]) -> list[str]:
    """Return which outputs are copies of earlier ones, given each with whose it is in words."""
    pairs = [
        (one, other)
        for one, other in combinations(outputs, 2)
        if one[1].drawn.numbers.shape == other[1].drawn.numbers.shape
    ]
    return [
        f"{name} is a copy of {first}, or nearly: two draws do not come so near each other"
        for (first, earlier), (name, output) in pairs
        if output.draw.apart(output.drawn, earlier.drawn) <= output.draw.nearest(output.drawn, COPY_ALARM / len(pairs))
    ]
