"""Plans for every mean: what is stated, needed and refused; and what is said where no draw is exact."""

import math

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, SPD, Ball, Hyperbolic, InvalidArgumentError, PromiseError, PureDP, Sphere
from dpmanifold.mechanisms import choose, get

CAP = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.6)
WHOLE = Ball.whole(Sphere(2))


@pytest.mark.slow
@pytest.mark.parametrize("estimand", ["frechet", "tangent", "extrinsic"])
@pytest.mark.parametrize("kind", [PureDP, GDP])
def test_needs_are_those_of_the_mean_that_was_asked_for(estimand, kind):
    n = dpm.required_units(0.02, CAP, kind(0.5), estimand=estimand)
    assert dpm.plan_mean(n, CAP, kind(0.5), estimand=estimand).best.error <= 0.02 * (1 + 1e-6)
    assert dpm.plan_mean(n - 1, CAP, kind(0.5), estimand=estimand).best.error > 0.02
    promise = dpm.required_privacy(0.02, 300, CAP, kind, estimand=estimand)
    plan = dpm.plan_mean(300, CAP, promise, estimand=estimand)
    assert plan.best.error == pytest.approx(0.02, rel=1e-6)
    assert plan.estimand == estimand
    if estimand == "tangent":
        assert n < dpm.required_units(0.02, CAP, kind(0.5))


@pytest.mark.parametrize(
    "ask",
    [
        lambda ball, estimand: dpm.required_units(0.1, ball, GDP(1.0), estimand=estimand),
        lambda ball, estimand: dpm.required_privacy(0.1, 100, ball, GDP, estimand=estimand),
    ],
)
def test_needs_are_refused_where_nothing_would_do(ask):
    for estimand in (None, "extrinsic"):
        with pytest.raises(InvalidArgumentError, match="without a ball no error can be stated"):
            ask(WHOLE, estimand)
    with pytest.raises(InvalidArgumentError, match="extrinsic means are of embedded spaces"):
        ask(Ball(SPD(2), SPD(2).origin, 1.0), "extrinsic")
    with pytest.raises(InvalidArgumentError, match="estimand must be one of"):
        ask(CAP, "median")
    with pytest.raises(InvalidArgumentError, match="ball must be a Ball"):
        ask(0.5, None)


@pytest.mark.parametrize("estimand", ["tangent", "extrinsic"])
def test_refinement_is_forecast_for_every_mean(estimand):
    """The forecast is about the release: skipped or not, and in which ball."""
    X = Sphere(2).exp_coords(CAP.center, 0.02 * Sphere(2).random_point(2000, rng=0)[:, :2])
    for n in (40, 2000):
        refined = dpm.plan_mean(n, CAP, GDP(1.0), estimand=estimand, refine=True, fill=0.05).refined
        release = dpm.private_mean(X[:n], CAP, GDP(1.0), estimand=estimand, refine=True, units=EACH_RECORD, rng=0)
        assert (refined.skipped is None) == bool(release.steps) == (n == 2000)
        assert refined.plain == dpm.plan_mean(n, CAP, GDP(1.0), estimand=estimand).best.error
        assert 0.3 < release.ball.radius / refined.radius < 3


def test_refinement_without_a_ball_is_skipped_in_words():
    plan = dpm.plan_mean(500, WHOLE, GDP(1.0), estimand="extrinsic", refine=True)
    assert plan.refined.verdict == (
        "refine=True would be skipped, at no cost: a smaller ball is looked for inside a public one, and this is the "
        "whole space."
    )
    X = Sphere(2).random_point(500, rng=0)
    release = dpm.private_mean(X, WHOLE, GDP(1.0), estimand="extrinsic", refine=True, units=EACH_RECORD, rng=0)
    assert release.details["refinement_skipped"] == 1
    assert release.steps == ()


def test_other_means_state_their_distance_from_the_frechet_mean():
    on_top = "the distance from the Fréchet mean (at most "
    for n in (10, 60, 5000):  # no use, rough, good
        for estimand, gap in (("tangent", dpm.frechet.tangent_gap), ("extrinsic", dpm.frechet.extrinsic_gap)):
            verdict = dpm.plan_mean(n, CAP, GDP(0.3), estimand=estimand).verdict
            assert f"{on_top}{gap(CAP):.3g})".lower() in verdict.lower()
        assert "Fréchet" not in dpm.plan_mean(n, CAP, GDP(0.3)).verdict
    flat = Ball(SPD(2), SPD(2).origin, 1.0)
    assert dpm.plan_mean(5000, flat, GDP(0.3), estimand="tangent").verdict.endswith(
        "Clipping and sampling error come on top."
    )


def test_notes_say_what_is_not_covered():
    rows = {row.mechanism: row.note for row in dpm.plan_mean(500, CAP, PureDP(1.0), everything=True).rows}
    assert rows["riemannian-laplace"] == ""
    assert rows["kng"] == "float, leaks"
    assert rows["extrinsic-laplace"] == "float"


def refusal(ball, mechanism, privacy, n=30):
    X = ball.space.random_point(n, rng=0)
    with pytest.raises(PromiseError, match="cannot be drawn exactly") as caught:
        dpm.private_mean(
            X, ball, privacy, mechanism=mechanism, arithmetic="exact", units=EACH_RECORD, confirm=True
        )  # fmt: skip
    return str(caught.value)


@pytest.mark.parametrize("name", ["kng", "riemannian-laplace-truncated"])
def test_what_is_never_exact_is_not_blamed_on_its_scale(name):
    said = refusal(CAP, name, PureDP(1.0))
    assert "scale" not in said
    assert "Use mechanism" not in said


def test_what_is_exact_with_a_smaller_scale_says_so(monkeypatch):
    monkeypatch.setattr(type(get("riemannian-laplace")), "offers_exact", lambda self, ball, given: given.scale < 1e-3)
    said = refusal(CAP, "riemannian-laplace", PureDP(1.0))
    scale = choose("riemannian-laplace", CAP, 30, PureDP(1.0))[1].scale
    assert f"on Sphere(2) with a scale of {scale:.3g}, only with a smaller one." in said


def test_people_who_asked_for_auto_are_not_told_to(monkeypatch):
    for name in ("riemannian-laplace", "wrapped-laplace"):
        monkeypatch.setattr(type(get(name)), "offers_exact", lambda self, ball, given: False)
    ball = Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.0)
    said = refusal(ball, "auto", PureDP(1.0))
    assert "Use mechanism" not in said
    assert 'use arithmetic="float"' in said


def test_names_are_names_and_no_aliases():
    with pytest.raises(InvalidArgumentError, match="got 'tangent-gaussian'"):
        get("tangent-gaussian")


@pytest.mark.parametrize(
    "ball", [CAP, Ball(SPD(2), SPD(2).origin, 1.0), Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.0)]
)
def test_no_error_exceeds_the_diameter_in_a_plan_or_a_release(ball):
    privacy, X = GDP(0.01), np.repeat(np.asarray(ball.center)[None], 20, axis=0)
    found = dpm.plan_mean(20, ball, privacy)
    release = dpm.private_mean(X, ball, privacy, units=EACH_RECORD, shrinkage=None, rng=0)
    row = next(row for row in found.rows if row.mechanism == release.mechanism)
    assert row.error == release.noise_error() == ball.diameter
    assert row.high == release.noise_quantile(0.95) == ball.diameter
    assert not row.exact
    assert "(the ball's diameter)" in found.verdict
    assert max(row.high for row in found.rows) <= ball.diameter
    # A draw that stays where it is can be farther off, and the plan says so.
    free = dpm.plan(20, ball, privacy, project=False).best
    kept = dpm.private_mean(X, ball, privacy, units=EACH_RECORD, project=False, shrinkage=None, rng=0)
    assert free.mechanism == kept.mechanism
    assert (free.error, free.exact) == (kept.noise_error(), kept.answers()["noise_error_is_exact"])
    assert free.error > ball.diameter or free.error == pytest.approx(math.pi, rel=1e-3)  # the sphere's own diameter


def test_plans_and_releases_call_an_error_exact_alike():
    said = set()
    for mu in (0.05, 0.2, 1.0, 5.0):
        row = dpm.plan_mean(50, CAP, GDP(mu)).best
        X = np.repeat(np.asarray(CAP.center)[None], 50, axis=0)
        release = dpm.private_mean(X, CAP, GDP(mu), units=EACH_RECORD, mechanism=row.mechanism, shrinkage=None, rng=0)
        assert row.exact == release.answers()["noise_error_is_exact"]
        assert row.error == release.noise_error()
        said.add(row.exact)
    assert said == {True, False}


def test_what_moves_its_mean_into_the_ball_plans_no_larger_error():
    ball = Ball(SPD(2), SPD(2).origin, 1.0)
    groups = (("two-sample-test", (20, 20)), ("k-sample-test", [20, 20, 20]))
    for statistic, n in (("region", 20), *groups, ("variance-interval", 20)):
        found = dpm.plan(n, ball, GDP(0.01), statistic=statistic)
        assert all(step.error == ball.diameter and not step.error_exact for step in found.steps)
        assert "at most 2 (the ball's diameter) on the mean" in found.verdict
        assert "≤2" in repr(found)
    # By themselves, joint moments are released as they were drawn.
    alone = dpm.plan(20, ball, GDP(0.01), statistic="joint moments").steps[0]
    drawn = dpm.private_statistic(
        np.repeat(np.eye(2)[None], 20, axis=0), ball, GDP(0.01), statistic="joint moments", units=EACH_RECORD, rng=0
    )
    assert alone.error == drawn.noise_error() > ball.diameter
