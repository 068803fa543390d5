"""One set of records in every kind of source, and a reader of all of them."""

from __future__ import annotations

import pickle

import cloudpickle
import dask.dataframe
import numpy as np
import pandas
import polars
import pyarrow
import zarr

from dpmanifold import SPD, data
from dpmanifold.sources import as_source

RNG = np.random.default_rng(16)
N = 1000
TENSORS = SPD(3).random_point(N, rng=1)
NINE = [f"x{i}" for i in range(1, 10)]
PEOPLE = RNG.integers(0, 200, N)
NAMES = np.array([f"sub-{i:03}" for i in PEOPLE], dtype=object)
CLASSES = np.array(["case", "control"], dtype=object)[RNG.integers(0, 2, N)]


def pandas_frame(tensors=TENSORS):
    frame = pandas.DataFrame(np.reshape(tensors, (len(tensors), -1)), columns=NINE)
    frame.insert(3, "person", PEOPLE[: len(frame)])
    return frame.assign(name=NAMES[: len(frame)], group=CLASSES[: len(frame)], scanned=pandas.Timestamp("2026-01-01"))


def polars_frame():
    frame = pandas_frame()
    return polars.DataFrame({name: frame[name].to_numpy() for name in frame if name != "scanned"})


def arrow_table():
    return pyarrow.Table.from_pandas(pandas_frame())


def lists_of_nine():
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(TENSORS.ravel()), 9)
    beside = arrow_table().select(["person", "name", "group"])
    return beside.append_column("tensor", column)


def batches(size=300):
    return lambda: iter(arrow_table().to_batches(max_chunksize=size))


def store(chunks=(300, 2, 3), **options):
    group = zarr.group()
    group.create_array("tensors", data=TENSORS, chunks=chunks, **options)
    group.create_array("person", data=PEOPLE, chunks=(170,))
    names = group.create_array("name", shape=(N,), chunks=(400,), dtype="str")
    names[:] = NAMES.astype(str)
    groups = group.create_array("group", shape=(N,), chunks=(N,), dtype="str")
    groups[:] = CLASSES.astype(str)
    return data.from_zarr(group, "tensors")


def dask_frame(partitions=4):
    return dask.dataframe.from_pandas(pandas_frame(), npartitions=partitions)


class OfAnother:
    """A table of a library that nobody here knows: it hands over batches of Arrow, as often as it is asked."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        """Hand them over."""
        return self._table.to_reader(max_chunksize=300).__arrow_c_stream__(requested_schema)


TABLES = {
    "pandas": pandas_frame,
    "pandas, types of Arrow": lambda: pandas_frame().convert_dtypes(dtype_backend="pyarrow"),
    "pandas, types with gaps": lambda: pandas_frame().convert_dtypes(),
    "pandas, categories": lambda: pandas_frame().astype({"name": "category", "group": "category"}),
    "pandas, sparse": lambda: pandas_frame().astype(dict.fromkeys(NINE, pandas.SparseDtype(float))),
    "polars": polars_frame,
    "polars, lazy": lambda: polars_frame().lazy(),
    "polars, categories": lambda: polars_frame().cast(
        {"name": polars.Categorical, "group": polars.Enum(["case", "control"])}
    ),
    "polars, arrays": lambda: polars.from_arrow(lists_of_nine()),
    "Table": arrow_table,
    "RecordBatch": lambda: arrow_table().combine_chunks().to_batches()[0],
    "Table, dictionaries": lambda: arrow_table().set_column(
        arrow_table().schema.get_field_index("name"), "name", arrow_table()["name"].dictionary_encode()
    ),
    "Table, lists": lists_of_nine,
    "another library": lambda: OfAnother(arrow_table()),
    "blocks, batches": lambda: data.from_blocks(batches()),
    "blocks, frames": lambda: data.from_blocks(lambda: (pandas_frame().iloc[i : i + 90] for i in range(0, N, 90))),
    "zarr": store,
    "zarr, shards": lambda: store(chunks=(50, 3, 3), shards=(200, 3, 3)),
    "dask DataFrame": dask_frame,
}  # fmt: skip


def chosen(kind):
    """The same, with the columns of the records named."""
    made = TABLES[kind]()
    if kind.startswith("blocks"):
        return data.from_blocks(made._makes, columns=NINE)
    return made if kind.startswith("zarr") else data.from_frame(made, "tensor" if _has_lists(kind) else NINE)


def _has_lists(kind):
    return "lists" in kind or "arrays" in kind


def gathered(source, space=None, units=None, labels=None):
    """Everything that the pieces give, after they were pickled, one after the other."""
    pieces = as_source(source).bound(space or SPD(3), units, labels)
    blocks = [block for piece in pieces for block in pickle_and_back(piece).blocks()]
    records = np.concatenate([block.records for block in blocks])
    ids = [None if blocks[0][i] is None else np.concatenate([np.asarray(block[i]) for block in blocks]) for i in (1, 2)]
    return records, *ids


def pickle_and_back(piece):
    try:
        return pickle.loads(pickle.dumps(piece))
    except (AttributeError, pickle.PicklingError):  # functions in a test
        return pickle.loads(cloudpickle.dumps(piece))
