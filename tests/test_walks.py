"""How far a call walks through the library: calls, modules and changes of package, the same on every machine."""

import sys

import numpy as np

import dpmanifold as dpm

SPACE = dpm.SPD(3)
BALL = dpm.Ball(SPACE, 0.7 * np.eye(3), 2.5, source="textbook")
RECORDS = SPACE.exp_coords(BALL.center, np.random.default_rng(0).normal(scale=0.3, size=(2000, 6)))
PERSONS = np.repeat(np.arange(400), 5)
PRIVACY = dpm.ApproxDP(1.0, 1e-6)


def private_mean():
    return dpm.private_mean(RECORDS, BALL, PRIVACY, units=PERSONS)


def walk(call):
    """Return how many calls of the library's functions a warm call makes, in how many modules and package changes."""
    call()
    modules = []

    def trace(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("dpmanifold"):
            modules.append(name)

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(before)
    packages = [name.split(".")[1] if "." in name else "" for name in modules]
    return len(modules), len(set(modules)), 1 + sum(map(str.__ne__, packages, packages[1:]))


def test_private_mean_can_be_followed():
    assert all(found <= most for found, most in zip(walk(private_mean), (400, 40, 100), strict=True))


def test_verify_can_be_followed():
    release = private_mean()
    assert walk(lambda: dpm.verify(release))[0] <= 900


def test_a_walk_counts_what_is_called():
    assert walk(lambda: dpm.SPD(3).dim)[0] > 0
