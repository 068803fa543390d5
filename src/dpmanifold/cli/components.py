"""The command that releases principal components."""

from __future__ import annotations

from typing import Annotated

import typer

from dpmanifold.cli import options
from dpmanifold.cli.command import Asked, private_command
from dpmanifold.inference import Components
from dpmanifold.stats import private_components


@private_command("npy", "picture", "links")
def components(
    asked: Asked,
    count: Annotated[int, typer.Option(help="How many; no more than the space has dimensions.")] = 3,
    level: options.Level = 0.95,
    refine: options.Refine = False,
) -> Components:
    """Release the directions in which records vary most about their mean, and how much; --npy has the directions."""
    return private_components(*asked.about, count=count, level=level, refine=refine, **asked.terms)
