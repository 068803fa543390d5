"""Who pays for a release on the command line: an account of a ledger, where --ledger names one."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy.budget_accounts import Account, random_key

if TYPE_CHECKING:
    from dpmanifold.ledger import Ledger, Population


@dataclass(frozen=True)
class Payer:
    """The account that a release is paid from, and the release's key there; None where nobody keeps account.

    `again` says that the key has been answered before.
    """

    account: Account | None = None
    key: str | None = None
    again: bool = False

    @property
    def terms(self) -> dict[str, Any]:
        """What a private function is told about it."""
        return {} if self.account is None else {"budget": self.account, "key": self.key}

    @property
    def remark(self) -> str:
        """How the same release is got again, or that it was."""
        if self.account is None:
            return ""
        if self.again:
            return "Given again from the ledger: nothing was spent."
        return f"The ledger keeps it: the same command with --key {self.key} gives it again, at no cost."


NOBODY = Payer()
READER = "reader"  # the name of whoever only looks: it is written nowhere
_SQLITE = b"SQLite format 3\0"  # how its files begin


@contextlib.contextmanager
def paying(words: Mapping[str, Any]) -> Iterator[Payer]:
    """Open the account that was named, while the block runs; a release without a key gets one that is told."""
    if not words["ledger"]:
        _refuse_unpaid(words)
        yield NOBODY
        return
    with opened(words["ledger"], words["principal"], words["secret"]) as ledger:
        whose, key = population_of(ledger, words["population"]), words["key"]
        known = key is not None and whose.status(key) == "released"
        yield Payer(whose, key or random_key(), known)


@contextlib.contextmanager
def opened(
    where: str | None,
    principal: str | None = None,
    secret: pathlib.Path | None = None,
    reconcile: str | None = None,
) -> Iterator[Ledger]:
    """Open a ledger that exists, after it was reconciled where a reason is given, and close it in the end."""
    if not where:
        raise InvalidArgumentError(
            "--ledger is missing: the file, or the postgresql:// address, of the ledger. Or set DPM_LEDGER."
        )
    if pathlib.Path(where).is_dir():
        raise InvalidArgumentError(f"--ledger {where} is a folder. Give the file of the ledger in it.")
    from dpmanifold.ledger import Ledger

    with Ledger.open(where, principal=principal, secret=secret, reconcile=reconcile) as ledger:
        yield ledger


def is_export(where: str) -> bool:
    """Return whether a name is that of an export of a ledger: a file, and no database."""
    path = pathlib.Path(where)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) != _SQLITE


def population_of(ledger: Ledger, name: str | None) -> Population:
    """Return the population that was named, or the only one."""
    known = {one.name: one for one in ledger.populations()}
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None:
        which = f"one of {', '.join(known)}" if known else "there is none: make one with dpm ledger population add NAME"
        raise InvalidArgumentError(f"--population is missing: {which}.")
    if name not in known:
        there = f"It has {', '.join(known)}." if known else "It has none."
        raise InvalidArgumentError(
            f"--population {name}: the ledger has no such population. {there} dpm ledger population add makes one."
        )
    return known[name]


def _refuse_unpaid(words: Mapping[str, Any]) -> None:
    """Refuse words about a ledger where none is given: whoever says them means the release to be paid for."""
    for option in ("dataset", "population", "principal", "secret"):
        if words[option] is not None:
            unset = f" (and unset DPM_{option.upper()})" if f"DPM_{option.upper()}" in os.environ else ""
            raise InvalidArgumentError(
                f"--{option} is about a ledger, and none is given: nobody would pay for the release. Give --ledger as "
                f"well, or set DPM_LEDGER; or leave --{option} out{unset}."
            )


def refuse_contradictions(words: Mapping[str, Any]) -> None:
    """Refuse a key without a ledger, and what no ledger pays for: it would be no private release."""
    if not words["ledger"]:
        if words["key"] is not None:
            raise InvalidArgumentError(
                "--key names a release in a ledger: give --ledger as well, or leave it out. The array of an .npz file "
                "is named by --array."
            )
        return
    for option in ("seed", "reveal"):
        if words.get(option) not in (None, False):
            raise InvalidArgumentError(
                f"--{option} makes a result NOT PRIVATE, and a ledger pays for private releases alone. Leave it out, "
                "or leave out --ledger (unset DPM_LEDGER, and let no study file name one)."
            )
