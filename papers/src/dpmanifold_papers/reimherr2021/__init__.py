"""Reimherr, Bharath and Soto (2021): sensitivity of the Fréchet mean and the Riemannian Laplace, on SPD(2) and S^2.

The four panels of their Figure 1. Settings that the text leaves to a supplement are those of the authors' public code
(github.com/otosjc/DifferentialPrivacyManifolds), which was read and not copied.
"""

from __future__ import annotations

from dpmanifold_papers.framework import Experiment
from dpmanifold_papers.reimherr2021.headlines import HEADLINES
from dpmanifold_papers.reimherr2021.sensitivity import SPDSensitivity, SphereSensitivity
from dpmanifold_papers.reimherr2021.spd_utility import SPDUtility
from dpmanifold_papers.reimherr2021.sphere_utility import SphereUtility

EXPERIMENTS: list[Experiment] = [SPDSensitivity(), SPDUtility(), SphereSensitivity(), SphereUtility()]

__all__ = ["EXPERIMENTS", "HEADLINES"]
