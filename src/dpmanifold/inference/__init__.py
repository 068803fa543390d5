"""What released numbers say about the population: regions, intervals and tests. No data comes in here.

Everything in this package is computed from releases and public numbers alone, so it costs no privacy, and whoever
holds the releases can compute it again.
"""

from dpmanifold.inference.lda import LinearDiscriminant
from dpmanifold.inference.pga import PrincipalComponents
from dpmanifold.inference.records import Conclusion, FromReleases, VarianceShares
from dpmanifold.inference.region import ConfidenceRegion
from dpmanifold.inference.regression import Band, GeodesicRegression
from dpmanifold.inference.two_sample import KSampleTest, Pair, TwoSampleTest
from dpmanifold.inference.variance_interval import VarianceInterval
from dpmanifold.result import load as load

__all__ = [
    "Band",
    "Conclusion",
    "ConfidenceRegion",
    "FromReleases",
    "GeodesicRegression",
    "KSampleTest",
    "LinearDiscriminant",
    "Pair",
    "PrincipalComponents",
    "TwoSampleTest",
    "VarianceInterval",
    "VarianceShares",
    "load",
]
