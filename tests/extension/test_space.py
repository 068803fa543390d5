"""A curved space is one file, found by an entry point: alone and in products it gets whatever the library's own get."""

import json

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.cli import app
from dpmanifold.engines import DaskEngine, ThreadEngine, using
from dpmanifold.ledger import Ledger
from dpmanifold.manifolds import SPACES, space_from_text
from dpmanifold.noise import as_source
from dpmanifold.noise.exact_samplers import exact_sampler
from dpmanifold.testing import check_space
from dpmanifold_example.contrast import CONTRAST, Contrast
from dpmanifold_example.rotations import Rotations, to_matrices
from laws.fit import assert_fits, rejects
from laws.pieces import ListSource
from laws.space_laws import SpaceLaws
from service_rooms import desk_of, service_in
from service_running import Nursery, Running, free_port, until

pytestmark = pytest.mark.usefixtures("installed")

SO3 = Rotations()
POSES = dpm.Product([SO3, dpm.Euclidean(3)])
BOTH = pytest.mark.parametrize("space", [SO3, POSES], ids=repr)
EACH = {"units": dpm.EACH_RECORD}
PROMISES = [dpm.PureDP(1.0), dpm.ApproxDP(1.0, 1e-6), dpm.ZCDP(0.5), dpm.GDP(1.0)]


def ball_on(space):
    return dpm.Ball(space, space.origin, 0.9, source="how far heads turn")


def records(space, n=400):
    return space.exp_coords(space.origin, 0.1 * np.random.default_rng(0).standard_normal((n, space.dim)))


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.output


# -------------------------------------------------------------------- the space itself


class TestRotations(SpaceLaws):
    space = SO3
    spread = 3.0
    longest = 0.95 * np.pi


def in_many_digits(p, q):
    """The angle and the rotation vector between two stored quaternions, which are scaled to length 1."""
    mp.mp.dps = 40
    a, b, c, d = (mp.mpf(float(x)) for x in p)
    e, f, g, h = (mp.mpf(float(x)) for x in q)
    w = a * e + b * f + c * g + d * h
    v = [a * f - b * e - c * h + d * g, a * g + b * h - c * e - d * f, a * h - b * g + c * f - d * e]
    w, v = (w, v) if w >= 0 else (-w, [-x for x in v])
    length = mp.sqrt(sum(x * x for x in v))
    angle = 2 * mp.atan2(length, w)
    return angle, [angle * x / length if length else mp.mpf(0) for x in v]


@BOTH
def test_it_obeys_the_laws(space):
    reference = in_many_digits if space is SO3 else None
    assert {law: wrong for law, wrong in check_space(space, reference).items() if wrong is not None} == {}


def test_bounds_on_rounding_are_compared_with_many_digits():
    class TooSure(Rotations):
        def dist_error(self, center, radius):
            return 0.01 * super().dist_error(center, radius)

    assert "dist" in check_space(TooSure(), in_many_digits)["rounding bounds hold"]


def test_it_comes_by_entry_point(withdrawn):
    assert SPACES.get("Rotations") is Rotations
    assert Rotations not in SPACES.own()
    assert space_from_text("Product([Rotations(), Euclidean(3)])") == POSES
    withdrawn(SPACES)
    with pytest.raises(dpm.InvalidDataError, match="Install the distribution that offers it"):
        space_from_text("Rotations()")


def test_angles_are_those_of_scipy():
    p, q = SO3.random_point((2, 50), rng=0)
    one, two = (Rotation.from_quat(x[:, [1, 2, 3, 0]]) for x in (p, q))
    np.testing.assert_allclose(SO3.dist(p, q), (one.inv() * two).magnitude(), atol=1e-12)
    np.testing.assert_allclose(SO3.log_coords(p, q), (one.inv() * two).as_rotvec(), atol=1e-12)
    np.testing.assert_allclose(to_matrices(p), one.as_matrix(), atol=1e-15)


def test_matrices_are_read_and_what_is_no_rotation_is_no_point():
    q = SO3.canonical(SO3.random_point(300, rng=0))
    m = to_matrices(q)
    np.testing.assert_allclose(data.as_records(m, SO3), q, atol=1e-15)
    assert np.isnan(data.as_records(-m[:3], SO3)).all(), "reflections"
    assert np.isnan(data.as_records(1.001 * m[:3], SO3)).all()
    with pytest.raises(dpm.InvalidDataError, match="index 1 is not of length 1"):
        dpm.private_mean(q * np.where(np.arange(300) == 1, 2.0, 1.0)[:, None], ball_on(SO3), PROMISES[0], **EACH)


# -------------------------------------------------------------------- exact noise


@pytest.mark.parametrize("scale", [0.1, 1.0, 2.0, 2.1, 10.0])
def test_exact_noise_has_its_law(scale):
    """Angles by Kolmogorov-Smirnov, false alarm 1e-6; another scale, or the law of flat space, is rejected."""
    sampler, source, point = exact_sampler(SO3, "laplace"), as_source(5), SO3.random_point(rng=1)
    drawn = np.array([sampler.draw(point, scale, -40, source) for _ in range(2500)])
    assert (drawn * 2.0**40 % 1 == 0).all()
    assert (drawn[:, 0] > 0).all()
    angles = SO3.dist(point, np.array([sampler.place(numbers) for numbers in drawn]))
    t = np.linspace(0, np.pi, 20_001)

    def law(scale, volume=lambda t: np.sin(t / 2) ** 2):
        mass = integrate.cumulative_trapezoid(volume(t) * np.exp(-t / scale), t, initial=0)
        return lambda x: np.interp(x, t, mass / mass[-1])

    assert_fits(angles, law(scale))
    assert rejects(angles, law(0.5 * scale)) or scale == 10  # which is nearly uniform
    assert rejects(angles, law(scale, np.square)) or scale < 1  # where space is nearly flat
    away = SO3.log_coords(point, np.array([sampler.place(numbers) for numbers in drawn])) / angles[:, None]
    assert_fits(away[:, 0], lambda x: (1 + x) / 2)  # uniform directions have uniform coordinates


@pytest.mark.security
def test_either_array_of_a_point_gives_the_same_release_and_one_of_them_leaves():
    X = records(SO3, 200)
    turned = np.where(np.arange(200)[:, None] % 2, X, -X)
    ball = dpm.Ball(SO3, -SO3.origin, 0.8)
    one, other = (
        dpm.private_mean(given, ball, PROMISES[0], rng=1, arithmetic="exact", **EACH) for given in (X, turned)
    )
    assert one.mechanism == "riemannian-laplace"
    assert one.is_exact
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(one.value, SO3.canonical(one.value))
    sampler, point = exact_sampler(SO3, "laplace"), SO3.random_point(rng=2)
    found = [sampler.draw(p, 0.3, -40, as_source(9)) for p in (point, -point)]
    np.testing.assert_array_equal(*found)


# -------------------------------------------------------------------- extrinsic means


def test_the_extrinsic_mean_is_that_of_scipy():
    embedding, X = SO3.embedding(1.2), records(SO3, 50)
    found = embedding.place(embedding.images(X).mean(axis=0)[None])[0]
    expected = Rotation.from_quat(X[:, [1, 2, 3, 0]]).mean().as_quat(scalar_first=True)
    np.testing.assert_allclose(found, SO3.canonical(expected), atol=1e-14)
    np.testing.assert_array_equal(embedding.place(np.zeros((1, 9)))[0], SO3.origin)
    assert SO3.check(embedding.place(1e300 * np.random.default_rng(0).standard_normal((9, 9)))) is None


@pytest.mark.parametrize("radius", [0.3, 1.2, np.pi])
def test_no_two_images_are_farther_apart_than_is_stated_and_some_are_as_far(radius):
    embedding, rng = SO3.embedding(radius), np.random.default_rng(0)
    c = rng.standard_normal((4000, 3))
    c *= (min(radius, np.pi / 2) * rng.choice([1.0, 0.3], 4000) / np.linalg.norm(c, axis=1))[:, None]
    c[-2000:] = -c[:2000]
    images = embedding.images(SO3.exp_coords(SO3.origin, c)).reshape(2, 2000, 9)
    apart = np.linalg.norm(images[0] - images[1], axis=-1).max()
    assert 0.999 * embedding.diameter < apart <= embedding.diameter
    assert np.linalg.norm(images, axis=-1).max() <= embedding.longest


def test_noise_turns_the_extrinsic_mean_by_no_more_than_is_stated():
    """Averages of two opposite clusters on the edge are the worst; half the bound is too small for some of them."""
    radius, rng = 0.8, np.random.default_rng(0)
    embedding = SO3.embedding(radius)
    ends = SO3.exp_coords(SO3.origin, radius * np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    average = embedding.images(ends).mean(axis=0)
    noise = rng.standard_normal((3000, 9)) * rng.uniform(0, 0.3, (3000, 1))
    turned = SO3.dist(embedding.place(average[None])[0], embedding.place(average + noise))
    t = np.linalg.norm(noise, axis=1)
    across = np.stack([noise[:, 3 * i + j] - noise[:, 3 * j + i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=1)
    share = (across**2).sum(axis=1) / 2 / t**2  # of the noise in the eigenvector's column, the origin being the mean
    bound = embedding.error(t, share, share)
    assert (turned <= bound).all()
    assert (turned > bound / 2).any()
    # The shares of isotropic noise have the law that is stated.
    assert_fits(share, stats.beta(*embedding.shares).cdf)


def test_extrinsic_and_frechet_mean_are_as_close_as_is_stated():
    ball, rng, apart = dpm.Ball(SO3, SO3.origin, 1.0), np.random.default_rng(0), []
    for _ in range(30):
        c = rng.standard_normal((20, 3)) ** 3
        X = SO3.exp_coords(SO3.origin, c / np.linalg.norm(c, axis=1)[:, None])
        embedding = SO3.embedding(1.0)
        found = embedding.place(embedding.images(X).mean(axis=0)[None])[0]
        apart.append(float(SO3.dist(found, dpm.frechet.mean(X, ball).value)))
    assert 0.01 < max(apart) <= dpm.frechet.extrinsic_gap(ball)


# -------------------------------------------------------------------- plan, release, region, verify, JSON, figure

ASKED = [
    *((SO3, estimand, promise) for estimand in (None, "tangent", "extrinsic") for promise in PROMISES),
    *((POSES, "tangent", promise) for promise in PROMISES),
]


@pytest.mark.parametrize(("space", "estimand", "promise"), ASKED, ids=str)
def test_a_mean_is_planned_released_written_read_verified_and_drawn(space, estimand, promise, tmp_path):
    ball, X = ball_on(space), records(space)
    planned = dpm.plan_mean(400, ball, promise, estimand=estimand).best
    found = dpm.private_mean(X, ball, promise, estimand=estimand, **EACH)
    assert (planned.mechanism, planned.scale) == (found.mechanism, found.scale)
    assert found.is_exact
    assert space.check(found.value) is None
    assert space.dist(dpm.frechet.mean(X, ball).value, found.value) < found.noise_quantile(1 - 1e-6) + 0.02
    found.save(tmp_path / "mean.json")
    again = dpm.load(tmp_path / "mean.json")
    assert again.to_dict() == found.to_dict()
    assert again.ball.space == space
    assert dpm.verify(again).ok, dpm.verify(again).wrong
    record = found.to_dict(answers=False)
    record["scale"] *= 0.5
    assert not dpm.verify(dpm.Release.from_dict(record)).ok, "a wrong scale must be found"
    assert found.picture().axes
    assert "rotations in space" in found.report()


@BOTH
def test_a_region_a_variance_and_a_contrast_are_released_and_drawn(space):
    ball, X, promise = ball_on(space), records(space), dpm.GDP(2.0)
    for estimand in (None, "tangent"):
        region = dpm.private_region(X, ball, promise, estimand=estimand, **EACH)
        assert dpm.verify(region).ok
        assert region.contains(dpm.frechet.mean(X, ball).value)
        assert region.picture().axes[0].get_xlabel()
    if space is SO3:  # of a product no law about a point is known
        assert dpm.verify(dpm.private_variance(X, ball, promise, **EACH)).ok
    labels = np.tile(["left", "right"], 200)
    found = CONTRAST.call(X, labels, ball, promise, classes=["left", "right"], **EACH)
    assert dpm.verify(found).ok
    assert found.answers()["right"]["length"] < 0.15


@BOTH
def test_a_cluster_computes_the_same_bits(space, cluster):
    X, ids = records(space, 900), np.arange(900) // 3
    source = ListSource(X, ids, cuts=[300, 700], block=200)
    found = []
    for engine in (ThreadEngine(1), cluster):
        with using(engine):
            found.append(
                dpm.private_mean(source, ball_on(space), dpm.GDP(1.0), units="person", estimand="tangent", rng=1)
            )
            found.append(dpm.frechet.mean(source, ball_on(space)).value.tobytes())
    assert found[0].to_dict() == found[2].to_dict()
    assert found[1] == found[3]


@pytest.fixture(scope="module")
def cluster():
    with DaskEngine.local(2) as engine:
        yield engine


# -------------------------------------------------------------------- command line, ledger, service, client


def test_the_command_line_knows_it(walk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = walk[0]
    assert {"name": "rotations", "example": "Rotations()"}.items() <= json.loads(run("spaces", "--json"))[-1].items()
    about = ["--units", "who", "--radius", "0.9", "--mu", "8"]
    turned = ["--space", "rotations", "--columns", "rotation", "--center", "1,0,0,0", *about]
    placed = ["--space", repr(POSES), "--center", "1,0,0,0,0,0,0", *about]
    run("plan", "-n", 80, "--space", "rotations", "--radius", "0.9", "--mu", "1")
    run("mean", path, *turned, "--out", "a.json", "--html", "a.html", "--picture", "a.png")
    run("mean", path, *placed, "--estimand", "tangent", "--out", "b.json")
    run("region", path, *turned, "--out", "c.json", "--picture", "c.png")
    for name, where in (("a.json", SO3), ("b.json", POSES), ("c.json", SO3)):
        assert dpm.load(name).ball.space == where
        assert "consistent" in run("verify", name)
    assert dpm.load("a.json").n == 80
    assert "rotations in space" in (tmp_path / "a.html").read_text()
    said = run("contrast", path, *turned, "--labels", "task", "--classes", "sitting,walking", "--out", "d.json")
    assert "'walking' against the first" in said
    # They turn their heads by 0.4 more where they walk, less what is clipped.
    assert abs(dpm.load("d.json").answers()["walking"]["length"] - 0.4) < 0.1
    where = ["--columns", "position", "--out", "e.json"]
    assert "must hold records of Rotations()" in run("mean", path, *turned[:2], *turned[4:], *where, code=3)


@BOTH
def test_a_ledger_pays_and_knows_it_again(space, walk, tmp_path):
    _, poses, tasks, people = walk
    X = poses[:, :4] if space is SO3 else poses
    with Ledger.create(str(tmp_path / "study.db")) as ledger:
        cohort = ledger.population("cohort", cap=dpm.GDP(9), unit="person")
        held = cohort.register("walk", X, ball_on(space), units=people, labels=tasks, classes=["sitting", "walking"])
        promise = dpm.GDP(2)
        mean = dpm.private_mean(held, ball_on(space), promise, units=None, estimand="tangent", budget=cohort, key="a")
        found = CONTRAST.of_registered(held, ball_on(space), promise, budget=cohort, key="b")
        assert found.answers()["walking"]["beyond_noise"]
        for one in (mean, found):
            assert ledger.compared(one).faults == ()
            assert dpm.verify(one).ok
        again = CONTRAST.of_registered(held, ball_on(space), promise, budget=cohort, key="b")
        assert again.to_dict() == found.to_dict()
        assert [entry.kind for entry in ledger.entries()].count("spend") == 2


@pytest.fixture(scope="module")
def office(tmp_path_factory, walk):
    """A service that runs as two processes, with the walk registered as rotations and as poses, and a client."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environ = {"DPM_SERVICE_WEB_PORT": str(port), "DPM_SERVICE_WEB_URL": url, "DPM_SERVICE_WORKER_SLOT": "1.5"}
    nursery = Nursery()
    with service_in(tmp_path_factory.mktemp("service"), **environ) as service:
        (service.settings.root / "walk.poses").write_bytes(walk[0].read_bytes())
        running = Running(nursery, service.settings, environ)
        running.start()
        running.healthy()
        ada, sam = desk_of(service, "ada"), desk_of(service, "sam")
        sam.make_population("cohort", dpm.GDP("20"), "person")
        sam.grant("cohort", "ada", dpm.GDP("20"), "a test")
        request = {"path": "walk.poses", "units": "who", "radius": "0.9", "labels": "task"}
        request |= {"classes": ["sitting", "walking"], "labels_public": True}
        turned = {"space": "rotations", "columns": "rotation", "center": "1,0,0,0"}
        placed = {"space": repr(POSES), "center": "1,0,0,0,0,0,0"}
        for name, how in (("turned", turned), ("placed", placed)):
            asked = sam.register("cohort", name, {**request, **how})
            until(lambda asked=asked: sam.registration(asked.id).state in ("done", "refused"))
            assert sam.registration(asked.id).state == "done", sam.registration(asked.id).message
        with dpm.connect(url, ada.make_token("test", 1)[1]) as client:
            yield service, client
        running.stop()
    nursery.close()


@pytest.mark.parametrize(("name", "space"), [("turned", SO3), ("placed", POSES)])
def test_a_service_and_its_client_know_it(office, name, space):
    service, client = office
    dataset = f"cohort/{name}"
    assert client.dataset(dataset)["space"] == repr(space)
    assert client.plan(dataset, dpm.GDP("1"), statistic="contrast")["statistic"] == "contrast"
    mean = client.mean(dataset, dpm.GDP("1"), estimand="tangent")
    found = client.contrast(dataset, dpm.GDP("2"), against="rest")
    assert type(found) is Contrast
    assert (found.against, mean.ball.space) == ("rest", space)
    assert found.answers()["walking"]["beyond_noise"]
    for one in (mean, found):
        assert dpm.verify(one).ok
        assert service.ledger.compared(one).faults == ()
