"""The triggers that keep a ledger's tables as they are, word for word: one of the same name may do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpmanifold.ledger.migrations.versions.r0001_entries import POSTGRESQL, SQLITE


def broken_guards(wanted: Mapping[str, str], found: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the triggers that are not there, or are other ones.

    Parameters
    ----------
    wanted : what makes each of them, by name
    found : names, and what the database says that they were made by

    Examples
    --------
    >>> made_by = "CREATE TRIGGER stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(FAIL, 'no'); END"
    >>> broken_guards({"stay": made_by}, [("stay", made_by)])
    []
    >>> broken_guards({"stay": made_by}, [("stay", "CREATE TRIGGER stay BEFORE UPDATE ON entries BEGIN SELECT 1; END")])
    ['stay']
    """
    there = {name: _in_one_line(made_by) for name, made_by in found}
    return [name for name, made_by in wanted.items() if there.get(name) != made_by]


def _in_one_line(statement: str) -> str:
    return " ".join(statement.split())


def _by_name(statements: Iterable[str]) -> dict[str, str]:
    lines = map(_in_one_line, statements)
    return {line.split()[2].removesuffix("()"): line for line in lines}


def _with_functions(statements: Iterable[str]) -> dict[str, str]:
    """Return PostgreSQL's triggers, each with what its function does."""
    made = _by_name(statements)
    bodies = {name: line.split("$$")[1] for name, line in made.items() if line.startswith("CREATE FUNCTION")}
    triggers = {name: line for name, line in made.items() if line.startswith("CREATE TRIGGER")}
    return {
        name: _in_one_line(f"{line} AS {bodies[line.split()[-1].removesuffix('()')]}")
        for name, line in triggers.items()
    }


SQLITE_GUARDS = _by_name(SQLITE)
POSTGRESQL_GUARDS = _with_functions(POSTGRESQL)
