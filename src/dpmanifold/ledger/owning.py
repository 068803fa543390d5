"""Records that are units of their own: taken where nobody in the population can have two of them.

A population's unit is who is protected. A release about single records protects a participant only if no participant
has two of them, and a table of records without ids does not show that: somebody has to say so. Either the population's
unit is the record, or the steward has registered the records by name as one of each person, and they are asked about by
that name. Whether an array happens to be what was registered is not looked at: to take one and refuse another would
tell whoever knows all records but one what the last is.
"""

from __future__ import annotations

from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.ledger.chain import Reader
from dpmanifold.ledger.datasets import versions_of

RECORD = "record"
"""What a unit is called where every record is one, of data sets and of populations."""


def refuse_nameless(population: str, protected: str, unit: str) -> None:
    """Refuse records as units of their own that come without a name, where the population's unit is another.

    Parameters
    ----------
    population : its name
    protected : its unit
    unit : what a unit of the data is
    """
    if unit == RECORD != protected:
        raise InvalidArgumentError(
            "`units` must not be EACH_RECORD here: population {population!r} protects each {protected}, who "
            "may have several records. Give one id per record. If nobody has two records, say so by "
            "registering them by name, and give what is registered: population.register(name, X, ball, "
            "units=EACH_RECORD) as X; or dpm ledger register, and --dataset. Nothing was spent.",
            population=Public(population),
            protected=Public(protected),
        )


def refuse_shared(reader: Reader, population: str, protected: str, unit: str, records: str) -> None:
    """Refuse registered records as units of their own where the population has them with ids as well.

    Parameters
    ----------
    reader : of the ledger
    population, protected, unit : as in :func:`refuse_nameless`
    records : the mark of the records, whoever owns them
    """
    if unit != RECORD or protected == RECORD:
        return
    known = (one for one in versions_of(reader, population) if one.records == records and one.unit != RECORD)
    with_ids = next(known, None)
    if with_ids is not None:
        raise InvalidArgumentError(
            "`units` must not be EACH_RECORD: the same records are registered with ids, as {id}, and "
            "population {population!r} protects each {protected}. Give the ids. Nothing was spent.",
            id=Public(with_ids.id),
            population=Public(population),
            protected=Public(protected),
        )
