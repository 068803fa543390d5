"""Families of SPD matrices that are hard in different ways, and what their functions are to 50 digits."""

import mpmath as mp
import numpy as np


def turned(values, rng):
    """Matrices with these eigenvalues, (n, k), in random positions; symmetric to the last bit."""
    k = values.shape[-1]
    turn = np.linalg.qr(rng.standard_normal((*values.shape[:-1], k, k)))[0]
    half = (turn * values[..., None, :]) @ np.swapaxes(turn, -1, -2) / 2
    return half + np.swapaxes(half, -1, -2)


def spread(k, condition):
    return condition ** -np.linspace(0.0, 1.0, k) if k > 1 else np.ones(1)


def family(name, k, n, rng):
    if name.startswith("condition"):
        return turned(np.broadcast_to(spread(k, float(name.split()[1])), (n, k)), rng)
    if name == "clustered":
        return turned(1 + 1e-10 * rng.random((n, k)), rng)
    if name == "repeated":
        return turned(np.where(np.arange(k) < (k + 1) // 2, 1.0, 0.01) * np.ones((n, k)), rng)
    if name == "diagonal":
        return np.stack([np.diag(10.0 ** rng.uniform(-6, 6, k)) for _ in range(n)])
    if name == "graded":
        grade = np.diag(10.0 ** -np.linspace(0, 5, k))
        return grade @ turned(rng.uniform(0.5, 1.5, (n, k)), rng) @ grade
    scale = {"tiny": 1e-150, "huge": 1e150}[name]
    return turned(np.broadcast_to(spread(k, 100.0), (n, k)), rng) * scale


NAMES = [
    "condition 1",
    "condition 1e3",
    "condition 1e6",
    "condition 1e9",
    "condition 1e12",
    "clustered",
    "repeated",
    "diagonal",
    "graded",
    "tiny",
    "huge",
]


def exact(a, f):
    """f of one symmetric matrix with 50 digits (its lower triangle), rounded to doubles only at the end."""
    with mp.workdps(50 + int(max(0, -np.log10(np.abs(np.diag(a)).min())))):
        values, vectors = mp.eigsy(mp.matrix(a.tolist()))
        result = vectors * mp.diag([f(v) for v in values]) * vectors.T
        return np.array(result.tolist(), dtype=np.float64)


def with_truth(name, k, n, f, rng, orders=8):
    """Matrices of a family and f of each: n matrices, every one in several orders of its rows and columns.

    Rounding errors are random, and the largest of a few differs by more than 3 between two runs of the same method;
    reordering gives more of them for one truth. Not for families whose order matters.
    """
    x = family(name, k, n, rng)
    truth = np.stack([exact(a, f) for a in x])
    if name in ("diagonal", "graded"):
        return x, truth
    turns = [np.arange(k), *(rng.permutation(k) for _ in range(orders - 1))]
    rows = np.stack(turns)[:, :, None]
    columns = np.stack(turns)[:, None, :]
    return x[:, rows, columns].reshape(-1, k, k), truth[:, rows, columns].reshape(-1, k, k)


def relative_error(found, truth, least=0.0):
    """Frobenius error over the truth's norm, or over `least` where the truth is smaller (logarithms near 0)."""
    size = max(float(np.linalg.norm(truth)), least)
    return float(np.linalg.norm(found - truth)) / size if size > 0 else float(np.abs(found).max())
