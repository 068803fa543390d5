"""Covariance descriptors against a slow loop, and the balls that must hold every one of them (theory: descriptors)."""

import math
import os
import pathlib

import mpmath
import numpy as np
import pytest
from scipy import ndimage, optimize

import dpmanifold.data.descriptors as implementation
from dpmanifold import SPD, InvalidArgumentError, InvalidDataError
from dpmanifold.data import covariance_descriptors, descriptor_ball
from dpmanifold.data.descriptors import squared_radius_bound, trace_bound

ETAS = [1e-6, 1e-4, 1e-3]
SOBEL = np.outer([1, 2, 1], [1, 0, -1])
SECOND = np.outer([1, 4, 6, 4, 1], [1, 0, -2, 0, 1])
ATTACK_SIZE = (8, 8)


def slow_descriptor(image, eta, scale=1.0):
    """One image by scipy.ndimage and np.cov. With scale 255 the kernels run on whole numbers, without rounding."""
    image = np.asarray(image, dtype=float)
    gray = image if image.ndim == 2 else np.minimum(image @ [0.299, 0.587, 0.114], scale)
    ix, iy = (ndimage.convolve(gray, kernel, mode="reflect") / (4 * scale) for kernel in (SOBEL, SOBEL.T))
    ixx, iyy = (ndimage.convolve(gray, kernel, mode="reflect") / (32 * scale) for kernel in (SECOND, SECOND.T))
    height, width = gray.shape
    rows, columns = np.mgrid[:height, :width]
    intensities = [image] if image.ndim == 2 else list(np.moveaxis(image, -1, 0))
    features = [columns / (width - 1), rows / (height - 1), *(i / scale for i in intensities)]
    features += [abs(ix), abs(iy), abs(ixx), abs(iyy), np.hypot(ix, iy), np.arctan2(abs(ix), abs(iy))]
    return np.cov(np.reshape(features, (len(features), -1)), bias=True) + eta * np.eye(len(features))


def distance(ball, descriptors):
    assert ball.space == SPD(descriptors.shape[-1])
    return ball.distance_to_center(descriptors)


# Descriptors


@pytest.mark.parametrize("shape", [(6, 28, 28), (6, 5, 13), (6, 9, 5, 3), (3, 28, 28, 3)])
@pytest.mark.parametrize("eta", [1e-6, 1e-2])
def test_descriptors_equal_a_slow_loop_over_scipy_filters(shape, eta):
    images = np.random.default_rng(1).random(shape)
    expected = [slow_descriptor(image, eta) for image in images]
    np.testing.assert_allclose(covariance_descriptors(images, eta), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("levels", [2, 4, 256])
def test_bytes_equal_a_slow_loop_in_whole_numbers(levels):
    """With few levels gradients cancel at many pixels; there the angle is 0, whatever rounding leaves."""
    images = np.random.default_rng(2).integers(0, levels, (10, 12, 14)).astype(np.uint8) * (255 // (levels - 1))
    expected = [slow_descriptor(image, 1e-6, scale=255.0) for image in images]
    np.testing.assert_allclose(covariance_descriptors(images), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(20, 10, 11), (20, 10, 11, 3)])
def test_bytes_and_floats_of_the_same_images_agree(shape):
    images = np.random.default_rng(3).integers(0, 4, shape, dtype=np.uint8) * 71
    as_bytes = covariance_descriptors(images)
    np.testing.assert_allclose(covariance_descriptors(images / 255), as_bytes, rtol=0, atol=1e-14)
    single = (images / 255).astype(np.float32)
    np.testing.assert_allclose(covariance_descriptors(single), as_bytes, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(covariance_descriptors(single.astype(np.float64)), covariance_descriptors(single))


def test_rgb_descriptor_of_a_gray_image_repeats_its_intensity():
    images = np.random.default_rng(4).integers(0, 3, (8, 12, 10), dtype=np.uint8) * 120
    gray = covariance_descriptors(images) - 1e-6 * np.eye(9)
    rgb = covariance_descriptors(np.repeat(images[..., None], 3, axis=-1)) - 1e-6 * np.eye(11)
    which = [0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8]
    np.testing.assert_allclose(rgb, gray[:, which][:, :, which], rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", [(50, 9, 7), (50, 9, 7, 3)])
def test_chunks_do_not_matter(monkeypatch, shape):
    images = np.random.default_rng(5).random(shape)
    whole = covariance_descriptors(images)
    for values in (1, 5000, 10**9):
        monkeypatch.setattr(implementation, "CHUNK_VALUES", values)
        np.testing.assert_allclose(covariance_descriptors(images), whole, rtol=0, atol=1e-15)
    np.testing.assert_allclose(covariance_descriptors(images[7:8]), whole[7:8], rtol=0, atol=1e-15)


def test_memory_strides_and_empty_batches():
    images = np.random.default_rng(6).random((4, 8, 9))
    strided = np.asfortranarray(np.repeat(images, 2, axis=1))[:, ::2]
    expected = covariance_descriptors(images)
    np.testing.assert_allclose(covariance_descriptors(strided), expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(covariance_descriptors(images.tolist()), expected)
    before = images.copy()
    covariance_descriptors(images)
    np.testing.assert_array_equal(images, before)
    assert covariance_descriptors(images[:0]).shape == (0, 9, 9)
    assert covariance_descriptors(np.zeros((0, 8, 8, 3), np.uint8)).shape == (0, 11, 11)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_constant_image_has_the_variance_of_its_positions_only(value, channels):
    R = covariance_descriptors(np.full((1, 6, 11, *channels), value), eta=1e-3)[0]
    expected = np.full(len(R), 1e-3)
    expected[:2] += [12 / 120, 7 / 60]  # (w + 1)/(12 (w - 1)) of 11 columns, 6 rows
    np.testing.assert_allclose(R, np.diag(expected), rtol=0, atol=1e-15)


def test_transposed_image_swaps_the_axes_and_turns_the_angle():
    image = np.random.default_rng(7).random((9, 9))
    here, there = covariance_descriptors(np.stack([image, image.T])) - 1e-6 * np.eye(9)
    which = [1, 0, 2, 4, 3, 6, 5, 7, 8]
    sign = np.array([1.0] * 8 + [-1.0])  # the angle becomes pi/2 minus itself
    np.testing.assert_allclose(there, here[which][:, which] * np.outer(sign, sign), rtol=0, atol=1e-14)


# The facts the bounds rest on


def test_derivatives_are_at_most_1_to_the_last_bit_and_reach_it():
    rng = np.random.default_rng(8)
    below = np.nextafter(1.0, 0.0)
    images = rng.choice([0.0, np.nextafter(0.0, 1.0), 2.0**-53, 0.5, below, 1.0], (3000, 5, 5))
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)), mode="symmetric")
    stripes = np.tile([0.0, 0.0, 1.0, 1.0], 3)[None, None, :].repeat(12, axis=1)
    bars = np.tile([0.0, 1.0, 1.0, 1.0], 3)[None, None, :].repeat(12, axis=1)
    for derivative, extreme in ((implementation._slope, stripes), (implementation._bend, bars)):
        assert np.abs(derivative(padded)).max() <= 1
        assert np.abs(derivative(extreme)).max() == 1


def test_features_stay_within_the_intervals_of_the_theorem():
    images = np.random.default_rng(9).choice([0.0, 1.0], (400, 6, 6, 3))
    features = np.empty((400, 11, 6, 6))
    implementation._fill_features(features, images)
    assert features.min() >= 0
    assert (features.max(axis=(0, 2, 3)) <= [*[1.0] * 9, math.sqrt(5) / 2, math.pi / 2]).all()


def test_gradient_is_at_most_half_the_root_of_5_long():
    """The remark of the theory page: opposite corners cannot serve both derivatives."""
    corners = (np.arange(2**9)[:, None] >> np.arange(9)) & 1  # convex, so the maximum is at black and white pixels
    squared = (corners @ SOBEL.ravel() / 4) ** 2 + (corners @ SOBEL.T.ravel() / 4) ** 2
    assert squared.max() == 1.25


@pytest.mark.parametrize("side", [5, 6, 28, 100])
def test_variance_of_positions_on_a_grid(side):
    exact = np.var(np.arange(side) / (side - 1))
    assert math.isclose((side + 1) / (12 * (side - 1)), exact, rel_tol=1e-12)
    assert math.isclose(trace_bound(9, (side, 5)) - trace_bound(9) + 0.5, exact + 1 / 8, rel_tol=1e-12)


# The radius


@pytest.mark.parametrize(("channels", "eta", "radius", "math_page"), [
    ("gray", 1e-6, 20.1074, 20.13), ("gray", 1e-4, 13.2352, 13.25), ("gray", 1e-3, 9.8220, 9.84),
    ("rgb", 1e-6, 22.1636, 22.19), ("rgb", 1e-4, 14.5664, 14.59), ("rgb", 1e-3, 10.7935, 10.82),
])  # fmt: skip
def test_tight_radius(channels, eta, radius, math_page):
    ball = descriptor_ball(channels, eta)
    assert radius - 1e-4 < ball.radius <= radius < math_page  # a first, coarser search found the last column
    assert math_page - radius < 0.03
    assert ball.space == SPD({"gray": 9, "rgb": 11}[channels])
    assert ball == descriptor_ball(ball.space.size, eta)


@pytest.mark.parametrize("eta", [*ETAS, 1e-12, 1.0])
def test_published_radius(eta):
    for channels, k, norm in (("gray", 9, 12), ("rgb", 11, 14)):
        ball = descriptor_ball(channels, eta, bound="published")
        exact = math.sqrt(k) * max(abs(math.log(eta)), math.log(norm + eta))
        assert exact <= ball.radius <= exact + 2e-6
        np.testing.assert_array_equal(ball.center, np.eye(k))
        assert descriptor_ball(channels, eta).radius < 0.5 * ball.radius


def certificate(ball, eta, trace):
    """The dual value at 50 digits, by Lambert's function, minimised over nu by its own search."""
    k, c = ball.space.size, mpmath.mpf(float(ball.center[0, 0]))
    eta, trace = mpmath.mpf(eta), trace + mpmath.mpf("1e-15")  # the trace in doubles, rounded up

    def value(log_nu):
        nu = mpmath.exp(log_nu)
        inside = [eta]
        if nu * c / 2 < mpmath.exp(-1):
            inside.append(c * mpmath.exp(-mpmath.lambertw(-nu * c / 2, -1).real))
        return k * max(mpmath.log(x / c) ** 2 - nu * (x - eta) for x in inside) + nu * trace

    low, high = mpmath.mpf(-20), mpmath.log(1000 / c)
    for _ in range(120):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if value(first) < value(second) else (first, high)
    return value((low + high) / 2)


@pytest.mark.parametrize("image_size", [None, (28, 28)])
@pytest.mark.parametrize("eta", [*ETAS, 1e-12, 1e-9, 0.03, 1.0])
def test_radius_is_certified_in_50_digits(eta, image_size):
    with mpmath.workdps(50):
        for k in (9, 11):
            ball = descriptor_ball(k, eta, image_size=image_size)
            exact = certificate(ball, eta, mpmath.mpf(trace_bound(k, image_size)))
            assert exact <= mpmath.mpf(ball.radius) ** 2
            assert mpmath.sqrt(exact) > ball.radius - 1e-5


@pytest.mark.parametrize("eta", ETAS)
def test_dual_is_the_value_of_the_linear_program_and_the_centre_is_best(eta):
    """Spectra as probability measures: the supremum by linear programming on a grid, for centres near ours."""
    k, trace = 9, trace_bound(9)
    ball = descriptor_ball(k, eta)
    best = math.log(ball.center[0, 0])
    grid = np.geomspace(eta, eta + trace, 4001)

    def value(log_center):
        gain = k * (np.log(grid) - log_center) ** 2
        found = optimize.linprog(
            -gain, A_ub=(grid - eta)[None] / trace, b_ub=[1 / k], A_eq=np.ones((1, grid.size)), b_eq=[1.0]
        )
        return math.sqrt(-found.fun)

    assert ball.radius - 1e-4 < value(best) <= ball.radius
    assert all(value(best + shift) > ball.radius for shift in (-1.0, -0.1, 0.1, 1.0))


def test_any_dual_variable_bounds_every_spectrum():
    rng = np.random.default_rng(10)
    for _ in range(300):
        k, eta, trace = int(rng.integers(1, 12)), 10 ** rng.uniform(-8, 0), rng.uniform(0.1, 4)
        shares = rng.dirichlet(np.full(k, 10 ** rng.uniform(-2, 1)), 200) * trace
        equal = np.tril(np.ones((k, k))) / np.arange(1, k + 1)[:, None] * trace
        spectra = eta + np.concatenate([shares, equal])
        center = eta * (1 + trace / eta) ** rng.uniform(0.01, 1)
        squared = (np.log(spectra / center) ** 2).sum(axis=1).max()
        assert squared <= squared_radius_bound(k, eta, trace, center, touch=1 + rng.exponential(5))


# Images lie in the balls


def balls(k, eta, size):
    tight, published = descriptor_ball(k, eta), descriptor_ball(k, eta, bound="published")
    return [tight, published, descriptor_ball(k, eta, image_size=size)]


def extreme_images(height, width, rng):
    """Random, constant, checkered, striped, split and sparse images, as (n, h, w) bytes."""
    rows, columns = np.mgrid[:height, :width]
    made = [np.full((height, width), v) for v in (0, 1, 128, 255)]
    made += [255 * ((rows // a + columns // b) % 2) for a in (1, 2, 3, height) for b in (1, 2, 3, width)]
    made += [255 * (rows * columns % m == 0) for m in (2, 3, 4, 5)]
    made += [255 * (columns < width // 2), 255 * (rows < height // 2), 255 * (rows < columns), rows + columns]
    dot = np.zeros((height, width))
    dot[height // 2, width // 2] = 1
    made += [dot, 255 * dot]
    noise = [rng.integers(0, 256, (height, width)) for _ in range(20)]
    sparse = [255 * (rng.random((height, width)) < share) for share in (0.02, 0.1, 0.5, 0.9)]
    return np.stack([*made, *noise, *sparse]).astype(np.uint8)


@pytest.mark.parametrize("eta", [*ETAS, 1e-12, 1.0])
@pytest.mark.parametrize("size", [(5, 5), (8, 8), (28, 28), (7, 40)])
def test_extreme_images_lie_in_every_ball(eta, size):
    rng = np.random.default_rng(11)
    gray = extreme_images(*size, rng)
    mixed = np.stack([rng.permutation(gray) for _ in range(3)], axis=-1)
    for images, k in ((gray, 9), (mixed, 11)):
        R = covariance_descriptors(images, eta)
        trace = np.trace(R, axis1=1, axis2=2)
        # As much as rounding entries moves an eigenvalue.
        assert (np.linalg.eigvalsh(R)[:, 0] > eta * (1 - 1e-3) - k * np.finfo(float).eps * trace).all()
        assert trace.max() <= k * eta + trace_bound(k, size)
        for ball in balls(k, eta, size):
            assert ball.contains(R).all()


def attack(goal, rng, steps=60):
    """Flip single pixels of black and white images as long as `goal`, of descriptors, grows; return the best value."""
    images = rng.integers(0, 2, ATTACK_SIZE).astype(float)
    images[:, :4] *= rng.integers(0, 2)
    flips = np.eye(images.size).reshape(-1, *ATTACK_SIZE)
    best = -math.inf
    for _ in range(steps):
        candidates = np.abs(images - flips)
        values = goal(covariance_descriptors(candidates, eta=1e-3))
        if values.max() <= best:
            break
        best, images = float(values.max()), candidates[values.argmax()]
    return best


def test_adversarial_black_and_white_images_lie_in_every_ball():
    rng = np.random.default_rng(12)
    for ball in balls(9, 1e-3, ATTACK_SIZE):
        assert max(attack(ball.distance_to_center, rng) for _ in range(4)) <= ball.radius
    largest_trace = max(attack(lambda R: np.trace(R, axis1=1, axis2=2), rng) for _ in range(4)) - 9e-3
    assert 1.0 < largest_trace <= trace_bound(9, ATTACK_SIZE)


@pytest.mark.parametrize("name", ["mnist_test", "pneumoniamnist", "fashion_mnist_train_classes0to3"])
def test_real_images_lie_in_every_ball(name):
    """Runs where the environment variable DPM_DATA names a directory with these archives."""
    path = pathlib.Path(os.environ.get("DPM_DATA", "")) / f"{name}.npz"
    if "DPM_DATA" not in os.environ or not path.is_file():
        pytest.skip("DPM_DATA does not name a directory with this data set")
    with np.load(path) as archive:
        images = archive["test_images" if "test_images" in archive else "images"][:3000]
    R = covariance_descriptors(images)
    np.testing.assert_allclose(R[0], slow_descriptor(images[0], 1e-6, scale=255.0), rtol=0, atol=1e-12)
    for ball in balls(9, 1e-6, images.shape[1:3]):
        assert ball.contains(R).all()


# Refusals


@pytest.mark.parametrize(("images", "said"), [
    (np.zeros((8, 8)), r"got \(8, 8\). One gray image is images\[None\]"),
    (np.zeros((8, 8, 3)), r"One RGB image is images\[None\]"),
    (np.zeros((2, 8, 8, 1)), r"images\[..., 0\]"),
    (np.zeros((2, 8, 8, 4)), r"images\[..., :3\]"),
    (np.zeros((2, 3, 8, 8)), r"np.moveaxis\(images, 1, -1\)"),
    (np.zeros((2, 1, 8, 8)), r"images\[:, 0\]"),
    (np.zeros((2, 4, 8)), "at least 5 pixels"),
    (np.zeros((2, 8, 0)), "at least 5 pixels"),
    (np.zeros(7), "must have shape"),
    (np.zeros((2, 8, 8, 3, 1)), "must have shape"),
    (np.zeros((2, 8, 8), dtype=np.int64), "dtype int64. Divide by the largest"),
    (np.zeros((2, 8, 8), dtype=np.uint16), "65535"),
    (np.zeros((2, 8, 8), dtype=bool), r"astype\(float\)"),
    (np.zeros((2, 8, 8), dtype=np.float16), "Half precision"),
    (np.zeros((2, 8, 8), dtype=complex), "dtype complex128"),
    ("cat.png", "dtype"),
    ([np.zeros((8, 8)), np.zeros((9, 9))], "equal size"),
    (np.ma.masked_array(np.zeros((2, 8, 8))), "masked"),
])  # fmt: skip
def test_wrong_images_are_refused_with_a_remedy(images, said):
    with pytest.raises(InvalidDataError, match=said) as caught:
        covariance_descriptors(images)
    assert str(caught.value).startswith("images ")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-300, 1 + 1e-15, 255.0])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_values_outside_are_refused_with_their_index(value, channels):
    images = np.full((9, 6, 7, *channels), 0.5)
    images[4, 5, 6] = images[8, 0, 0] = value
    with pytest.raises(InvalidDataError, match=r"image at index 4 \(and 1 more\)"):
        covariance_descriptors(images)


@pytest.mark.parametrize("eta", [0, -1e-6, 1e-13, 1.5, math.nan, math.inf, "small", None, True])
def test_eta_out_of_range_is_refused(eta):
    for call in (lambda: covariance_descriptors(np.zeros((1, 8, 8)), eta), lambda: descriptor_ball("gray", eta)):
        with pytest.raises(InvalidArgumentError, match="eta must be"):
            call()


@pytest.mark.parametrize(("arguments", "said"), [
    ({"channels": "RGBA"}, "channels must be"),
    ({"channels": 3}, "channels must be"),
    ({"channels": None}, "channels must be"),
    ({"channels": [9]}, "channels must be"),
    ({"bound": "loose"}, 'bound must be "tight" or "published", got \'loose\''),
    ({"bound": None}, "bound must be"),
    ({"image_size": 28}, "image_size must be"),
    ({"image_size": (28,)}, "image_size must be"),
    ({"image_size": (28, 4)}, r"image_size must be .* got \(28, 4\)"),
    ({"image_size": (28, 28.0)}, "image_size must be"),
    ({"image_size": (28, 28), "bound": "published"}, "image_size sharpens"),
])  # fmt: skip
def test_wrong_ball_arguments_are_refused(arguments, said):
    with pytest.raises(InvalidArgumentError, match=said):
        descriptor_ball(**arguments)


def test_source_says_where_the_ball_comes_from():
    assert "gray images, eta = 1e-06: trace bound 2.867" in descriptor_ball().source
    sized = descriptor_ball("rgb", 1e-3, image_size=(28, 28))
    assert "RGB images, eta = 0.001: trace bound 3.046 for 28 x 28 pixels" in sized.source
    assert "Theorem A.7" in descriptor_ball("rgb", bound="published").source
