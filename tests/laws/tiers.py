"""Products of parameters: in the default run every value meets every value of another axis, in the whole one all meet.

A fault that shows in one value, or in two values that come together, is found by the default run; one that needs three
values at once, by ``make test-all``. Nothing else thins out a list of cases.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence

import pytest


def cover(cases: Sequence[Sequence[Hashable]]) -> list[bool]:
    """Say of each case whether it belongs to a part in which all pairs of values of all cases occur.

    Greedy: whichever case brings most pairs that were not there yet is taken next, the first one of several. What a
    case would bring only falls while others are taken, so one pass for each number of pairs finds them.
    """
    brought = [set(itertools.combinations(enumerate(case), 2)) for case in cases]
    missing = set().union(*brought)
    taken = [len(pairs) == 0 for pairs in brought]  # a case of one value is in no pair and in no product
    for most in range(max(map(len, brought), default=0), 0, -1):
        for number, pairs in enumerate(brought):
            if len(pairs & missing) >= most:
                taken[number] = True
                missing -= pairs
    return taken


def lots(*axes: Iterable[object], within: int = 1, ids: Callable[[object], str] | None = None) -> list:
    """Return a product as :func:`pairs` does, the last `within` axes walked inside a test: a list of their values.

    Of each combination of the other axes there is one case with those of the pairwise cover, and one, marked `whole`,
    with all others: tens of thousands of cases would take longer to collect than to try.
    """
    lists = [list(axis) for axis in axes]
    numbers = list(itertools.product(*(range(len(values)) for values in lists)))
    found: dict[tuple, tuple[list, list]] = {}
    for case, taken in zip(numbers, cover(numbers), strict=True):
        values = [lists[axis][number] for axis, number in enumerate(case)]
        first, rest = tuple(case[:-within]), tuple(values[-within:])
        found.setdefault(first, ([], []))[0 if taken else 1].append(rest if within > 1 else rest[0])
    cases = []
    for first, (chosen, others) in found.items():
        values = [lists[axis][number] for axis, number in enumerate(first)]
        named = "-".join(map(ids, values)) if ids else None
        cases += [pytest.param(*values, chosen, id=named)] if chosen else []
        cases += (
            [pytest.param(*values, others, id=named and f"{named}-others", marks=pytest.mark.whole)] if others else []
        )
    return cases


def pairs(*axes: Iterable[object], ids: Callable[[object], str] | None = None) -> list:
    """Return the product of several axes for `parametrize`: cases outside its pairwise cover are marked `whole`.

    `ids` makes a word of one value; a case is named by those of all its values.
    """
    lists = [list(axis) for axis in axes]
    numbers = list(itertools.product(*(range(len(values)) for values in lists)))
    chosen = zip(numbers, cover(numbers), strict=True)
    return [
        pytest.param(
            *(values := [lists[axis][number] for axis, number in enumerate(case)]),
            marks=() if taken else pytest.mark.whole,
            id="-".join(map(ids, values)) if ids else None,
        )
        for case, taken in chosen
    ]
