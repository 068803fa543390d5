"""Cases for the default run and for the slow one: where many test one thing, a part of them is tried every time."""

import pytest


def every(step, values):
    """Return values for `parametrize`: each `step`-th belongs to the default run, the others to the slow one."""
    return [
        value if number % step == 0 else pytest.param(value, marks=pytest.mark.slow)
        for number, value in enumerate(values)
    ]
