"""One release of 50 regions at once beside one for each region, at the same promise.

Simulated people with 50 diffusion tensors each, log-Euclidean; 200 people or 2,000, GDP(1) for everything about a
person. Error: the root of the mean, over repetitions, of the sum over regions of squared distances between released and
true mean of the people; clipping and noise both count. Separate releases get shares of the promise whose squares add up
to 1.

Public balls hold 95 % of 5,000 people of a reference study, each region's ball by the distances in that region and the
joint ball by the joint distances, about the same centre. Where the balls are found privately (refine), both start from
balls three times as wide. Spreads that differ by up to a factor of 4: separate releases get their best shares, squares
in proportion to the radii; the joint one has weights 1/sqrt(spread). Values are as drawn, but for the last row, where
both are moved towards the centre, as they are by default: the more coordinates, the more that gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dpmanifold as dpm

REGIONS, FEW, MANY, REFERENCE, COVERAGE = 50, 200, 2_000, 5_000, 0.95
GOAL = 0.8
ONE = dpm.SPD(3)


def people(n: int, spread: np.ndarray, shared: float, rng: np.random.Generator) -> np.ndarray:
    """Return logarithms (n, regions, 6) about the centre; `shared` is the share of the variance that a person has."""
    own, common = rng.standard_normal((n, len(spread), ONE.dim)), rng.standard_normal((n, 1, ONE.dim))
    off = 0.2 * np.random.default_rng(7).standard_normal((len(spread), ONE.dim))  # the mean is not the centre
    return spread[:, None] * (off + np.sqrt(1 - shared) * own + np.sqrt(shared) * common)


def errors(n: int, spread: np.ndarray, shared: float, refine: bool, shrinkage: bool, seed: int) -> tuple[float, float]:
    """Return the sums of squared errors of separate releases and of the joint one, for one draw of everything."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.sqrt(spread)
    space = dpm.Product([ONE] * len(spread), weights=weights)
    reference = np.linalg.norm(people(REFERENCE, spread, shared, rng), axis=-1)
    wide = 3.0 if refine else 1.0
    radii = wide * np.quantile(reference, COVERAGE, axis=0)
    radius = wide * float(np.quantile(np.linalg.norm(weights * reference, axis=1), COVERAGE))
    logs = people(n, spread, shared, rng)
    X, truth = ONE.exp_coords(ONE.origin, logs), logs.mean(axis=0)
    terms: dict[str, Any] = {
        "units": dpm.EACH_RECORD,
        "refine": refine,
        "shrinkage": "auto" if shrinkage else None,
        "rng": rng,
    }
    shares = np.sqrt(radii / radii.sum())
    apart = 0.0
    for j, share in enumerate(shares):
        found = dpm.private_mean(X[:, j], dpm.Ball(ONE, ONE.origin, float(radii[j])), dpm.GDP(float(share)), **terms)
        apart += float(np.sum((ONE.log_coords(ONE.origin, found.value) - truth[j]) ** 2))
    joint = dpm.private_mean(X, dpm.Ball(space, space.origin, radius), dpm.GDP(1.0), **terms)
    return apart, float(np.sum((ONE.log_coords(ONE.origin, joint.value) - truth) ** 2))


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Compare with regions that have nothing in common, a person in common, unlike spreads, and balls found first."""
    alike, unlike = np.full(REGIONS, 0.2), np.geomspace(0.1, 0.4, REGIONS)
    cases = [
        ("public balls, regions independent", FEW, alike, 0.0, False, False),
        ("public balls, 30 % of the variance shared by a person's regions", FEW, alike, 0.3, False, False),
        ("public balls, spreads that differ by up to 4, best shares and weights", FEW, unlike, 0.0, False, False),
        ("balls found privately, regions independent", MANY, alike, 0.0, True, False),
        ("balls found privately, 30 % shared", MANY, alike, 0.3, True, False),
        ("public balls, 30 % shared, both moved towards the centre", FEW, alike, 0.3, False, True),
    ]
    repetitions, rows = 3 if quick else 20, []
    for what, n, spread, shared, refine, shrink in cases:
        found = np.array([errors(n, spread, shared, refine, shrink, seed) for seed in range(repetitions)])
        apart, joint = np.sqrt(found.mean(axis=0))
        rows.append(
            {
                "what": f"50 x SPD(3), {n:,} people, GDP(1): {what}",
                "today": apart,
                "new": joint,
                "ratio": joint / apart,
                "goal": f"<= {GOAL}",
                "ok": bool(joint <= GOAL * apart),
            }
        )
    return rows
