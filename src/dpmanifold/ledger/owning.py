"""Records that are units of their own: taken where nobody in the population can have two of them.

A population's unit is who is protected. A release about single records protects a participant only if no participant
has two of them, and a table of records without ids does not show that: somebody has to say so. Either the population's
unit is the record, or the steward has registered these very records by name as one of each person.
"""

from __future__ import annotations

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.ledger.chain import Reader
from dpmanifold.ledger.datasets import versions_of

RECORD = "record"
"""What a unit is called where every record is one, of data sets and of populations."""


def refuse_shared(reader: Reader, population: str, protected: str, unit: str, records: str, *, by_name: bool) -> None:
    """Refuse records as units of their own where a unit of the population may have several of them.

    Parameters
    ----------
    reader : of the ledger
    population : its name
    protected : its unit
    unit : what a unit of the data is
    records : the mark of the records, whoever owns them
    by_name : whether they are registered by name, or were: this is the steward's word that nobody has two
    """
    if unit != RECORD or protected == RECORD:
        return
    known = [one for one in versions_of(reader, population) if one.records == records]
    with_ids = next((one for one in known if one.unit != RECORD), None)
    if with_ids is not None:
        raise InvalidArgumentError(
            f"units must not be EACH_RECORD: the same records are registered with ids, as {with_ids.id}, and "
            f"population {population!r} protects each {protected}. Give the ids. Nothing was spent."
        )
    if not (by_name or any(one.about for one in known)):
        raise InvalidArgumentError(
            f"units must not be EACH_RECORD here: population {population!r} protects each {protected}, who may have "
            "several records. Give one id per record. If nobody has two records, say so by registering them by name: "
            "population.register(name, X, ball, units=EACH_RECORD), or dpm ledger register. Nothing was spent."
        )
