"""The reference page of the command line, made from the commands themselves when the site is built."""

from __future__ import annotations

from typing import Any

import typer.main

from dpmanifold.cli import app

MARK = "<!-- the commands -->"


def markdown() -> str:
    """Return all commands by their panels, each with its help and its options, and then groups of commands."""
    lines: list[str] = []
    panel, groups = None, []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            groups.append((name, command))
            continue
        if command.rich_help_panel != panel:
            panel = command.rich_help_panel
            lines += [f"## {panel}", ""]
        lines += _section(f"dpm {name}", command)
    for name, group in groups:
        lines += [f"## `dpm {name}`", "", group.help or "", ""]
        for inner, command in group.commands.items():
            lines += _section(f"dpm {name} {inner}", command)
    return "\n".join(lines)


def _section(name: str, command: Any) -> list[str]:
    """Return one command."""
    lines = [f"### `{name}`", "", command.help or "", "", "<details markdown><summary>Options</summary>", ""]
    return [*lines, "| option | meaning |", "|---|---|", *map(_row, command.params), "", "</details>", ""]


def _row(option: Any) -> str:
    name = " ".join(f"`{spelling}`" for spelling in option.opts)
    if option.param_type_name == "argument":
        name = f"`{option.name.upper()}`"
    meaning = " ".join((option.help or "").split()).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
    return f"| {name}{' (required)' if option.required else ''} | {meaning} |"
