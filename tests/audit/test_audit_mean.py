"""`audit_mean` and `dpm audit`: what is refuted, what is not, and how both are told."""

import dataclasses
import json
import time
import types

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.audit import Audit, Finding, audit_mean, mean_audit as mean_room, picture
from dpmanifold.audit.empirical import advantage, certified, epsilon_of, mu_of, rho_of
from dpmanifold.audit.findings import ADVANTAGE, BLACK_BOX, TIMING, WORDS
from dpmanifold.audit.mean_audit import neighbours
from dpmanifold.cli import app
from dpmanifold.mechanisms import wrapped

LINE = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
SMALL = Audit(
    LINE,
    10,
    dpm.GDP(0.1),
    "wrapped-gaussian",
    "exact",
    800,
    0.999,
    (
        Finding(BLACK_BOX, "generic", "mu", 0.1, 0.09, 0.0, True),
        Finding(TIMING, "generic", ADVANTAGE, 0.04, 0.9, 0.8, False),
    ),
)
BROKEN = dataclasses.replace(SMALL, findings=(Finding(WORDS, "generic", ADVANTAGE, 0.04, 0.6, 0.5, True),))
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.75)


def named(found, attack):
    return [finding for finding in found.findings if finding.attack == attack]


@pytest.mark.parametrize(
    ("measure", "truth", "least"), [(mu_of, 1.0, 0.8), (rho_of, 0.5, 0.2), (advantage, 2 * 0.6914625 - 1, 0.3)]
)
def test_certificates_are_lower_bounds_and_close(measure, truth, least):
    """Normal outputs one standard deviation apart; ten certificates at 0.999 are all valid with probability 0.99."""
    rng = np.random.default_rng(0)
    found = [certified(rng.normal(0, 1, 20_000), rng.normal(1, 1, 20_000), measure) for _ in range(10)]
    assert all(least < one.lower <= truth for one in found)


def test_no_measure_sees_what_is_not_there():
    """Outputs that do not depend on the data: each certificate is above 0 with probability 0.001."""
    rng = np.random.default_rng(1)
    same = [rng.normal(0, 1, 4_000) for _ in range(2)]
    assert all(certified(*same, measure).lower == 0 for measure in (epsilon_of(), epsilon_of(0.1), mu_of, rho_of))


@pytest.mark.parametrize(
    "ball", [LINE, CAP, dpm.Ball(dpm.KendallShapes(4), dpm.KendallShapes(4).origin, 0.3)], ids=repr
)
def test_neighbours_differ_in_one_unit_and_lie_in_the_ball(ball):
    for pair in neighbours(ball, 12):
        assert np.array_equal(pair.first[:-1], pair.second[:-1])
        assert ball.space.dist(pair.first[-1], pair.second[-1]) > 0.1 * ball.radius
        assert ball.contains(pair.first).all()
        assert ball.contains(pair.second).all()


def test_half_the_noise_is_refuted_by_the_black_box(monkeypatch):
    """The wrong variant; and what is right is not refuted by it (0.999 that no bound is wrong; seeded)."""
    privacy = dpm.GDP(2.0)
    right = audit_mean(10, LINE, privacy, runs=1_200, rng=1)
    assert not any(finding.refuted for finding in named(right, BLACK_BOX))
    assert all(finding.lower > 0.5 for finding in named(right, BLACK_BOX) if finding.data == "worst case")
    true = wrapped.gaussian_scale
    monkeypatch.setattr(wrapped, "gaussian_scale", lambda *given, **how: true(*given, **how) / 2)
    wrong = audit_mean(10, LINE, privacy, runs=1_200, rng=1)
    assert wrong.refuted
    assert any(finding.refuted for finding in named(wrong, BLACK_BOX))


def test_floats_are_refuted_by_their_words():
    """A seeded simulation draws in doubles."""
    found = audit_mean(10, dpm.Ball(dpm.Euclidean(3), np.zeros(3), 1.0), dpm.GDP(0.1), runs=800, rng=0)
    assert all(finding.refuted for finding in named(found, WORDS))
    assert "REFUTED by" in found.verdict


class WorkClock:
    """A clock that stands still but for work, which takes a microsecond and up to half of one more, by chance."""

    def __init__(self):
        self._now, self._rng = 0, np.random.default_rng(0)

    def work(self):
        self._now += int(self._rng.integers(1000, 1500))

    def read(self):
        return self._now


class ClockOfThisThread:
    """What the processor did for this thread: a machine that is busy with others stops it too."""

    def work(self):
        pass

    def read(self):
        return time.thread_time_ns()


def timed(monkeypatch, clock, arithmetic, method, factor):
    """Return what an audit by this clock finds where draws take so many times longer on one data set."""
    kind = wrapped.WrappedGaussianMechanism
    true = getattr(kind, method)

    def slower(self, ball, calibration, mean, points, source):
        for _ in range(factor if mean[0] > 0.9 else 1):
            drawn = true(self, ball, calibration, mean, points, source)
            clock.work()
        return drawn

    monkeypatch.setattr(kind, method, slower)
    monkeypatch.setattr(mean_room, "time", types.SimpleNamespace(perf_counter_ns=clock.read))
    found = audit_mean(10, LINE, dpm.GDP(0.1), mechanism="wrapped-gaussian", arithmetic=arithmetic, runs=800, rng=0)
    assert found.arithmetic == arithmetic
    worst, _ = named(found, TIMING)
    assert not worst.refuted  # no promise covers running time
    return worst


DRAWN_BY = pytest.mark.parametrize(("arithmetic", "method"), [("float", "draw"), ("exact", "numbers")])


@DRAWN_BY
@pytest.mark.parametrize("clock", [WorkClock, pytest.param(ClockOfThisThread, marks=pytest.mark.slow)])
def test_a_draw_whose_time_depends_on_the_data_is_seen(monkeypatch, clock, arithmetic, method):
    """By a clock of its own, which no other process disturbs; and by the processor's."""
    worst = timed(monkeypatch, clock(), arithmetic, method, 8)
    assert worst.lower > worst.allowed


@pytest.mark.slow
def test_a_draw_whose_time_does_not_depend_on_the_data_is_not_seen(monkeypatch):
    """Wrong with probability 0.001/8 at most: eight bounds hold together at 0.999, and this is one of them."""
    worst = timed(monkeypatch, WorkClock(), "float", "draw", 1)
    assert worst.lower <= worst.allowed


@pytest.mark.slow
def test_timing_refutes_nothing():
    assert not SMALL.refuted
    assert "(not promised)" in repr(SMALL)
    claimed = dataclasses.replace(SMALL.findings[1], promised=True)
    assert dataclasses.replace(SMALL, findings=(claimed,)).refuted
    found = audit_mean(10, LINE, dpm.GDP(1.0), mechanism="wrapped-gaussian", runs=800, rng=0)
    assert [finding.promised for finding in named(found, TIMING)] == [False, False]


def test_bad_arguments_are_refused_with_the_remedy():
    with pytest.raises(dpm.InvalidArgumentError, match="runs must be a whole number of at least 800"):
        audit_mean(10, LINE, dpm.GDP(1.0), runs=10)
    with pytest.raises(dpm.InvalidArgumentError, match="is a baseline"):
        audit_mean(10, CAP, dpm.PureDP(1.0), mechanism="extrinsic-laplace")
    with pytest.raises(dpm.InvalidArgumentError, match="confidence must be"):
        audit_mean(10, LINE, dpm.GDP(1.0), confidence=1.0)
    with pytest.raises(dpm.InvalidArgumentError, match="picture draws an Audit"):
        picture("audit.json")


@pytest.mark.slow
@pytest.mark.parametrize(("estimand", "name"), [("tangent", "tangent-mean-gaussian"), ("extrinsic", "extrinsic-mean-")])
def test_the_mean_that_was_asked_for_is_attacked(estimand, name):
    found = audit_mean(10, CAP, dpm.GDP(1.0), estimand=estimand, runs=800, rng=0)
    assert found.mechanism.startswith(name)
    with pytest.raises(dpm.InvalidArgumentError, match="is for estimand"):
        audit_mean(10, CAP, dpm.GDP(1.0), estimand=estimand, mechanism="riemannian-gaussian", runs=800)


def test_means_without_a_ball_are_not_attacked():
    """Refused at once, not after releases were made."""
    made = []
    for how in ({"estimand": "extrinsic"}, {"mechanism": "extrinsic-mean-gaussian"}, {}):
        with pytest.raises(dpm.InvalidArgumentError, match="statistic needs a ball"):
            audit_mean(10, dpm.Ball.whole(dpm.Sphere(2)), dpm.GDP(1.0), runs=800, rng=0, progress=made.append, **how)
    assert not made
    words = ["--space", "sphere", "--size", 2, "--ball", "whole-space", "-n", 10, "--mu", 1, "--estimand", "extrinsic"]
    result = call(*words)
    assert result.exit_code == 2
    assert "statistic needs a ball" in result.stderr


@pytest.mark.slow
def test_progress_reaches_the_stated_total():
    seen = []
    audit_mean(10, LINE, dpm.GDP(1.0), runs=800, rng=0, progress=seen.append)
    assert seen == list(range(1, 1601))


def test_the_record_holds_what_people_see():
    record = json.loads(json.dumps(SMALL.to_dict(), allow_nan=False))
    assert record["refuted"] is False
    assert record["verdict"] == SMALL.verdict
    assert [finding["attack"] for finding in record["findings"]] == [BLACK_BOX, TIMING]


def test_picture_shows_every_attack():
    axes = picture(SMALL).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["black box, generic", "timing, generic"]


def call(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)], env={"COLUMNS": "160"})


WORDS_OF_LINE = ["--space", "euclidean", "--size", 1, "--radius", 1, "-n", 10, "--runs", 800]


def test_command_tells_by_its_exit_code_whether_the_promise_was_refuted(monkeypatch):
    for audit, code in ((SMALL, 0), (BROKEN, 4)):
        monkeypatch.setattr("dpmanifold.audit.audit_mean", lambda *given, audit=audit, **how: audit)
        result = call(*WORDS_OF_LINE, "--mu", 0.1)
        assert result.exit_code == code
        assert audit.verdict in result.stdout
        result = call(*WORDS_OF_LINE, "--mu", 0.1, "--json")
        assert result.exit_code == code
        assert json.loads(result.stdout) == audit.to_dict()


@pytest.mark.slow
def test_command_attacks_and_draws(tmp_path):
    """The bar and the exit code are seen elsewhere; here the whole way is gone once, as a user goes it."""
    target = tmp_path / "audit.png"
    result = call(*WORDS_OF_LINE, "--epsilon", 1, "--delta", 1e-3, "--picture", target)
    assert "Audit of a private mean" in result.stdout
    refuted, nothing = (word in result.stdout for word in ("REFUTED by", "Nothing was refuted"))
    assert refuted != nothing
    assert result.exit_code == (4 if refuted else 0)
    assert target.stat().st_size > 10_000
    cap = ["--space", "sphere", "--size", 2, "--radius", 0.5, "-n", 10, "--runs", 800]
    assert "mechanism    tangent-mean-" in call(*cap, "--mu", 1, "--estimand", "tangent").stdout
    again = call(*WORDS_OF_LINE, "--epsilon", 1, "--picture", target)
    assert again.exit_code == 2
    assert "exists" in again.stderr
