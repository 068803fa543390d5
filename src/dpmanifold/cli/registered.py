"""Registered data on the command line: --dataset says which, and their files are opened once they are paid for.

Whatever goes wrong with files after the spend loses the release. So all that is public is compared before it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from dpmanifold.cli.arguments import EACH, ball_of, kind_of
from dpmanifold.cli.records import Given, is_pattern
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy.accounts import Account
from dpmanifold.stats.registered import Opened, Registered

if TYPE_CHECKING:
    from dpmanifold.ball import Ball
    from dpmanifold.ledger import Population
    from dpmanifold.ledger.opening import RegisteredData

Words = Mapping[str, Any]
"""What was said on the command line."""
_LATER = ()  # stands for ids that are read along with the records


@final
class Late(Registered):
    """Registered records of files that nobody has looked at yet.

    Parameters
    ----------
    account : the population they are registered with
    known : what is registered
    read : opens the files; called after the spend
    words : what was said about them
    """

    def __init__(self, account: Population, known: RegisteredData, read: Callable[[], Given], words: Words) -> None:
        self.id, self.ledger, self.population, self.name = known.id, known.ledger, known.population, known.name
        self.ball, self.n, self.unit, self.invalid, self.facts = (
            known.ball, known.n, known.unit, known.invalid, known.facts,
        )  # fmt: skip
        self.fingerprint, self.records_mark = known.fingerprint, known.records_mark
        self._account, self._known, self._read, self._words = account, known, read, words

    def check(self) -> None:
        """Refuse a ledger whose key is not there."""
        self._known.check()

    def open(self) -> Opened:
        """Open the files, and compare them with what was registered."""
        given = self._read()
        labels = self._words.get("labels")
        found = self._account.dataset(
            self.name,
            given.records,
            units=given.units(self._words["units"]),
            labels=None if labels is None else given.column(labels, "--labels"),
            version=self._known.version,
        )
        return found.open()


def registered(name: str, words: Words, account: Account | None, read: Callable[[], Given]) -> tuple[Given, Ball]:
    """Return the data set of this name in the place of records, and the ball that was asked for or registered.

    Parameters
    ----------
    name : NAME, or NAME@VERSION
    words : what was said
    account : the population that pays; None where no ledger was given
    read : opens the files
    """
    if account is None:
        raise InvalidArgumentError("--dataset names data of a ledger: give --ledger as well, or leave it out.")
    whose: Population = account  # type: ignore[assignment]  # the accounts of the command line are populations
    plain, _, version = name.partition("@")
    if version and not version.isdecimal():
        raise InvalidArgumentError(f"--dataset {name}: a version is a whole number, as in {plain}@1.")
    known = whose.dataset(plain, None, units=_LATER, labels=_LATER, version=int(version) if version else None)
    _refuse_others(name, words, known, whose)
    space = known.ball.space
    said = (words["radius"], words["center"], words["source"], words.get("ball"))
    ball = known.ball if said == (None, None, "", None) else ball_of(space, *said)
    return Given(Late(whose, known, read, words), space), ball


def _refuse_others(name: str, words: Words, known: RegisteredData, whose: Population) -> None:
    """Refuse words that cannot be about these data."""
    if not issubclass(type(known.ball.space), kind_of(words["space"])):
        raise InvalidArgumentError(f"--space {words['space']} is not that of {known.id}, {known.ball.space!r}.")
    if (words["units"] == EACH) != (known.unit == "record"):
        said = "each record is a unit" if known.unit == "record" else "units have ids"
        raise InvalidArgumentError(f"--units {words['units']} is not as {known.id} was registered: {said}.")
    about = next(one.about for one in whose.datasets() if one.id == known.id)
    if about["units"] not in (None, words["units"]):
        raise InvalidArgumentError(f"--units must be {about['units']}, as {known.id} was registered.")
    if words["invalid"] not in (None, known.invalid):
        raise InvalidArgumentError(f"--invalid must be {known.invalid}, as {known.id} was registered. Leave it out.")
    _refuse_missing(words["path"], name)


def _refuse_missing(paths: Sequence[str], name: str) -> None:
    for path in paths:
        if not os.path.lexists(path) and not (is_pattern(path) and glob.glob(path, recursive=True)):
            raise InvalidArgumentError(f"{path} is not there: --dataset {name} says what it holds, PATH where it is.")
