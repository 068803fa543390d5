"""Numbers, promises and times as pages say them. What is rounded here stands in full beside it, in `data-value`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from dpmanifold.errors import DPManifoldError, Either, Message, Wording
from dpmanifold.manifolds import space_from_text
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy.amounts import in_words
from dpmanifold.release import EXACT
from dpmanifold.service.questions import AMOUNTS, promise_from_json
from dpmanifold.service.views import DataSetView

KIND_WORDS = {**AMOUNTS, "ApproxDP": "epsilon and delta"}
STATE_WORDS = {
    "pending": "on its way",
    "waiting": "waits for approval",
    "released": "released",
    "refused": "refused",
    "lost": "lost",
    "queued": "waits for its turn",
    "working": "being read",
    "done": "registered",
}
_FIELDS = {
    "columns": "Columns", "array": "Array", "order": "Order of entries", "coordinates": "Coordinates", "size": "Size",
    "center": "Centre", "units": "Column of ids", "labels": "Column of classes", "classes": "The classes",
    "space": "Space", "radius": "Radius", "source": "Why this ball", "covariate": "Column of a covariate",
    "refine": "Look for a smaller ball first", "noise_shape": "Shape of the noise", "estimand": "Which mean",
    "path": "File", "paths": "File", "confirm": "the last box",
}  # fmt: skip
_DIGITS = 3
_PLURALS = {"person": "people", "child": "children"}
_LARGEST_MATRIX = 12


def amount(record: Mapping[str, Any] | None, up: bool = True) -> str:
    """Return a promise in a few words.

    Examples
    --------
    >>> amount({"kind": "GDP", "mu": 0.3, "exact": {"mu": "0.3"}}), amount(None)
    ('mu 0.3', 'nothing')
    """
    return "nothing" if record is None else in_words(promise_from_json(record), up=up)


def exact(record: Mapping[str, Any]) -> str:
    """Return a promise in a few words, with all its digits.

    >>> exact({"kind": "GDP", "mu": 0.5385164807134505})
    'mu 0.5385164807134505'
    """
    return ", ".join(f"{name} {value}" for name, value in promise_from_json(record).stated.items())


def number(value: float | None) -> str:
    """Return a number with three digits.

    >>> number(0.031332853), number(1234.5), number(2.0), number(3e-7), number(None)
    ('0.0313', '1,234', '2', '3e-07', 'none stated')
    """
    if value is None:
        return "none stated"
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{_DIGITS}g}"
    places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float | None) -> str:
    """Return a share in hundredths.

    >>> percent(0.0156), percent(1.0), percent(None)
    ('1.6 %', '100 %', 'none stated')
    """
    return "none stated" if share is None else f"{100 * share:.1f} %".replace(".0 %", " %")


class FormWording(Wording):
    """Arguments by the labels of the fields of forms."""

    def argument(self, name: str, value: str | None) -> str:
        """Return the label of a field, with the value that it is to have."""
        label = _FIELDS.get(name)
        if label is None:
            return super().argument(name, value)
        typed = "" if value in (None, "", "True", "...") else f" {value}"
        return f'"{label}"{typed}'

    def either(self, said: Either) -> object:
        """Return what is not for Python."""
        return said.elsewhere


def in_form(text: str) -> str:
    """Return a message of the library with the labels of fields for arguments; a text that is none, as it is.

    >>> in_form(Message("`refine=True` would be skipped, at no cost: there are too few."))
    '"Look for a smaller ball first" would be skipped, at no cost: there are too few.'
    >>> in_form(Message('Choose them with `columns=`, or give `order="dipy"`.'))
    'Choose them with "Columns", or give "Order of entries" "dipy".'
    """
    return FormWording().message(text) if isinstance(text, Message) else text


def bounded(share: float) -> str:
    """Return a share as a length of 100, for a bar.

    >>> bounded(0.25), bounded(1.7)
    ('25.00', '100.00')
    """
    return f"{100 * min(1.0, max(0.0, share)):.2f}"


def when(text: str) -> str:
    """Return a stored time for people.

    >>> when("2026-11-17T03:00:05.000000Z")
    '17 Nov 2026, 03:00:05 UTC'
    """
    time = datetime.fromisoformat(text)
    return f"{time.day} {time:%b %Y, %H:%M:%S} UTC"


def seconds_words(seconds: float | None) -> str:
    """Return a length of time.

    >>> seconds_words(2.02), seconds_words(1), seconds_words(150), seconds_words(7200)
    ('3 seconds', '1 second', '3 minutes', '2 hours')
    """
    if seconds is None:
        return "some time"
    length, unit = (1, "second") if seconds < 100 else (60, "minute") if seconds < 6000 else (3600, "hour")
    count = math.ceil(seconds / length)
    return f"{count} {unit if count == 1 else unit + 's'}"


def units(unit: str, n: int) -> str:
    """Return the word for n units.

    >>> units("participant", 2), units("person", 3), units("record", 1)
    ('participants', 'people', 'record')
    """
    if n == 1 or unit.endswith("s"):
        return unit
    return _PLURALS.get(unit, unit + "s")


def more_words(more: int) -> str:
    """Say how many more questions fit.

    >>> more_words(0), more_words(3)
    ('No other like it fits after that.', 'About 3 more like it fit after that.')
    """
    if more == 0:
        return "No other like it fits after that."
    return f"About {more:,} more like it {'fits' if more == 1 else 'fit'} after that."


def space_words(one: DataSetView) -> str:
    """Say what the records of a data set are."""
    try:
        said = space_from_text(one.space).describe()
    except DPManifoldError:  # a space of a package that is not installed here
        said = one.space
    return said[:1].upper() + said[1:]


def row_words(row: Mapping[str, Any]) -> str:
    """Say how a mechanism draws, and what it does not cover."""
    known = MECHANISMS.find(row["mechanism"])
    said = [] if known is None else [known.title]
    if row["arithmetic"] != EXACT:
        said.append("all digits of its noise together can tell more than is promised")
    if not row["covers_timing"]:
        said.append("how long a draw takes depends on the data")
    if not row["exact"]:
        said.append("the error is an upper bound")
    text = "; ".join(said) or "noise is drawn exactly"
    return text[:1].upper() + text[1:] + "."


def matrix(value: Any) -> Markup:
    """Return public numbers as a table; [real, imaginary] pairs are rows of two."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):  # parts of several shapes
        array = np.zeros(0)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.size == 0 or max(array.shape) > _LARGEST_MATRIX:
        return Markup("<pre>{}</pre>").format(str(value)[:2000])
    rows = "".join(f"<tr>{''.join(f'<td>{escape(number(entry))}</td>' for entry in row)}</tr>" for row in array)
    return Markup(f'<table class="matrix"><tbody>{rows}</tbody></table>')


WORDS: dict[str, Any] = {
    "amount": amount, "exact": exact, "number": number, "percent": percent, "bounded": bounded, "when": when,
    "seconds_words": seconds_words, "units": units, "more_words": more_words, "space_words": space_words,
    "row_words": row_words, "matrix": matrix, "state_words": STATE_WORDS, "symbols": AMOUNTS,
    "in_form": in_form, "kind_choices": list(KIND_WORDS.items()),
}  # fmt: skip
"""What templates call."""
