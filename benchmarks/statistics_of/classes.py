"""Classes: a discriminant with private labels, beside one without privacy and the nearest private mean.

Covariance descriptors of Fashion-MNIST's first four classes (SPD(9), 45 dimensions) under GDP(1) in the public ball of
all descriptors: as many images of each class as a row says, drawn without replacement from the first 4,500 of it. What
is measured is the accuracy on the other 1,500 of each class. Ours is `private_lda(..., refine=True)` with private
labels. Without privacy: scikit-learn's linear discriminant of the same coordinates. The simplest private way is the
nearest of the means of `private_class_means(..., refine=True)`, whose labels are public. Weights and floor were chosen
on handwritten digits, and on training and validation images of PneumoniaMNIST, alone (theory: classes). X-rays are
PneumoniaMNIST's training and test images, one child each: a tenth are healthy in training and three
eighths in the test. So there accuracies are averages over classes, which are taken to be equally frequent by all three
(`predict(..., priors=...)`); Fashion-MNIST's classes are of the same size, and `predict` knows that from noisy counts
alone.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import balanced_accuracy_score

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.estimators import PrivateMDM

FASHION, XRAYS = "fashion_mnist_train_classes0to3.npz", "pneumoniamnist.npz"
NAMES = [0, 1, 2, 3]
GOALS = {200: 0.75, 500: 0.81, 2000: 0.865}
FIRST = 4500
PROMISE = dpm.GDP(1.0)
MISSING = {"plain": None, "simple": None, "ours": None, "ok": None}


def folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("DPM_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))


def descriptors(file: Any, images: str, labels: str) -> tuple[Any, Any]:
    return data.descriptors_in_blocks(file[images], 1e-6), file[labels].ravel()


def ball() -> dpm.Ball:
    return data.descriptor_ball("gray", 1e-6, image_size=(28, 28))


def accuracies(X: Any, y: Any, X_new: Any, y_new: Any, names: list[int], priors: Any = None) -> tuple[float, ...]:
    """Return those without privacy, of the nearest private mean, and of ours with private and with public labels.

    All classes count the same. How frequent they are is known from `priors`, or by each rule from what it was given.
    """
    public = ball()
    plain = LinearDiscriminantAnalysis(priors=priors).fit(public.space.log_coords(public.center, X), y)
    nearest = PrivateMDM(
        public, PROMISE, classes=names, refine=True, units="each-record", budget=dpm.Budget(PROMISE)
    ).fit(X, y)
    ours = [
        dpm.private_lda(
            X, y, public, PROMISE, units=dpm.EACH_RECORD, classes=names, refine=True, labels_public=known
        ).predict(X_new, priors=priors)
        for known in (False, True)
    ]
    told = [plain.predict(public.space.log_coords(public.center, X_new)), nearest.predict(X_new), *ours]
    return tuple(balanced_accuracy_score(y_new, one) for one in told)


def averaged(what: str, goal: float | None, found: list[tuple[float, ...]]) -> list[dict[str, Any]]:
    plain, simple, ours, known = np.mean(found, axis=0).tolist()
    off = float(np.std(found, axis=0)[2])
    return [
        {
            "what": what, "plain": plain, "simple": simple, "ours": ours,
            "goal": "" if goal is None else f">= {goal:g}", "ok": None if goal is None else ours >= goal,
            "note": f"standard deviation {off:.3f} over {len(found)} draws; with public labels {known:.3f}",
        },
    ]  # fmt: skip


def run(quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(19)
    if (folder() / FASHION).is_file():
        with np.load(folder() / FASHION) as file:
            X, y = descriptors(file, "images", "labels")
        first = np.concatenate([np.flatnonzero(y == name)[:FIRST] for name in NAMES])
        later = np.concatenate([np.flatnonzero(y == name)[FIRST:] for name in NAMES])
        for n, goal in GOALS.items():
            found = []
            for _ in range(2 if quick else 40):
                some = np.concatenate([rng.choice(first[y[first] == name], n, replace=False) for name in NAMES])
                found.append(accuracies(X[some], y[some], X[later], y[later], NAMES))
            rows += averaged(f"Fashion-MNIST, {n} per class: accuracy", goal, found)
    else:
        rows.append({"what": "Fashion-MNIST", **MISSING, "goal": "", "note": f"{FASHION} is not there: set DPM_DATA"})
    if (folder() / XRAYS).is_file():
        with np.load(folder() / XRAYS) as file:
            (X, y), (X_new, y_new) = (
                descriptors(file, f"{part}_images", f"{part}_labels") for part in ("train", "test")
            )
        for n in (500, 1000, len(X)):
            chosen = [rng.permutation(len(X))[:n] for _ in range(2 if quick else 40)]
            found = [accuracies(X[some], y[some], X_new, y_new, [0, 1], [0.5, 0.5]) for some in chosen]
            rows += averaged(f"PneumoniaMNIST, {n} children: accuracy", None, found)
    return rows
