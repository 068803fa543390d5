"""Options of the steward's commands."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

Ledger = Annotated[
    str | None,
    typer.Option("--ledger", envvar="DPM_LEDGER", metavar="PATH|URL", help="The ledger: a file, or postgresql://..."),
]
Population = Annotated[
    str | None,
    typer.Option(envvar="DPM_POPULATION", metavar="NAME", help="Which; may be left out where there is one."),
]
Principal = Annotated[str | None, typer.Option(metavar="NAME", help="Who does this. Default: the login name.")]
Reason = Annotated[str, typer.Option(help="Why. It stays in the ledger for good.")]
Secret = Annotated[
    pathlib.Path | None,
    typer.Option(
        envvar="DPM_SECRET",
        metavar="FILE",
        help="The key file under which data sets are fingerprinted. Default: PATH.key, beside the ledger.",
    ),
]
