"""Arrays on a CUDA card: what is said without one, what a stand-in shows of the code around, what a card does."""

import math
import subprocess
import sys
import tomllib
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    Ball,
    Budget,
    CardError,
    frechet,
    linalg,
    private_class_means,
    private_mean,
)
from dpmanifold.data import covariance_descriptors
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.linalg import backend, backends
from dpmanifold.linalg.cards import CardArray, on_card, presence, streaming
from dpmanifold.linalg.cards.arrays import room_on_card
from dpmanifold.linalg.native import library
from dpmanifold.manifolds import Euclidean, Product
from dpmanifold.stats.content import content_of
from linalg.families import NAMES, family, relative_error, turned, with_truth
from linalg.stand_in_card import stand_in

needs_card = pytest.mark.skipif(
    not presence.available(), reason="needs a CUDA card and CuPy (pip install dpmanifold[gpu])"
)
needs_kernels = pytest.mark.skipif(not linalg.available(), reason="the kernels were not built here")
FLOOR = 1e-13


class Elsewhere:
    """All that is known of a tensor on a card where its library cannot be asked."""

    def __init__(self, kind=2):
        self._kind = kind

    def __dlpack_device__(self):
        return (self._kind, 0)

    def __len__(self):
        return 3

    def __array__(self, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def spd(n, k, seed=0):
    return family("condition 1e3", k, n, np.random.default_rng(seed))


# ---------------------------------------------------------------- without a card


def test_arrays_on_a_card_are_known_by_their_protocols():
    assert on_card(Elsewhere(2))
    assert on_card(Elsewhere(13))
    for other in (Elsewhere(1), Elsewhere(3), np.zeros(2), [1.0], "text", None, Elsewhere):
        assert not on_card(other)


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setattr(presence, "_found", lambda: (None, f"CuPy is not installed. Run: {presence.REMEDY}."))


ENTRIES = {
    "logm": lambda x: linalg.logm(x),
    "expm": lambda x: linalg.expm(x),
    "log_norm": lambda x: linalg.log_norm(x),
    "log_mean": lambda x: linalg.log_mean(x),
    "clipped_log_sums": lambda x: linalg.clipped_log_sums(x, tolerance=1e-6),
    "congruence": lambda x: linalg.congruence(np.eye(3), x),
    "mean": lambda x: frechet.mean(x, SPD(3)),
    "mean on a sphere": lambda x: frechet.mean(x, Euclidean(3)),
    "median": lambda x: frechet.median(x, SPD(3, metric="riemann")),
    "mean in a ball": lambda x: frechet.mean(x, Ball(SPD(3), np.eye(3), 1.0)),
    "private_mean": lambda x: private_mean(x, Ball(SPD(3), np.eye(3), 1.0), GDP(1.0), units=EACH_RECORD),
    "private_class_means": lambda x: private_class_means(
        x, ["a"] * 3, Ball(SPD(3), np.eye(3), 1.0), GDP(1.0), units=EACH_RECORD, classes=["a"]
    ),
    "descriptors": lambda x: covariance_descriptors(x),
    "points": lambda x: SPD(3).as_points(x, "p"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_array_on_a_card_without_cupy_is_refused_with_the_remedy(no_cupy, entry):
    with pytest.raises(InvalidArgumentError, match=r"(x|a|X|p|images) is an array on a CUDA card, got Elsewhere.*"
                       r"pip install \"dpmanifold\[gpu\]\".*cpu\(\)"):  # fmt: skip
        ENTRIES[entry](Elsewhere())


def test_the_cuda_backend_without_cupy_is_refused_with_the_remedy(no_cupy):
    assert "cuda" not in backends()
    with pytest.raises(InvalidArgumentError, match=r"got 'cuda'.*dpmanifold\[gpu\]"), backend("cuda"):
        pass
    with pytest.raises(CardError, match="no CUDA card can be used here"):
        presence.cupy_module()


def test_importing_the_package_does_not_import_cupy():
    code = "import sys, dpmanifold; import dpmanifold.data; assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_extra_and_the_sources_travel():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert any("cupy" in need for need in project["project"]["optional-dependencies"]["gpu"])
    left_out = project["tool"]["scikit-build"]["wheel"].get("exclude", [])
    assert not any(pattern.endswith("src/**") for pattern in left_out)


# ---------------------------------------------------------------- with a stand-in: the bits of the processor's kernels


@pytest.fixture
def card(monkeypatch):
    """Make arrays lie where numpy does not see them."""
    if not linalg.available():
        pytest.skip("the kernels were not built here")
    with stand_in(monkeypatch) as there:
        yield there


WEIGHTS = np.linspace(0.0, 1.0, 40) / 20
FUNCTIONS = {
    "logm": linalg.logm,
    "expm": lambda x: linalg.expm(x),
    "sqrtm": linalg.sqrtm,
    "invsqrtm": linalg.invsqrtm,
    "accurate": lambda x: linalg.logm(x, accurate=True),
    "log_norm": linalg.log_norm,
    "log_coordinates": linalg.log_coordinates,
    "log_mean": linalg.log_mean,
    "weighted": lambda x: linalg.log_mean(x, WEIGHTS),
    "log_euclidean_mean": linalg.log_euclidean_mean,
    "affine_distances": lambda x: linalg.affine_distances(x, np.eye(x.shape[-1]) * 2),
    "whitened": lambda x: linalg.whitened(np.eye(x.shape[-1]) / 2, x),
    "whitened_log_sum": lambda x: linalg.whitened_log_sum(np.eye(x.shape[-1]) / 2, x, WEIGHTS),
    "congruence": lambda x: linalg.congruence(np.ones((x.shape[-1],) * 2), x),
    "inspect": lambda x: linalg.inspect(x, 1e-6),
    "symmetrize_batch": linalg.symmetrize_batch,
    "clipped_log_sums": lambda x: summed(linalg.clipped_log_sums(x, radius=2.0, tolerance=1e-6)),
    "groups": lambda x: summed(linalg.clipped_log_sums(x, tolerance=1e-6, group=np.arange(len(x)) % 3)),
    "whitened_triangles": lambda x: triangles_of(x),
    "by a graded factor": lambda x: summed(by_graded_factor(x)),
}


def summed(found):
    return found.totals(), found.status, found.clipped


def triangles_of(x, **options):
    stored, found = linalg.whitened_triangles(x, np.eye(x.shape[-1]) / 2, 0, 100.0, tolerance=1e-6, **options)
    return stored[np.asarray(found.status) == 0], summed(found)


def by_graded_factor(x):
    """Whiten so that the factor and not the record decides how singular it looks: all of them are looked at twice."""
    inverse = np.diag(np.logspace(0, 7, x.shape[-1]))
    return linalg.whitened_triangles(x, inverse, 0, 100.0, tolerance=1e-6)[1]


def whole_numbers(words):
    """The integers of a sum, whichever way they are halved."""
    return [int(high) * 2**31 + int(low) for high, low in zip(*words, strict=True)]


def assert_same(one, other):
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        assert isinstance(one, (np.ndarray, int, float))
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("k", [2, 3, 9, 70])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_stand_in_card_gives_the_bits_of_the_processor(card, monkeypatch, function, k):
    monkeypatch.setattr(streaming, "BLOCK_BYTES", 999)
    monkeypatch.setattr("dpmanifold.linalg.cards.cuda_passes.BLOCK_BYTES", 999)
    x, f = spd(40, k), FUNCTIONS[function]
    expected = f(x)
    assert_same(f(card(x.copy())), expected)
    with backend("cuda"):
        assert linalg.level() == "cuda"
        assert_same(f(x), expected)
    half = card(np.repeat(x, 2, axis=0))[::2]  # not contiguous
    assert_same(f(half), expected)


@pytest.mark.parametrize("function", ["logm", "log_norm", "log_mean", "clipped_log_sums", "whitened_triangles"])
def test_bad_matrices_on_a_stand_in_card_are_found_by_index(card, function):
    x = spd(40, 3)
    x[[3, 17]] = -np.eye(3)
    if function != "logm":
        x[20, 0, 1] += 0.5
    f = FUNCTIONS[function]
    with np.errstate(all="ignore"):
        assert_same(f(card(x.copy())), f(x))


def test_single_precision_and_whole_numbers_are_converted_on_the_card(card):
    x = spd(40, 3).astype(np.float32)
    assert_same(linalg.log_mean(card(x)), linalg.log_mean(x.astype(np.float64)))
    whole = np.round(10 * spd(4, 2)).astype(np.int32) + 10 * np.eye(2, dtype=np.int32)
    assert_same(linalg.log_norm(card(whole)), linalg.log_norm(whole.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.complex128, bool])
def test_what_is_no_real_number_is_refused(card, dtype):
    with pytest.raises(InvalidArgumentError, match=r"got StandInArray of dtype (complex128|bool)\. Give real numbers"):
        linalg.logm(card(np.ones((2, 2, 2), dtype=dtype)))


def test_a_chosen_processor_fetches(card, monkeypatch):
    x = spd(40, 3)
    monkeypatch.setattr("dpmanifold.linalg.cards.cuda_passes.run", lambda asked: pytest.fail("the card was asked"))
    for name in library._on_processors():
        with backend(name):
            assert_same(linalg.log_mean(card(x)), linalg.log_mean(x))
            assert_same(frechet.mean(card(x), SPD(3)).value, frechet.mean(x, SPD(3)).value)
    assert linalg.level() != "cuda"
    assert backends()[-1] == "cuda"
    with backend("native"):
        assert linalg.level() == library._on_processors()[-1]


def test_slices_stay_and_picks_are_fetched(card):
    x = spd(9, 2)
    there = CardArray.of(card(x.copy()))
    assert isinstance(there[2:5], CardArray)
    assert there.shape == (9, 2, 2)
    assert len(there) == 9
    assert_same(there[np.array([1, 3])], x[[1, 3]])
    assert_same(there[np.arange(9) > 6], x[7:])
    assert_same(np.asarray(there[2:5]), x[2:5])
    there[np.array([0, 1])] = np.stack([np.eye(2)] * 2)
    assert_same(np.asarray(there)[:2], np.stack([np.eye(2)] * 2))


BALLS = {metric: Ball(SPD(3, metric=metric), np.eye(3) / 30, 6.0) for metric in ("logeuclid", "riemann")}


@pytest.mark.parametrize("metric", BALLS)
def test_frechet_means_of_a_stand_in_card_are_those_of_the_processor(card, metric):
    x, space, ball = spd(3000, 3), SPD(3, metric=metric), BALLS[metric]
    ids = np.arange(3000) % 7
    for options in ({"where": space}, {"where": ball}, {"where": ball, "units": ids}, {"where": space, "units": ids}):
        one, other = frechet.mean(card(x), **options), frechet.mean(x, **options)
        np.testing.assert_allclose(one.value, other.value, rtol=1e-9, atol=1e-12)
        if options["where"] is not space or metric == "logeuclid":
            assert_same(one.value, other.value)
        with backend("cuda"):
            np.testing.assert_allclose(frechet.mean(x, **options).value, other.value, rtol=1e-9, atol=1e-12)
    weights = np.linspace(0.0, 1.0, 3000)
    assert_same(frechet.mean(card(x), ball, weights=weights).value, frechet.mean(x, ball, weights=weights).value)
    np.testing.assert_allclose(frechet.variance(card(x), space), frechet.variance(x, space), rtol=1e-9)
    assert_same(
        frechet.unit_points(card(x), ball, units=None).array(), frechet.unit_points(x, ball, units=None).array()
    )


def test_a_mean_without_a_ball_fetches_no_record(card, monkeypatch):
    x = spd(3000, 3)
    there = card(x)
    monkeypatch.setattr(CardArray, "__array__", lambda *_, **__: pytest.fail("records were fetched"))
    frechet.mean(there, SPD(3))
    found = frechet.mean(there, SPD(3, metric="riemann"), tol=1e-10)
    assert found.residual < 1e-10
    frechet.mean(there, BALLS["logeuclid"])
    frechet.mean(there, BALLS["riemann"])


def test_bad_records_on_a_card_are_refused_by_index(card):
    x = spd(300, 3)
    x[17] = -np.eye(3)
    for where in (SPD(3), SPD(3, metric="riemann"), *BALLS.values()):
        with pytest.raises(InvalidDataError, match=r"at index 17 is not positive definite"):
            frechet.mean(card(x), where)


@pytest.mark.parametrize("metric", BALLS)
@pytest.mark.parametrize("units", [EACH_RECORD, np.arange(600) % 50])
def test_releases_of_a_stand_in_card_are_those_of_the_processor(card, metric, units):
    x, ball = spd(600, 3), BALLS[metric]
    x[5:50:3] *= 1e6  # outside
    x[7] = -np.eye(3)
    options = {"units": units, "invalid": "center", "rng": 3}
    one, other = private_mean(card(x), ball, GDP(1.0), **options), private_mean(x, ball, GDP(1.0), **options)
    assert_same(one.value, other.value)
    labels = ["a", "b"] * 300
    options["classes"] = ["a", "b"]
    many = [private_class_means(y, labels, ball, GDP(1.0), **options) for y in (card(x), x)]
    for name in "ab":
        assert_same(many[0][name].value, many[1][name].value)


IDS, LABELS = np.arange(600) % 50, np.array(["a", "b"])[np.arange(600) % 2]
PRIVATE = {
    "ball": lambda x, ball, **o: dpm.private_ball(x, ball, GDP(2.0), **o),
    "components": lambda x, ball, **o: dpm.private_pga(x, ball, GDP(2.0), **o),
    "interval": lambda x, ball, **o: dpm.private_variance_interval(x, ball, GDP(2.0), **o),
    "median": lambda x, ball, **o: dpm.private_median(x, ball, GDP(2.0), **o),
    "region": lambda x, ball, **o: dpm.private_region(x, ball, GDP(2.0), **o),
    "variance": lambda x, ball, **o: dpm.private_variance(x, ball, GDP(2.0), **o),
    "refined": lambda x, ball, **o: private_mean(x, ball, GDP(2.0), refine=True, **o),
    "regression": lambda x, ball, **o: dpm.private_regression(
        x, np.linspace(0.0, 1.0, 600), ball, GDP(2.0), covariate_range=(0.0, 1.0), refine=True, **o
    ),
    "classes": lambda x, ball, **o: dpm.private_lda(x, LABELS, ball, GDP(2.0), classes=["a", "b"], **o),
    "groups": lambda x, ball, **o: dpm.private_k_sample_test(x, LABELS, ball, GDP(2.0), classes=["a", "b"], **o),
    "test": lambda x, ball, **o: dpm.private_two_sample_test(
        x[:300], x[300:], ball, GDP(2.0), **{**o, "units": EACH_RECORD}
    ),
}


def narrow(n, k):
    rng = np.random.default_rng(0)
    return turned(np.exp(0.3 * rng.standard_normal((n, k))), rng)


@pytest.mark.parametrize("units", [EACH_RECORD, IDS], ids=["records", "units"])
@pytest.mark.parametrize("metric", BALLS)
@pytest.mark.parametrize("call", PRIVATE)
def test_every_private_call_takes_arrays_on_a_card(card, call, metric, units):
    x, ball = narrow(600, 3), Ball(SPD(3, metric=metric), np.eye(3), 2.0)
    one, other = (PRIVATE[call](y, ball, units=units, rng=1, confirm=True) for y in (card(x), x))
    assert [repr(value) for value in vars(one).values()] == [repr(value) for value in vars(other).values()]


def test_estimators_take_arrays_on_a_card(card):
    estimators = pytest.importorskip("dpmanifold.estimators")
    x, ball = narrow(600, 3), Ball(SPD(3), np.eye(3), 2.0)
    means = [
        estimators.PrivateFrechetMean(ball, GDP(1.0), units=EACH_RECORD, random_state=1, public_data=True).fit(y)
        for y in (card(x), x)
    ]
    assert_same(means[0].release_.value, means[1].release_.value)
    classifiers = [
        estimators.PrivateMDM(
            ball, GDP(1.0), classes=["a", "b"], units=EACH_RECORD, random_state=1, public_data=True
        ).fit(y, LABELS)
        for y in (card(x), x)
    ]
    assert_same(classifiers[0].predict(card(x)) == classifiers[1].predict(x), np.ones(600, dtype=bool))


def test_a_fingerprint_does_not_tell_where_records_lie(card):
    x, ball = narrow(600, 3), Ball(SPD(3), np.eye(3), 2.0)
    one, other = (b"".join(content_of(y, ball, EACH_RECORD)()) for y in (card(x), x))
    assert one == other


def test_other_spaces_fetch(card):
    x = np.random.default_rng(0).standard_normal((50, 3))
    assert_same(frechet.mean(card(x), Euclidean(3)).value, frechet.mean(x, Euclidean(3)).value)
    space, y = Product([SPD(2), SPD(2)]), spd(20, 2)
    pairs = (card(y[:10]), card(y[10:]))
    ball = Ball(space, np.stack([np.eye(2)] * 2), 30.0)
    one, other = (private_mean(z, ball, GDP(1.0), units=EACH_RECORD, rng=1) for z in (pairs, (y[:10], y[10:])))
    assert_same(one.value, other.value)
    large = spd(5, 70)
    assert_same(frechet.mean(card(large), SPD(70)).value, frechet.mean(large, SPD(70)).value)


def test_a_card_without_memory_is_told_before_anything_is_spent(monkeypatch):
    if not linalg.available():
        pytest.skip("the kernels were not built here")
    x = spd(3000, 3)
    budget = Budget(GDP(1.0))
    with stand_in(monkeypatch, memory=1000) as there:
        for ball in BALLS.values():
            with pytest.raises(CardError, match="the card has no memory left") as told:
                private_mean(there(x), ball, GDP(0.5), units=EACH_RECORD, budget=budget)
            assert told.value.__suppress_context__
    assert budget.spent is None or budget.spent == Budget(GDP(1.0)).spent


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 9, 8), (7, 9, 8, 3)])
def test_descriptors_on_a_stand_in_card(card, shape, dtype):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, shape).astype(np.uint8) if dtype == np.uint8 else rng.random(shape).astype(dtype)
    expected = covariance_descriptors(images)
    assert_same(covariance_descriptors(card(images.copy())), expected)
    with backend("cuda"):
        assert_same(covariance_descriptors(images), expected)
    with backend("numpy"):
        np.testing.assert_allclose(covariance_descriptors(card(images)), expected, atol=1e-12)
    wide = (rng.random((2, 170, 180)) * 255).astype(np.uint8)  # more than a block's shared memory
    assert_same(covariance_descriptors(card(wide)), covariance_descriptors(wide))
    if dtype != np.uint8:
        images[3].flat[0] = math.nan
        with pytest.raises(InvalidDataError, match="the image at index 3 has others or NaN"):
            covariance_descriptors(card(images))


# ---------------------------------------------------------------- on a card


def there(x):
    import cupy

    return cupy.asarray(x)


EXACT = {
    "logm": (linalg.logm, mp.log),
    "sqrtm": (linalg.sqrtm, mp.sqrt),
    "invsqrtm": (linalg.invsqrtm, lambda x: 1 / mp.sqrt(x)),
}


def assert_as_accurate_as_lapack(name, k, n, function="logm"):
    ours, f = EXACT[function]
    x, truth = with_truth(name, k, n, f, np.random.default_rng(7))
    least = 1.0 if function == "logm" else 0.0
    with backend("numpy"):
        theirs = max(relative_error(a, b, least) for a, b in zip(ours(x), truth, strict=True))
    error = max(relative_error(a, b, least) for a, b in zip(ours(there(x)), truth, strict=True))
    assert error <= max(3 * theirs, FLOOR), f"{error:.1e}, LAPACK {theirs:.1e}"


@needs_card
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 9, 11])
def test_the_card_is_as_accurate_as_lapack(name, k):
    assert_as_accurate_as_lapack(name, k, 24 if name in ("diagonal", "graded") else 4)


@needs_card
@pytest.mark.parametrize("function", ["sqrtm", "invsqrtm"])
@pytest.mark.parametrize("name", ["condition 1", "condition 1e6", "condition 1e12", "repeated", "tiny", "huge"])
@pytest.mark.parametrize("k", [2, 3, 4, 9])
def test_roots_on_the_card_are_as_accurate_as_lapack(name, k, function):
    assert_as_accurate_as_lapack(name, k, 2, function)


@pytest.mark.slow
@needs_card
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [16, 30, 48, 64])
def test_large_logarithms_on_the_card_are_as_accurate_as_lapack(name, k):
    assert_as_accurate_as_lapack(name, k, 3 if k <= 30 else 1)


@needs_card
@pytest.mark.parametrize("k", range(2, 65))
def test_every_size_on_the_card_is_near_the_processor(k):
    x = spd(70, k)
    for function in ("logm", "sqrtm", "log_norm", "log_coordinates", "whitened_triangles", "inspect"):
        f = FUNCTIONS[function]
        assert_near(f(there(x)), f(x), 1e-10)
    small = x / 10
    assert_near(linalg.expm(there(small)), linalg.expm(small), 1e-12)


def assert_near(one, other, tolerance):
    if isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            assert_near(a, b, tolerance)
    elif np.asarray(other).dtype.kind in "biu":
        assert_same(one, other)
    else:
        size = float(np.abs(other).max(initial=1.0))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * size)


@needs_card
@pytest.mark.parametrize("function", sorted(FUNCTIONS))
@pytest.mark.parametrize("k", [2, 3, 9, 30])
def test_functions_on_the_card_are_near_the_processor(function, k):
    x = spd(40, k)
    f = FUNCTIONS[function]
    assert_near(f(there(x)), f(x), 1e-9)


@needs_card
@pytest.mark.parametrize("k", [2, 3, 5, 9, 16, 30, 64])
def test_bits_do_not_tell_which_others_are_left_out(k):
    """Whether all rows are taken or some, which may depend on other people's data: a unit's sum has the same bits."""
    x = linalg.pack_triangles(spd(90, k))
    group = np.arange(90) % 3
    factors = np.stack([np.eye(k), 2 * np.eye(k), np.eye(k) / 3])
    powers = np.arange(3)
    every = linalg.gradient_sums(there(x), factors, powers, 30.0, group=group)
    rows = np.flatnonzero(group == 1)
    one = linalg.gradient_sums(there(x), factors, powers, 30.0, group=group, rows=rows)
    assert whole_numbers(one.words[1]) == whole_numbers(every.words[1])
    assert not np.array_equal(one.words[0], every.words[0])


@needs_card
@pytest.mark.parametrize("k", [2, 3, 9, 30])
def test_bits_depend_on_nothing_but_the_matrix(monkeypatch, k):
    """Twice, in other blocks, from the host, alone, in another order: the same bits."""
    x = spd(1000, k)
    order = np.random.default_rng(1).permutation(1000)
    group = np.arange(1000) % 7
    outcomes = []
    for blocks in (2**26, 50_000):
        monkeypatch.setattr("dpmanifold.linalg.cards.cuda_passes.BLOCK_BYTES", blocks)
        for _ in range(2):
            outcomes.append((linalg.log_norm(there(x)), linalg.logm(there(x)), linalg.log_mean(there(x))))
        with backend("cuda"):
            outcomes.append((linalg.log_norm(x), linalg.logm(x), linalg.log_mean(x)))
        outcomes.append((
            linalg.log_norm(there(x[order]))[np.argsort(order)],
            linalg.logm(there(x[order]))[np.argsort(order)],
            linalg.log_mean(there(x[order])),
        ))  # fmt: skip
    for one in outcomes[1:]:
        assert_same(one, outcomes[0])
    assert_same(linalg.logm(there(x[17:18])), outcomes[0][1][17:18])
    sums = [
        linalg.clipped_log_sums(y, radius=1.0, tolerance=1e-6, group=g).sums.words
        for y, g in ((there(x), group), (there(x[order]), group[order]))
    ]
    assert_same(sums[0], sums[1])
    for number in range(7):
        alone = linalg.clipped_log_sums(there(x[group == number]), radius=1.0, tolerance=1e-6).sums.words[0]
        assert whole_numbers(alone) == whole_numbers(sums[0][number])


@needs_card
@pytest.mark.parametrize("k", [2, 3, 5, 9, 64])
def test_bad_matrices_on_the_card_are_found_by_index(k):
    x = spd(300, k)
    x[3] = -np.eye(k)
    x[17, 0, 0] = math.nan
    x[100, 1, 0] += 0.5
    x[299] = math.inf
    uneven, doubtful = linalg.inspect(there(x), 1e-6)
    expected = linalg.inspect(x, 1e-6)
    assert_same(np.flatnonzero(doubtful)[[0, -1]], np.array([3, 299]))
    assert_same(uneven, expected[0])
    with np.errstate(all="ignore"):
        assert_same(
            linalg.clipped_log_sums(there(x), radius=1.0, tolerance=1e-6).status,
            linalg.clipped_log_sums(x, radius=1.0, tolerance=1e-6).status,
        )


@needs_card
def test_gradients_of_groups_on_the_card():
    x = spd(500, 4)
    stored, _ = linalg.whitened_triangles(x, np.eye(4), 0, 20.0, tolerance=1e-6)
    bases = spd(5, 4, seed=1)
    inverse, power = linalg.affine_factors(bases)
    group, rows = np.arange(500) % 5, np.arange(0, 500, 3)
    options = {"group": group, "rows": rows}
    one, other = (linalg.gradient_sums(y, inverse, power, 30.0, **options).total() for y in (there(stored), stored))
    assert_near(one, other, 1e-9)
    with backend("cuda"):
        assert_same(linalg.gradient_sums(stored, inverse, power, 30.0, **options).total(), one)


@needs_card
def test_moved_triangles_stay_or_come_home():
    x = CardArray.of(there(spd(200, 3)))
    places = np.random.default_rng(0).permutation(200)
    kept, _ = linalg.whitened_triangles(
        x, np.eye(3) / 2, 0, 20.0, tolerance=1e-6, out=room_on_card((200, 6)), places=places
    )
    assert isinstance(kept, CardArray)
    home, _ = linalg.whitened_triangles(x, np.eye(3) / 2, 0, 20.0, tolerance=1e-6, places=places)
    assert_same(np.asarray(kept), home)
    with backend("cuda"):
        sent, _ = linalg.whitened_triangles(np.asarray(x), np.eye(3) / 2, 0, 20.0, tolerance=1e-6, places=places)
    assert_same(sent, home)


@needs_card
def test_torch_and_cupy_arrays_of_any_form():
    import cupy

    x = spd(300, 3)
    expected = linalg.log_norm(there(x))
    turned_round = cupy.asfortranarray(cupy.asarray(x))
    assert_same(linalg.log_norm(turned_round), expected)
    assert_same(linalg.log_norm(cupy.asarray(np.repeat(x, 2, axis=0))[::2]), expected)
    single = x.astype(np.float32)
    assert_same(linalg.log_norm(cupy.asarray(single)), linalg.log_norm(cupy.asarray(single.astype(np.float64))))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        late = cupy.asarray(x) * 2
    np.testing.assert_allclose(linalg.log_mean(late), linalg.log_mean(2 * x), atol=1e-12)
    torch = pytest.importorskip("torch")
    tensor = torch.as_tensor(x, device="cuda")
    assert_same(linalg.log_norm(tensor), expected)
    assert_same(linalg.log_norm(tensor.clone().requires_grad_()), expected)
    assert_same(frechet.mean(tensor, SPD(3)).value, frechet.mean(there(x), SPD(3)).value)
    with pytest.raises(InvalidArgumentError, match="Give real numbers"):
        linalg.log_norm(tensor.to(torch.complex128))


@needs_card
@pytest.mark.parametrize("k", [3, 9])
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_means_and_releases_on_the_card_are_near_the_processor(metric, k):
    x, space = narrow(3000, k), SPD(k, metric=metric)
    ball = Ball(space, np.eye(k), 2.0)
    for where in (space, ball):
        one, other = frechet.mean(there(x), where), frechet.mean(x, where)
        np.testing.assert_allclose(one.value, other.value, rtol=1e-8, atol=1e-10)
    for units in (EACH_RECORD, np.arange(3000) % 100):
        one, other = (private_mean(y, ball, GDP(1.0), units=units, rng=1).value for y in (there(x), x))
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    repeated = [private_mean(there(x), ball, GDP(1.0), units=EACH_RECORD, rng=1).value for _ in range(2)]
    assert_same(repeated[0], repeated[1])
    shuffled = np.random.default_rng(0).permutation(3000)
    assert_same(private_mean(there(x[shuffled]), ball, GDP(1.0), units=EACH_RECORD, rng=1).value, repeated[0])


@needs_card
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(70, 28, 28), (30, 32, 35, 3), (3, 5, 5)])
def test_descriptors_on_the_card(shape, dtype):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, shape).astype(np.uint8) if dtype == np.uint8 else rng.random(shape).astype(dtype)
    one, other = covariance_descriptors(there(images)), covariance_descriptors(images)
    np.testing.assert_allclose(one, other, atol=1e-13)
    with backend("cuda"):
        assert_same(covariance_descriptors(images), one)
    assert_same(covariance_descriptors(there(images)), one)


@pytest.mark.parametrize("k", [2, 3, 9])
def test_singular_matrices_on_a_stand_in_card_add_nothing_whatever_whitens_them(card, k):
    x = spd(40, k) * 1e-16
    x[::4] = np.diag([1.0, *np.full(k - 1, 0.1 * 2.0**-52)])  # harmless once its first entry is made small
    inverse = np.diag([1.0, *np.full(k - 1, 2.0**26)])
    found, here = (linalg.whitened_triangles(y, inverse, 0, 300.0, tolerance=1e-6)[1] for y in (card(x.copy()), x))
    assert found.faulty_places.tolist() == list(range(0, 40, 4))
    np.testing.assert_array_equal(found.sums.words, here.sums.words)
    alone = linalg.whitened_triangles(np.delete(x, np.s_[::4], axis=0), inverse, 0, 300.0, tolerance=1e-6)[1]
    np.testing.assert_array_equal(found.sums.total(), alone.sums.total())
