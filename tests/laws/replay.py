"""What a private call tells about two neighbouring data sets, draw by draw and exactly: no histogram, no confidence.

Every exact draw of the library is a vector plus noise (`noise.exact_vector_noise.noisy_vector`), a choice among radii
(`noise.exact_vector_noise.likeliest`) or a point drawn about a point of a curved space (`DistanceSampler.draw`). The
call is made on the first data set; what was hidden in each draw, its law, scale and grid, and its outcome are written
down. Then it is made on the second with the same outcomes in place of draws, so that whatever later steps choose (a
centre, a radius, a shape) is chosen alike. Laws, scales and grids must now be the same, as they may depend on outcomes
alone; and how far apart the hidden things are, in units of the scale, is all that a draw tells.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy import special

from dpmanifold.noise import exact_vector_noise
from dpmanifold.noise.exact_samplers import DistanceSampler

FLAT, CURVED, CHOICE = "flat", "curved", "choice"


@dataclass(frozen=True)
class Told:
    """One draw.

    Attributes
    ----------
    kind, law : a vector ("flat"), a point ("curved") or a choice; "gaussian", "laplace" or "exponential"
    loss : distance over scale: the mu of a flat Gaussian draw, and at least the mu of one on a sphere (theory: noise);
        the epsilon of a Laplace draw; of a choice the log ratio
    """

    kind: str
    law: str
    loss: float


def told(call, first, second, monkeypatch):
    """Return what each draw of `call(records)` tells about which of two data sets it was given."""
    seen = _called(call, first, monkeypatch, None)
    again = _called(call, second, monkeypatch, [draw[-1] for draw in seen])
    assert [draw[0] for draw in seen] == [draw[0] for draw in again], "a law, a scale or a grid depends on the data"
    return [_told(*one[:2], other[1], one[2]) for one, other in zip(seen, again, strict=True)]


def mu_of(draws):
    """Return the mu that Gaussian draws keep together: flat ones keep no less, and those on spheres no more."""
    assert all(draw.law == "gaussian" for draw in draws)
    return math.sqrt(sum(draw.loss**2 for draw in draws))


def epsilon_of(draws):
    """Return the epsilon that draws of pure mechanisms keep together."""
    assert all(draw.law in ("laplace", "exponential") for draw in draws)
    return sum(draw.loss for draw in draws)


def _told(public, hidden, other, outcome):
    kind, law, scale, *_ = public
    if kind == CHOICE:
        ours, theirs = (scores - special.logsumexp(scores) for scores in (hidden, other))
        return Told(kind, law, abs(float((ours - theirs)[outcome])))
    if kind == CURVED:
        return Told(kind, law, float(public[-1].dist(hidden, other)) / scale)
    return Told(kind, law, float(np.linalg.norm(hidden - other)) / scale)


def _called(call, records, monkeypatch, outcomes):
    """Make the call and return (what is public, what is hidden, outcome) for every draw."""
    seen = []

    def written(public, hidden, draw):
        outcome = draw() if outcomes is None else outcomes[len(seen)]
        seen.append((public, np.array(hidden), outcome))
        return outcome.copy() if isinstance(outcome, np.ndarray) else outcome

    def vector(true):
        def spy(v, law, scale, grid, source):
            return written((FLAT, law, scale, grid, np.size(v)), v, lambda: true(v, law, scale, grid, source))

        return spy

    def point(true):
        def spy(sampler, mean, scale, grid, source):
            public = (CURVED, sampler.law, scale, grid, sampler.space)
            return written(public, mean, lambda: true(sampler, mean, scale, grid, source))

        return spy

    def choice(true):
        def spy(scores, source):
            public = (CHOICE, "exponential", 1.0, len(scores))
            return written(public, [float(score) for score in scores], lambda: true(scores, source))

        return spy

    spies = [
        ("noisy_vector", exact_vector_noise.noisy_vector, vector),
        ("likeliest", exact_vector_noise.likeliest, choice),
    ]
    with monkeypatch.context() as patched:
        patched.setattr(DistanceSampler, "draw", point(DistanceSampler.draw))
        for module in [module for name, module in sys.modules.items() if name.startswith("dpmanifold")]:
            for name, true, spied in spies:
                if getattr(module, name, None) is true:
                    patched.setattr(module, name, spied(true))
        call(records)
    assert seen, "nothing was drawn exactly"
    return seen
