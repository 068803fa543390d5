"""One person stays one, across formats that write ids differently."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmanifold import Euclidean
from dpmanifold.data import Dataset
from dpmanifold.errors import InvalidDataError

pytestmark = pytest.mark.security


@pytest.mark.parametrize("word", ["007", "+7", "7e0", "7.0"])
def test_a_number_in_another_form_beside_numbers_is_refused(tmp_path, word):
    """A CSV file and a Parquet file of one study: 007 here is 7 there, and would be two people."""
    pq.write_table(pa.table({"person": [7, 8], "x": [1.0, 2.0]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text(f"person,x\n9,1\n{word},2\n")
    [*_, piece] = Dataset([tmp_path / "a.parquet", tmp_path / "b.csv"], columns="x").bound(Euclidean(1), "person")
    with pytest.raises(InvalidDataError, match=r"b\.csv: line 3 .* one person or two"):
        list(piece.blocks())
    (tmp_path / "b.csv").write_text("person,x\n9,1\n7,2\nann,3\n")
    [*_, piece] = Dataset([tmp_path / "a.parquet", tmp_path / "b.csv"], columns="x").bound(Euclidean(1), "person")
    assert [block.units.to_pylist() for block in piece.blocks()] == [["9", "7", "ann"]]
