"""Every picture is drawn, says what it is, and shows nothing but what the release holds."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import plots
from dpmanifold.errors import MissingPackageError
from dpmanifold.mechanisms import get
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import promise_text
from dpmanifold.plots.glyphs import band, radii
from dpmanifold.plots.landmark_shapes import aligned, landmark_ellipses
from dpmanifold.plots.plan_plots import promised_delta
from dpmanifold.plots.planes import rim_in_plane
from dpmanifold.plots.spread import spread_of
from dpmanifold.privacy import to_approx

EACH = dpm.EACH_RECORD
GAUSSIAN = dpm.GDP(1.0)
N = 400


def spd(k, metric="logeuclid"):
    return dpm.Ball(dpm.SPD(k, metric), np.eye(k) + 0.2, 1.5, source="atlas of $3, not $4")


BALLS = {
    "spd2": spd(2),
    "spd3": spd(3, "riemann"),
    "spd6": spd(6),
    "sphere": dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6, source="field of view"),
    "small sphere": dpm.Ball(dpm.Sphere(2, curvature=4.0), [0.3, 0.0, -0.4], 0.2),
    "sphere3": dpm.Ball(dpm.Sphere(3), np.eye(4)[0], 0.6),
    "shapes": dpm.Ball(dpm.KendallShapes(6), dpm.KendallShapes(6).origin, 0.3),
    "hyperbolic": dpm.Ball(dpm.Hyperbolic(3), dpm.Hyperbolic(3).origin, 2.0),
    "line": dpm.Ball(dpm.Euclidean(1), [0.0], 2.0),
}


@functools.cache
def records(name):
    ball = BALLS[name]
    c = 0.2 * ball.radius * np.random.default_rng(0).standard_normal((N, ball.space.dim)) / np.sqrt(ball.space.dim)
    return ball.space.exp_coords(ball.center, c)


@functools.cache
def mean(name, privacy=GAUSSIAN, seed=None):
    return dpm.private_mean(records(name), BALLS[name], privacy, units=EACH, rng=seed)


@functools.cache
def region(name, seed=None):
    return dpm.private_region(records(name), BALLS[name], GAUSSIAN, units=EACH, rng=seed)


@functools.cache
def interval(seed=None):
    return dpm.private_variance_interval(records("sphere"), BALLS["sphere"], GAUSSIAN, units=EACH, rng=seed)


@functools.cache
def two_samples(name="sphere", seed=None):
    X = records(name)
    return dpm.private_two_sample_test(X[:250], X[250:], BALLS[name], GAUSSIAN, units=EACH, rng=seed)


@functools.cache
def several(name, count=4):
    labels = np.arange(N) % count
    return dpm.private_k_sample_test(records(name), labels, BALLS[name], GAUSSIAN, units=EACH, classes=range(count))


def texts(figure):
    return [text.get_text() for text in figure.texts]


def ink(figure, path):
    """Return how many pixels are drawn between header and footer; the picture goes through a file."""
    from matplotlib.image import imread

    file = path / "picture.png"
    figure.savefig(file, dpi=100)
    image = imread(file)[..., :3]
    assert image.shape[1] == 650
    return int((image[70:-60] < 0.98).any(axis=-1).sum())


PICTURES = {
    "tensor, 2 x 2": lambda: plots.tensors(mean("spd2")),
    "tensor region, 2 x 2": lambda: plots.tensors(region("spd2")),
    "tensor, 3 x 3": lambda: plots.tensors(mean("spd3")),
    "tensor region, 3 x 3": lambda: plots.tensors(region("spd3")),
    "tensor grid, 2 x 2": lambda: plots.tensors(records("spd2")[:24].reshape(4, 6, 2, 2)),
    "tensor list, 3 x 3": lambda: plots.tensors(records("spd3")[:13]),
    "single tensor": lambda: plots.tensors(np.eye(3)),
    "matrix": lambda: plots.matrix(mean("spd6")),
    "matrix of a region": lambda: plots.matrix(region("spd3")),
    "sphere": lambda: plots.sphere(mean("sphere")),
    "sphere region with points": lambda: plots.sphere(region("sphere"), points=records("sphere")[:30]),
    "sphere of another size": lambda: plots.sphere(region("small sphere")),
    "tangent": lambda: plots.tangent(region("hyperbolic")),
    "tangent, other axes": lambda: plots.tangent(region("spd6"), axes=(2, 4)),
    "tangent of a mean": lambda: plots.tangent(mean("sphere3")),
    "tangent on a line": lambda: plots.tangent(region("line")),
    "shape": lambda: plots.shape(mean("shapes")),
    "shape region": lambda: plots.shape(region("shapes"), closed=False),
    "shape with links": lambda: plots.shape(region("shapes"), links="1-3-5-1, 2-4-6-2"),
    "plan": lambda: plots.plan(dpm.plan_mean(N, BALLS["spd3"], GAUSSIAN)),
    "plan of everything": lambda: plots.plan(
        dpm.plan_mean(N, BALLS["sphere"], dpm.ApproxDP(1.0, 1e-6), everything=True)
    ),
    "profile": lambda: plots.profile(mean("sphere", dpm.PureDP(1.0))),
    "profile, several steps": lambda: plots.profile(region("sphere").release),
    "profile of a calibration": lambda: plots.profile(
        get("riemannian-gaussian").calibrate(BALLS["shapes"], N, dpm.ZCDP(0.5)), BALLS["shapes"]
    ),
    "interval": lambda: plots.interval(interval()),
    "variance": lambda: plots.interval(
        dpm.private_variance(records("sphere"), BALLS["sphere"], dpm.PureDP(1.0), units=EACH)
    ),
    "test": lambda: plots.test(two_samples()),
    "test on a line": lambda: plots.test(two_samples("line")),
    "groups": lambda: plots.groups(several("sphere")),
    "groups on a line": lambda: plots.groups(several("line", 9)),
    "ball": lambda: plots.balls(dpm.private_ball(records("line"), BALLS["line"], GAUSSIAN, units=EACH)),
}
NOTHING_PRIVATE = {"tensor grid", "tensor list", "single tensor", "plan", "plan of everything", "plan curve"}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn_and_marked(name, tmp_path):
    figure = PICTURES[name]()
    assert ink(figure, tmp_path) > 800
    assert figure.get_figwidth() == 6.5
    assert figure.get_dpi() >= 150
    said = texts(figure)
    public = name.split(",")[0] in NOTHING_PRIVATE or name == "profile of a calibration"
    assert ("private release" in said) != public
    assert not any("NOT PRIVATE" in text for text in said)
    if not public:
        counts = "250 and 150" if name.startswith("test") else str(N)
        assert any(f"for each record, {counts} of them" in text for text in said)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mean("spd2", seed=1),
        lambda: region("spd3", seed=1),
        lambda: mean("spd6", seed=1),
        lambda: region("sphere", seed=1),
        lambda: region("shapes", seed=1),
        lambda: mean("hyperbolic", seed=1),
        lambda: interval(seed=1),
        lambda: two_samples(seed=1),
        lambda: region("sphere", seed=1).release,
        lambda: interval(seed=1).release,
        lambda: interval(seed=1).variance,
        lambda: {"a": mean("spd2"), "b": mean("spd2", seed=1)},
    ],
)
def test_what_was_seeded_is_marked_not_private(make):
    said = texts(plots.show(make()))
    assert "NOT PRIVATE: seeded or revealed" in said
    assert "private release" not in said


def test_a_claim_that_the_steps_deny_is_not_believed():
    seeded = region("sphere", seed=1).release
    claimed = dpm.ConfidenceRegion(dataclasses.replace(seeded, private=True))
    assert "NOT PRIVATE: seeded or revealed" in texts(plots.show(claimed))


def test_a_simulated_ball_is_marked_not_private():
    ball = dataclasses.replace(BALLS["sphere"], simulated=True)
    assert "NOT PRIVATE: simulated ball" in texts(plots.plan(dpm.plan_mean(N, ball, GAUSSIAN)))
    release = dpm.private_mean(records("sphere"), ball, GAUSSIAN, units=EACH)
    assert "NOT PRIVATE: simulated ball" in texts(plots.sphere(release))


def test_footer_states_promise_units_and_origin():
    said = texts(plots.show(mean("spd2")))
    assert "GDP(mu=1.0) for each record, 400 of them. Mechanism: wrapped-gaussian." in said
    assert "Ball: radius 1.5 on SPD(2), atlas of $3, not $4." in said


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


WHOLE = [dpm.Sphere(1), dpm.Sphere(2), dpm.Sphere(2, curvature=4.0), dpm.Sphere(3), dpm.KendallShapes(6)]


def without_ball(space, count=40):
    X = space.random_point(count, rng=0)
    return dpm.private_mean(X, dpm.Ball.whole(space), GAUSSIAN, units=EACH, estimand="extrinsic")


@pytest.mark.parametrize("space", WHOLE, ids=repr)
def test_without_a_ball_the_mean_is_drawn_alone(space, tmp_path):
    figure = plots.show(without_ball(space))
    said = texts(figure)
    assert "without a ball no error can be stated: it depends on how closely the records agree" in said
    assert f"No ball: the whole of {space!r}." in said
    assert any(line.endswith("Estimand: the extrinsic mean.") for line in said)
    assert not [line for line in said if "noise" in line or "radius" in line]
    assert labels(figure) == ["released mean"]
    assert ink(figure, tmp_path) > 100


def test_without_a_ball_the_mean_faces_the_reader():
    """Wherever it is: there is no ball to look at."""
    space = dpm.Sphere(2)
    for point in np.concatenate([np.eye(3), -np.eye(3)]):
        X = np.repeat(point[None], 400, axis=0)
        release = dpm.private_mean(X, dpm.Ball.whole(space), GAUSSIAN, units=EACH, estimand="extrinsic")
        panel = plots.show(release).axes[0]
        dot = next(line for line in panel.lines if line.get_label() == "released mean").get_xydata()[0]
        assert np.linalg.norm(dot) < 0.6


def test_a_plan_without_a_ball_shows_no_error(tmp_path):
    plan = dpm.plan_mean(N, dpm.Ball.whole(dpm.Sphere(2)), GAUSSIAN, estimand="extrinsic")
    figure = plots.show(plan)
    assert labels(figure) == []
    assert figure.axes[0].get_xlabel() == "scale of the noise on the average record (no error follows)"
    assert [bar.get_width() for bar in figure.axes[0].patches] == [row.scale for row in plan.rows]
    assert ink(figure, tmp_path) > 1000


@pytest.mark.parametrize("estimand", ["tangent", "extrinsic", "frechet"])
def test_the_footer_says_which_mean_it_is(estimand):
    release = dpm.private_mean(records("sphere"), BALLS["sphere"], GAUSSIAN, units=EACH, estimand=estimand)
    said = next(line for line in texts(plots.show(release)) if "Mechanism" in line)
    assert said.endswith(f"Estimand: the {estimand} mean.") == (estimand != "frechet")
    assert ("Estimand" in said) == (estimand != "frechet")


@pytest.mark.parametrize("estimand", ["tangent", "frechet"])
def test_the_footer_of_a_region_says_which_mean_it_is(estimand):
    region = dpm.private_region(records("sphere"), BALLS["sphere"], GAUSSIAN, units=EACH, estimand=estimand)
    assert any("Estimand: the tangent mean." in line for line in texts(plots.show(region))) == (estimand == "tangent")


def test_public_points_are_labelled():
    labels = [text.get_text() for text in plots.sphere(mean("sphere"), records("sphere")).legends[0].get_texts()]
    assert "public data" in labels
    assert "public data" in texts(plots.tensors(records("spd2")[:9]))


def test_show_finds_the_picture_of_every_result():
    titles = {
        "Mean tensor": mean("spd2"),
        "Mean tensor with its confidence region": region("spd3"),
        "Mean matrix and its eigenvalues": mean("spd6"),
        "Mean on the sphere": mean("sphere"),
        "Mean on the sphere with its confidence region": region("sphere").release,
        "Mean shape": mean("shapes"),
        "Mean and its noise": mean("sphere3"),
        "Fréchet variance": interval().release,
        "Which mechanism adds least noise": dpm.plan_mean(N, BALLS["line"], GAUSSIAN),
        "One mean per class": {"a": mean("spd2"), "$b": mean("spd2")},
        "A smaller ball, released": dpm.private_ball(records("line"), BALLS["line"], GAUSSIAN, units=EACH),
    }
    for title, result in titles.items():
        assert texts(plots.show(result))[0] == title
    assert texts(plots.show(two_samples()))[0] in ("The two means differ", "No difference of the means is shown")


def test_a_picture_depends_on_the_record_alone(tmp_path):
    """A release that went through JSON knows no data: its picture is the same, pixel for pixel."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    found = region("sphere")
    found.save(tmp_path / "region.json")
    pixels = []
    for result in (found, dpm.ConfidenceRegion.load(tmp_path / "region.json")):
        paper = FigureCanvasAgg(plots.show(result))
        paper.draw()
        pixels.append(np.asarray(paper.buffer_rgba()).copy())
    np.testing.assert_array_equal(*pixels)


@pytest.mark.parametrize(
    ("draw", "remedy"),
    [
        (lambda: plots.show(3), "Give what a private call or a plan returned"),
        (lambda: plots.show({"a": mean("sphere")}), r"show\(releases\[name\]\)"),
        (lambda: plots.tensors(mean("spd6")), r"show\(result\)"),
        (lambda: plots.tensors({}), "private_class_means"),
        (lambda: plots.tensors(np.eye(4)), "Use matrix"),
        (lambda: plots.tensors(-np.eye(2)), "not positive definite"),
        (lambda: plots.tensors(np.broadcast_to(np.eye(2), (60, 60, 2, 2))), "Take a slice"),
        (lambda: plots.matrix(mean("sphere")), r"show\(result\)"),
        (lambda: plots.sphere(mean("sphere3")), "Use tangent"),
        (lambda: plots.sphere(interval()), "private_mean or private_region"),
        (lambda: plots.sphere(mean("sphere"), points=[[1.0, 2.0, 3.0]]), "Normalise"),
        (lambda: plots.shape(mean("sphere")), r"show\(result\)"),
        (lambda: plots.shape(region("shapes").release), "second moment"),
        (lambda: plots.shape(mean("shapes"), links="1-7"), "names landmark 7, and there are 6"),
        (lambda: plots.show(mean("sphere"), links="1-2"), r"links means nothing in a picture on Sphere\(2\)"),
        (lambda: plots.show(interval(), links="1-2"), "landmarks of a mean shape"),
        (lambda: plots.tangent(region("spd2"), axes=(0, 3)), "from 0 to 2"),
        (lambda: plots.plan(mean("sphere")), "plan_mean"),
        (lambda: plots.plan(dataclasses.replace(dpm.plan_mean(9, BALLS["line"], GAUSSIAN), rows=())), "plan.refused"),
        (lambda: plots.profile(interval()), "region.release"),
        (lambda: plots.profile(mean("sphere").calibration), r"profile\(result, ball\)"),
        (lambda: plots.interval(mean("sphere")), "private_variance_interval"),
        (lambda: plots.test(interval()), "private_two_sample_test"),
        (lambda: plots.groups(interval()), "private_k_sample_test"),
        (lambda: plots.balls(mean("sphere")), "private_ball"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_remedy(draw, remedy):
    with pytest.raises(dpm.DPManifoldError, match=remedy):
        draw()


def test_a_pair_that_differs_is_the_title_where_all_groups_at_once_do_not():
    labels, rng = np.repeat(np.arange(8), 100), np.random.default_rng(43)
    X = 0.2 * rng.standard_normal((800, 2)) + np.outer(np.array([-0.055, 0.055, 0, 0, 0, 0, 0, 0])[labels], [1.0, 0.0])
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    found = dpm.private_k_sample_test(X, labels, ball, GAUSSIAN, units=EACH, classes=range(8), rng=43)
    differing = sum(pair.p_value < 0.05 for pair in found.pairs)
    assert (found.rejects, differing) == (False, 1)
    assert "One pair of groups differs" in texts(plots.groups(found))


def test_a_baseline_is_refused_as_its_value_need_not_be_a_point():
    baseline = dpm.private_mean(
        records("sphere"), BALLS["sphere"], dpm.PureDP(1.0), units=EACH, mechanism="extrinsic-laplace"
    )
    with pytest.raises(dpm.InvalidArgumentError, match='mechanism="auto"'):
        plots.show(baseline)


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match=r'pip install "dpmanifold\[plots\]"'):
        plots.show(mean("sphere"))


def test_importing_the_pictures_does_not_import_matplotlib():
    code = "import sys, dpmanifold.plots; sys.exit(any(name.startswith('matplotlib') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pyplot_knows_no_figure():
    from matplotlib import pyplot

    plots.show(mean("sphere"))
    plots.show(mean("spd3"))
    assert pyplot.get_fignums() == []


def test_global_settings_stay_as_they_were():
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.show(two_samples())
    assert dict(matplotlib.rcParams) == before


# -------------------------------------------------------------------- what is drawn is right


@pytest.mark.parametrize("name", ["spd2", "spd3"])
def test_band_holds_the_outlines_of_tensors_in_the_region(name):
    spread = spread_of(region(name), "tensors")
    values, vectors = np.linalg.eigh(spread.shape)
    z = np.random.default_rng(1).standard_normal((300, len(values)))
    inside = spread.move((z / np.linalg.norm(z, axis=1, keepdims=True) * np.sqrt(values)) @ vectors.T)
    low, high = band(spread, (0, 1))
    found = radii(inside, (0, 1))
    assert (found <= high * (1 + 1e-3)).all()
    assert (found >= low * (1 - 1e-3)).all()
    assert np.log(found.max() / found.min()) > 0


def drawn(figure, label):
    """The strokes of a line of a picture: pairs of its ends."""
    line = next(line for line in figure.axes[0].lines if line.get_label() == label)
    points = np.stack(line.get_data(), axis=1)
    assert np.isnan(points[2::3]).all()
    return np.stack([points[0::3], points[1::3]], axis=1)


def test_links_join_the_landmarks_they_name():
    space, found = BALLS["shapes"].space, region("shapes")
    landmarks = space.to_landmarks(found.center)
    figure = plots.show(found, links=[[1, 4], [6, 2]])
    np.testing.assert_array_equal(drawn(figure, "released mean"), landmarks[[[0, 3], [5, 1]]])
    edge = drawn(figure, "shapes at the region's edge")
    np.testing.assert_allclose(edge, landmarks[[[0, 3], [5, 1]]], rtol=0, atol=0.1)
    closed = drawn(plots.shape(found), "released mean")
    np.testing.assert_array_equal(closed, np.stack([landmarks, np.roll(landmarks, -1, axis=0)], axis=1))
    np.testing.assert_array_equal(drawn(plots.shape(found, closed=False), "released mean"), closed[:-1])


def test_landmark_ellipses_hold_the_shapes_of_the_region():
    space, found = BALLS["shapes"].space, region("shapes")
    spread = spread_of(found, "shape")
    ellipses = landmark_ellipses(spread, space)
    for plane in ((0, 1), (2, 5), (3, 4)):
        away = aligned(space, found.center, found.boundary(60, plane)) - space.to_landmarks(found.center)
        length = np.einsum("nky,kyz,nkz->nk", away, np.linalg.inv(ellipses), away)
        assert (length <= 1 + 0.02).all()


def test_rim_is_where_the_ball_ends():
    spread = spread_of(region("hyperbolic"), "tangent")
    basis = np.eye(3)[:, :2]
    rim = spread.move(rim_in_plane(spread, basis) @ basis.T)
    ball = BALLS["hyperbolic"]
    np.testing.assert_allclose(ball.space.dist(ball.center, rim), ball.radius, rtol=1e-9)


def test_eigenvalues_stay_within_the_distance_of_the_matrices():
    """Weyl's inequality, which the bars of `matrix` rest on, under both metrics."""
    for metric in ("logeuclid", "riemann"):
        space = dpm.SPD(4, metric)
        P, Q = space.random_point((2, 200), rng=3)
        apart = np.abs(np.log(np.linalg.eigvalsh(P)) - np.log(np.linalg.eigvalsh(Q))).max(axis=-1)
        assert (apart <= space.dist(P, Q) + 1e-12).all()


@pytest.mark.parametrize("promise", [dpm.GDP(0.8), dpm.ZCDP(0.3)])
def test_promised_curve_is_that_of_the_conversion(promise):
    for delta in (1e-3, 1e-6):
        epsilon = to_approx(promise, delta).epsilon
        assert promised_delta(promise, np.array([epsilon]))[0] == pytest.approx(delta, rel=1e-6)


def test_promised_curve_of_an_approximate_promise():
    curve = promised_delta(dpm.ApproxDP(1.0, 1e-3), np.array([0.0, 1.0, 5.0, 900.0]))
    total_variation = 1e-3 + (1 - 1e-3) * np.tanh(0.5)
    np.testing.assert_allclose(curve, [total_variation, 1e-3, 1e-3, 1e-3], rtol=1e-12)


def test_a_promise_is_never_rounded_to_a_stronger_one():
    for mu in np.random.default_rng(0).uniform(1e-7, 30, 200):
        shown = float(promise_text(dpm.GDP(float(mu))).removeprefix("GDP(mu=").removesuffix(")"))
        assert mu <= shown <= mu * 1.0011


def test_long_texts_are_shortened_to_the_page():
    ball = dataclasses.replace(BALLS["line"], source="said at length " * 40)
    figure = plots.show(dpm.private_mean(records("line"), ball, GAUSSIAN, units=EACH))
    assert max(len(text) for text in texts(figure)) <= 130


def test_keys_fit_the_page():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for figure in (plots.test(two_samples()), plots.plan(dpm.plan_mean(N, BALLS["spd3"], GAUSSIAN))):
        paper = FigureCanvasAgg(figure)
        paper.draw()
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= canvas.WIDTH * figure.get_dpi()


def test_the_three_shadows_of_a_tensor_have_one_scale():
    mean = dpm.private_mean([np.diag([4.0, 1.0, 1.0])] * 50, dpm.Ball(dpm.SPD(3), np.eye(3), 2.0), GAUSSIAN, units=EACH)
    shadows = plots.tensors(mean).axes[1:4]
    assert len({(*axes.get_xlim(), *axes.get_ylim()) for axes in shadows}) == 1
    assert shadows[0].get_xlim()[1] > 1.9


def test_factors_of_a_product_have_the_noise_of_a_shape_and_a_moved_mean_says_so():
    space = dpm.Product([dpm.SPD(2)] * 4, weights=[1.0, 1.0, 1.0, 2.0])
    ball = dpm.Ball(space, space.origin, 3.0)
    spread = np.repeat([0.4, 0.1, 0.02, 0.02], 3)
    records = space.exp_coords(space.origin, spread * np.random.default_rng(0).standard_normal((100, 12)))
    terms = {"units": EACH, "rng": 0}
    shaped = dpm.private_mean(records, ball, dpm.GDP(2.0), noise_shape=np.diag(spread**2), **terms)
    line = next(one for one in plots.product(shaped).axes[1].lines if one.get_label() == "typical length of the noise")
    noise = line.get_ydata()
    variances = np.diag(shaped.definition.noise_covariance(shaped)).reshape(4, 3).sum(axis=1)
    assert np.allclose((noise * space.weights) ** 2 / noise[0] ** 2, variances / variances[0])
    assert noise[0] > 1.5 * noise[1] > 2 * noise[2]
    moved = dpm.private_mean(records[:20], ball, dpm.GDP(0.3), **terms)
    assert moved.shrinkage
    figure = plots.product(moved)
    labels = [one.get_label() for one in figure.axes[1].lines]
    assert "released: moved towards the centre" in labels
    assert "typical length of the noise on the draw" in labels
