"""Pieces and tasks for tests of engines: small stand-ins that workers can import."""

import os
import threading
import time
from pathlib import Path

import numpy as np

from dpmanifold.errors import InvalidDataError
from dpmanifold.linalg import ExactSum, level, logm
from dpmanifold.linalg.native.library import limited
from dpmanifold.sources import Block, Piece

SECRET = "subject-Q7XK"
NUMBER = 271828.1828459045


class Tensors(Piece):
    """Random positive definite matrices by a seed."""

    def __init__(self, seed, rows=1000):
        self.seed, self.rows = seed, rows
        self.name = f"{SECRET}-{seed}.parquet"

    def blocks(self):
        rng = np.random.default_rng(self.seed)
        for _ in range(2):
            factor = rng.normal(size=(self.rows // 2, 3, 3))
            yield Block(factor @ factor.swapaxes(1, 2) + 0.1 * np.eye(3))


def partial(piece):
    """The exact sum of logarithms: integers."""
    sums = ExactSum(9, bound=64.0)
    for block in piece.blocks():
        sums.add(logm(block.records).reshape(-1, 9))
    return sums


def logarithms(piece):
    return np.concatenate([logm(block.records).reshape(-1, 9) for block in piece.blocks()])


def shifted(points, by):
    sums = ExactSum(9, bound=128.0)
    sums.add(points - by)
    return sums


def norms(piece):
    return sum(float(np.linalg.norm(block.records, axis=1).sum()) for block in piece.blocks())


def merged(parts):
    total = next(parts)
    for part in parts:
        total.merge(part)
    return total.words


class Slow:
    """Takes a while where nobody has made `gate` yet, and says who works on it."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, piece):
        folder = Path(self.folder)
        (folder / f"pid-{os.getpid()}").touch()
        while not (folder / "gate").exists():
            time.sleep(0.02)
        return partial(piece)


def damaged(piece):
    if piece.seed == 3:
        raise InvalidDataError(f"{piece.name}: row {NUMBER} cannot be read.")
    return partial(piece)


class UnpicklableError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first}{second}")


def broken(piece):
    raise UnpicklableError(piece.name, threading.Lock())


def exits(piece):
    raise SystemExit(piece.name)


def dies(piece):
    os._exit(1)


def where(piece):
    return os.getpid(), level(), limited(8), threading.current_thread() is threading.main_thread()


class Partition(Piece):
    """A piece of a Dask collection: what is delayed gives its records."""

    name = "partition"

    def __init__(self, part):
        self.part = part

    def delayed(self):
        return self.part

    def without_graph(self):
        return Partition(None)

    def blocks_of(self, value):
        yield Block(value)

    def blocks(self):
        return self.blocks_of(self.part.compute(scheduler="synchronous"))


def noted(folder, word):
    """Leave a word in a folder's log, which is in the order of the calls."""
    with (Path(folder) / "log").open("a") as log:
        log.write(f"{word}\n")


def shared(folder):
    noted(folder, "shared")
    return 1.0


def made(folder, one, seed):
    noted(folder, "made")
    return one * next(Tensors(seed).blocks()).records


def read(folder, piece):
    result = partial(piece)
    noted(folder, "read")
    return result


def badly_made(folder, one, seed):
    raise LookupError("no such partition")


PIECES = [Tensors(seed) for seed in range(12)]


def client_of(engine):
    return engine.client


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("it did not come to hold")
        time.sleep(0.02)
    return found
