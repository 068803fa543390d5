"""An attack on any private call: many releases on two neighbouring data sets, and what they show.

The attacker sees the numbers that leave. The first half of them says which combination of the numbers tells most (the
linear discriminant, which for normal noise of any shape is the likelihood ratio) and which event to bet on; the other
half tests it. So what is certified holds whatever the numbers are.
"""

import numpy as np

from dpmanifold.audit.empirical import certified, mu_of as mu_measure


def outputs(call, records, runs, numbers):
    """Return the numbers of many releases, (runs, size)."""
    return np.stack([np.ravel(numbers(call(records))) for _ in range(runs)])


def shown(call, first, second, runs, numbers, measure=mu_measure, confidence=0.999):
    """Return what releases on two data sets certify about a promise's parameter; wrong with probability 0.001."""
    seen = [outputs(call, records, runs, numbers) for records in (first, second)]
    halves = [x[: runs // 2] for x in seen]
    covariance = sum(np.cov(x.T).reshape(x.shape[1], -1) for x in halves) / 2
    direction = np.linalg.lstsq(covariance, halves[0].mean(axis=0) - halves[1].mean(axis=0), rcond=1e-12)[0]
    return certified(*(x @ direction for x in seen), measure, confidence=confidence)
