"""Noise shaped like the data: Fashion-MNIST class means by image descriptors, d = 45, GDP(1).

The private data are n images of one of four classes; the public cohort are 600 images of the other three. The ball is
about the cohort's mean, and holds all of it with a tenth to spare. The error is the distance from the mean of the
clipped records, root mean square over classes and draws. "Today" is the better of `private_mean` plain and with
`refine=True`, both with `shrinkage="auto"`. The wrong shape is the cohort's, rotated at random.
"""

from __future__ import annotations

import os
import pathlib

import numpy as np

import dpmanifold as dpm
from dpmanifold import data

FILE = "fashion_mnist_train_classes0to3.npz"
PROMISE = dpm.GDP(1.0)
CLASSES, COHORT, PER_CLASS = 4, 200, 2500


def descriptors() -> np.ndarray | None:
    """Return coordinates (classes, images, 45) of descriptors at the public ball's centre; None without the data."""
    folder = pathlib.Path(os.environ.get("DPM_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))
    if not (folder / FILE).exists():
        return None
    stored = np.load(folder / FILE)
    images, labels = stored["images"], stored["labels"]
    ball = data.descriptor_ball("gray", image_size=(28, 28))
    chosen = [images[labels == number][: PER_CLASS + COHORT] for number in range(CLASSES)]
    return np.array([ball.space.log_coords(ball.center, data.covariance_descriptors(some)) for some in chosen])


def setting(found: np.ndarray, number: int) -> tuple[np.ndarray, dpm.Ball, np.ndarray]:
    """Return the private images of a class, the public ball and the public cohort."""
    cohort = np.concatenate([found[other][PER_CLASS:] for other in range(CLASSES) if other != number])
    center = cohort.mean(axis=0)
    radius = 1.1 * float(np.linalg.norm(cohort - center, axis=1).max())
    return found[number][:PER_CLASS], dpm.Ball(dpm.Euclidean(45), center, radius), cohort


def errors(found: np.ndarray, n: int, runs: int, **asked) -> float:
    """Return the root mean square error of a private mean; `noise_shape` is made of the cohort by a function."""
    rng, squares = np.random.default_rng(n), []
    make = asked.pop("noise_shape", None)
    for number in range(CLASSES):
        X, ball, cohort = setting(found, number)
        shape = make(cohort, ball) if callable(make) else make
        for _ in range(runs):
            some = X[rng.choice(len(X), n, replace=False)]
            release = dpm.private_mean(
                some, ball, PROMISE, units=dpm.EACH_RECORD, noise_shape=shape, rng=int(rng.integers(2**30)),
                confirm=True, **asked,
            )  # fmt: skip
            squares.append(float(((release.value - ball.clip(some).mean(axis=0)) ** 2).sum()))
    return float(np.sqrt(np.mean(squares)))


def rotated(cohort: np.ndarray, ball: dpm.Ball) -> np.ndarray:
    """Return the cohort's second moments with their directions turned at random."""
    v = cohort - ball.center
    turn = np.linalg.qr(np.random.default_rng(len(cohort)).standard_normal((45, 45)))[0]
    return turn @ (v.T @ v / len(v)) @ turn.T


def even(cohort: np.ndarray, ball: dpm.Ball) -> np.ndarray:
    """Return second moments that are the same in all directions, with the cohort's trace."""
    return np.eye(45) * ((cohort - ball.center) ** 2).sum(axis=1).mean() / 45


def run(quick: bool = False) -> list[dict]:
    """Return a row for each kind of shape and number of units; nothing where the data are not there."""
    found = descriptors()
    if found is None:
        missing = {"today": None, "new": None, "ratio": None, "ok": None}
        return [{"what": "shaped noise", **missing, "goal": "", "note": f"{FILE} is not there: set DPM_DATA"}]
    rows = []
    for n in (50, 200, 2000):
        runs = (5 if quick else 50) if n < 2000 else (2 if quick else 20)
        before = {"plain": errors(found, n, runs), "refine": errors(found, n, runs, refine=True)}
        best = min(before, key=lambda name: before[name])

        def row(what: str, new: float, most: float | None, today: float, note: str = "", n: int = n) -> dict:
            ratio = new / today
            goal, ok = ("", None) if most is None else (f"<= {most}", ratio <= most)
            return {
                "what": f"n = {n}: {what}", "today": today, "new": new, "ratio": ratio, "goal": goal, "ok": ok,
                "note": note,
            }  # fmt: skip

        note = f"today: {best}"
        rows.append(row("public shape", errors(found, n, runs, noise_shape=lambda c, b: c), 0.7, before[best], note))
        private = {50: None, 200: 0.9, 2000: 0.7}[n]
        rows.append(row("private shape", errors(found, n, runs, noise_shape="private"), private, before[best], note))
        rows.append(row("wrong shape, rotated", errors(found, n, runs, noise_shape=rotated), 1.6, before[best], note))
        rows.append(
            row("round shape: the radius alone", errors(found, n, runs, noise_shape=even), None, before[best], note)
        )
        if n == 50:
            raw = errors(found, n, runs, shrinkage=None)
            moved = errors(found, n, runs, shrinkage="james-stein")
            rows.append(row("shrinkage towards the ball's centre", moved, 0.75, raw, "today: the draw itself"))
    return rows
