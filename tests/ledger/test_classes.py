"""Discriminants that a ledger pays for: registered with private labels, paid once, and held against the ledger."""

import numpy as np

import dpmanifold as dpm

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)


def test_a_ledger_pays_for_a_discriminant_and_knows_it_again(ledger):
    rng = np.random.default_rng(0)
    X, y = rng.normal(0.0, 0.5, (60, 2)), np.array(["a", "b"])[np.arange(60) % 2]
    people = ledger.population("cohort", cap=dpm.GDP(3.0), unit="record")
    data = people.register("study", X, BALL, units=dpm.EACH_RECORD, labels=y, classes=["a", "b"], labels_public=False)
    assert "units by class" not in data.facts
    found = dpm.private_classes(data, None, BALL, dpm.GDP(1.0), units=None, classes=["a", "b"], budget=people, key="k")
    assert not ledger.compared(found).faults
    late = people.dataset("study", X, labels=y)
    again = dpm.private_classes(late, None, BALL, dpm.GDP(1.0), units=None, classes=["a", "b"], budget=people, key="k")
    assert np.array_equal(found.release.value, again.release.value)
    assert people.spent == dpm.GDP(1.0)
    plain = dpm.private_classes(X, y, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=["a", "b"], budget=people)
    assert not ledger.compared(plain).faults
