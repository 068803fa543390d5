"""Whether a ledger holds: audits, exports, and the mending of a database that was put back."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from dpmanifold.cli import ledger_options as steward
from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import check_targets
from dpmanifold.cli.payer import READER, opened
from dpmanifold.cli.speech import say, say_json

if TYPE_CHECKING:
    from dpmanifold.ledger.auditing import Audit


@guarded
def audit(ledger: steward.Ledger = None, as_json: options.Json = False) -> None:
    """Read everything and recompute it: hashes, sums, caps, witness. Exits with 4 if something does not hold."""
    with opened(ledger, READER) as book:
        _say_audit(book.audit(), as_json)


def _say_audit(found: Audit, as_json: bool) -> None:
    if as_json:
        say_json(found.to_dict())
    else:
        say(repr(found))
    if not found.ok:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


@guarded
def reconcile(
    reason: steward.Reason,
    ledger: steward.Ledger = None,
    principal: steward.Principal = None,
    as_json: options.Json = False,
) -> None:
    """Mend a database that was restored from a backup: take from the witness what it has lost.

    What was spent stays spent, even beyond the cap; results are not brought back.
    """
    with opened(ledger, principal, reconcile=reason) as book:
        done = book.reconciled
    assert done is not None  # a reason was given
    if as_json:
        recovered = [entry.seq for entry in done.recovered]
        say_json({"common": done.common, "own": done.own, "recovered": recovered, "over": list(done.over)})
        return
    say(repr(done))


@guarded
def export(
    out: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="JSON lines: one entry each, without results.")],
    ledger: steward.Ledger = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write all entries for an auditor, who needs no database and no data: dpm ledger verify-export checks the file."""
    check_targets({"FILE": out}, force, {"--ledger": ledger})
    with opened(ledger, READER) as book:
        written = book.export(out)
    if as_json:
        say_json({"written": str(out), "entries": written})
        return
    say(f"{written:,} entries\n  written      {out}")


@guarded
def verify_export(
    path: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="What dpm ledger export wrote.")],
    as_json: options.Json = False,
) -> None:
    """Check an export by itself: hashes, sums, caps. Exits with 4 if something does not hold."""
    from dpmanifold.ledger.export import verify_export as verified

    _say_audit(verified(path), as_json)
