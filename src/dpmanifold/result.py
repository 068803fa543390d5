"""What every result shares: it is frozen, says what was promised, and is written, read, checked, drawn and reported.

A result is a release or something computed from releases. All that it does here costs no privacy: it follows from what
was released.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.privacy import Promise
from dpmanifold.serialization import read_record, write_record
from dpmanifold.summary import facts_table, facts_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmanifold.stats.check import Verification

R = TypeVar("R", bound="Result")

# What rooms above this one do with a result: imported when it is asked for.
_FROM_ABOVE = {
    "verify": "dpmanifold.stats.check",
    "show": "dpmanifold.plots.dispatch",
    "html_report": "dpmanifold.report",
    "import_queries": "dpmanifold.stats.query",
}
_FORMATS: dict[str, type[Result]] = {}


def _from_above(function: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(_FROM_ABOVE[function]), function)
    return found


def picture_of(thing: Any) -> Figure:
    """Return the picture of a result, or of anything else that :func:`dpmanifold.plots.show` draws."""
    drawn: Figure = _from_above("show")(thing)
    return drawn


class Result(ABC):
    """Something that was released, or that follows from releases alone.

    A class of results names the format of its records: `class ConfidenceRegion(Result, format="dpmanifold region 2")`.
    """

    format: ClassVar[str] = ""

    def __init_subclass__(cls, format: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if format:
            cls.format = format
            known = _FORMATS.setdefault(format, cls)
            # A class that is defined again by its own module, as when that is reloaded, replaces itself.
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise InvalidArgumentError(
                    f"format must be new, got {format!r}, which records of {known.__name__} have: name another one."
                )
            _FORMATS[format] = cls

    if TYPE_CHECKING:

        @property
        def privacy(self) -> Promise:
            """What was promised, everything included."""

        @property
        def private(self) -> bool:
            """False if a seed or a generator was used, anything was revealed, or the data were declared public."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, in a few words."""

    @property
    @abstractmethod
    def is_exact(self) -> bool:
        """Whether all that it rests on was drawn exactly."""

    @property
    @abstractmethod
    def released(self) -> tuple[Any, ...]:
        """The releases it is made of, each with its steps; a release is itself."""

    def released_by_name(self) -> dict[str, Any]:
        """Return the same by the names of groups, where there are several."""
        several = len(self.released) > 1
        return {f"release {place}" if several else "": one for place, one in enumerate(self.released, start=1)}

    def faults(self) -> list[str]:
        """Return what is wrong with it besides its releases, for :meth:`verify`."""
        return []

    @property
    def number_or_array(self) -> Any:
        """What an array can hold of it: the released value, or None."""
        return None

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """Names and texts to show, notes included."""

    @abstractmethod
    def answers(self) -> dict[str, Any]:
        """Return what a person reads off it, for machines; None stands for a number that cannot be told."""

    @abstractmethod
    def to_dict(self, answers: bool = True) -> dict[str, Any]:
        """Return names and numbers, ready for JSON; with :meth:`answers`, unless they are left out."""

    @classmethod
    @abstractmethod
    def from_dict(cls, record: dict[str, Any]) -> Result:
        """Rebuild it from :meth:`to_dict`; what is not written there is refused."""

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all."""
        write_record(path, self.to_dict())

    @classmethod
    def load(cls: type[R], path: str | os.PathLike[str]) -> R:
        """Read one written by :meth:`save`: a result of this class, or, asked of Result itself, of any."""
        record = read_record(path)
        found = _class_of(record)
        if cls.format and (found is None or not issubclass(found, cls)):
            return cls.from_dict(record)  # type: ignore[return-value]  # which refuses it in its own words
        if found is None:
            raise InvalidDataError(f"{os.fspath(path)} holds no result of dpmanifold. Give a file written by save.")
        return found.from_dict(record)  # type: ignore[return-value]

    # ---------------------------------------------------------------- checks and views

    def verify(self) -> Verification:
        """Recompute whatever it states that can be recomputed, and say what cannot (:func:`dpmanifold.verify`)."""
        checked: Verification = _from_above("verify")(self)
        return checked

    def picture(self) -> Figure:
        """Return its picture (:func:`dpmanifold.plots.show`); needs matplotlib."""
        return picture_of(self)

    def report(self) -> str:
        """Return a report for people as one HTML page (:func:`dpmanifold.report.html_report`)."""
        page: str = _from_above("html_report")(self)
        return page

    def __repr__(self) -> str:
        return facts_text(self.title, self.private, self.facts())

    def _repr_html_(self) -> str:
        return facts_table(self.title, self.private, self.facts())


def _class_of(record: Any) -> type[Result] | None:
    """Return the class of results that a record's format names, those of other distributions included."""
    kind = record.get("format") if isinstance(record, dict) else None
    if not isinstance(kind, str):
        return None
    if kind not in _FORMATS:
        _from_above("import_queries")()  # and with them their results
    return _FORMATS.get(kind)


def result_from_dict(record: Any) -> Result:
    """Rebuild any result from its `to_dict`, by the format that it names."""
    found = _class_of(record)
    if found is None:
        raise InvalidDataError("the record holds no result of dpmanifold: it names no format that is known.")
    return found.from_dict(record)


def load(path: str | os.PathLike[str]) -> Result:
    """Read any result that was written by its `save`: a Release, a ConfidenceRegion or what else it was.

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
    return Result.load(path)
