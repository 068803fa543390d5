"""Exact draws about a point in one call, as tests ask for them."""

from dpmanifold.noise import exact_sampler
from dpmanifold.noise.exact_radii import exact_radius


def riemannian_point(space, footpoint, law, scale, grid, source):
    return exact_sampler(space, law).draw(footpoint, scale, grid, source)


def place_point(space, numbers):
    return exact_sampler(space, "laplace").place(numbers)


def usable(space, law, scale):
    sampler = exact_sampler(space, law)
    return sampler is not None and sampler.usable(scale)


def acceptance(space, law, scale):
    return exact_radius(space, law, scale).acceptance
