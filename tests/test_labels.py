"""Labels may be private: each is read by itself, and none decides what the others are taken for."""

import warnings

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold._cells import numbers_of_labels
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.estimators import PrivateLDA

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
# Names, what everybody is, and one label that another type of array would be needed for.
MIXED = [
    (["b", 7], 7, "b"),
    ([2**53 - 1, 0.5], 2**53 - 1, 0.5),
    ([1, 2.5, "x"], 1, "x"),
    ([True, "x"], True, "x"),
    ([0.1, "x"], 0.1, "x"),
]


@pytest.mark.parametrize(("names", "common", "other"), MIXED)
@pytest.mark.parametrize("kind", [list, tuple, lambda labels: np.array(labels, dtype=object), np.array])
def test_a_label_does_not_change_what_others_are(names, common, other, kind):
    everybody = numbers_of_labels(kind([common] * 9), names)
    assert (everybody == names.index(common)).all()
    assert numbers_of_labels(kind([common] * 8 + [other]), names).tolist() == [names.index(common)] * 8 + [
        names.index(other)
    ]


def test_a_list_made_an_array_would_fail_that_test():
    """What it must reject: labels looked up as the type that an array gives them all."""
    names, common, other = MIXED[3]
    assert np.asarray([common] * 8 + [other]).tolist()[0] not in names


def test_labels_are_found_by_how_they_are_written():
    assert numbers_of_labels(["2", "1"], [1, 2]).tolist() == [1, 0]
    assert numbers_of_labels(np.array([2, 1]), ["1", "2"]).tolist() == [1, 0]
    for wrong in (["3"], [None], [[1, 2]], [np.timedelta64(1, "s")], ["01"], np.ma.array([1], mask=[True])):
        with pytest.raises(InvalidDataError, match="that at index 0 is outside the public classes"):
            numbers_of_labels(wrong, [1, 2])
        assert numbers_of_labels(wrong, [1, 2], "center").tolist() == [-1]


@pytest.mark.parametrize("names", [[1, "1"], [0.1, "0.1"], [2**53, 2**53 + 1], [1, True]])
def test_names_that_are_written_alike_are_refused(names):
    labels, X = [names[0]] * 30, np.zeros((30, 2))
    for ask in (dpm.private_lda, dpm.private_k_sample_test, dpm.private_class_means):
        with pytest.raises(InvalidArgumentError, match="are written alike"):
            ask(X, labels, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=names)


@pytest.mark.parametrize("distinct", [30, 31])
def test_how_many_labels_there_are_shows_in_no_warning(distinct):
    """scikit-learn warns where more than half of the labels are distinct."""
    X, y = np.zeros((60, 2)), np.arange(60) % distinct
    budget = dpm.Budget(dpm.GDP(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateLDA(BALL, dpm.GDP(1.0), classes=range(40), units="each-record", budget=budget).fit(X, y)


def test_names_are_judged_and_not_the_labels_that_are_there():
    """Fractions among the names are refused whoever is in them."""
    for y in (np.repeat([0.0, 1.0], 30), np.repeat([0.0, 1.0, 0.5], 20)):
        budget = dpm.Budget(dpm.GDP(1.0))
        model = PrivateLDA(BALL, dpm.GDP(1.0), classes=[0, 0.5, 1], units="each-record", budget=budget)
        with pytest.raises(ValueError, match="Unknown label type"):
            model.fit(np.zeros((60, 2)), y)
        assert budget.remaining == dpm.GDP(1.0)
