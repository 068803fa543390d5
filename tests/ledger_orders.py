"""Orders for tests that settle them by hand, and what became of them."""

from dpmanifold import GDP
from dpmanifold.privacy.budget_accounts import Order


def order(key, promise=None, **request):
    """An order of a mean, of an eighth of mu unless another promise is given."""
    return Order(promise or GDP(0.125), "a mean", key, {"statistic": "mean", "data": ["dti@1"], **request})


def never(receipt):
    """Work that must not be done."""
    raise AssertionError("the work was done once more")


def kinds(ledger):
    """The kinds of all entries, in order."""
    return [entry.kind for entry in ledger.entries()]
