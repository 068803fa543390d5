"""One primitive: coordinates at a public or released centre, clipped, mapped to features, averaged (theory: features).

Each unit is mapped by itself, so there is no solver, no curvature and one pass over the data. A feature map comes with
a proven bound on how far apart two units' features can be; noise for that bound hides all of them at once.
"""

from dpmanifold.features.base import (
    FeatureMap,
    average,
    computed_diameter,
    coordinates,
    logarithms,
    sensitivity_of,
)
from dpmanifold.features.labelled import COUNT_WEIGHT, ClassMoments
from dpmanifold.features.maps import (
    DISTANCE_WEIGHTS,
    FOURTH_WEIGHT,
    SQUARE_WEIGHT,
    THIRD_WEIGHT,
    WEIGHT,
    Directions,
    Distances,
    JointMoments,
    Lengths,
    Signs,
    Squares,
    Tangent,
    checked_weight,
    slope_of_directions,
)
from dpmanifold.features.regression_features import MarkedMoments
from dpmanifold.features.shapes import Shape, checked_shape

FEATURES: dict[str, FeatureMap] = {found.name: found for found in (Tangent(), JointMoments(), Lengths(), Distances())}
FEATURES[Directions.name] = Directions(0.5)
"""The library's feature maps by name, with their usual weights: free ones, but for distances."""

__all__ = [
    "COUNT_WEIGHT",
    "DISTANCE_WEIGHTS",
    "FEATURES",
    "FOURTH_WEIGHT",
    "SQUARE_WEIGHT",
    "THIRD_WEIGHT",
    "WEIGHT",
    "ClassMoments",
    "Directions",
    "Distances",
    "FeatureMap",
    "JointMoments",
    "Lengths",
    "MarkedMoments",
    "Shape",
    "Signs",
    "Squares",
    "Tangent",
    "average",
    "checked_shape",
    "checked_weight",
    "computed_diameter",
    "coordinates",
    "logarithms",
    "sensitivity_of",
    "slope_of_directions",
]
