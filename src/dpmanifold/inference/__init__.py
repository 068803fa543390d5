"""What released numbers say about the population: regions, intervals and tests. No data comes in here.

Everything in this package is computed from releases and public numbers alone, so it costs no privacy, and whoever
holds the releases can compute it again.
"""

from dpmanifold.inference.confidence_region import ConfidenceRegion
from dpmanifold.inference.frechet_variance import VarianceInterval
from dpmanifold.inference.geodesic_regression import Band, GeodesicRegression
from dpmanifold.inference.inference_result import Conclusion, FromReleases, VarianceShares
from dpmanifold.inference.linear_discriminant import LinearDiscriminant
from dpmanifold.inference.mean_tests import KSampleTest, Pair, TwoSampleTest
from dpmanifold.inference.principal_components import PrincipalComponents
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
