"""Tangent and extrinsic means against the Fréchet mean: noise, and how far apart the parameters are.

Errors are distances between the draw, before it is moved into the ball, and what it hides: each mean against its own
parameter. All figures of a row come from the same data in one run; the ratio is what counts.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

from dpmanifold import GDP, Ball, KendallShapes, PureDP, Sphere, frechet
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import get

N, SETS, DRAWS = 100, 20, 200


def records(ball, rng):
    """N records spread over the half of the ball about a point 0.3 radii from its centre, clipped to the ball."""
    space, r = ball.space, ball.radius
    c = rng.standard_normal((N, space.dim))
    c *= (0.5 * r * rng.random(N) ** (1 / space.dim) / np.linalg.norm(c, axis=1))[:, None]
    c[:, 0] += 0.3 * r
    return ball.clip(space.exp_coords(ball.center, c))


def filling(ball, rng):
    """N records spread evenly over the ball, in coordinates at its centre."""
    c = rng.standard_normal((N, ball.space.dim))
    c *= (ball.radius * rng.random(N) ** (1 / ball.space.dim) / np.linalg.norm(c, axis=1))[:, None]
    return ball.clip(ball.space.exp_coords(ball.center, c))


def error(name, ball, privacy, make, home):
    """Average distance of draws from what they hide, over SETS data sets drawn in the ball `home`."""
    mechanism, total = get(name), 0.0
    calibration = mechanism.calibrate(ball, N, privacy)
    for seed in range(SETS):
        X = make(home, np.random.default_rng(seed))
        points = UnitPoints.of(ball.to_frame(X), ball)
        if mechanism.estimand == "frechet":
            at = mean = frechet.mean(X, ball).in_frame
        else:
            mean = ball.frame.origin
            at = mechanism.place(ball, mechanism.vector(ball, mean, points))
        drawn = mechanism.law(ball, calibration, mean, points).sample(DRAWS, rng=seed)
        total += float(ball.frame.dist(at, drawn).mean()) / SETS
    return total


def noise(console):
    table = Table(title=f"Noise error, n = {N}, {SETS} data sets x {DRAWS} draws")
    for heading in ("space", "radius", "promise", "data", "Fréchet mean", "other mean", "error", "ratio"):
        table.add_column(heading, justify="right")
    sphere, shapes = Sphere(2), KendallShapes(8)
    rows = [
        (sphere, r, GDP(0.5), "riemannian-gaussian", ("tangent-mean-gaussian", "extrinsic-mean-gaussian"))
        for r in (0.3, 0.6, 0.75)
    ]
    rows += [
        (sphere, r, PureDP(1.0), "riemannian-laplace", ("tangent-mean-laplace", "extrinsic-mean-laplace"))
        for r in (0.1, 0.3, 0.6, 0.75)
    ]
    rows += [
        (shapes, r, PureDP(1.0), "riemannian-laplace", ("tangent-mean-laplace", "extrinsic-mean-laplace"))
        for r in (0.05, 0.1, 0.2, 0.35)
    ]
    rows += [
        (shapes, r, GDP(0.5), "riemannian-gaussian", ("tangent-mean-gaussian", "extrinsic-mean-gaussian"))
        for r in (0.1, 0.2, 0.35)
    ]
    for space, r, privacy, ours, others in rows:
        ball = Ball(space, space.origin, r)
        for title, make in (("narrow", records), ("filling", filling)):
            base = error(ours, ball, privacy, make, ball)
            cases = [(name, name, ball) for name in others]
            if r == 0.75:
                cases.append((others[1], others[1] + ", no ball", Ball.whole(space)))
            for name, shown, where in cases:
                found = error(name, where, privacy, make, ball)
                table.add_row(
                    repr(space), f"{r:g}", repr(privacy), title, f"{base:.4f}", shown, f"{found:.4f}",
                    f"{found / base:.2f}",
                )  # fmt: skip
    console.print(table)


def place(name, ball, X):
    """Return a mean without noise, in the frame."""
    mechanism = get(name)
    return mechanism.place(ball, mechanism.vector(ball, ball.frame.origin, UnitPoints.of(ball.to_frame(X), ball)))


def clusters(ball, rng):
    """30 records in two or three clusters, most of them on the edge: data whose means are far apart."""
    space, k = ball.space, int(rng.integers(2, 4))
    c = rng.standard_normal((k, space.dim))
    if rng.random() < 0.5:
        c[:, 2:] = 0
    c *= (ball.radius * (1 - 1e-9) / np.linalg.norm(c, axis=1) * np.where(rng.random(k) < 0.7, 1, rng.random(k)))[
        :, None
    ]
    return space.exp_coords(ball.center, c[rng.choice(k, 30, p=rng.dirichlet(np.full(k, 0.7)))])


def gaps(console, searched=1000):
    table = Table(title="Distance from the Fréchet mean")
    for heading in ("space", "radius", "mean", "narrow data", "filling data", "largest found", "bound"):
        table.add_column(heading, justify="right")
    for space, radii in ((Sphere(2), (0.1, 0.3, 0.5, 0.75)), (KendallShapes(8), (0.1, 0.2, 0.35))):
        for r in radii:
            ball = Ball(space, space.origin, r)
            found = {}
            for title, make, sets in (
                ("narrow", records, SETS),
                ("filling", filling, SETS),
                ("found", clusters, searched),
            ):
                rng = np.random.default_rng(0)
                for _ in range(sets):
                    X = make(ball, rng)
                    true = frechet.mean(X, ball).in_frame
                    for kind in ("tangent", "extrinsic"):
                        gap = float(space.dist(true, place(f"{kind}-mean-gaussian", ball, X)))
                        found.setdefault((kind, title), []).append(gap)
            for kind, bound in (("tangent", frechet.tangent_gap(ball)), ("extrinsic", frechet.extrinsic_gap(ball))):
                largest = max(found[kind, "found"])
                assert largest <= bound
                table.add_row(
                    repr(space), f"{r:g}", kind, f"{np.mean(found[kind, 'narrow']):.5f}",
                    f"{np.mean(found[kind, 'filling']):.5f}", f"{largest:.5f}", f"{bound:.5f}",
                )  # fmt: skip
    console.print(table)


def main() -> None:
    console = Console(width=150)
    noise(console)
    gaps(console)


if __name__ == "__main__":
    main()
