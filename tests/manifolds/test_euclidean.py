import numpy as np

from dpmanifold import Ball, Euclidean
from laws.space_laws import SpaceLaws


class TestLine(SpaceLaws):
    space = Euclidean(1)


class TestEuclidean(SpaceLaws):
    space = Euclidean(4)
    spread = 3.0
    longest = 5.0


def test_clip_is_total_up_to_the_largest_double():
    ball = Ball(Euclidean(2), [-1e308, 0.0], 1.0)
    huge = np.array([[1.7e308, -1.7e308], [1e-320, 0.0]])
    assert ball.contains(ball.clip(huge)).all()
