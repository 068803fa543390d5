"""Goodness of fit with a stated false-alarm rate: for every sampler, and for the tests of the tests.

`assert_fits` fails for a correct sampler with probability `alarm` (1e-6 unless said otherwise), so that unseeded
sources can be tested too. `rejects` is the same check the other way round: a wrong sampler must be caught by it.
With n draws a deviation of the CDF above about 2.7/sqrt(n) is caught: 0.019 at 20,000, 0.006 at 200,000.
"""

import numpy as np
from scipy import integrate, stats

ALARM = 1e-6


def fit_pvalue(draws, cdf):
    """P-value of the two-sided Kolmogorov-Smirnov test of draws, shape (n,), against a continuous CDF."""
    draws = np.asarray(draws, dtype=np.float64)
    assert draws.ndim == 1
    assert draws.size > 0
    assert np.isfinite(draws).all(), "draws must be finite"
    return float(stats.kstest(draws, cdf).pvalue)


def assert_fits(draws, cdf, alarm=ALARM):
    """Fail unless the draws look like the law with this CDF."""
    pvalue = fit_pvalue(draws, cdf)
    assert pvalue >= alarm, f"draws do not follow the law: Kolmogorov-Smirnov p = {pvalue:.2e} < {alarm:.0e}"


def rejects(draws, cdf, alarm=ALARM):
    """Whether the same check would have refused these draws."""
    return fit_pvalue(draws, cdf) < alarm


def assert_mean(draws, mean, sd, alarm=ALARM):
    """Fail unless the average of the draws is the mean, given the law's own standard deviation (normal limit)."""
    z = (np.mean(draws) - mean) / (sd / np.sqrt(np.size(draws)))
    assert 2 * stats.norm.sf(abs(z)) >= alarm, f"the mean is off by {z:.2f} standard errors"


def assert_counts(counts, probabilities, alarm=ALARM):
    """Fail unless the counts look multinomial with these probabilities (chi-square; expect 10 or more in each)."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    expected = counts.sum() * probabilities
    assert expected.min() >= 10
    pvalue = float(stats.chisquare(counts, expected).pvalue)
    assert pvalue >= alarm, f"counts do not fit: chi-square p = {pvalue:.2e} < {alarm:.0e}"


def tabulated_cdf(log_density, low, high, points=20_001):
    """CDF of exp(log_density) between low and high, by the trapezoidal rule on an even grid: slow, simple, independent.

    Its error (below 1e-6 on smooth laws a few hundred grid points wide) is far below what the test can see.
    """
    t = np.linspace(low, high, points + 2)[1:-1]
    height = log_density(t)
    mass = integrate.cumulative_trapezoid(np.exp(height - height.max()), x=t / high, initial=0)
    return lambda x: np.interp(x, t, mass / mass[-1])
