"""The reader of a service's worker: what `dpm ledger register` makes of its options, from the request of a steward."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpmanifold.cli.arguments import ball_of, class_words, classes_of
from dpmanifold.cli.command import one_apart
from dpmanifold.cli.records import Given, How, read
from dpmanifold.errors import Argument, InvalidArgumentError

if TYPE_CHECKING:
    from dpmanifold.service.registering import Read


def read_request(request: Mapping[str, Any], path: pathlib.Path) -> Read:
    """Return ball, records and all that is beside them.

    Parameters
    ----------
    request : as `Desk.register` takes it; files that it names can be read
    path : of the records
    """
    from dpmanifold.service.kept import Columns
    from dpmanifold.service.registering import Read

    words = {name: _text(request, name) for name in _WORDS}
    beside = (words["units"], one_apart(words["labels"], words["covariate"]))
    normalize = request.get("normalize") is True
    how = How(words["columns"], words["array"], words["order"], words["coordinates"], None, normalize)
    given = read([str(path)], words["space"] or "", words["size"], how, beside)
    ball = ball_of(given.space, _radius(request), words["center"], words["source"] or "", None)
    units = given.units(words["units"] or "")
    labels, covariate = (_beside(given, words[name], name) for name in ("labels", "covariate"))
    return Read(ball, Columns(given.records, units, labels, covariate), _classes(request))


_WORDS = (
    "space", "size", "units", "labels", "covariate", "columns", "array", "order", "coordinates", "center", "source",
)  # fmt: skip


def _text(request: Mapping[str, Any], name: str) -> str | None:
    value = request.get(name)
    if name in ("size", "columns") and isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if name == "size" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError("{name} must be text.", name=Argument(name))
    return value or None


def _radius(request: Mapping[str, Any]) -> float:
    try:
        return float(request.get("radius"))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgumentError("`radius` must be a number: how far records may lie from the centre.") from None


def _beside(given: Given, text: str | None, name: str) -> Any:
    return None if text is None else given.column(text, f"--{name}")


def _classes(request: Mapping[str, Any]) -> list[Any] | None:
    given = request.get("classes")
    if given is None or given in ("", []):
        return None
    if isinstance(given, str):
        return classes_of(class_words(given))
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, (str, int)) for name in given):
        raise InvalidArgumentError("`classes` must be a list of names.")
    return classes_of([str(name) for name in given])


__all__ = ["read_request"]
