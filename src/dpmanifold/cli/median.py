"""The command that releases a geometric median."""

from __future__ import annotations

from typing import Annotated

import typer

from dpmanifold.cli.command import Asked, private_command
from dpmanifold.release import Release
from dpmanifold.stats import private_median

_Refine = Annotated[
    bool, typer.Option("--refine/--no-refine", help="Look for a smaller ball first, at 15 %; skipped where useless.")
]


@private_command("npy", "picture", "links")
def median(asked: Asked, refine: _Refine = True) -> Release:
    """Release a private geometric median: what is typical in spite of outliers."""
    return private_median(*asked.about, refine=refine, **asked.terms)
