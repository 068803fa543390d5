"""Geodesic regression on a covariate: the error of the curve, its bands and the test of its slope.

Records are normal, in coordinates carried along it, about a geodesic that does not go through the ball's centre; the
covariate is uniform and private. 1,000 units, GDP(1), ``private_regression`` as users call it. The error is the root
mean squared geodesic distance from the true curve, over the range and over all repetitions. Without privacy: geodesic
least squares, by Gauss-Newton until it stands still. The simplest private way: private means in five equal bins of the
covariate, which must be public for that, in coordinates at the ball's centre, joined by weighted least squares to a
straight line there, the geodesic through it; with and without a smaller ball first, the better of both is shown.

Coverage of a pointwise band is that of the value of the covariate, of five over the range, at which it is farthest from
the level; that of the simultaneous one is of all 41 values at once. Scheffé's band holds more than the level by
construction, so that it is judged on one side only. The size of the test is its rejections at 5 % where the mean does
not move. Ratios of errors are of the same repetitions, every eighth.

Private covariates that do not fill their range are rows of their own, on a line: uniform on half of it, or normal about
a point of it, with 150, 300 and 1,000 units, where the mean does not move and where it does. There bands are judged on
one side, too: where the covariate's variance cannot be told from noise they hold everything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import dpmanifold as dpm
from dpmanifold.features.regression_features import Geodesic, reflected

N, MU = 1000, 1.0
X_OF_BANDS = np.linspace(0.0, 10.0, 5)
GRID = np.linspace(-1.0, 1.0, 41)
_NODES = np.linspace(-1.0, 1.0, 9)


class Setting(NamedTuple):
    """A space, a ball, the spread of the residuals and half the length of the curve."""

    name: str
    ball: dpm.Ball
    spread: float
    half: float

    def curve(self, moves: bool = True) -> Geodesic:
        """Return the true curve."""
        frame, d = self.ball.frame, self.ball.space.dim
        base = frame.exp_coords(frame.origin, 0.2 * self.ball.radius * np.ones(d) / np.sqrt(d))
        velocity = np.zeros(d)
        velocity[-1] = self.half if moves else 0.0
        return Geodesic(frame, base, velocity)

    def drawn(self, curve: Geodesic, rng: Any, n: int = N) -> tuple[Any, Any]:
        """Return records and covariates from 0 to 10."""
        t = rng.uniform(-1, 1, n)
        residuals = self.spread * rng.standard_normal((n, self.ball.space.dim))
        return self.ball.from_frame(_beside(curve, t, residuals)), 5 * t + 5


def _beside(curve: Geodesic, t: Any, residuals: Any) -> Any:
    """Return points with these residuals, all at once: as Geodesic.beside, for a parameter each."""
    frame = curve.frame
    carried = frame.exp_coords(np.broadcast_to(curve.base, (len(t), *curve.base.shape)), -residuals)
    return reflected(frame, frame.exp_coords(curve.base, (t / 2)[:, None] * curve.velocity), carried)


SETTINGS = (
    Setting("S^2", dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.75), 0.15, 0.4),
    Setting("SPD(3), log-Euclidean", dpm.Ball(dpm.SPD(3), np.eye(3), 2.0), 0.3, 0.8),
    Setting("SPD(3), affine-invariant", dpm.Ball(dpm.SPD(3, metric="riemann"), np.eye(3), 2.0), 0.3, 0.8),
)


def least_squares(ball: dpm.Ball, X: Any, x: Any) -> Geodesic:
    """Return the geodesic regression without privacy: Gauss-Newton from a straight line at the ball's centre."""
    points, t, d = ball.to_frame(X), x / 5 - 1, ball.space.dim
    curve, zero = Geodesic.resting(ball.frame), np.zeros(ball.space.dim)
    for _ in range(12):
        residuals = curve.residuals(points, t)
        fields = curve.derivative(zero, zero, _NODES).reshape(len(_NODES), -1)
        powers = np.polynomial.polynomial.polyfit(_NODES, fields, 6)
        at_t = np.polynomial.polynomial.polyval(t, powers).T.reshape(len(t), d, 2 * d)
        step = np.linalg.lstsq(at_t.reshape(-1, 2 * d), residuals.ravel(), rcond=None)[0]
        curve = curve.moved(step[:d], step[d:])
        if np.linalg.norm(step) < 1e-8:
            break
    return curve


def by_bins(ball: dpm.Ball, X: Any, x: Any, rng: Any, refine: bool) -> Geodesic:
    """Return the curve through private means in five public bins."""
    label = np.minimum((x // 2).astype(int), 4)
    means = dpm.private_class_means(
        X, label, ball, dpm.GDP(MU), units=dpm.EACH_RECORD, classes=list(range(5)), refine=refine, rng=rng
    )
    frame, t = ball.frame, 0.4 * np.arange(5) - 0.8
    c = frame.log_coords(frame.origin, ball.to_frame(np.stack([means[k].value for k in range(5)])))
    weights = np.sqrt([means[k].n for k in range(5)])
    design = np.stack([np.ones(5), t], axis=1)
    a, b = np.linalg.lstsq(design * weights[:, None], c * weights[:, None], rcond=None)[0]
    return Geodesic.resting(frame).moved(a, b)


def ours(setting: Setting, X: Any, x: Any, rng: Any, **options: Any) -> dpm.GeodesicRegression:
    """Return the regression by three draws, unless options say otherwise."""
    asked = {"units": dpm.EACH_RECORD, "covariate_range": (0.0, 10.0), "rng": rng, "refine": True, **options}
    return dpm.private_regression(X, x, setting.ball, dpm.GDP(MU), **asked)


def squared_error(curve: Any, true: Geodesic) -> float:
    """Return the mean squared distance over the range; of a regression, of its curve."""
    frame = true.frame
    at = curve.ball.to_frame(curve.curve(5 * GRID + 5)) if isinstance(curve, dpm.GeodesicRegression) else curve.at(GRID)
    return float(np.mean(frame.dist(at, true.at(GRID)) ** 2))


def of_setting(setting: Setting, repetitions: int, number: int) -> list[dict[str, Any]]:
    """Return the rows of one space."""
    rng, true, ball = np.random.default_rng(2000 + number), setting.curve(), setting.ball
    at_bands, everywhere = (ball.from_frame(true.at(x / 5 - 1)) for x in (X_OF_BANDS, 5 * GRID + 5))
    errors: dict[str, list[float]] = {"plain": [], "ours": [], "once": [], "bins": [], "refined bins": []}
    covered, at_once, paired = [], [], []
    for repetition in range(repetitions):
        X, x = setting.drawn(true, rng)
        found = ours(setting, X, x, rng)
        errors["ours"].append(squared_error(found, true))
        covered.append(found.contains(at_bands, X_OF_BANDS))
        if repetition % 8 == 0:
            paired.append(errors["ours"][-1])
            at_once.append(found.contains(everywhere, 5 * GRID + 5, simultaneous=True).all())
            errors["plain"].append(squared_error(least_squares(ball, X, x), true))
            errors["once"].append(squared_error(ours(setting, X, x, rng, refine=False), true))
            errors["bins"].append(squared_error(by_bins(ball, X, x, rng, False), true))
            errors["refined bins"].append(squared_error(by_bins(ball, X, x, rng, True), true))
    error = {name: float(np.sqrt(np.mean(found))) for name, found in errors.items()}
    ratio = float(np.sqrt(np.mean(paired) / np.mean(errors["plain"])))
    by_x = np.mean(covered, axis=0)
    worst = float(by_x[np.argmax(np.abs(by_x - 0.95))])
    simple = min(error["bins"], error["refined bins"])
    shares = ", ".join(f"{share:.3f}" for share in by_x)
    return [
        {"what": f"error of the curve on {setting.name}", "plain": error["plain"], "simple": simple,
         "ours": error["ours"], "goal": "<= 1.2 without privacy", "ok": ratio <= 1.2,
         "note": f"{ratio:.3f} times, on the same {len(paired)} repetitions; one draw: {error['once']:.3g}"},
        {"what": f"pointwise 95 % bands on {setting.name} cover", "plain": None, "simple": None, "ours": worst,
         "goal": ".93 to .97", "ok": 0.93 <= worst <= 0.97,
         "note": f"{repetitions} repetitions; at 0, 2.5, 5, 7.5 and 10: {shares}"},
        {"what": f"simultaneous 95 % bands on {setting.name} cover", "plain": None, "simple": None,
         "ours": float(np.mean(at_once)), "goal": ">= .93", "ok": float(np.mean(at_once)) >= 0.93,
         "note": f"{len(at_once)} repetitions, at all of 41 values"},
    ]  # fmt: skip


def sizes(setting: Setting, repetitions: int, number: int) -> list[dict[str, Any]]:
    """Return how often the test of slope rejects at 5 % where nothing moves."""
    rng, true = np.random.default_rng(3000 + number), setting.curve(moves=False)
    p = [ours(setting, *setting.drawn(true, rng), rng).p_value for _ in range(repetitions)]
    size = float(np.mean(np.array(p) < 0.05))
    return [{"what": f"size of the test of slope on {setting.name}, 5 %", "plain": None, "simple": None, "ours": size,
             "goal": "<= .06", "ok": size <= 0.06, "note": f"{repetitions} repetitions"}]  # fmt: skip


def people(repetitions: int) -> list[dict[str, Any]]:
    """Return what pointwise bands cover where people have five records each, alike, at ages of their own."""
    setting, rng, n, each = SETTINGS[0], np.random.default_rng(4000), 400, 5
    true, ball = setting.curve(), setting.ball
    at_bands, covered, ids = ball.from_frame(true.at(X_OF_BANDS / 5 - 1)), [], np.repeat(np.arange(n), each)
    for _ in range(repetitions):
        t = np.clip(np.repeat(rng.uniform(-0.8, 0.8, n), each) + rng.uniform(-0.2, 0.2, n * each), -1, 1)
        own = 0.1 * np.repeat(rng.standard_normal((n, 2)), each, axis=0)
        X = ball.from_frame(_beside(true, t, own + 0.1 * rng.standard_normal((n * each, 2))))
        covered.append(ours(setting, X, 5 * t + 5, rng, units=ids).contains(at_bands, X_OF_BANDS))
    by_x = np.mean(covered, axis=0)
    worst = float(by_x[np.argmax(np.abs(by_x - 0.95))])
    shares = ", ".join(f"{share:.3f}" for share in by_x)
    return [{"what": "pointwise 95 % bands on S^2, 400 people with 5 records each, cover", "plain": None,
             "simple": None, "ours": worst, "goal": ".93 to .97", "ok": 0.93 <= worst <= 0.97,
             "note": f"{repetitions} repetitions; at 0, 2.5, 5, 7.5 and 10: {shares}"}]  # fmt: skip


UNEVEN = {
    "uniform on half of the range": lambda rng, n: rng.uniform(0.0, 1.0, n),
    "normal at 0.5 +- 0.2": lambda rng, n: np.clip(0.5 + 0.2 * rng.standard_normal(n), -1.0, 1.0),
    "normal at 0.7 +- 0.1": lambda rng, n: np.clip(0.7 + 0.1 * rng.standard_normal(n), -1.0, 1.0),
}


def uneven(name: str, repetitions: int, number: int) -> list[dict[str, Any]]:
    """Return size and coverage on a line where a private covariate does not fill its range."""
    rng, line, ends = np.random.default_rng(5000 + number), dpm.Ball(dpm.Euclidean(1), [0.0], 3.0), (-1.0, 1.0)
    at, sizes_by_n, lowest, told = np.linspace(-1.0, 1.0, 5), [], [], []
    for n in (150, 300, 1000):
        for middle, slope in ((1.5, 0.0), (0.5, 0.6)):
            found = []
            for _ in range(repetitions):
                t = UNEVEN[name](rng, n)
                X = (middle + slope * t + 0.3 * rng.standard_normal(n))[:, None]
                found.append(dpm.private_regression(X, t, line, dpm.GDP(MU), units=dpm.EACH_RECORD, rng=rng,
                                                    covariate_range=ends, refine=True))  # fmt: skip
            true = (middle + slope * at)[:, None]
            lowest.append(float(np.mean([one.contains(true, at) for one in found], axis=0).min()))
            told.append(f"{np.mean([one.is_identifiable for one in found]):.2f}")
            if slope == 0:
                sizes_by_n.append(float(np.mean([one.p_value < 0.05 for one in found])))
    shares = ", ".join(f"{share:.3f}" for share in sizes_by_n)
    low = ", ".join(f"{share:.3f}" for share in lowest)
    return [
        {"what": f"size of the test of slope, covariate {name}, 5 %", "plain": None, "simple": None,
         "ours": max(sizes_by_n), "goal": "<= .06", "ok": max(sizes_by_n) <= 0.06,
         "note": f"{repetitions} repetitions each; with 150, 300 and 1,000 units: {shares}"},
        {"what": f"pointwise 95 % bands, covariate {name}, cover", "plain": None, "simple": None,
         "ours": min(lowest), "goal": ">= .93", "ok": min(lowest) >= 0.93,
         "note": f"the lowest of five values: {low}; slopes are told in {', '.join(told)}"},
    ]  # fmt: skip


def run(quick: bool) -> list[dict[str, Any]]:
    """Return all rows."""
    repetitions = 40 if quick else 1000
    rows = [row for number, one in enumerate(SETTINGS) for row in of_setting(one, repetitions, number)]
    rows += [row for number, one in enumerate(SETTINGS) for row in sizes(one, repetitions, number)]
    rows += [row for number, name in enumerate(UNEVEN) for row in uneven(name, repetitions // 2, number)]
    return rows + people(repetitions)
