"""What tables of claims share: a folder of modules, each with run(quick), becomes one table of rows with verdicts.

A row is a dictionary: `what`, the figures that the table names, `goal` in words and `ok`, None where nothing is judged;
`note` if there is more to say.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import dpmanifold
from dpmanifold import linalg

CONSOLE = Console(width=150)
Row = dict[str, Any]


def parts(folder: ModuleType) -> list[str]:
    """Return the names of the claims: the modules of the folder, but for helpers."""
    return sorted(module.name for module in pkgutil.iter_modules(folder.__path__) if module.name[0] != "_")


def rows_of(folder: ModuleType, part: str, quick: bool, figures: Mapping[str, str]) -> tuple[str, list[Row]]:
    """Return what a module is called and what it found; its rows are looked at before they are believed."""
    module = importlib.import_module(f"{folder.__name__}.{part}")
    rows = [dict(row) for row in module.run(quick=quick)]
    for row in rows:
        if missing := {"what", "goal", "ok", *figures} - row.keys():
            raise ValueError(f"A row of {part} lacks {', '.join(sorted(missing))}: {row}.")
        for key in figures:
            row[key] = None if row[key] is None else float(row[key])
        row["ok"] = None if row["ok"] is None else bool(row["ok"])
    return (module.__doc__ or part).splitlines()[0], rows


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def verdict(row: Row) -> str:
    return {None: "", True: "met", False: "NOT MET"}[row["ok"]]


def print_table(title: str, figures: Mapping[str, str], found: dict[str, dict[str, Any]], quick: bool) -> None:
    """Print all rows, a section for each module; `figures` are names of entries and the headings over them."""
    hurried = ", few repetitions" if quick else ""
    table = Table(title=f"{title} ({dpmanifold.__version__}, {linalg.level()}, {os.cpu_count()} cores{hurried})")
    for heading in ("what", *figures.values(), "goal", "verdict"):
        table.add_column(heading, justify="left" if heading in ("what", "goal", "verdict") else "right")
    for part, one in found.items():
        table.add_section()
        table.add_row(f"[bold]{part}[/]: {escape(one['title'])}")
        for row in one["rows"]:
            shown = (figure(row[key]) for key in figures)
            table.add_row(f"  {escape(row['what'])}", *shown, escape(row["goal"]), verdict(row))
            if row.get("note"):
                table.add_row(f"    [dim]{escape(row['note'])}[/]")
    CONSOLE.print(table)
    rows = [row for one in found.values() for row in one["rows"] if row["ok"] is not None]
    CONSOLE.print(f"{sum(row['ok'] for row in rows)} of {len(rows)} goals met.")


def main(doc: str | None, folder: ModuleType, title: str, figures: Mapping[str, str]) -> None:
    """Run what the command line asks for, and print it."""
    there = parts(folder)
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=there, help=f"what to measure: {', '.join(there)}; or all")
    parser.add_argument("--quick", action="store_true", help="few repetitions: whether it runs, not what it shows")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="where the rows are also written")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(there):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    found: dict[str, dict[str, Any]] = {}
    failed = []
    for part in asked.parts:
        start = time.perf_counter()
        try:
            name, rows = rows_of(folder, part, asked.quick, figures)
        except Exception:  # the others took long: what they found is not lost
            traceback.print_exc()
            failed.append(part)
            continue
        seconds = time.perf_counter() - start
        found[part] = {"title": name, "seconds": round(seconds, 1), "rows": rows}
        print(f"{part}: {len(rows)} rows in {seconds:.0f} s", file=sys.stderr)
    print_table(title, figures, found, asked.quick)
    if asked.json:
        record = {"version": dpmanifold.__version__, "quick": asked.quick, "parts": found, "failed": failed}
        asked.json.write_text(json.dumps(record, indent=2) + "\n")
    if failed:
        raise SystemExit(f"These failed: {', '.join(failed)}.")
