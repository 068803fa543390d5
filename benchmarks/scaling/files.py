"""Files of tensors made on the spot: one block of them, in another order and at another scale in every file."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpmanifold import SPD

COLUMNS = ("xx", "xy", "xz", "yy", "yz", "zz")
PERSON = "person"
_ROWS, _COLS = np.triu_indices(3)
_AT_A_TIME = 100_000


def triangles(n: int, seed: int = 0) -> np.ndarray:
    """Return upper triangles of tensors about the identity; nearly all lie within a distance of 2."""
    space, rng = SPD(3), np.random.default_rng(seed)
    values = np.empty((n, len(COLUMNS)))
    for start in range(0, n, _AT_A_TIME):
        count = min(_AT_A_TIME, n - start)
        X = space.exp_coords(space.origin, 0.4 * rng.standard_normal((count, space.dim)))
        values[start : start + count] = X[:, _ROWS, _COLS]
    return values


def matrices(values: np.ndarray) -> np.ndarray:
    """Return the matrices of triangles."""
    X = np.empty((len(values), 3, 3))
    X[:, _ROWS, _COLS] = values
    X[:, _COLS, _ROWS] = values
    return X


def as_table(values: np.ndarray, people: np.ndarray) -> pa.Table:
    """Return six columns of numbers and one of ids."""
    return pa.table({**dict(zip(COLUMNS, values.T.copy(), strict=True)), PERSON: people})


def tables(n: int, files: int, people: int) -> Iterator[pa.Table]:
    """Yield the table of each file: all records differ, people come in random order and lie in all files."""
    rng = np.random.default_rng(1)
    sizes = np.diff(np.linspace(0, n, files + 1).astype(int))
    block = triangles(int(sizes.max()))
    for number, size in enumerate(sizes):
        values = np.roll(block, int(rng.integers(len(block))), axis=0)[:size] * (1.0 + 1e-3 * number)
        yield as_table(values, rng.integers(0, people, size, dtype=np.int64))


def write_parquet(folder: pathlib.Path, n: int, files: int, people: int) -> list[str]:
    """Write Parquet files as pyarrow writes them unless told otherwise: Snappy, a million rows in a row group."""
    folder.mkdir(parents=True)
    paths = []
    for number, table in enumerate(tables(n, files, people)):
        path = folder / f"part-{number:04}.parquet"
        pyarrow.parquet.write_table(table, path)
        paths.append(str(path))
    return paths


def write_csv(path: pathlib.Path, n: int, people: int) -> str:
    """Write one CSV file, with all digits."""
    block = next(tables(n, 1, people))
    pyarrow.csv.write_csv(block, path)
    return str(path)


def warm(paths: list[str]) -> int:
    """Read files once, so that no disk is measured; return how many bytes they have."""
    size = 0
    for path in paths:
        with open(path, "rb") as lines:
            while part := lines.read(1 << 24):
                size += len(part)
    return size
