"""Batched functions of symmetric matrices: the numerical floor the SPD spaces stand on."""

from dpmanifold.linalg.symmetric import (
    congruence,
    divided_differences_exp,
    divided_differences_log,
    expm,
    from_vecd,
    invsqrtm,
    logm,
    sqrtm,
    symmetrize,
    to_vecd,
)

__all__ = [
    "congruence",
    "divided_differences_exp",
    "divided_differences_log",
    "expm",
    "from_vecd",
    "invsqrtm",
    "logm",
    "sqrtm",
    "symmetrize",
    "to_vecd",
]
