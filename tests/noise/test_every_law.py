"""Every law of noise obeys the laws."""

from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace, WrappedGaussian, WrappedLaplace
from laws.noise_laws import NoiseLaws


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
