import numpy as np
import pytest

from dpmanifold import (
    SPD,
    Ball,
    ConvergenceError,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    InvalidDataError,
    KendallShapes,
    Sphere,
    frechet,
    linalg,
)
from dpmanifold.frechet.solver import _Gradient, fixed_steps
from dpmanifold.linalg.native import library, passes
from laws.data import hostile, in_ball

SPACES = [
    Euclidean(3), Sphere(1), Sphere(2), Sphere(10), Hyperbolic(2), Hyperbolic(5, curvature=-2.0), KendallShapes(3),
    KendallShapes(8), SPD(3), SPD(1, metric="riemann"), SPD(3, metric="riemann"), SPD(5, metric="riemann"),
]  # fmt: skip
CURVED = [space for space in SPACES if not space.is_flat]


def ball_of(space, share=0.98, large=2.0):
    center = space.random_point(rng=11)
    return Ball(space, center, min(large, share * space.radius_limit))


def gradient_norm(space, X, point):
    return np.linalg.norm(space.log_coords(point, X).mean(axis=0))


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_mean_has_no_gradient_left_and_minimises(space):
    ball = ball_of(space, 0.7)
    X = in_ball(ball, 400, np.random.default_rng(0))
    result = frechet.mean(X, ball)
    # The result is moved back from the solver's frame, which rounds once more.
    slack = result.tol + space.dist_error(ball.center, ball.radius) * 8 + 1e-13
    assert gradient_norm(space, X, result.value) <= slack
    assert ball.contains(result.value)
    around = space.exp_coords(result.value, 1e-3 * np.eye(space.dim))
    here = frechet.variance(X, ball, about=result.value)
    assert all(frechet.variance(X, ball, about=point) > here for point in around)
    assert np.isclose(here, frechet.variance(X, ball), rtol=1e-9)
    without = frechet.mean(X, space)
    assert space.dist(result.value, without.value) <= 1e-8


@pytest.mark.parametrize("space", CURVED, ids=repr)
@pytest.mark.parametrize("n", [2, 3, 50])
def test_hostile_data_meet_the_tolerance(space, n):
    for share in (0.98, 0.5):
        ball = ball_of(space, share, large=4.0)
        for name, X in hostile(ball, n).items():
            result = frechet.mean(X, ball)
            assert result.residual <= result.tol / 2, name
            assert ball.contains(result.value), name
            cap = frechet.safe_step_and_cap(ball, result.tol / 2)[1]
            assert result.iterations <= 40 + cap, name


@pytest.mark.parametrize("space", CURVED, ids=repr)
def test_safe_descent_alone_meets_the_tolerance_within_its_cap(space, monkeypatch):
    """The proven descent must not depend on the fast steps: take them away."""
    monkeypatch.setattr(frechet.solver, "_FAST_STEPS", 0)
    ball = ball_of(space, 0.98)
    for name, X in {**hostile(ball, 7), "spread": in_ball(ball, 60, np.random.default_rng(1))}.items():
        result = frechet.mean(X, ball)
        assert result.residual <= result.tol / 2, name
        assert result.iterations <= frechet.safe_step_and_cap(ball, result.tol / 2)[1], name


def test_condition_1e6_data_converge():
    rng = np.random.default_rng(0)
    space = SPD(9, metric="riemann")
    turn = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    factor = turn * np.logspace(0, 3.3, 9)
    X = factor @ space.exp_coords(np.eye(9), 0.3 * rng.standard_normal((500, 45))) @ factor.T
    X = (X + np.swapaxes(X, 1, 2)) / 2
    assert np.linalg.cond(X).min() > 1e6
    result = frechet.mean(X, space, tol=1e-10)
    assert result.residual <= 1e-10
    assert result.iterations <= 15
    # The same mean, computed where everything is well conditioned.
    inverse = np.linalg.inv(factor)
    well = frechet.mean(inverse @ X @ inverse.T, space, tol=1e-10)
    assert space.dist(factor @ well.value @ factor.T, result.value) < 1e-7


def test_equivariance_under_isometries():
    rng = np.random.default_rng(2)
    space = SPD(3, metric="riemann")
    X = space.exp_coords(np.eye(3), 0.5 * rng.standard_normal((100, 6)))
    a = rng.standard_normal((3, 3)) + 2 * np.eye(3)
    moved = frechet.mean(a @ X @ a.T, space).value
    assert space.dist(moved, a @ frechet.mean(X, space).value @ a.T) < 1e-9
    inverse = frechet.mean(np.linalg.inv(X), space).value
    assert space.dist(inverse, np.linalg.inv(frechet.mean(X, space).value)) < 1e-9


def test_closed_forms():
    X = SPD(2).random_point(30, rng=0)
    logs = np.stack([np.linalg.eigh(x)[1] @ np.diag(np.log(np.linalg.eigvalsh(x))) @ np.linalg.eigh(x)[1].T for x in X])
    value = frechet.mean(X, SPD(2)).value
    values, vectors = np.linalg.eigh(logs.mean(axis=0))
    np.testing.assert_allclose(value, vectors @ np.diag(np.exp(values)) @ vectors.T, rtol=1e-10)
    two = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(frechet.mean(two, Sphere(2)).value, np.array([1, 1, 0]) / np.sqrt(2), atol=1e-10)
    # Two matrices: the geometric mean.
    a, b = SPD(3).random_point(2, rng=1)
    root = np.linalg.cholesky(a)
    white = np.linalg.solve(root, np.linalg.solve(root, b).T)
    values, vectors = np.linalg.eigh((white + white.T) / 2)
    geometric = root @ (vectors * np.sqrt(values)) @ vectors.T @ root.T
    np.testing.assert_allclose(frechet.mean([a, b], SPD(3, metric="riemann")).value, geometric, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_weights_act_like_repetition(space):
    ball = ball_of(space, 0.6)
    X = in_ball(ball, 5, np.random.default_rng(4))
    counts = np.array([1, 4, 2, 1, 3])
    weighted = frechet.mean(X, ball, weights=counts).value
    repeated = frechet.mean(np.repeat(X, counts, axis=0), ball).value
    assert space.dist(weighted, repeated) < 1e-9
    assert np.isclose(
        frechet.variance(X, ball, weights=counts), frechet.variance(np.repeat(X, counts, axis=0), ball), rtol=1e-8
    )


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_units_count_once(space):
    ball = ball_of(space, 0.6)
    rng = np.random.default_rng(5)
    X = in_ball(ball, 60, rng)
    units = np.array([f"u{i % 7 if i < 40 else 3}" for i in range(60)])
    each = np.stack([frechet.mean(X[units == u], ball, tol=1e-9).value for u in np.unique(units)])
    means = frechet.unit_means(X, ball, units=units)
    assert means.shape == (7, *space.shape)
    assert space.dist(means, each).max() < 1e-8
    assert ball.contains(means).all()
    together = frechet.mean(X, ball, units=units).value
    assert space.dist(together, frechet.mean(each, ball, tol=1e-9).value) < 1e-8
    # Ignoring units gives another answer, so the test can tell.
    assert space.dist(together, frechet.mean(X, ball).value) > 1e-6


def test_records_outside_are_clipped_first():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.3)
    X = Sphere(2).random_point(50, rng=0)
    assert Sphere(2).dist(frechet.mean(X, ball).value, frechet.mean(ball.clip(X), ball).value) < 1e-12


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_single_record_is_its_own_mean(space):
    ball = ball_of(space, 0.6)
    X = in_ball(ball, 1, np.random.default_rng(6))
    assert space.dist(frechet.mean(X, ball).value, X[0]) < 1e-9
    assert frechet.variance(X, ball) < 1e-16


def test_blocks_do_not_change_the_answer(monkeypatch):
    ball = ball_of(SPD(3, metric="riemann"))
    X = in_ball(ball, 1000, np.random.default_rng(0))
    whole = frechet.mean(X, ball).value
    monkeypatch.setattr(frechet.solver, "_BLOCK", 7 * 8 * 9)
    assert ball.space.dist(frechet.mean(X, ball).value, whole) < 1e-12


def test_bad_input_is_refused():
    space = Sphere(2)
    ball = Ball(space, [1.0, 0.0, 0.0], 0.5)
    X = in_ball(ball, 4, np.random.default_rng(0))
    with pytest.raises(InvalidDataError, match="X is empty"):
        frechet.mean(np.zeros((0, 3)), ball)
    with pytest.raises(InvalidDataError, match="X must be a batch"):
        frechet.mean(X[0], ball)
    with pytest.raises(InvalidDataError, match="index 2"):
        frechet.mean(np.vstack([X[:2], 2 * X[2:]]), ball)
    with pytest.raises(InvalidArgumentError, match="where must be"):
        frechet.mean(X, "sphere")
    with pytest.raises(InvalidArgumentError, match="weights must have shape"):
        frechet.mean(X, ball, weights=[1.0])
    with pytest.raises(InvalidArgumentError, match="weights must be finite"):
        frechet.mean(X, ball, weights=[1.0, -1.0, 1.0, 1.0])
    with pytest.raises(InvalidArgumentError, match="weights must be numbers"):
        frechet.mean(X, ball, weights=["a"] * 4)
    with pytest.raises(InvalidArgumentError, match="units must have shape"):
        frechet.mean(X, ball, units=[1, 2])
    for units in ([1.0, np.nan, 2.0, 3.0], ["a", None, "b", "c"]):
        with pytest.raises(InvalidArgumentError, match="units has a missing id at index 1"):
            frechet.mean(X, ball, units=units)
    with pytest.raises(InvalidArgumentError, match="one kind"):
        frechet.mean(X, ball, units=np.array([1, "a", 2, 3], dtype=object))
    with pytest.raises(InvalidDataError, match="masked array"):
        frechet.mean(np.ma.masked_array(X, mask=False), ball)
    with pytest.raises(InvalidArgumentError, match=r"where must be.*ndarray of shape \(4, 3\)"):
        frechet.mean(ball, X)
    with pytest.raises(InvalidArgumentError, match="weights must leave every unit"):
        frechet.mean(X, ball, units=[0, 0, 1, 1], weights=[1, 1, 0, 0])
    with pytest.raises(InvalidArgumentError, match="tol must be"):
        frechet.mean(X, ball, tol=-1.0)
    with pytest.raises(InvalidArgumentError, match="rounding hides"):
        frechet.mean(X, ball, tol=1e-16)
    with pytest.raises(InvalidArgumentError, match="max_iter"):
        frechet.mean(X, ball, max_iter=0)


def test_a_ball_too_large_for_a_guarantee_is_refused():
    ball = Ball(SPD(9, metric="riemann"), np.eye(9), 12.0)
    with pytest.raises(InvalidArgumentError, match=r'too large for a mean with a guarantee.*metric="logeuclid"'):
        frechet.mean(ball.space.random_point(5, rng=0), ball)
    assert frechet.mean(SPD(9).random_point(5, rng=0), Ball(SPD(9), np.eye(9), 41.0)).residual == 0


def test_without_a_ball_failure_is_an_error_not_a_poor_answer():
    X = Hyperbolic(2).exp_coords(Hyperbolic(2).origin, [[8.0, 0.0], [0.0, 8.0], [-8.0, 1.0]])
    with pytest.raises(ConvergenceError, match="did not reach tol = 1e-10 within max_iter = 2 steps"):
        frechet.mean(X, Hyperbolic(2), max_iter=2)
    with pytest.raises(ConvergenceError, match="Ball"):
        frechet.mean(in_ball(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 50, np.random.default_rng(0)), Sphere(2), tol=1e-40)


@pytest.mark.slow
@pytest.mark.parametrize(
    "space",
    [Euclidean(10), Sphere(2), Sphere(10), Hyperbolic(5), KendallShapes(8), SPD(9), SPD(9, metric="riemann")],
    ids=repr,
)
def test_a_hundred_thousand_records_need_at_most_fifteen_iterations(space):
    ball = ball_of(space, 0.9, large=1.0)
    X = in_ball(ball, 100_000, np.random.default_rng(0))
    result = frechet.mean(X, ball, tol=1e-10)
    print(f"{space!r}: {result.iterations} iterations, residual {result.residual:.1e}")
    assert result.residual <= 1e-10
    assert result.iterations <= 15


@pytest.mark.parametrize(
    "space", [SPD(3, metric="riemann"), SPD(9, metric="riemann"), Hyperbolic(3), Euclidean(2)], ids=repr
)
def test_the_first_step_of_many_points_follows_their_spread(space):
    """Where points are far apart a step of 1 overshoots: the one that is tried out leaves far less of the gradient.

    Which points are tried hangs on their last bits, and so on the kernels in use: usual is what several samples show.
    """
    weights = np.full(4000, 1 / 4000)

    def first_step(points):
        return _Gradient(space, None, points, None, None, 1, None).first_step()

    shares = []
    for seed in range(7):
        points = space.random_point(4000, rng=seed)
        points = space.to_origin(space.extrinsic_mean(points, weights), points)
        if space.is_flat:
            assert first_step(points) == pytest.approx(1.0)
            continue
        before = space.weighted_log(space.origin, points, weights)[0]

        def left(step, points=points, before=before):
            new = space.exp_coords(space.origin, step * before)
            return np.linalg.norm(space.weighted_log(new, points, weights)[0])

        shares.append(left(first_step(points)) / left(1.0))
        assert first_step(points[:100]) == 1.0
        assert first_step(points[::-1]) == first_step(points)
    assert space.is_flat or (np.median(shares) < 0.3 and max(shares) < 1)


@pytest.mark.parametrize("space", [SPD(3, metric="riemann"), Sphere(2)], ids=repr)
def test_a_unit_average_does_not_depend_on_other_units(monkeypatch, space):
    """Not even by rounding, and not even on how many records they have, which moves the edges of blocks."""
    monkeypatch.setattr("dpmanifold.frechet.solver._BLOCK", 8 * 9 * 50)
    monkeypatch.setattr("dpmanifold.frechet.points_per_unit._GATHERED", 9 * 50)
    ball = Ball(space, space.origin, 0.5)
    rng = np.random.default_rng(0)
    X = in_ball(ball, 600, rng)
    units = rng.integers(0, 40, 600)
    both = frechet.unit_points(X, ball, units=units)
    for extra in (1, 7, 200):
        more = frechet.unit_points(
            np.concatenate([in_ball(ball, extra, rng), X]), ball, units=np.concatenate([np.full(extra, -1), units])
        )
        np.testing.assert_array_equal(more.array()[1:], both.array())


DIFFERENT = [
    Sphere(2), Sphere(10), Hyperbolic(3), KendallShapes(5), SPD(2, metric="riemann"), SPD(3, metric="riemann"),
    SPD(5, metric="riemann"), SPD(3), Euclidean(4),
]  # fmt: skip


@pytest.mark.parametrize("space", DIFFERENT, ids=repr)
def test_the_order_of_records_does_not_show(space):
    """Bit for bit: with a ball and without, with weights, with units whose rows come in any order."""
    ball = ball_of(space, 0.8, large=1.0)
    rng = np.random.default_rng(0)
    X, weights = in_ball(ball, 1500, rng), rng.random(1500)
    units = rng.integers(0, 30, 1500)
    order = rng.permutation(1500)

    def bits(rows):
        results = (
            frechet.mean(X[rows], ball).in_frame,
            frechet.mean(X[rows], ball, weights=weights[rows]).in_frame,
            frechet.mean(X[rows], ball, units=units[rows]).in_frame,
            frechet.unit_points(X[rows], ball, units=units[rows]).array(),
        )
        return [result.tobytes() for result in results]

    assert bits(order) == bits(np.arange(1500))


@pytest.mark.parametrize("space", DIFFERENT, ids=repr)
def test_instruction_sets_agree_within_the_tolerance(space):
    """Every level's mean has a gradient of at most tol: two of them are as far apart as two such points may be."""
    ball = ball_of(space, 0.8, large=1.0)
    X = in_ball(ball, 1500, np.random.default_rng(0))
    found = []
    for level in linalg.backends():
        with linalg.backend(level):
            found.append(frechet.mean(X, ball))
    low, _ = space.hessian_bounds(2 * ball.effective_radius)
    for result in found[1:]:
        away = float(ball.frame.dist(found[0].in_frame, result.in_frame))
        # Twice the distance of such a point from the mean, and twice the rounding of the records' own maps.
        maps = ball.space.dist_error(ball.center, ball.radius) + ball.frame.dist_error(ball.frame.origin, ball.radius)
        assert away <= 2 * (result.tol / low + maps)


@pytest.mark.skipif(not linalg.available(), reason="the compiled kernels are not installed")
@pytest.mark.parametrize("space", DIFFERENT, ids=repr)
def test_threads_and_blocks_do_not_show(space, monkeypatch):
    ball = ball_of(space, 0.8, large=1.0)
    rng = np.random.default_rng(0)
    X, units = in_ball(ball, 1500, rng), rng.integers(0, 30, 1500)
    handle, _ = library.current()
    before = handle.dpm_get_num_threads()

    def bits():
        both = frechet.mean(X, ball).in_frame, frechet.unit_points(X, ball, units=units).array()
        return [result.tobytes() for result in both]

    expected = bits()
    monkeypatch.setattr(passes, "_WORTH_A_THREAD", 1.0)
    try:
        for threads, block in ((1, 64), (2, 300), (2, 4096), (3, 50_000), (2, 4_194_304)):
            handle.dpm_set_num_threads(threads)
            monkeypatch.setattr("dpmanifold.manifolds.throughput._PASS_BLOCK", block)
            monkeypatch.setattr("dpmanifold.frechet.solver._BLOCK", 8 * block)
            assert bits() == expected
    finally:
        handle.dpm_set_num_threads(before)


@pytest.mark.parametrize("space", [Sphere(2), Hyperbolic(3), SPD(3, metric="riemann"), KendallShapes(5)], ids=repr)
def test_the_number_of_gradients_is_public_on_ordinary_data(space, monkeypatch):
    """Records that fill the ball, narrow ones, two clusters, one far from all others: the same number of gradients."""
    ball = ball_of(space, 0.8, large=1.0)
    taken = []
    ask = _Gradient.__call__

    def counted(self, x, active=None):
        if self._summands.n == 200:
            taken.append(1)
        return ask(self, x, active)

    monkeypatch.setattr(_Gradient, "__call__", counted)
    rng = np.random.default_rng(1)
    c = rng.standard_normal((200, space.dim))
    c *= ball.radius * (rng.random(200) ** (1 / space.dim) / np.linalg.norm(c, axis=1))[:, None]
    ends = np.zeros((200, space.dim))
    ends[:100, 0], ends[100:, -1] = 0.99 * ball.radius, -0.99 * ball.radius
    alone = 0.01 * c
    alone[0, 0] = 0.99 * ball.radius
    numbers = set()
    for coordinates in (c, 0.1 * c, ends + 0.01 * c, alone):
        X = space.exp_coords(ball.center, coordinates)
        taken.clear()
        result = frechet.mean(X, ball)
        numbers.add(len(taken))
        assert result.residual <= result.tol / 2
    assert numbers == {fixed_steps(ball, 200, result.tol) + 1}
