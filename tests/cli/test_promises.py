"""Promises on the command line: the numbers that were typed, to the last digit."""

import json

import pytest

from dpmanifold.privacy import GDP, ZCDP, ApproxDP, PureDP, promise_from_dict

pytestmark = pytest.mark.security

PLAN = ["plan", "--space", "sphere", "--size", "2", "--radius", "0.5", "-n", "50"]


@pytest.mark.parametrize(
    ("typed", "promise"),
    [
        (["--epsilon", "0.1"], PureDP("0.1")),
        (["--epsilon", ".5", "--delta", "1E-6"], ApproxDP(0.5, "1e-6")),
        (["--mu", "0.3"], GDP("0.3")),
        (["--rho", "5e-2"], ZCDP("0.05")),
    ],
)
def test_a_promise_is_the_number_that_was_typed(invoke, typed, promise):
    record = json.loads(invoke(*PLAN, *typed, "--json").stdout)["privacy"]
    assert promise_from_dict(record) == promise


@pytest.mark.parametrize("bad", ["one", "-1", "0", "nan", "1/3", "1_0", ""])
def test_a_promise_that_is_no_number_is_refused(invoke, bad):
    refused = invoke(*PLAN, "--mu", bad, code=2)
    assert "mu must be" in refused.stderr
