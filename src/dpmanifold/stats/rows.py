"""Objects with labelled rows (pandas) that belong together have the same labels in the same order, or are refused.

Ids, classes and covariates stand beside records by position. Objects of pandas are moved by their labels: after
sorting, sampling or a join the position of a person's record is another one in each of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from dpmanifold.errors import Argument, InvalidArgumentError, Message
from dpmanifold.sources import Source, is_a


def refuse_other_rows(**given: object) -> None:
    """Refuse objects whose row labels are not the same, by the names of their arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.1, 0.2], "person": ["ann", "bob"]})
    >>> refuse_other_rows(X=frame[["x"]][::-1], units=frame.person)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: units has the row labels (index) of X in another order, and would be paired
    with other people's records. Give units.loc[X.index], or reset_index(drop=True) of both where they stand in the same
    order.
    """
    labelled = [found for name, each in given.items() for found in _indexes(name, each)]
    for name, index in labelled[1:]:
        first, known = labelled[0]
        if len(index) != len(known) or index.equals(known):
            continue  # another length is refused for what it is
        ordered = Counter(index) == Counter(known)
        other = Argument(first)
        how = Message("other row labels than {first}", first=other)
        by_name = Message("")
        if ordered:
            how = Message("the row labels (index) of {first} in another order", first=other)
        if ordered and index.is_unique and " of " not in f"{name}{first}":
            by_name = Message("{name}.loc[{first}.index], or ", name=Argument(name), first=other)
        raise InvalidArgumentError(
            "{name} has {how}, and would be paired with other people's records. Give {by_name}reset_index(drop=True) "
            "of both where they stand in the same order.",
            name=Argument(name),
            how=how,
            by_name=by_name,
        )


def _indexes(name: str, given: object) -> Iterator[tuple[str, Any]]:
    """Yield the row labels of an object, of the arrays of a tuple by what they are arrays of, of rows in a list."""
    if isinstance(given, tuple):
        for place, part in enumerate(given):
            yield from _indexes(f"factor {place} of {name}", part)
    elif isinstance(given, Source):
        yield from [] if given.index is None else [(name, given.index)]
    elif is_a(given, "pandas", "DataFrame", "Series"):
        yield name, given.index  # type: ignore[attr-defined]
    elif isinstance(given, list) and given and all(is_a(row, "pandas", "Series") for row in given):
        yield name, sys.modules["pandas"].Index([row.name for row in given])
