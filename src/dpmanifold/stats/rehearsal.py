"""What others contribute is tried on public points before anything is paid: the whole call, thrown away.

A space, a statistic, a feature map, a mechanism or the plan of a query that is not the library's own may fail in a step
that comes behind the payment, and then the payment is lost; or a step of it may have no numbers for anything, and then
every release would be made of fallbacks. So a call with such a part in it is made once in a process with points that a
fixed seed puts into the ball and with bits of its own. What that raises is about public points, and is told in full.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold._fallback import watched
from dpmanifold.ball import Ball
from dpmanifold.errors import ConvergenceError, DPManifoldError, InvalidArgumentError
from dpmanifold.frechet import InClass, LabelledPoints, UnitPoints
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.vectors import vector_norm
from dpmanifold.mechanisms import Mechanism
from dpmanifold.noise.source import SimulationSource
from dpmanifold.release import Release
from dpmanifold.statistic import REPLACE_ONE_UNIT_SAME_CLASSES, Header, Statistic, Step
from dpmanifold.stats.draws import Bits
from dpmanifold.stats.marks import MarkedPoints
from dpmanifold.stats.payment import outcome_of, releases_in
from dpmanifold.stats.requests import Question, written_options

# Different points: most of them near the centre, so that a smaller ball is found where one is looked for, and some up
# to the edge.
_NEAR, _FAR = np.linspace(0.0, 0.1, 63), np.array([0.7, 1.0])
_SEED = 0

_rehearsed: set[Hashable] = set()


def rehearse(
    parts: list[object],
    question: Question[Any],
    header: Header,
    exact: bool,
    steps: Callable[[], Sequence[Step]],
    release: Callable[[Bits], Sequence[Release]],
    stored: bool,
) -> None:
    """Make a call with public points, or refuse; once in a process.

    Parameters
    ----------
    parts : what of it is not the library's own (:meth:`Question.contributed`)
    question : what is asked, with its options
    header : of whom, with which promise
    exact : whether noise is drawn exactly where it can be, as in the call itself
    steps : returns the draws that are planned
    release : draws with the bits that it is given
    stored : whether an account will keep the result, and must be able to read it again
    """
    known = _key(parts, question, header, exact, steps, stored)
    if known is not None and known in _rehearsed:
        return
    bits = Bits(SimulationSource(_SEED), False, exact)
    _try(" and ".join(map(_named, parts)), question.name, header, partial(release, bits), stored)
    if known is not None:
        _rehearsed.add(known)


def _key(
    parts: list[object],
    question: Question[Any],
    header: Header,
    exact: bool,
    steps: Callable[[], Sequence[Step]],
    stored: bool,
) -> Hashable | None:
    """Return what a rehearsal is remembered by, all that decides which steps run; None where parts cannot tell."""
    try:
        options = json.dumps(written_options(question.plan, question.options), sort_keys=True)
    except InvalidArgumentError:  # what cannot be written down
        return None
    drawn = tuple((step.statistic, step.mechanism, step.arithmetic) for step in steps())
    about = (repr(header.ball.space), header.ball.is_whole, header.unit, header.adjacency, type(header.privacy))
    key = (question.name, options, about, drawn, exact, stored, *parts)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _try(who: str, name: str, header: Header, release: Callable[[], Sequence[Release]], stored: bool) -> None:
    try:
        with watched() as taken, np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = release()
            written = outcome_of(found)
            if stored:
                releases_in(written)
            _refuse_others(found, header)
    except (MemoryError, OSError):
        raise  # of the machine, and nothing has been paid
    except Exception as problem:
        raise InvalidArgumentError(
            f"{who} cannot be used for a {name}: on public points of the ball it fails with "
            f"{type(problem).__name__}: {str(problem).rstrip('.')}. Nothing was spent."
        ) from problem
    # The library itself refuses by released numbers; whatever else is a step without a result.
    failed = [one for one in taken if isinstance(one, ConvergenceError) or not isinstance(one, DPManifoldError)]
    if failed:
        raise InvalidArgumentError(
            f"{who} cannot be used for a {name}: on public points of the ball a step has no numbers, "
            f"and a fixed value would take its place in every release ({type(failed[0]).__name__}: {failed[0]}). "
            "Nothing was spent."
        ) from failed[0]


def _refuse_others(found: Sequence[Release], header: Header) -> None:
    """Refuse releases that are about something else than is paid for, or that cost more together."""
    for release in found:
        for name in ("privacy", "unit", "adjacency"):
            if getattr(release, name) != getattr(header, name):
                raise InvalidArgumentError(f"a release states another {name} than is asked for")
    if len(found) > 1 and header.adjacency != REPLACE_ONE_UNIT_SAME_CLASSES:
        raise InvalidArgumentError("it makes several releases of the same units, which cost more than one")
    if len(found) == 1 and found[0].n != header.n:
        raise InvalidArgumentError("a release states another number of units than there are")


def _named(part: object) -> str:
    if isinstance(part, Manifold):
        return f"space {part!r}"
    if inspect.isroutine(part) or inspect.isclass(part):
        return f"plan {part.__name__!r}"
    kind = "mechanism" if isinstance(part, Mechanism) else "statistic" if isinstance(part, Statistic) else "map"
    return f"{kind} {getattr(part, 'name', type(part).__name__)!r}"


# -------------------------------------------------------------------- public points


def public_units(ball: Ball, n: int, unit: str = "record") -> UnitPoints:
    """Return n units at fixed points of a ball: most near its centre, some up to its edge.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> len(public_units(Ball(Euclidean(2), [1.0, 2.0], 3.0), 1000))
    1000
    """
    space = ball.space
    lengths = np.concatenate([_NEAR, _FAR]) * (1.0 if ball.is_whole else ball.radius)
    steps = np.random.default_rng(_SEED).uniform(-1.0, 1.0, (len(lengths), space.dim))
    steps *= (lengths / vector_norm(steps))[:, None]
    points = ball.into_frame(space.exp_coords(ball.center, steps))
    return UnitPoints.repeated(points, ball, n, unit)


def public_groups(ball: Ball, counts: Sequence[int], unit: str) -> list[UnitPoints]:
    """Return such units, so many in each group."""
    return [public_units(ball, n, unit) for n in counts]


def public_classes(ball: Ball, n: int, unit: str, classes: int) -> LabelledPoints:
    """Return such units in classes of about the same size, each in one."""
    sizes = [n // classes + (number < n % classes) for number in range(classes)]
    parts = [InClass(number, 1, public_units(ball, size, unit)) for number, size in enumerate(sizes) if size]
    return LabelledPoints(public_units(ball, n, unit), parts)


def public_marks(ball: Ball, n: int) -> MarkedPoints:
    """Return such units of one record each, with covariates over the whole range."""
    marks: FloatArray = np.linspace(-1.0, 1.0, n)
    return MarkedPoints(ball, public_units(ball, n).array(), marks)
