"""Every draw of every query, attacked with neighbouring data sets (tests/laws/attack.py), and what must be caught.

Another query is attacked once it is in the table: a test holds the table against the registry.
"""

import inspect

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.features import JointMoments
from dpmanifold.registry import is_own_function
from dpmanifold.stats import draws, program, search
from laws import attack

PROMISE, PURE = dpm.GDP(1.0), dpm.PureDP(1.0)
FEW, MANY = 12, 400  # a smaller ball is looked for where there are many units
PLANE = dpm.Ball(dpm.Euclidean(2), [3.0, -1.0], 2.0)
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6)
TENSORS = dpm.Ball(dpm.SPD(2), np.diag([2.0, 0.5]), 1.0)
MATRICES = dpm.Ball(dpm.SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 1.0)
HYPERBOLIC = dpm.Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.0)


def alone(ball, other, n):
    return {}


def classed(ball, other, n):
    """Private classes: the last unit has another one, too."""
    labels = np.arange(n) % 3
    labels[-1] = 1 if other else 0
    return {"labels": labels, "classes": [0, 1, 2]}


def grouped(ball, other, n):
    """Public groups."""
    return {"labels": np.arange(n) % 3, "classes": [0, 1, 2]}


def aged(ball, other, n):
    """Private covariates: the last unit has another one, too."""
    covariate = np.linspace(0.0, 1.0, n)
    covariate[-1] = 0.0 if other else 1.0
    return {"covariate": covariate, "covariate_range": (0.0, 1.0)}


def publicly(beside, **options):
    """Whatever stands beside the records is public: the same for both."""
    return lambda ball, other, n: beside(ball, False, n) | options


CALLS = {
    "mean": (dpm.private_mean, alone),
    "class-means": (dpm.private_class_means, grouped),
    "median": (dpm.private_median, alone),
    "variance": (dpm.private_variance, alone),
    "variance-interval": (dpm.private_variance_interval, alone),
    "region": (dpm.private_region, alone),
    "two-sample-test": (dpm.private_two_sample_test, alone),
    "k-sample-test": (dpm.private_k_sample_test, grouped),
    "lda": (dpm.private_lda, classed),
    "pga": (dpm.private_pga, alone),
    "regression": (dpm.private_regression, aged),
    "ball": (dpm.private_ball, alone),
}
PUBLICLY = {
    "lda": publicly(classed, labels_public=True),
    "regression": publicly(aged, covariate_public=True),
}
REFINED = {"mean", "class-means", "median", "variance-interval", "region", "k-sample-test", "two-sample-test"}
CASES = [
    *((name, ball, PROMISE, {}, False) for name in CALLS for ball in (PLANE, CAP)),
    *((name, TENSORS, PROMISE, {"refine": True}, False) for name in CALLS if name in REFINED),
    *((name, CAP, PROMISE, {"estimand": "tangent"}, False) for name in ("mean", "region", "two-sample-test")),
    *((name, PLANE, PROMISE, {}, True) for name in PUBLICLY),
    *(("mean", ball, PURE, {}, False) for ball in (PLANE, CAP, MATRICES, HYPERBOLIC)),
    *((name, CAP, PURE, {}, False) for name in ("median", "variance", "ball")),
    ("mean", PLANE, PROMISE, {"noise_shape": "private"}, False),
]


def name_of(case):
    name, ball, promise, options, public = case
    asked = ", ".join(f"{option}={value}" for option, value in options.items())
    return f"{name}, {ball.space!r}, {type(promise).__name__}, {asked}{', public' if public else ''}"


def number_for(name, promise, options):
    if (name, promise) == ("median", PURE):
        return 10 * MANY
    return MANY if options.keys() & {"refine", "noise_shape"} or name in ("ball", "median") else FEW


def pairs(ball, n):
    """Yield neighbours as coordinates over the radius: records of all units but the last, and two of that one."""
    d = ball.space.dim
    first, second = np.eye(d)[0], np.eye(d)[1]
    yield np.zeros((n - 1, d)), first, -first
    yield np.tile(first, (n - 1, 1)), first, -first
    yield np.where(np.arange(n - 1) % 2, 1.0, -1.0)[:, None] * second, first, -first
    rng = np.random.default_rng(0)
    c = rng.standard_normal((n + 1, d))
    c *= rng.choice([0.05, 0.3, 1.0, 1.2], (n + 1, 1)) / np.linalg.norm(c, axis=1)[:, None]
    yield c[:-2], c[-2], c[-1]


def calls_of(case):
    """Return the call and the pairs of neighbours that it is made on."""
    name, ball, promise, options, public = case
    private, beside = CALLS[name][0], PUBLICLY[name] if public else CALLS[name][1]
    n = number_for(name, promise, options)
    kind = inspect.signature(private).parameters

    def call(sample):
        X, other = sample
        given = beside(ball, other, n)
        how = {"units": dpm.EACH_RECORD, "confirm": True, "rng": 0}
        before = [given.pop(argument) for argument in ("labels", "covariate") if argument in given]
        if "Y" in kind:  # the second group, in which nobody is another
            before = [ball.space.project(ball.space.exp_coords(ball.center, np.zeros((n, ball.space.dim))))]
        return private(X, *before, ball, promise, **how, **options, **given)

    def sample(common, last, other):
        c = np.concatenate([common, np.atleast_2d(last)]) * (ball.radius * (1 - 1e-12))
        return ball.space.project(ball.space.exp_coords(ball.center, c)), other

    return call, [(sample(common, one, False), sample(common, two, True)) for common, one, two in pairs(ball, n)]


def violations(case, monkeypatch):
    """Return what is wrong with the draws of a call, in words."""
    call, samples = calls_of(case)
    promised = attack._amount(case[2])
    found = []
    for first, second in samples:
        told = attack.attacked(call, first, second, monkeypatch)
        for place, one in enumerate(told):
            if one.change > one.stated * attack.ROUNDING:
                found.append(f"draw {place} moves by {one.change:.4g}, stated {one.stated:.4g}")
            if one.loss > one.share * attack.ROUNDING:
                found.append(f"draw {place} tells {one.loss:.4g}, its share is {one.share:.4g}")
        if attack.together(told) > promised * attack.ROUNDING:
            found.append(f"together they tell {attack.together(told):.4g} of {promised:.4g}")
        hidden = attack.failing(call, first, second, monkeypatch)
        if not all(np.array_equal(one, other) for one, other in hidden):
            found.append("what stands in where arithmetic fails depends on the records")
    return found


def test_every_query_is_attacked():
    assert set(CALLS) == {query.name for query in dpm.QUERIES if is_own_function(query.call)}


@pytest.mark.security
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_draw_tells_more_than_it_states(case, monkeypatch):
    assert violations(case, monkeypatch) == []


# -------------------------------------------------------------------- what the attack must catch


REGION = ("region", PLANE, PROMISE, {}, False)
REFINED_MEAN = ("mean", TENSORS, PROMISE, {"refine": True}, False)


@pytest.mark.security
def test_a_sensitivity_that_is_too_small_is_caught(monkeypatch):
    true = JointMoments.diameter
    monkeypatch.setattr(JointMoments, "diameter", lambda self, dim: true(self, dim) / 2)
    assert any("stated" in text for text in violations(REGION, monkeypatch))


@pytest.mark.security
def test_a_share_that_is_stated_too_small_is_caught(monkeypatch):
    true = draws.VectorDraw.share.fget
    monkeypatch.setattr(draws.VectorDraw, "share", property(lambda self: dpm.GDP(true(self).mu / 2)))
    assert any("its share is" in text for text in violations(REGION, monkeypatch))


@pytest.mark.security
def test_a_fallback_that_knows_the_records_is_caught(monkeypatch):
    true = draws.Hidden.then
    monkeypatch.setattr(draws.Hidden, "then", lambda self, compute, fallback=None: true(self, compute, compute))
    assert any("stands in" in text for text in violations(REGION, monkeypatch))


@pytest.mark.security
def test_a_meter_that_counts_nothing_is_caught(monkeypatch):
    """A search whose counts are given the whole promise each goes unnoticed by a meter that counts nothing."""
    monkeypatch.setattr(search.RadiusSearch, "last_share", property(lambda self: PROMISE))
    with pytest.raises(dpm.ReleaseLostError):
        violations(REFINED_MEAN, monkeypatch)
    monkeypatch.setattr(program.Meter, "_require", lambda *_: None)
    assert any("together" in text for text in violations(REFINED_MEAN, monkeypatch))
