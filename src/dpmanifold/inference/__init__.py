"""What released numbers say about the population: regions, intervals and tests. No data comes in here.

Everything in this package is computed from releases and public numbers alone, so it costs no privacy, and whoever
holds the releases can compute it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dpmanifold.errors import InvalidDataError
from dpmanifold.inference import interval, region, two_sample
from dpmanifold.inference.interval import Interval
from dpmanifold.inference.records import Conclusion, Parts
from dpmanifold.inference.region import Region
from dpmanifold.inference.two_sample import TwoSampleTest
from dpmanifold.records import read_record
from dpmanifold.release import FORMAT, Release

_KINDS: dict[str, Callable[[dict[str, Any]], Release | Conclusion]] = {
    FORMAT: Release.from_dict,
    region.FORMAT: Region.from_dict,
    interval.FORMAT: Interval.from_dict,
    two_sample.FORMAT: TwoSampleTest.from_dict,
}


def load(path: str | os.PathLike[str]) -> Release | Conclusion:
    """Read any result that was written by its `save`: a Release, Region, Interval or TwoSampleTest.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mean.json"
    >>> dpm.private_mean(np.zeros((9, 1)), ball, dpm.PureDP(1.0), units=dpm.EACH_RECORD).save(path)
    >>> load(path).statistic
    'mean'
    """
    record = read_record(path)
    kind = record.get("format") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidDataError(f"{os.fspath(path)} holds no result of dpmanifold. Give a file written by save.")
    return _KINDS[kind](record)


__all__ = ["Conclusion", "Interval", "Parts", "Region", "TwoSampleTest", "load"]
