"""Two-sample tests: joint moments about the ball's centre beside second moments about released means.

100 units in each group, GDP(1), test at 5 %, on the populations of the regions: means 0.3 from the centre of a ball of
radius 1 in R^d, the second group's shifted by a share of the radius in the direction of the second axis. Both ways test
the same data, by releases drawn as for the regions. Goals are for shifts that the way before finds in a tenth to a half
of all cases, from six dimensions on: in two, sampling is most of the error, and the test of known covariances (in the
note) finds little more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from dpmanifold.inference import TwoSampleTest
from frontiers.regions import POPULATIONS, Releases, half_axes, sample

UNITS, MU, SIZE = 100, 1.0, 0.05
SHIFTS = {2: (0.0, 0.05, 0.08, 0.12), 6: (0.0, 0.12, 0.16, 0.2), 15: (0.0, 0.25, 0.3, 0.35)}


def rejections(population: str, d: int, shift: float, repetitions: int) -> tuple[float, float]:
    """Return how often each way rejects, the one before first."""
    releases, moved, found = Releases(d, UNITS, MU), shift * np.eye(d)[1], np.zeros(2)
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, d, POPULATIONS.index(population), round(1000 * shift)])
        X, Y = sample(population, d, UNITS, rng), sample(population, d, UNITS, rng) + moved
        before = TwoSampleTest(*(releases.about_a_mean(Z, rng) for Z in (X, Y)))
        now = TwoSampleTest(*(releases.jointly(Z, rng) for Z in (X, Y)))
        found += [before.p_value < SIZE, now.p_value < SIZE]
    return float(found[0] / repetitions), float(found[1] / repetitions)


def limit(population: str, d: int, shift: float) -> float:
    """Return the power of the test that knows the covariance, with the noise of a mean alone."""
    variances = 2 * (half_axes(population, d) ** 2 / (d + 2) / UNITS + (2 / (UNITS * MU)) ** 2)
    return float(stats.ncx2.sf(stats.chi2.isf(SIZE, d), d, shift**2 / variances[1]))


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Return the rows: 2,000 repetitions of equal means, 500 of shifted ones; a tenth if quick, too few for sizes."""
    rows = []
    for population in POPULATIONS:
        for d, shifts in SHIFTS.items():
            for shift in shifts:
                repetitions = (2000 if shift == 0 else 500) // (10 if quick else 1)
                today, new = rejections(population, d, shift, repetitions)
                name = f"{population}, d = {d}, shift {shift:g}"
                if shift == 0:
                    rows.append(
                        {"what": f"size, {name}", "today": today, "new": new, "ratio": None,
                         "goal": "reported" if quick else "<= 0.06", "ok": None if quick else new <= 0.06}
                    )  # fmt: skip
                    continue
                judged = d > 2 and 0.1 <= today <= 0.5
                ratio = new / today if today else None
                rows.append(
                    {"what": f"power, {name}", "today": today, "new": new, "ratio": ratio,
                     "goal": ">= 1.5" if judged else "reported",
                     "ok": bool(ratio and ratio >= 1.5) if judged else None,
                     "note": f"known covariances {limit(population, d, shift):.3f}"}
                )  # fmt: skip
    return rows
