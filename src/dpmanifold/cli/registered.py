"""Registered data on the command line: --dataset says which, and their files are opened once they are paid for.

Whatever goes wrong with files after the spend loses the release. So all that is public is compared before it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

from dpmanifold.cli.arguments import EACH, ball_of, kind_of
from dpmanifold.cli.records import Given, is_pattern
from dpmanifold.errors import Argument, InvalidArgumentError
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.stats.registered_data import Opened, Registered

if TYPE_CHECKING:
    from dpmanifold.ball import Ball
    from dpmanifold.ledger import Population
    from dpmanifold.ledger.datasets import RegisteredData

Words = Mapping[str, Any]
"""What was said on the command line."""
Read = Callable[[str | None, str | None], Given]
"""Opens the files, given which columns hold classes and covariates, where that is known."""
_LATER = ()  # stands for ids that are read along with the records


@final
class Late(Registered):
    """Registered records of files that nobody has looked at yet.

    Parameters
    ----------
    account : the population they are registered with
    known : what is registered
    read : opens the files; called after the spend
    units : what was said about them
    labels, covariate : where classes and covariates stand, as it was said or else registered; None where there are none
    """

    def __init__(
        self,
        account: Population,
        known: RegisteredData,
        read: Read,
        units: str,
        labels: str | None,
        covariate: str | None,
    ) -> None:
        self.id, self.ledger, self.population, self.name = known.id, known.ledger, known.population, known.name
        self.ball, self.n, self.unit, self.invalid, self.facts = (
            known.ball, known.n, known.unit, known.invalid, known.facts,
        )  # fmt: skip
        self.fingerprint, self.records_mark, self.covariate = known.fingerprint, known.records_mark, known.covariate
        self._account, self._known, self._read, self._units = account, known, read, units
        self._columns = labels, covariate

    def check(self) -> None:
        """Refuse a ledger whose key is not there."""
        self._known.check()

    def open(self) -> Opened:
        """Open the files, and compare them with what was registered."""
        labels, covariate = self._columns
        given = self._read(labels, covariate)
        found = self._account.dataset(
            self.name,
            given.records,
            units=given.units(self._units),
            labels=None if labels is None else given.column(labels, "--labels"),
            covariate=None if covariate is None else given.column(covariate, "--covariate"),
            version=self._known.version,
        )
        return found.open()


def registered(name: str, words: Words, account: Account | None, read: Read) -> tuple[Given, Ball]:
    """Return the data set of this name in the place of records, and the ball that was asked for or registered.

    Parameters
    ----------
    name : NAME, or NAME@VERSION
    words : what was said
    account : the population that pays; None where no ledger was given
    read : opens the files
    """
    if account is None:
        raise InvalidArgumentError("`dataset` names data of a ledger: give `ledger` as well, or leave it out.")
    whose: Population = account  # type: ignore[assignment]  # the accounts of the command line are populations
    plain, _, version = name.partition("@")
    if version and not version.isdecimal():
        raise InvalidArgumentError(
            "`dataset` {name}: a version is a whole number, as in {plain}@1.", name=name, plain=plain
        )
    which = int(version) if version else None
    known = whose.dataset(plain, None, units=_LATER, labels=_LATER, covariate=_LATER, version=which)
    about = next(one.about for one in whose.datasets() if one.id == known.id)
    _refuse_others(name, words, known, about)
    labels, covariate = (_beside(option, words, known, about) for option in ("labels", "covariate"))
    space = known.ball.space
    said = (words["radius"], words["center"], words["source"], words.get("ball"))
    ball = known.ball if said == (None, None, "", None) else ball_of(space, *said)
    return Given(Late(whose, known, read, words["units"], labels, covariate), space), ball


def _refuse_others(name: str, words: Words, known: RegisteredData, about: Words) -> None:
    """Refuse words that cannot be about these data."""
    if not issubclass(type(known.ball.space), kind_of(words["space"])):
        raise InvalidArgumentError(
            "`space` {words} is not that of {id}, {space!r}.", words=words["space"], id=known.id, space=known.ball.space
        )
    if (words["units"] == EACH) != (known.unit == "record"):
        said = "each record is a unit" if known.unit == "record" else "units have ids"
        raise InvalidArgumentError(
            "`units` {words} is not as {id} was registered: {said}.", words=words["units"], id=known.id, said=said
        )
    if about["units"] not in (None, words["units"]):
        raise InvalidArgumentError(
            "`units` must be {about}, as {id} was registered.", about=about["units"], id=known.id
        )
    if words["invalid"] not in (None, known.invalid):
        raise InvalidArgumentError(
            "`invalid` must be {invalid}, as {id} was registered. Leave it out.", invalid=known.invalid, id=known.id
        )
    for path in words["path"]:
        if not os.path.lexists(path) and not (is_pattern(path) and glob.glob(path, recursive=True)):
            raise InvalidArgumentError(
                "{path} is not there: `dataset` {name} says what it holds, PATH where it is.", path=path, name=name
            )


def _beside(option: str, words: Words, known: RegisteredData, about: Words) -> str | None:
    """Return where classes or covariates stand, as was said or else registered; or refuse what would only fail later.

    Data are known again by all that was registered with them, whatever is asked about them now.
    """
    said, there = words.get(option), "classes" in known.facts if option == "labels" else known.covariate is not None
    if not there:
        if said is not None:
            raise InvalidArgumentError(
                "{option}: {id} was registered without. Register it again with {option}, or leave it out.",
                option=Argument(option),
                id=known.id,
            )
        return None
    column = about["labels"] if option == "labels" else about[option]["column"]
    if option == "covariate" and said is not None and column not in (None, said):
        raise InvalidArgumentError(
            "{option} must be {column}, as {id} was registered. Or leave it out.",
            option=Argument(option),
            column=column,
            id=known.id,
        )
    if said is None and column is None:
        raise InvalidArgumentError(
            "{option}: {id} was registered with {option}, by which it is known again, and not from a "
            "column that is read along with the records. Give it here as well; or, for a command that does "
            "not take it, register the data under another name without.",
            option=Argument(option),
            id=known.id,
        )
    return said if said is not None else str(column)
