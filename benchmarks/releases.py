"""Equal promise, less error than published: expected noise of our releases over that of the papers' mechanisms.

The papers' mechanisms are calibrated here with their own sensitivities, balls and rules; errors are expected
distances of the noise, from the exact laws. The image rows need Fashion-MNIST in the directory DPM_DATA names.

`python benchmarks/releases.py refine [RUNS]` compares refined means with plain ones, cell by cell (200 runs: a quarter
of an hour on two cores).
"""

import os
import pathlib
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import refining
from rich.console import Console
from rich.table import Table

import dpmanifold as dpm
from dpmanifold.data import covariance_descriptors, descriptor_ball
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace

CONSOLE = Console(width=110)


def flat_laplace(dim, scale):
    flat = dpm.Euclidean(dim)
    return RiemannianLaplace(flat, flat.origin, scale).mean_radius()


def flat_gaussian(dim, scale):
    flat = dpm.Euclidean(dim)
    return RiemannianGaussian(flat, flat.origin, scale).mean_radius()


def sphere_rows(table) -> None:
    n, privacy = 200, dpm.PureDP(1.0)
    for radius in (np.pi / 8, 0.6, 0.75):
        ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius)
        published = dpm.sensitivity.of_mean(ball, n, bound="published").value / privacy.epsilon
        theirs = RiemannianLaplace(ball.space, ball.center, published).mean_radius()
        ours = dpm.plan_mean(n, ball, privacy).best
        add(table, f"S^2, r = {radius:.3f}, n = {n}, {privacy}", "Riemannian Laplace", theirs, ours)


def matrix_rows(table) -> None:
    """SPD(30) with the setting of Utpala and others: eigenvalues in [e^-1/4, e^1/4], n = 500."""
    space, n = dpm.SPD(30), 500
    ball = dpm.Ball(space, np.eye(30), np.sqrt(30) / 4)
    delta_mean = 2 * ball.radius / n
    pure = dpm.PureDP(0.1)
    add(
        table,
        f"SPD(30), n = {n}, {pure}",
        "Riemannian Laplace, 2 Delta/eps",
        flat_laplace(space.dim, 2 * delta_mean / 0.1),
        dpm.plan_mean(n, ball, pure).best,
    )
    add(
        table,
        f"SPD(30), n = {n}, {pure}",
        "Riemannian Laplace, Delta/eps",
        flat_laplace(space.dim, delta_mean / 0.1),
        dpm.plan_mean(n, ball, pure).best,
    )
    approx = dpm.ApproxDP(0.1, 1e-6)
    classical = dpm.privacy.gaussian_scale(delta_mean, approx, method="classical")
    add(
        table,
        f"SPD(30), n = {n}, {approx}",
        "tangent Gaussian, classical",
        flat_gaussian(space.dim, classical),
        dpm.plan_mean(n, ball, approx).best,
    )
    add(
        table,
        f"SPD(30), n = {n}, {approx}",
        "Riemannian Laplace",
        flat_laplace(space.dim, delta_mean / 0.1),
        dpm.plan_mean(n, ball, approx).best,
    )


def add(table, setting, paper, theirs, ours) -> None:
    table.add_row(setting, paper, f"{theirs:.4g}", ours.mechanism, f"{ours.error:.4g}", f"{ours.error / theirs:.2f}")


def image_table() -> None:
    folder = os.environ.get("DPM_DATA")
    path = pathlib.Path(folder or ".") / "fashion_mnist_train_classes0to3.npz"
    if folder is None or not path.is_file():
        CONSOLE.print("Images: set DPM_DATA to a directory with fashion_mnist_train_classes0to3.npz to see these rows.")
        return
    with np.load(path) as data:
        images, labels = data["images"], data["labels"]
    privacy = dpm.ApproxDP(0.5, 1e-5)
    table = Table(title="Fashion-MNIST descriptors, 6,000 images a class, ApproxDP(0.5, 1e-5): true error of releases")
    headings = ("class", "published ball", "classical", "our public ball", "ratio", "refined", "ratio", "clipped")
    for heading in headings:
        table.add_column(heading, justify="right")
    published, tight = descriptor_ball("gray", bound="published"), descriptor_ball("gray")
    for name in range(4):
        X = covariance_descriptors(images[labels == name])
        truth = dpm.frechet.mean(X, published.space).value
        options = {"units": dpm.EACH_RECORD}
        theirs = errors(X, published, privacy, truth, mechanism="wrapped-gaussian", **options)
        classical = errors(X, published, privacy, truth, mechanism="wrapped-gaussian-classical", **options)
        ours = errors(X, tight, privacy, truth, **options)
        refined = errors(X, tight, privacy, truth, refine=True, **options)
        last = dpm.private_mean(X, tight, privacy, refine=True, **options)
        clipped = dpm.compare(last, X, public=True, **options).clipped
        table.add_row(
            str(name),
            f"{theirs:.3f}",
            f"{classical:.3f}",
            f"{ours:.3f}",
            f"{ours / theirs:.2f}",
            f"{refined:.4f}",
            f"{refined / theirs:.3f}",
            f"{clipped:.1%}",
        )
    CONSOLE.print(table)


def errors(X, ball, privacy, truth, repeats=5, **options) -> float:
    """Mean distance of releases from the mean of the data, noise and clipping together."""
    return float(
        np.mean([ball.space.dist(truth, dpm.private_mean(X, ball, privacy, **options).value) for _ in range(repeats)])
    )


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def speed_table() -> None:
    space = dpm.SPD(30)
    ball = dpm.Ball(space, np.eye(30), 2.0)
    X = space.exp_coords(np.eye(30), 0.05 * np.random.default_rng(0).standard_normal((500, space.dim)))
    privacy = dpm.ApproxDP(0.5, 1e-6)
    private, plain, plans = [], [], []
    dpm.private_mean(X, ball, privacy, units=dpm.EACH_RECORD)
    for i in range(7):
        plain.append(seconds(lambda: dpm.frechet.mean(X, ball)))
        private.append(seconds(lambda: dpm.private_mean(X, ball, privacy, units=dpm.EACH_RECORD)))
        plans.append(seconds(lambda i=i: [row.error for row in dpm.plan_mean(500 + i, ball, privacy).rows]))
    a, b, c = (statistics.median(x) for x in (private, plain, plans))
    CONSOLE.print(f"Private log-Euclidean mean, n = 500, k = 30: {a / b:.2f}x the non-private {b:.3f} s")
    CONSOLE.print(f"A plan takes {1e3 * c:.0f} ms")


def one_cell(arguments):
    return refining.run_cell(*arguments)


def refine_table(runs: int) -> None:
    """Mean true error of refined means over that of plain ones, and how often the truth is beyond 5 times stated."""
    title = f"refine=True, {runs} runs a cell: error / plain, truth beyond 5 times stated; a naive search beside it"
    table = Table(title=title)
    for heading in ("space", "n", "promise", "fill", "plain / radius", "ratio", "beyond", "naive: ratio", "beyond"):
        table.add_column(heading, justify="right")
    worst, lies = 0.0, 0.0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for cell, out in zip(
            refining.CELLS, pool.map(one_cell, [(*cell, runs) for cell in refining.CELLS]), strict=True
        ):
            name, n, privacy, fill = cell
            ratio = out.refined / out.plain
            worst, lies = max(worst, ratio), max(lies, out.beyond)
            table.add_row(
                name,
                f"{n:,}",
                str(privacy),
                f"{fill:g}",
                f"{out.plain / refining.BALLS[name].radius:.4f}",
                "skipped" if out.skipped else f"{ratio:.3f}",
                f"{out.beyond:.1%}",
                f"{out.naive / out.plain:.3f}",
                f"{out.naive_beyond:.1%}",
            )
    CONSOLE.print(table)
    CONSOLE.print(f"Largest ratio {worst:.3f}; truth beyond 5 times the stated error in at most {lies:.1%} of the runs")


def main() -> None:
    if sys.argv[1:2] == ["refine"]:
        refine_table(int(sys.argv[2]) if len(sys.argv) > 2 else 200)
        return
    table = Table(title="Expected noise at the same promise")
    for heading in ("setting", "published", "error", "ours", "error", "ours / published"):
        table.add_column(heading)
    sphere_rows(table)
    matrix_rows(table)
    CONSOLE.print(table)
    image_table()
    speed_table()


if __name__ == "__main__":
    main()
