"""What released numbers say about the population: regions, intervals and tests. No data comes in here.

Everything in this package is computed from releases and public numbers alone, so it costs no privacy, and whoever
holds the releases can compute it again.
"""

from dpmanifold.inference.components import Components
from dpmanifold.inference.discriminant import Discriminant
from dpmanifold.inference.groups import GroupsTest, Pair
from dpmanifold.inference.interval import Interval
from dpmanifold.inference.records import Conclusion, Parts
from dpmanifold.inference.region import Region
from dpmanifold.inference.regression import Band, Regression
from dpmanifold.inference.two_sample import TwoSampleTest
from dpmanifold.result import load as load

__all__ = [
    "Band",
    "Components",
    "Conclusion",
    "Discriminant",
    "GroupsTest",
    "Interval",
    "Pair",
    "Parts",
    "Region",
    "Regression",
    "TwoSampleTest",
    "load",
]
