"""A test of two classes of one registered data set: that nobody is in both is known before the spend."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, ReleaseLostError
from dpmanifold.ledger import Ledger, verify_receipt
from dpmanifold.stats import asking
from laws.accounts import MemoryAccount

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
X = np.random.default_rng(0).normal(0.0, 0.5, (60, 2))
LABELS = ["a"] * 20 + ["b"] * 40
NAMES = ["a", "b"]
IDS = [f"p{i // 2}" for i in range(60)]
EACH = dpm.EACH_RECORD


def asked(data, account, Y=None, **rest):
    given = {"units": None, "classes": NAMES, "budget": account, **rest}
    return dpm.private_two_sample_test(data, Y, BALL, dpm.GDP("0.5"), **given)


@pytest.mark.parametrize("unit", ["record", "participant"])
def test_two_classes_are_opened_once_they_are_paid_for(tmp_path, unit):
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit=unit)
        ids = EACH if unit == "record" else IDS
        cohort.register("study", X, BALL, units=ids, labels=LABELS, classes=NAMES)
        called = []
        data = cohort.dataset("study", lambda: called.append(cohort.spent) or X, units=ids, labels=LABELS)
        first, again = (asked(data, cohort, key="once") for _ in range(2))
        assert called == [dpm.GDP("0.5")]
        assert first.to_dict() == again.to_dict()
        assert first.verify().ok
        assert [release.n for release in first.released] == ([20, 40] if unit == "record" else [10, 20])
        # The ledger knows it again, and groups that were exchanged are not what it paid for.
        ledger.export(tmp_path / "export.jsonl")
        assert ledger.compared(first).faults == ()
        assert verify_receipt(first, tmp_path / "export.jsonl") == []
        turned = dpm.TwoSampleTest(first.second, first.first, 0.95)
        assert any("another number of units" in fault for fault in ledger.compared(turned).faults)
        with pytest.raises(InvalidArgumentError, match="another request"):
            asked(data, cohort, key="once", refine=True)


def test_what_is_drawn_is_what_is_drawn_of_two_arrays(monkeypatch):
    """With the same bits: and not with the groups exchanged."""
    fresh = asking.fresh_bits
    monkeypatch.setattr(asking, "fresh_bits", lambda rng, *rest: fresh(1, *rest))
    account = MemoryAccount(dpm.GDP("9"))
    data = account.register("study", X, BALL, IDS, labels=LABELS, classes=NAMES)

    def raw(*groups):
        words = {"units": tuple(IDS[group] for group in groups), "classes": None}
        return asked(X[groups[0]], None, X[groups[1]], **words)

    def values(found):
        return [release.value.tolist() for release in found.released]

    one, two = slice(0, 20), slice(20, 60)
    assert values(asked(data, account)) == values(raw(one, two))
    assert values(asked(data, account)) != values(raw(two, one))


def test_public_facts_refuse_before_the_spend():
    account = MemoryAccount(dpm.GDP("9"), unit="participant")
    data = account.register("study", X, BALL, IDS, labels=LABELS, classes=NAMES)
    mixed = account.register("mixed", X, BALL, IDS, labels=["a", "b"] * 30, classes=NAMES)
    secret = account.register("secret", X, BALL, IDS, labels=LABELS, classes=NAMES, labels_public=False)
    three = account.register("three", X, BALL, IDS, labels=["a", "b", "c"] * 20, classes=["a", "b", "c"])
    plain = account.register("plain", X, BALL, IDS)
    account.events.clear()
    for words, attempt in (
        (r"a unit has records in 2 groups.*Nothing was spent", lambda: asked(mixed, account)),
        ("registered with private labels", lambda: asked(secret, account)),
        ("classes must be those", lambda: asked(plain, account)),
        ("classes must be those", lambda: asked(three, account)),
        ("classes must be those", lambda: asked(data, account, classes=["b", "a"])),
        (
            r"two for a test of two groups, got 3\. private_k_sample_test",
            lambda: asked(three, account, classes=list("abc")),
        ),
        ("give it as X, and None as Y", lambda: asked(data, account, data)),
        ("give it as X, and None as Y", lambda: asked(X, account, X, units=EACH)),
        (r"must both be registered.*classes=", lambda: asked(data, account, classes=None)),
        (r"protects each participant.*one data set with labels", lambda: asked(data, account, plain, classes=None)),
        ("units are registered with X", lambda: asked(data, account, units=IDS)),
        ("only its account may pay", lambda: asked(data, None)),
    ):
        with pytest.raises((InvalidArgumentError, InvalidDataError), match=words):
            attempt()
    assert account.events == []


def test_classes_that_changed_since_are_lost():
    account = MemoryAccount(dpm.GDP("9"))
    data = account.register("study", X, BALL, EACH, labels=LABELS, classes=NAMES)
    data.replace(labels=LABELS[::-1])
    with pytest.raises(ReleaseLostError):
        asked(data, account)
    assert account.events == ["registered", "spent", "started", "opened", "lost"]
