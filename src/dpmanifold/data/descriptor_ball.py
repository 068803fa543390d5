"""The public ball that holds the covariance descriptor of every image.

It rests on what images are (values in [0, 1]) and on what the features are, never on data. Two bounds: the published
one, a ball about the identity, and one of about half that radius, which halves the noise of every mechanism.
"""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
import scipy

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.data.descriptors import GRAY_SIZE, RGB_SIZE, SMALLEST_SIDE, checked_eta
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.manifolds import SPD

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
