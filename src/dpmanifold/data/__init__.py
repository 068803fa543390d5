"""From raw data to points of a space, and the public balls that hold them whatever the data are."""

from dpmanifold.data.descriptor_ball import descriptor_ball
from dpmanifold.data.descriptors import covariance_descriptors

__all__ = ["covariance_descriptors", "descriptor_ball"]
