"""Data that were registered with a ledger: what is public about them is known, and they are opened once paid for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.inference.design import Range


@dataclass(frozen=True)
class Opened:
    """Registered records, as private calls take records. NOT PRIVATE.

    Attributes
    ----------
    records : an array or a source
    units : one id per record, the name of a column, or EACH_RECORD
    labels : one class per record, or the name of a column; None where there are no classes
    covariate : one number per record, or the name of a column; None where there is none
    """

    records: object
    units: object
    labels: object = None
    covariate: object = None


@dataclass(frozen=True)
class Covariate:
    """What is public about a registered covariate: that there is one, and none of its values.

    Attributes
    ----------
    range : (low, high), with which it was registered; calls may use another one
    public : whether anybody may know the values, and how many records a unit has
    """

    range: Range
    public: bool = False


class Registered(ABC):
    """Records that a population's steward registered; every private call takes one as X, with that population's budget.

    Plans are made from what is known here. Records are opened after the ledger and its witness have the spend, and
    whatever fails from then on makes the release lost, without a word about why.

    Attributes
    ----------
    id : of this version of the data
    ledger, population : where it is registered
    name : by which it is registered
    ball : the ball that it was registered with; calls may use another one on the same space
    n : how many units there are
    unit : what a unit is called in releases
    invalid : what records that are no points count as, "raise" (there were none) or "center"
    fingerprint : of the records under the ledger's key, so that the same ones are known under another name
    records_mark : of the records alone, the same whoever owns them and whatever their classes are
    facts : all that is public about the data, as it was registered (see :class:`~dpmanifold.stats.registering.Survey`)
    covariate : what is public about the covariate that was registered with them; None where there is none
    """

    id: str
    ledger: str
    population: str
    name: str
    ball: Ball
    n: int
    unit: str
    invalid: str
    fingerprint: str
    records_mark: str
    facts: Mapping[str, Any]
    covariate: Covariate | None = None

    def check(self) -> None:
        """Refuse, before anything is spent, what would only come out when the records are opened; looks at none."""
        return

    @abstractmethod
    def open(self) -> Opened:
        """Open the records and check that they are what was registered. Whatever it raises makes the release lost."""
