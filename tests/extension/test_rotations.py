"""A space of which two arrays are one point obeys the laws as any other."""

import numpy as np

import dpmanifold as dpm
from extension.rotations import Rotations
from laws.space_laws import SpaceLaws


class TestRotations(SpaceLaws):
    space = Rotations()
    spread = 3.0
    longest = 0.95 * np.pi


def test_either_array_of_a_point_gives_the_same_release_and_one_of_them_leaves():
    space = Rotations()
    X = space.exp_coords(space.origin, 0.2 * np.random.default_rng(0).standard_normal((200, 3)))
    turned = np.where(np.arange(200)[:, None] % 2, X, -X)
    ball = dpm.Ball(space, -space.origin, 0.8)
    ask = {"privacy": dpm.PureDP(1.0), "units": dpm.EACH_RECORD, "rng": 1}
    one, other = (dpm.private_mean(records, ball, **ask).value for records in (X, turned))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, space.canonical(one))
