"""Covariance descriptors of images: one SPD matrix per image, of size 9 (gray) or 11 (RGB).

What is done to one image depends on that image alone, so a descriptor costs no privacy. Not a general feature
extractor: the features are those of Utpala, Vepakomma and Miolane (2023), for which the bounds are proved (theory:
descriptors).

The public ball that holds every descriptor rests on what images are (values in [0, 1]) and on what the features are,
never on data. Two bounds: the published one, a ball about the identity, and one of about half that radius, which halves
the noise of every mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sized
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from dpmanifold._check import Array, FloatArray, index_text, positive_float, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.linalg import symmetrize
from dpmanifold.linalg.cards import CardArray, fetched, on_card
from dpmanifold.linalg.cards.descriptor_kernels import outside
from dpmanifold.linalg.native import passes
from dpmanifold.manifolds import SPD

GRAY_SIZE = 9
RGB_SIZE = 11

# The kernel of the second derivative spans 5 pixels. Smaller images would be mostly reflections; and one RGB image
# of shape (h, w, 3), given without its batch axis, would pass for gray images 3 pixels wide.
SMALLEST_SIDE = 5

# Below, the rounding of a covariance (about 1e-15) is no longer small beside eta; above, eta drowns every feature.
SMALLEST_ETA, LARGEST_ETA = 1e-12, 1.0

# Types of pixels that the compiled kernels read as they are.
_COMPILED = (np.uint8, np.float32, np.float64)

# ITU-R BT.601: how the gray image behind an RGB image's derivatives is mixed.
_LUMA = np.array([0.299, 0.587, 0.114])

# A gradient shorter than this is flat ground and its angle 0. The angle jumps at gradient 0, so what rounding leaves
# of a cancelled difference (6e-8 in float32) must not count; the smallest step of a 16-bit image (4e-6) must.
_FLAT = 2.0**-20

# Feature values held at once, unless a single image has more: 1 MB. From 2 MB on the allocator returns every temporary
# to the system and asks for fresh pages, which costs a third more time.
CHUNK_VALUES = 2**17


def covariance_descriptors(images: npt.ArrayLike, eta: float = 1e-6) -> FloatArray:
    """Return the covariance descriptors of images; (n, h, w) -> (n, 9, 9) or (n, h, w, 3) -> (n, 11, 11).

    At each pixel stand the features x, y, I, |Ix|, |Iy|, |Ixx|, |Iyy|, sqrt(Ix^2 + Iy^2), arctan2(|Ix|, |Iy|); RGB
    images have three intensities I, and derivatives of their gray mixture (0.299, 0.587, 0.114). The descriptor is
    the features' covariance over the pixels (divided by their number) plus `eta` times the identity.

    - x = column / (w - 1) and y = row / (h - 1) lie in [0, 1].
    - Ix, Iy: the 3 x 3 Sobel kernel over 4. Ixx, Iyy: (1, 4, 6, 4, 1) across (1, 0, -2, 0, 1), over 32. All four stay
      in [-1, 1], rounding included.
    - Beyond the border the image is reflected about its edge, `d c b a | a b c d | d c b a`: scipy.ndimage's default
      "reflect". The paper does not say; the bounds hold for every padding with values in [0, 1].
    - The angle is 0 where the gradient is shorter than 2^-20, which is rounding and not an edge.

    Parameters
    ----------
    images : uint8 (divided by 255) or float in [0, 1]; at least 5 x 5 pixels. A uint8 mask of zeros and ones is a very
        faint image: give `mask.astype(float)`
    eta : in [1e-12, 1]; the smallest eigenvalue of a descriptor is at least this. It is public, and the ball depends
        on it: give `descriptor_ball` the same

    Returns
    -------
    Symmetric positive definite float64 matrices. Memory beyond them is a few MB, or what one image needs.

    Notes
    -----
    Theory: descriptors, section 9.

    Examples
    --------
    >>> images = np.zeros((2, 8, 8), dtype=np.uint8)
    >>> images[1, :, 4:] = 255
    >>> R = covariance_descriptors(images)
    >>> R.shape
    (2, 9, 9)
    >>> round(float(R[1, 2, 2]), 6), round(float(R[0, 2, 2]), 6)      # variance of the intensity: a half image, a blank
    (0.250001, 1e-06)
    """
    eta = checked_eta(eta)
    array = _checked_images(images)
    height, width = array.shape[1:3]
    if array.dtype in _COMPILED and passes.describes(array):
        columns, rows = np.linspace(0.0, 1.0, width), np.linspace(0.0, 1.0, height)
        return passes.describe(array, eta, columns, rows)
    array = fetched(array)
    size = GRAY_SIZE if array.ndim == 3 else RGB_SIZE
    result = np.empty((len(array), size, size))
    step = max(1, min(len(array), CHUNK_VALUES // (size * height * width)))
    buffer = np.empty((step, size, height, width))  # made once, for the same reason
    for start in range(0, len(array), step):
        chunk = array[start : start + step]
        chunk = chunk / 255.0 if chunk.dtype == np.uint8 else chunk.astype(np.float64)
        features = buffer[: len(chunk)]
        _fill_features(features, chunk)
        centred = features.reshape(len(chunk), size, height * width)
        centred -= centred.mean(axis=-1, keepdims=True)
        products = centred @ np.swapaxes(centred, -1, -2)
        result[start : start + step] = symmetrize(products / (height * width))
    diagonal = np.arange(size)
    result[:, diagonal, diagonal] += eta
    return result


def checked_eta(eta: object) -> float:
    """Return `eta` as a float in the supported range, or say what is wrong with it.

    Examples
    --------
    >>> checked_eta(1e-6)
    1e-06
    """
    number = positive_float(eta, "eta")
    if not SMALLEST_ETA <= number <= LARGEST_ETA:
        raise InvalidArgumentError(
            "eta must be from {smallest_eta:g} to {largest_eta:g}, got {number:g}: below, rounding would "
            "decide the smallest eigenvalues; above, nothing of the image would be left. 1e-6 is usual, 1e-3 "
            "gives a smaller ball.",
            smallest_eta=Public(SMALLEST_ETA),
            largest_eta=Public(LARGEST_ETA),
            number=Public(number),
        )
    return number


def _checked_images(images: object) -> Array:
    """Return images as an array of the dtype they came in, after refusing everything the bounds do not cover."""
    if np.ma.isMaskedArray(images):
        raise InvalidDataError("images is a masked array, whose mask would be ignored. Select whole images first.")
    if on_card(images):
        return _checked_on_card(CardArray.of(images, "images"))
    try:
        array: npt.NDArray[Any] = np.asarray(images)
    except ValueError as problem:
        raise InvalidDataError(
            "images must be one array of images of equal size, got a ragged sequence. Resize or crop them first."
        ) from problem
    _refuse_dtype(array)
    _refuse_shape(array.shape)
    # NaN passes through min and max, and fails both comparisons; no temporary as large as the data.
    if array.size and array.dtype.kind == "f" and not (array.min() >= 0 and array.max() <= 1):
        per_image = array.reshape(len(array), -1)
        _refuse_range(~((per_image.min(axis=1) >= 0) & (per_image.max(axis=1) <= 1)))
    return array


def _checked_on_card(images: CardArray) -> Array:
    """Do the same where images lie on a card, without fetching them."""
    _refuse_dtype(images)
    _refuse_shape(images.shape)
    if images.size and images.dtype.kind == "f":
        bad = outside(images)
        if bad.any():
            _refuse_range(bad)
    return images  # type: ignore[return-value]  # the kernels take either


def _refuse_range(bad: Array) -> None:
    raise InvalidDataError(
        "images must have values in [0, 1] when given as floats; the image{index_text} has others or NaN. "
        "Divide by the largest possible value (255 for 8-bit images), np.clip what resizing overshot, or "
        "drop it.",
        index_text=Public(index_text(bad)),
    )


def _refuse_dtype(array: Array | CardArray) -> None:
    """Refuse dtypes whose scale is unknown, and those too coarse to tell flat ground from an edge."""
    if array.dtype == np.uint8 or (array.dtype.kind == "f" and array.dtype.itemsize >= 4):
        return
    remedies = {
        "f": "Half precision turns flat areas into edges: give the original uint8, or float32",
        "b": "Give images.astype(float)",
    } | dict.fromkeys("iu", "Divide by the largest possible value (255 or 65535), or give 8-bit images as uint8")
    raise InvalidDataError(
        "images must be uint8, or float in [0, 1], got dtype {dtype}. {remedy}.",
        dtype=array.dtype,
        remedy=Public(remedies.get(array.dtype.kind, "Give numbers in one array")),
    )


def _refuse_shape(shape: tuple[int, ...]) -> None:
    """Refuse shapes that are not a batch of gray or RGB images, with the likeliest repair."""
    axes, last = len(shape), shape[-1] if shape else 0
    remedies = (
        (axes == 3 and last == 3, "One RGB image is images[None]"),
        (axes == 2, "One gray image is images[None]"),
        (axes == 4 and last == 1, "Drop the last axis: images[..., 0]"),
        (axes == 4 and last == 4, "Drop the transparency: images[..., :3]"),
        (axes == 4 and shape[1] == 3 and last != 3, "Move the channels last: np.moveaxis(images, 1, -1)"),
        (axes == 4 and shape[1] == 1 and last != 3, "Drop axis 1: images[:, 0]"),
        (True, f"Both sides need at least {SMALLEST_SIDE} pixels"),
    )
    known = axes == 3 or (axes == 4 and last == 3)
    if not known or min(shape[1:3]) < SMALLEST_SIDE:
        raise InvalidDataError(
            "images must have shape (n, h, w) or (n, h, w, 3), h and w at least {smallest_side}, got {shape}. "
            "{remedy}.",
            smallest_side=Public(SMALLEST_SIDE),
            shape=Public(shape),
            remedy=Public(next(remedy for fits, remedy in remedies if fits)),
        )


def _fill_features(features: FloatArray, intensities: FloatArray) -> None:
    """Write the features of a chunk, (m, h, w) or (m, h, w, 3), into `features`, (m, size, h, w)."""
    size, height, width = features.shape[1:]
    features[:, 0] = np.linspace(0.0, 1.0, width)
    features[:, 1] = np.linspace(0.0, 1.0, height)[:, None]
    if size == GRAY_SIZE:
        gray = intensities
        features[:, 2] = gray
    else:
        features[:, 2:5] = np.moveaxis(intensities, -1, 1)
        # The weights add up to 1, their rounded sum may exceed it: the bounds want at most 1.
        gray = np.minimum(intensities @ _LUMA, 1.0)
    slope_x, slope_y, bend_x, bend_y, length, angle = (features[:, i] for i in range(size - 6, size))
    # numpy's "symmetric" is scipy's "reflect".
    padded = np.pad(gray, ((0, 0), (2, 2), (2, 2)), mode="symmetric")
    turned = np.swapaxes(padded, 1, 2)
    np.abs(_slope(padded), out=slope_x)
    np.abs(np.swapaxes(_slope(turned), 1, 2), out=slope_y)
    np.abs(_bend(padded), out=bend_x)
    np.abs(np.swapaxes(_bend(turned), 1, 2), out=bend_y)
    np.sqrt(slope_x * slope_x + slope_y * slope_y, out=length)
    np.arctan2(slope_x, slope_y, out=angle)
    angle[length < _FLAT] = 0.0


def _slope(padded: FloatArray) -> FloatArray:
    """Sobel derivative along the last axis, (m, h + 4, w + 4) -> (m, h, w), in [-1, 1].

    Differences first, then the smoothing: a flat area gives exactly 0, and as rounding is monotone no partial result
    leaves the interval that the exact one is bound to.
    """
    inner = padded[:, 1:-1, 1:-1]
    step = inner[:, :, 2:] - inner[:, :, :-2]
    smooth = step[:, 2:] + step[:, :-2]
    smooth += 2 * step[:, 1:-1]
    smooth /= 4
    return smooth


def _bend(padded: FloatArray) -> FloatArray:
    """Second derivative along the last axis, (m, h + 4, w + 4) -> (m, h, w), in [-1, 1]; differences first."""
    rise = padded[:, :, 2:] - padded[:, :, :-2]
    step = rise[:, :, 2:] - rise[:, :, :-2]
    smooth = step[:, 1:-3] + step[:, 3:-1]
    smooth *= 4
    smooth += step[:, :-4]
    smooth += step[:, 4:]
    smooth += 6 * step[:, 2:-2]
    smooth /= 32
    return smooth


# Bytes of images in memory at once; large enough that the steps between blocks cost nothing.
_BLOCK_BYTES = 2**24


def iter_blocks(array: Sized, size: int) -> Iterator[slice]:
    """Yield slices that cut `array` into blocks of `size` records, the last one shorter.

    Slices rather than parts, so that images, labels and a result can be cut alike.

    Examples
    --------
    >>> for part in iter_blocks(range(5), 2):
    ...     print(part.start, part.stop)
    0 2
    2 4
    4 5
    """
    size = positive_int(size, "size")
    total = len(array)
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def descriptors_in_blocks(
    images: Array,
    eta: float = 1e-6,
    progress: Callable[[int], object] | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Return what `covariance_descriptors(images, eta)` returns, to the last bit, without having all images in memory.

    Parameters
    ----------
    images : (n, h, w) or (n, h, w, 3): an array, a memory map such as `load_images` returns, or anything with a shape
        whose slices are arrays
    eta : as for `covariance_descriptors`
    progress : called after every block with the number of images done so far
    out : float64 array (n, 9, 9) or (n, 11, 11) to fill instead of a new one; descriptors of small images are as large
        as the images, so this may be a memory map too (`np.lib.format.open_memmap`)

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    >>> R = descriptors_in_blocks(images, eta=1e-3, progress=print)
    40
    >>> bool((R == covariance_descriptors(images, eta=1e-3)).all())
    True
    """
    shape = tuple(getattr(images, "shape", ()))
    if not shape:
        raise InvalidArgumentError("images must be an array or a memory map, got {got}.", got=shown(images))
    if progress is not None and not callable(progress):
        raise InvalidArgumentError(
            "progress must be a function of the number of images done, got {got}.", got=shown(progress)
        )
    # An empty block is refused for its dtype, its shape and eta like a full one.
    empty = covariance_descriptors(images[:0], eta)
    result = _checked_out(out, (shape[0], *empty.shape[1:]))
    for part in iter_blocks(images, _block_size(shape, empty.shape[1])):
        try:
            result[part] = covariance_descriptors(images[part], eta)
        except InvalidDataError as problem:
            raise InvalidDataError(
                "among the images from index {start} on, counted from 0 there: {problem}",
                start=Public(part.start),
                problem=problem,
            ) from None
        if progress is not None:
            progress(part.stop)
    return result


def _block_size(shape: tuple[int, ...], size: int) -> int:
    """Return how many images make a block: about 16 MB, and whole chunks of `covariance_descriptors`.

    Its rounding may depend on which images share a chunk; with whole chunks they are the same as without blocks.
    """
    chunk = max(1, CHUNK_VALUES // (size * shape[1] * shape[2]))
    image = 8 * math.prod(shape[1:])
    return chunk * max(1, _BLOCK_BYTES // (image * chunk))


def _checked_out(out: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    """Return the array to fill."""
    if out is None:
        return np.empty(shape)
    if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == shape and out.flags.writeable):
        raise InvalidArgumentError(
            "out must be a writable float64 array of shape {shape}, got {got}.", shape=Public(shape), got=shown(out)
        )
    return out


_SIZES: dict[str, int] = {"gray": GRAY_SIZE, "rgb": RGB_SIZE}

# Lemma A.6 of the paper: squared length of a feature vector, rounded up. Its main text prints 14 and 16.
_PUBLISHED_NORM: dict[int, float] = {GRAY_SIZE: 12.0, RGB_SIZE: 14.0}

# Centre and dual variable may be anything, so the searches' results are rounded, and the radius is rounded up: the
# same ball on every machine. A centre off by 1e-4 in the log costs the radius less than 1e-6.
_CENTER_PLACES, _PLACES = 4, 6
# The few operations between a dual variable and its bound err by some 1e-15, relative; this covers them.
_ROUNDING = 1e-12


def descriptor_ball(
    channels: str | int = "gray",
    eta: float = 1e-6,
    bound: str = "tight",
    image_size: tuple[int, int] | None = None,
) -> Ball:
    """Return a public ball on SPD(k), log-Euclidean, that holds the covariance descriptor of every image.

    - `bound="published"`: centre I, radius sqrt(k) max(|ln eta|, ln(12 + eta)), with 14 for RGB (41.4 and 45.8 at
      eta = 1e-6).
    - `bound="tight"`: the covariance's trace is at most T = sum of range^2/4 over the features, 2.87 (gray) or 3.37
      (RGB). The centre is c I, the radius certified by weak duality, and c the best there is (20.1 and 22.2).

    Parameters
    ----------
    channels : "gray" (or 9) or "rgb" (or 11), as the images given to `covariance_descriptors`
    eta : the eta given to `covariance_descriptors`; the radius falls with it (gray 13.2 at 1e-4, 9.8 at 1e-3)
    bound : "tight" or "published"
    image_size : (height, width) if all images have that one public size; the variances of x and y are then known and
        T falls to about 2.55, which takes about 0.2 off the radius. Only for the tight bound

    Notes
    -----
    Theory: descriptors, section 9.

    Examples
    --------
    >>> ball = descriptor_ball("gray", eta=1e-3)
    >>> ball.space, round(ball.radius, 2)
    (SPD(9), 9.82)
    >>> print(ball.source)
    covariance descriptors of gray images, eta = 0.001: trace bound 2.867, certified by duality (theory: descriptors)
    """
    size = _checked_size(channels)
    name = "gray" if size == GRAY_SIZE else "RGB"
    eta = checked_eta(eta)
    sides = None if image_size is None else _checked_sides(image_size)
    if bound == "published":
        if sides is not None:
            raise InvalidArgumentError('image_size sharpens bound="tight" only. Drop it, or choose that bound.')
        norm = _PUBLISHED_NORM[size]
        radius = math.sqrt(size) * max(-math.log(eta), math.log(norm + eta))
        reason = f"largest eigenvalue at most {norm:g} + eta (Utpala, Vepakomma, Miolane 2023, Theorem A.7)"
        center = 1.0
    elif bound == "tight":
        trace = trace_bound(size, sides)
        center, radius = smallest_ball(size, eta, trace)
        known = "" if sides is None else f" for {sides[0]} x {sides[1]} pixels"
        reason = f"trace bound {trace:.4g}{known}, certified by duality (theory: descriptors)"
    else:
        raise InvalidArgumentError('bound must be "tight" or "published", got {got}.', got=shown(bound))
    source = f"covariance descriptors of {name} images, eta = {eta:g}: {reason}"
    return Ball(SPD(size), center * np.eye(size), rounded_up(radius), source)


def trace_bound(size: int, sides: tuple[int, int] | None = None) -> float:
    """Return T, above the trace of every covariance of features; `size` is 9 or 11, `sides` (height, width) if known.

    A feature with values in an interval has variance at most a quarter of its length squared (Popoviciu). On a full
    grid of w columns the variance of x is known: (w + 1) / (12 (w - 1)).

    Examples
    --------
    >>> round(trace_bound(9), 4), round(trace_bound(9, (28, 28)), 4)
    (2.8669, 2.5459)
    """
    positions = 2 / 4 if sides is None else sum((side + 1) / (12 * (side - 1)) for side in sides)
    intensities = (size - 8) / 4
    derivatives = 4 / 4
    length = 2 / 4  # the gradient is at most sqrt(2) long
    angle = (math.pi / 2) ** 2 / 4
    return positions + intensities + derivatives + length + angle


def squared_radius_bound(size: int, eta: float, trace: float, center: float, touch: float) -> float:
    """Return a bound of sum ln^2(lambda_i / center) over eigenvalues >= eta whose sum is at most size eta + trace.

    Weak duality: for every nu >= 0 the sum is at most size max_lambda(ln^2(lambda/center) - nu (lambda - eta)) +
    nu trace. With nu = 2 touch exp(-touch) / center the maximum stands at eta or where ln(lambda/center) = touch, so
    the bound is a formula, true for *every* `touch` >= 1 and center > 0, and the search for the best may be inexact.

    Examples
    --------
    >>> exact = 2 * math.log(3.0)**2                 # both eigenvalues at 3 is possible: 1 + 2 each, about centre 1
    >>> exact < squared_radius_bound(2, 1.0, 4.0, center=1.0, touch=2.0)
    True
    """
    slope = 2 * touch * math.exp(-touch) / center
    at_eta = math.log(center / eta) ** 2
    at_touch = touch * (touch - 2) + slope * eta
    return (size * max(at_eta, at_touch) + slope * trace) * (1 + _ROUNDING)


def smallest_ball(size: int, eta: float, trace: float) -> tuple[float, float]:
    """Return c and the radius of the smallest ball about c I that duality certifies."""
    # Both searches are over one valley each (theory: descriptors); the touching point need not lie beyond `farthest`.
    farthest = 2 + math.log((eta + trace) / eta)

    def best_touch(log_center: float) -> tuple[float, float]:
        center = math.exp(log_center)
        found = scipy.optimize.minimize_scalar(
            lambda touch: squared_radius_bound(size, eta, trace, center, touch),
            bounds=(1.0, farthest),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(found.x), float(found.fun)

    found = scipy.optimize.minimize_scalar(
        lambda log_center: best_touch(log_center)[1],
        bounds=(math.log(eta), math.log(eta + trace)),
        method="bounded",
        options={"xatol": 1e-7},
    )
    log_center = round(float(found.x), _CENTER_PLACES)
    touch = max(1.0, round(best_touch(log_center)[0], _PLACES))
    center = math.exp(log_center)
    # The certificate: the bound at the centre that is stored and at one touching point, whatever the searches did.
    return center, math.sqrt(squared_radius_bound(size, eta, trace, center, touch))


def rounded_up(radius: float) -> float:
    """Return the radius rounded up, to the places that the same formula gives on every machine."""
    scale = 10.0**_PLACES
    return math.ceil(radius * scale * (1 + _ROUNDING)) / scale


def ball_about_multiple(
    size: int, metric: str, center: float, radius: float, source: str, what: str, remedy: str
) -> Ball:
    """Return the ball about center I whose radius is rounded up; or say what needs it, and what to do instead."""
    space = SPD(size, metric)
    try:
        return Ball(space, center * np.eye(size), rounded_up(radius), source)
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(
            "These {what} need a ball of radius {radius:.4g} on {space!r}, which cannot be had: {problem} "
            '{remedy}, or metric="logeuclid".',
            what=Public(what),
            radius=Public(radius),
            space=Public(space),
            problem=problem,
            remedy=Public(remedy),
        ) from problem


def _checked_size(channels: object) -> int:
    """Return the size of the descriptors that `channels` means, or say what is wrong with it."""
    if isinstance(channels, str) and channels in _SIZES:
        return _SIZES[channels]
    if isinstance(channels, Integral) and not isinstance(channels, bool) and int(channels) in _SIZES.values():
        return int(channels)
    raise InvalidArgumentError(
        'channels must be "gray" (or 9, the size of the matrices) or "rgb" (or 11), got {got}.', got=shown(channels)
    )


def _checked_sides(image_size: object) -> tuple[int, int]:
    """Return (height, width) as ints, or say what is wrong with it."""
    sides = tuple(image_size) if isinstance(image_size, (tuple, list)) else ()
    whole = all(isinstance(side, Integral) and not isinstance(side, bool) for side in sides)
    if len(sides) != 2 or not whole or min(sides) < SMALLEST_SIDE:
        raise InvalidArgumentError(
            "image_size must be (height, width), both at least {smallest_side}, got {detail}. Leave it out if "
            "the images differ in size.",
            smallest_side=Public(SMALLEST_SIDE),
            detail=Public(sides if sides and whole else shown(image_size)),
        )
    return int(sides[0]), int(sides[1])
