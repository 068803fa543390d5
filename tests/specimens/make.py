"""Write the specimens anew: one small file of each kind of result, of simulated records.

    python tests/specimens/make.py

Do this where the format itself changes, and at no other time: that files written earlier are still read and verified is
what test_specimens.py looks at.
"""

import pathlib

import numpy as np

import dpmanifold as dpm

FOLDER = pathlib.Path(__file__).parent
N = 240
EACH = {"units": dpm.EACH_RECORD}

SPD, AFFINE, SPHERE = dpm.SPD(2), dpm.SPD(2, metric="riemann"), dpm.Sphere(2)
PRODUCT = dpm.Product([dpm.Sphere(2), dpm.Euclidean(2)])
BALLS = {
    "spd": dpm.Ball(SPD, np.diag([2.0, 0.5]), 1.5, source="simulated"),
    "affine": dpm.Ball(AFFINE, np.diag([2.0, 0.5]), 1.0, source="simulated"),
    "sphere": dpm.Ball(SPHERE, [0.0, 0.0, 1.0], 0.7, source="simulated"),
    "shapes": dpm.Ball(dpm.KendallShapes(4), dpm.KendallShapes(4).origin, 0.35, source="simulated"),
    "hyperbolic": dpm.Ball(dpm.Hyperbolic(2), [1.0, 0.0, 0.0], 1.0, source="simulated"),
    "product": dpm.Ball(PRODUCT, PRODUCT.origin, 0.6, source="simulated"),
}


def records(name, n=N, shift=0.0):
    """Return points about a fifth of the radius from a ball's center."""
    ball, rng = BALLS[name], np.random.default_rng(7)
    c = 0.2 * ball.radius * (rng.standard_normal((n, ball.space.dim)) + shift) / np.sqrt(ball.space.dim)
    return ball.space.exp_coords(ball.center, c)


LABELS = np.tile(["a", "b", "c"], N // 3)
AGE = np.linspace(20.0, 80.0, N)
GDP, PURE, APPROX, ZCDP = dpm.GDP("1.5"), dpm.PureDP(2.0), dpm.ApproxDP(2.0, 1e-6), dpm.ZCDP(1.0)


def asked(call, name, privacy, *about, **options):
    """Return a function that makes a private call about simulated records."""
    return lambda: call(records(name), *about, BALLS[name], privacy, **EACH, **options)


def mean_of_variance():
    """Return a variance about a mean that was released before."""
    about = dpm.private_mean(records("sphere"), BALLS["sphere"], GDP, **EACH)
    return dpm.private_variance(records("sphere"), BALLS["sphere"], GDP, about=about, **EACH)


SPECIMENS = {
    **{f"mean-{name}": asked(dpm.private_mean, name, GDP if name == "product" else PURE) for name in BALLS},
    "mean-person": lambda: dpm.private_mean(records("spd"), BALLS["spd"], GDP, units=np.repeat(np.arange(N // 2), 2)),
    "mean-refined": lambda: dpm.private_mean(records("spd", 4000), BALLS["spd"], GDP, refine=True, **EACH),
    "mean-shaped": asked(dpm.private_mean, "spd", GDP, noise_shape=np.diag([2e-2, 2e-3, 2e-4])),
    "mean-tangent": asked(dpm.private_mean, "sphere", APPROX, estimand="tangent"),
    "mean-extrinsic": asked(dpm.private_mean, "shapes", ZCDP, estimand="extrinsic"),
    "mean-of-class": lambda: asked(dpm.private_class_means, "sphere", GDP, LABELS, classes=["a", "b", "c"])()["b"],
    "median": lambda: dpm.private_median(records("spd", 4000), BALLS["spd"], GDP, **EACH),
    "variance": asked(dpm.private_variance, "hyperbolic", PURE),
    "variance-about": mean_of_variance,
    "variance-interval": asked(dpm.private_variance_interval, "sphere", GDP),
    "ball": lambda: dpm.private_ball(records("sphere", 4000), BALLS["sphere"], GDP, **EACH),
    "region": asked(dpm.private_region, "affine", GDP),
    "two-sample-test": lambda: dpm.private_two_sample_test(
        records("spd"), records("spd", shift=1.0), BALLS["spd"], GDP, **EACH
    ),
    "k-sample-test": asked(dpm.private_k_sample_test, "sphere", GDP, LABELS, classes=["a", "b", "c"]),
    "lda": asked(dpm.private_lda, "spd", GDP, LABELS, classes=["a", "b", "c"]),
    "pga": asked(dpm.private_pga, "spd", GDP),
    "regression": asked(dpm.private_regression, "spd", GDP, AGE, covariate_range=(20.0, 80.0)),
    "regression-public": asked(
        dpm.private_regression, "spd", GDP, AGE, covariate_range=(20.0, 80.0), covariate_public=True
    ),
    "joint-moments": asked(dpm.private_statistic, "spd", GDP, statistic="joint moments"),
}
"""Every kind of result by the name of its file."""

if __name__ == "__main__":
    for name, make in SPECIMENS.items():
        make().save(FOLDER / f"{name}.json")
