"""A ledger on every engine."""

import pytest

from dpmanifold.ledger import Ledger


@pytest.fixture(params=["sqlite"])
def ledger_url(request, tmp_path):
    """Where a new, empty ledger is: open it with Ledger(ledger_url, principal=...)."""
    where = str(tmp_path / "study.db")
    Ledger.create(where).close()
    return where
