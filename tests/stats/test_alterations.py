"""Every number of every kind of result, altered one at a time and in blocks: refused, drawable, or listed.

An altered file is refused by reading or by `verify`; or what it states could have been drawn: some units in the ball
give an average from which noise comes to it. That is decided here by looking for such units, with features of this
file's own; or nobody can know, and the entry is in `UNKNOWABLE`, the table of docs/limitations.md.
"""

import copy
import json
import math
import pathlib
import re
from functools import cache

import numpy as np
import pytest
from scipy import optimize, stats

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, SPD, Ball, Euclidean, InvalidDataError, PureDP, Sphere, verify
from dpmanifold.features import ClassMoments, FeatureMap, JointMoments, MarkedMoments
from dpmanifold.manifolds import space_from_text
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.result import result_from_dict
from dpmanifold.statistic import REPLACE_ONE_UNIT, REPLACE_ONE_UNIT_SAME_CLASSES, STATISTICS, Kind
from dpmanifold.stats import check
from dpmanifold.stats.averaged import AveragedStatistic
from dpmanifold.stats.check import CANNOT_KNOW
from laws.data import in_ball
from laws.tiers import lots

pytestmark = pytest.mark.security

EACH = {"units": EACH_RECORD}
BALLS = {
    "line": Ball(Euclidean(1), [0.0], 1.0),
    "plane": Ball(Euclidean(2), [0.0, 0.0], 2.0),
    "sphere": Ball(Sphere(2), [0.0, 0.6, 0.8], 0.6),
    "tensors": Ball(SPD(2), np.eye(2), 2.0),
    "far": Ball(Euclidean(1), [0.0], 50.0),
    "wide": Ball(Euclidean(4), np.zeros(4), 10.0),
    "solid": Ball(Euclidean(3), np.zeros(3), 1.0),
    "curved tensors": Ball(SPD(2, metric="riemann"), np.eye(2), 1.0),
}

# What nobody can know, by the end of an entry's path without its indices; the names are those of `CANNOT_KNOW`.
UNKNOWABLE = {
    "draws/numbers": "value",
    "private": "source",
    "ball/simulated": "source",
    "value": "arithmetic",
    "raw": "arithmetic",
    "ball/center": "request",
    "ball/radius": "request",
    "request/options/about": "request",
    "ball/source": "people",
    "classes": "people",
    "unit": "people",
    "counts": "counts",
    "request/n": "counts",
    "covariate_range": "request",
    "details/covariate_moment": "counts",
    "level": "choices",
    "request/options/noise_shape": "request",
    "request/options/shrinkage": "request",
    "request/options/count": "request",
}
# Of these it is not enough that they are listed: what they were altered to must be what can be drawn.
DRAWABLE = {"draws/numbers", "ball/radius", "request/n"}
# And these may be altered in their last digits alone, relative to the largest number.
LAST_DIGITS = {"value", "raw"}
# Numbers are compared to rounding, with more than this; and a detail that is computed as 0 may be so small elsewhere.
ROUNDING, NOTHING = 1e-11, 1e-200


class Corner(AveragedStatistic):
    """A vector of three numbers, of a statistic that is registered."""

    name, words, kind = "corner of three", "which of three corners units are nearest to", Kind.VECTOR

    def per_unit(self, block, ball):
        away = ball.frame.dist(ball.frame.origin, block) / ball.radius
        return np.stack([away < 0.3, (away >= 0.3) & (away < 0.7), away >= 0.7], axis=1).astype(float)

    def bound(self, ball):
        return 1.0

    def size(self, ball):
        return 3


CORNER = STATISTICS.find(Corner.name) or STATISTICS.register(Corner.name, Corner())


# -------------------------------------------------------------------- honest results


def data(ball, n=60):
    return in_ball(ball, n, np.random.default_rng(0))


def narrow(n=3000):
    return np.random.default_rng(1).normal(3.0, 0.05, (n, 1))


def mean(mechanism, promise, **options):
    return lambda ball, kw: dpm.private_mean(data(ball), ball, promise, mechanism=mechanism, **options, **kw, **EACH)


def statistic(name, promise, **options):
    return lambda ball, kw: dpm.private_statistic(data(ball), ball, promise, statistic=name, **options, **kw, **EACH)


def classes(public):
    def make(ball, kw):
        labels = np.arange(60) % 3
        return dpm.private_lda(
            data(ball), labels, ball, GDP(2.0), classes=[0, 1, 2], labels_public=public, **kw, **EACH
        )

    return make


def regression(n=60, **options):
    def make(ball, kw):
        t = np.linspace(20.0, 80.0, n)
        return dpm.private_regression(
            data(ball, n), t, ball, GDP(2.0), covariate_range=(18, 90), **options, **kw, **EACH
        )

    return make


def groups(ball, kw):
    return dpm.private_k_sample_test(data(ball), np.arange(60) % 3, ball, GDP(2.0), classes=[0, 1, 2], **kw, **EACH)


def no_smaller(ball, kw):
    X = np.linspace(-50.0, 50.0, 3000)[:, None]
    return dpm.private_ball(X, ball, GDP(1.0), **kw, **EACH)


def two(ball, kw):
    return dpm.private_two_sample_test(data(ball), data(ball, 50), ball, GDP(2.0), **kw, **EACH)


def people(ball, kw):
    return dpm.private_mean(data(ball), ball, GDP(1.0), units=np.repeat(np.arange(20), 3), **kw)


def by_class(ball, kw):
    labels, owners = np.tile([0, 1, 2], 20), np.repeat(np.arange(20), 3)
    return dpm.private_class_means(data(ball), labels, ball, GDP(1.0), classes=[0, 1, 2], units=owners, **kw)[0]


SHAPE = np.diag([1.0, 0.3, 0.05, 0.01])


def shaped(ball, kw):
    X = np.random.default_rng(0).normal(size=(300, 4)) * np.sqrt(np.diag(SHAPE))
    return dpm.private_mean(X, ball, GDP(1.0), noise_shape=SHAPE, **kw, **EACH)


def without_its_shape(ball, kw):
    return dpm.private_mean(data(ball, 2000), ball, GDP(1.0), noise_shape=np.diag([1.0, 0.01]), **kw, **EACH)


def privately_shaped(ball, kw):
    X = data(ball, 4000) * [1.0, 0.05]
    return dpm.private_mean(X, ball, GDP(1.0), noise_shape="private", **kw, **EACH)


def refined(make):
    return lambda ball, kw: make(narrow(), ball, GDP(1.0), refine=True, **kw, **EACH)


MAKERS = {
    **{
        f"mean by {name}": (mean(name, promise), where)
        for name, promise, where in (
            ("riemannian-laplace", PureDP(1.0), ("line", "plane", "sphere", "tensors")),
            ("riemannian-gaussian", GDP(1.0), ("sphere",)),
            ("wrapped-laplace", PureDP(1.0), ("tensors",)),
            ("wrapped-gaussian", GDP(1.0), ("line", "tensors", "curved tensors")),
            ("wrapped-gaussian-classical", dpm.ApproxDP(0.5, 1e-5), ("tensors",)),
            ("tangent-mean-gaussian", GDP(1.0), ("sphere",)),
            ("tangent-mean-laplace", PureDP(1.0), ("sphere", "curved tensors")),
            ("extrinsic-mean-gaussian", GDP(1.0), ("sphere",)),
            ("extrinsic-laplace", PureDP(1.0), ("sphere",)),
            ("extrinsic-gaussian", GDP(1.0), ("tensors",)),
            ("kng", PureDP(1.0), ("line",)),
        )
    },
    "unprojected mean": (mean("auto", PureDP(1.0), project=False, shrinkage=None), ("plane", "sphere")),
    "shrunken mean": (lambda b, kw: dpm.private_mean(data(b, 20), b, GDP(0.1), **kw, **EACH), ("solid",)),
    "refined mean": (refined(dpm.private_mean), ("far",)),
    "mean shaped by public data": (shaped, ("wide",)),
    "mean whose shape is skipped": (without_its_shape, ("plane",)),
    "mean shaped privately": (privately_shaped, ("plane",)),
    "mean of people": (people, ("sphere", "tensors")),
    "mean of a class": (by_class, ("sphere",)),
    "median": (lambda b, kw: dpm.private_median(data(b, 400), b, GDP(1.0), **kw, **EACH), ("plane", "sphere")),
    "pure median": (lambda b, kw: dpm.private_median(data(b, 400), b, PureDP(2.0), **kw, **EACH), ("plane",)),
    "variance": (statistic("variance", GDP(1.0)), ("sphere", "plane")),
    "pure variance": (statistic("variance", PureDP(1.0)), ("tensors",)),
    "variance about a point": (
        lambda b, kw: dpm.private_variance(data(b), b, GDP(1.0), about=b.center, **kw, **EACH),
        ("sphere",),
    ),
    "interval": (
        lambda b, kw: dpm.private_variance_interval(data(b), b, GDP(2.0), **kw, **EACH),
        ("line", "plane", "sphere"),
    ),
    "refined interval": (refined(dpm.private_variance_interval), ("far",)),
    "region": (
        lambda b, kw: dpm.private_region(data(b), b, GDP(2.0), **kw, **EACH),
        ("line", "plane", "sphere", "tensors"),
    ),
    "refined region": (refined(dpm.private_region), ("far",)),
    "test": (two, ("plane", "sphere")),
    "groups": (groups, ("line", "plane", "sphere")),
    "classes": (classes(False), ("line", "plane", "sphere")),
    "classes with public labels": (classes(True), ("plane", "sphere")),
    "components": (
        lambda b, kw: dpm.private_pga(data(b), b, GDP(2.0), count=2, **kw, **EACH),
        ("plane", "sphere"),
    ),
    "regression": (regression(), ("line", "sphere")),
    "refined regression": (regression(600, refine=True), ("plane",)),
    "regression on a public covariate": (regression(covariate_public=True, refine=False), ("plane",)),
    "ball": (lambda b, kw: dpm.private_ball(narrow(), b, GDP(1.0), **kw, **EACH), ("far",)),
    "no smaller ball": (no_smaller, ("far",)),
    "pure ball": (lambda b, kw: dpm.private_ball(narrow(), b, PureDP(1.0), **kw, **EACH), ("far",)),
    "joint lengths": (statistic("joint lengths", GDP(1.0)), ("plane", "sphere")),
    "joint distances": (statistic("joint distances", GDP(1.0)), ("plane", "line")),
    "registered": (statistic("corner of three", GDP(1.0)), ("plane", "sphere")),
    "registered, pure": (statistic("corner of three", PureDP(1.0)), ("plane",)),
}
FLOATS = {"extrinsic-laplace", "extrinsic-gaussian", "kng"}
RESULTS = [
    (kind, ball, arithmetic)
    for kind, (_, where) in MAKERS.items()
    for number, ball in enumerate(where)
    # Each kind in both ways; where it is on several spaces, in turns.
    for arithmetic in ("exact", "float")
    if (len(where) == 1 or arithmetic == ("exact", "float")[number % 2])
    and not (arithmetic == "exact" and kind.removeprefix("mean by ") in FLOATS)
]


@cache
def honest(case):
    kind, where, arithmetic = case
    return MAKERS[kind][0](BALLS[where], {"rng": 7, "arithmetic": arithmetic})


@cache
def record_of(case):
    """The record of an honest result without its answers, which nobody has to write."""
    record = json.loads(json.dumps(honest(case).to_dict()))
    record.pop("answers", None)
    return record


# -------------------------------------------------------------------- alterations of single entries


def entries_of(part, path=()):
    """Every entry with its path, whole parts before what they hold."""
    if path:
        yield path, part
    if isinstance(part, dict | list):
        for name, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from entries_of(inner, (*path, name))


def at(record, path):
    for name in path:
        record = record[name]
    return record


def release_at(record, path):
    """The innermost release on a path: what was drawn there was drawn by its noise."""
    parts = [at(record, path[:depth]) for depth in range(len(path))]
    return [part for part in parts if is_release(part)][-1] if parts else None


def is_release(part):
    return isinstance(part, dict) and "mechanism" in part and "steps" in part


def numeric(change):
    """An alteration of numbers; whole numbers stay whole."""

    def altered(record, path):
        number = at(record, path)
        if isinstance(number, bool) or not isinstance(number, int | float):
            return None
        parts = [part for part in (at(record, path[:k]) for k in range(len(path))) if isinstance(part, dict)]
        scale = next((part["scale"] for part in parts[::-1] if is_release(part)), 1.0)
        grid = next((part["grid"] for part in parts[::-1] if "grid" in part), None)
        step = 2.0**grid if grid is not None else abs(number) * 1e-9 + 1e-300
        found = change(number, scale, step)
        return round(found) if isinstance(number, int) else found

    return altered


def swapped(record, path):
    """The number that comes next in a list."""
    beside = at(record, path[:-1])
    if not isinstance(beside, list) or len(beside) < 2 or not isinstance(at(record, path), int | float):
        return None
    return beside[(path[-1] + 1) % len(beside)]


def reworded(record, path):
    """The other word where there are two, or one more letter; the opposite of a flag."""
    own = at(record, path)
    if isinstance(own, bool):
        return not own
    two = (
        ("record", "unit"),
        (REPLACE_ONE_UNIT, REPLACE_ONE_UNIT_SAME_CLASSES),
        ("exact", "float"),
        ("laplace", "gaussian"),
    )
    return {**dict(two), **{b: a for a, b in two}}.get(own, own + " ") if isinstance(own, str) else None


LEFT_OUT = object()


def left_out(record, path):
    return LEFT_OUT


OPERATIONS = {
    "left out": left_out,
    "doubled": numeric(lambda x, scale, step: 2 * x),
    "a billionth less": numeric(lambda x, scale, step: x * (1 - 1e-9)),
    "one scale more": numeric(lambda x, scale, step: x + scale),
    "five scales less": numeric(lambda x, scale, step: x - 5 * scale),
    "fifty scales more": numeric(lambda x, scale, step: x + 50 * scale),
    "the other sign": numeric(lambda x, scale, step: -x),
    "one step of the grid": numeric(lambda x, scale, step: x + step),
    "nothing": numeric(lambda x, scale, step: 0 * x),
    "huge": numeric(lambda x, scale, step: 1e6 * (abs(x) + 1)),
    "its neighbour": swapped,
    "other words": reworded,
}


def changed_entry(case, operation, path):
    """The record with one entry altered; None where that leaves it as it is."""
    record = record_of(case)
    other = OPERATIONS[operation](record, path)
    own = at(record, path)
    if other is None or other == own:
        return None
    numbers = isinstance(own, int | float) and isinstance(other, int | float)
    least = NOTHING if "details" in path else 0.0
    if numbers and listed_as(path) not in DRAWABLE and math.isclose(own, other, rel_tol=ROUNDING, abs_tol=least):
        return None
    changed = copy.deepcopy(record)
    if other is LEFT_OUT:
        del at(changed, path[:-1])[path[-1]]
    else:
        at(changed, path[:-1])[path[-1]] = other
    return changed


def end_of(path):
    """What an entry is called, with its place where it is one of a list."""
    named = max(place for place, name in enumerate(path) if isinstance(name, str))
    return path[named:]


def changed_everywhere(case, operation, path):
    """The same with all entries that are called so and are equal; None where there are no others."""
    record = record_of(case)
    own = at(record, path)
    copies = [other for other, entry in entries_of(record) if end_of(other) == end_of(path) and entry == own]
    changed = changed_entry(case, operation, path) if len(copies) > 1 and not isinstance(own, dict | list) else None
    if changed is None or OPERATIONS[operation] is left_out:
        return None
    for other in copies:
        at(changed, other[:-1])[other[-1]] = at(changed, path)
    return changed


def is_refused(record):
    """Whether reading or `verify` refuses a record."""
    try:
        return not verify(result_from_dict(record)).ok
    except InvalidDataError:
        return True


def listed_as(path):
    """The entry of `UNKNOWABLE` that a path ends with; None if there is none."""
    named = "/".join(name for name in path if isinstance(name, str))
    for entry in UNKNOWABLE:
        inside = "(/point|/number|/matrix|/vector|/ball/center|/array)?"
        ends = inside if entry in ("value", "raw", "request/options/about", "request/options/noise_shape") else ""
        if entry.endswith("covariate_moment"):  # for all that begin so
            ends = r"_\d"
        if re.search(rf"(?<!sensitivity/)(^|(?<=/)){entry}{ends}$", named):
            return entry
    return None


# -------------------------------------------------------------------- what can be drawn, by this file's own reckoning

SURELY = 1e-13


def vecd(v):
    rows, columns = np.triu_indices(v.shape[1], 1)
    return np.hstack([v * v, math.sqrt(2) * v[:, rows] * v[:, columns]])


def in_unit_ball(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)


def moments(weight):
    def phi(x):
        v = in_unit_ball(x)
        return np.hstack([v, math.sqrt(weight) * vecd(v)])

    return phi


def lengths(square, fourth):
    def phi(x):
        v = in_unit_ball(x)
        r = (v * v).sum(axis=1, keepdims=True)
        return np.hstack([v, math.sqrt(square) * r, math.sqrt(fourth) * r * r])

    return phi


def distances(square, products, third, fourth):
    def phi(x):
        v = in_unit_ball(x)
        r = (v * v).sum(axis=1, keepdims=True)
        a, b, c, d = np.sqrt([products, square, third, fourth])
        return np.hstack([v, a * vecd(v), b * r, c * r * v, d * r * r])

    return phi


def signs(weight):
    def phi(x):
        length = np.linalg.norm(x, axis=1, keepdims=True)
        u = np.where(length > 0.3, x / length, 0.0)  # a unit at the released mean itself has no direction
        return np.hstack([u, math.sqrt(weight) * vecd(u)])

    return phi


def squares(count, dim, weight):
    def phi(x):
        v = in_unit_ball(x)
        rest = (v[:, count:] ** 2).sum(axis=1, keepdims=True)
        y = np.hstack([v[:, :count] ** 2, rest])
        return np.hstack([y, 1 - y.sum(axis=1, keepdims=True), math.sqrt(weight) * vecd(y)])

    return phi


def by_classes(count, dim, weight, own):
    def phi(x):
        v, chosen = in_unit_ball(x[:, :dim]), x[:, dim:].argmax(axis=1)
        block = v if own == 0 else np.hstack([v, np.full((len(v), 1), math.sqrt(own))])
        placed = np.zeros((len(v), count, block.shape[1]))
        placed[np.arange(len(v)), chosen] = block
        return np.hstack([placed.reshape(len(v), -1), math.sqrt(weight) * vecd(v)])

    return phi


def marked(dim, records=3):
    """Units with several records, each with a residual and a covariate."""

    def phi(x):
        parts = x.reshape(len(x), records, dim + 1)
        v = parts[:, :, :dim] / np.maximum(np.linalg.norm(parts[:, :, :dim], axis=2, keepdims=True), 1.0)
        t = np.clip(parts[:, :, dim:], -1.0, 1.0)
        z = np.concatenate([v / 2, math.sqrt(3) / 2 * t * v], axis=2).mean(axis=1)
        return np.hstack([z, math.sqrt(0.5) * vecd(z), t.mean(axis=1) / 4, math.sqrt(1.6) * (t * t).mean(axis=1)])

    return phi


def drawn_by(release):
    """The numbers of a release that noise was added to, and features whose averages they are; or None."""
    ball, details, name = release["ball"], release["details"], release["statistic"]
    radius, d = ball["radius"], space_from_text(ball["space"]).dim
    weight = details.get("second_moment_weight", 1.0)
    if name == "joint moments":
        phi, size = moments(weight), d
    elif name == "joint lengths":
        phi, size = lengths(details["squared_length_weight"], details["fourth_power_weight"]), d
    elif name == "joint distances":
        a, k, f = (details[f"{word}_weight"] for word in ("squared_length", "third_power", "fourth_power"))
        phi, size = distances(a, weight, k, f), d
    elif name == "signs":
        phi, size = signs(weight), d
    elif name == "components":
        phi, size = squares(int(details["n_components"]), d, weight), d
    elif name == "class moments":
        count, own = int(details["n_classes"]), details["count_weight"]
        phi, size = by_classes(count, d, weight, own), d + count
    elif name == "regression":
        phi, size = marked(d), 3 * (d + 1)
    elif name == "second moment":
        reach, size = radius + details["reference_to_center"], d

        def phi(x):
            return reach**2 * vecd(in_unit_ball(x))

    else:
        return None
    return numbers_of(release), phi, size


def numbers_of(release, draw=0):
    return np.array(release["draws"][draw]["numbers"])


def tail(release, size):
    """What noise on so many numbers is longer than with probability 1e-13."""
    normal = math.sqrt(stats.chi2.isf(SURELY, size))
    return release["scale"] * (stats.gamma.isf(SURELY, size) if "laplace" in release["mechanism"] else normal)


def away_from_hull(numbers, phi, size, enough):
    """How far numbers are from all averages of features; more than `enough` only if no average was found so near.

    Averages are mixed of random units, and of those that lie farthest in the direction that is missing.
    """
    rng = np.random.default_rng(0)
    atoms = phi(rng.normal(size=(100 + 40 * size, size)) * rng.uniform(0, 2, (100 + 40 * size, 1)))
    heavy, apart = 1e3, math.inf
    for _ in range(80):
        weights, _ = optimize.nnls(np.vstack([atoms.T, np.full(len(atoms), heavy)]), np.append(numbers, heavy))
        missing = numbers - weights @ atoms / weights.sum()
        apart = float(np.linalg.norm(missing))
        if apart <= enough:
            return apart
        atoms = atoms[weights > 0]
        best = rng.normal(size=(400, size)) * rng.uniform(0, 2, (400, 1))
        for width in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003):
            best = best[np.argsort(phi(best) @ missing)[-8:]]
            best = np.vstack([best, (best[:, None] + width * rng.normal(size=(8, 30, size))).reshape(-1, size)])
        best = best[np.argsort(phi(best) @ missing)[-4:]]
        atoms = np.vstack([atoms, phi(best)])
    return apart


def length_drawn(release):
    """How far from the center a point was drawn: on a grid as coordinates, in doubles as a point of the frame."""
    numbers = numbers_of(release)
    space, ball = space_from_text(release["ball"]["space"]), release["ball"]
    frame = dpm.Ball(space, np.array(ball["center"]), ball["radius"]).frame
    if "grid" in release["draws"][0] or release["statistic"] in ("median", "shaped mean") or frame.is_flat:
        return np.linalg.norm(numbers)
    return frame.dist(frame.origin, numbers.reshape(frame.shape))


def can_be_drawn(record, path):
    """Whether a release, as it was altered, states what units in the ball and noise can come to."""
    release = release_at(record, path)
    if path[-2:] == ("request", "n"):  # whoever is in several classes counts in each: of two the sum does not tell
        counts = release["request"]["options"].get("counts", [math.inf])
        return max(counts) <= release["request"]["n"] <= sum(counts)
    name, ball, details = release["statistic"], release["ball"], release["details"]
    space, radius, center = space_from_text(ball["space"]), ball["radius"], np.array(ball["center"])
    found = drawn_by(release)
    if found is not None:
        enough = tail(release, len(found[0]))
        return away_from_hull(*found, enough) <= enough
    if name in ("variance", "fourth moment"):
        power = 2 if name == "variance" else 4
        number = numbers_of(release)[0]
        return -tail(release, 1) <= number <= (radius + details["reference_to_center"]) ** power + tail(release, 1)
    if name == "corner of three":
        return np.linalg.norm(numbers_of(release)) <= 1 + tail(release, 3)
    if name in ("ball", "radius"):
        first = [] if name == "radius" else [numbers_of(release)]
        pure, off = "epsilon" in release["share"], details["count_noise"]
        counts = [numbers_of(release, draw)[0] for draw in range(len(first), len(release["draws"]))]
        chosen = counts[:1] if pure else []
        beyond = off * (30 if pure else 7.5)
        return (
            all(length_drawn(release) <= radius + tail(release, space.dim) for _ in first)
            and all(place in range(64) for place in chosen)
            and all(-beyond <= count <= release["n"] + beyond for count in counts[len(chosen) :])
        )
    assert name in ("mean", "median", "shaped mean"), name
    point = np.array(release["value"]["point"])
    if MECHANISMS.get(release["mechanism"]).baseline if name == "mean" else False:
        # Stored numbers with noise on each: on a sphere no farther off than distances, matrices by their eigenvalues.
        most = radius if ball["space"].startswith("Sphere") else math.expm1(radius) * math.sqrt(len(point))
        return np.linalg.norm(point - center) <= most + tail(release, point.size)
    noise = 0.0 if release["projected"] else tail(release, space.dim)
    drawn = length_drawn(release)
    chart = ball["space"].startswith("Sphere") and release["mechanism"].startswith(("riem", "extr"))
    long = 1.0 if name == "median" else radius
    fits = chart or name == "shaped mean" or drawn <= long + tail(release, space.dim)
    return fits and space.dist(center, point) <= (radius + noise) * (1 + 1e-9)


def all_numbers(part):
    return np.array([entry for _, entry in entries_of({"": part}) if isinstance(entry, int | float)], dtype=float)


def is_nearly(changed, record, path):
    """Whether a value was altered in its last digits alone."""
    parts = [(at(changed, path[:k]), at(record, path[:k])) for k, name in enumerate(path, 1) if name in LAST_DIGITS]
    mine, theirs = map(all_numbers, parts[0])
    return len(mine) == len(theirs) and np.abs(mine - theirs).max() <= 2e-9 * np.abs(theirs).max()


def unexplained(case, changed, path):
    """Whether an alteration goes unseen that is neither drawable nor listed."""
    if is_refused(changed):
        return False
    entry = listed_as(path)
    if path[:2] == ("value", "ball") and changed["value"]["ball"] == changed["request"]["ball"]:
        return False  # no smaller ball was found: what was altered is the public one, wherever it stands
    if entry in LAST_DIGITS:
        return not is_nearly(changed, record_of(case), path)
    return entry is None or (entry in DRAWABLE and not can_be_drawn(changed, path))


# -------------------------------------------------------------------- the walk

SLICES = 13


def name_of(value):
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def part_of(case, operation, part):
    """The alterations of a slice of all entries."""
    for number, (path, _) in enumerate(entries_of(record_of(case))):
        if number % SLICES == part:
            for altered in (changed_entry, changed_everywhere):
                changed = altered(case, operation, path)
                if changed is not None:
                    yield path, changed


@pytest.mark.parametrize(("case", "lot"), lots(RESULTS, OPERATIONS, range(SLICES), within=2, ids=name_of))
def test_an_altered_entry_is_refused_or_drawable_or_listed(case, lot):
    assert not [
        ("/".join(map(str, path)), operation)
        for operation, part in lot
        for path, changed in part_of(case, operation, part)
        if unexplained(case, changed, path)
    ]


def test_single_alterations_are_many():
    """Counted over the whole: of numbers, each of them a file of its own."""
    many = sum(
        changed_entry(case, operation, path) is not None
        for case in RESULTS
        for path, entry in entries_of(record_of(case))
        if isinstance(entry, int | float) and not isinstance(entry, bool)
        for operation in ("doubled", "fifty scales more", "the other sign")
    )
    assert many >= 6000
    assert {kind for kind, _, _ in RESULTS} == set(MAKERS)
    assert honest(("mean shaped by public data", "wide", "exact")).statistic == "shaped mean"
    assert honest(("mean shaped privately", "plane", "exact")).statistic == "shaped mean"
    assert honest(("refined mean", "far", "exact")).steps
    assert honest(("refined regression", "plane", "exact")).release.steps
    assert all(verify(honest(case)).ok for case in RESULTS)


def test_everything_that_is_said_to_be_unknowable_goes_unseen():
    """Each entry of the table: there is a result in which it can be altered, and nobody refuses it."""
    shown = [
        ("mean by kng", "line", "float"),
        ("mean of a class", "sphere", "exact"),
        ("mean shaped by public data", "wide", "float"),
        ("mean whose shape is skipped", "plane", "float"),
        ("unprojected mean", "plane", "float"),
        ("shrunken mean", "solid", "float"),
        ("no smaller ball", "far", "float"),
        ("variance about a point", "sphere", "float"),
        ("region", "tensors", "float"),
        ("components", "plane", "float"),
        ("pure median", "plane", "float"),
        ("classes", "plane", "float"),
        ("regression on a public covariate", "plane", "float"),
        ("registered", "plane", "exact"),  # whose bound is one number, whatever the radius
    ]
    left = set(UNKNOWABLE)
    for case in shown:
        for path, _ in entries_of(record_of(case)):
            entry = listed_as(path)
            for operation in OPERATIONS if entry in left else ():
                ways = [altered(case, operation, path) for altered in (changed_entry, changed_everywhere)]
                if any(changed is not None and not is_refused(changed) for changed in ways):
                    left.discard(entry)
                    break
    assert left == set()
    public = ("classes with public labels", "plane", "exact")
    assert not is_refused({**record_of(public), "counts": [21.0, 20.0, 19.0]})


def test_the_table_is_that_of_the_documents():
    page = pathlib.Path(__file__).parents[2] / "docs" / "limitations.md"
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.*?) \| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {entry: name for name, entries, _ in rows for entry in re.findall(r"`([^`]+)`", entries)} == UNKNOWABLE
    assert {name: text for name, _, text in rows} == CANNOT_KNOW


# -------------------------------------------------------------------- alterations of whole blocks


def releases_in(part, path=()):
    """The paths of all releases in a record, steps included."""
    if isinstance(part, dict):
        if is_release(part):
            yield path
        for name, inner in part.items():
            yield from releases_in(inner, (*path, name))
    elif isinstance(part, list):
        for number, inner in enumerate(part):
            yield from releases_in(inner, (*path, number))


def numbers_in(release):
    """What noise was added to, of a vector or a matrix; None of others."""
    if release["statistic"] == "corner of three":
        return numbers_of(release)
    found = drawn_by(release)
    return None if found is None else found[0]


def put_numbers(release, numbers):
    """Let a release state other numbers: its draw, if it is exact, and the value that follows."""
    (draw,) = release["draws"]
    if "grid" in draw:
        step = 2.0 ** draw["grid"]
        numbers = np.rint(numbers / step) * step
    draw["numbers"] = numbers.tolist()
    read = dpm.Release.from_dict(release_alone(release))
    definition = read.definition
    if isinstance(definition, AveragedStatistic):
        made = definition.as_stated(read).placed(numbers, read.ball)
    else:
        made = definition.value(numbers, read.details)
    release["value"] = {name: np.asarray(made).tolist() for name in release["value"]}


def release_alone(release):
    return {name: entry for name, entry in release.items() if name != "answers"}


def half(numbers, start, factor):
    found = numbers.copy()
    found[start:] *= factor
    return found


BLOCKS = {
    "negated": lambda x, d: -x,
    "all but the first part negated": lambda x, d: half(x, min(d, len(x) - 1), -1.0),
    "all but the first part doubled": lambda x, d: half(x, min(d, len(x) - 1), 2.0),
    "the last half negated": lambda x, d: half(x, len(x) // 2, -1.0),
    "reversed": lambda x, d: x[::-1],
    "moved by one": lambda x, d: np.roll(x, 1),
    "sorted": lambda x, d: np.sort(x),
    "tripled": lambda x, d: 3 * x,
    "nothing": lambda x, d: 0 * x,
    "all in one place": lambda x, d: np.where(np.arange(len(x)) == np.abs(x).argmax(), np.abs(x).sum(), 0.0),
}
STEPS = (0, 1, -1, 1000)


def block_alterations(case):
    """Yield altered records of a result with the paths of what was altered, and words for each."""
    record = record_of(case)
    found = [(path, numbers_in(at(record, path))) for path in releases_in(record)]
    blocks = [(path, numbers) for path, numbers in found if numbers is not None]
    for path, numbers in blocks:
        dim = space_from_text(at(record, path)["ball"]["space"]).dim
        for words, change in BLOCKS.items():
            changed = copy.deepcopy(record)
            put_numbers(at(changed, path), change(numbers, dim))
            if at(changed, path) != at(record, path):
                yield f"{path} {words}", path, changed
    for path, numbers in blocks:
        for other, copied in blocks:
            if other == path or len(copied) != len(numbers):
                continue
            for steps in STEPS:
                changed = copy.deepcopy(record)
                step = 2.0 ** at(record, path)["draws"][0].get("grid", -40)
                put_numbers(at(changed, path), copied + steps * step)
                yield f"{path} a copy of {other}, {steps} steps off", path, changed
    if record.get("counts"):
        yield "counts", ("counts",), {**copy.deepcopy(record), "counts": [58.0, 1.0, 1.0]}


def has_copies(record):
    """Whether two draws of a result are nearer than draws come with probability 1e-10, by the law of the first one."""
    drawn = [(at(record, path), numbers_in(at(record, path))) for path in releases_in(record)]
    drawn = [(release, numbers) for release, numbers in drawn if numbers is not None]
    return any(
        len(one) == len(two)
        and np.linalg.norm(one - two) <= math.sqrt(stats.chi2.ppf(1e-10, len(one))) * release["scale"]
        for number, (release, one) in enumerate(drawn)
        for _, two in drawn[number + 1 :]
    )


def unexplained_block(path, changed):
    """Whether a block goes unseen that is neither drawable, with what was drawn besides, nor listed."""
    if is_refused(changed):
        return False
    if listed_as(path) is not None:
        return False
    return has_copies(changed) or not can_be_drawn(changed, (*path, "value"))


WITH_BLOCKS = [case for case in RESULTS if any(True for _ in block_alterations(case))]


@pytest.mark.parametrize("case", WITH_BLOCKS, ids=name_of)
def test_an_altered_block_is_refused_or_drawable_or_listed(case):
    assert not [words for words, path, changed in block_alterations(case) if unexplained_block(path, changed)]


def test_block_alterations_are_many():
    assert sum(1 for case in WITH_BLOCKS for _ in block_alterations(case)) >= 200


# -------------------------------------------------------------------- alterations that used to pass


@cache
def separated():
    """Three classes of 1000 units, as far apart as they are wide."""
    rng, ball = np.random.default_rng(0), Ball(Euclidean(2), [0.0, 0.0], 5.0)
    labels = np.arange(3000) % 3
    X = rng.normal(size=(3000, 2)) + np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[labels]
    return X, labels, ball


def test_counts_of_private_classes_are_counts_of_the_units():
    """6000, 0 and 0 of 3000 units, with noise of 4.2; and 3000, 0 and 0, which add up but leave nobody to two sums."""
    X, labels, ball = separated()
    found = dpm.private_lda(X, labels, ball, GDP(1.0), classes=[0, 1, 2], **EACH)
    assert verify(found).ok
    for counts in ([6000, 0, 0], [3000, 0, 0], [-500, 1500, 2000]):
        record = json.loads(json.dumps(found.to_dict()))
        record.pop("answers")
        numbers = numbers_of(record["release"])
        numbers[[2, 5, 8]] = 0.5 * np.array(counts) / 3000
        put_numbers(record["release"], numbers)
        assert found.count_noise < 4.3
        assert is_refused(record), counts


def test_a_negative_second_moment_is_refused():
    """A region whose second moment is made negative definite, by which it states a smaller error."""
    X, _, ball = separated()
    found = dpm.private_region(X, ball, GDP(1.0), **EACH)
    record = json.loads(json.dumps(found.to_dict()))
    record.pop("answers")
    numbers = numbers_of(record["release"])
    numbers[2:] *= -1
    put_numbers(record["release"], numbers)
    wrong = verify(result_from_dict(record)).wrong
    assert any("smallest eigenvalue of the second moment" in text for text in wrong), wrong


def test_public_counts_of_classes_are_held_against_the_sums():
    """Counts of 1000 each become 2980, 10 and 10: two classes would have fewer units than their sums are long."""
    X, labels, ball = separated()
    found = dpm.private_lda(X, labels, ball, GDP(1.0), classes=[0, 1, 2], labels_public=True, **EACH)
    record = json.loads(json.dumps(found.to_dict()))
    record.pop("answers")
    assert not is_refused(record)
    assert is_refused({**record, "counts": [2980.0, 10.0, 10.0]})
    assert is_refused({**record, "counts": [1000.5, 999.5, 1000.0]})  # each record is of one class
    # Nobody can tell that 40 units more are of the first: listed.
    assert not is_refused({**record, "counts": [1040.0, 980.0, 980.0]})
    assert "counts" in CANNOT_KNOW


def test_the_range_of_a_covariate_is_that_of_the_request():
    changed = copy.deepcopy(record_of(("regression", "line", "exact")))
    changed["covariate_range"] = [20.0, 8000.0]
    assert verify(result_from_dict(changed)).wrong == ("covariate_range: not what was asked for",)
    # Another with another request goes with the same draws.
    changed["release"]["request"]["options"]["covariate_range"] = [20.0, 8000.0]
    found = verify(result_from_dict(changed))
    assert found.ok
    assert CANNOT_KNOW["request"] in found.cannot_know


@pytest.mark.parametrize("estimand", ["tangent", "frechet"])
def test_a_copied_group_is_refused(estimand):
    """Group c becomes group a's draw, one step of the grid away: the means would be the same, and p nearly 1."""
    ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.7)
    sides = np.array([[0.0, 0.0], [0.3, 0.0], [0.0, 0.4]])[np.arange(900) % 3]
    X = ball.space.exp_coords(ball.center, sides + 0.05 * np.random.default_rng(0).normal(size=(900, 2)))
    labels = np.array(["a", "b", "c"])[np.arange(900) % 3]
    test = dpm.private_k_sample_test(X, labels, ball, GDP(1.0), classes=["a", "b", "c"], estimand=estimand, **EACH)
    assert verify(test).ok
    for steps in (0, 1, -3):
        record = json.loads(json.dumps(test.to_dict()))
        record.pop("answers")
        groups = record["groups"]
        groups[2] = copy.deepcopy(groups[0])
        release = groups[2]
        while release["steps"] and estimand == "frechet":
            release = release["steps"][0]
        (draw,) = release["draws"]
        draw["numbers"][0] += steps * 2.0 ** draw["grid"]
        if estimand == "tangent":
            put_numbers(release, numbers_of(release))
        wrong = verify(result_from_dict(record)).wrong
        assert any("copy" in text for text in wrong), wrong


# -------------------------------------------------------------------- checks that see less must be found out


def only_the_length(monkeypatch):
    """Blocks are not looked at: every number, and all of them together, may be as long as features can be."""

    def limits(self, dim):
        high = np.full(self.size(dim), self.longest(dim))
        return -high, high

    for one in (JointMoments, ClassMoments, MarkedMoments):
        monkeypatch.setattr(one, "limits", limits)
        monkeypatch.setattr(one, "cuts", FeatureMap.cuts)


def no_comparison(monkeypatch):
    """Draws are not compared with each other."""
    monkeypatch.setattr(check, "copy_faults", lambda draws: [])


@pytest.mark.parametrize(
    ("weaker", "case"),
    [
        (only_the_length, ("classes", "line", "exact")),
        (only_the_length, ("region", "plane", "float")),
        (only_the_length, ("regression", "sphere", "float")),
        (no_comparison, ("groups", "line", "exact")),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_weaker_check_is_found_out(weaker, case, monkeypatch):
    """The same alterations, by a `verify` that sees less: some go unseen that are neither drawable nor listed."""
    weaker(monkeypatch)
    assert any(unexplained_block(path, changed) for _, path, changed in block_alterations(case))
