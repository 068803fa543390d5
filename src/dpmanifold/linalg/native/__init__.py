"""Compiled kernels for many small symmetric matrices, and the choice between them and numpy.

A matrix sits in one lane of a vector register, eight (or four, or two) matrices side by side; every lane runs the
same instructions, so results depend neither on the batch nor on the number of threads. That number is
OMP_NUM_THREADS at start, 1 without it, and what threadpoolctl's `threadpool_limits` says from then on. The package
works without the kernels (an install without a C++ compiler leaves them out): numpy then does everything, slower.
"""

from dpmanifold.linalg.native.library import available, backend, backends, level, why_not_available

__all__ = ["available", "backend", "backends", "level", "why_not_available"]
