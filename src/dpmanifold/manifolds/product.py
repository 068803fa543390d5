"""Products of spaces: several points at once as one point, so that one release tells about all of them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._cells import record_cells
from dpmanifold._check import Array, FloatArray, numeric_array, positive_float, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.linalg.cards import fetched
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.layouts import Layout
from dpmanifold.manifolds.optional_properties import Area, sinh_ceiling
from dpmanifold.manifolds.parts import Run, as_row, from_row, layouts_of, read_parts, runs_of, runs_text
from dpmanifold.manifolds.points import not_real, other_shape
from dpmanifold.manifolds.vectors import EPS, vector_norm

# Weights beyond these would leave nothing of the other factors in double precision.
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-6, 1e6
_MOST_FACTORS = 10_000


class ProductPoints(Manifold):
    """The part of a product that is about its points; :class:`~dpmanifold.manifolds.product.Product` inherits it."""

    factors: tuple[Manifold, ...]
    weights: FloatArray
    _runs: list[Run]
    _stacked: bool
    _scale: FloatArray

    def _each(self) -> Iterator[tuple[Manifold, float]]:
        return zip(self.factors, self.weights.tolist(), strict=True)

    def split(self, p: object) -> tuple[Array, ...]:
        """Return points (..., *shape) as one array for every factor, (..., *shape_j) each.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD, Product
        >>> space = Product([SPD(2)] * 3)
        >>> [part.shape for part in space.split(space.random_point(5, rng=0))]
        [(5, 2, 2), (5, 2, 2), (5, 2, 2)]
        """
        pieces = self._pieces(self._array(p))
        return tuple(run.one(part, j) for run, part in zip(self._runs, pieces, strict=True) for j in range(run.count))

    def join(self, parts: Sequence[object]) -> Array:
        """Return points from one array for every factor, (..., *shape_j) each; undoes :meth:`split`.

        Batches broadcast. Only shapes are looked at.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean, Product, Sphere
        >>> Product([Euclidean(1), Sphere(1)]).join(([2.0], [0.0, 1.0]))
        array([2., 0., 1.])
        """
        if not isinstance(parts, (tuple, list)) or len(parts) != len(self.factors):
            number = f"{len(parts)} of them" if isinstance(parts, (tuple, list)) else shown(parts)
            raise InvalidArgumentError(
                "parts must be {n_factors} arrays, one for every factor; got {number}.",
                n_factors=Public(len(self.factors)),
                number=Public(number),
            )
        pairs = enumerate(zip(self.factors, parts, strict=True))
        arrays = [factor._array(part, f"part {j}") for j, (factor, part) in pairs]
        batches = [array.shape[: array.ndim - len(f.shape)] for f, array in zip(self.factors, arrays, strict=True)]
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            usual = max(batches, key=batches.count)
            others = [f"{one} in part {j}" for j, one in enumerate(batches) if one not in (usual, ())]
            more = f" (and {len(others) - 3} more)" if len(others) > 3 else ""
            raise InvalidArgumentError(
                "parts must have batches of one shape, got {usual}, but {others}{more}. Give every part of the "
                "same people, in the same order.",
                usual=Public(usual),
                others=", ".join(others[:3]),
                more=more,
            ) from None
        whole = [np.broadcast_to(array, (*batch, *f.shape)) for f, array in zip(self.factors, arrays, strict=True)]
        return self._joined([np.stack(whole[run.first : run.first + run.count], axis=len(batch)) for run in self._runs])

    def _pieces(self, array: Array) -> list[Array]:
        """Return points as stacked points of the runs, (..., count, *shape) each."""
        if self._stacked:
            return [array]
        return [from_row(array[..., run.entries], run.shape, run.space.dtype) for run in self._runs]

    def _joined(self, pieces: list[Array]) -> Array:
        """Undo :meth:`_pieces`."""
        if self._stacked:
            return np.ascontiguousarray(pieces[0], dtype=self.dtype)
        rows = [as_row(piece, len(run.shape)) for run, piece in zip(self._runs, pieces, strict=True)]
        return np.concatenate(rows, axis=-1)

    def gathered(self, p: object) -> object:
        """Return points from a tuple with an array for every factor, whose batches broadcast; leave what is none alone.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean, Product
        >>> Product([Euclidean(1)] * 2).gathered(([[1.0], [2.0]], [3.0]))
        array([[[1.], [3.]],
               [[2.], [3.]]])
        """
        return self.join(p) if isinstance(p, tuple) and len(p) == len(self.factors) else p

    def batch(self, X: object) -> object:
        """Return records from a tuple with an array of n records for every factor; leave what is no tuple alone.

        Nothing broadcasts, and no record decides how others are read: parts are arrays, (n, *shape_j) each, of which
        every cell is read by itself; a tuple that may as well be n records is refused.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean, Product
        >>> Product([Euclidean(1)] * 2).batch((np.zeros((3, 1)), np.ones((3, 1)))).shape
        (3, 2, 1)
        """
        if not isinstance(X, tuple):
            return super().batch(X)
        if len(X) != len(self.factors):
            raise InvalidArgumentError(
                "`X` must be a tuple of {n_factors} arrays, one for every factor, got {n_x}. Records one by one "
                "are an array (np.stack) or a list.",
                n_factors=Public(len(self.factors)),
                n_x=Public(len(X)),
            )
        named = [f"factor {j} of X" for j in range(len(X))]
        X = tuple(
            _as_part(factor, fetched(part, name), name)
            for factor, part, name in zip(self.factors, X, named, strict=True)
        )
        sizes = [_records_in(part, factor, j) for j, (part, factor) in enumerate(zip(X, self.factors, strict=True))]
        for j, size in enumerate(sizes):
            if size != sizes[0]:
                raise InvalidArgumentError(
                    "`X` must have as many records for every factor: {sizes} for factor 0, {size} for factor {j}.",
                    sizes=Public(sizes[0]),
                    size=Public(size),
                    j=Public(j),
                )
        if all(isinstance(part, np.ndarray) and part.shape == self.shape for part in X):
            raise InvalidArgumentError(
                "a tuple of {n_x} arrays of shape {shape} may be as many records, or one array for every factor. "
                "Give one array: np.stack(X) of records, np.stack(X, axis=1) of factors.",
                n_x=Public(len(X)),
                shape=Public(self.shape),
            )
        return self.join(X)

    def _array(self, p: object, name: str = "p") -> Array:
        p = self.gathered(p)
        if not self._stacked:
            return super()._array(p, name)
        factor = self.factors[0]
        try:
            array = factor._array(p, name)
        except InvalidArgumentError:
            return super()._array(p, name)  # says which shape is meant
        return super()._array(array, name)

    def _entries_reason(self, p: object, first: int = 0) -> tuple[Array | None, Message | None]:
        """Return an array of the right shape without NaN, landmarks as pre-shapes, or the reason why not."""
        try:
            raw = numeric_array(self.gathered(p), "it")
        except (InvalidDataError, InvalidArgumentError) as problem:
            return None, problem.message
        wanted = self.record_shapes.get(raw.dtype.kind)
        if wanted is None:
            return None, not_real(raw)
        if raw.shape[max(0, raw.ndim - len(wanted)) :] != wanted:
            hint = self._form_hint(raw, "Put the batch in front, or give a tuple with an array for every factor.")
            return None, other_shape(wanted, raw, hint)
        array = self._joined(read_parts(self._runs, raw))
        return array, self._finite_reason(array, first)

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        return [found for run, part in zip(self._runs, self._pieces(array), strict=True)
                for found in self._faults_in(run, part)]  # fmt: skip

    def _faults_in(self, run: Run, part: Array) -> Iterator[tuple[Array, Message]]:
        for bad, fault in run.space._faults(part):
            found = np.argwhere(bad)
            number = Public(run.first + int(found[0][-1]) if len(found) else run.first)
            said = Message("factor {number}, {space!r}: {fault}", number=number, space=Public(run.space), fault=fault)
            yield np.asarray(bad.any(axis=-1)), said

    def degenerate(self, p: Array) -> Array:
        """Return which records have a factor that stands for no point."""
        pieces = zip(self._runs, self._configurations(p), strict=True)
        return np.asarray(np.logical_or.reduce([run.space.degenerate(part).any(axis=-1) for run, part in pieces]))

    def project(self, p: object) -> Array:
        """Move nearly valid points onto the space, factor by factor."""
        pieces = zip(self._runs, self._configurations(p), strict=True)
        return self._joined([run.space.project(part) for run, part in pieces])

    def canonical(self, p: Array) -> Array:
        """Return the canonical arrays of the factors."""
        pieces = zip(self._runs, self._pieces(self._array(p)), strict=True)
        return self._joined([run.space.canonical(part) for run, part in pieces])

    def _configurations(self, p: object) -> list[Array]:
        """Return records as stacked records of the runs, landmarks as they are."""
        raw = np.asarray(self.gathered(p))
        return [raw] if self._stacked else self._pieces(self._array(raw))

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self._joined([run.space._random((*batch, run.count), rng) for run in self._runs])

    # ---------------------------------------------------------------- passes over many of them

    @cached_property
    def _packed(self) -> list[tuple[slice, tuple[int, ...], np.dtype[np.generic]]]:
        """Where the packed numbers of every factor lie in a row, their shape and their type."""
        found, start = [], 0
        for factor in self.factors:
            one = factor.pack(factor.origin[None])
            width = as_row(one, one.ndim - 1).shape[1]
            found.append((slice(start, start + width), one.shape[1:], one.dtype))
            start += width
        return found

    def pack(self, points: Array) -> Array:
        """Return the packed points of the factors, one after the other in a row."""
        parts = (factor.pack(part) for factor, part in zip(self.factors, self.split(points), strict=True))
        return np.concatenate([as_row(part, part.ndim - 1) for part in parts], axis=-1)

    def unpack(self, stored: Array) -> Array:
        """Undo :meth:`pack`."""
        return self.join(
            tuple(factor.unpack(part) for factor, part in zip(self.factors, self._cut(stored), strict=True))
        )

    def _cut(self, stored: Array) -> Iterator[Array]:
        return (from_row(stored[:, where], shape, dtype) for where, shape, dtype in self._packed)

    def at(self, p: Array) -> Any:
        """Return what the factors need."""
        return _Bases([factor.at(part) for factor, part in zip(self.factors, self.split(p), strict=True)], len(p))

    def log_words(
        self,
        p: Any,
        stored: Array,
        bound: float,
        *,
        group: Array | None = None,
        rows: Array | None = None,
        sums: ExactSum | None = None,
    ) -> ExactSum:
        """Exact sums of the factors, one after the other, each at the scale of its own units."""
        bases = p if isinstance(p, _Bases) else self.at(p)
        if rows is not None:
            stored, group = stored[rows], None if group is None else group[rows]
        own = self._empty_sums(bound, bases.count if sums is None else sums.groups)
        parts = zip(self._each(), bases.each, self._cut(stored), own, strict=True)
        for (factor, a), base, part, one in parts:
            factor.log_words(base, np.ascontiguousarray(part), bound / a, group=group, sums=one)
        if sums is None:
            sums = ExactSum(sum(one.size for one in own), bound, bases.count)
        sums.count(len(stored))
        sums.words += np.concatenate([one.words for one in own], axis=-1)
        return sums

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Return those of the factors, times the weights."""
        found, start = [], 0
        parts = zip(self.factors, self.split(p), self._empty_sums(sums.bound, sums.groups), strict=True)
        for factor, part, own in parts:
            own.words[:] = sums.words[:, :, start : start + own.size]
            found.append(factor.from_log_words(part, own))
            start += own.size
        return np.asarray(np.concatenate(found, axis=-1) * self._scale)

    def _empty_sums(self, bound: float, groups: int) -> list[ExactSum]:
        """Return where every factor adds up: sums as it makes them itself, at the scale of its own units."""
        nothing = (np.ascontiguousarray(factor.pack(factor.origin[None])[:0]) for factor in self.factors)
        each = zip(self._each(), nothing, strict=True)
        return [factor.log_words(factor.origin[None], none, bound / a).grown(groups) for (factor, a), none in each]


def _as_part(factor: Manifold, part: object, name: str) -> object:
    """Return an array of a factor's records as numbers, one of objects record by record, NaN where it is none."""
    numbers = factor.as_numbers(part, name)
    if not isinstance(numbers, list) or isinstance(part, list):
        return numbers
    found = [record_cells(record, factor.record_shapes) for record in numbers]
    missing = np.full(factor.shape, np.nan, dtype=factor.dtype)
    with np.errstate(all="ignore"):
        return np.stack([missing if record is None else factor._array(record) for record in found])


def _records_in(part: object, factor: Manifold, number: int) -> int:
    """Return how many records of a factor an array of numbers holds, by its shape alone; or refuse it."""
    if isinstance(part, np.ndarray):
        kind = "c" if part.dtype.kind == "c" else "f"
        if part.dtype.kind in "iufc" and part.shape[1:] == factor.record_shapes.get(kind):
            return len(part)
    found = f"dtype {part.dtype}, shape {part.shape}" if isinstance(part, np.ndarray) else type(part).__name__
    raise InvalidArgumentError(
        "factor {number} of X must be an array of numbers of shape (n, {shape}) for {factor!r}, got {found}.",
        number=Public(number),
        shape=Public(", ".join(map(str, factor.shape))),
        factor=Public(factor),
        found=found,
    )


class _Bases:
    """What the factors' passes need of base points, and how many there are."""

    def __init__(self, each: list[Any], count: int) -> None:
        self.each, self.count = each, count

    def __len__(self) -> int:
        return self.count


# -------------------------------------------------------------------- the product


class Product(ProductPoints):
    """Several spaces at once: a point is one point of each, and squared distances add up.

    The distance is d(p, q)^2 = sum of weights[j]^2 d_j(p_j, q_j)^2: a weight of 2 makes a factor's distances count
    twice, so that it gets half as much noise in its own units (theory: product). Means, logarithms and geodesics are
    those of the factors. A ball of radius r holds points whose factor j is within r/weights[j] of the centre's.

    Points of equal factors are stacked, `(m, *shape)`; of different ones their entries follow each other in one row
    of real numbers, complex ones as pairs (which are landmarks x1, y1, x2, y2, ...). A tuple with one array for every
    factor, `(..., *shape_j)` each, is taken wherever points are; :meth:`split` returns one, :meth:`join` undoes it.

    Parameters
    ----------
    factors : the spaces, such as [SPD(3)] * 50
    weights : one number above 0 for every factor, or one for all; 1 by default

    Attributes
    ----------
    factors : the spaces, a tuple
    weights : (m,), one for every factor

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Sphere
    >>> regions = Product([SPD(3)] * 50)
    >>> regions, regions.shape, regions.dim
    (Product([SPD(3)] * 50), (50, 3, 3), 300)
    >>> both = Product([SPD(2), Sphere(2)], weights=[1.0, 0.5])
    >>> point = both.join((np.eye(2), [0.0, 0.0, 1.0]))
    >>> both.split(point)[1], round(float(both.dist(point, (np.eye(2), [0.0, 0.0, -1.0]))), 4)
    (array([0., 0., 1.]), 1.5708)
    """

    def __init__(self, factors: Sequence[Manifold], weights: float | Sequence[float] | None = None) -> None:
        self.factors = _checked_factors(factors)
        self.weights = _checked_weights(weights, len(self.factors))
        self._runs = runs_of(self.factors)
        self._stacked = len(self._runs) == 1
        first = self.factors[0]
        self.dim = sum(factor.dim for factor in self.factors)
        self.shape = (len(self.factors), *first.shape) if self._stacked else (self._runs[-1].entries.stop,)
        self.dtype = first.dtype if self._stacked else np.dtype(np.float64)
        self._scale = np.repeat(self.weights, [factor.dim for factor in self.factors])
        self.is_flat = all(factor.is_flat for factor in self.factors)
        self.is_hadamard = all(factor.is_hadamard for factor in self.factors)
        self.is_homogeneous = all(factor.is_homogeneous for factor in self.factors)
        self.injectivity_radius = min(factor.injectivity_radius * a for factor, a in self._each())
        # Planes across two factors are flat.
        flat = [0.0] if len(self.factors) > 1 else []
        low = min([*flat, *(factor.curvature[0] / a**2 for factor, a in self._each())])
        high = max([*flat, *(factor.curvature[1] / a**2 for factor, a in self._each())])
        self.curvature = (low, high)
        self.origin = self._joined([np.broadcast_to(run.space.origin, run.shape) for run in self._runs])
        self.factor_of = first.factor_of if all(f.factor_of == first.factor_of for f in self.factors) else None

    def _arguments(self) -> str:
        text = runs_text([repr(factor) for factor in self.factors])
        if (self.weights == 1).all():
            return text
        return f"{text}, weights={runs_text([repr(float(a)) for a in self.weights])}"

    # ---------------------------------------------------------------- for people

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        """None of its own: the command line writes product:spd, or the space in full."""
        return {}

    @classmethod
    def sizes_of(cls, shape: tuple[int, ...], kind: str = "f") -> tuple[int, ...] | None:
        """A shape does not tell the factors."""
        return None

    def describe(self) -> str:
        """How many, and of what."""
        said = [f"{run.count} × " * (run.count > 1) + run.space.describe() for run in self._runs]
        return f"records of {len(self.factors)} parts: {'; '.join(said)}"

    def read_point(self, numbers: Array) -> Array:
        """Take a single number for every factor, where the factors do: that multiple of the identity on SPD matrices.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> Product([SPD(2)] * 2).read_point(np.array([3.0]))[1]
        array([[3., 0.],
               [0., 3.]])
        """
        if numbers.shape == (1,) and self.shape != (1,):
            with contextlib.suppress(InvalidDataError):
                return self.join([factor.read_point(numbers) for factor in self.factors])
        return super().read_point(numbers)

    @property
    def picture(self) -> str:
        """The factors' pictures beside each other."""
        return "product"

    @property
    def natural_center(self) -> Array | None:
        """That of the factors, where all have one."""
        return None if any(factor.natural_center is None for factor in self.factors) else self.origin

    def distance_factor(self, distance: float) -> float | None:
        """What it means in the factor with the smallest weight."""
        factor, a = min(self._each(), key=lambda pair: pair[1])
        return None if self.factor_of is None else factor.distance_factor(distance / a)

    @cached_property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of the factors, stacked; a row of real numbers where they differ."""
        if not self._stacked:
            return {"f": self.shape}
        return {kind: (len(self.factors), *shape) for kind, shape in self.factors[0].record_shapes.items()}

    def layouts(self) -> list[Layout]:
        """Every form that equal factors take, stacked or in one row; one row where they differ."""
        return layouts_of(self._runs)

    # ---------------------------------------------------------------- geometry

    def _coordinate_pieces(self, c: FloatArray) -> list[FloatArray]:
        """Return coordinates in the factors' own units, (..., count, dim) for every run."""
        own = c / self._scale
        return [own[..., run.coordinates].reshape(*c.shape[:-1], run.count, run.space.dim) for run in self._runs]

    def _joined_coordinates(self, pieces: list[FloatArray]) -> FloatArray:
        rows = [piece.reshape(*piece.shape[:-2], piece.shape[-2] * piece.shape[-1]) for piece in pieces]
        return np.asarray(np.concatenate(rows, axis=-1) * self._scale)

    def _apart(self, method: str, p: object, q: object, axes: int) -> list[Array]:
        """Call a method of the factors with two points and return what comes back, stacked before the last `axes`."""
        p, q = self._array(p), self._array(q, "q")
        one_base = p.ndim == len(self.shape)
        found = []
        for run, a, b in zip(self._runs, self._pieces(p), self._pieces(q), strict=True):
            call: Callable[[Array, Array], Array] = getattr(run.space, method)
            if one_base and not run.space.is_flat:
                # One base point at a time: curved spaces have faster passes for that.
                parts = [call(a[j], run.one(b, j)) for j in range(run.count)]
                found.append(np.stack(parts, axis=parts[0].ndim - (len(run.space.shape) if axes < 0 else axes)))
            else:
                found.append(np.asarray(call(a, b)))
        return found

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Root of the weighted sum of squared distances."""
        return vector_norm(np.concatenate(self._apart("dist", p, q, 0), axis=-1) * self.weights)

    def to_origin(self, p: Array, q: Array) -> Array:
        """Move every factor."""
        return self._joined(self._apart("to_origin", p, q, -1))

    def from_origin(self, p: Array, q: Array) -> Array:
        """Undo :meth:`to_origin`."""
        return self._joined(self._apart("from_origin", p, q, -1))

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Normal coordinates of the factors one after the other, times the weights."""
        return self._joined_coordinates(self._apart("log_coords", p, q, 1))

    def _moved_by(self, method: str, p: object, c: FloatArray) -> Array:
        c = self._coordinates(c)
        pieces = zip(self._runs, self._pieces(self._array(p)), self._coordinate_pieces(c), strict=True)
        return self._joined([getattr(run.space, method)(part, own) for run, part, own in pieces])

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Follow a geodesic in every factor."""
        return self._moved_by("exp_coords", p, c)

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the tangent vectors of the factors, joined as points are."""
        return self._moved_by("vector", p, c)

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Coordinates in the frames of the factors, times the weights."""
        pieces = zip(self._runs, self._pieces(self._array(p)), self._pieces(self._array(v, "v")), strict=True)
        return self._joined_coordinates([run.space.coords(a, b) for run, a, b in pieces])

    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """Sum of those of the factors."""
        pieces = self._coordinate_pieces(self._coordinates(c))
        found = [run.space.log_volume_density(own).sum(axis=-1) for run, own in zip(self._runs, pieces, strict=True)]
        return np.asarray(sum(found))

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of the factors, block by block."""
        c = self._coordinates(c)
        values, directions = np.empty(c.shape), np.zeros((*c.shape, self.dim))
        for run, own in zip(self._runs, self._coordinate_pieces(c), strict=True):
            found, turned = run.space.hessian_spectrum(own)
            values[..., run.coordinates] = found.reshape(*c.shape[:-1], run.count * run.space.dim)
            for j in range(run.count):
                start = run.coordinates.start + j * run.space.dim
                block = slice(start, start + run.space.dim)
                directions[..., block, block] = turned[..., j, :, :]
        return values, directions

    def hessian_diameter(self, distance: float) -> float:
        """Root 2 times the largest of the factors', or the root of the sum of their squares (theory: product)."""
        each = [factor.hessian_diameter(distance / a) for factor, a in self._each()]
        return min(math.sqrt(2) * max(each), math.hypot(*each), super().hessian_diameter(distance))

    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """Those of the factors, block by block: nothing is curved across two of them."""
        moment = np.asarray(second_moment, dtype=np.float64)
        result, start = np.zeros((self.dim, self.dim)), 0
        for factor, a in self._each():
            block = slice(start, start + factor.dim)
            result[block, block] = factor.curvature_operator(moment[block, block]) / a**2
            start += factor.dim
        return result

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return those of the factors."""
        parts = zip(self.factors, self.split(points), strict=True)
        return self.join(tuple(factor.extrinsic_mean(part, weights) for factor, part in parts))

    # ---------------------------------------------------------------- facts

    @property
    def farthest(self) -> float:
        """That of the factor that ends first."""
        return min(factor.farthest * a for factor, a in self._each())

    @property
    def gaussian_proof(self) -> str:
        """A density that is a product, where all factors have it."""
        return super().gaussian_proof or ("product" if all(factor.has_gaussian for factor in self.factors) else "")

    def volume_ceiling(self) -> tuple[int, float]:
        """Return the number of pairs and the rate by Jensen's inequality (theory: product)."""
        each = [(factor.volume_ceiling(), a) for factor, a in self._each()]
        pairs = sum(count for (count, _), _ in each)
        steepest = max(count * (rate / a) ** 2 for (count, rate), a in each)
        return pairs, math.sqrt(steepest / pairs) if pairs else 0.0

    def sphere_area(self) -> Area | None:
        """That of flat spaces, or a ceiling; None where a factor is closed."""
        if self.is_flat or not self.is_hadamard:
            return super().sphere_area()
        return sinh_ceiling(self.dim, *self.volume_ceiling())

    def edge_directions(self) -> list[FloatArray]:
        """Return those of the first factor of every run, and one that has the same share in all factors."""
        found, shared = [], np.zeros(self.dim)
        for run in self._runs:
            for direction in run.space.edge_directions():
                whole = np.zeros(self.dim)
                whole[run.coordinates.start : run.coordinates.start + run.space.dim] = direction
                found.append(whole)
            shared[run.coordinates] = np.tile(run.space.edge_directions()[0], run.count)
        return [*found, shared / math.sqrt(len(self.factors))] if len(self.factors) > 1 else found

    # ---------------------------------------------------------------- rounding

    def dist_error(self, center: Array, radius: float) -> float:
        """Errors of the factors' distances, and rounding of a sum of squares (theory: product)."""
        root = (len(self.factors) + 8) * EPS
        each = [
            a * factor.dist_error(part, radius / a * (1 + root))
            for (factor, a), part in zip(self._each(), self.split(center), strict=True)
        ]
        return math.hypot(*each) * (1 + root) + root * radius

    def log_error(self, radius: float) -> float:
        """Errors of the factors' logarithms, and rounding of their multiples."""
        each = [a * factor.log_error(radius / a * (1 + 4 * EPS)) for factor, a in self._each()]
        return math.hypot(*each) * (1 + (len(each) + 8) * EPS) + 4 * EPS * radius


def _checked_factors(factors: object) -> tuple[Manifold, ...]:
    if isinstance(factors, Manifold) or not isinstance(factors, (tuple, list)):
        raise InvalidArgumentError(
            "factors must be a list of spaces such as [SPD(3)] * 50, got {got}.", got=shown(factors)
        )
    if not 1 <= len(factors) <= _MOST_FACTORS:
        raise InvalidArgumentError(
            "factors must be 1 to {most_factors} spaces, got {n_factors}.",
            most_factors=Public(_MOST_FACTORS),
            n_factors=Public(len(factors)),
        )
    for factor in factors:
        if not isinstance(factor, Manifold):
            raise InvalidArgumentError(
                "factors must be spaces such as SPD(3), got {got} among them.", got=shown(factor)
            )
    return tuple(factors)


def _checked_weights(weights: object, number: int) -> FloatArray:
    """Return a weight for every factor."""
    if weights is None:
        weights = 1.0
    given = list(weights) if isinstance(weights, (tuple, list, np.ndarray)) else [weights] * number
    if len(given) != number:
        raise InvalidArgumentError(
            "weights must be one for every factor, {number} of them, got {n_given}.",
            number=Public(number),
            n_given=Public(len(given)),
        )
    found = np.array([positive_float(one, "weights") for one in given])
    if not ((found >= _SMALLEST_WEIGHT) & (found <= _LARGEST_WEIGHT)).all():
        raise InvalidArgumentError(
            "weights must lie between {smallest_weight:g} and {largest_weight:g}, got {value:g} to "
            "{value2:g}. Leave out factors that should not count.",
            smallest_weight=Public(_SMALLEST_WEIGHT),
            largest_weight=Public(_LARGEST_WEIGHT),
            value=found.min(),
            value2=found.max(),
        )
    found.flags.writeable = False
    return found
