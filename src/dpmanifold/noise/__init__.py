"""The probability laws of the noise and their exact samplers (theory section 4)."""

from dpmanifold.noise.radial import RadialLaw
from dpmanifold.noise.source import RandomSource, SamplerError, SimulationSource, SystemSource, as_source

__all__ = ["RadialLaw", "RandomSource", "SamplerError", "SimulationSource", "SystemSource", "as_source"]
