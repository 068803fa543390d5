"""What to read and how: files, the space of their records, columns, who owns each record, and the public ball.

A selection holds words and no records. The command line, a request to a service, Python and a registration in a ledger
say the same by it; and where data are registered, what was said then is compared before anything is spent.
"""

from __future__ import annotations

import glob
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast, final

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.data.bids import is_bids
from dpmanifold.data.dataset import Dataset
from dpmanifold.data.formats import files_in
from dpmanifold.data.selected import Selected, Tell, is_pattern, kind_of_file, read
from dpmanifold.data.specifications import EACH, ball_of, class_words, classes_of, kind_of, space_of
from dpmanifold.errors import Argument, InvalidArgumentError, Message, Names
from dpmanifold.manifolds import Manifold
from dpmanifold.serialization import ball_from_dict, ball_to_dict
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.registered_data import SELECTION

if TYPE_CHECKING:
    from dpmanifold.inference.design import Range
    from dpmanifold.ledger import Population
    from dpmanifold.ledger.datasets import RegisteredData

_LATER = ()  # stands for ids that are read along with the records


@final
@dataclass(frozen=True)
class Selection:
    r"""What to read, and how it becomes records with units, classes, a covariate and a ball. It holds no records.

    Where a file is named beside the records, it is FILE, or FILE:COLUMN of a table.

    Parameters
    ----------
    paths : a file, a folder, a pattern such as "study/*.parquet", or several of these; or a folder in the form of BIDS
    space : of the records: a space, its name such as "spd", or its text in full, such as "SPD(3)"
    size : of a space that is given by its name; if left out, that of the records
    units : who owns each record: "each-record" (nobody owns two), a column or key of the data, or a file
    radius, center, source : of the public ball. The center is text: coordinates "0,0,1", a number times the identity,
        or a file with one point
    columns : names or patterns of the columns of a table that are numbers of a record, in one text or in several
    array : inside an .npz file
    order : of the six numbers of a tensor, as in :func:`as_records`
    coordinates : the system the numbers are in, as in :func:`from_coordinates`
    normalize : whether nearly valid records are moved onto the space first, each by itself
    labels : the class of each record: a column or key of the data, or a file
    classes : the public list of classes: names, or text such as "a,b,c" or "0..9"
    labels_public : whether anybody may know who is in which class
    covariate : a number for each record: a column or key of the data, or a file
    covariate_range : (low, high), from public knowledge
    covariate_public : whether anybody may know the covariate of each unit
    mask : an image that is above 0 in the voxels to take, or "nonzero", with images of tensors
    ball : instead of a radius: a ball, a file that holds one, or "whole-space"
    invalid : what records that are no points of the space count as, "raise" or "center"

    Examples
    --------
    >>> import tempfile
    >>> import dpmanifold as dpm
    >>> path = pathlib.Path(tempfile.mkdtemp(), "visits.csv")
    >>> _ = path.write_text("person,x1,x2\nann,0.1,0.2\nann,0.3,0.4\nbob,0.5,0.6\n")
    >>> visits = Selection(path, "euclidean", columns="x1,x2", units="person", center="0,0", radius=2)
    >>> found = visits.open()
    >>> found.space, found.units, visits.ball_on(found.space).radius
    (Euclidean(2), 'person', 2.0)
    >>> Selection.from_dict(visits.to_dict()) == visits
    True
    >>> Selection.from_dict({"paths": ["visits.csv"], "column": "x1"})
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: a selection has no 'column'. It takes paths, space, size, units, radius,
    center, source, columns, array, order, coordinates, normalize, labels, classes, labels_public, covariate,
    covariate_range, covariate_public, mask, ball, invalid.
    """

    paths: Sequence[str]
    space: Manifold | str | None = None
    _: KW_ONLY
    size: str | None = None
    units: str | None = None
    radius: float | None = None
    center: str | None = None
    source: str = ""
    columns: Sequence[str] | None = None
    array: str | None = None
    order: str | None = None
    coordinates: str | None = None
    normalize: bool = False
    labels: str | None = None
    classes: Sequence[str | int] | None = None
    labels_public: bool = False
    covariate: str | None = None
    covariate_range: Range | None = None
    covariate_public: bool = False
    mask: str | None = None
    ball: Ball | str | None = None
    invalid: str | None = None

    def __post_init__(self) -> None:
        """Write every field in one way, and refuse what is of another kind."""
        for one in fields(self):
            object.__setattr__(self, one.name, _READERS[one.name](getattr(self, one.name), one.name))

    # ---------------------------------------------------------------- what is written down

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> Selection:
        """Rebuild a selection from :meth:`to_dict`, or from JSON that somebody else wrote."""
        unknown = sorted(set(record) - {"paths", *WORDS})
        if unknown:
            raise InvalidArgumentError(
                "a selection has no {unknown}. It takes {names}.",
                unknown=Names(unknown),
                names=", ".join(("paths", *WORDS)),
            )
        return Selection(**{"paths": (), **record})

    def to_dict(self) -> dict[str, Any]:
        """Return what was said, ready for JSON: the same for the same selection, whatever was left out."""
        said = {name: getattr(self, name) for name, usual in WORDS.items() if getattr(self, name) != usual}
        ball = {"ball": ball_to_dict(self.ball)} if isinstance(self.ball, Ball) else {}
        listed = {name: list(value) for name, value in said.items() if isinstance(value, tuple)}
        return {"paths": list(self.paths), **said, **listed, **ball}

    # ---------------------------------------------------------------- its parts

    @property
    def space_text(self) -> str:
        """The space, by its name or in full."""
        if self.space is None:
            raise InvalidArgumentError("`space` is missing: which space records are points of, such as spd or SPD(3).")
        return cast(str, self.space)

    @property
    def sized_space(self) -> Manifold | None:
        """The space, where its size is said as well."""
        said = "(" in self.space_text or self.size is not None
        return space_of(self.space_text, self.size) if said else None

    @property
    def apart(self) -> str | None:
        """The column besides the ids that is no part of the records, though no columns were chosen for these."""
        return self.covariate if self.labels is None and self.columns is None else self.labels

    def says_more_than(self, *names: str) -> bool:
        """Return whether anything is said besides the paths and the fields of these names."""
        return any(getattr(self, name) != usual for name, usual in WORDS.items() if name not in names)

    def ball_on(self, space: Manifold) -> Ball:
        """Return the public ball: from a file, or about a center."""
        return ball_of(space, self.radius, self.center, self.source, self.ball)

    def dataset(self) -> Dataset:
        """Return tables or arrays that are read a block at a time, opened."""
        return Dataset(self.paths, columns=self.columns, key=self.array, order=self.order, coordinates=self.coordinates)

    # ---------------------------------------------------------------- opening

    def refuse_no_units(self) -> None:
        """Refuse records of which it is not said who owns them."""
        if self.units is None:
            raise InvalidArgumentError("`units` is missing: who owns each record (each-record, a column, a file).")

    def check(self) -> None:
        """Refuse a space, coordinates or a ball that there cannot be. Opens no records."""
        kind = kind_of(self.space_text)
        if self.coordinates is not None and self.coordinates not in kind.coordinates:
            raise InvalidArgumentError(
                "`coordinates` {coordinates} means nothing for `space` {name}. Leave it out.",
                coordinates=self.coordinates,
                name=self.space_text,
            )
        space = self.sized_space
        if space is not None and (self.radius, self.ball) != (None, None):
            self.ball_on(space)

    def open(self, *, tell: Tell | None = None, within: str | os.PathLike[str] | None = None) -> Selected:
        """Open the files: headers and shapes, where records are read a block at a time; the whole where they are not.

        Parameters
        ----------
        tell : is told which files are read, where a folder or a pattern was given
        within : a folder; whatever is named must lie in it, links followed, and nothing else is opened
        """
        self.check()
        if within is not None:
            self._refuse_outside(pathlib.Path(within).resolve())
        return read(self, tell or (lambda said: None)).beside(self.units, self.labels, self.covariate)

    def _refuse_outside(self, folder: pathlib.Path) -> None:
        texts = [text for text in (getattr(self, name) for name in FILES) if isinstance(text, str)]
        parts = [part for text in texts for part in (text, text.rpartition(":")[0]) if part]
        for path in (*self.paths, *filter(os.path.lexists, parts)):
            if not pathlib.Path(path).resolve().is_relative_to(folder):
                raise InvalidArgumentError("{path} lies outside of the folder that may be read.", path=path)

    # ---------------------------------------------------------------- registration

    def register(
        self,
        population: Population,
        name: str,
        *,
        opened: Selected | None = None,
        curator: Curator | None = None,
        confirm: bool = False,
    ) -> RegisteredData:
        """Register the records with a population, and how they are read with them.

        Parameters
        ----------
        population, name, curator, confirm : as in :meth:`~dpmanifold.ledger.Population.register`
        opened : what was read by this selection before; opened now where it is not given
        """
        self.refuse_no_units()
        found = self.open(tell=cast("Tell | None", curator)) if opened is None else opened
        classes = None if self.classes is None else classes_of(list(map(str, self.classes)))
        return population.register(
            name, found.records, self.ball_on(found.space), units=found.units, labels=found.labels,
            classes=classes, labels_public=self.labels_public, covariate=found.covariate,
            covariate_range=self.covariate_range, covariate_public=self.covariate_public,
            invalid=self.invalid or "raise", curator=curator, confirm=confirm, selection=self._reading(found.kind),
        )  # fmt: skip

    def registered(self, population: Population, name: str, *, tell: Tell | None = None) -> RegisteredData:
        """Return data that were registered before; their files are opened once they are paid for.

        Whatever goes wrong with files after the spend loses the release. So all that is public is compared before it:
        what is said here must be what was said then, and what is left out is taken from there.

        Parameters
        ----------
        population : with which they are registered
        name : NAME, or NAME@VERSION
        tell : as in :meth:`open`
        """
        plain, _, version = name.partition("@")
        if version and not version.isdecimal():
            raise InvalidArgumentError(
                "`dataset` {name}: a version is a whole number, as in {plain}@1.", name=name, plain=plain
            )
        later = {"units": _LATER, "labels": _LATER, "covariate": _LATER}
        known = population.dataset(plain, None, **later, version=int(version) if version else None)
        self._refuse_others(name, known)
        beside: dict[str, Any] = {option: self._where(option, known) for option in later}
        chosen = replace(self._as_registered(known), space=known.ball.space, size=None, **beside)
        chosen.check()
        return population.dataset(plain, partial(chosen.open, tell=tell), **later, version=known.version)

    def _refuse_others(self, name: str, known: RegisteredData) -> None:
        """Refuse words that cannot be about these data."""
        space = known.ball.space
        sized = None if self.space is None else self.sized_space
        is_other = self.space is not None and not issubclass(type(space), kind_of(self.space_text))
        if is_other or (sized is not None and sized.shape != space.shape):
            raise InvalidArgumentError(
                "`space` {words} is not that of {id}, {space!r}.", words=self.space, id=known.id, space=space
            )
        if self.units is not None and (self.units == EACH) != (known.unit == "record"):
            said = "each record is a unit" if known.unit == "record" else "units have ids"
            raise InvalidArgumentError(
                "`units` {words} is not as {id} was registered: {said}.", words=self.units, id=known.id, said=said
            )
        if self.invalid not in (None, known.invalid):
            raise InvalidArgumentError(
                "`invalid` must be {invalid}, as {id} was registered. Leave it out.", invalid=known.invalid, id=known.id
            )
        for path in self.paths:
            if not os.path.lexists(path) and not (is_pattern(path) and glob.glob(path, recursive=True)):
                raise InvalidArgumentError(
                    "{path} is not there: `dataset` {name} says what it holds, PATH where it is.", path=path, name=name
                )

    def _where(self, option: str, known: RegisteredData) -> str | None:
        """Return where ids, classes or covariates stand, as was said or registered; or refuse what would fail later.

        Data are known again by all that was registered with them, whatever is asked about them now.
        """
        said: str | None = getattr(self, option)
        units = EACH if known.unit == "record" else known.about["units"]
        column, there = {
            "units": (units, True),
            "labels": (known.about["labels"], "classes" in known.facts),
            "covariate": (known.about.get("covariate", {}).get("column"), known.covariate is not None),
        }[option]
        if said is not None and (not there or column not in (None, said)):
            _refuse_other(option, known.id, column if there else None)
        if there and said is None and column is None:
            raise InvalidArgumentError(
                "{option}: {id} was registered with {option}, by which it is known again, and not from a "
                "column that is read along with the records. Give it here as well; or, for a command that does "
                "not take it, register the data under another name without.",
                option=Argument(option),
                id=known.id,
            )
        return column if said is None else said

    def _reading(self, kind: str) -> dict[str, Any]:
        """Return how files become records, as a registration saves it: no path, and nothing that stands in a file."""
        said = self.to_dict()
        image = {"mask": _IMAGE} if self.mask not in (None, "nonzero") else {}
        return {"files": kind, **{name: said[name] for name in READING if name in said}, **image}

    def _as_registered(self, known: RegisteredData) -> Selection:
        """Return the selection with what was registered in place of what is left out; refuse what is said otherwise.

        Files of another sort are read in another way, and nothing is known about that.
        """
        in_form = len(self.paths) == 1 and is_bids(self.paths[0])
        now = self._reading("images" if in_form else kind_of_file(files_in(list(self.paths))[0]))
        saved = known.about.get(SELECTION, {})
        if saved.get("files") != now["files"]:
            return self
        for name in READING:
            then = saved.get(name)
            if now.get(name) != then and (name in now or then == _IMAGE):
                _refuse_other(name, known.id, ",".join(then) if isinstance(then, list) else then)
        return replace(self, **{name: saved[name] for name in READING if name in saved and name not in now})


def _refuse_other(option: str, id: str, registered: object) -> NoReturn:
    """Refuse what data were registered without, or with another."""
    if registered is None:
        raise InvalidArgumentError(
            "{option}: {id} was registered without. Register it again with {option}, or leave it out.",
            option=Argument(option),
            id=id,
        )
    raise InvalidArgumentError(
        "{option} must be {registered}, as {id} was registered.{remedy}",
        option=Argument(option),
        registered=registered,
        id=id,
        remedy=Message("") if option in ("units", "labels", "mask") else Message(" Or leave it out."),
    )


WORDS: dict[str, Any] = {one.name: one.default for one in fields(Selection) if one.default is not MISSING}
"""What can be said of records besides their paths, and what is meant where it is left out."""

_IMAGE = "an image"  # stands for the path of a mask, which may lie elsewhere later
BALL = ("radius", "center", "source", "ball")
"""How the public ball is said."""
FILES = ("units", "labels", "covariate", "center", "mask", "ball")
"""What may be the name of a file, besides the paths."""
READING = ("columns", "array", "order", "coordinates", "normalize", "mask")
"""How files become records: what a registration saves, and what a result is applied with."""


def _text(given: Any, name: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise InvalidArgumentError("{name} must be text.", name=Argument(name))
    usual: str | None = WORDS[name]
    return given or usual


def _flag(given: object, name: str) -> bool:
    if not isinstance(given, bool):
        raise InvalidArgumentError("{name} must be true or false, got {got}.", name=Argument(name), got=shown(given))
    return given


def _paths(given: Any, name: str) -> tuple[str, ...]:
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    return tuple(os.fspath(path) if isinstance(path, os.PathLike) else path for path in several)


def _space(given: object, name: str) -> str | None:
    return repr(given) if isinstance(given, Manifold) else _text(given, name)


def _size(given: Any, name: str) -> str | None:
    several = given if isinstance(given, (list, tuple)) else [given]
    whole = given is not None and all(type(number) is int for number in several)
    return ",".join(map(str, several)) if whole else _text(given, name)


def _columns(given: Any, name: str) -> tuple[str, ...] | None:
    several = given if isinstance(given, (list, tuple)) else (_text(given, name) or "").split(",")
    return tuple((_text(one, name) or "").strip() for one in several) if given else None


def _ball(given: Any, name: str) -> Ball | str | None:
    if isinstance(given, Ball):
        return given
    return ball_from_dict(given) if isinstance(given, Mapping) else _text(given, name)


def _radius(given: Any, name: str) -> float | None:
    try:
        return None if given is None else float(given)
    except (TypeError, ValueError):
        raise InvalidArgumentError("`radius` must be a number: how far records may lie from the centre.") from None


def _range(given: Any, name: str) -> tuple[float, float] | None:
    try:
        low, high = (None, None) if given is None else map(float, given)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            "`covariate_range` must be two numbers, the lowest and the highest value that is possible, from "
            "public knowledge."
        ) from None
    return None if low is None or high is None else (low, high)


def _classes(given: Any, name: str) -> tuple[str, ...] | None:
    if isinstance(given, str) and given:
        return tuple(class_words(given))
    if given and not (isinstance(given, (list, tuple)) and all(isinstance(one, (str, int)) for one in given)):
        raise InvalidArgumentError("`classes` must be a list of names.")
    return tuple(map(str, given)) if given else None


_READERS: dict[str, Callable[[Any, str], Any]] = {
    **{name: _flag if isinstance(usual, bool) else _text for name, usual in WORDS.items()},
    "paths": _paths, "space": _space, "size": _size, "columns": _columns, "ball": _ball, "radius": _radius,
    "covariate_range": _range, "classes": _classes,
}  # fmt: skip
