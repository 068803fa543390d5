"""Attacks on a mechanism's promise: bounds from below with stated confidence. An audit can refute, never prove."""

from dpmanifold.audit.audit_plot import picture
from dpmanifold.audit.empirical import certified, certified_epsilon
from dpmanifold.audit.findings import Audit, Finding
from dpmanifold.audit.floating_point_attack import tangent_word_log_ratio, word_log_likelihood, word_log_ratio
from dpmanifold.audit.low_bits import low_bit_scores
from dpmanifold.audit.mean_audit import audit_mean

__all__ = [
    "Audit",
    "Finding",
    "audit_mean",
    "certified",
    "certified_epsilon",
    "low_bit_scores",
    "picture",
    "tangent_word_log_ratio",
    "word_log_likelihood",
    "word_log_ratio",
]
