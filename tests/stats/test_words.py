"""What results say of themselves is true of them: no error without a ball, and how the noise was drawn."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.cli.outputs import in_a_line
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.release import FLOAT, NO_ERROR

SPACE = dpm.Sphere(2)
X = SPACE.project([0.0, 0.0, 1.0] + 0.2 * np.random.default_rng(0).standard_normal((600, 3)))
BALL = dpm.Ball(SPACE, [0.0, 0.0, 1.0], 0.7)
LOW_BITS = "attacks on the noise's low bits, "


def mean(ball, estimand, **more):
    return dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, estimand=estimand, **more)


def bare(space=SPACE, **more):
    records = space.random_point(600, rng=0)
    whole = dpm.Ball.whole(space)
    return dpm.private_mean(records, whole, dpm.GDP(1.0), units=dpm.EACH_RECORD, estimand="extrinsic", **more)


def fact(result, name):
    (found,) = [text for key, text in result.facts() if key == name]
    return found


@pytest.mark.parametrize("space", [SPACE, dpm.Sphere(2, curvature=4.0), dpm.KendallShapes(5)], ids=repr)
def test_without_a_ball_no_error_is_stated(space):
    release = bare(space)
    answers = release.answers()
    assert not {"noise_error", "noise_error_is_exact", "noise_quantiles", "error"} & answers.keys()
    assert answers["noise_scale"] == release.scale
    assert answers["notes"] == release.notes() == [NO_ERROR]
    for ask in (release.noise_error, release.error, lambda: release.noise_quantile(0.95)):
        with pytest.raises(InvalidArgumentError, match=NO_ERROR):
            ask()
    assert not {"noise error", "error", "center"} & {name for name, _ in release.facts()}
    assert release.caution == ""
    assert dpm.verify(release).ok
    read = dpm.Release.from_dict(json.loads(json.dumps(release.to_dict())))
    assert read.answers() == answers
    assert in_a_line("a", release).endswith("GDP(mu=1.0), no error can be stated")


def test_without_a_ball_cautions_stay():
    release = dpm.private_mean(
        X, dpm.Ball.whole(SPACE), dpm.ApproxDP(1.0, 0.1), units=dpm.EACH_RECORD, estimand="extrinsic"
    )
    assert len(release.notes()) > 1
    assert release.notes()[-1] == NO_ERROR


def test_an_error_that_was_written_into_a_record_is_refused():
    record = bare().to_dict()
    record["answers"]["error"] = 0.01
    with pytest.raises(InvalidDataError, match="not what follows"):
        dpm.Release.from_dict(record)


@pytest.mark.parametrize(
    ("ball", "estimand", "expected"),
    [
        (
            BALL,
            "frechet",
            "running time; in no stated error: clipping to the public ball, sampling",
        ),
        (
            BALL,
            "tangent",
            "running time; in no stated error: clipping to the public ball, sampling, the "
            "distance from the Fréchet mean",
        ),
        (
            BALL,
            "extrinsic",
            "running time; in no stated error: clipping to the public ball, sampling, the "
            "distance from the Fréchet mean",
        ),
        (
            dpm.Ball.whole(SPACE),
            "extrinsic",
            "running time; not stated: how far noise turns the mean, sampling, the distance from the Fréchet mean",
        ),
    ],
    ids=["frechet", "tangent", "extrinsic", "whole"],
)
@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_what_is_not_covered_is_what_was_done(ball, estimand, expected, arithmetic):
    release = mean(ball, estimand, arithmetic=arithmetic)
    assert fact(release, "not covered") == (LOW_BITS if arithmetic == "float" else "") + expected


CONCLUSIONS = {
    "region": lambda **more: dpm.private_region(X, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, **more),
    "interval": lambda **more: dpm.private_variance_interval(X, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, **more),
    "test": lambda **more: dpm.private_two_sample_test(
        X[:300], X[300:], BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, **more
    ),
    "groups": lambda **more: dpm.private_k_sample_test(
        X, np.arange(len(X)) % 3, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=[0, 1, 2], **more
    ),
    "classes": lambda **more: dpm.private_lda(
        X, np.arange(len(X)) % 3, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=[0, 1, 2], **more
    ),
    "components": lambda **more: dpm.private_pga(X, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, **more),
    "median": lambda **more: dpm.private_median(X, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, **more),
    "regression": lambda **more: dpm.private_regression(
        X, np.linspace(0.0, 1.0, len(X)), BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, covariate_range=(0, 1), **more
    ),
}


@pytest.mark.parametrize("kind", CONCLUSIONS)
@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_conclusions_say_how_their_noise_was_drawn(kind, arithmetic):
    result = CONCLUSIONS[kind](arithmetic=arithmetic)
    assert result.is_exact == (arithmetic == "exact")
    assert fact(result, "arithmetic").startswith(f"{arithmetic}: ")
    assert fact(result, "not covered").startswith(LOW_BITS) == (arithmetic == "float")
    assert "clipping to the public ball" in fact(result, "not covered")
    assert f"arithmetic   {arithmetic}" in repr(result)


@pytest.mark.parametrize("group", ["first", "second"])
def test_a_test_is_as_exact_as_both_of_its_groups(group):
    exact = CONCLUSIONS["test"]()
    mixed = replace(exact, **{group: getattr(CONCLUSIONS["test"](arithmetic="float"), group)})
    assert exact.is_exact
    assert not mixed.is_exact
    assert fact(mixed, "arithmetic").startswith("float")
    assert fact(mixed, "not covered").startswith(LOW_BITS)


def test_a_conclusion_is_as_exact_as_its_steps():
    release = CONCLUSIONS["region"]().release
    step = replace(release.steps[0], arithmetic=FLOAT)
    region = dpm.ConfidenceRegion(replace(release, steps=(step,)))
    assert region.release.arithmetic == "exact"
    assert not region.is_exact
