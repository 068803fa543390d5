"""Cases for the default run and for the slow one: where many test one thing, a part of them is tried every time."""

import itertools

import pytest


def every(step, values):
    """Return values for `parametrize`: each `step`-th belongs to the default run, the others to the slow one."""
    return [
        value if number % step == 0 else pytest.param(value, marks=pytest.mark.slow)
        for number, value in enumerate(values)
    ]


def across(step, *axes):
    """As :func:`every`, for several arguments at once: each `step`-th of all combinations of their values.

    With a step that has no factor in common with the length of any axis but the first, every value of these is in the
    default run.
    """
    return [
        pytest.param(*values, marks=[] if number % step == 0 else pytest.mark.slow)
        for number, values in enumerate(itertools.product(*axes))
    ]
