"""Discriminants, groups and more that a ledger pays for: registered, paid once, and held against the ledger."""

import dataclasses

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.ledger import verify_receipt

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)


def test_a_ledger_pays_for_a_discriminant_and_knows_it_again(ledger):
    rng = np.random.default_rng(0)
    X, y = rng.normal(0.0, 0.5, (60, 2)), np.array(["a", "b"])[np.arange(60) % 2]
    people = ledger.population("cohort", cap=dpm.GDP(3.0), unit="record")
    data = people.register("study", X, BALL, units=dpm.EACH_RECORD, labels=y, classes=["a", "b"], labels_public=False)
    assert "units_by_class" not in data.facts
    found = dpm.private_lda(data, None, BALL, dpm.GDP(1.0), units=None, classes=["a", "b"], budget=people, key="k")
    assert not ledger.compared(found).faults
    late = people.dataset("study", X, labels=y)
    again = dpm.private_lda(late, None, BALL, dpm.GDP(1.0), units=None, classes=["a", "b"], budget=people, key="k")
    assert np.array_equal(found.release.value, again.release.value)
    assert people.spent == dpm.GDP(1.0)
    plain = dpm.private_lda(X, y, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=["a", "b"], budget=people)
    assert not ledger.compared(plain).faults


@pytest.mark.parametrize("space", [dpm.Euclidean(2), dpm.Sphere(2)])
def test_a_ledger_knows_a_test_of_groups_again(ledger, tmp_path, space):
    """Registered and not; on a curved space means are drawn first. Groups in another order are not those."""
    ball = dpm.Ball(space, space.origin, 0.5)
    X = space.exp_coords(space.origin, 0.1 * np.random.default_rng(0).standard_normal((90, 2)))
    labels = ["a"] * 20 + ["b"] * 30 + ["c"] * 40
    people = ledger.population("cohort", cap=dpm.GDP(9.0), unit="record")
    known = people.register("study", X, ball, units=dpm.EACH_RECORD, labels=labels, classes=list("abc"))
    for data, given, units in ((known, None, None), (X, labels, dpm.EACH_RECORD)):
        found = dpm.private_k_sample_test(
            data, given, ball, dpm.GDP(1.0), units=units, classes=list("abc"), budget=people
        )
        assert ledger.compared(found).faults == ()
        ledger.export(tmp_path / "export.jsonl")
        assert verify_receipt(found, tmp_path / "export.jsonl") == []
        turned = dpm.KSampleTest(dict(zip("abc", found.released[::-1], strict=True)))
        assert any("another number of units" in fault for fault in ledger.compared(turned).faults)
        fewer = dpm.KSampleTest({name: found.groups[name] for name in "ab"})
        assert any("another number of units" in fault for fault in ledger.compared(fewer).faults)
        (tmp_path / "export.jsonl").unlink()


def test_a_ledger_knows_regressions_and_components_again(ledger):
    rng = np.random.default_rng(0)
    X, t = rng.normal(0.0, 0.5, (80, 2)), rng.uniform(size=80)
    people = ledger.population("cohort", cap=dpm.GDP(9.0), unit="record")
    how = {"units": dpm.EACH_RECORD, "budget": people}
    for found in (
        dpm.private_regression(X, t, BALL, dpm.GDP(1.0), covariate_range=(0.0, 1.0), **how),
        dpm.private_pga(X, BALL, dpm.GDP(1.0), count=2, **how),
        dpm.private_median(X, BALL, dpm.GDP(1.0), **how),
    ):
        assert ledger.compared(found).faults == ()
        faults = ledger.compared(dataclasses.replace(found.released[0], n=81)).faults
        assert any("another number of units" in fault for fault in faults)
