"""Native kernels against what users have: ratios of medians of interleaved repeats, one thread unless said.

Time is the processor's (`time.process_time`), so that other jobs on the machine do not count; the factor of two
threads is wall-clock time. `python benchmarks/kernels.py quick` takes a fifth of the data, `... levels` looks at every
instruction set the machine has.
"""

import statistics
import subprocess
import sys
import time

import numpy as np
from pyriemann.geometry.distance import distance_riemann
from pyriemann.geometry.mean import mean_logeuclid, mean_riemann
from rich.console import Console
from rich.table import Table
from scipy import ndimage
from threadpoolctl import threadpool_limits

from dpmanifold import SPD, frechet, linalg
from dpmanifold.data import covariance_descriptors

REPEATS = 21
SIZES = {2: 60_000, 3: 60_000, 9: 12_000, 11: 8_000, 16: 4_000, 30: 1_500, 64: 300}
WANTED_MEAN = {2: 40, 3: 22, 9: 12, 11: 12, 16: 12, 30: 13, 64: 8}
WANTED_AFFINE = {3: 30, 9: 25, 30: 15}
WANTED_DISTANCE = {3: 15, 9: 12, 30: 11}


def seconds(call, clock=time.process_time) -> float:
    start = clock()
    call()
    return clock() - start


def medians(*calls, repeats=REPEATS, clock=time.process_time) -> list[float]:
    """Median time of each call; the calls take turns."""
    times = [[seconds(call, clock) for call in calls] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def sobel_loop(images, eta=1e-6):
    """The descriptors as one writes them with scipy.ndimage: one image at a time."""
    result = []
    height, width = images.shape[1:]
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    bend = np.outer([1, 4, 6, 4, 1], [1, 0, -2, 0, 1]) / 32
    for image in images / 255.0:
        ix, iy = np.abs(ndimage.sobel(image, 1)) / 4, np.abs(ndimage.sobel(image, 0)) / 4
        ixx, iyy = np.abs(ndimage.correlate(image, bend)), np.abs(ndimage.correlate(image, bend.T))
        planes = [x, y, image, ix, iy, ixx, iyy, np.hypot(ix, iy), np.arctan2(ix, iy)]
        features = np.stack([plane.ravel() for plane in planes])
        result.append(np.cov(features, bias=True) + eta * np.eye(9))
    return np.array(result)


# Run by itself, because the peak is of a whole process. From /proc, where it can be reset: that of getrusage is
# inherited from the process that started this one, and hides everything below.
MEMORY = """
import time
import numpy as np
from dpmanifold import EACH_RECORD, SPD, ApproxDP, Ball, linalg, private_mean

n = {n}
rng = np.random.default_rng(0)
X = np.empty((n, 3, 3))
for start in range(0, n, 10000):
    X[start : start + 10000] = SPD(3).random_point(min(10000, n - start), rng=rng)
ball = Ball(SPD(3), np.eye(3), 2.0, source="benchmark")
private_mean(X[:1000], ball, ApproxDP(1.0, 1e-6), units=EACH_RECORD)


def run(x):
    {call}


def kilobytes(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field))


run(X[:1000])
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = kilobytes("VmRSS")
start = time.process_time()
run(X)
took = time.process_time() - start
after = kilobytes("VmHWM")
print(took, 1 + (after - before) * 1024 / X.nbytes)
"""
MEMORY_CALLS = {
    "linalg.log_mean": "linalg.log_mean(x)",
    "private_mean": "private_mean(x, ball, ApproxDP(1.0, 1e-6), units=EACH_RECORD)",
}


def log_euclidean(table, share):
    for k, count in SIZES.items():
        X = SPD(k).random_point(count // share, rng=0)
        ours, theirs = medians(lambda x=X: linalg.log_euclidean_mean(x), lambda x=X: mean_logeuclid(x))
        row(table, "log-Euclidean mean / pyRiemann", X, ours, theirs, WANTED_MEAN[k])


def distances(table, share):
    for k, wanted in WANTED_DISTANCE.items():
        X = SPD(k).random_point(SIZES[k] // share, rng=0)
        base = linalg.log_euclidean_mean(X)
        ours, theirs = medians(
            lambda x=X, b=base: linalg.affine_distances(x, b), lambda x=X, b=base: distance_riemann(x, b)
        )
        row(table, "affine distances / pyRiemann", X, ours, theirs, wanted)


def affine_means(table, share):
    for k, wanted in WANTED_AFFINE.items():
        space = SPD(k, metric="riemann")
        X = space.random_point(SIZES[k] // share, rng=0)
        ours, theirs = medians(
            lambda s=space, x=X: frechet.mean(x, s, tol=1e-10),
            lambda x=X: mean_riemann(x, tol=1e-10, maxiter=200),
            repeats=5,
        )
        row(table, "affine mean to 1e-10 / pyRiemann", X, ours, theirs, wanted)


def descriptors(table, share):
    n = 60_000 // share
    images = np.random.default_rng(0).integers(0, 256, (n, 28, 28)).astype(np.uint8)
    ours, theirs = medians(lambda: covariance_descriptors(images), lambda: sobel_loop(images), repeats=1)
    row(table, "gray descriptors / scipy loop", covariance_descriptors(images), ours, theirs, 10)


def row(table, task, X, ours, theirs, wanted):
    n, k = X.shape[:2]
    table.add_row(task, str(k), f"{n:,}", f"{ours / n * 1e6:.3f}", f"{theirs / ours:.1f}", f"{wanted}")


def ill_conditioned():
    """The affine mean of matrices with condition number 1e6, and what pyRiemann's stops at."""
    space, rng = SPD(9, metric="riemann"), np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((2000, 9, 9)))[0]
    X = linalg.symmetrize((turn * np.geomspace(1e-6, 1.0, 9)) @ np.swapaxes(turn, -1, -2))
    found = frechet.mean(X, space, tol=1e-10)
    theirs = mean_riemann(X, tol=1e-10, maxiter=200)
    inverse, power = linalg.affine_factor(theirs)
    left = np.linalg.norm(linalg.whitened_log_sum(inverse, X, np.full(len(X), 1 / len(X)), power)[0])
    print(f"condition 1e6, k = 9: gradient {found.residual:.1e} after {found.iterations} steps, pyRiemann's {left:.1e}")


def two_threads(share):
    for k in (3, 9, 30, 64):
        X = SPD(k).random_point(4 * SIZES[k] // share, rng=0)
        times = {1: [], 2: []}
        for _ in range(41):
            for threads, taken in times.items():
                with threadpool_limits(limits=threads, user_api="dpmanifold"):
                    taken.append(seconds(lambda x=X: linalg.log_mean(x), time.perf_counter))
        ratio = statistics.median(times[1]) / statistics.median(times[2])
        print(f"two threads, k = {k}: {ratio:.2f} times one (wanted 1.7)")


def bad_input(share):
    """What one bad matrix in the batch costs; to look for it costs one pole of 66, always."""
    for k in (3, 9, 30):
        good = SPD(k).random_point(SIZES[k] // share, rng=0)
        bad = good.copy()
        bad[len(bad) // 2] *= -1
        with np.errstate(all="ignore"):  # LAPACK's logarithm of a negative number
            without, with_one = medians(lambda x=good: linalg.log_norm(x), lambda x=bad: linalg.log_norm(x), repeats=21)
        print(f"one bad matrix among {len(bad):,}, k = {k}: {with_one / without:.2f} times the time without it")


def memory(share):
    n = 1_000_000 // share
    for name, call in MEMORY_CALLS.items():
        script = MEMORY.format(n=n, call=call)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        took, peak = (float(number) for number in done.stdout.split())
        print(f"{name} of {n:,} tensors: {took:.2f} s, peak memory {peak:.2f} times the input (wanted 1.2)")


def main() -> None:
    share = 5 if "quick" in sys.argv[1:] else 1
    levels = linalg.backends()[1:] if "levels" in sys.argv[1:] else [linalg.level()]
    for level in reversed(levels):
        table = Table(title=f"{level}: times faster, one thread")
        for heading in ("task", "k", "n", "ours, us each", "ratio", "wanted"):
            table.add_column(heading, justify="right")
        with threadpool_limits(limits=1), linalg.backend(level):
            for part in (log_euclidean, distances, affine_means, descriptors):
                part(table, share)
        Console(width=110).print(table)
    ill_conditioned()
    two_threads(share)
    bad_input(share)
    memory(share)


if __name__ == "__main__":
    main()
