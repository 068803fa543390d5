"""Soto, Bharath, Reimherr and Slavković (2022): the K-norm gradient mechanism (KNG) on S^2, SPD(2) and planar shapes.

Their supplement is not to be had: ball and records on S^2 and SPD(2) are those of Reimherr and others (2021), whose
mechanism they compare with. Their corpus callosa may not be passed on: see :mod:`.shapes` for what is used instead.
"""

from __future__ import annotations

from dpmanifold_papers.framework import Experiment
from dpmanifold_papers.soto2022.headlines import HEADLINES
from dpmanifold_papers.soto2022.shapes import Shapes
from dpmanifold_papers.soto2022.spd import KNGMatrices
from dpmanifold_papers.soto2022.sphere import KNGSphere

EXPERIMENTS: list[Experiment] = [KNGSphere(), KNGMatrices(), Shapes()]

__all__ = ["EXPERIMENTS", "HEADLINES"]
