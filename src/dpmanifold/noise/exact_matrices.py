"""Exact draws from the Riemannian Laplace law on affine-invariant matrices; see `exact_hadamard` for the interface.

At the identity the law has density exp(-|S|/scale) J(S) in the space of symmetric matrices with the Frobenius norm,
J the product over pairs of eigenvalues of sinh(x)/x, x half their difference. With N = k(k-1)/2 pairs and
a = 1/sqrt(2(k-1)), J(S) <= (sinh(a t)/(a t))^N at |S| = t, as log(sinh(x)/x) is concave in x^2 and the squares of the
x sum up to at most k t^2/4 = N (a t)^2. So the radius is drawn with that ceiling in the place of J, and a uniform
direction is then accepted with probability J/ceiling.

The ceiling's radius has density proportional to t^(k-1) (1 - exp(-2at))^N exp(-b t), b = 1/scale - N a. A Gamma number
of shape k + q and rate b, 0 <= q <= N, is accepted with probability (1 - exp(-x))^N x^-q / sup, x = 2at: see
:func:`proposal`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.linalg import symmetrize
from dpmanifold.manifolds import Manifold
from dpmanifold.noise.laplace import RiemannianLaplace
from dpmanifold.noise.lazy import Uniforms, chi_square, first_bits, normals, precision_kept, rounded, settled
from dpmanifold.noise.source import RandomSource

# Of the radii at least this share must be accepted; of the directions, RiemannianLaplace asks for 0.2.
_LEAST_ACCEPTED = 0.005
# For eigenvalues that are known to 1e-15 or so from doubles.
_QUICK_BITS = 80
# Precision at which the largest ratio of densities is bounded, once and for all draws of a scale.
_BOUND_BITS = 128
# Doubles that are a positive definite matrix to working precision are seen to be so at four times as many bits.
_CHECK_BITS = 256
# Radii with a probability of about exp(-44) or less may take refinements.
_RARE = 44.0
# Logarithms of a triangular factor's entries are cut off here: products of them stay far from overflow.
_LONGEST_LOG = 145.0
# Eigenvalues below this share of the largest are lifted where a matrix is not positive definite in doubles.
_FLOOR = 1e-12


class Proposal(NamedTuple):
    """How a radius is proposed for k x k matrices: Gamma(k + power) at rate b, accepted against exp(top).

    Attributes
    ----------
    size : k
    scale : of the law
    power : q
    top : at least the supremum over x > 0 of N log(1 - exp(-x)) - q log(x)
    """

    size: int
    scale: float
    power: int
    top: float

    @property
    def pairs(self) -> int:
        """N, the number of pairs of eigenvalues."""
        return self.size * (self.size - 1) // 2

    @property
    def dim(self) -> int:
        """Dimension of the space of symmetric matrices."""
        return self.size * (self.size + 1) // 2

    @property
    def radial(self) -> int:
        """How many uniforms a radius takes: two that decide on its and its direction's acceptance come first."""
        return 2 + self.size + self.power

    def stretch(self) -> arb:
        """Return a."""
        return 1 / arb(2 * (self.size - 1)).sqrt()

    def radius(self, uniforms: Uniforms) -> arb:
        """Return the proposed radius."""
        rate = 1 / arb(self.scale) - self.pairs * self.stretch()
        shape = self.size + self.power
        return chi_square(uniforms.balls(2, self.radial), 2 * shape) / (2 * rate)

    def radius_accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the radius is accepted, or None while that is open."""
        x = 2 * self.stretch() * self.radius(uniforms)
        log_ratio = self.pairs * (-(-x).expm1()).log() - self.power * x.log() - arb(self.top)
        return _below(uniforms.balls(0, 1)[0].log(), log_ratio)

    def direction(self, uniforms: Uniforms) -> arb_mat:
        """Return a uniform symmetric matrix of Frobenius norm 1."""
        k = self.size
        gaussian = normals(uniforms.balls(self.radial))[: self.dim]
        length = sum((z * z for z in gaussian), start=arb(0)).sqrt()
        off = 1 / (length * arb(2).sqrt())
        entries = arb_mat(k, k)
        for i in range(k):
            entries[i, i] = gaussian[i] / length
        for (i, j), z in zip(combinations(range(k), 2), gaussian[k:], strict=True):
            entries[i, j] = entries[j, i] = z * off
        return entries

    def direction_accepted(self, uniforms: Uniforms) -> bool | None:
        """Return whether the direction is accepted, or None while that is open."""
        working = ctx.prec
        radius, direction = self.radius(uniforms), self.direction(uniforms)
        uniform = uniforms.balls(1, 2)[0]
        ctx.prec = _QUICK_BITS
        accepted = self._against_ceiling(uniform, radius, near_eigenvalues(direction))
        if accepted is None:
            ctx.prec = working
            accepted = self._against_ceiling(uniform, radius, close_eigenvalues(direction))
        return accepted

    def _against_ceiling(self, uniform: arb, radius: arb, values: Sequence[arb] | None) -> bool | None:
        """Compare a uniform with J/ceiling, given eigenvalues of the direction."""
        if values is None:
            return None
        volume = arb(1)
        for first, second in combinations(values, 2):
            volume *= _sinhc(radius * (first - second) / 2)
        return _below(uniform * _sinhc(self.stretch() * radius) ** self.pairs, volume)


def drawn(footpoint: FloatArray, scale: float, grid: int, source: RandomSource) -> list[int]:
    """Draw a matrix about a footpoint; returns the multiples of 2^grid that :func:`placed` makes a matrix of.

    The law of S is invariant under orthogonal matrices, so that L exp(S) L' has the law about L L' whichever factor L
    is. With exp(S) = C C', both factors lower triangular, L C is the drawn matrix's own factor.

    To be called within :func:`~dpmanifold.noise.lazy.precision_kept`.

    Examples
    --------
    >>> from dpmanifold.noise import as_source
    >>> with precision_kept():
    ...     multiples = drawn(np.array([[2.0, 1.0], [1.0, 3.0]]), 0.01, -37, as_source(7))
    >>> [type(multiple).__name__ for multiple in multiples]
    ['int', 'int', 'int']
    """
    k = len(footpoint)
    ctx.prec = _CHECK_BITS
    if _footpoint_factor(footpoint) is None:
        raise InvalidArgumentError("footpoint must be positive definite.")
    plan = proposal(k, scale)
    uniforms = _accepted(plan, first_bits(scale, grid - _bits_lost(plan)), source)

    def attempt() -> list[int] | None:
        moved = plan.direction(uniforms) * plan.radius(uniforms)
        outer, inner = _footpoint_factor(footpoint), _factor(moved.exp().tolist())
        if outer is None or inner is None:
            return None
        product = (outer * inner).tolist()
        logs = [product[i][i].log() for i in range(k)]
        rows = [product[i][j] / product[i][i] for i in range(k) for j in range(i)]
        step = arb((1, -grid))
        return rounded([number * step for number in logs + rows])

    return settled(uniforms, attempt)


def _accepted(plan: Proposal, bits: int, source: RandomSource) -> Uniforms:
    """Return the uniforms of an accepted proposal. They know nothing of the footpoint."""
    while True:
        uniforms = Uniforms(plan.radial, bits, source)
        if not settled(uniforms, partial(plan.radius_accepted, uniforms)):
            continue
        uniforms.add(plan.dim + plan.dim % 2)
        if settled(uniforms, partial(plan.direction_accepted, uniforms)):
            return uniforms


def placed(space: Manifold, numbers: FloatArray) -> Array:
    """Return T T' for the factor T that finite numbers stand for; a matrix of the space whatever they are.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> placed(SPD(2, metric="riemann"), np.array([0.0, 0.0, 2.0]))
    array([[1., 2.],
           [2., 5.]])
    """
    k = len(space.origin)
    diagonal = np.exp(np.clip(numbers[:k], -_LONGEST_LOG, _LONGEST_LOG))
    largest = math.exp(_LONGEST_LOG)
    factor = np.eye(k)
    factor[np.tril_indices(k, -1)] = np.clip(numbers[k:], -largest, largest)
    factor *= diagonal[:, None]
    matrix = symmetrize(factor @ factor.T)
    if space.check(matrix) is None:
        return matrix
    size = np.abs(matrix).max()
    values, vectors = np.linalg.eigh(matrix / size)
    lifted = np.maximum(values, _FLOOR * values[-1])
    return np.asarray(symmetrize((vectors * lifted) @ vectors.T) * size)


def usable(space: Manifold, scale: float) -> bool:
    """Return whether the law exists and enough proposals are accepted; judged with public numbers.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> usable(SPD(3, metric="riemann"), 0.3), usable(SPD(3, metric="riemann"), 0.5)
    (True, False)
    """
    return _usable(space, float(scale))


@lru_cache(maxsize=256)
def _usable(space: Manifold, scale: float) -> bool:
    try:
        law = RiemannianLaplace(space, space.origin, scale)
    except InvalidArgumentError:
        return False
    return radius_acceptance(law, proposal(len(space.origin), scale)) >= _LEAST_ACCEPTED


def radius_acceptance(law: RiemannianLaplace, plan: Proposal) -> float:
    """Return the probability that a proposed radius is accepted.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> matrices = SPD(9, metric="riemann")
    >>> law = RiemannianLaplace(matrices, matrices.origin, 0.05)
    >>> 0.7 < radius_acceptance(law, proposal(9, 0.05)) < 1
    True
    """
    shape, stretch = plan.size + plan.power, 1 / math.sqrt(2 * (plan.size - 1))
    log_gamma = math.lgamma(shape) - shape * math.log(1 / plan.scale - plan.pairs * stretch)
    return math.exp(law.radius.log_normalizer() - plan.top - plan.power * math.log(2 * stretch) - log_gamma)


# -------------------------------------------------------------------- the proposal of a radius


@lru_cache(maxsize=256)
def proposal(size: int, scale: float) -> Proposal:
    """Choose the power q for which most radii are accepted, and bound the ratio of densities.

    With s = q/N the function N log(1 - exp(-x)) - q log(x) has the derivative (N/x) (x/(e^x - 1) - s). As x/(e^x - 1)
    falls from 1 to 0, the supremum is at its only root; at 0 for q = N and at infinity for q = 0, and 0 in both cases.

    Examples
    --------
    >>> proposal(2, 1e-3).power, 10 < proposal(9, 0.05).power < 30, proposal(9, 1e-6).power
    (1, True, 36)
    """
    pairs, stretch = size * (size - 1) // 2, 1 / math.sqrt(2 * (size - 1))
    rate = 1 / scale - pairs * stretch
    powers = np.arange(pairs + 1)
    roots = np.array([_root(q / pairs) for q in powers[1:-1]])
    tops = np.zeros(pairs + 1)
    tops[1:-1] = pairs * np.log(-np.expm1(-roots)) - powers[1:-1] * np.log(roots)
    # Log of the Gamma law's constant, in terms of x, less the log of the ratio's ceiling.
    gain = (size + powers) * math.log(rate / (2 * stretch)) - special.gammaln(size + powers) - tops
    best = int(np.argmax(gain))
    top = 0.0 if best in (0, pairs) else _bound(pairs, best, float(roots[best - 1]))
    return Proposal(size, scale, best, top)


def _root(share: float) -> float:
    """Solve x/(e^x - 1) = share, 0 < share < 1."""
    x = float(-share - special.lambertw(-share * math.exp(-share), -1).real)
    for _ in range(3):  # near share = 1 Lambert's function gives half the digits
        growth = math.expm1(x)
        x -= (x / growth - share) * growth * growth / (growth - x * (growth + 1))
    return x


def _bound(pairs: int, power: int, root: float) -> float:
    """Return a double of at least the supremum, from an interval that certainly holds the root."""
    with precision_kept():
        ctx.prec = _BOUND_BITS
        for width in (1e-12, 1e-9, 1e-6, 1e-3):
            low, high = arb(root * (1 - width)), arb(root * (1 + width))
            if pairs * low / low.expm1() > power and pairs * high / high.expm1() < power:
                x = low.union(high)
                value = pairs * (-(-x).expm1()).log() - power * x.log()
                return math.nextafter(float(value.upper()), math.inf)
    raise SamplerError("the largest ratio of two densities could not be bounded. Please report this.")


def _bits_lost(plan: Proposal) -> int:
    """Return how many bits a draw at a likely radius may cost: exponentials and triangular factors of that size."""
    rate = 1 / plan.scale - plan.pairs / math.sqrt(2 * (plan.size - 1))
    reach = (plan.size + plan.power + _RARE) / rate
    return math.ceil(2 * min(reach, _LONGEST_LOG) / math.log(2))


# -------------------------------------------------------------------- matrices of balls


def near_eigenvalues(matrix: arb_mat) -> list[arb] | None:
    """Return balls that hold the eigenvalues of a symmetric matrix, from eigenvectors in doubles; None if they fail.

    With Q the doubles' eigenvectors and A = Q' S Q, the eigenvalues of A differ from its diagonal by at most the norm
    of what is off it (Weyl), and from those of S by factors between the extreme eigenvalues of Q'Q (Ostrowski), which
    are within |Q'Q - I| of 1. All three matrices are computed in balls, so nothing depends on how Q was found.

    Examples
    --------
    >>> values = near_eigenvalues(arb_mat([[2, 1], [1, 2]]))
    >>> [value.contains(exact) for value, exact in zip(values, (1, 3), strict=True)]
    [True, True]
    """
    k = matrix.nrows()
    middle = np.array([float(entry) for entry in matrix.entries()]).reshape(k, k)
    if not np.isfinite(middle).all():
        return None
    q = arb_mat(k, k, np.linalg.eigh(middle)[1].ravel().tolist())
    turned = (q.transpose() * matrix * q).tolist()
    gram = (q.transpose() * q).tolist()
    error, factor = arb(0, _norm_off(turned)), arb(1, _norm_off(gram) + _norm([gram[i][i] - 1 for i in range(k)]))
    return [(turned[i][i] + error) / factor for i in range(k)]


def _norm(entries: Iterable[arb]) -> arb:
    """Return an upper bound of the norm of a vector."""
    return sum((entry.abs_upper() ** 2 for entry in entries), start=arb(0)).sqrt().upper()


def _norm_off(rows: Sequence[Sequence[arb]]) -> arb:
    """Return an upper bound of the Frobenius norm of what is off a matrix's diagonal."""
    return _norm(entry for i, row in enumerate(rows) for j, entry in enumerate(row) if i != j)


def close_eigenvalues(matrix: arb_mat) -> list[arb] | None:
    """Return balls that hold the eigenvalues of a symmetric matrix, at working precision; None if some overlap.

    Examples
    --------
    >>> sorted(round(float(value), 6) for value in close_eigenvalues(arb_mat([[2, 1], [1, 2]])))
    [1.0, 3.0]
    """
    try:
        return [value.real for value in acb_mat(matrix).eig()]
    except ValueError:
        return None


def _footpoint_factor(footpoint: FloatArray) -> arb_mat | None:
    """Return the triangular factor of the symmetric part of a matrix of doubles."""
    return _factor([[(arb(a) + arb(b)) / 2 for a, b in zip(*pair, strict=True)] for pair in _rows(footpoint)])


def _rows(matrix: FloatArray) -> list[tuple[list[float], list[float]]]:
    return list(zip(matrix.tolist(), matrix.T.tolist(), strict=True))


def _factor(rows: Sequence[Sequence[arb]]) -> arb_mat | None:
    """Return T, lower triangular with a positive diagonal, T T' the matrix; None if it is not certainly positive."""
    k = len(rows)
    factor: list[list[arb]] = []
    for i in range(k):
        row: list[arb] = []
        for j in range(i):
            other = factor[j]
            row.append((rows[i][j] - sum((a * b for a, b in zip(row, other, strict=False)), start=arb(0))) / other[j])
        pivot = rows[i][i] - sum((a * a for a in row), start=arb(0))
        if not pivot > 0:
            return None
        factor.append([*row, pivot.sqrt()])
    return arb_mat([row + [arb(0)] * (k - len(row)) for row in factor])


def _sinhc(x: arb) -> arb:
    """Return sinh(x)/x, 1 at 0: sin(z)/z at the imaginary number z = ix."""
    return acb(0, x).sinc().real


def _below(first: arb, second: arb) -> bool | None:
    """Return whether the first number is below the second, or None while that is open (NaN stays open)."""
    if first < second:
        return True
    return False if first > second else None
