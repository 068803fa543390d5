"""Tensors and their people, in files of every kind; and what is computed of them before noise."""

import gzip
import itertools

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from scaling.files import COLUMNS, as_table, matrices, triangles

from dpmanifold import EACH_RECORD, SPD, Ball
from dpmanifold.data import Dataset
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import prepare_records

METRICS = ("logeuclid", "riemann")


def ball(metric="logeuclid", radius=1.5):
    """Return a ball that clips some of the tensors."""
    space = SPD(3, metric=metric)
    return Ball(space, space.origin, radius, source="tests")


def tensors(n=3000, people=40, seed=0):
    """Return triangles of tensors, and the number of the person who owns each, in random order."""
    return triangles(n, seed), np.random.default_rng(seed).integers(0, people, n)


def dataset(paths, **options):
    """Return files as a user opens them."""
    paths = [str(path) for path in paths]
    if paths[0].endswith((".npy", ".npz")):
        return Dataset(paths, **options)
    return Dataset(paths, columns=list(COLUMNS), **options)


def hidden(X, around, units=EACH_RECORD):
    """Return the bits of the mean before noise."""
    return prepare_records(X, around, units, "raise", Told(confirm=True))[0].mean().tobytes()


def cuts(n, parts, rng=None):
    """Return where n records are cut: evenly, or at random places."""
    if rng is None:
        return np.linspace(0, n, parts + 1).astype(int)
    return np.r_[0, np.sort(rng.choice(np.arange(1, n), parts - 1, replace=False)), n]


def write(folder, kind, values, people, ends, rows=None):
    """Write records and people in files that end at these places; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        path = folder / f"part-{number:03}.{kind}"
        WRITERS[kind](path, values[start:end], people[start:end], rows)
        paths.append(path)
    return paths


def _parquet(path, values, people, rows=None):
    pyarrow.parquet.write_table(as_table(values, people), path, row_group_size=rows or max(1, len(values) // 3))


def _csv(path, values, people, rows=None):
    pyarrow.csv.write_csv(as_table(values, people), path)


def _csv_gz(path, values, people, rows=None):
    plain = path.with_suffix("")
    _csv(plain, values, people)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def _tsv(path, values, people, rows=None):
    options = pyarrow.csv.WriteOptions(delimiter="\t")
    pyarrow.csv.write_csv(as_table(values, people), path, options)


def _npy(path, values, people, rows=None):
    np.save(path, matrices(values))


WRITERS = {"parquet": _parquet, "csv": _csv, "csv.gz": _csv_gz, "tsv": _tsv, "npy": _npy}
