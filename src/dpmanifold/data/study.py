"""A study file: what is read and how, the ball and who pays, said once for all commands and for Python."""

from __future__ import annotations

import json
import os
import pathlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, final

from dpmanifold.data.selection import BALL, FILES, Selection
from dpmanifold.errors import InvalidArgumentError, Message, Public
from dpmanifold.files import whole_file

STUDY = pathlib.Path("study.toml")


@final
@dataclass(frozen=True)
class Study:
    r"""What every release of a study has in common. It holds no records.

    Parameters
    ----------
    selection : what to read and how, with the ball
    ledger : the ledger that pays, a file or postgresql://...
    population, principal, secret : whose budget, who spends, and the key file of fingerprints

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "visits.csv").write_text("person,x1,x2\nann,0.1,0.2\nbob,0.5,0.6\n")
    >>> about = Selection("visits.csv", "euclidean", columns="x1,x2", units="person", center="0,0", radius=2)
    >>> Study(about).write(folder / "study.toml")
    >>> study = Study.read(folder / "study.toml")
    >>> found = study.selection.open()
    >>> found.units, study.selection.ball_on(found.space).radius
    ('person', 2.0)
    """

    selection: Selection
    ledger: str | None = None
    population: str | None = None
    principal: str | None = None
    secret: str | None = None

    @staticmethod
    def read(path: str | os.PathLike[str] = STUDY) -> Study:
        """Read a study file. Its paths are relative to its folder."""
        where = pathlib.Path(path)
        try:
            record = tomllib.loads(where.read_text(encoding="utf-8"))
        except OSError as problem:
            raise InvalidArgumentError(
                "{path} cannot be read: {reason}. `dpm init` writes a study file.",
                path=Public(where), reason=Public(problem.strerror or "no such file"),
            ) from None  # fmt: skip
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InvalidArgumentError(
                "{path} is no TOML: {reason}.", path=Public(where), reason=Public(problem)
            ) from None
        ball, pays = (_table(record.pop(name, {}), name, known, where) for name, known in _TABLES.items())
        about = Selection.from_dict({**record, **ball})
        return Study(about, **{_PAYS[name]: text for name, text in pays.items()})._beside(where.parent)

    def _beside(self, folder: pathlib.Path) -> Study:
        """Return the study with paths that are relative to the folder that its file is in."""
        if folder == pathlib.Path():
            return self

        def file(text: Any) -> Any:
            parts = [text, text.rpartition(":")[0]] if isinstance(text, str) else []
            return str(folder / text) if any(part and (folder / part).exists() for part in parts) else text

        about = self.selection
        there: dict[str, Any] = {name: file(getattr(about, name)) for name in FILES}
        ledger = str(folder / self.ledger) if self.ledger and "://" not in self.ledger else self.ledger
        return replace(
            self,
            selection=replace(about, paths=[str(folder / path) for path in about.paths], **there),
            ledger=ledger,
            secret=self.secret and str(folder / self.secret),
        )

    def write(self, path: str | os.PathLike[str] = STUDY) -> None:
        """Write the study file, whole or not at all; a file that is there is replaced."""
        said = self.selection.to_dict()
        ball = {name: said.pop(name) for name in BALL if name in said}
        pays = {name: getattr(self, field) for name, field in _PAYS.items() if getattr(self, field) is not None}
        with whole_file(path) as file:
            file.write(_HEAD)
            for head, table in (("", said), ("\n[ball]\n", ball), ("\n[ledger]\n", pays)):
                file.write((head if table else "") + "".join(f"{name} = {_toml(one)}\n" for name, one in table.items()))


_HEAD = "# What every release of this study has in common: dpm and dpmanifold.data.Study read it.\n"
_PAYS = {"path" if one.name == "ledger" else one.name: one.name for one in fields(Study) if one.name != "selection"}

_TABLES = {"ball": BALL, "ledger": tuple(_PAYS)}


def _table(found: dict[str, Any], name: str, known: tuple[str, ...], path: pathlib.Path) -> dict[str, Any]:
    """Return a table of a study file, or refuse one that says what no study has."""
    texts = isinstance(found, dict) and (name == "ball" or all(isinstance(one, str) for one in found.values()))
    if not texts or set(found) - set(known):
        raise InvalidArgumentError(
            "table [{name}] of {path} takes {known}, as text{more}, and nothing else.",
            name=Public(name), path=Public(path), known=Public(", ".join(known)),
            more=Message(" or numbers") if name == "ball" else Message(""),
        )  # fmt: skip
    return found


def _toml(value: Any) -> str:
    """Return a value of a study as TOML, where texts, numbers and lists are written as in JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
