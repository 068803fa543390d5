"""Less error at the same promise: every way that is new beside the way that was taken before it, in one table.

    python benchmarks/frontier.py [sharp regions ...] [--quick] [--json FILE]

Each module of benchmarks/frontiers/ is one claim: its docstring says what is compared and how it was measured. Rows
have a figure for the way before, one for the new way, their ratio, the goal and whether it was met; a row without a
goal is reported, no more. Nothing here fails, unless a module does. With --quick everything is run with few
repetitions: figures that come from simulation are rough then, and their verdicts are not to be trusted.
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
from typing import Any

import frontiers
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import dpmanifold
from dpmanifold import linalg

CONSOLE = Console(width=150)
Row = dict[str, Any]
NEEDED = {"what", "today", "new", "ratio", "goal", "ok"}


def parts() -> list[str]:
    """Return the names of the claims: the modules of the folder, but for helpers."""
    return sorted(module.name for module in pkgutil.iter_modules(frontiers.__path__) if module.name[0] != "_")


def rows_of(part: str, quick: bool) -> tuple[str, list[Row]]:
    """Return what a module is called and what it found; its rows are looked at before they are believed."""
    module = importlib.import_module(f"frontiers.{part}")
    rows = [dict(row) for row in module.run(quick=quick)]
    for row in rows:
        if missing := NEEDED - row.keys():
            raise ValueError(f"A row of {part} lacks {', '.join(sorted(missing))}: {row}.")
        for key in ("today", "new", "ratio"):
            row[key] = None if row[key] is None else float(row[key])
        row["ok"] = None if row["ok"] is None else bool(row["ok"])
    return (module.__doc__ or part).splitlines()[0], rows


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def verdict(row: Row) -> str:
    return {None: "", True: "met", False: "NOT MET"}[row["ok"]]


def print_table(found: dict[str, dict[str, Any]], quick: bool) -> None:
    hurried = ", few repetitions" if quick else ""
    title = f"Before and now ({dpmanifold.__version__}, {linalg.level()}, {os.cpu_count()} cores{hurried})"
    table = Table(title=title)
    for heading in ("what", "before", "now", "ratio", "goal", "verdict"):
        table.add_column(heading, justify="left" if heading in ("what", "goal", "verdict") else "right")
    for part, one in found.items():
        table.add_section()
        table.add_row(f"[bold]{part}[/]: {escape(one['title'])}")
        for row in one["rows"]:
            figures = (figure(row[key]) for key in ("today", "new", "ratio"))
            table.add_row(f"  {escape(row['what'])}", *figures, escape(row["goal"]), verdict(row))
            if row.get("note"):
                table.add_row(f"    [dim]{escape(row['note'])}[/]")
    CONSOLE.print(table)
    rows = [row for one in found.values() for row in one["rows"] if row["ok"] is not None]
    CONSOLE.print(f"{sum(row['ok'] for row in rows)} of {len(rows)} goals met.")


def main() -> None:
    there = parts()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
            title, rows = rows_of(part, asked.quick)
        except Exception:  # the others took long: what they found is not lost
            traceback.print_exc()
            failed.append(part)
            continue
        seconds = time.perf_counter() - start
        found[part] = {"title": title, "seconds": round(seconds, 1), "rows": rows}
        print(f"{part}: {len(rows)} rows in {seconds:.0f} s", file=sys.stderr)
    print_table(found, asked.quick)
    if asked.json:
        record = {"version": dpmanifold.__version__, "quick": asked.quick, "parts": found, "failed": failed}
        asked.json.write_text(json.dumps(record, indent=2) + "\n")
    if failed:
        raise SystemExit(f"These failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
