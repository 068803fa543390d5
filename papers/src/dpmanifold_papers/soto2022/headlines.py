"""Their claims in a line each: published, reproduced, ours."""

from __future__ import annotations

from collections.abc import Callable

from dpmanifold_papers import simulation as sim
from dpmanifold_papers.framework import Row, group
from dpmanifold_papers.soto2022.sphere import scaled

Rows = dict[str, list[Row]]


def sphere_kng(rows: Rows) -> tuple[str, str, str]:
    """KNG over the Riemannian Laplace on S^2."""
    mine = [row for row in rows["soto2022/sphere"] if "rule" in row]
    printed, valid = (
        scaled(mine, rule, "kng").mean / scaled(mine, rule, "laplace").mean for rule in ("printed", "valid")
    )
    return "below 1", f"{printed:.2f} with 2 Delta/eps for both", f"{valid:.2f} at the smallest proven scales"


def sphere_best(rows: Rows) -> tuple[str, str, str]:
    """Best mechanism over KNG as published."""
    mine = [row for row in rows["soto2022/sphere"] if "rule" in row]
    kng = scaled(mine, "printed", "kng").mean
    return (
        "1 (KNG is best)",
        f"{scaled(mine, 'printed', 'projected').mean / kng:.2f} (projected Euclidean)",
        (f"{scaled(mine, 'valid', 'laplace').mean / kng:.2f} (Riemannian Laplace)"),
    )


def matrices_kng(rows: Rows) -> tuple[str, str, str]:
    """KNG over the Riemannian Laplace on SPD(2)."""
    sizes = list(group(rows["soto2022/spd"], "n").values())
    theirs, ours = (
        sim.average([sim.quotient(sim.one(r, method="kng"), sim.one(r, method=other)) for r in sizes]).mean
        for other in ("laplace", "ours")
    )
    return "about 1", f"{theirs:.2f} with 2 Delta/eps for both", f"{ours:.2f} at the smallest proven scales"


def shape_noise(rows: Rows) -> tuple[str, str, str]:
    """Noise on shapes over noise landmark by landmark, ape skulls."""
    errors = {row["method"]: row["mean"] for row in rows["soto2022/shapes"]
              if row["set"] == "apes" and row["kind"] == "error"}  # fmt: skip
    return (
        "below 1",
        f"{errors['kng'] / errors['landmarks']:.2f} (KNG)",
        (f"{errors['ours'] / errors['landmarks']:.2f} (Riemannian Laplace)"),
    )


HEADLINES: list[tuple[str, Callable[[Rows], tuple[str, str, str]]]] = [
    ("S^2: error of KNG / error of the Riemannian Laplace", sphere_kng),
    ("S^2: error of the best mechanism / error of KNG as published", sphere_best),
    ("SPD(2): error of KNG / error of the Riemannian Laplace", matrices_kng),
    ("Shapes of ape skulls: noise on shapes / noise landmark by landmark", shape_noise),
]

__all__ = ["HEADLINES"]
