"""The geometric median: error from the centre of the clean population, with and without outliers.

n = 200, GDP(1), each record a unit, in a ball that is ten standard deviations of the clean data wide (on the sphere
twelve) and whose centre lies three away from theirs. Clean data are normal in the tangent space of their centre. 15 %
outliers are a second cloud of the same spread: far (8 standard deviations) or near (3) on one side, or 8 away on all
sides. Lengths of steps and shares were chosen on normal data like these, from other seeds; the last space, with
unequal standard deviations, played no part in that. Errors are root mean squares of the distance from the centre of
the clean data. Beside ours (private_median): frechet.median (for clean data frechet.mean), which are not private, and
private_mean(refine=True). The last rows hold what a release states against what happened: the distance from where the
step leads without noise, what one step leaves of the way to the median of the same records, as a part of the step,
and the distance from that median.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dpmanifold as dpm
from dpmanifold import frechet

N, SHARE, PROMISE, GOAL = 200, 0.15, dpm.GDP(1.0), 1.2
# The refined mean, which takes longest and is far off with outliers, is drawn once in so many repetitions.
SELDOM = 3
# Space, standard deviation of the clean data (in the last by direction), radius of the public ball.
SPACES = {
    "Euclidean(2)": (dpm.Euclidean(2), 1.0, 10.0),
    "Euclidean(6)": (dpm.Euclidean(6), 1.0, 10.0),
    "Sphere(2)": (dpm.Sphere(2), 0.06, 0.72),
    "SPD(3)": (dpm.SPD(3), 0.3, 3.0),
    "SPD(3), affine-invariant": (dpm.SPD(3, metric="riemann"), 0.3, 3.0),
    "Hyperbolic(2)": (dpm.Hyperbolic(2), 0.3, 3.0),
    "Euclidean(4), unequal": (dpm.Euclidean(4), np.array([1.0, 0.7, 0.5, 0.35]), 15.0),
}
OUTLIERS = {"clean": 0.0, "far, one side": 8.0, "near, one side": 3.0, "far, all sides": 8.0}


def records(space: dpm.Manifold, spread: float | np.ndarray, outliers: str, rng: np.random.Generator) -> np.ndarray:
    """Return n records about the origin, some of them outliers."""
    c = rng.normal(size=(N, space.dim))
    k = round(SHARE * N) if OUTLIERS[outliers] else 0
    if outliers.endswith("one side"):
        c[:k, 0] += OUTLIERS[outliers]
    elif k:
        c[:k] += OUTLIERS[outliers] * c[:k] / np.linalg.norm(c[:k], axis=1, keepdims=True)
    return space.exp_coords(space.origin, spread * c)


def ball_on(space: dpm.Manifold, spread: float | np.ndarray, radius: float) -> dpm.Ball:
    """Return the public ball, whose centre is three standard deviations away from that of the data."""
    away = np.zeros(space.dim)
    away[-1] = 3 * np.max(spread)
    return dpm.Ball(space, space.exp_coords(space.origin, away), radius, "a benchmark's")


def tried(name: str, outliers: str, repetitions: int) -> dict[str, np.ndarray]:
    """Return errors of every estimate, and what releases state and leave, one number for each repetition."""
    space, spread, radius = SPACES[name]
    ball, rng = ball_on(space, spread, radius), np.random.default_rng(2026)
    how: dict[str, Any] = {"units": dpm.EACH_RECORD, "confirm": True, "rng": rng}
    rows, simple = [], []
    for number in range(repetitions):
        X = records(space, spread, outliers, rng)
        ours = dpm.private_median(X, ball, PROMISE, **how)
        median = frechet.median(X, space).value
        mean = frechet.mean(X, ball).value if outliers == "clean" else median
        points = frechet.unit_points(ball.clip(X), ours.ball, units=None)
        end = ours.definition.hidden(ours, lambda points=points: points)[0]
        off = [float(space.dist(space.origin, value)) for value in (ours.value, median, mean)]
        noise = float(space.dist(ours.value, end))
        step, left = float(space.dist(ours.ball.center, end)), float(space.dist(end, median))
        away, within = float(space.dist(ours.value, median)), noise <= ours.noise_quantile(0.95)
        rows.append([*off, noise, ours.noise_error(), within, left, step, away, ours.error()])
        if number % SELDOM == 0:
            refined = dpm.private_mean(X, ball, PROMISE, refine=True, **how)
            simple.append(float(space.dist(space.origin, refined.value)))
    keys = ("ours", "median", "mean", "noise", "stated", "within", "left", "step", "away", "error")
    return {**dict(zip(keys, np.array(rows).T, strict=True)), "refined": np.array(simple)}


def judged(name: str, outliers: str, found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the row of one study."""
    error = {key: float(np.sqrt((found[key] ** 2).mean())) for key in ("ours", "refined", "median", "mean")}
    plain = "mean" if outliers == "clean" else "median"
    note = f"{error['ours'] / error[plain]:.3f} x the {plain} without privacy"
    if outliers == "clean":
        note += f", {error['ours'] / error['median']:.3f} x the median"
    return {
        "what": f"{name}, {outliers}", "plain": error[plain], "simple": error["refined"], "ours": error["ours"],
        "goal": f"ours <= {GOAL} x the {plain} without privacy", "ok": error["ours"] <= GOAL * error[plain],
        "note": f"{note}, {error['ours'] / error['refined']:.2f} x the refined private mean",
    }  # fmt: skip


def concluded(studies: list[dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Return the rows of what releases state, the worst of all studies."""
    stated = [one["noise"].mean() / one["stated"].mean() for one in studies]
    within = [one["within"].mean() for one in studies]
    left = [np.sqrt((one["left"] ** 2).mean() / (one["step"] ** 2).mean()) for one in studies]
    total = [one["away"].mean() / one["error"].mean() for one in studies]
    several, repetitions = f"worst of {len(studies)} studies", len(studies[0]["ours"])
    # A length of normal noise has a standard deviation of at most 0.55 of its mean in two dimensions and more.
    chance, share = 3 * 0.55 / repetitions**0.5, 3.5 * (0.05 * 0.95 / repetitions) ** 0.5
    rows = [
        ("noise over what is stated", max(stated), "<= 1 but for chance", max(stated) <= 1 + chance),
        ("within the stated 95 %", min(within), ">= .95 but for chance", min(within) >= 0.95 - share),
        ("left by one step, over the step (rms)", max(left), "reported", None),
        ("distance from the records' own median over the stated error", max(total), "<= 1", max(total) <= 1),
    ]
    return [
        {"what": f"{what}, {several}", "plain": None, "simple": None, "ours": ours, "goal": goal, "ok": ok}
        for what, ours, goal, ok in rows
    ]


def run(quick: bool) -> list[dict[str, Any]]:
    """Return the rows."""
    repetitions = 40 if quick else 100
    found = {(name, kind): tried(name, kind, repetitions) for name in SPACES for kind in OUTLIERS}
    return [*(judged(*case, one) for case, one in found.items()), *concluded(list(found.values()))]
