"""Data and words that the tests of the command line share."""

import numpy as np

import dpmanifold as dpm

MEAN = ["mean", "a.npy", "--space", "spd", "--units", "each-record", "--center", "0.7", "--radius", "2.5", "--mu", "1"]


def tensors(n=200, seed=0):
    """Return diffusion tensors near one another."""
    return dpm.SPD(3).exp_coords(np.diag([1.6, 0.4, 0.4]), 0.2 * np.random.default_rng(seed).standard_normal((n, 6)))
