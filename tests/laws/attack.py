"""An attack on every draw of a private call, whatever it asks: what is hidden in it, for two neighbouring data sets.

The call is made on the first data set; each draw, what it hides and its outcome are written down. Then it is made on
the second with the same outcomes in place of draws, so that whatever follows from them is the same. What is hidden may
differ by no more than the sensitivity that the draw states; over the scale, by no more than its share; and all draws
together by no more than the promise. Nothing here comes from the programs that make the draws.
"""

import math
from dataclasses import dataclass

import numpy as np

import dpmanifold as dpm
from dpmanifold import _fallback
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.mechanisms.shared import VectorMechanism
from dpmanifold.stats import draws

ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Attacked:
    """One draw on two neighbouring data sets.

    Attributes
    ----------
    change : how far what is hidden moved
    stated : how far it may move, as the draw states it
    loss : the change over the scale: mu of normal noise, epsilon of Laplace noise and of a choice
    share : the same as the draw's share states it
    normal : whether losses are mu, of which squares add up, or epsilon
    """

    change: float
    stated: float
    loss: float
    share: float
    normal: bool


def attacked(call, first, second, monkeypatch):
    """Return every draw of `call(records)` on two neighbouring data sets."""
    seen = _made(call, first, monkeypatch, None)
    again = _made(call, second, monkeypatch, [outcome for *_, outcome in seen])
    assert [public for public, *_ in seen] == [public for public, *_ in again], "a law or a scale depends on the data"
    return [_compared(one, hidden, other) for (_, one, hidden, _), (_, _, other, _) in zip(seen, again, strict=True)]


def together(found):
    """Return what draws tell together."""
    assert len({one.normal for one in found}) == 1
    losses = [one.loss for one in found]
    return math.hypot(*losses) if found[0].normal else sum(losses)


def failing(call, first, second, monkeypatch):
    """Return, of every draw, what is hidden for two data sets where all arithmetic about records fails."""
    with monkeypatch.context() as patched:
        patched.setattr(_fallback, "is_finite", lambda result: False)
        found = [_made(call, records, patched, None) for records in (first, second)]
    return [(one[2], other[2]) for one, other in zip(*found, strict=True)]


def _made(call, records, monkeypatch, outcomes):
    """Make a call and return (what is public, the draw, what is hidden, the outcome) for every draw."""
    seen = []

    def spy(true, hidden_in):
        def drawn(self, bits):
            outcome = true(self, bits) if outcomes is None else outcomes[len(seen)]
            seen.append((_public(self), self, hidden_in(self), outcome))
            return outcome

        return drawn

    with monkeypatch.context() as patched:
        for kind, hidden_in in _HIDDEN.items():
            patched.setattr(kind, "draw", spy(kind.draw, hidden_in))
        call(records)
    assert seen, "nothing was drawn"
    return seen


def _in_a_choice(draw):
    return np.array([float(one) for one in draw.missing.reveal()])


def _in_a_point(draw):
    points, mechanism = draw.units.reveal(), draw.chosen[0]
    mean = draw._solved(points) if mechanism.estimand == FRECHET else draw.ball.frame.origin
    return mechanism.hidden(draw.ball, mean, points) if isinstance(mechanism, VectorMechanism) else mean


_HIDDEN = {
    draws.VectorDraw: lambda draw: np.array(draw.hidden.reveal(), dtype=float),
    draws.PointDraw: _in_a_point,
    draws.ChoiceDraw: _in_a_choice,
}


def _public(draw):
    """What of a draw must be the same for both."""
    if isinstance(draw, draws.ChoiceDraw):
        return draw.count, draw.epsilon, draw.share
    return calibration_of(draw), draw.grid


def calibration_of(draw):
    return draw.calibration if isinstance(draw, draws.VectorDraw) else draw.chosen[1]


def _compared(draw, hidden, other):
    if isinstance(draw, draws.ChoiceDraw):
        # A unit moves each place's number of missing units by one at most, which the exponential mechanism halves.
        change = float(np.abs(hidden - other).max())
        return Attacked(change, 1.0, draw.epsilon * change, _amount(draw.share), False)
    calibration = calibration_of(draw)
    curved = isinstance(draw, draws.PointDraw) and not isinstance(draw.chosen[0], VectorMechanism)
    change = float(draw.ball.frame.dist(hidden, other) if curved else np.linalg.norm(hidden - other))
    law = draw.chosen[0].noise if isinstance(draw, draws.PointDraw) else calibration.mechanism
    return Attacked(
        change, calibration.sensitivity.value, change / calibration.scale, _amount(draw.share), law == "gaussian"
    )


def _amount(share):
    """mu or epsilon of a share."""
    assert isinstance(share, dpm.GDP | dpm.PureDP), share
    return float(next(iter(share.exact.values())))
