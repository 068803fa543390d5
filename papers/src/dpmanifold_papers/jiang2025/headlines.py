"""What Jiang, Chang and Hu (2025) come down to: published, reproduced and ours, at the same promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpmanifold_papers.framework import Row
from dpmanifold_papers.jiang2025 import printed

Headline = tuple[str, Callable[[Mapping[str, list[Row]]], tuple[str, str, str]]]

_SPACES = {"sphere": "S^2", "spd": "SPD(2)"}


def _mean(rows: list[Row], mu: float | str, name: str) -> float:
    values = [float(row[name]) for row in rows if row["mu"] == mu]
    return sum(values) / len(values)


def _error(number: int, space: str, what: str) -> Headline:
    """Compare errors at mu = 0.1 with the one without privacy."""
    claim = f"Error of the Fréchet {what} on {_SPACES[space]} at mu = 0.1, as a multiple of the error without privacy"

    def numbers(results: Mapping[str, list[Row]]) -> tuple[str, str, str]:
        rows = results[f"jiang2025/table{number}"]
        paper = printed.DISTANCE[space, what]
        plain = _mean(rows, "non-DP", "theirs_distance")
        found = [_mean(rows, 0.1, f"{who}_distance") / plain for who in ("theirs", "ours")]
        return f"{paper[0] / paper[-1]:.2f}", f"{found[0]:.2f}", f"{found[1]:.2f}"

    return claim, numbers


def _coverage(number: int, space: str, what: str) -> Headline:
    """Compare the lowest coverage over mu."""
    claim = f"Lowest coverage over mu of 95 % statements about the Fréchet {what} on {_SPACES[space]}"

    def numbers(results: Mapping[str, list[Row]]) -> tuple[str, str, str]:
        rows = results[f"jiang2025/table{number}"]
        mus = sorted({row["mu"] for row in rows if row["mu"] != "non-DP"})
        found = [min(_mean(rows, mu, f"{who}_covered") for mu in mus) for who in ("theirs", "ours")]
        return f"{min(printed.PAPER[space, what][:-1]):.3f}", f"{found[0]:.3f}", f"{found[1]:.3f}"

    return claim, numbers


_TABLES = ((1, "sphere", "mean"), (2, "sphere", "variance"), (3, "spd", "mean"), (4, "spd", "variance"))
HEADLINES: list[Headline] = [make(*table) for table in _TABLES for make in (_error, _coverage)]
