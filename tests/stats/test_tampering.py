"""What is altered in a result by hand, and who notices: reading, `verify`, or nobody, which `cannot_know` then lists.

Every number of every kind of result is altered in test_alterations.py.
"""

import copy
import json
import math
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    Ball,
    Euclidean,
    InvalidDataError,
    PureDP,
    Release,
    Sphere,
    private_ball,
    private_class_means,
    private_lda,
    private_mean,
    private_median,
    private_pga,
    private_region,
    private_regression,
    private_two_sample_test,
    private_variance,
    private_variance_interval,
    verify,
)
from dpmanifold.cli import app
from dpmanifold.inference import ConfidenceRegion, TwoSampleTest, VarianceInterval
from dpmanifold.mechanisms import get
from dpmanifold.release import DRAW_COVERED, NOT_COVERED
from dpmanifold.serialization import refuse_wrong_answers
from dpmanifold.statistic import REPLACE_ONE_UNIT, REPLACE_ONE_UNIT_SAME_CLASSES, Decisions
from dpmanifold.stats.check import CANNOT_KNOW
from dpmanifold.stats.examine import replayed
from dpmanifold.stats.mean import shrinkage_of, shrunken
from laws.data import in_ball

pytestmark = pytest.mark.security

EACH = {"units": EACH_RECORD}


SPHERE = Ball(Sphere(2), [0.0, 0.6, 0.8], 0.6)
TENSORS = Ball(SPD(2), np.eye(2), 2.0)
LINE = Ball(Euclidean(1), [0.0], 1.0, source="a scale from -1 to 1")
FAR = Ball(Euclidean(1), [0.0], 50.0)
PLANE = Ball(Euclidean(2), [0.0, 0.0], 2.0)


def records(ball, n=60):
    return in_ball(ball, n, np.random.default_rng(0))


@cache
def honest(kind):
    """An honest result of each kind."""
    X, shared = records(SPHERE), np.repeat(np.arange(20), 3)
    narrow = np.random.default_rng(1).normal(3.0, 0.05, (3000, 1))
    match kind:
        case "mean":
            return private_mean(X, SPHERE, PureDP(1.0), **EACH)
        case "seeded mean":
            return private_mean(X, SPHERE, PureDP(1.0), rng=1, **EACH)
        case "float mean":
            return private_mean(X, SPHERE, PureDP(1.0), arithmetic="float", **EACH)
        case "tensor":
            return private_mean(records(TENSORS), TENSORS, GDP(1.0), **EACH)
        case "kng mean":
            return private_mean(records(LINE), LINE, PureDP(1.0), mechanism="kng", **EACH)
        case "free mean":
            return private_mean(X, SPHERE, PureDP(0.02), project=False, rng=1, arithmetic="exact", **EACH)
        case "free line":
            return private_mean(records(LINE), LINE, PureDP(1.0), project=False, shrinkage=None, **EACH)
        case "tensor baseline":
            return private_mean(records(TENSORS), TENSORS, GDP(1.0), mechanism="extrinsic-gaussian", **EACH)
        case "pure variance":
            return private_variance(X, SPHERE, PureDP(1.0), **EACH)
        case "pure ball":
            return private_ball(narrow, FAR, PureDP(1.0), **EACH)
        case "baseline":
            return private_mean(X, SPHERE, PureDP(1.0), mechanism="extrinsic-laplace", **EACH)
        case "refined":
            return private_mean(narrow, FAR, GDP(1.0), refine=True, **EACH)
        case "seeded refined":
            return private_mean(narrow, FAR, GDP(1.0), refine=True, rng=1, **EACH)
        case "class":
            return private_class_means(X, np.tile([0, 1, 2], 20), SPHERE, GDP(1.0), classes=[0, 1, 2], units=shared)[0]
        case "variance":
            return private_variance(X, SPHERE, GDP(1.0), **EACH)
        case "variance about":
            return private_variance(X, SPHERE, GDP(1.0), about=SPHERE.center, **EACH)
        case "ball":
            return private_ball(narrow, FAR, GDP(1.0), **EACH)
        case "seeded ball":
            return private_ball(narrow, FAR, GDP(1.0), rng=1, **EACH)
        case "region":
            return private_region(X, SPHERE, GDP(1.0), **EACH)
        case "interval":
            return private_variance_interval(X, SPHERE, GDP(1.0), **EACH)
        case "shrunken":
            ball = Ball(Euclidean(3), np.zeros(3), 1.0)
            return private_mean(records(ball, 20), ball, GDP(0.1), **EACH)
        case "refined region":
            return private_region(narrow, FAR, GDP(1.0), refine=True, **EACH)
        case "refined interval":
            return private_variance_interval(narrow, FAR, GDP(1.0), refine=True, **EACH)
        case "refined test":
            return private_two_sample_test(narrow, narrow[:2000], FAR, GDP(0.5), refine=True, **EACH)
        case "test":
            return private_two_sample_test(X, records(SPHERE, 50), SPHERE, GDP(1.0), **EACH)
        case "median":
            return private_median(records(PLANE, 400), PLANE, GDP(1.0), **EACH)
        case "components":
            return private_pga(records(PLANE), PLANE, GDP(1.0), count=2, **EACH)
        case "classes":
            return private_lda(records(PLANE), ["a", "b"] * 30, PLANE, GDP(1.0), classes=["a", "b"], **EACH)
        case "public classes":
            return private_lda(
                records(PLANE), ["a", "b"] * 30, PLANE, GDP(1.0), classes=["a", "b"], labels_public=True, **EACH
            )
        case "regression":
            age = np.linspace(20.0, 80.0, 60)
            return private_regression(
                records(PLANE), age, PLANE, GDP(1.0), covariate_range=(18, 90), refine=False, **EACH
            )
    raise AssertionError(kind)


@dataclass(frozen=True)
class Alteration:
    """`change` is made to the record of a result, or a pair of texts to its file. Reading or `verify` refuses it with
    these words; or nobody notices, and `listed` is the entry of `cannot_know` that says so."""

    kind: str
    what: str
    change: object
    words: str = ""
    reading: bool = False
    listed: str | None = None


def at(record, path):
    """The part of a record that a path such as "release/steps/0" leads to."""
    for name in path.split("/") if path else []:
        record = record[int(name) if name.isdigit() else name]
    return record


def put(path, value):
    """Set an entry; a function is applied to what stands there."""

    def change(record):
        where, _, name = path.rpartition("/")
        part = at(record, where)
        part[name] = value(part[name]) if callable(value) else value

    return change


def drop(path):
    def change(record):
        where, _, name = path.rpartition("/")
        del at(record, where)[name]

    return change


def several(*changes):
    def change(record):
        for one in changes:
            one(record)

    return change


def by(factor):
    return lambda number: number * factor


def instead(make):
    """Put another honest result of the library in its place, which then gets the value of this one, and its draw."""

    def change(record):
        own = {name: record[name] for name in ("value", "draws")}
        record.clear()
        record.update(make().to_dict(), **own)
        record.pop("answers", None)

    return change


def nearer(record):
    """Less noise than needed about a released mean, and the bound that goes with a nearer one."""
    record["release"]["details"]["reference_to_center"] = 0.0
    bound = dpm.sensitivity.of_second_moment(SPHERE, 60, away=0.0).value
    record["release"]["scale"] *= bound / record["release"]["sensitivity"]["value"]
    record["release"]["sensitivity"]["value"] = bound


def about_nearer(record):
    """Another point that a variance was taken about, where noise of the same scale may have been drawn."""
    drawn, grid = record["draws"][0]["numbers"][0], record["draws"][0]["grid"]
    other = private_variance(records(SPHERE), SPHERE, GDP(1.0), about=records(SPHERE)[0], **EACH).to_dict()
    record.update({name: other[name] for name in ("details", "sensitivity", "scale", "request", "draws")})
    grid = record["draws"][0]["grid"]
    drawn = math.ldexp(round(math.ldexp(drawn, -grid)), grid)
    record["draws"][0]["numbers"] = [drawn]
    record["value"] = {"number": max(0.0, drawn - record["details"]["excess_subtracted"])}


def without_its_ball(record):
    """A refined mean that forgets what its ball cost, and that one was asked for."""
    record.update(steps=[], privacy=record["share"])
    kept = {"mechanism": record["mechanism"], "shrinkage": "none"}
    record["request"].update(options={}, ball=record["ball"], decisions=kept)


def one_class_alone(record):
    """The mean of a class that seems to have been asked for by itself."""
    record.update(privacy=record["share"], adjacency=REPLACE_ONE_UNIT)
    decisions = {"mechanism": record["mechanism"]}
    record["request"] = {
        "query": "mean",
        "options": {},
        "ball": record["ball"],
        "n": record["n"],
        "decisions": decisions,
    }


def all_private(record):
    """Take every mark of a simulation away."""
    record["private"] = True
    for ball in (record["ball"], record["value"].get("ball", {}), record.get("request", record)["ball"]):
        ball["simulated"] = False
    for step in record["steps"]:
        all_private(step)


def copied(record):
    record["second"] = copy.deepcopy(record["first"])


def copied_mean(record):
    record["second"]["steps"][0]["value"] = copy.deepcopy(record["first"]["steps"][0]["value"])
    details = record["first"]["details"]
    bound = dpm.sensitivity.of_second_moment(SPHERE, 50, away=details["reference_to_center"]).value
    record["second"].update(
        details=dict(details), scale=record["second"]["scale"] * bound / record["second"]["sensitivity"]["value"]
    )
    record["second"]["sensitivity"]["value"] = bound


def another_radius(record):
    """The radius that follows from another last count, and which that count may have led to."""
    last, inside = record["draws"][-2:]
    last["numbers"][0] = inside["numbers"][0] if last["numbers"][0] < 2900 else 2900.0
    record["value"] = made_of(record).to_dict()["value"]


def made_of(record):
    """What the library makes of the outputs that a release without steps states."""
    release = Release.from_dict(record)
    return replayed(release, release.request, Decisions(release.request.decisions)).steps[-1][0]


def too_far_a_draw(record):
    """A draw that no noise comes to, and the value that it would be moved to."""
    release = honest("shrunken")
    rule = shrinkage_of(release.ball, get(release.mechanism), release.scale, release.projected)
    raw = np.array([0.0, 0.0, 40.0])
    record["raw"]["point"] = raw.tolist()
    record["value"]["point"] = shrunken(rule, release.ball, raw, release.projected).tolist()


def made_exact(record):
    record.update(arithmetic="exact", draws=[{"numbers": [0.0], "grid": -40}])


def forgotten(record):
    """An exact draw that says of itself that it is one of doubles."""
    record["arithmetic"] = "float"
    for draw in record["draws"]:
        del draw["grid"]


def made_up(record):
    """What an exact draw would have stated, made up for a value that was drawn in doubles."""
    other = private_mean(records(SPHERE), SPHERE, PureDP(1.0), **EACH)
    point = SPHERE.to_frame(np.array(record["value"]["point"])[None])[0]
    grid = other.draws[0].grid
    drawn = np.ldexp(np.rint(np.ldexp(point, -grid)), grid)
    record.update(arithmetic="exact", draws=[{"numbers": drawn.tolist(), "grid": grid}])


def another_variance(record):
    drawn = 0.25
    record["draws"][0]["numbers"] = [drawn]
    record["value"]["number"] = drawn - record["details"]["excess_subtracted"]


def too_far_on_the_grid(record):
    record["draws"][0]["numbers"] = [50.0]
    record["value"]["point"] = [50.0]


def swapped(record):
    record["first"], record["second"] = record["second"], record["first"]


def weaker(record):
    """More noise than the promise needs, stated as such: still not what the library would have drawn."""
    record["scale"] *= 1.01


def steps_left_out(record):
    record["release"]["steps"][0]["steps"] = []


BALL_OF_A_MEDIAN = "steps/0/steps/0/steps/0"
ALTERATIONS = [
    # the file itself
    Alteration("mean", "a key given twice", ('"private": true', '"private": false, "private": true'), "twice", True),
    Alteration("refined", "a key given twice in a step", ('"n": 3000', '"n": 3000, "n": 3000'), "twice", True),
    Alteration("mean", "NaN", put("scale", math.nan), "scale must be a finite number", True),
    Alteration("mean", "infinity", put("tol", math.inf), "tol must be a finite number", True),
    Alteration("region", "a number beyond all doubles", ('"level": 0.95', '"level": 1e999'), "level must be", True),
    Alteration("mean", "not JSON", ("{", "{,"), "not JSON", True),
    # what the library does not write
    Alteration("mean", "a note", put("note", "trust me"), "'note'", True),
    Alteration("mean", "a note in the bound", put("sensitivity/note", 1.0), "sensitivity holds 'note'", True),
    Alteration("mean", "a note in the ball", put("ball/note", 1.0), "ball holds 'note'", True),
    Alteration("mean", "a note in the value", put("value/note", 1.0), "value holds 'note'", True),
    Alteration("mean", "a note in the promise", put("privacy/note", 1.0), "note", True),
    Alteration("mean", "a note in the share", put("share/note", 1.0), "note", True),
    Alteration("mean", "an unknown detail", put("details/phone", 5.5), "details holds 'phone'", True),
    Alteration("variance", "a detail of a ball", put("details/coverage", 0.9), "details holds 'coverage'", True),
    Alteration("refined", "a note in a step", put("steps/0/note", 1.0), "a step holds 'note'", True),
    Alteration("ball", "a note in the released ball", put("value/ball/note", 1.0), "ball holds 'note'", True),
    Alteration("region", "a note beside the level", put("note", "99 %"), "'note'", True),
    Alteration("test", "a third group", put("third", 1.0), "'third'", True),
    Alteration("interval", "answers that are not its own", put("answers", {"low": 0.0, "high": 0.0}), "answers", True),
    # numbers of another kind
    Alteration("mean", "n with a fraction", put("n", 60.0), "n must be a whole number", True),
    Alteration("mean", "n as a truth value", put("n", True), "n must be a whole number", True),
    Alteration("mean", "a text for a scale", put("scale", "0.1"), "scale must be a finite number", True),
    Alteration("mean", "texts for a point", put("value/point", ["0", "0.6", "0.8"]), "value must be a finite", True),
    Alteration("mean", "a point with an axis more", put("value/point", [[0.0, 0.6, 0.8]]), "value must be", True),
    Alteration("region", "a level of 1", put("level", 1.0), "level must be", True),
    Alteration("region", "a level in words", put("level", "0.95"), "level must be", True),
    # marks
    Alteration("seeded mean", "a seed forgotten", put("private", True), listed="source"),
    Alteration("seeded refined", "a seed forgotten in one place", put("private", True), "private: stated False"),
    Alteration("seeded refined", "a seed forgotten everywhere", all_private, listed="source"),
    Alteration("seeded ball", "a ball that a seed found", put("value/ball/simulated", False), "does not follow"),
    Alteration("seeded ball", "a ball that a seed found, and its release", all_private, listed="source"),
    Alteration("refined", "a step that is not private", put("steps/0/private", False), "private: stated False"),
    Alteration(
        "mean", "something revealed", put("details", {"revealed_error": 0.1, "revealed_clipped_share": 0.0}), "shows"
    ),
    Alteration("mean", "half of what is revealed", put("details", {"revealed_error": 0.1}), "does not belong there"),
    # promises, shares and numbers of units
    Alteration("mean", "a stronger promise", put("privacy/epsilon", 0.01), "share: stated"),
    Alteration(
        "mean",
        "a stronger promise and share",
        several(put("privacy/epsilon", 0.01), put("share/epsilon", 0.01)),
        "scale",
    ),
    Alteration("mean", "more units", put("n", 6060), "n: stated"),
    Alteration(
        "mean",
        "more units, a stronger promise, and a tolerance of nothing",
        several(put("n", 6060), put("privacy/epsilon", 0.01), put("share/epsilon", 0.01), put("tol", -1.0)),
        "tol: stated",
    ),
    Alteration(
        "mean",
        "more units, a stronger promise, and all that follows",
        instead(
            lambda: private_mean(
                records(SPHERE, 6060), SPHERE, PureDP(0.01), mechanism=honest("mean").mechanism, **EACH
            )
        ),
        listed="request",
    ),
    Alteration("mean", "a smaller tolerance", put("tol", by(0.5)), "tol: stated"),
    Alteration("mean", "a larger tolerance", put("tol", by(2.0)), "tol: stated"),
    Alteration("mean", "a scale a little smaller", put("scale", by(1 - 5e-10)), "scale"),
    Alteration("mean", "a scale larger than needed", weaker, "scale"),
    Alteration("mean", "a smaller bound", put("sensitivity/value", by(1 - 1e-9)), "sensitivity"),
    Alteration("class", "one class's share as the whole", put("privacy/mu", by(3**-0.5)), "share: stated"),
    Alteration("class", "one class alone, its share as the whole", one_class_alone, listed="outside"),
    Alteration("region", "a stronger promise", put("release/privacy/mu", 0.5), "privacy: stated"),
    Alteration("interval", "a stronger promise", put("release/privacy/mu", 0.5), "privacy: stated"),
    Alteration(
        "test", "a stronger promise of one group", put("first/privacy/mu", 0.5), "different entries of 'privacy'"
    ),
    # words
    Alteration("mean", "a rule", put("rule", "exact"), "rule"),
    Alteration("mean", "a bound", put("sensitivity/bound", "published"), "recomputed 'sharp'"),
    Alteration("mean", "a bound of earlier versions", put("sensitivity/bound", "tight"), "sensitivity"),
    Alteration("mean", "a proof", put("sensitivity/proof", "variance"), "sensitivity: stated"),
    Alteration("mean", "what the bound is of", put("sensitivity/statistic", "gradient"), "recomputed 'mean'"),
    Alteration("mean", "a version", put("version", "99.0"), "version"),
    Alteration("mean", "the arithmetic", put("arithmetic", "float"), "belong to", True),
    Alteration("float mean", "the arithmetic", put("arithmetic", "exact"), "belong to", True),
    Alteration("float mean", "an arithmetic that there is not", put("arithmetic", "rounded"), "stated 'rounded'"),
    Alteration("mean", "the draw without its grid", drop("draws/0/grid"), "belong to", True),
    Alteration("mean", "a draw in words", put("draws/0/numbers", "1, 2, 3"), "list of numbers", True),
    Alteration("mean", "a grid beyond all doubles", put("draws/0/grid", -5000), "exponent", True),
    Alteration("mean", "a coarser grid", put("draws/0/grid", lambda k: k + 1), "grid: stated"),
    Alteration(
        "mean", "a draw beside its grid", put("draws/0/numbers", lambda z: [z[0] + 2.0**-50, *z[1:]]), "not multiples"
    ),
    Alteration(
        "mean", "another draw on the grid", put("draws/0/numbers", lambda z: [z[0], -z[1], z[2]]), "does not follow"
    ),
    Alteration(
        "mean", "a draw with a number more", put("draws/0/numbers", lambda z: [*z, 0.0]), "cannot be recomputed"
    ),
    Alteration("kng mean", "an exact draw of what is drawn in doubles", made_exact, "kng draws doubles"),
    Alteration("float mean", "a draw made up for a value of doubles", made_up, listed="arithmetic"),
    Alteration("mean", "the exact draw left out", forgotten, listed="arithmetic"),
    Alteration("variance", "another draw", put("draws/0/numbers", lambda z: [z[0] + 1.0]), "does not follow"),
    Alteration("ball", "another draw", put("draws/0/numbers", lambda z: [z[0] + 1.0]), "does not follow"),
    Alteration(
        "region", "another draw", put("release/draws/0/numbers", lambda z: [z[0] + 1.0, *z[1:]]), "does not follow"
    ),
    Alteration("interval", "another draw", put("release/draws/0/numbers", lambda z: [z[0] + 1.0]), "does not follow"),
    Alteration("free line", "a draw too far, with its value", too_far_on_the_grid, "no noise of that scale"),
    Alteration("mean", "the mechanism", put("mechanism", "wrapped-laplace"), "stated 'wrapped-laplace'"),
    Alteration("tensor", "a mechanism that does not exist", put("mechanism", "tangent-gaussian"), "mechanism"),
    Alteration("mean", "the statistic", put("statistic", "mode"), "no statistic", True),
    Alteration("mean", "a mean that calls itself a median", put("statistic", "median"), "median"),
    Alteration("median", "a median that calls itself a mean", put("statistic", "mean"), "mean"),
    Alteration("kng mean", "timing made safe", put("timing", DRAW_COVERED), "timing"),
    Alteration("mean", "timing made unsafe", put("timing", NOT_COVERED), "timing"),
    Alteration("interval", "timing of a step", put("release/steps/0/timing", NOT_COVERED), "timing"),
    Alteration("mean", "a unit that is none", put("unit", "hospital"), "unit"),
    Alteration("mean", "a record called a unit", put("unit", "unit"), listed="people"),
    Alteration("refined", "a record called a unit, the step's not", put("unit", "unit"), "unit: stated 'record'"),
    Alteration("mean", "neighbours that are none", put("adjacency", "anybody"), "adjacency"),
    Alteration("mean", "neighbours by class", put("adjacency", REPLACE_ONE_UNIT_SAME_CLASSES), "adjacency: stated"),
    Alteration(
        "variance",
        "neighbours by class",
        several(
            put("adjacency", REPLACE_ONE_UNIT_SAME_CLASSES), put("steps/0/adjacency", REPLACE_ONE_UNIT_SAME_CLASSES)
        ),
        "adjacency",
    ),
    Alteration("class", "neighbours of a mean by class", put("adjacency", REPLACE_ONE_UNIT), "adjacency"),
    Alteration("mean", "where the ball comes from", put("ball/source", "an atlas"), "ball: stated"),
    Alteration("mean", "a draw said not to be moved", put("projected", False), "projected: stated"),
    Alteration("free mean", "a draw said to be moved", put("projected", True), "projected: stated"),
    Alteration("baseline", "a baseline's draw said to be moved", put("projected", True), "projected"),
    Alteration("variance", "a variance that is not kept above 0", put("projected", False), "projected"),
    Alteration("region", "a moment said to be moved", put("release/projected", True), "projected"),
    Alteration("region", "a mean said not to be moved", put("release/steps/0/projected", False), "projected"),
    # values
    Alteration("mean", "another point of the ball", put("value/point", [0.0, 0.6, 0.8]), "does not follow"),
    Alteration("float mean", "another point of the ball", put("value/point", [0.0, 0.6, 0.8]), "does not follow"),
    Alteration("variance", "another variance with its draw", another_variance, listed="value"),
    Alteration("mean", "a point outside the ball", put("value/point", [0.0, 0.0, -1.0]), "does not follow"),
    Alteration("mean", "no point at all", put("value/point", [3.0, 4.0, 5.0]), "does not follow"),
    Alteration("mean", "nearly a point", put("value/point", [0.0, 0.6, 0.8000001]), "does not follow"),
    Alteration("tensor", "a negative eigenvalue", put("value/point", [[1.0, 0.0], [0.0, -1.0]]), "does not follow"),
    Alteration(
        "tensor", "a matrix that is not symmetric", put("value/point", [[1.0, 0.1], [0.2, 1.0]]), "does not follow"
    ),
    Alteration("variance", "a negative variance", put("value/number", -0.1), "does not follow"),
    Alteration("variance", "a variance beyond the ball", put("value/number", 5.0), "does not follow"),
    Alteration("pure variance", "a variance beyond the ball", put("value/number", 5.0), "does not follow"),
    Alteration(
        "interval", "a variance beyond the ball in a step", put("release/steps/0/value/number", 9.0), "does not follow"
    ),
    Alteration("interval", "a fourth moment beyond the ball", put("release/value/number", 9.0), "does not follow"),
    Alteration("interval", "a fourth moment far below 0", put("release/value/number", -9.0), "does not follow"),
    Alteration(
        "region", "a moment beyond the ball", put("release/value/matrix", [[9.0, 0.0], [0.0, 0.1]]), "does not follow"
    ),
    Alteration(
        "region", "a moment far below 0", put("release/value/matrix", [[0.1, 2.0], [2.0, 0.1]]), "does not follow"
    ),
    Alteration("free line", "a draw too far", put("value/point", [50.0]), "does not follow"),
    Alteration("free line", "a draw outside the ball", put("value/point", [1.1]), "does not follow"),
    Alteration("baseline", "numbers too far", put("value/point", [0.0, 90.0, 0.0]), "does not follow"),
    Alteration("tensor baseline", "numbers too far", put("value/point", [[900.0, 0.0], [0.0, 1.0]]), "does not follow"),
    Alteration("variance", "another variance", put("value/number", 0.123), "does not follow"),
    Alteration("interval", "another fourth moment", put("release/value/number", -0.01), "does not follow"),
    Alteration("region", "another moment", put("release/value/matrix", [[0.1, 0.0], [0.0, 0.1]]), "does not follow"),
    Alteration(
        "region",
        "a moment that is not symmetric",
        put("release/value/matrix", [[0.1, 0.2], [0.0, 0.1]]),
        "does not follow",
    ),
    Alteration(
        "region", "another mean under the moment", put("release/steps/0/value/point", [0.0, 0.6, 0.8]), "reference"
    ),
    Alteration("ball", "a radius that is not tried", put("value/ball/radius", by(1.01)), "does not follow"),
    Alteration("ball", "another radius that is tried", another_radius, listed="value"),
    Alteration("ball", "a centre outside", put("value/ball/center", [70.0]), "does not follow"),
    Alteration(
        "ball",
        "a cheaper source",
        put("value/ball/source", "released under GDP(mu=0.01) inside: an atlas"),
        "does not follow",
    ),
    Alteration(
        "ball",
        "another space",
        put("value/ball", lambda b: {**b, "space": "Euclidean(2)", "center": [0.0, 0.0]}),
        "does not follow",
    ),
    # details
    Alteration("ball", "less noise on the counts", put("details/count_noise", by(0.5)), "count_noise"),
    Alteration("ball", "another coverage", put("details/coverage", 0.5), "coverage: stated"),
    Alteration(
        "ball", "another count of the units inside", put("details/units_inside", 2900.0), "units_inside: stated"
    ),
    Alteration("refined", "too few units inside", put("steps/0/details/units_inside", 5.0), "units_inside"),
    Alteration("ball", "hardly any units inside", put("details/units_inside", 0.0), "units_inside: stated 0"),
    Alteration("pure ball", "hardly any units inside", put("details/units_inside", 0.0), "units_inside: stated 0"),
    Alteration(
        "median",
        "hardly any in its ball",
        put(f"{BALL_OF_A_MEDIAN}/details/units_inside", 0.0),
        "units_inside: stated 0",
    ),
    Alteration("refined", "another coverage", put("steps/0/details/coverage", 0.9), "coverage"),
    Alteration(
        "mean", "refinement said to be skipped", put("details", {"refinement_skipped": 1.0}), "does not belong there"
    ),
    Alteration(
        "mean", "refinement skipped by halves", put("details", {"refinement_skipped": 0.5}), "refinement_skipped"
    ),
    Alteration("ball", "fewer units inside than none", put("details/units_inside", -1e9), "units_inside"),
    Alteration("ball", "more units inside than there are", put("details/units_inside", 4500.0), "units_inside: stated"),
    Alteration(
        "pure ball", "more units inside than there are", put("details/units_inside", 9e3), "units_inside: stated"
    ),
    Alteration("shrunken", "the draw left out", several(drop("raw"), drop("shrinkage")), "does not follow"),
    Alteration(
        "shrunken", "all draws left out", several(forgotten, drop("raw"), drop("shrinkage")), "shrinkage: stated ''"
    ),
    Alteration("shrunken", "the draw without how it was moved", drop("shrinkage"), "belong together", True),
    Alteration("shrunken", "another way to move it", put("shrinkage", "bold"), "shrinkage"),
    Alteration("shrunken", "another value than the draw gives", put("value/point", [0.0, 0.0, 0.0]), "does not follow"),
    Alteration("shrunken", "a draw too far, and the value it gives", too_far_a_draw, "does not follow"),
    Alteration("shrunken", "another draw", put("raw/point", [9.0, 9.0, 9.0]), "does not follow"),
    Alteration("refined region", "another level", put("level", 0.5), listed="choices"),
    Alteration(
        "refined region",
        "a ball that cost less",
        put("release/steps/0/privacy/mu", by(0.5)),
        "the draws cost more than",
    ),
    Alteration("refined interval", "another weight", put("release/details/third_power_weight", 0.4), "recomputed"),
    Alteration("refined interval", "no weight", drop("release/details/third_power_weight"), "damaged", True),
    Alteration(
        "refined interval",
        "a weight without a proof",
        put("release/details/second_moment_weight", 0.6),
        "at most 0.5",
        True,
    ),
    Alteration("refined interval", "other moments", put("release/value/vector", [0.0, 0.1, 0.1, 0.0, 0.1]), "follow"),
    Alteration("refined test", "two balls", put("first/steps/0/details/units_inside", by(0.999)), "one ball"),
    Alteration("refined test", "one group copied", copied, "copy"),
    Alteration("ball", "a coverage above 1", put("details/coverage", 1.5), "coverage"),
    Alteration(
        "variance", "a nearer reference", put("details/reference_to_center", -0.6), "reference_to_center: stated"
    ),
    Alteration("region", "a nearer reference with its bound and scale", nearer, "reference"),
    Alteration("variance about", "another reference with its bound and scale", about_nearer, listed="request"),
    Alteration("variance about", "an excess", put("details/excess_subtracted", 1.0), "excess"),
    Alteration("variance", "another excess", put("details/excess_subtracted", by(2.0)), "excess"),
    Alteration("interval", "an excess", put("release/steps/0/details/excess_subtracted", 0.01), "excess"),
    Alteration("variance", "no details", put("details", {}), "missing"),
    # steps
    Alteration("refined", "the step left out", put("steps", []), "less is stated to be drawn"),
    Alteration("refined", "the step left out with its cost", without_its_ball, listed="outside"),
    Alteration("refined", "the step twice", put("steps", lambda steps: steps * 2), "more is stated to be drawn"),
    Alteration(
        "refined",
        "another ball than the released one",
        put("ball", lambda _: honest("refined").to_dict()["steps"][0]["ball"]),
        "ball: stated",
    ),
    Alteration("refined", "a step about fewer units", put("steps/0/n", 2999), "n: stated 2999"),
    Alteration("refined", "a step that cost less", put("steps/0/privacy/mu", by(0.5)), "the draws cost more than"),
    Alteration("variance", "the step left out", put("steps", []), "cannot be recomputed"),
    Alteration("region", "the step left out", put("release/steps", []), "second moment about", True),
    Alteration("interval", "a step of a step left out", steps_left_out, "fourth moment after", True),
    Alteration(
        "region",
        "a step from another recipe",
        put("release/steps", lambda _: [honest("mean").to_dict()]),
        "request of its own",
        True,
    ),
    Alteration("interval", "less noise in a step", put("release/steps/0/scale", by(0.5)), "step 'variance': scale"),
    # conclusions
    Alteration("region", "another level", put("level", 0.5), listed="choices"),
    Alteration("interval", "another level", put("level", 0.5), listed="choices"),
    Alteration("test", "another level", put("level", 0.5), listed="choices"),
    Alteration("test", "the groups change places", swapped, "in their order"),
    Alteration("test", "one group copied", copied, "copy"),
    Alteration("test", "one group's mean copied", copied_mean, "does not follow"),
    Alteration(
        "test",
        "units of another kind in one group",
        several(put("first/unit", "unit"), put("first/steps/0/unit", "unit")),
        "different entries of 'unit'",
    ),
    Alteration(
        "test",
        "membership not public",
        several(put("first/adjacency", REPLACE_ONE_UNIT), put("first/steps/0/adjacency", REPLACE_ONE_UNIT)),
        "membership",
    ),
    # steps and words of the statistics that rest on several
    Alteration("median", "less noise on the step", put("scale", by(0.99)), "scale"),
    Alteration("median", "less noise on the mean", put("steps/0/steps/0/scale", by(0.99)), "step 'mean': scale"),
    Alteration("median", "a smaller median distance", put("steps/0/value/ball/radius", by(0.9)), "radius"),
    Alteration("median", "a value beside its draw", put("value/point", lambda x: [x[0] + 0.01, x[1]]), "value"),
    Alteration("median", "without its steps", put("steps", []), "step"),
    Alteration("components", "less noise on the variances", put("release/scale", by(0.99)), "scale"),
    Alteration("components", "less noise on the directions", put("release/steps/0/scale", by(0.99)), "scale"),
    Alteration("components", "without its steps", put("release/steps", []), "about a released mean", True),
    Alteration("classes", "less noise", put("release/scale", by(0.99)), "scale"),
    Alteration("classes", "a class more", put("classes", ["a", "b", "c"]), "classes", True),
    Alteration("regression", "less noise", put("release/scale", by(0.99)), "scale"),
    Alteration("regression", "a range upside down", put("covariate_range", [90.0, 18.0]), "range", True),
    Alteration("regression", "another range", put("covariate_range", [18.0, 9000.0]), "not what was asked for"),
    Alteration("public classes", "units of another class", put("counts", [31.0, 29.0]), listed="counts"),
    Alteration("public classes", "a class of nobody", put("counts", [60.0, 0.0]), "counts", True),
    Alteration("public classes", "more units than there are", put("counts", [31.0, 30.0]), "counts", True),
    Alteration("public classes", "half a record", put("counts", [30.5, 29.5]), "whole numbers"),
    Alteration("test", "a group of another ball", put("first/ball/source", "elsewhere"), "same ball", True),
]


KINDS = list(dict.fromkeys(one.kind for one in ALTERATIONS))


def record_of(kind):
    """The record of an honest result without the answers, which nobody has to write."""
    record = json.loads(json.dumps(honest(kind).to_dict()))
    record.pop("answers", None)
    return record


def altered(one, folder):
    """The file of a result that was altered."""
    record = record_of(one.kind)
    if callable(one.change):
        one.change(record)
    said = json.dumps(record)
    if not callable(one.change):
        old, new = one.change
        assert old in said
        said = said.replace(old, new, 1)
    path = folder / "altered.json"
    path.write_text(said)
    return path


@pytest.mark.parametrize("one", ALTERATIONS, ids=lambda one: f"{one.kind}: {one.what}")
def test_alterations(one, tmp_path):
    assert verify(honest(one.kind)).ok
    path = altered(one, tmp_path)
    if one.reading:
        with pytest.raises(InvalidDataError, match=one.words):
            dpm.load(path)
        return
    found = verify(dpm.load(path))
    if one.listed is None:
        assert not found.ok
        assert one.words in "\n".join(found.wrong), found.wrong
    else:
        assert found.ok, found.wrong
        assert CANNOT_KNOW[one.listed] in found.cannot_know


def test_what_cannot_be_known_is_what_goes_unnoticed():
    used = {one.listed for one in ALTERATIONS if one.listed is not None}
    assert used == set(CANNOT_KNOW)
    assert len(ALTERATIONS) >= 40
    assert verify(honest("mean")).cannot_know == tuple(CANNOT_KNOW.values())


def test_a_ball_that_a_seed_found_and_somebody_rebuilt_goes_unseen():
    found = honest("seeded ball").value
    narrow = np.random.default_rng(1).normal(3.0, 0.05, (3000, 1))
    assert not private_mean(narrow, found, GDP(1.0), **EACH).private
    rebuilt = Ball(found.space, found.center, found.radius)
    release = private_mean(narrow, rebuilt, GDP(1.0), **EACH)
    assert release.private
    assert verify(release).ok
    assert "found the ball" in CANNOT_KNOW["source"]


@pytest.mark.parametrize(
    "changes",
    [
        {"details": {"phone": 5.5}},
        {"details": {1: 2.0}},
        {"details": None},
        {"scale": math.nan},
        {"scale": math.inf},
        {"scale": "small"},
        {"n": True},
        {"n": 60.0},
        {"n": 10**400},
        {"private": "yes"},
        {"value": np.array([3.0, 4.0, 5.0])},
        {"value": np.full(3, np.nan)},
        {"value": np.array([0.0, 0.6, 0.8], dtype=complex)},
        {"value": np.array([[0.0, 0.6, 0.8]])},
        {"value": "north"},
        {"value": None},
        {"steps": ("a step",)},
        {"steps": None},
        {"ball": None},
        {"privacy": None},
        {"share": GDP(1.0)},
        {"sensitivity": 1.0},
        {"statistic": ["mean"]},
        {"mechanism": None},
        {"unit": "a\nunit"},
        {"version": None},
    ],
    ids=lambda changes: "-".join(f"{name}={value!r}" for name, value in changes.items())[:60],
)
def test_objects_are_held_to_what_files_are_held_to(changes):
    found = verify(replace(honest("mean"), **changes))
    assert not found.ok
    assert found.wrong
    assert repr(found).startswith("THE RELEASE IS NOT CONSISTENT.")


def test_a_conclusion_from_an_altered_release_is_refused():
    region, interval = honest("region"), honest("interval")
    less = replace(region.mean.release, scale=region.mean.scale / 2)
    assert not verify(ConfidenceRegion(replace(region.release, steps=(less,)))).ok
    assert not verify(VarianceInterval(replace(interval.release, tol=0.0))).ok
    test = honest("test")
    assert not verify(TwoSampleTest(test.first, test.first)).ok


def test_the_refined_results_above_are_refined():
    # Whether a search pays is decided by public numbers: here it must, or nothing above is about a ball.
    refined, test = honest("refined"), honest("refined test")
    parts = [honest("refined region").mean.release, honest("refined interval").release]
    parts += [mean.release for mean in test.means]
    assert all(mean.steps and mean.ball.radius < FAR.radius for mean in (refined, honest("seeded refined"), *parts))


class _WritesAnother(Release):
    """States less noise than is needed, and writes the record of an honest release."""

    def to_dict(self, answers=True):
        return {**super().to_dict(answers), "scale": self.scale * 2}


def test_an_object_that_writes_another_record_is_held_to_its_own_entries():
    def less_noise(release):
        entries = {one.name: getattr(release, one.name) for one in fields(release)}
        return _WritesAnother(**{**entries, "scale": release.scale / 2})

    mean, refined = honest("mean"), honest("refined")
    assert Release.from_dict(less_noise(mean).to_dict(False)).scale == mean.scale
    assert "scale" in verify(less_noise(mean)).wrong[0]
    assert "step 'ball': scale" in verify(replace(refined, steps=(less_noise(refined.steps[0]),))).wrong[0]


class _Answers:
    def __init__(self, **answers):
        self._answers = answers

    def to_dict(self):
        return {"format": "x", "answers": self._answers}


def test_answers_must_be_those_that_are_computed():
    result = _Answers(p_value=0.25, rejects=False, range=[0.0, 1.0], note="none")
    right = {"p_value": 0.25 * (1 + 1e-12), "rejects": False, "range": [0.0, 1.0], "note": "none"}
    refuse_wrong_answers({}, result)
    refuse_wrong_answers({"answers": right}, result)
    for wrong in (
        {**right, "p_value": 0.2500001},
        {**right, "p_value": math.nan},
        {**right, "p_value": "0.25"},
        {**right, "p_value": True},
        {**right, "rejects": True},
        {**right, "rejects": 0},
        {**right, "range": [0.0, 1.1]},
        {**right, "range": [0.0]},
        {**right, "more": 1.0},
        {name: right[name] for name in ("p_value", "rejects")},
        None,
    ):
        with pytest.raises(InvalidDataError, match="not what follows"):
            refuse_wrong_answers({"answers": wrong}, result)


# -------------------------------------------------------------------- the command line


def command(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize(
    "one", [one for one in ALTERATIONS if one.listed is None], ids=lambda one: f"{one.kind}: {one.what}"
)
def test_an_altered_file_is_shown_marked_or_refused_and_never_crashes(one, tmp_path):
    path = altered(one, tmp_path)
    code = 3 if one.reading else 4
    assert command("verify", path).exit_code == code
    shown = command("show", path)
    assert shown.exit_code == code
    if not one.reading:
        assert "NOT CONSISTENT" in shown.output
        said = json.loads(command("verify", path, "--json").stdout)
        assert not said["ok"]
        assert said["wrong"]
        assert said["cannot_know"] == list(CANNOT_KNOW.values())


@pytest.mark.parametrize("what", ["no point at all", "the mechanism", "a centre outside"])
def test_views_of_an_altered_file_do_not_crash(what, tmp_path):
    one = next(one for one in ALTERATIONS if one.what == what)
    path = altered(one, tmp_path)
    target, picture = tmp_path / "report.html", tmp_path / "picture.png"
    assert command("show", path, "--html", target, "--picture", picture).exit_code == 4
    assert not picture.exists()
    assert not target.exists() or "NOT CONSISTENT" in target.read_text()
    found = command("show", path, "--json")
    assert found.exit_code == 4
    assert "NOT CONSISTENT" in found.stderr
    assert json.loads(found.stdout)["format"] == json.loads(path.read_text())["format"]
