"""The probability laws of the noise and their exact samplers (theory section 4). No Markov chains."""

from dpmanifold.noise.distance import RiemannianGaussian, RiemannianLaplace
from dpmanifold.noise.exact_samplers import ExactSampler, exact_sampler
from dpmanifold.noise.exact_vector_noise import grid_of, likeliest, noisy_vector
from dpmanifold.noise.gradient import GradientLaw
from dpmanifold.noise.radial import RadialLaw
from dpmanifold.noise.source import RandomSource, SimulationSource, SystemSource, as_source
from dpmanifold.noise.wrapped_distributions import WrappedGaussian, WrappedLaplace

__all__ = [
    "ExactSampler",
    "GradientLaw",
    "RadialLaw",
    "RandomSource",
    "RiemannianGaussian",
    "RiemannianLaplace",
    "SimulationSource",
    "SystemSource",
    "WrappedGaussian",
    "WrappedLaplace",
    "as_source",
    "exact_sampler",
    "grid_of",
    "likeliest",
    "noisy_vector",
]
