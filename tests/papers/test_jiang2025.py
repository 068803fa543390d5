"""Experiments of Jiang, Chang and Hu (2025): their quick paths, loaders, and the calculations of their discussions."""

import csv
import math
import os
import pathlib

import numpy as np
import pytest

from dpmanifold import frechet, sensitivity
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Sphere
from dpmanifold.noise.source import as_source
from dpmanifold.privacy import tightest_mu
from dpmanifold_papers import jiang2025
from dpmanifold_papers.framework import Task
from dpmanifold_papers.jiang2025 import images, occupations, predict, printed
from dpmanifold_papers.jiang2025.populations import UNITS, facts

BY_NAME = {experiment.name.partition("/")[2]: experiment for experiment in jiang2025.EXPERIMENTS}
TABLES = ["table1", "table2", "table3", "table4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of the formats of the real ones: OCTMNIST with two classes, and the judgements of 48 people."""
    where = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    arrays = {}
    for split, n in (("train", 160), ("val", 20), ("test", 20)):
        labels = np.arange(n)[:, None] % 2
        smooth = np.cumsum(rng.random((n, 28, 28)) - 0.5, axis=1) / 4 + 0.5
        arrays[f"{split}_images"] = (255 * np.clip(smooth + 0.1 * labels[:, :, None], 0, 1)).astype(np.uint8)
        arrays[f"{split}_labels"] = labels.astype(np.uint8)
    np.savez_compressed(where / "octmnist.npz", **arrays)
    with (where / "occupational_judgments.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "criterion_letter", "criterion_assumed", "colat_deg", "long_deg", "x", "y", "z"])
        for letter, name, angle in zip("ABCD", occupations.CRITERIA, (0.0, 0.5, 0.7, 1.4), strict=True):
            mean = np.array([math.cos(angle), math.sin(angle), 0.0])
            for person in range(1, 49):
                v = mean + 0.3 * rng.standard_normal(3)
                writer.writerow([person, letter, name, 0.0, 0.0, *(v / np.linalg.norm(v))])
    return where


@pytest.fixture(scope="module")
def results(folder):
    """Rows of the quick version of every experiment, run when they are first asked for."""

    class Results(dict):
        def __missing__(self, name):
            experiment = BY_NAME[name]
            self[name] = [row for task in experiment.tasks(quick=True) for row in experiment.run(task, folder)]
            return self[name]

    return Results()


@pytest.mark.parametrize("name", BY_NAME)
def test_quick_path(name, results):
    experiment, rows = BY_NAME[name], results[name]
    for table in experiment.tables(rows):
        assert all(len(line) == len(table.headings) for line in table.rows)
        assert all(isinstance(cell, str) for line in table.rows for cell in line)
        assert table.caption
    figure = experiment.figure(rows)
    figure.canvas.draw()
    assert all(axes.get_xlabel() or axes.get_title(loc="left") is not None for axes in figure.axes)
    assert experiment.discussion.strip()
    assert experiment.title


@pytest.mark.parametrize("name", ["table1", "table4", "regions", "occupations"])
def test_tasks_are_repeatable_and_differ(name, folder, results):
    experiment = BY_NAME[name]
    first, second = experiment.tasks(quick=True)[:2]
    again = experiment.run(first, folder)
    assert again == results[name][: len(again)]
    assert again != experiment.run(second, folder)


def test_names_and_task_keys_are_unique():
    assert list(BY_NAME) == [*TABLES, "regions", "oct", "occupations"]
    for experiment in jiang2025.EXPERIMENTS:
        keys = [task.key(experiment.name) for task in experiment.tasks(quick=False)]
        assert len(set(keys)) == len(keys)


def test_headlines(results):
    rows = {f"jiang2025/{table}": results[table] for table in TABLES}
    for claim, numbers in jiang2025.HEADLINES:
        published, reproduced, ours = numbers(rows)
        assert claim
        assert all(math.isfinite(float(text)) for text in (published, reproduced, ours))


# -------------------------------------------------------------------- loaders


def test_octmnist_is_preferred_and_read(folder, tmp_path):
    assert images.image_file(folder).name == "octmnist.npz"
    with pytest.raises(InvalidArgumentError, match=r"pneumoniamnist\.npz \(MedMNIST v2.*octmnist\.npz"):
        images.image_file(tmp_path)
    classes = images.load_classes(folder / "octmnist.npz")
    assert {number: X.shape for number, X in classes.items()} == {0: (100, 5, 5), 1: (100, 5, 5)}


def test_every_descriptor_lies_in_the_public_ball(folder):
    ball = images.public_ball()
    for X in images.load_classes(folder / "octmnist.npz").values():
        assert ball.contains(X).all()
    blank, noise = np.zeros((1, 28, 28), np.uint8), np.random.default_rng(0).integers(0, 2, (5, 28, 28)) * 255
    for extreme in (blank, noise.astype(np.uint8)):
        X = images.descriptors_in_blocks(extreme, eta=images.ETA)[:, images.FEATURES, images.FEATURES]
        assert ball.contains(X).all()
        assert (np.trace(X, axis1=1, axis2=2) <= images.TRACE + 5 * images.ETA).all()


def test_where_no_ball_can_be_found_the_public_one_is_cut_and_nothing_is_paid(folder):
    X = images.load_classes(folder / "octmnist.npz")[0]
    ball, left = images.found_ball(X, 0.1, np.random.default_rng(0))
    np.testing.assert_array_equal(ball.center, images.public_ball().center)
    assert (ball.radius, left) == (images.LARGEST, 0.1)
    ball, left = images.found_ball(X, 10.0, np.random.default_rng(0))
    assert ball.radius < images.LARGEST
    assert left == pytest.approx(10.0 * math.sqrt(0.8))


def test_judgements_are_read(folder, tmp_path):
    samples = occupations.load_criteria(folder / occupations.FILE)
    assert list(samples) == list(occupations.CRITERIA)
    assert all(X.shape == (48, 3) for X in samples.values())
    text = (folder / occupations.FILE).read_text().replace("reward", "other")
    (tmp_path / occupations.FILE).write_text(text)
    with pytest.raises(InvalidDataError, match="criterion_assumed must hold"):
        occupations.load_criteria(tmp_path / occupations.FILE)
    with pytest.raises(InvalidArgumentError, match="data set B20"):
        BY_NAME["occupations"].run(Task({"kind": "draws", "first": 0, "count": 1}), None)


# -------------------------------------------------------------------- exact claims


def test_populations_by_simulation():
    rng = np.random.default_rng(1)
    for name, draw in jiang2025.DATA.items():
        X, ball = draw(40_000, rng)
        away = ball.space.dist(ball.center, X)
        known = facts(name)
        assert math.isclose((away**2).mean(), known.variance, rel_tol=0.02)
        assert math.isclose((away**4).mean(), known.fourth, rel_tol=0.03)
        v = ball.frame.log_coords(ball.frame.origin, ball.to_frame(X))
        values, directions = ball.frame.hessian_spectrum(v)
        hessian = np.einsum("nij,nj,nkj->ik", directions, values, directions) / len(v)
        np.testing.assert_allclose(np.linalg.eigvalsh(hessian), sorted(known.hessians), rtol=1e-2)


def test_expected_length():
    """In one, two and three dimensions, and of unequal entries by simulation."""
    for d, exact in ((1, math.sqrt(2 / math.pi)), (2, math.sqrt(math.pi / 2)), (3, math.sqrt(8 / math.pi))):
        assert math.isclose(predict.expected_length([9.0] * d), 3 * exact, rel_tol=1e-12)
    drawn = np.linalg.norm(np.random.default_rng(0).standard_normal((400_000, 3)) * [3.0, 1.0, 0.1], axis=1)
    assert math.isclose(predict.expected_length([9.0, 1.0, 0.01]), drawn.mean(), rel_tol=5e-3)
    assert math.isclose(predict.length_error([9.0, 1.0, 0.01], 1), drawn.std(), rel_tol=5e-3)


@pytest.mark.parametrize("name", ["sphere", "spd"])
def test_published_sensitivity_is_the_librarys(name):
    ball = jiang2025.DATA[name](10, np.random.default_rng(0))[1]
    found = sensitivity.of_mean(ball, UNITS, bound="published").value
    assert math.isclose(found * UNITS, predict.published_sensitivity(name), rel_tol=1e-6)


def test_table_one_cannot_come_from_its_formula():
    """Stated: 451e-4 at mu = 0.1; printed: 183e-4, a third of the noise."""
    assert round(1e4 * predict.mean_distance_at("sphere", 0.1)) == 451
    assert round(1e4 * predict.mean_distance_at("sphere", 0.1, split=1.0)) == 273
    noise, error = predict.implied_noise("sphere", 183e-4, 0.1)
    assert noise + 5 * error < math.sqrt(3) * predict.published_sensitivity("sphere") / 2
    fits = {what: predict.misfit("sphere", *how) for what, how in predict.calibrations("sphere").items()}
    assert fits["as stated: published sensitivity at mu/sqrt 3"] > 2000
    assert fits["published sensitivity at mu"] > 500
    assert sum(fit < 25 for fit in fits.values()) == 4  # so that none of them can be singled out


def test_table_three_is_one_of_plain_entries():
    fits = {what: predict.misfit("spd", *how) for what, how in predict.calibrations("spd").items()}
    assert fits["2r/n at mu/sqrt 3, noise and length of plain entries"] < 9
    assert min(value for what, value in fits.items() if "plain" not in what) > 200
    assert predict.implied_noise("spd", 40.1e-3, 1.0) == (0.0, math.inf)  # below sampling alone


@pytest.mark.parametrize("name", ["sphere", "spd"])
def test_tables_two_and_four_are_in_units_ten_times_as_large(name):
    key = (name, "variance")
    for mu, value in zip((*printed.MU, math.inf), printed.DISTANCE[key], strict=True):
        expected = predict.distance_at(*key, mu)
        assert math.isclose(value * printed.MEANT_UNIT[key], expected, rel_tol=0.08)
        assert math.isclose(10 * value * printed.PRINTED_UNIT[key], expected, rel_tol=0.08)


def test_exact_mu_is_not_what_is_printed():
    """mu* = mu(1 - sigma^2/6): at most 7e-5 below mu, where 1e-2 is printed."""
    distance = predict.published_sensitivity("sphere") / UNITS
    for mu, paper in zip(printed.MU, printed.EXACT_MU, strict=True):
        sigma = distance / mu
        low, high = predict.attained_mu(sigma, distance), tightest_mu(Sphere(2), "gaussian", sigma, distance)
        assert low <= high <= mu * (1 + 1e-8)
        assert math.isclose(low, predict.expanded_mu(sigma, distance), rel_tol=1e-7)
        assert abs(low - mu) < 1e-4 * mu
        assert paper <= mu


def test_printed_oct_numbers_bound_their_noise():
    """At mu = 0.1 twelve eigenvalues of at least sigma^2 are left of the volume."""
    first, second, third, *_, volume, _ = printed.OCT[0.1]
    sigma = (volume / math.sqrt(first * second * third)) ** (1 / 12)
    assert round(sigma, 4) == 0.0347


# -------------------------------------------------------------------- their method


def test_their_region_without_privacy_is_the_sandwich():
    X, ball = jiang2025.sphere_data(300, np.random.default_rng(3))
    region = jiang2025.published_region(X, ball, math.inf, 0)
    mean = frechet.mean(X, ball).value
    assert float(ball.space.dist(mean, ball.from_frame(region.mean[None])[0])) < 1e-9
    v = ball.space.log_coords(mean, X)
    assert math.isclose(region.effective_radius, math.sqrt(np.trace(np.cov(v.T)) / 300), rel_tol=0.03)
    assert region.contains(region.mean)
    assert not region.contains(ball.frame.exp_coords(region.mean, np.array([0.3, 0.0])))


def test_their_mean_has_their_noise():
    X, ball = jiang2025.spd_data(600, np.random.default_rng(3))
    data, rng = jiang2025.Published.of(X, ball), np.random.default_rng(0)
    origin = ball.frame.origin
    shift = ball.frame.log_coords(origin, data.mean)
    source = as_source(rng)
    means = np.array([data.release(0.5 / math.sqrt(3), source)[0] for _ in range(300)])
    noise = ball.frame.log_coords(origin, means) - shift
    assert math.isclose(noise.std(), 3.0 / 600 * math.sqrt(3) / 0.5, rel_tol=0.1)


def test_overlap_of_regions():
    def disc(center, radius):
        c = np.array(center)
        return occupations.Found(c, radius, lambda q: Sphere(2).dist(c, q) <= radius)

    samples = {name: np.array([[1.0, 0.0, 0.0]] * 3) for name in occupations.PAIR}
    grid = occupations.comparison_grid(samples)
    one, other = disc([1.0, 0.0, 0.0], 0.2), disc([math.cos(0.1), math.sin(0.1), 0.0], 0.4)
    assert occupations.overlap(one, other, grid) == (1.0, 0.0, 0.0)
    far = disc([math.cos(0.5), math.sin(0.5), 0.0], 0.2)
    assert occupations.overlap(one, far, grid) == (0.0, 1.0, 1.0)


def directions(n, rng, spread):
    """Points about a pole with unequal spreads: their mean direction is the pole."""
    v = np.concatenate([np.ones((n, 1)), spread * rng.standard_normal((n, 2)) * [1.0, 0.4]], axis=1)
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def test_regions_of_mean_directions_cover():
    """Of 600 samples 95 % cover, within 4 standard errors (0.9 %): a false alarm has 6e-5. Without 1/R they do not."""
    rng, pole = np.random.default_rng(0), np.array([1.0, 0.0, 0.0])
    covered, short = [], []
    for _ in range(600):
        X = directions(200, rng, 1.0)
        region = occupations.direction_region(X)
        covered.append(bool(region.contains(pole)))
        # The same region, shrunk by the length of the mean: what leaving out the factor 1/R would give.
        mean = X.mean(axis=0)
        apart = pole - region.mean * (pole @ region.mean)
        farther = region.mean * (pole @ region.mean) + apart / np.linalg.norm(mean)
        short.append(bool(region.contains(farther)))
    assert abs(np.mean(covered) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 600)
    assert np.mean(short) < 0.95 - 4 * math.sqrt(0.95 * 0.05 / 600)


def test_a_circular_cone_is_that_of_the_textbook():
    X = directions(60, np.random.default_rng(1), 0.5)
    region = occupations.direction_region(X, circular=True)
    mean = X.mean(axis=0)
    length = np.linalg.norm(mean)
    variance = (1 - ((X @ mean / length) ** 2).mean()) / (60 * length**2)
    angle = math.asin(math.sqrt(-math.log(0.05) * variance))
    across = np.linalg.svd(mean[None])[2][1]
    for factor, inside in ((0.999, True), (1.001, False)):
        q = math.cos(factor * angle) * mean / length + math.sin(factor * angle) * across
        assert bool(region.contains(q)) is inside
    assert not region.contains(-mean / length)


@pytest.mark.skipif(
    not (pathlib.Path(os.environ.get("DPM_DATA", "")) / occupations.FILE).is_file(), reason="needs the judgements"
)
def test_occupations_overlap_less_by_their_mean_directions():
    """39 % for ellipses and 18 % for cones, each direction outside the other region; 58 % for Fréchet means."""
    samples = occupations.load_criteria(pathlib.Path(os.environ["DPM_DATA"]) / occupations.FILE)
    grid = occupations.comparison_grid(samples)
    pair = [samples[name] for name in occupations.PAIR]
    ellipses, cones, frechet_means = (
        occupations.overlap(*map(make, pair), grid)
        for make in (
            occupations.direction_region,
            lambda X: occupations.direction_region(X, circular=True),
            occupations.plain_region,
        )
    )
    assert ellipses == (pytest.approx(0.388, abs=0.005), 1.0, 1.0)
    assert cones == (pytest.approx(0.186, abs=0.005), 1.0, 1.0)
    assert frechet_means[0] == pytest.approx(0.578, abs=0.005)
    assert frechet_means[1:] != (1.0, 1.0)


def test_a_sample_mean_can_follow_one_record():
    """Half of the others at each pole: the sample mean is that record, wherever it is on the equator."""
    rng = np.random.default_rng(0)
    grid = rng.standard_normal((20_000, 3))
    grid /= np.linalg.norm(grid, axis=1, keepdims=True)
    poles = np.repeat([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], 24, axis=0)
    for x in ([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]):
        X = np.concatenate([poles, [x]])
        around = np.concatenate([grid, [x]])
        cost = (Sphere(2).dist(around[:, None], X[None]) ** 2).sum(axis=1)
        assert cost.argmin() == len(grid)
        # And what is cut at pi/8 about it stays about it, so that the promise fails by half a turn.
        ball, sample = occupations.Ball(Sphere(2), np.array(x), math.pi / 8), X
        kept = frechet.mean(ball.clip(sample), ball).value
        assert float(Sphere(2).dist(np.array(x), kept)) < 1e-6
