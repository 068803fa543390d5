"""Tangent and extrinsic means: their sensitivities against an adversary, their forecasts against simulation."""

import json
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    ApproxDP,
    Ball,
    Budget,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    KendallShapes,
    PromiseError,
    PureDP,
    Sphere,
    frechet,
    plan_mean,
    sensitivity,
)
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import kendall, sphere
from dpmanifold.manifolds.embedding import TangentMap
from dpmanifold.mechanisms import MECHANISMS, attempt, candidates, choose, get
from dpmanifold.mechanisms.error_forecasts import CellForecast, carried_over
from dpmanifold.noise import RiemannianGaussian
from dpmanifold.noise.source import as_source
from dpmanifold.serialization import ball_from_dict, ball_to_dict
from laws.data import in_ball

CURVED = Sphere(3, curvature=4.0)


class OfBall:
    """A map of a ball's points to vectors, and what mechanisms make of it."""

    def __init__(self, ball):
        self.ball, self.map = ball, self.kind(ball.frame, ball.radius)

    def __getattr__(self, name):
        return getattr(self.map, name)

    def average(self, points):
        return self.map.coordinates(points.mean_of(self.map.images, self.map.bound))

    def sensitivity(self, n):
        return sensitivity.of_extrinsic_mean(self.ball, n)


class TangentEmbedding(OfBall):
    kind = TangentMap

    def sensitivity(self, n):
        return sensitivity.of_tangent_mean(self.ball, n)


class SphereEmbedding(OfBall):
    kind = sphere.SphereEmbedding


class ShapeEmbedding(OfBall):
    kind = kendall.ShapeEmbedding


TANGENT = [
    Ball(Euclidean(3), [1.0, 2.0, 3.0], 2.0),
    Ball(Sphere(1), [1.0, 0.0], 1.5),
    Ball(Sphere(2), [0.0, 0.6, 0.8], 0.75),
    Ball(CURVED, CURVED.origin, 0.35),
    Ball(Hyperbolic(2), Hyperbolic(2).random_point(rng=1), 1.5),
    Ball(KendallShapes(5), KendallShapes(5).random_point(rng=1), 0.35),
    Ball(SPD(3), np.diag([3.0, 2.0, 1.0]), 1.5),
    Ball(SPD(2, metric="riemann"), np.diag([3.0, 1.0]), 1.0),
]
EXTRINSIC = [
    Ball(Sphere(1), [1.0, 0.0], 1.5),
    Ball(Sphere(2), [0.0, 0.6, 0.8], 0.1),
    Ball(Sphere(2), [0.0, 0.6, 0.8], 0.75),
    Ball(CURVED, CURVED.random_point(rng=1), 0.35),
    Ball(KendallShapes(3), KendallShapes(3).random_point(rng=1), 0.35),
    Ball(KendallShapes(5), KendallShapes(5).random_point(rng=1), 0.2),
    Ball(KendallShapes(8), KendallShapes(8).origin, 0.39),
    Ball.whole(Sphere(2)),
    Ball.whole(CURVED),
    Ball.whole(KendallShapes(5)),
]
EMBEDDED = [(TangentEmbedding, ball) for ball in TANGENT] + [
    (SphereEmbedding if isinstance(ball.space, Sphere) else ShapeEmbedding, ball) for ball in EXTRINSIC
]
NAMES = [
    "tangent-mean-laplace",
    "tangent-mean-gaussian",
    "extrinsic-mean-laplace",
    "extrinsic-mean-gaussian",
]


def named(value):
    return value.__name__ if isinstance(value, type) else repr(value)


def opposite_ends(ball):
    """Two records of the ball as far apart as any."""
    space = ball.space
    first = np.zeros((2, space.dim))
    if not ball.is_whole:
        first[:, 0] = ball.radius, -ball.radius
    elif isinstance(space, Sphere):
        first[1, 0] = ball.radius
    else:
        first[:, 0] = ball.radius / 2, -ball.radius / 2
    return space.project(space.exp_coords(ball.center, first))


def squared_distance(a, b):
    """Without rounding."""
    return sum((Fraction(float(x)) - Fraction(float(y))) ** 2 for x, y in zip(a, b, strict=True))


# -------------------------------------------------------------------- sensitivities


@pytest.mark.parametrize(("kind", "ball"), EMBEDDED, ids=named)
@pytest.mark.parametrize("n", [1, 2, 60])
def test_no_pair_exceeds_the_sensitivity(kind, ball, n):
    """Exact rationals; the bound less 2 % is broken by the same pairs."""
    rng = np.random.default_rng(n)
    embedding = kind(ball)
    bound = Fraction(embedding.sensitivity(n).value) ** 2
    spread = ball.space.random_point(40, rng=rng) if ball.is_whole else in_ball(ball, 40, rng, edge=True)
    pairs = [opposite_ends(ball), *spread.reshape(20, 2, *ball.space.shape)]
    rest = ball.to_frame(ball.space.random_point(n - 1, rng=rng))
    worst = Fraction(0)
    for pair in pairs:
        p, q = ball.to_frame(pair)
        images = [embedding.average(UnitPoints.of(np.concatenate([rest, one[None]]), ball)) for one in (p, q)]
        worst = max(worst, squared_distance(*images))
    assert worst <= bound
    assert worst > Fraction(98, 100) ** 2 * bound


@pytest.mark.parametrize("ball", [b for b in TANGENT if not b.space.is_flat], ids=repr)
def test_tangent_mean_is_the_cheapest(ball):
    """2r/n, where the Fréchet mean's bound has the curvature in it."""
    tangent = sensitivity.of_tangent_mean(ball, 50).value
    assert math.isclose(tangent, 2 * ball.radius / 50, rel_tol=1e-9)
    assert tangent <= sensitivity.of_mean(ball, 50).value * (1 + 1e-9)


def test_extrinsic_sensitivity_has_its_closed_form():
    for space, r, expected in [
        (Sphere(2), 0.75, 2 * math.sin(0.75)),
        (CURVED, 0.35, math.sin(0.7)),
        (KendallShapes(6), 0.3, math.sqrt(2) * math.sin(0.6)),
    ]:
        found = sensitivity.of_extrinsic_mean(Ball(space, space.origin, r), 10)
        assert math.isclose(10 * found.value, expected, rel_tol=1e-9)
        assert (found.statistic, found.proof) == ("extrinsic mean", "estimands")
    assert math.isclose(sensitivity.of_extrinsic_mean(Ball.whole(CURVED), 10).value, 0.1, rel_tol=1e-9)
    shapes = sensitivity.of_extrinsic_mean(Ball.whole(KendallShapes(4)), 10).value
    assert math.isclose(10 * shapes, math.sqrt(2), rel_tol=1e-9)
    with pytest.raises(InvalidArgumentError, match=r"a space with extrinsic means.*got one in SPD\(2\)"):
        sensitivity.of_extrinsic_mean(Ball(SPD(2), np.eye(2), 1.0), 10)


@pytest.mark.parametrize("ball", [b for b in EXTRINSIC if isinstance(b.space, KendallShapes)], ids=repr)
def test_shapes_are_as_far_apart_as_the_sine_of_their_distance(ball):
    points = ball.to_frame(ball.space.random_point(12, rng=3))
    embedding = ShapeEmbedding(ball)
    images = np.array([embedding.average(UnitPoints.of(point[None], ball)) for point in points])
    apart = np.linalg.norm(images[:, None] - images, axis=2)
    expected = math.sqrt(2) * np.sin(ball.space.dist(points[:, None], points))
    assert np.abs(apart - expected).max() < 1e-14


@pytest.mark.parametrize("length", [1e-12, 0.2, 1.0, 1.5, 3.0])
def test_records_that_rounding_left_outside_are_shortened(length):
    """Whatever reaches the embedding, its image is no longer than the bound says: here points that are none."""
    rng = np.random.default_rng(0)
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    points = rng.standard_normal((50, 3)) * length
    for embedding in (SphereEmbedding(ball), TangentEmbedding(ball)):
        images = [embedding.average(UnitPoints.of(point[None], ball)) for point in points]
        bound = Fraction(embedding.sensitivity(1).value) / 2
        assert max(squared_distance(image, np.zeros_like(image)) for image in images) <= bound**2


# -------------------------------------------------------------------- rounding


def exact_sphere(ball, points):
    """The average vector less the centre of the Euclidean ball, in 50 digits."""
    shift = SphereEmbedding(ball)._shift
    columns = [mp.fsum(mp.mpf(float(x)) for x in column) / len(points) for column in points.T]
    return [c - mp.mpf(float(s)) for c, s in zip(columns, shift, strict=True)]


def exact_tangent(ball, points):
    """The average logarithm on a sphere."""
    logs = []
    for point in points:
        head, *tail = (mp.mpf(float(x)) for x in point)
        length = mp.sqrt(mp.fsum(t * t for t in tail))
        logs.append([t / length * mp.atan2(length, head) * float(ball.space.origin[0]) for t in tail])
    return [mp.fsum(column) / len(points) for column in zip(*logs, strict=True)]


def exact_shapes(ball, points):
    """The average matrix, in the embedding's coordinates."""
    space, embedding = ball.space, ShapeEmbedding(ball)
    rows = embedding.rows
    turn = mp.matrix([[mp.mpc(complex(x)) for x in row] for row in space._turn])
    total = mp.zeros(rows)
    for point in points:
        y = turn * mp.matrix([mp.mpc(complex(x)) for x in point])
        size = mp.fsum(abs(x) ** 2 for x in y)
        total += y * y.H / size
    total /= len(points)
    steps = range(1, rows)
    diagonal = [
        (mp.fsum(total[i, i].real for i in range(j)) - j * total[j, j].real) / mp.sqrt(j * (j + 1)) for j in steps
    ]
    above = [total[int(i), int(j)] for i, j in zip(*embedding._above, strict=True)]
    return [*diagonal, *(mp.sqrt(2) * x.real for x in above), *(mp.sqrt(2) * x.imag for x in above)]


@pytest.mark.parametrize(
    ("kind", "exact", "space", "radius"),
    [
        (SphereEmbedding, exact_sphere, Sphere(2), 0.7),
        (SphereEmbedding, exact_sphere, CURVED, 0.3),
        (TangentEmbedding, exact_tangent, Sphere(2), 0.7),
        (TangentEmbedding, exact_tangent, Sphere(20), 0.7),
        (ShapeEmbedding, exact_shapes, KendallShapes(4), 0.35),
        (ShapeEmbedding, exact_shapes, KendallShapes(9), 0.35),
    ],
)
@pytest.mark.parametrize("n", [1, 30])
def test_rounding_is_within_the_bound(kind, exact, space, radius, n):
    """The computed average against 50 digits: the error is less than half of what the sensitivity adds for it."""
    ball = Ball(space, space.random_point(rng=5), radius)
    points = ball.to_frame(in_ball(ball, n, np.random.default_rng(n)))
    embedding = kind(ball)
    with mp.workdps(50):
        r = mp.mpf(ball.effective_radius)
        size = float(np.linalg.norm(space.origin)) if isinstance(space, Sphere) else 1.0
        ideal = {
            SphereEmbedding: lambda: 2 * size * mp.sin(r / size),
            TangentEmbedding: lambda: 2 * mp.mpf(ball.radius),
            ShapeEmbedding: lambda: mp.sqrt(2) * mp.sin(2 * r),
        }[kind]()
        allowed = (mp.mpf(embedding.sensitivity(n).value) - ideal / n) / 2
        found = embedding.average(UnitPoints.of(points, ball))
        error = mp.norm([mp.mpf(float(a)) - b for a, b in zip(found, exact(ball, points), strict=True)])
        assert 0 <= error < allowed / 2


# -------------------------------------------------------------------- from vectors back to points


@pytest.mark.parametrize(("kind", "ball"), EMBEDDED, ids=named)
def test_the_image_of_one_point_is_placed_where_it_was(kind, ball):
    points = ball.to_frame(ball.space.random_point(20, rng=2))
    embedding = kind(ball)
    images = np.array([embedding.average(UnitPoints.of(point[None], ball)) for point in points])
    assert images.shape == (20, embedding.size)
    assert ball.frame.dist(embedding.place(images), points).max() < 1e-7
    assert np.linalg.norm(images, axis=1).max() <= embedding.longest * (1 + 1e-12)


@pytest.mark.parametrize("ball", EXTRINSIC, ids=repr)
def test_the_extrinsic_mean_is_the_usual_one(ball):
    """Mean direction and full Procrustes mean, which do not depend on the frame."""
    X = in_ball(ball, 50, np.random.default_rng(1)) if not ball.is_whole else ball.space.random_point(50, rng=1)
    mechanism = get("extrinsic-mean-gaussian")
    points = UnitPoints.of(ball.to_frame(X), ball)
    found = ball.from_frame(mechanism.place(ball, mechanism.vector(ball, ball.frame.origin, points)))
    assert ball.space.dist(found, ball.space.extrinsic_mean(X, np.full(50, 1 / 50))) < 1e-7


@pytest.mark.parametrize(("kind", "ball"), EMBEDDED, ids=named)
def test_placing_never_fails(kind, ball):
    """Zero, ties, noise far beyond the space, single entries, the smallest doubles."""
    embedding = kind(ball)
    rng = np.random.default_rng(0)
    some = [np.zeros(embedding.size), -np.zeros(embedding.size)]
    some += [scale * rng.standard_normal(embedding.size) for scale in (5e-324, 1e-300, 1e-8, 1.0, 1e8, 1e150, 1e300)]
    some += [sign * row for row in np.eye(embedding.size) for sign in (-1.0, 1.0)]
    placed = embedding.place(np.array(some))
    assert np.isfinite(placed).all()
    # Matrices at the end of the doubles are finite, and singular to working precision.
    near = np.abs(some).max(axis=1) < 10
    assert ball.frame.check(placed[near if isinstance(ball.frame, SPD) else slice(None)]) is None
    for vector, point in zip(some, placed, strict=True):
        assert np.allclose(embedding.place(vector), point, rtol=1e-9, atol=1e-12)
    assert kind is SphereEmbedding or ball.frame.dist(placed[0], ball.frame.origin) < 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ball", [*TANGENT[1:6], EXTRINSIC[7], EXTRINSIC[9]], ids=repr)
def test_exact_and_float_draws_are_points(name, ball):
    mechanism = get(name)
    privacy = PureDP(1.0) if mechanism.noise == "laplace" else GDP(1.0)
    found = attempt(mechanism, ball, 40, privacy)
    if isinstance(found, str):
        assert "space" in found or "spheres and planar shapes" in found
        return
    points = UnitPoints.of(ball.to_frame(ball.space.random_point(40, rng=0)), ball)
    calibration, _ = found
    assert mechanism.offers_exact(ball, calibration)
    numbers = mechanism.numbers(ball, calibration, ball.frame.origin, points, as_source(3))
    grid = 2.0 ** mechanism.grid(ball, calibration)
    assert (numbers / grid == np.round(numbers / grid)).all()
    drawn = mechanism.law(ball, calibration, ball.frame.origin, points).sample((2, 3), rng=1)
    for point in (mechanism.place(ball, numbers), *drawn.reshape(6, *ball.frame.shape)):
        assert ball.frame.check(point) is None


# -------------------------------------------------------------------- forecasts

DRAWS = 4000
# Dvoretzky, Kiefer, Wolfowitz: a forecast that holds fails with a probability of 1e-6 at most, all levels together.
MARGIN = math.sqrt(math.log(1e6) / (2 * DRAWS))
LEVELS = np.linspace(0.02, 0.98, 49)


def holds(forecast, errors):
    """Whether errors are no larger than forecast, at every level."""
    below = (errors[:, None] <= forecast.quantile(LEVELS)).mean(axis=0)
    return bool((below >= LEVELS - MARGIN).all())


def ring(ball, n=60):
    """Data on the edge whose average is the centre: the shortest mean vector, the smallest gap of eigenvalues."""
    space = ball.space
    c = np.zeros((n, space.dim))
    if isinstance(space, Sphere) and space.dim > 1:
        turn = 2 * np.pi * np.arange(n) / n
        c[:, 0], c[:, 1] = np.cos(turn), np.sin(turn)
    else:
        c[:, 0] = np.where(np.arange(n) % 2, 1.0, -1.0)
    return space.exp_coords(space.origin, ball.radius * (1 - 1e-9) * c)


FORECAST = [
    (name, Ball(space, space.origin, r), n)
    for name in NAMES
    for space, r, n in [
        (Sphere(1), 1.2, 100),
        (Sphere(2), 0.75, 60),
        (Sphere(2), 0.75, 8),
        (Sphere(6), 0.6, 60),
        (CURVED, 0.35, 60),
        (KendallShapes(3), 0.38, 60),
        (KendallShapes(5), 0.3, 60),
        (Hyperbolic(2), 1.5, 60),
        (SPD(2, metric="riemann"), 1.0, 60),
        (SPD(2), 1.0, 60),
    ]
    if name.startswith("tangent") or isinstance(space, (Sphere, KendallShapes))
]


def errors_of(mechanism, ball, calibration, points, seed=11):
    frame, points = ball.frame, UnitPoints.of(points, ball)
    at = mechanism.place(ball, mechanism.vector(ball, frame.origin, points))
    return frame.dist(at, mechanism.law(ball, calibration, frame.origin, points).sample(DRAWS, rng=seed))


@pytest.mark.parametrize(("name", "ball", "n"), FORECAST, ids=str)
def test_forecasts_hold_for_the_worst_data(name, ball, n):
    mechanism = get(name)
    calibration = mechanism.calibrate(ball, n, PureDP(1.0) if mechanism.noise == "laplace" else GDP(0.5))
    forecast = mechanism.forecast(ball, n, calibration)
    assert forecast.exact == ball.space.is_flat
    one_point = np.broadcast_to(opposite_ends(Ball(ball.space, ball.space.origin, ball.radius))[0], ring(ball).shape)
    for records in (ring(ball), one_point):
        errors = errors_of(mechanism, ball, calibration, ball.to_frame(records))
        assert holds(forecast, errors)
        assert errors.mean() <= forecast.mean + 6 * errors.std() / math.sqrt(DRAWS)
        assert (errors**2).mean() <= forecast.second_moment + 6 * (errors**2).std() / math.sqrt(DRAWS)


def of_a_point(radius, space):
    """The forecast for averages as long, or as far from a tie, as one point's image."""
    narrow = space.embedding(1e-9)
    return CellForecast(radius, narrow.shares, narrow.error, narrow.farthest)


@pytest.mark.parametrize("ball", [Ball(Sphere(2), Sphere(2).origin, 0.75), Ball(Sphere(6), Sphere(6).origin, 0.7)])
def test_the_worst_data_of_a_cap_attain_the_forecast(ball):
    """Within 3 %; and a forecast for a mean vector of length 1, which the ring does not have, is found out."""
    mechanism = get("extrinsic-mean-gaussian")
    calibration = mechanism.calibrate(ball, 60, GDP(0.5))
    errors = errors_of(mechanism, ball, calibration, ball.to_frame(ring(ball)))
    forecast = mechanism.forecast(ball, 60, calibration)
    spread = 6 * errors.std() / math.sqrt(DRAWS)
    assert abs(errors.mean() - forecast.mean) <= 0.03 * forecast.mean + spread
    flat = Euclidean(ball.space.dim + 1)
    law = RiemannianGaussian(flat, flat.origin, calibration.scale)
    assert not holds(of_a_point(law.radius, ball.space), errors)


def test_a_wrong_gap_and_a_wrong_length_are_found_out():
    ball = Ball(KendallShapes(3), KendallShapes(3).origin, 0.38)
    mechanism = get("extrinsic-mean-gaussian")
    calibration = mechanism.calibrate(ball, 60, GDP(0.5))
    errors = errors_of(mechanism, ball, calibration, ball.to_frame(ring(ball)))
    law = RiemannianGaussian(Euclidean(3), np.zeros(3), calibration.scale)
    assert holds(mechanism.forecast(ball, 60, calibration), errors)
    assert not holds(of_a_point(law.radius, ball.space), errors)
    ball = Ball(Sphere(2), Sphere(2).origin, 0.5)
    mechanism = get("tangent-mean-gaussian")
    calibration = mechanism.calibrate(ball, 60, GDP(0.5))
    errors = errors_of(mechanism, ball, calibration, ball.to_frame(np.broadcast_to(ball.center, (60, 3))))
    short = RiemannianGaussian(Euclidean(2), np.zeros(2), 0.9 * calibration.scale)
    assert not holds(carried_over(ball, short.radius), errors)


@pytest.mark.parametrize("ball", [Ball.whole(Sphere(2)), Ball.whole(CURVED), Ball.whole(KendallShapes(4))], ids=repr)
def test_without_a_ball_nothing_is_promised(ball):
    """Data without any direction of their own: the answer is a random point, and the forecast says so."""
    space = ball.space
    X = np.concatenate([np.eye(space.dim + 1), -np.eye(space.dim + 1)]) * float(np.abs(space.origin[0]))
    if isinstance(space, KendallShapes):
        X = space.random_point(50, rng=0)
    mechanism, calibration, forecast = choose("auto", ball, len(X), GDP(0.5), "extrinsic")
    assert mechanism.name == "extrinsic-mean-gaussian"
    errors = errors_of(mechanism, ball, calibration, ball.to_frame(X))
    assert holds(forecast, errors)
    assert forecast.mean >= space.injectivity_radius / 2
    plan = plan_mean(100, ball, GDP(0.5), estimand="extrinsic")
    assert plan.best.mechanism == "extrinsic-mean-gaussian"
    assert "Without a ball no error can be promised" in plan.verdict
    assert "needs a ball" in plan_mean(100, ball, GDP(0.5)).verdict


# -------------------------------------------------------------------- which mean


def test_auto_looks_at_the_mean_that_was_asked_for():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.6)
    for privacy in (PureDP(1.0), GDP(0.5), ApproxDP(0.5, 1e-6)):
        assert choose("auto", ball, 200, privacy)[0].estimand == "frechet"
        for estimand in ("frechet", "tangent", "extrinsic"):
            mechanism, calibration, _ = choose("auto", ball, 200, privacy, estimand)
            assert mechanism.estimand == estimand
            if estimand != "frechet" and privacy != ApproxDP(0.5, 1e-6):  # where one or the other may be the better
                assert mechanism.noise == ("laplace" if privacy == PureDP(1.0) else "gaussian")
            assert plan_mean(200, ball, privacy, estimand=estimand).best.mechanism == mechanism.name
            assert calibration.mechanism == mechanism.name
    assert choose("tangent-mean-laplace", ball, 200, PureDP(1.0))[0].estimand == "tangent"
    assert all(m.estimand == "frechet" for m in candidates())
    assert {m.name for e in dpm.mechanisms.ESTIMANDS for m in candidates(e, everything=True)} == set(MECHANISMS.names())


def test_a_mechanism_of_another_mean_is_refused():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.6)
    with pytest.raises(InvalidArgumentError, match=r'"riemannian-laplace" is for estimand="frechet", got estimand="ta'):
        choose("riemannian-laplace", ball, 200, PureDP(1.0), "tangent")
    with pytest.raises(InvalidArgumentError, match=r"one of frechet, tangent, extrinsic.*got 'median'"):
        choose("auto", ball, 200, PureDP(1.0), "median")
    with pytest.raises(PromiseError, match=r"no pure promise\. These can: tangent-mean-laplace\."):
        choose("tangent-mean-gaussian", ball, 200, PureDP(1.0))
    with pytest.raises(InvalidArgumentError, match="extrinsic means are of embedded spaces"):
        choose("auto", Ball(SPD(2), np.eye(2), 1.0), 200, PureDP(1.0), "extrinsic")


# -------------------------------------------------------------------- how far from the Fréchet mean


def clusters(ball, rng):
    """30 records in two or three clusters, most of them on the edge: data whose means are far apart."""
    space, k = ball.space, int(rng.integers(2, 4))
    c = rng.standard_normal((k, space.dim))
    if rng.random() < 0.5:
        c[:, 2:] = 0
    length = ball.radius * (1 - 1e-9) * np.where(rng.random(k) < 0.7, 1, rng.random(k))
    c *= (length / np.linalg.norm(c, axis=1))[:, None]
    return space.exp_coords(ball.center, c[rng.choice(k, 30, p=rng.dirichlet(np.full(k, 0.7)))])


def largest_gaps(ball, runs=150):
    """The largest distance of both means from the Fréchet mean, as shares of their bounds (0 on other spaces)."""
    rng, space = np.random.default_rng(4), ball.space
    tangent, extrinsic = get("tangent-mean-gaussian"), get("extrinsic-mean-gaussian")
    worst = [0.0, 0.0]
    for _ in range(runs):
        records = clusters(ball, rng)
        points, mean = UnitPoints.of(ball.to_frame(records), ball), frechet.mean(records, ball).in_frame
        away = float(space.dist(space.origin, mean))
        gap = float(space.dist(mean, tangent.place(ball, tangent.vector(ball, mean, points))))
        # The solver's own tolerance, where the centre is the mean and nothing is left of the bound.
        worst[0] = max(worst[0], (gap - 1e-8) / max(frechet.tangent_gap(ball, away), 1e-12))
        if isinstance(space, (Sphere, KendallShapes)):
            gap = float(space.dist(mean, extrinsic.place(ball, extrinsic.vector(ball, mean, points))))
            worst[1] = max(worst[1], (gap - 1e-8) / frechet.extrinsic_gap(ball))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ball", "attained"),
    [
        (Ball(Sphere(2), Sphere(2).origin, 0.3), (0.7, 0.3)),
        (Ball(Sphere(2), Sphere(2).origin, 0.75), (0.7, 0.25)),
        (Ball(CURVED, CURVED.origin, 0.37), (0.7, 0.25)),
        (Ball(KendallShapes(3), KendallShapes(3).origin, 0.35), (0.7, 0.25)),
        (Ball(KendallShapes(8), KendallShapes(8).origin, 0.35), (0.2, 0.2)),
        (Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.5), (0.4, 0.0)),
        (Ball(SPD(2, metric="riemann"), np.eye(2), 1.5), (0.2, 0.0)),
    ],
    ids=str,
)
def test_other_means_are_as_near_as_the_bound_says(ball, attained):
    """And the search comes near enough to refute a fifth of any of these bounds."""
    for found, least in zip(largest_gaps(ball), attained, strict=True):
        assert least <= found <= 1


def test_on_flat_spaces_the_tangent_mean_is_the_frechet_mean():
    for ball in (TANGENT[0], TANGENT[1], TANGENT[6]):
        assert frechet.tangent_gap(ball) == 0.0
        records = in_ball(ball, 30, np.random.default_rng(0))
        mechanism = get("tangent-mean-gaussian")
        found = mechanism.place(
            ball, mechanism.vector(ball, ball.frame.origin, UnitPoints.of(ball.to_frame(records), ball))
        )
        assert ball.frame.dist(found, frechet.mean(records, ball).in_frame) < 1e-8


def test_gaps_refuse_what_they_cannot_bound():
    with pytest.raises(InvalidArgumentError, match="a space with extrinsic means"):
        frechet.extrinsic_gap(Ball(SPD(2), np.eye(2), 1.0))
    with pytest.raises(InvalidArgumentError, match="away must be a distance of at least 0, got -1"):
        frechet.tangent_gap(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), away=-1)
    with pytest.raises(InvalidArgumentError, match="needs a ball"):
        frechet.tangent_gap(Ball.whole(Sphere(2)))


# -------------------------------------------------------------------- the whole space


@pytest.mark.parametrize("space", [Sphere(1), Sphere(2), CURVED, KendallShapes(4)], ids=repr)
def test_the_whole_space_clips_nothing(space):
    ball = Ball.whole(space, source="no knowledge")
    X = space.random_point(100, rng=0)
    far = space.exp_coords(space.origin, np.eye(space.dim)[:1] * space.injectivity_radius)
    X = np.concatenate([X, far, space.project(-far)])
    assert ball.is_whole
    assert ball.contains(X).all()
    assert (ball.clip(X) == X).all()
    assert (ball.pull_in(X) == X).all()
    assert space.dist(ball.from_frame(ball.to_frame(X)), X).max() < 1e-7
    assert ball.in_frame.is_whole
    assert ball_from_dict(json.loads(json.dumps(ball_to_dict(ball)))) == ball
    assert Ball(space, X[0], space.injectivity_radius).is_whole
    assert not Ball(space, X[0], 0.3).is_whole
    assert repr(ball) == f"Ball({space!r}, the whole space, source='no knowledge')"


@pytest.mark.parametrize("space", [Euclidean(2), Hyperbolic(2), SPD(2), "sphere"], ids=repr)
def test_spaces_without_end_are_refused(space):
    with pytest.raises(InvalidArgumentError, match="space must be of finite size"):
        Ball.whole(space)


X = Sphere(2).random_point(300, rng=0)
EACH = {"units": EACH_RECORD}
REFUSED = {
    "mean": lambda ball, **more: dpm.private_mean(X, ball, GDP(1.0), **EACH, **more),
    "mean by name": lambda ball, **more: dpm.private_mean(
        X, ball, GDP(1.0), mechanism="tangent-mean-gaussian", **EACH, **more
    ),
    "people": lambda ball, **more: dpm.private_mean(
        X, ball, GDP(1.0), mechanism="extrinsic-mean-gaussian", units=np.arange(300) // 2, **more
    ),
    "refined mean": lambda ball, **more: dpm.private_mean(X, ball, GDP(1.0), refine=True, **EACH, **more),
    "means": lambda ball, **more: dpm.private_class_means(
        X, [0, 1] * 150, ball, GDP(1.0), classes=[0, 1], **EACH, **more
    ),
    "ball": lambda ball, **more: dpm.private_ball(X, ball, GDP(1.0), **EACH, **more),
    "variance": lambda ball, **more: dpm.private_variance(X, ball, GDP(1.0), **EACH, **more),
    "variance about a point": lambda ball, **more: dpm.private_variance(
        X, ball, GDP(1.0), about=[1.0, 0.0, 0.0], **EACH, **more
    ),
    "interval": lambda ball, **more: dpm.private_variance_interval(X, ball, GDP(1.0), **EACH, **more),
    "region": lambda ball, **more: dpm.private_region(X, ball, GDP(1.0), **EACH, **more),
    "test": lambda ball, **more: dpm.private_two_sample_test(X, X, ball, GDP(1.0), **EACH, **more),
}


@pytest.mark.parametrize("what", REFUSED)
def test_everything_else_refuses_the_whole_space_before_it_spends(what):
    budget = Budget(GDP(2.0))
    with pytest.raises(InvalidArgumentError, match="needs a ball"):
        REFUSED[what](Ball.whole(Sphere(2)), budget=budget)
    assert budget.spent is None


@pytest.mark.parametrize(
    "function",
    [
        sensitivity.of_mean,
        sensitivity.of_gradient,
        sensitivity.of_tangent_mean,
        sensitivity.of_variance,
        sensitivity.of_fourth_moment,
        sensitivity.of_second_moment,
        sensitivity.of_hessian,
    ],
)
def test_every_other_sensitivity_refuses_the_whole_space(function):
    with pytest.raises(InvalidArgumentError, match="needs a ball"):
        function(Ball.whole(Sphere(2)), 10)


def test_a_direction_without_a_ball():
    """2,000 directions about an unknown axis: noise of length about 0.002, and the mean direction is found."""
    space = Sphere(2)
    axis = np.array([-0.6, 0.0, 0.8])
    records = space.project(axis + 0.3 * np.random.default_rng(0).standard_normal((2000, 3)))
    release = dpm.private_mean(records, Ball.whole(space), GDP(0.5), mechanism="extrinsic-mean-gaussian", rng=1, **EACH)
    usual = space.extrinsic_mean(records, np.full(2000, 1 / 2000))
    assert space.dist(release.value, usual) < 0.01
    assert release.scale == pytest.approx(2 / 2000 / 0.5)


def test_a_release_is_compared_with_the_mean_that_it_hid():
    """`noise` is about its own mean: 0 where there is next to no noise, with and without a ball."""
    space = dpm.Sphere(2)
    ball = dpm.Ball(space, space.origin, 0.7)
    X = space.exp_coords(space.origin, 0.3 * np.random.default_rng(0).standard_normal((50, 2)) + [0.2, 0.1])
    for where, estimand in ((ball, "tangent"), (ball, "extrinsic"), (dpm.Ball.whole(space), "extrinsic")):
        release = dpm.private_mean(X, where, dpm.GDP(1e9), units=dpm.EACH_RECORD, estimand=estimand)
        found = dpm.compare(release, X, units=dpm.EACH_RECORD, public=True)
        assert found.noise < 1e-7
        assert found.clipped == (0.0 if where.is_whole else 1 - ball.contains(X).mean())
        # The difference of the two kinds of mean is there, and not in the noise.
        assert where.is_whole or found.clipping > 1e-4
    frechet_mean = dpm.private_mean(X, ball, dpm.GDP(1e9), units=dpm.EACH_RECORD)
    assert dpm.compare(frechet_mean, X, units=dpm.EACH_RECORD, public=True).noise < 1e-7


def test_estimators_refuse_other_means():
    from dpmanifold.estimators import PrivateFrechetMean

    space = dpm.Sphere(2)
    ball = dpm.Ball(space, space.origin, 0.7)
    model = PrivateFrechetMean(
        ball, dpm.GDP(1.0), mechanism="tangent-mean-gaussian", units=dpm.EACH_RECORD, budget=dpm.Budget(dpm.GDP(2.0))
    )
    with pytest.raises(dpm.InvalidArgumentError, match="not the Fréchet mean"):
        model.fit(np.repeat(space.origin[None], 20, axis=0))
    assert model.budget.spent is None
