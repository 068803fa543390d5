"""Exact and empirical checks of a mechanism's promise."""

from dpmanifold.audit.empirical import certified_epsilon, observed_delta

__all__ = ["certified_epsilon", "observed_delta"]
