"""What private calls tell about neighbours, draw by draw and exactly (tests/laws/replay.py).

Neighbours are a few pairs that are known to be bad, and pairs at random, some of their records outside the ball. Each
call keeps its promise on all of them, uses most of it on the worst, and breaks it where its noise is made too small.
Draws are exact and seeded: nothing here is left to chance.
"""

import math

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import mechanisms, sensitivity
from dpmanifold.features import JointMoments
from dpmanifold.mechanisms import registry
from dpmanifold.stats.search import RadiusSearch
from laws import replay
from laws.sabotage import with_less_noise

MU, EPSILON = 1.0, 1.0
N, MANY = 10, 400  # a search for a radius is skipped where there are few
ROUNDING = 1 + 1e-9
PLANE = dpm.Ball(dpm.Euclidean(2), [3.0, -1.0], 2.0)
TENSORS = dpm.Ball(dpm.SPD(2), np.diag([2.0, 0.5]), 1.0)
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.75)
MATRICES = dpm.Ball(dpm.SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 1.0)
SEVERAL = dpm.Product([dpm.SPD(2), dpm.Euclidean(1)], weights=[0.5, 2.0])
SEVERAL = dpm.Ball(SEVERAL, SEVERAL.origin, 1.5)
CURVED = dpm.Product([dpm.Sphere(2), dpm.SPD(2, metric="riemann")], weights=[2.0, 1.0])
CURVED = dpm.Ball(CURVED, CURVED.origin, 1.0)


def pairs(ball, n, random, seed=0):
    """Yield neighbours as coordinates at the centre over the radius: records of all, and the two of the last unit."""
    rng, d = np.random.default_rng(seed), ball.space.dim
    first, second = np.eye(d)[0], np.eye(d)[min(1, d - 1)]
    edge = np.tile(first, (n - 1, 1))
    yield edge, first, -first
    yield np.zeros((n - 1, d)), first, -first
    yield np.where(np.arange(n - 1) % 2, 1.0, -1.0)[:, None] * second, first, -first
    yield np.zeros((n - 1, d)), first, -0.25 * first + math.sqrt(15 / 16) * second
    for _ in range(random):
        c = rng.standard_normal((n + 1, d))
        c *= rng.choice([0.3, 1.0, 1.2], (n + 1, 1)) / np.linalg.norm(c, axis=1)[:, None]
        yield c[:-2], c[-2], c[-1]


def records(ball, *coords):
    c = np.concatenate([np.atleast_2d(part) for part in coords]) * (ball.radius * (1 - 1e-12))
    return ball.space.project(ball.space.exp_coords(ball.center, c))


def losses(call, ball, measure, monkeypatch, n=N, random=1):
    """Return what a call tells on each pair of neighbours."""
    return [
        measure(replay.told(call, records(ball, common, one), records(ball, common, other), monkeypatch))
        for common, one, other in pairs(ball, n, random)
    ]


def asked(private, ball, privacy, **options):
    how = {"units": dpm.EACH_RECORD, "confirm": True, "arithmetic": "exact", "rng": 0}
    return lambda X: private(X, ball, privacy, **how, **options)


STANDS_IN = {"refine": True, "mechanism": "tangent-mean-gaussian", "estimand": "frechet"}


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch):
    """What is broken on purpose in a test is neither hidden by an earlier choice of a mechanism nor remembered."""
    monkeypatch.setattr(registry, "_remembered_best", registry._best)


def number_for(options):
    return MANY if options.keys() & {"refine", "noise_shape"} else N


GAUSSIAN = {
    "mean": (dpm.private_mean, TENSORS, {}),
    "tangent mean": (dpm.private_mean, CAP, {"estimand": "tangent"}),
    "refined mean": (dpm.private_mean, TENSORS, {"refine": True}),
    "mean on the sphere": (dpm.private_mean, CAP, {}),
    "tangent mean for a Fréchet mean": (dpm.private_mean, MATRICES, STANDS_IN),
    "the same on the sphere": (dpm.private_mean, CAP, STANDS_IN),
    "mean with a public shape": (dpm.private_mean, TENSORS, {"noise_shape": np.diag([2e-2, 2e-3, 2e-4])}),
    "mean with a private shape": (dpm.private_mean, TENSORS, {"noise_shape": "private"}),
    "tangent mean with a shape": (dpm.private_mean, CAP, {"estimand": "tangent", "noise_shape": np.diag([1e-2, 5e-4])}),
    "mean of a product": (dpm.private_mean, SEVERAL, {}),
    "tangent mean of a product": (dpm.private_mean, CURVED, {"estimand": "tangent"}),
    "joint moments": (dpm.private_statistic, CAP, {"statistic": "joint moments"}),
    "joint moments, more weight": (dpm.private_statistic, TENSORS, {"statistic": "joint moments", "weight": 2.0}),
    "joint moments, refined": (dpm.private_statistic, TENSORS, {"statistic": "joint moments", "refine": True}),
    "joint moments of a product": (dpm.private_statistic, SEVERAL, {"statistic": "joint moments"}),
    "joint lengths": (dpm.private_statistic, PLANE, {"statistic": "joint lengths"}),
    "region": (dpm.private_region, TENSORS, {}),
    "region on a curved space": (dpm.private_region, CURVED, {}),
    "interval": (dpm.private_variance_interval, PLANE, {}),
    "refined interval": (dpm.private_variance_interval, TENSORS, {"refine": True}),
    "interval about a mean": (dpm.private_statistic, PLANE, {"statistic": "fourth moment"}),
    "median": (dpm.private_median, CAP, {"refine": True}),
}


def quick_first(calls, quick):
    """Return the names of calls for a parametrisation, those that take longer marked."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in calls]


QUICK = {
    "tangent mean", "the same on the sphere", "mean with a public shape", "mean of a product", "joint moments",
    "joint moments, more weight", "joint lengths", "region", "interval",
}  # fmt: skip


@pytest.mark.parametrize("name", quick_first(GAUSSIAN, QUICK))
def test_gaussian_draws_keep_their_promise_together(name, monkeypatch):
    private, ball, options = GAUSSIAN[name]
    call, n = asked(private, ball, dpm.GDP(MU), **options), number_for(options)
    found = losses(call, ball, replay.mu_of, monkeypatch, n)
    print(f"{name:32s} tells at most {max(found):.4f} of {MU}")
    assert 0.85 * MU < max(found) <= MU * ROUNDING
    with_less_noise(monkeypatch, 0.8)
    assert max(losses(call, ball, replay.mu_of, monkeypatch, n, random=0)) > MU


PURE = {
    "mean": (dpm.private_mean, TENSORS, {}),
    "mean on a curved space": (dpm.private_mean, MATRICES, {}),
    "mean on the sphere": (dpm.private_mean, CAP, {}),
    "tangent mean": (dpm.private_mean, CAP, {"estimand": "tangent"}),
    "refined mean": (dpm.private_mean, TENSORS, {"refine": True}),
}


@pytest.mark.parametrize("name", quick_first(PURE, {"mean on the sphere"}))
def test_pure_draws_keep_their_promise_together(name, monkeypatch):
    private, ball, options = PURE[name]
    call, n = asked(private, ball, dpm.PureDP(EPSILON), **options), 10 * MANY if "refine" in options else N
    found = losses(call, ball, replay.epsilon_of, monkeypatch, n)
    print(f"{name:32s} tells at most {max(found):.4f} of {EPSILON}")
    assert 0.85 * EPSILON < max(found) <= EPSILON * ROUNDING
    with_less_noise(monkeypatch, 0.8)
    assert max(losses(call, ball, replay.epsilon_of, monkeypatch, n, random=0)) > EPSILON


@pytest.mark.slow
def test_a_pure_median_keeps_its_promise(monkeypatch):
    """Two choices of a radius are never both at their worst, so that less of the promise is used than by others."""
    call = asked(dpm.private_median, CAP, dpm.PureDP(EPSILON))
    found = losses(call, CAP, replay.epsilon_of, monkeypatch, 10 * MANY)
    assert 0.75 * EPSILON < max(found) <= EPSILON * ROUNDING
    with_less_noise(monkeypatch, 0.7)
    assert max(losses(call, CAP, replay.epsilon_of, monkeypatch, 10 * MANY, random=0)) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_promises_are_kept_on_many_neighbours(name, monkeypatch):
    private, ball, options = GAUSSIAN[name]
    call, n = asked(private, ball, dpm.GDP(MU), **options), number_for(options)
    assert max(losses(call, ball, replay.mu_of, monkeypatch, n, random=12)) <= MU * ROUNDING


def test_weights_that_are_not_free_are_found_out(monkeypatch):
    """A second moment with a weight of 2 at the price of one with 1/2: 2 promised, the root of 6.25 told."""
    call = asked(dpm.private_statistic, PLANE, dpm.GDP(MU), statistic="joint moments", weight=2.0)
    monkeypatch.setattr(JointMoments, "diameter", lambda self, dim: 2.0)
    assert max(losses(call, PLANE, replay.mu_of, monkeypatch)) == pytest.approx(MU * math.sqrt(6.25) / 2)


def test_a_radius_that_is_measured_is_found_out(monkeypatch):
    """In the norm of a shape, the radius that holds everybody instead of one from noisy counts."""
    private, ball, options = GAUSSIAN["mean with a public shape"]
    call = asked(private, ball, dpm.GDP(MU), **options)
    others, far = np.zeros((MANY - 1, 3)), np.eye(3)[0]
    pair = records(ball, others, 0.5 * far), records(ball, others, 0 * far)
    assert replay.mu_of(replay.told(call, *pair, monkeypatch)) <= MU

    find = RadiusSearch.find

    def measured(self, counts):
        _, outputs = yield from find(self, counts)
        return int(np.searchsorted(counts.reveal()[: len(self.radii)], self.n)), outputs

    monkeypatch.setattr(RadiusSearch, "find", measured)
    with pytest.raises(AssertionError, match="depends on the data"):
        replay.told(call, *pair, monkeypatch)


def test_a_sphere_that_is_taken_for_flat_is_found_out(monkeypatch):
    """A bound of 2r/n in place of 2 tan(r)/n, at r = 0.75: 1.24 times the promise, for many units."""
    monkeypatch.setattr(sensitivity, "farthest_means", lambda r, curvature: 2 * r)
    call = asked(dpm.private_mean, CAP, dpm.PureDP(EPSILON))
    assert max(losses(call, CAP, replay.epsilon_of, monkeypatch, random=0)) > 1.15 * EPSILON


def test_a_scale_that_depends_on_the_data_is_seen(monkeypatch):
    """Whoever reads a scale off the data is found out by it, whatever the losses are."""
    kind = type(mechanisms.get("tangent-mean-gaussian"))
    true = kind.numbers

    def measured(self, ball, calibration, mean, points, source):
        spread = float(np.ptp(points.array()))
        return true(self, ball, dpm.mechanisms.Calibration(**{**vars(calibration), "scale": 1 + spread}), mean, points,
                    source)  # fmt: skip

    monkeypatch.setattr(kind, "numbers", measured)
    with pytest.raises(AssertionError, match="depends on the data"):
        losses(asked(dpm.private_mean, CAP, dpm.GDP(MU), estimand="tangent"), CAP, replay.mu_of, monkeypatch)
