"""What computed numbers must satisfy: bits do not depend on the batch, and bounds on rounding hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from flint import arb, ctx

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import EPS, Manifold
from dpmanifold.manifolds.exact_points import ExactPoints, precision_kept
from dpmanifold.manifolds.laws.geometry import fewer, points, reach, require
from dpmanifold.manifolds.vectors import vector_norm

# Records in all, those that are looked at one by one, and the sizes of batches that cut loops and products differently.
_RECORDS, _ALONE, _SIZES = 128, 37, (2, 3, 7, 8, 16, 33, 37)
# What records that went through single precision, or were written with few digits, are off by.
_PERTURBED = 1e-8


def bits_do_not_depend_on_the_batch(space: Manifold, rng: np.random.Generator) -> None:
    """Map records alone, in batches of several sizes, in other orders and layouts of memory."""
    p, q = points(space, rng, 1)[0], points(space, rng, _RECORDS)
    c = np.asarray(space.log_coords(p, q))
    off = q * (1 + _PERTURBED * rng.standard_normal(q.shape))
    maps: dict[str, tuple[Callable[[Array], Array], Array]] = {
        "to_origin": (lambda x: space.to_origin(p, x), q),
        "from_origin": (lambda x: space.from_origin(p, x), q),
        "log_coords": (lambda x: space.log_coords(p, x), q),
        "dist": (lambda x: space.dist(p, x), q),
        "exp_coords": (lambda x: space.exp_coords(p, x), c),
        "project": (space.project, q),
        "project of records that are a little off": (space.project, off),
        "valid": (space.valid, off),
        "out_of_frame": (lambda x: space.out_of_frame(p, x), q),
        **dict(_readers(space, rng)),
    }
    for name, (call, records) in maps.items():
        _same_alone(name, call, records)
    good = off[space.valid(off)]
    if len(good) > _ALONE:
        _same_alone("as_points", space.as_points, good)


def _readers(space: Manifold, rng: np.random.Generator) -> Iterator[tuple[str, tuple[Callable[[Array], Array], Array]]]:
    """Yield the readers of layouts in every order, with numbers to read, of unit length as some ask for."""
    for layout in space.layouts():
        read = layout.read
        if read is None:
            continue
        numbers = rng.standard_normal((_RECORDS, *layout.shape))
        numbers /= np.sqrt((numbers**2).reshape(_RECORDS, -1).sum(axis=1)).reshape(-1, *(1,) * len(layout.shape))
        records = numbers.astype(np.complex128 if layout.kind == "c" else np.float64)
        for order in layout.orders or (None,):
            yield f"the layout {layout.words!r} in the order {order!r}", (partial(_read, read, order), records)


def _read(read: Callable[[Array, str | None], Array], order: str | None, values: Array) -> Array:
    return read(values, order)


def _same_alone(name: str, call: Callable[[Array], Array], records: Array) -> None:
    whole = [one.tobytes() for one in np.asarray(call(records))]
    n = len(records)
    parts = [slice(i, i + 1) for i in range(min(n, _ALONE))]
    parts += [slice(start, start + size) for size in _SIZES for start in range(0, n - size + 1, size)]
    parts += [slice(n - size, n) for size in _SIZES]
    for part in parts:
        _compare(name, call(records[part]), whole[part], f"in a batch of {part.stop - part.start}")
    _compare(name, call(np.asfortranarray(records)), whole, "in Fortran order")
    _compare(name, call(records[::-1]), whole[::-1], "in a batch that is reversed")
    _compare(name, call(records[1::3]), whole[1::3], "in a batch with strides")


def _compare(name: str, found: Array, wanted: list[bytes], where: str) -> None:
    same = [one.tobytes() for one in np.asarray(found)] == wanted
    require(same, f"{name}: a record has other bits {where}, so that one record changes what others count as")


Reference = Callable[[Array, Array], tuple[Any, Sequence[Any]]]
"""Takes two points as they are stored; returns their distance and normal coordinates, in numbers of many digits."""

_PAIRS = 25


def rounding_bounds_hold(space: Manifold, rng: np.random.Generator, reference: Reference | None = None) -> None:
    """Compare stated errors with one rounding, with two ways to compute one number, and with a reference if given."""
    r, o = 0.9 * min(space.radius_limit, reach(space)), space.origin
    of_dist, of_log = float(space.dist_error(o, r)), float(space.log_error(r))
    for name, stated in (("dist_error", of_dist), ("log_error", of_log)):
        require(stated >= EPS * r / 8, f"{name} is {stated:.2g} at {r:.3g}, less than writing the number down costs")
    x = points(space, rng, 300, far=r)
    y = x[rng.permutation(300)]
    off = np.abs(vector_norm(space.log_coords(o, x)) - space.dist(o, x)).max()
    require(
        off <= of_dist + of_log + 4 * EPS * r,
        f"|log| and dist differ by {off:.2g}, and the bounds are {of_log:.2g} and {of_dist:.2g}",
    )
    for a, b in zip(x[:_PAIRS], y[:_PAIRS], strict=True):
        off = abs(float(vector_norm(space.log_coords(a, b))) - float(space.dist(b, a)))
        allowed = float(space.dist_error(b, 2 * r)) + of_log + 8 * EPS * r
        require(off <= allowed, f"|log| and dist of two points differ by {off:.2g}, and the bounds are {allowed:.2g}")
    if reference is not None:
        _hold_against(space, reference, x[:_PAIRS], y[:_PAIRS], of_dist, of_log)


def _hold_against(space: Manifold, reference: Reference, x: Array, y: Array, of_dist: float, of_log: float) -> None:
    o = space.origin
    worst_dist = worst_log = 0.0
    for a, b in zip(x, y, strict=True):
        distance, _ = reference(o, b)
        worst_dist = max(worst_dist, abs(float(distance - _as(distance, space.dist(o, b)))))
        _, coordinates = reference(a, b)
        computed = np.asarray(space.log_coords(a, b))
        off = [float(true - _as(true, one)) for true, one in zip(coordinates, computed, strict=True)]
        worst_log = max(worst_log, float(np.linalg.norm(off)))
    require(worst_dist <= of_dist, f"dist is off by {worst_dist:.2g} from the reference, dist_error is {of_dist:.2g}")
    require(worst_log <= of_log, f"log_coords is off by {worst_log:.2g} from the reference, log_error is {of_log:.2g}")


def _as(like: Any, value: Any) -> Any:
    """Return a double as a number of many digits: the difference of the two must not be rounded first."""
    return type(like)(float(value))


# -------------------------------------------------------------------- what leaves a space as numbers


# Digits for what is exact, and what doubles that are made of it may be off by, as a share of how far the laws go.
_BITS, _OFF = 192, 1e-6
# Directions that are looked at, and the standard errors that their second moments may be off by.
_DIRECTIONS, _ERRORS = 200, 7.0


def exact_points_are_moved_as_points_are(space: Manifold, rng: np.random.Generator) -> None:
    """Move footpoints exactly: the distance is kept, directions are uniform, and the numbers are the point's own."""
    exact = space.exact_points
    if exact is None or space.is_flat:
        return
    far = 0.5 * reach(space)
    for p in points(space, rng, 5, far):
        t = far * rng.uniform(0.1, 1.0)
        placed = exact.place(_moved(exact, p, t, rng))
        require(space.check(placed) is None, "exact_points: a moved point is placed where there is none")
        off = abs(float(space.dist(p, placed)) - t)
        require(off <= _OFF * reach(space), f"exact_points: a point moved by {t:.4g} is off by {off:.2g}")
    p, n, d = points(space, rng, 1, far)[0], fewer(space, _DIRECTIONS), space.dim
    c = np.array([space.log_coords(p, exact.place(_moved(exact, p, 0.3 * far, rng))) for _ in range(n)]) / (0.3 * far)
    first, second = np.abs(c.mean(axis=0)).max(), np.abs(c.T @ c / n - np.eye(d) / d).max()
    off = max(first, second / math.sqrt(2)) * math.sqrt(d * n)
    require(off <= _ERRORS, f"exact_points: moments of directions are off by {off:.2g} standard errors")
    # Whichever of a point's arrays stands for it, not moved at all it is the same numbers.
    middles = np.concatenate([points(space, rng, 4, far), space.random_point(6, rng=rng)])
    found = np.array([_moved(exact, space.exp_coords(m, space.log_coords(m, p)), 0.0, rng) for m in middles])
    apart = float(np.abs(found - found[0]).max() / max(1e-300, np.abs(found[0]).max()))
    require(
        apart <= _OFF, f"exact_points: arrays of one point have numbers that differ by {apart:.2g}: they tell of it"
    )
    for numbers in (np.zeros(exact.size), np.full(exact.size, 1e300), rng.standard_normal(exact.size)):
        require(space.check(exact.place(numbers)) is None, "exact_points: some numbers are no point, once placed")


def _moved(exact: ExactPoints, p: Array, t: float, rng: np.random.Generator) -> FloatArray:
    with precision_kept():
        ctx.prec = _BITS
        numbers = exact.moved(p, arb(t), [arb(z) for z in rng.standard_normal(exact.normals).tolist()])
        require(numbers is not None and len(numbers) == exact.size, f"exact_points: moved is not {exact.size} numbers")
        return np.array([float(number) for number in numbers or []])


def embeddings_keep_their_bounds(space: Manifold, rng: np.random.Generator) -> None:
    """Map points of a ball to vectors and back: how far apart they are, where they lead, what noise does to them."""
    r = 0.9 * min(space.radius_limit, reach(space))
    embedding = space.embedding(r)
    if embedding is None:
        return
    x = points(space, rng, 40, far=r)
    vectors = np.array([embedding.coordinates(one) for one in embedding.images(x)])
    require(vectors.shape == (40, embedding.size), f"embedding: vectors are {vectors.shape[1:]}, not {embedding.size}")
    longest = float(vector_norm(vectors).max())
    require(longest <= embedding.longest * (1 + 1e-9), f"embedding: a vector is {longest:.6g} long")
    apart = float(vector_norm(vectors[:, None] - vectors).max())
    require(
        apart <= embedding.diameter, f"embedding: images are {apart:.6g} apart, of {embedding.diameter:.6g} at most"
    )
    off = float(np.max(space.dist(embedding.place(vectors), x)))
    require(off <= _OFF * reach(space), f"embedding: the image of one point is placed {off:.2g} from it")
    for t in np.array([0.01, 0.1, 0.5]) * embedding.longest:
        z = rng.standard_normal(vectors.shape)
        placed = embedding.place(vectors + t * z / vector_norm(z)[:, None])
        most = min(embedding.farthest, float(embedding.error(np.asarray(t), np.zeros(1), np.ones(1))[0]))
        far = float(np.max(space.dist(placed, x)))
        require(far <= most * (1 + 1e-9), f"embedding: noise of length {t:.4g} carries a point {far:.4g} away")
    for vector in (np.zeros(embedding.size), np.full(embedding.size, 1e300)):
        require(space.check(embedding.place(vector)) is None, "embedding: some vectors are no point, once placed")
