"""Means whose noise is shaped like the data: promise, law, what is stated, what is refused (theory: shaped noise)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmanifold as dpm
from dpmanifold.features import Shape, checked_shape
from dpmanifold.mechanisms.error_forecasts import ShapedLength
from dpmanifold.stats import shaped as room
from dpmanifold.stats.draws import Hidden
from dpmanifold.stats.program import exhausted
from dpmanifold.stats.search import RadiusSearch
from dpmanifold.stats.shaped import SHAPED
from dpmanifold.stats.shaping import white_ball
from laws import replay

D = 4
BALL = dpm.Ball(dpm.Euclidean(D), np.ones(D), 10.0)
COVARIANCE = np.diag([4.0, 0.25, 0.01, 0.01])
RNG = np.random.default_rng(0)
X = BALL.center + 0.3 + RNG.standard_normal((300, D)) * np.sqrt(np.diag(COVARIANCE))
PUBLIC = X[:50] + 0.01  # other people
PROMISE = dpm.GDP(1.0)
ONE = {"units": dpm.EACH_RECORD, "confirm": True}


def shaped(records, privacy=PROMISE, noise_shape=COVARIANCE, ball=BALL, **more):
    return dpm.private_mean(records, ball, privacy, noise_shape=noise_shape, **{**ONE, **more})


# -------------------------------------------------------------------- the norm


def test_isotropic_noise_in_the_norm_has_the_square_root_of_the_shape():
    turn = np.linalg.qr(RNG.standard_normal((D, D)))[0]
    matrix = turn @ COVARIANCE @ turn.T
    shape = Shape.public(matrix, mixed=0.0)
    squared = shape.inverse @ shape.inverse.T
    assert np.allclose(squared @ squared / 0.1**-2, matrix, rtol=1e-9, atol=1e-12)
    assert np.allclose(shape.root @ shape.inverse, np.eye(D), rtol=0, atol=1e-12)
    assert np.linalg.norm(shape.root, 2) == pytest.approx(1.0, abs=1e-12)
    assert shape.gain == pytest.approx(np.sqrt(np.diag(COVARIANCE)).sum() / np.sqrt(D * COVARIANCE.trace()), rel=1e-9)


def test_no_choice_of_the_exponent_is_better_on_data_of_the_shape():
    """The quarter root is the best power: noise times length is least, by the inequality of Cauchy and Schwarz."""
    values = np.diag(COVARIANCE)
    cost = [np.sqrt((values ** (1 - 2 * p)).sum() * (values ** (2 * p)).sum()) for p in np.linspace(0, 0.5, 51)]
    assert np.argmin(cost) == 25


def alone_as_among_others(mapped):
    """Return whether rows come out the same, bit for bit, alone and among others."""
    block = np.random.default_rng(7).standard_normal((257, 45))
    together = mapped(block)
    return all(np.array_equal(together[i : i + k], mapped(block[i : i + k])) for i in (0, 5) for k in (1, 2, 7, 64))


def test_each_record_is_mapped_by_itself_bit_for_bit():
    matrix = np.diag(np.geomspace(1e-3, 1.0, 45)) + 0.01
    ball = dpm.Ball(dpm.Euclidean(45), np.zeros(45), 6.0)
    shape = Shape.public(matrix)
    assert alone_as_among_others(shape.whitening(ball, ball))
    # A product of matrices rounds by the length of the batch: what the library must not do.
    assert not alone_as_among_others(lambda block: block @ shape.root.T)


def test_what_joint_moments_show_above_their_noise():
    d, noise = 20, 0.02
    rng = np.random.default_rng(1)
    true = np.diag([3.0, 1.0, *[0.02] * (d - 2)])
    error = np.triu(rng.standard_normal((d, d)), 1)
    moment = true + noise * (np.diag(rng.standard_normal(d)) + (error + error.T) / np.sqrt(2))
    shape = Shape.learned(np.zeros(d), moment, 0.001, noise)
    assert shape.known == 2
    assert np.allclose(shape.values[:2], [3.0, 1.0], rtol=0.05)
    assert np.allclose(np.abs(np.diag(shape.vectors)[:2]), 1.0, atol=0.05)
    nothing = Shape.learned(np.zeros(d), moment, 0.1, 10.0)
    assert nothing.known == 0
    assert nothing.growth == pytest.approx(1.0)


def test_few_public_records_are_believed_less():
    """The matrix of few records says that nobody varies where they do not; mixed, it is nearer to the truth."""
    rng = np.random.default_rng(0)
    ball = dpm.Ball(dpm.Euclidean(30), np.zeros(30), 50.0)
    truth = np.diag(np.geomspace(4.0, 0.1, 30))
    for n, closer in ((2, 0.7), (20, 0.8), (20_000, 1.01)):
        records = rng.standard_normal((n, 30)) * np.sqrt(np.diag(truth))
        made, raw = checked_shape(records, ball), records.T @ records / n
        assert made.trace() == pytest.approx(raw.trace())
        assert np.linalg.norm(made - truth) <= closer * np.linalg.norm(raw - truth)


def test_public_records_come_in_every_form_that_a_mean_takes():
    rng = np.random.default_rng(0)
    landmarks = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1.5]]) + 0.02 * rng.standard_normal((30, 4, 2))
    kendall = dpm.Ball.from_public(dpm.KendallShapes(4), landmarks)
    shapes = kendall.space.project(landmarks @ [1, 1j] - (landmarks @ [1, 1j]).mean(axis=1)[:, None])
    assert np.allclose(checked_shape(landmarks, kendall), checked_shape(shapes, kendall))
    pair = dpm.Product([dpm.Euclidean(2), dpm.SPD(2)])
    parts = rng.standard_normal((30, 2)), dpm.SPD(2).random_point(30, rng=0)
    ball = dpm.Ball.from_public(pair, parts)
    assert checked_shape(parts, ball).shape == (5, 5)


# -------------------------------------------------------------------- the promise


def pairs():
    """Yield neighbours that differ where it tells most: across the norm's ellipsoid, and in and out of the radius."""
    for axis in range(D):
        step = np.zeros(D)
        step[axis] = 100.0
        for other in (-step, 0 * step):
            first, second = X.copy(), X.copy()
            first[0], second[0] = BALL.center + step, BALL.center + other
            yield first, second


@pytest.mark.parametrize("shape", [COVARIANCE, "private"], ids=["public", "private"])
def test_no_pair_of_neighbours_is_told_apart_by_more_than_the_promise(shape, monkeypatch):
    told = []
    for seed, (first, second) in enumerate(pairs()):
        call = lambda records: shaped(records, noise_shape=shape, arithmetic="exact", rng=seed)  # noqa: B023, E731
        told.append(replay.mu_of(replay.told(call, first, second, monkeypatch)))
    assert max(told) <= 1.0
    # Opposite ends in the norm use up the mean's share, all but the search: nothing is wasted.
    assert max(told) > 0.8


def test_a_pure_promise_is_kept_with_a_public_shape(monkeypatch):
    some = np.concatenate([X] * 6)
    privacy = dpm.PureDP(1.0)
    assert shaped(some, privacy, rng=0).statistic == "shaped mean"
    for seed, (first, second) in enumerate(pairs()):
        first, second = (np.concatenate([one] + [X] * 5) for one in (first, second))
        call = lambda records: shaped(records, privacy, arithmetic="exact", rng=seed)  # noqa: B023, E731
        assert replay.epsilon_of(replay.told(call, first, second, monkeypatch)) <= 1.0


def test_the_attack_finds_vectors_that_are_not_cut_in_the_norm(monkeypatch):
    """Without the cut to the radius that was found, one record moves the average by as much as the ball allows."""
    right = room._mapped
    monkeypatch.setattr(
        room, "_mapped", lambda points, ball, shape, _: right(points, ball, shape, white_ball(ball, shape))
    )
    first, second = next(pairs())
    call = lambda records: shaped(records, arithmetic="exact", rng=0)  # noqa: E731
    assert replay.mu_of(replay.told(call, first, second, monkeypatch)) > 1.5


@pytest.mark.parametrize(
    "step",
    [
        "dpmanifold.frechet.UnitPoints.through",
        "dpmanifold.frechet.UnitPoints.within",
        "dpmanifold.frechet.UnitPoints.in_ball",
        "dpmanifold.frechet.UnitPoints.mean_of",
        "dpmanifold.features.Shape.learned",
        "dpmanifold.stats.shaped.carried_back",
    ],
)
def test_nothing_raises_behind_the_spend(step, monkeypatch):
    def fails(*_, **__):
        raise np.linalg.LinAlgError("something about a record")

    monkeypatch.setattr(step, fails)
    release = shaped(X, noise_shape="private", arithmetic="exact", rng=0)
    assert release.statistic == "shaped mean"
    assert np.isfinite(release.value).all()


# -------------------------------------------------------------------- what is stated


@pytest.mark.parametrize("shape", [COVARIANCE, "private", PUBLIC], ids=["public", "private", "records"])
@pytest.mark.parametrize("privacy", [dpm.GDP(1.0), dpm.ZCDP(0.5), dpm.ApproxDP(2.0, 1e-6)], ids=repr)
def test_a_release_verifies_and_comes_back_from_json(shape, privacy):
    release = shaped(X, privacy, shape)
    assert release.statistic == "shaped mean"
    assert release.arithmetic == "exact"
    assert release.estimand == "frechet"
    assert isinstance(release.request.options["noise_shape"], str) == isinstance(shape, str)
    found = dpm.verify(release)
    assert found.ok, found.wrong
    text = json.dumps(release.to_dict())
    again = dpm.Release.from_dict(json.loads(text))
    assert json.dumps(again.to_dict()) == text
    assert dpm.verify(again).ok
    assert "outside the radius that was found" in " ".join(repr(release).split())


@pytest.mark.parametrize("shape", [X, X[:50], X.copy()], ids=["itself", "a part", "a copy"])
def test_the_records_themselves_are_no_public_shape(shape):
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.errors.InvalidArgumentError, match="the records themselves"):
        shaped(X, noise_shape=shape, budget=budget)
    assert budget.spent is None


def test_a_shape_is_held_against_laplace_noise_too():
    """In few dimensions a mean without a shape has less noise under this promise than normal noise of the shape."""
    wide = 4 * COVARIANCE
    release = shaped(X, dpm.ApproxDP(8.0, 1e-6), wide)
    assert (release.statistic, release.mechanism) == ("mean", "riemannian-laplace")
    gaussian = shaped(X, dpm.ApproxDP(8.0, 1e-6), wide, mechanism="wrapped-gaussian")
    assert gaussian.statistic == "mean"


def asking(release, **options):
    """Return a release that says that something else was asked for."""
    request = release.request
    return replace(release, request=replace(request, options={**request.options, **options}))


def test_what_was_changed_is_found():
    release = shaped(X)
    step = release.steps[0]
    wrong = [
        asking(release, noise_shape=COVARIANCE * np.array([[1, 1, 1, 1.5]]).T),
        asking(release, noise_shape=None),
        asking(release, noise_shape="private"),
        replace(release, scale=release.scale / 2),
        replace(release, value=release.value + 0.1),
        replace(release, steps=(replace(step, details={**step.details, "coverage": 0.5}),)),
        replace(release, steps=(replace(step, value=replace(step.value, radius=step.value.radius / 2)),)),
        replace(release, steps=(replace(step, ball=replace(step.ball, radius=5.0)),)),
        replace(release, steps=()),
        asking(dpm.private_mean(X, BALL, dpm.GDP(1.0), **ONE), noise_shape=COVARIANCE),
    ]
    for one in wrong:
        assert not dpm.verify(one).ok


def test_the_noise_has_the_stated_covariance():
    """Draws about the same average; each coordinate's variance by chi-square, false alarms 1e-6 in all."""
    runs = 60
    draws = [shaped(np.ones((300, D)), dpm.GDP(1.0), project=False, rng=seed) for seed in range(runs)]
    scaled = np.array([(one.value - 1) / np.sqrt(np.diag(SHAPED.noise_covariance(one))) for one in draws])
    low, high = stats.chi2.ppf([1e-6 / D / 2, 1 - 1e-6 / D / 2], runs)
    found = (scaled**2).sum(axis=0)
    assert ((low < found) & (found < high)).all()
    round_noise = np.array([(one.value - 1) / (one.scale * 2.0) for one in draws])
    wrong = (round_noise**2).sum(axis=0)
    assert not ((low < wrong) & (wrong < high)).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [COVARIANCE, "private"], ids=["public", "private"])
def test_the_stated_error_is_not_exceeded_on_average(shape):
    errors, said, plain = [], [], []
    for seed in range(300):
        release = shaped(X, noise_shape=shape, rng=seed)
        errors.append(np.linalg.norm(release.value - X.mean(axis=0)))
        said.append(release.error())
        assert errors[-1] <= release.noise_quantile(1 - 1e-9) + release.clipping.bound
        other = dpm.private_mean(X, BALL, dpm.GDP(1.0), rng=seed, **ONE)
        plain.append(np.linalg.norm(other.value - X.mean(axis=0)))
    assert np.mean(errors) <= np.mean(said)
    assert np.mean(errors) <= 0.6 * np.mean(plain)


def test_data_that_fill_the_ball_get_round_noise():
    rng = np.random.default_rng(3)
    full = rng.standard_normal((2000, D))
    full = BALL.center + 9.9 * full / np.linalg.norm(full, axis=1)[:, None]
    release = shaped(full, noise_shape=np.diag([1.0, 1e-4, 1e-4, 1e-4]))
    assert release.scale == pytest.approx(2 * 10.0 / 2000 / np.sqrt(0.85), rel=1e-6)
    assert any("round" in note for note in release.notes())
    assert release.clipping is None
    assert dpm.verify(release).ok


# -------------------------------------------------------------------- other spaces, classes, plans


@pytest.mark.parametrize(
    "ball",
    [
        dpm.Ball(dpm.Sphere(3), [0.0, 0.0, 0.0, 1.0], 0.7),
        dpm.Ball(dpm.SPD(2, "riemann"), np.diag([2.0, 1.0]), 2.0),
        dpm.Ball(dpm.SPD(2), np.diag([2.0, 1.0]), 2.0),
    ],
    ids=lambda ball: repr(ball.space),
)
def test_tangent_means_may_be_shaped(ball):
    rng = np.random.default_rng(5)
    v = 0.1 + rng.standard_normal((400, 3)) * np.array([0.15, 0.03, 0.01])
    records = ball.space.exp_coords(ball.center, v)
    public = ball.space.exp_coords(ball.center, v[:40] + 0.001)
    for shape in (np.cov(v.T), public, "private"):
        release = shaped(records, noise_shape=shape, ball=ball, estimand="tangent", rng=1)
        assert release.statistic == "shaped mean"
        assert dpm.verify(release).ok
        # In coordinates at the centre it is near the average, with the shape in the right directions.
        off = np.abs(ball.space.log_coords(ball.center, release.value) - v.mean(axis=0))
        assert (off < [0.1, 0.05, 0.05]).all()
        assert release.noise_error() > 0


def test_means_by_class_may_be_shaped():
    labels = np.arange(300) % 2
    means = dpm.private_class_means(X, labels, BALL, dpm.GDP(1.0), classes=[0, 1], noise_shape=COVARIANCE, **ONE)
    for release in means.values():
        assert release.statistic == "shaped mean"
        assert dpm.verify(release).ok


def test_the_plan_says_when_a_shape_helps():
    plan = dpm.plan_mean(300, BALL, dpm.GDP(1.0), noise_shape=COVARIANCE)
    assert plan.shaped.skipped is None
    assert plan.shaped.error < 0.5 * plan.shaped.plain
    assert plan.shaped.plain == pytest.approx(plan.best.error, rel=0.1)
    assert 1.0 < plan.shaped.filled / plan.shaped.plain < 1.1
    assert "if the data have that shape" in repr(plan)
    few = dpm.plan_mean(10, BALL, dpm.GDP(1.0), noise_shape=COVARIANCE)
    assert "may be off by" in few.shaped.verdict
    many = dpm.plan_mean(10**7, BALL, dpm.GDP(1.0), noise_shape=COVARIANCE)
    assert "hardly anything" in many.shaped.verdict
    draws = dpm.plan(300, BALL, dpm.GDP(1.0), statistic="shaped mean", noise_shape="private").steps
    assert [step.statistic for step in draws] == ["radius", "joint moments", "radius", "shaped mean"]


def test_a_matrix_of_too_few_records_is_called_one():
    flat = np.diag([4.0, 0.25, 0.0, 0.0])
    assert "nobody varies in 2 directions" in dpm.plan_mean(300, BALL, dpm.GDP(1.0), noise_shape=flat).shaped.verdict
    assert any("nobody varies in 2 directions" in note for note in shaped(X, noise_shape=flat).notes())
    assert not any("nobody varies" in note for note in shaped(X).notes())


@pytest.mark.parametrize("privacy", [dpm.GDP(1.0), dpm.PureDP(2.0)], ids=repr)
def test_where_a_search_ends_is_foreseen(privacy):
    """2,000 searches by chi-square, false alarms 1e-6; other counts are rejected."""
    search = RadiusSearch(6, 20, 1.0, privacy, 0.9)
    counts = 20 * np.minimum(1.0, 2 * search.radii)
    bits = dpm.stats.draws.fresh_bits(0, BALL)
    found = [exhausted(search.find(Hidden(lambda: counts)), lambda draw: draw.draw(bits))[0] for _ in range(2000)]
    ended = np.bincount(found, minlength=len(counts))
    for held, right in ((counts, True), (counts - 2, False)):
        often = 2000 * search.chances(held) + 1e-3
        assert search.chances(held).sum() == pytest.approx(1.0)
        rare = often < 5
        pairs = [(ended[~rare], often[~rare]), (ended[rare].sum(keepdims=True), often[rare].sum(keepdims=True))]
        found = sum(float(((seen - want) ** 2 / want).sum()) for seen, want in pairs)
        assert (stats.chi2.sf(found, int((~rare).sum())) > 1e-6) == right


def test_what_is_foreseen_falls_with_more_units_and_weaker_promises():
    """A search ends at one of several radii, and all of them count: no jump from one to the next."""
    ball = dpm.Ball(dpm.Euclidean(6), np.zeros(6), 0.86)
    matrix = np.diag([0.3, 0.1, 0.05, 0.03, 0.03, 0.02]) ** 2
    for asked in ([(n, 1.0) for n in (40, 46, 48, 60, 90)], [(60, mu) for mu in (0.7, 1.1, 1.2, 2.0)]):
        plans = [dpm.plan_mean(n, ball, dpm.GDP(mu), noise_shape=matrix).shaped for n, mu in asked]
        assert np.all(np.diff([plan.error for plan in plans]) < 0)
        assert plans[-1].skipped is None


def test_a_shape_is_held_against_a_mean_that_is_moved_towards_the_centre():
    """180 dimensions and 40 units: the plan of both is within a quarter of what 12 releases have on average."""
    ball = dpm.Ball(dpm.Euclidean(180), np.zeros(180), 2.63)
    values = np.geomspace(1.0, 0.01, 180)
    spread = np.sqrt(values / values.sum()) * 1.3
    rng = np.random.default_rng(0)
    public, records = (0.7 / np.sqrt(180) + spread * rng.standard_normal((40, 180)) for _ in range(2))
    for mu in (2.0, 4.0):
        plan = dpm.plan_mean(40, ball, dpm.GDP(mu), noise_shape=public).shaped
        squares = []
        for asked in ({}, {"noise_shape": public}):
            found = [dpm.private_mean(records, ball, dpm.GDP(mu), rng=seed, **ONE, **asked) for seed in range(12)]
            squares.append(np.mean([((one.value - records.mean(axis=0)) ** 2).sum() for one in found]))
        assert found[0].statistic == "shaped mean"
        assert np.sqrt(squares) == pytest.approx([plan.plain, plan.error], rel=0.25)
        assert squares[1] < squares[0]
        # The draw that is not moved would make a shape look better than it is.
        assert np.sqrt(squares[0]) < 0.9 * dpm.plan_mean(40, ball, dpm.GDP(mu)).best.error


def test_a_shape_that_cannot_help_costs_nothing():
    release = shaped(X[:10])
    assert release.statistic == "mean"
    assert release.details == {"noise_shape_skipped": 1.0}
    assert release.share == release.privacy
    assert dpm.verify(release).ok
    assert any("no shape was used" in note for note in release.notes())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"noise_shape": "public"}, 'noise_shape must be "private", a covariance or public records'),
        ({"noise_shape": np.eye(3)}, r"noise_shape must be .* a covariance of shape \(4, 4\)"),
        ({"noise_shape": np.diag([1.0, 1.0, 1.0, -1.0])}, "no eigenvalue below 0"),
        ({"noise_shape": np.triu(np.ones((4, 4)))}, "symmetric"),
        ({"noise_shape": np.full((4, 4), np.nan)}, "shape"),
        ({"noise_shape": COVARIANCE, "refine": True}, "refine must be False with a shape"),
        ({"noise_shape": COVARIANCE, "mechanism": "riemannian-laplace"}, "mechanism must be one of"),
        ({"noise_shape": COVARIANCE, "estimand": "extrinsic"}, "extrinsic mean is none"),
        ({"noise_shape": COVARIANCE, "shrinkage": "james-stein"}, "a shaped mean is never moved towards the centre"),
        ({"noise_shape": X * 1000}, "public records all lie outside the ball"),
        ({"noise_shape": X[:1] + 0.5}, "at least 2 public records, got 1"),
        ({"noise_shape": COVARIANCE, "shrinkage": "always"}, "shrinkage must be"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(asked, said):
    budget = dpm.Budget(dpm.GDP(1.0))
    with pytest.raises(dpm.DPManifoldError, match=said):
        shaped(X, budget=budget, **asked)
    assert not budget.history


def test_frechet_means_of_curved_spaces_and_private_shapes_of_pure_promises_are_refused():
    ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    with pytest.raises(dpm.InvalidArgumentError, match=r'is none\. Ask for estimand="tangent"'):
        shaped(np.tile(ball.center, (300, 1)), ball=ball, noise_shape=np.eye(2))
    with pytest.raises(dpm.PromiseError, match="joint moments need Gaussian noise"):
        shaped(X, dpm.PureDP(1.0), "private")


def test_james_stein_by_name_is_never_worse_than_the_draw():
    ball = dpm.Ball(dpm.Euclidean(20), np.zeros(20), 5.0)
    records = np.tile(0.05 * np.ones(20), (60, 1))
    plain, moved = [], []
    for seed in range(40):
        release = dpm.private_mean(records, ball, dpm.GDP(1.0), shrinkage="james-stein", rng=seed, **ONE)
        assert release.shrinkage == "james-stein"
        plain.append(((release.raw - records[0]) ** 2).sum())
        moved.append(((release.value - records[0]) ** 2).sum())
    assert np.mean(moved) < 0.5 * np.mean(plain)
    assert dpm.verify(release).ok
    with pytest.raises(dpm.InvalidArgumentError, match="dimension 3 or more"):
        dpm.private_mean(
            X[:, :2], dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0), dpm.GDP(1.0), shrinkage="james-stein", **ONE
        )


# -------------------------------------------------------------------- lengths, sources, estimators


def test_the_length_of_shaped_noise_is_bounded_closely():
    """Against 20,000 draws; the mean to five standard errors, false alarms below 1e-5. A round law is rejected."""
    scales = np.array([5.0, 2.0, 1.0, 1.0, 1.0])
    length = np.linalg.norm(np.random.default_rng(2).standard_normal((20_000, 5)) * scales, axis=1)
    slack = 5 * length.std() / np.sqrt(len(length))
    law = ShapedLength(scales, "gaussian")
    assert abs(law.mean() - length.mean()) < slack + 1e-3
    assert law.moment(2) == pytest.approx(32.0)
    for q in (0.05, 0.5, 0.95):
        assert abs((length <= law.quantile(q)).mean() - q) < 5 * np.sqrt(q * (1 - q) / len(length)) + 1e-6
    wrong = ShapedLength(np.full(5, np.sqrt(32 / 5)), "gaussian")
    assert abs(wrong.mean() - length.mean()) > slack + 1e-3
    assert np.all(np.diff(law.quantile(np.linspace(0, 0.999, 300))) >= 0)
    assert law.quantile(1 - 1e-14) < 60


def test_records_in_pieces_give_the_same_bits():
    whole = shaped(X, rng=3, arithmetic="exact", noise_shape="private")
    blocks = dpm.data.from_blocks(lambda: (X[i : i + 37] for i in range(0, 300, 37)))
    pieces = shaped(blocks, rng=3, arithmetic="exact", noise_shape="private")
    assert pieces.to_dict() == whole.to_dict()


def test_a_comparison_with_public_data_counts_what_the_radius_cuts():
    ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.7)
    v = np.random.default_rng(0).standard_normal((400, 2)) * [0.15, 0.02] + 0.1
    for records, where, asked in (
        (X, BALL, {}),
        (ball.space.exp_coords(ball.center, v), ball, {"estimand": "tangent"}),
    ):
        for shape in (np.diag([1.0, 0.01, *[0.01] * (where.space.dim - 2)]) * where.radius**2 / 25, "private"):
            release = shaped(records, noise_shape=shape, ball=where, rng=4, **asked)
            assert release.statistic == "shaped mean"
            found = dpm.stats.compare(release, records, units=dpm.EACH_RECORD, public=True)
            assert found.noise <= release.noise_quantile(1 - 1e-9)
            assert found.error <= found.noise + found.clipping + 1e-12
            assert 0 <= found.clipped < 0.5


def test_the_estimator_takes_a_shape():
    pytest.importorskip("sklearn")
    from dpmanifold.estimators import PrivateFrechetMean

    budget = dpm.Budget(dpm.GDP(1.0))
    model = PrivateFrechetMean(BALL, dpm.GDP(1.0), noise_shape=COVARIANCE, units="each-record", budget=budget).fit(X)
    assert model.release_.statistic == "shaped mean"
    assert model.transform(X).shape == (300, 1)
