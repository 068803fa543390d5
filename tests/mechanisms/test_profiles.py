import numpy as np
import pytest

from dpmanifold import (
    EACH_RECORD,
    GDP,
    Ball,
    Hyperbolic,
    InvalidArgumentError,
    KendallShapes,
    PureDP,
    Sphere,
    private_mean,
)
from dpmanifold.mechanisms import get, profile_of
from dpmanifold.privacy import gdp_delta


@pytest.mark.parametrize("space", [Sphere(2), KendallShapes(5)], ids=repr)
def test_profile_of_a_release_stays_below_its_promise(space):
    ball = Ball(space, space.origin, 0.3)
    X = np.repeat(space.origin[None], 12, axis=0)
    release = private_mean(X, ball, GDP(1.0), units=EACH_RECORD)
    epsilon = np.linspace(0.0, 2.0, 9)
    assert (profile_of(release.ball, release.calibration).delta(epsilon) <= gdp_delta(1.0, epsilon) * (1 + 1e-9)).all()
    pure = private_mean(X, ball, PureDP(0.7), units=EACH_RECORD)
    profile = profile_of(pure.ball, pure.calibration)
    assert profile.delta(0.7 * (1 + 1e-9)) == 0
    assert profile.delta(0.35) > 0


def test_profiles_that_are_not_known_are_refused():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.3)
    with pytest.raises(InvalidArgumentError, match="kng is not known"):
        profile_of(ball, get("kng").calibrate(ball, 50, PureDP(1.0)))
    curved = Ball(Hyperbolic(2), Hyperbolic(2).origin, 0.3)
    with pytest.raises(InvalidArgumentError):
        profile_of(curved, get("riemannian-laplace").calibrate(curved, 50, PureDP(1.0)))
