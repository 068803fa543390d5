"""What users call on tensors that lie on a CUDA card, beside what they would write in torch on the same card.

    python benchmarks/gpu.py [means distances ...] [--json FILE] [--no-prepare]

Needs a card, torch and CuPy; without them it says so and measures nothing. `cpu` and `descriptors` need the compiled
kernels (`make kernels`). The whole takes about three minutes on an H200.

- Times are wall-clock, of a synchronised card, medians after a warm-up. Kernels are compiled before, by as many
  processes as there are cores, and their times told apart from the others.
- torch's eigh route runs in the best of several block sizes on the same data, or on the first rows of it where it is
  slow, which the note says; its time for each matrix is compared with ours for all of them.
- "of the limit" is the time that the card cannot do without, over the time taken: the larger of the bytes that must
  be read, at the bandwidth of a copy that is measured first, and of operations at 33.5 TFLOP/s: of one logarithm,
  4/3 k^3 to reduce, 2 k^3 for the way back (or the congruence) and k^2 for each pole.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import multiprocessing
import os
import pathlib
import platform
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed

# A module of this folder has the name of one of the standard library, which torch may ask for.
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != HERE]
sys.path.append(str(HERE.parent / "tests"))

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.markup import escape  # noqa: E402
from rich.table import Table  # noqa: E402

from dpmanifold import EACH_RECORD, GDP, SPD, Ball, frechet, linalg, private_mean  # noqa: E402
from dpmanifold.data import covariance_descriptors  # noqa: E402
from dpmanifold.linalg.cards import cuda_passes as card_passes  # noqa: E402
from dpmanifold.linalg.native import library  # noqa: E402

# What fills about 7 GB of the card, as 10^8 matrices 3 x 3 do; a third of it where a mean takes several passes.
MANY = {2: 225_000_000, 3: 100_000_000, 5: 36_000_000, 9: 11_000_000, 16: 3_500_000, 30: 1_000_000, 64: 220_000}
FEWER = {3: 30_000_000, 9: 3_500_000, 30: 300_000}
WANTED_MEAN = {2: 1000, 3: 350, 5: 60, 9: 80, 16: 40, 30: 25, 64: 10}
WANTED_AFFINE = {3: 100, 9: 50, 30: 15}
WANTED_DISTANCE = {3: 100, 9: 50, 30: 15}
WANTED_CORE = {3: 300, 9: 200, 30: 80}
ON_ONE_CORE = {3: 2_000_000, 9: 200_000, 30: 20_000}
REPEATED = {2: 300_000, 3: 300_000, 5: 200_000, 9: 100_000, 16: 40_000, 30: 20_000, 64: 3_000}
EXACT_SIZES = (2, 3, 4, 5, 9, 11, 12, 16, 17, 24, 30, 32, 33, 48, 64)
HOST_N, ON_CARD_SECONDS, OF_BUS = 100_000_000, 0.05, 0.8
PRIVATE_N, IMAGES = 10_000_000, 60_000

BLOCKS = (2048, 4096, 8192, 16384, 32768, 65536)
REPEATS = 7
TOL = 1e-10

# FP64 operations a second of a Hopper card outside its tensor cores, and poles of the logarithm: of the table that a
# mean tries first (condition numbers to 1e4), and of the largest.
PEAK = 33.5e12
USUAL_POLES, ALL_POLES = 28, 65

# What counts as exact, and how many times LAPACK's error a function may have; as in tests/linalg.
FLOOR, TIMES_LAPACK = 1e-13, 3.0

FUNCTIONS = {"logm": linalg.logm, "sqrtm": linalg.sqrtm, "invsqrtm": linalg.invsqrtm, "expm": linalg.expm}
ROWS: list[dict] = []
FAILED: list[str] = []


# -------------------------------------------------------------------- what is told


def say(text: str) -> None:
    print(text, flush=True)


def row(
    section, what, *, k=None, n=None, ours=None, theirs=None, ratio=None, wanted=None, met=None, limit=None, note=""
):
    """Keep and print one measurement; `ours` and `theirs` in seconds for each of the n."""
    if ratio is None and ours and theirs:
        ratio = theirs / ours
    if met is None and wanted is not None and ratio is not None:
        met = bool(ratio >= wanted)
    found = {
        "section": section,
        "what": what,
        "k": k,
        "n": n,
        "ours_ns": None if ours is None else ours * 1e9,
        "theirs_ns": None if theirs is None else theirs * 1e9,
        "ratio": ratio,
        "wanted": wanted,
        "met": met,
        "of_limit": limit,
        "note": note,
    }
    ROWS.append(found)
    words = [f"{section}: {what}"]
    words += [] if k is None else [f"k = {k}"]
    words += [] if n is None else [f"n = {n:,}"]
    words += [] if ours is None else [f"{number(ours * 1e9)} ns each, {number(ours * n * 1e3)} ms in all"]
    words += [] if theirs is None else [f"theirs {number(theirs * 1e9)} ns"]
    words += [] if ratio is None else [f"ratio {number(ratio)}"]
    words += [] if wanted is None else [f"wanted {wanted}"]
    words += [] if limit is None else [f"{100 * limit:.0f} % of the limit"]
    words += {None: [], True: ["met"], False: ["MISSED"]}[met]
    say(", ".join(words) + (f" ({note})" if note else ""))


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def shown(section: str) -> list[dict]:
    """Return a section's rows for the table: of accuracy, the worst size of each function; all were printed before."""
    found = [one for one in ROWS if one["section"] == section]
    if section != "accuracy":
        return found
    worst: dict[str, dict] = {}
    for one in found:
        if one["what"] not in worst or one["ratio"] > worst[one["what"]]["ratio"]:
            worst[one["what"]] = one
    return list(worst.values())


def print_table(card: str) -> None:
    table = Table(title=f"On the card ({card})")
    headings = ("what", "k", "n", "ours, ns each", "theirs, ns", "ratio", "wanted", "of limit", "verdict")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("what", "verdict") else "right")
    sections = {found["section"]: None for found in ROWS}
    for section in sections:
        table.add_section()
        for found in shown(section):
            figures = [
                "" if found[key] is None else number(found[key]) for key in ("ours_ns", "theirs_ns", "ratio", "wanted")
            ]
            table.add_row(
                escape(f"{section}: {found['what']}"),
                "" if found["k"] is None else str(found["k"]),
                "" if found["n"] is None else f"{found['n']:,}",
                *figures,
                "" if found["of_limit"] is None else f"{100 * found['of_limit']:.0f} %",
                {None: "", True: "met", False: "MISSED"}[found["met"]],
            )
    Console(width=140).print(table)
    judged = [found for found in ROWS if found["met"] is not None]
    say(f"{sum(found['met'] for found in judged)} of {len(judged)} goals met.")
    if FAILED:
        say(f"These failed: {', '.join(FAILED)}.")


# -------------------------------------------------------------------- measuring


def seconds(call) -> float:
    """Wall-clock time of a call, the card idle before and after it."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def median(call, repeats=REPEATS, limit=3.0) -> float:
    """Median of repeats after a warm-up; of fewer, where they would take longer than `limit` seconds."""
    seconds(call)
    times = [seconds(call)]
    times += [seconds(call) for _ in range(min(repeats - 1, int(limit / max(times[0], 1e-9))))]
    return float(np.median(times))


def free() -> None:
    """Give the card's memory back, torch's and CuPy's."""
    import cupy
    import torch

    gc.collect()
    torch.cuda.empty_cache()
    cupy.get_default_memory_pool().free_all_blocks()


def tensors(k: int, n: int):
    """Return n random SPD matrices on the card, A A'/(2k) + 0.01 I; always the same ones."""
    import torch

    free()
    generator = torch.Generator("cuda").manual_seed(k)
    X = torch.empty(n, k, k, dtype=torch.float64, device="cuda")
    little = 0.01 * torch.eye(k, dtype=torch.float64, device="cuda")
    step = max(1, 2**28 // (16 * k * k))
    for start in range(0, n, step):
        m = min(step, n - start)
        A = torch.randn(m, k, 2 * k, generator=generator, dtype=torch.float64, device="cuda")
        X[start : start + m] = A @ A.mT / (2 * k) + little
    return X


def one_core():
    """One thread of the kernels for processors, whatever the environment says."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        if library._LIBRARY is not None:
            library._LIBRARY.handle.dpm_set_num_threads(1)
        return contextlib.nullcontext()
    return threadpool_limits(limits=1)


_BANDWIDTH: list[float] = []


def bandwidth() -> float:
    """Bytes a second, read and written, of a copy on the card; measured once."""
    import torch

    if not _BANDWIDTH:
        free()
        one = torch.empty(2**28, dtype=torch.float64, device="cuda").normal_()
        other = torch.empty_like(one)
        _BANDWIDTH.append(2 * one.nbytes / median(lambda: other.copy_(one)))
        say(f"a copy on the card moves {_BANDWIDTH[0] / 1e12:.2f} TB/s, read and written")
        del one, other
        free()
    return _BANDWIDTH[0]


def operations(k: int, poles: int) -> float:
    """FP64 operations of one logarithm: reduce, go back (or whiten), and add up resolvents."""
    return 4 / 3 * k**3 + 2 * k**3 + 2 * poles * k**2 / 2


def of_limit(taken: float, moved: float, worked: float) -> float:
    """Share of the card's limit: seconds for each matrix, the bytes and the operations of one."""
    return max(moved / bandwidth(), worked / PEAK) / taken


# -------------------------------------------------------------------- torch's way


def log_sum(x):
    """Sum of logarithms by eigh, (b, k, k) -> (k, k)."""
    import torch

    values, vectors = torch.linalg.eigh(x)
    return ((vectors * values.log()[:, None, :]) @ vectors.mT).sum(0)


def whitened(x, inverse):
    return inverse @ x @ inverse.mT


def exp_of(a):
    import torch

    values, vectors = torch.linalg.eigh(a)
    return (vectors * values.exp()) @ vectors.mT


def torch_mean(X, block):
    """The log-Euclidean mean by eigh, in blocks."""
    total = 0
    for x in X.split(block):
        total = total + log_sum(x)
    return exp_of(total / len(X))


def torch_gradient(X, inverse, block):
    """The mean of logarithms seen from a matrix, given the inverse of its Cholesky factor."""
    total = 0
    for x in X.split(block):
        total = total + log_sum(whitened(x, inverse))
    return total / len(X)


def inverse_factor(base):
    import torch

    factor = torch.linalg.cholesky(base)
    identity = torch.eye(len(base), dtype=base.dtype, device=base.device)
    return factor, torch.linalg.solve_triangular(factor, identity, upper=False)


def torch_affine_mean(X, block, most=100):
    """Run the usual iteration with step 1 from the log-Euclidean mean; returns the last gradient's norm and steps."""
    import torch

    base = torch_mean(X, block)
    steps = 0
    while True:
        factor, inverse = inverse_factor(base)
        gradient = torch_gradient(X, inverse, block)
        left = float(torch.linalg.norm(gradient))
        if left < TOL or steps == most:
            return left, steps
        base = factor @ exp_of(gradient) @ factor.mT
        base, steps = (base + base.mT) / 2, steps + 1


def torch_distances(X, inverse, block):
    """Affine-invariant distances by eigvalsh, in blocks; they stay on the card."""
    import torch

    found = [torch.linalg.eigvalsh(whitened(x, inverse)).log().square().sum(-1).sqrt() for x in X.split(block)]
    return torch.cat(found)


def best_block(call, X, target=0.15, longest=2.5):
    """Return seconds for each matrix in torch's best block size, that size, and how many were timed.

    `call` takes matrices and a block size. Sizes whose turn would take longer than `longest` are left out, which is
    told; the first one hardly ever is.
    """
    n = len(X)
    few = min(n, 256)
    seconds(lambda: call(X[:few], few))
    # The quickest of three: a slow one would keep torch from the blocks that suit it.
    rate = min(seconds(lambda: call(X[:few], few)) for _ in range(3)) / few
    best = (rate, few, few)
    for block in BLOCKS:
        if block > n or block * rate > (8.0 if block == BLOCKS[0] else longest):
            say(f"  blocks of {block:,} and more are not tried: {number(block * rate)} s each, or fewer matrices")
            break
        part = block * max(1, min(n // block, int(min(target / rate, 2**20) / block)))
        repeats = 3 if part * rate < 0.5 else 1
        try:
            rate = median(lambda part=part, block=block: call(X[:part], block), repeats, 1.0) / part
        except RuntimeError as problem:
            say(f"  torch gives up at blocks of {block:,}: {str(problem).splitlines()[0][:120]}")
            free()
            break
        best = min(best, (rate, block, part))
    return best


def told_block(block: int, part: int, n: int) -> str:
    return f"torch in blocks of {block:,}" + ("" if part == n else f", timed on {part:,}")


# -------------------------------------------------------------------- sections


def means():
    """Log-Euclidean means."""
    for k, wanted in WANTED_MEAN.items():
        n, space = MANY[k], SPD(k)
        X = tensors(k, n)
        first = seconds(lambda X=X, space=space: frechet.mean(X, space))
        ours = median(lambda X=X, space=space: frechet.mean(X, space)) / n
        theirs, block, part = best_block(torch_mean, X)
        few = min(n, 4 * block, 20_000)
        expected = torch_mean(X[:few], min(block, few)).cpu().numpy()
        gap = np.linalg.norm(frechet.mean(X[:few], space).value - expected) / np.linalg.norm(expected)
        row(
            "means", "log-Euclidean mean / torch eigh", k=k, n=n, ours=ours, theirs=theirs, wanted=wanted,
            limit=of_limit(ours, 8 * k * k, operations(k, USUAL_POLES)),
            note=f"{told_block(block, part, n)}; first call {first:.2f} s; means differ by {gap:.0e}",
        )  # fmt: skip
        del X


def affine():
    """Affine-invariant means to a gradient of 1e-10."""
    import torch

    for k, wanted in WANTED_AFFINE.items():
        n, space = FEWER[k], SPD(k, metric="riemann")
        X = tensors(k, n)
        first = seconds(lambda X=X, space=space: frechet.mean(X, space, tol=TOL))
        ours = median(lambda X=X, space=space: frechet.mean(X, space, tol=TOL), 5) / n
        found = frechet.mean(X, space, tol=TOL)
        start = inverse_factor(torch.as_tensor(found.value, device="cuda"))[1]
        rate, block, _ = best_block(lambda x, b, start=start: torch_gradient(x, start, b), X)
        # As many whole blocks as some twenty passes may take three seconds for, and one at least.
        part = min(n, block * max(1, int(0.15 / rate / block)))
        ends = []
        taken = seconds(lambda X=X, part=part, block=block, ends=ends: ends.append(torch_affine_mean(X[:part], block)))
        left, steps = ends[0]
        # By torch, at our mean: of all matrices, or of as many as it takes five seconds for.
        checked = min(n, max(block, int(5.0 / rate)))
        value = found.value if checked == n else frechet.mean(X[:checked], space, tol=TOL).value
        inverse = inverse_factor(torch.as_tensor(value, device="cuda"))[1]
        gradient = float(torch.linalg.norm(torch_gradient(X[:checked], inverse, block)))
        passes, triangle = found.iterations + 1, k * (k + 1) / 2
        row(
            "affine", f"affine mean to {TOL:g} / torch eigh", k=k, n=n, ours=ours, theirs=taken / part, wanted=wanted,
            met=bool(taken / part / ours >= wanted and found.residual < TOL and gradient < 2 * TOL),
            limit=of_limit(ours, 8 * (2 * k * k + passes * triangle), (passes + 1) * operations(k, USUAL_POLES)),
            note=f"our gradient {found.residual:.1e} after {found.iterations} steps, {gradient:.1e} by torch of "
            f"{checked:,}; torch's {left:.1e} after {steps}; {told_block(block, part, n)}; first call {first:.2f} s",
        )  # fmt: skip
        del X


def distances():
    """Affine-invariant distances to one matrix, which come to the host; torch's stay on the card."""
    import torch

    for k, wanted in WANTED_DISTANCE.items():
        n = FEWER[k]
        X = tensors(k, n)
        base = linalg.log_euclidean_mean(X[:1000])
        first = seconds(lambda X=X, base=base: linalg.affine_distances(X, base))
        ours = median(lambda X=X, base=base: linalg.affine_distances(X, base)) / n
        inverse = inverse_factor(torch.as_tensor(base, device="cuda"))[1]
        theirs, block, part = best_block(lambda x, b, inverse=inverse: torch_distances(x, inverse, b), X)
        expected = torch_distances(X[:1000], inverse, 1000).cpu().numpy()
        gap = np.abs(linalg.affine_distances(X[:1000], base) - expected).max()
        row(
            "distances", "affine distances / torch eigvalsh", k=k, n=n, ours=ours, theirs=theirs, wanted=wanted,
            limit=of_limit(ours, 8 * k * k + 8, operations(k, ALL_POLES)),
            note=f"{told_block(block, part, n)}; first call {first:.2f} s; distances differ by {gap:.0e}",
        )  # fmt: skip
        del X


def host():
    """Tensors in the host's memory, sent to the card by the call; and as many on the card."""
    import torch

    space, n = SPD(3), HOST_N
    while True:
        try:
            X = tensors(3, n)
            pinned = torch.empty(n, 3, 3, dtype=torch.float64, pin_memory=True)
            break
        except (RuntimeError, MemoryError) as problem:
            say(f"  no room for {n:,} tensors: {str(problem).splitlines()[0][:120]}")
            n //= 2
            if n < 1_000_000:
                raise
    pinned.copy_(X)
    ours = median(lambda X=X: frechet.mean(X, space)) / n
    limit = of_limit(ours, 72, operations(3, USUAL_POLES))
    met = bool(ours * HOST_N < ON_CARD_SECONDS)
    note = f"{ours * HOST_N * 1e3:.1f} ms for {HOST_N:,}, wanted < {ON_CARD_SECONDS * 1e3:.0f}"
    row("host", "log-Euclidean mean, on the card", k=3, n=n, ours=ours, met=met, limit=limit, note=note)
    expected = frechet.mean(X, space).in_frame
    # Back to where they came from: a plain copy, with nothing else to do.
    copy = median(lambda there=X, here=pinned: there.copy_(here, non_blocking=True), 5) / n
    del X
    free()
    with linalg.backend("cuda"):
        ours = median(lambda x=pinned: frechet.mean(x.numpy(), space), 5) / n
        same = frechet.mean(pinned.numpy(), space).in_frame.tobytes() == expected.tobytes()
    row(
        "host", "mean from pinned memory, share of the copy's speed", k=3, n=n, ours=ours, theirs=copy, wanted=OF_BUS,
        note=f"plain copy {72 / copy / 1e9:.1f} GB/s, ours {72 / ours / 1e9:.1f}; bits of the card's mean: {same}",
    )  # fmt: skip
    pageable = pinned.numpy().copy()
    del pinned
    with linalg.backend("cuda"):
        ours = median(lambda: frechet.mean(pageable, space), 3) / n
    row(
        "host", "mean from pageable memory, share of the copy's speed", k=3, n=n, ours=ours, theirs=copy,
        note=f"{72 / ours / 1e9:.1f} GB/s",
    )  # fmt: skip


def private():
    """A private mean: checked, clipped, added and released."""
    X = tensors(3, PRIVATE_N)
    ball = Ball(SPD(3), np.eye(3), 2.0, source="benchmark")
    ours = median(lambda: private_mean(X, ball, GDP(1.0), units=EACH_RECORD, confirm=True, rng=1)) / PRIVATE_N
    plain = median(lambda: frechet.mean(X, ball)) / PRIVATE_N
    note = f"frechet.mean in the ball {plain * PRIVATE_N * 1e3:.2f} ms"
    row("private", "private_mean, log-Euclidean ball", k=3, n=PRIVATE_N, ours=ours, note=note)


def cpu():
    """The card beside one core of the processor's own kernels."""
    if not linalg.available():
        raise SystemExit(f"no comparison with a core: {linalg.why_not_available()} (make kernels).")
    level = processor_level()
    say(f"one core: {processor()}, {level}")
    for k, wanted in WANTED_CORE.items():
        n, few, space = MANY[k], ON_ONE_CORE[k], SPD(k)
        X = tensors(k, n)
        ours = median(lambda X=X, space=space: frechet.mean(X, space)) / n
        here = X[:few].cpu().numpy()
        del X
        with one_core(), linalg.backend(level):
            theirs = median(lambda x=here, space=space: frechet.mean(x, space), 5) / few
        note = f"{level}, timed on {few:,}"
        row("cpu", "log-Euclidean mean / one core", k=k, n=n, ours=ours, theirs=theirs, wanted=wanted, note=note)


def repeat():
    """The same bits of the statistic, whatever the order, the blocks and the place.

    In the frame: the last exponential, of one matrix, is by whichever level is in use.
    """
    import torch

    usual = card_passes.BLOCK_BYTES
    for k, n in REPEATED.items():
        X, space = tensors(k, n), SPD(k)
        once = frechet.mean(X, space).in_frame
        others = {"again": frechet.mean(X, space).in_frame}
        order = torch.randperm(n, generator=torch.Generator().manual_seed(1)).cuda()
        others["permuted"] = frechet.mean(X[order], space).in_frame
        here = X.cpu().numpy()
        try:
            for name, size in (("sent", usual), ("sent in small blocks", 2**18 + 8), ("sent at once", 2**34)):
                card_passes.BLOCK_BYTES = size
                with linalg.backend("cuda"):
                    others[name] = frechet.mean(here, space).in_frame
        finally:
            card_passes.BLOCK_BYTES = usual
        pinned = torch.empty(X.shape, dtype=torch.float64, pin_memory=True)
        pinned.copy_(X)
        with linalg.backend("cuda"):
            others["sent from pinned memory"] = frechet.mean(pinned.numpy(), space).in_frame
        differ = [name for name, value in others.items() if once.tobytes() != value.tobytes()]
        note = f"differ: {', '.join(differ)}" if differ else ", ".join(others)
        row("repeat", "log-Euclidean mean, all bits equal", k=k, n=n, met=not differ, note=note)
        if k in FEWER:
            curved = SPD(k, metric="riemann")
            one, two = (frechet.mean(X, curved, tol=TOL).in_frame for _ in range(2))
            row("repeat", "affine mean twice, all bits equal", k=k, n=n, met=one.tobytes() == two.tobytes())
        del X, order, pinned


def accuracy():
    """Errors on the card, of the processor's kernels and of LAPACK, in the tests' unit: three times LAPACK's, or FLOOR.

    The truth is a Jacobi iteration in long doubles, which have 2,000 times the digits of what is judged.
    """
    if np.finfo(np.longdouble).eps > 1e-18:
        raise SystemExit("no accuracy: long doubles of this processor are no better than doubles.")
    level = processor_level()
    worst = dict.fromkeys(FUNCTIONS, 0.0)
    for k in EXACT_SIZES:
        for function, cases in cases_of(k).items():
            found = [(*errors(function, x, truth, level), name) for name, (x, truth) in cases.items()]
            # In the tests' unit, to which anything below a third of FLOOR is exact.
            shares = [card / max(lapack, FLOOR / TIMES_LAPACK) for card, _, lapack, _ in found]
            at = int(np.argmax(shares))
            card, core, lapack, name = found[at]
            worst[function] = max(worst[function], shares[at])
            row(
                "accuracy", f"{function}, error / LAPACK's", k=k, ratio=shares[at], wanted=TIMES_LAPACK,
                met=bool(shares[at] <= TIMES_LAPACK),
                note=f"worst: {name}, card {card:.1e}, {level} {core:.1e}, LAPACK {lapack:.1e}",
            )  # fmt: skip
    say("worst error / LAPACK's: " + ", ".join(f"{name} {share:.2f}" for name, share in worst.items()))


def errors(function, x, truth, level):
    """Return the largest relative errors on the card, of the processor's kernels and of LAPACK."""
    import cupy

    from linalg.families import relative_error

    f, least = FUNCTIONS[function], 1.0 if function == "logm" else 0.0
    outcomes = [f(cupy.asarray(x))]
    for name in (level, "numpy"):
        with linalg.backend(name):
            outcomes.append(f(x))
    return tuple(max(relative_error(a, b, least) for a, b in zip(found, truth, strict=True)) for found in outcomes)


def cases_of(k):
    """Return matrices and truths by function and family; each family in eight orders of rows, as in the tests."""
    from linalg.families import NAMES, family

    rng = np.random.default_rng(7)
    few = 4 if k <= 32 else 2
    x = np.concatenate([family(name, k, few, rng) for name in NAMES])
    x = np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)
    shapes = list(itertools.product((-300.0, -60.0, -1.0, 20.0, 100.0), (0.0, 1e-8, 1.0, 10.0, 200.0)))
    shapes = shapes if k <= 32 else shapes[::3]
    a = linalg.symmetrize(rng.standard_normal((len(shapes), k, k)))
    a *= (np.array([length for _, length in shapes]) / np.linalg.norm(a, axis=(1, 2)))[:, None, None]
    a += np.array([shift for shift, _ in shapes])[:, None, None] * np.eye(k)
    values, vectors = eigen(np.concatenate([x, a]))
    turns = np.stack([np.arange(k), *(rng.permutation(k) for _ in range(7))])

    def made(f, rows):
        v = vectors[rows]
        return np.asarray((np.swapaxes(v, -1, -2) * f(values[rows])[:, None, :]) @ v, dtype=np.float64)

    def ordered(matrices, one=False):
        chosen = turns[:1] if one else turns
        return matrices[:, chosen[:, :, None], chosen[:, None, :]].reshape(-1, k, k)

    cases = {}
    for function, f in (("logm", np.log), ("sqrtm", np.sqrt), ("invsqrtm", lambda v: 1 / np.sqrt(v))):
        cases[function] = {}
        for place, name in enumerate(NAMES):
            rows, one = slice(place * few, (place + 1) * few), name in ("diagonal", "graded")
            cases[function][name] = ordered(x[rows], one), ordered(made(f, rows), one)
    cases["expm"] = {}
    for place, (shift, length) in enumerate(shapes):
        rows = slice(len(x) + place, len(x) + place + 1)
        cases["expm"][f"shift {shift:g}, length {length:g}"] = (
            ordered(a[place : place + 1]), ordered(made(np.exp, rows)),
        )  # fmt: skip
    return cases


def eigen(a, most=8):
    """Eigenvalues and eigenvectors (in rows) in long doubles: LAPACK's, and cyclic Jacobi, disjoint pairs at once."""
    A, k = a.astype(np.longdouble), a.shape[-1]
    V = np.swapaxes(np.linalg.eigh(a)[1], -1, -2).astype(np.longdouble)
    # Orthogonal to 1e-16 as they come, and to the last bit of a long double after one step of Newton and Schulz.
    V = (3 * V - (V @ np.swapaxes(V, -1, -2)) @ V) / 2
    A = V @ A @ np.swapaxes(V, -1, -2)
    A = (A + np.swapaxes(A, -1, -2)) / 2
    size = np.abs(A).max(axis=(1, 2))
    off = ~np.eye(k, dtype=bool)
    even = k + k % 2
    players = np.arange(1, even)
    enough = np.finfo(np.longdouble).eps / 1000
    for _ in range(most):
        if (np.abs(A[:, off]).max(axis=1) <= enough * size).all():
            break
        for turn in range(even - 1):
            line = np.concatenate([[0], np.roll(players, turn)])
            pairs = np.stack([line[: even // 2], line[: even // 2 - 1 : -1]])
            p, q = pairs[:, (pairs < k).all(axis=0)]
            x, y, z = A[:, p, p], A[:, q, q], A[:, p, q]
            with np.errstate(all="ignore"):
                tau = (y - x) / (2 * z)
                t = np.where(tau >= 0, 1, -1) / (np.abs(tau) + np.sqrt(1 + tau * tau))
            # Nothing that could change x or y is left to turn, or it is 0 already.
            t = np.where((z == 0) | ~np.isfinite(t), 0, t)
            c = 1 / np.sqrt(1 + t * t)
            c, s = c[..., None], (t * c)[..., None]
            A = np.ascontiguousarray(np.swapaxes(_turned(A, p, q, c, s), -1, -2))
            A = _turned(A, p, q, c, s)
            # Zero by definition; rounding of the turn would stay otherwise.
            A[:, p, q] = A[:, q, p] = 0
            V = _turned(V, p, q, c, s)
    return A[:, np.arange(k), np.arange(k)], V


def _turned(M, p, q, c, s):
    one, other = M[:, p], M[:, q]
    M[:, p], M[:, q] = c * one - s * other, s * one + c * other
    return M


def descriptors():
    """Covariance descriptors of small gray images."""
    import cupy

    images = np.random.default_rng(0).integers(0, 256, (IMAGES, 28, 28)).astype(np.uint8)
    there = cupy.asarray(images)
    ours = median(lambda: covariance_descriptors(there)) / IMAGES
    theirs, note = None, "no kernels for processors here (make kernels)"
    if linalg.available():
        level = processor_level()
        with one_core(), linalg.backend(level):
            theirs = median(lambda: covariance_descriptors(images), 3) / IMAGES
            expected = covariance_descriptors(images[:1000])
        gap = np.abs(covariance_descriptors(there[:1000]) - expected).max()
        note = f"one core with {level}; descriptors differ by {gap:.0e}"
    row("descriptors", "28 x 28 uint8 / one core", k=9, n=IMAGES, ours=ours, theirs=theirs, note=note)


SECTIONS = {
    f.__name__: f for f in (means, affine, distances, host, private, cpu, repeat, accuracy, descriptors)
}  # fmt: skip


# -------------------------------------------------------------------- compiling


def jobs_of(sections):
    """Return what the sections ask of the card, as (call, k), each once."""
    mean, curved, far = (
        [(call, k) for k in sizes] for call, sizes in (("mean", MANY), ("affine", FEWER), ("far", FEWER))
    )
    asked = {
        "means": mean,
        "affine": curved,
        "distances": far,
        "host": [("mean", 3)],
        "private": [("private", 3)],
        "cpu": [("mean", k) for k in WANTED_CORE],
        "repeat": mean + curved,
        "accuracy": [(name, k) for k in reversed(EXACT_SIZES) for name in FUNCTIONS],
        "descriptors": [("describe", 9)],
    }
    # The large ones take longest, and come first.
    return sorted(dict.fromkeys(job for name in sections for job in asked[name]), key=lambda job: -job[1])


def compiled(job):
    """Make one call of a few matrices in a process of its own: CuPy keeps what it compiles, on the disk."""
    import cupy

    call, k = job
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, k, 2 * k))
    X = cupy.asarray(A @ np.swapaxes(A, -1, -2) / (2 * k) + 0.01 * np.eye(k))
    ball = Ball(SPD(3), np.eye(3), 2.0, source="benchmark")
    calls = {
        "mean": lambda: frechet.mean(X, SPD(k)),
        "affine": lambda: frechet.mean(X, SPD(k, metric="riemann"), tol=TOL),
        "far": lambda: linalg.affine_distances(X, np.eye(k)),
        "private": lambda: private_mean(X, ball, GDP(1.0), units=EACH_RECORD, confirm=True, rng=1),
        "describe": lambda: covariance_descriptors(cupy.zeros((10, 28, 28), dtype=np.uint8)),
        **{name: (lambda f=f: f(X)) for name, f in FUNCTIONS.items()},
    }
    cupy.cuda.runtime.deviceSynchronize()
    start = time.perf_counter()
    calls[call]()
    return job, time.perf_counter() - start


def prepare(sections) -> list[dict]:
    """Compile what the sections need, in parallel; what fails here fails again where it is told."""
    jobs = jobs_of(sections)
    workers = max(1, min(len(jobs), (os.cpu_count() or 2) - 1, 15))
    start, taken, failures = time.perf_counter(), [], []
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compiled, job) for job in jobs]):
            try:
                (call, k), took = done.result()
            except Exception as problem:
                failures.append(f"{type(problem).__name__}: {str(problem)[:300]}")
                continue
            taken.append({"call": call, "k": k, "seconds": took})
    wall = time.perf_counter() - start
    if failures:
        say(f"{len(failures)} calls failed on their first try, one of them with {failures[0]}")
    if taken:
        slow = max(taken, key=lambda one: one["seconds"])
        typical = float(np.median([one["seconds"] for one in taken]))
        say(
            f"compiled for {len(taken)} calls in {wall:.1f} s by {workers} processes: a median of {typical:.1f} s, "
            f"{slow['seconds']:.1f} s at most ({slow['call']}, k = {slow['k']}); nothing where CuPy has kept it"
        )
    return taken


# -------------------------------------------------------------------- the machine


def processor_level() -> str:
    """The best backend of the processor: the last that is not the card's."""
    return [name for name in linalg.backends() if name != "cuda"][-1]


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def obstacle() -> str | None:
    """Why nothing can be measured here, if nothing can."""
    from dpmanifold.linalg.cards import why_not_available

    problem = why_not_available()
    if problem is not None:
        return problem
    try:
        import torch
    except ImportError:
        return "torch is not installed."
    return None if torch.cuda.is_available() else "torch finds no card."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"what to measure: {', '.join(SECTIONS)}; or all")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="where the rows are also written")
    parser.add_argument("--no-prepare", action="store_true", help="compile when a kernel is first needed, one by one")
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    problem = obstacle()
    if problem is not None:
        say(f"Nothing is measured, there is no card to measure: {problem}")
        return
    import cupy
    import torch

    sections, start = list(dict.fromkeys(asked.sections)) or list(SECTIONS), time.perf_counter()
    card = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CuPy {cupy.__version__}"
    say(f"{card}; {processor()}, {processor_level()}")
    record = {"card": card, "processor": processor(), "level": processor_level(), "rows": ROWS, "failed": FAILED}
    record["compiled"] = [] if asked.no_prepare else prepare(sections)
    record["bandwidth"] = bandwidth()
    record["seconds"] = {}
    for name in sections:
        began = time.perf_counter()
        try:
            SECTIONS[name]()
        except SystemExit as told:  # something that the machine lacks
            say(f"{name}: {told}")
        except Exception:  # the others took their time: what they found is not lost
            traceback.print_exc()
            FAILED.append(name)
        free()
        record["seconds"][name] = round(time.perf_counter() - began, 1)
        say(f"-- {name} took {record['seconds'][name]:.0f} s, {time.perf_counter() - start:.0f} s so far")
        if asked.json:
            asked.json.write_text(json.dumps(record, indent=2) + "\n")
    print_table(card)
    if FAILED:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
