"""Experiments of Jiang, Chang and Hu (2025): regions and intervals for Fréchet means and variances."""

from __future__ import annotations

from dpmanifold_papers.framework import Experiment
from dpmanifold_papers.jiang2025.headlines import HEADLINES
from dpmanifold_papers.jiang2025.images import Images
from dpmanifold_papers.jiang2025.occupations import Occupations
from dpmanifold_papers.jiang2025.populations import DATA, spd_data, sphere_data, true_variance
from dpmanifold_papers.jiang2025.printed import MU, PAPER
from dpmanifold_papers.jiang2025.published import (
    Published,
    PublishedRegion,
    coverage_once,
    coverage_table,
    published_interval,
    published_region,
)
from dpmanifold_papers.jiang2025.regions import Regions
from dpmanifold_papers.jiang2025.tables import TABLES

EXPERIMENTS: list[Experiment] = [*TABLES, Regions(), Images(), Occupations()]

__all__ = [
    "DATA",
    "EXPERIMENTS",
    "HEADLINES",
    "MU",
    "PAPER",
    "Published",
    "PublishedRegion",
    "coverage_once",
    "coverage_table",
    "published_interval",
    "published_region",
    "spd_data",
    "sphere_data",
    "true_variance",
]
