"""Every experiment by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpmanifold_papers import jiang2025, reimherr2021, soto2022, utpala2023
from dpmanifold_papers.framework import Experiment

_MODULES = (reimherr2021, soto2022, utpala2023, jiang2025)
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for module in _MODULES for experiment in module.EXPERIMENTS
}
# For the summary: a claim, and what turns rows by experiment into published, reproduced and ours.
HEADLINES: dict[str, list[tuple[str, Callable[[Any], tuple[str, str, str]]]]] = {
    module.__name__.rpartition(".")[2]: list(module.HEADLINES) for module in _MODULES
}
PAPERS: dict[str, tuple[str, str]] = {
    "reimherr2021": (
        "Reimherr, Bharath and Soto (2021): differential privacy over Riemannian manifolds",
        "The Riemannian Laplace mechanism on SPD(2) and S^2, against Laplace noise on the entries of a point.",
    ),
    "soto2022": (
        "Soto, Bharath, Reimherr and Slavković (2022): shape and structure preserving differential privacy",
        "The K-norm gradient mechanism on S^2, SPD(2) and planar shapes.",
    ),
    "utpala2023": (
        "Utpala, Vepakomma and Miolane (2023): private Fréchet means of symmetric positive definite matrices",
        "The tangent Gaussian on log-Euclidean SPD matrices, on simulated matrices and on images.",
    ),
    "jiang2025": (
        "Jiang, Chang and Hu (2025): private inference for Fréchet means and variances",
        "Coverage of regions and intervals on S^2 and SPD(2), regions of real data.",
    ),
}
