"""A budget that survives: one account for each population, over scripts, crashes, colleagues and years."""

from typing import TYPE_CHECKING, Any

from dpmanifold._check import optional_module
from dpmanifold.ledger.auditing import Audit
from dpmanifold.ledger.export import verify_export
from dpmanifold.ledger.receipts import verify_receipt

if TYPE_CHECKING:
    from dpmanifold.ledger.ledger import Ledger
    from dpmanifold.ledger.population import Population

_PLACES = {"Ledger": "ledger", "Population": "population"}


def __getattr__(name: str) -> Any:
    """Import what needs SQLAlchemy when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    optional_module("sqlalchemy", "ledger", "a ledger")
    return getattr(optional_module(f"{__name__}.{_PLACES[name]}", "ledger", "a ledger"), name)


__all__ = ["Audit", "Ledger", "Population", "verify_export", "verify_receipt"]
