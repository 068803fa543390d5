"""Utpala, Vepakomma and Miolane (2023): private Fréchet means of log-Euclidean SPD matrices.

Their mechanisms with their constants (the tangent Gaussian, the Riemannian Laplace by a Metropolis chain, Gaussian
noise on the entries, the ball of Theorem A.7), and ours beside them. Draws are seeded: nothing here is private.
"""

from __future__ import annotations

from dpmanifold_papers.framework import Experiment
from dpmanifold_papers.utpala2023.bound import Bound
from dpmanifold_papers.utpala2023.extrinsic import SyntheticExtrinsic
from dpmanifold_papers.utpala2023.headlines import HEADLINES
from dpmanifold_papers.utpala2023.images import Images
from dpmanifold_papers.utpala2023.synthetic import SyntheticDelta, SyntheticK
from dpmanifold_papers.utpala2023.timing import Timing

EXPERIMENTS: list[Experiment] = [SyntheticK(), SyntheticDelta(), SyntheticExtrinsic(), Images(), Timing(), Bound()]

__all__ = ["EXPERIMENTS", "HEADLINES"]
