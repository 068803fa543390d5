"""Every law of noise obeys the laws."""

import numpy as np

from dpmanifold import Ball, noise
from dpmanifold.noise import GradientLaw, RiemannianGaussian, RiemannianLaplace, WrappedGaussian, WrappedLaplace
from laws.fit import rejects
from laws.noise_laws import DRAWS, NoiseLaws


class DistanceLaws(NoiseLaws):
    """Laws whose density is a function of the distance alone."""

    kind = None

    def make(self, space, at, scale):
        return self.kind(space, at, scale)

    def vectors(self, law, draws):
        return law.space.log_coords(law.footpoint, draws)


class WrappedLaws(NoiseLaws):
    """Laws that are made in the tangent space of a centre, on flat and Hadamard spaces."""

    kind = None
    spaces = tuple(space for space in NoiseLaws.spaces if space.is_hadamard)

    def make(self, space, at, scale):
        return self.kind(space, space.random_point(rng=8), at, scale)

    def vectors(self, law, draws):
        log = law.space.log_coords
        return log(law.center, draws) - log(law.center, law.value)


class TestRiemannianLaplace(DistanceLaws):
    kind = RiemannianLaplace

    def scale(self, space):
        return 0.2 / space.dim


class TestRiemannianGaussian(DistanceLaws):
    kind = RiemannianGaussian


class TestWrappedLaplace(WrappedLaws):
    kind = WrappedLaplace

    def scale(self, space):
        return 0.2 / space.dim


class TestWrappedGaussian(WrappedLaws):
    kind = WrappedGaussian


class TruncatedLaws(DistanceLaws):
    """Laws truncated to a ball about their footpoint: lengths follow the radius law, given that they end in the ball.

    The ball is small enough to cut off a good part: draws that know nothing of it do not pass.
    """

    radius = 0.2

    def make(self, space, at, scale):
        return self.kind(space, at, scale, ball=Ball(space, at, self.radius))

    def whole(self, law):
        return self.kind(law.space, law.footpoint, law.scale)

    def length_cdf(self, law):
        if not self.whole(law).radius_is_exact:
            return None
        cdf = self.whole(law).radius.cdf
        return lambda t: cdf(np.minimum(t, self.radius)) / cdf(self.radius)

    def test_draws_of_the_whole_law_do_not_pass(self):
        for _, _, law in self.laws():
            if self.length_cdf(law) is None:
                continue
            draws = self.whole(law).sample(DRAWS, rng=3)
            assert rejects(np.linalg.norm(self.vectors(law, draws), axis=1), self.length_cdf(law))


class TestTruncatedLaplace(TruncatedLaws):
    kind = RiemannianLaplace

    def scale(self, space):
        return 0.2 / space.dim


class TestTruncatedGaussian(TruncatedLaws):
    kind = RiemannianGaussian


class TestGradientLaw(TruncatedLaws):
    """Of a single record: the gradient at x is as long as the way to it, which makes a truncated Laplace law.

    Its other data sets are the subject of test_gradient.py.
    """

    kind = GradientLaw

    def scale(self, space):
        return 0.2 / space.dim

    def make(self, space, at, scale):
        return GradientLaw(Ball(space, at, self.radius), at[None], scale)

    def whole(self, law):
        return RiemannianLaplace(law.space, law.ball.center, law.scale)

    def vectors(self, law, draws):
        return law.space.log_coords(law.ball.center, draws)


def test_every_public_law_is_here():
    """What can be drawn from about a point; a law that is added must be added here."""
    public = {getattr(noise, name) for name in noise.__all__}
    laws = {law for law in public if isinstance(law, type) and hasattr(law, "sample") and hasattr(law, "logpdf")}
    tested = {item.kind for name, item in globals().items() if name.startswith("Test")}
    assert len(laws) >= 5
    assert laws == tested
