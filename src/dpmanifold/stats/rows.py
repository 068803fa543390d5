"""Objects with labelled rows (pandas) that belong together have the same labels in the same order, or are refused.

Ids, classes and covariates stand beside records by position. Objects of pandas are moved by their labels: after
sorting, sampling or a join the position of a person's record is another one in each of them.
"""

from __future__ import annotations

from typing import Any

from dpmanifold.errors import InvalidArgumentError
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
    labelled = [(name, index) for name, each in given.items() if (index := _index_of(each)) is not None]
    for name, index in labelled[1:]:
        first, known = labelled[0]
        if len(index) != len(known) or index.equals(known):
            continue  # another length is refused for what it is
        ordered = len(index) == len(known) and not index.symmetric_difference(known).size
        how = f"the row labels (index) of {first} in another order" if ordered else f"other row labels than {first}"
        raise InvalidArgumentError(
            f"{name} has {how}, and would be paired with other people's records. Give "
            f"{f'{name}.loc[{first}.index], or ' if ordered else ''}reset_index(drop=True) of both where they stand in "
            "the same order."
        )


def _index_of(given: object) -> Any:
    if isinstance(given, Source):
        return given.index
    return given.index if is_a(given, "pandas", "DataFrame", "Series") else None  # type: ignore[attr-defined]
