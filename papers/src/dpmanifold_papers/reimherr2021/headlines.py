"""Their claims in a line each: published, reproduced, ours."""

from __future__ import annotations

from collections.abc import Callable

from dpmanifold_papers import simulation as sim
from dpmanifold_papers.framework import Row, group
from dpmanifold_papers.reimherr2021.spd_utility import ARITHMETIC, SMALL
from dpmanifold_papers.reimherr2021.sphere_utility import reduction

Rows = dict[str, list[Row]]


def sphere_noise(rows: Rows) -> tuple[str, str, str]:
    """Noise on the sphere over noise in space."""
    mine = rows["reimherr2021/sphere-utility"]
    theorem, code = (1 - reduction(mine, rule, "all").mean / 100 for rule in ("theorem 2", "code"))
    ours, rival = (
        1 - reduction(mine, "ours", "all", other).mean / 100 for other in ("space, valid", "arithmetic mean, projected")
    )
    return (
        "0.83 to 0.88",
        f"{theorem:.2f} by Theorem 2, {code:.2f} by their code's bound",
        f"{ours:.2f}; {rival:.2f} against the arithmetic mean, projected",
    )


def matrix_noise(rows: Rows) -> tuple[str, str, str]:
    """Noise on the manifold over noise on the entries, SPD(2); ours over what keeps the promise."""
    found = [row for row in rows["reimherr2021/spd-utility"] if "method" in row]
    sizes = group(found, "n").values()
    theirs, ours, rival = (
        sim.average([sim.quotient(sim.one(r, method=a), sim.one(r, method=b)) for r in sizes]).mean
        for a, b in (("theirs", "entries, their code"), ("ours", "entries, valid"), ("ours", ARITHMETIC))
    )
    return "below 1", f"{theirs:.2f}", f"{ours:.2f}; {rival:.2f} against the entries of the arithmetic mean"


def outside(rows: Rows) -> tuple[str, str, str]:
    """Noisy matrices that are not positive definite, with the scale of their code."""
    found = [r for r in rows["reimherr2021/spd-utility"] if r.get("method") == "entries, distance seen"]
    shares = {str(row["n"]): f"{100 * row['outside']:.0f}" for row in found if row["n"] in SMALL}
    return "about 25 %", f"{', '.join(shares.values())} % at n = {', '.join(shares)}", "0"


def sphere_bound(rows: Rows) -> tuple[str, str, str]:
    """Bound on the sensitivity over what is attained, S^2."""
    by = {
        kind: {row["n"]: row["shift"] for row in found}
        for (kind,), found in group(rows["reimherr2021/sphere-sensitivity"], "kind").items()
    }
    n = max(by["worst"])
    published, ours = (by[kind][n] / by["worst"][n] for kind in ("published", "sharp"))
    return "quite close", f"{published:.2f}", f"{ours:.2f}"


HEADLINES: list[tuple[str, Callable[[Rows], tuple[str, str, str]]]] = [
    ("S^2: noise on the sphere / noise in space", sphere_noise),
    ("SPD(2): noise on the manifold / noise on the entries", matrix_noise),
    ("SPD(2): noisy matrices that are not positive definite, n = 20 to 40", outside),
    ("S^2: bound on the sensitivity / what two data sets attain", sphere_bound),
]

__all__ = ["HEADLINES"]
