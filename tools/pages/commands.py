"""The reference page of the command line, made from the commands themselves when the site is built."""

from __future__ import annotations

from typing import Any

import typer.main

from dpmanifold.cli import app

MARK = "<!-- the commands -->"


def markdown() -> str:
    """Return all commands by their panels, each with its help and its options."""
    lines: list[str] = []
    panel = None
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if command.hidden:
            continue
        if command.rich_help_panel != panel:
            panel = command.rich_help_panel
            lines += [f"## {panel}", ""]
        lines += [f"### `dpm {name}`", "", command.help or "", "", "<details markdown><summary>Options</summary>", ""]
        lines += ["| option | meaning |", "|---|---|", *map(_row, command.params), "", "</details>", ""]
    return "\n".join(lines)


def _row(option: Any) -> str:
    name = " ".join(f"`{spelling}`" for spelling in option.opts)
    if option.param_type_name == "argument":
        name = f"`{option.name.upper()}`"
    meaning = " ".join((option.help or "").split()).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
    return f"| {name}{' (required)' if option.required else ''} | {meaning} |"
