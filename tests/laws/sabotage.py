"""Promises broken on purpose: what an audit that is worth anything must notice."""

import sys

from dpmanifold.mechanisms import registry
from dpmanifold.privacy import calibrate


def with_less_noise(monkeypatch, share):
    """Let everything that is calibrated draw with a share of its noise; the search for a radius is left alone."""
    monkeypatch.setattr(registry, "_remembered_best", registry._best)  # what was chosen with all its noise is forgotten
    for name in ("gaussian_scale", "laplace_scale"):
        true = getattr(calibrate, name)
        for room, module in list(sys.modules.items()):
            outside = room.startswith(("dpmanifold.mechanisms", "dpmanifold.stats", "dpmanifold.features"))
            if outside and room != "dpmanifold.stats.search" and getattr(module, name, None) is true:
                monkeypatch.setattr(module, name, _shrunk(true, share))


def _shrunk(true, share):
    return lambda *given, **how: share * true(*given, **how)
