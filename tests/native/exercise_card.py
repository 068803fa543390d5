"""Runs every CUDA kernel over awkward sizes and inputs, for compute-sanitizer (`make sanitize-card`).

    python tests/native/exercise_card.py [2 3 ...]

Memory comes from the driver itself, not from CuPy's pool, so that a byte beyond an array is found. There are two blocks
of threads at most, so that each of them goes round several times.
"""

import dataclasses
import importlib
import sys

import numpy as np

from dpmanifold import linalg
from dpmanifold.data import covariance_descriptors
from dpmanifold.linalg.cards import cuda_passes, modules

# Threads alone, teams of 4, 8, 16 and 64 threads, odd and even, with and without lanes to spare.
SIZES = (2, 3, 5, 11, 12, 13, 16, 17, 24, 25, 30, 32, 33, 64)


def two_blocks(*asked, **settings):
    """Return a kernel that starts no more than two blocks."""
    return dataclasses.replace(modules.kernel(*asked, **settings), resident=2)


def exercise(k: int, n: int) -> None:
    """All functions of n matrices of size k, one of which is none."""
    cupy = importlib.import_module("cupy")
    rng = np.random.default_rng(k)
    a = rng.standard_normal((n, k, 2 * k))
    x = a @ a.swapaxes(1, 2) / (2 * k) + 0.1 * np.eye(k)
    there = cupy.asarray(x)
    base = x.mean(axis=0)
    inverse, power = linalg.affine_factor(base)
    linalg.logm(there), linalg.expm(there / 10), linalg.sqrtm(there), linalg.invsqrtm(there)
    linalg.log_norm(there), linalg.log_coordinates(there), linalg.log_mean(there)
    linalg.affine_distances(there, base), linalg.congruence(rng.standard_normal((k, k)), there)
    linalg.inspect(there, 1e-6)
    spoiled = x.copy()
    spoiled[0, 0, 0] = np.nan
    group = np.arange(n) % 3
    linalg.clipped_log_sums(cupy.asarray(spoiled), radius=1.0, tolerance=1e-6, group=group)
    triangles = cupy.asarray(linalg.pack_triangles(x))
    rows = np.arange(n)[::2].copy()
    factors = np.stack([inverse] * 3)
    linalg.gradient_sums(triangles, factors, np.full(3, power), 30.0, group=group, rows=rows)
    linalg.gradient_sums(triangles, inverse, power, 30.0)


def main() -> None:
    """Go through the sizes."""
    cupy = importlib.import_module("cupy")
    cupy.cuda.set_allocator(None)
    cuda_passes.kernel = two_blocks
    sizes = [int(k) for k in sys.argv[1:]] or SIZES
    for k in sizes:
        exercise(k, 150 if k <= 24 else 37 if k <= 32 else 9)
    for images in (np.zeros((3, 7, 9), np.uint8), np.full((2, 5, 5, 3), 0.5), np.full((2, 28, 28), 0.5, np.float32)):
        covariance_descriptors(cupy.asarray(images))
    print(f"{len(sizes)} sizes done")


if __name__ == "__main__":
    main()
