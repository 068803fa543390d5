"""Cautions: promises that protect nobody are called that, and those in use are not."""

import math
import re

import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, PureDP, best_guess, cautions, to_approx, to_gdp, to_zcdp


@pytest.mark.parametrize("n", [2, 50, 150, 10**6])
@pytest.mark.parametrize("privacy", [PureDP(0.1), PureDP(1.0), PureDP(4.0), GDP(0.5), GDP(4.0), ZCDP(0.5), ZCDP(8.0)])
def test_promises_in_use_need_no_caution(privacy, n):
    assert cautions(privacy, n) == ()
    assert cautions(ApproxDP(1.0, 1 / (10 * n)), n) == ()
    assert cautions(ApproxDP(1.0, 1e-9), n) == ()


def test_a_delta_of_one_half_publishes_half_of_the_people():
    (words,) = cautions(ApproxDP(1.0, 0.5), 150)
    assert words.startswith("delta = 0.5 is not below 1/n: a release of 150 units that publishes 75 of them whole")
    assert words.endswith("such as 1e-05.")


def test_a_delta_of_one_in_n_publishes_somebody():
    (words,) = cautions(ApproxDP(1.0, 1 / 150), 150)
    assert "publishes one of them whole can keep this promise" in words
    (words,) = cautions(ApproxDP(1.0, 1 / 300), 150)
    assert "not well below 1/n" in words
    assert "publishes one of them whole with probability 0.5 can" in words
    (words,) = cautions(ApproxDP(1.0, 1.001 / 1500), 150)
    assert "probability 0.1 can" in words


@given(st.integers(min_value=1, max_value=10**9), st.floats(min_value=1e-12, max_value=0.999))
def test_the_delta_that_is_suggested_needs_no_caution(n, delta):
    found = [words for words in cautions(ApproxDP(1.0, delta), n) if words.startswith("delta")]
    assert len(found) == (delta > 1 / (10 * n))
    for words in found:
        suggested = float(words.rsplit("such as ", 1)[1].rstrip("."))
        assert suggested <= 0.01 / n * (1 + 1e-12)
        assert cautions(ApproxDP(1.0, suggested), n) == ()


@pytest.mark.parametrize(
    ("kind", "weak", "none"),
    [(PureDP, 4.6, 9.22), (lambda e: ApproxDP(e, 1e-9), 4.6, 9.22), (GDP, 4.66, 7.45), (ZCDP, 10.9, 27.8)],
    ids=["pure", "approximate", "Gaussian", "zero-concentrated"],
)
def test_very_large_parameters_of_every_kind(kind, weak, none):
    assert cautions(kind(0.98 * weak), 150) == ()
    (words,) = cautions(kind(weak), 150)
    assert "protects next to nobody" in words
    assert re.search(r"can be right all but (1|0\.9\d) % of the time", words)
    (words,) = cautions(kind(0.98 * none), 150)
    assert "protects next to nobody" in words
    (words,) = cautions(kind(none), 150)
    assert "protects nobody" in words
    (words,) = cautions(kind(1e6), 150)
    assert "practically always" in words


def test_both_faults_are_named():
    assert len(cautions(ApproxDP(100.0, 0.5), 150)) == 2


@given(st.floats(min_value=1e-3, max_value=1e3))
def test_the_caution_is_about_what_some_release_allows(size):
    """Never stronger than what `best_guess` excludes, and equal to it where that is attained."""
    for privacy in (PureDP(size), ApproxDP(size, 1e-9), GDP(size)):
        assert bool(cautions(privacy, 10)) == (best_guess(privacy) >= 0.99)
    # Gaussian noise keeps zCDP: what is said of the one is true of the other.
    attained = stats.norm.cdf(math.sqrt(size / 2))
    assert attained <= best_guess(ZCDP(size))
    assert bool(cautions(ZCDP(size), 10)) == (attained >= 0.99)


@given(st.floats(min_value=0.01, max_value=20.0))
def test_a_caution_is_not_avoided_by_a_weaker_form_of_the_same_promise(size):
    """Whatever follows from a promise of which a caution speaks has one as well."""
    if cautions(PureDP(size), 10):
        assert cautions(to_gdp(PureDP(size)), 10)
        assert cautions(to_approx(PureDP(size), 1e-9), 10)
        assert cautions(to_zcdp(to_gdp(PureDP(size))), 10)


@pytest.mark.parametrize("n", [0, -1, 1.5, None, "150", True])
def test_the_number_of_units_is_checked(n):
    with pytest.raises(InvalidArgumentError, match="n must be"):
        cautions(GDP(1.0), n)


@pytest.mark.parametrize("bad", [None, 1.0, "GDP"])
def test_the_promise_is_checked(bad):
    with pytest.raises(InvalidArgumentError, match="privacy must be a promise"):
        cautions(bad, 10)
