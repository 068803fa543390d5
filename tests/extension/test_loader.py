"""A format is one file, found by an entry point: Python and the command line read it without another line."""

from importlib import metadata

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.data import LOADERS
from dpmanifold_example.poses import PosesFile

pytestmark = pytest.mark.usefixtures("installed")


def test_without_it_the_format_is_not_known(walk, withdrawn):
    withdrawn(LOADERS)
    with pytest.raises(dpm.InvalidArgumentError, match=r"not known. Known are .*\.npy.*\.csv.*\.nii\.gz"):
        data.load_array(walk[0])


def test_an_entry_point_adds_a_format(walk):
    path, poses, tasks, people = walk
    np.testing.assert_array_equal(data.load_array(path), poses)
    np.testing.assert_array_equal(data.load_array(path, columns="rotation"), poses[:, :4])
    np.testing.assert_array_equal(data.load_array(path, columns=["position", "rotation"]), np.roll(poses, 3, axis=1))
    np.testing.assert_array_equal(data.load_column(path, "task"), tasks)
    np.testing.assert_array_equal(data.load_column(path, "who"), people)
    assert PosesFile not in LOADERS.own(), "another distribution's is not the library's own"
    with pytest.raises(dpm.InvalidArgumentError, match=r"key means nothing .* It is for \.npz\."):
        data.load_array(path, key="x")
    with pytest.raises(dpm.InvalidArgumentError, match="must be rotation or position"):
        data.load_array(path, columns="x")
    with pytest.raises(dpm.InvalidArgumentError, match="must be who or task"):
        data.load_column(path, "age")


@pytest.mark.security
def test_what_is_wrong_with_a_file_quotes_nothing_of_it(tmp_path):
    path = tmp_path / "a.poses"
    path.write_text("# a comment\n\nada sitting 0 0 0 0 0 0 1\nsecret sitting 0 0\n")
    with pytest.raises(dpm.InvalidDataError, match=r"^a.poses: line 4 has not nine entries. Repair it.$"):
        data.load_array(path)
    path.write_text("ada sitting 0 0 0 0 0 0 1\nbob sitting 0 0 0 0 0 0 one\n")
    assert np.isnan(data.load_array(path)).nonzero() == (1, 0)


def test_a_format_of_the_library_stays_the_librarys(tmp_path, offer):
    class Impostor(PosesFile):
        suffixes = (".csv",)

    offer(LOADERS, "impostor", Impostor)
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n")
    assert data.load_array(path).tolist() == [[1.0], [2.0]]


def test_an_entry_point_that_cannot_be_loaded_is_named(tmp_path, offer, monkeypatch):
    offer(LOADERS, "xyz", None)
    point = metadata.entry_points(group="dpmanifold.loaders")[0]
    monkeypatch.setattr(point, "load", lambda: 1 / 0)
    (tmp_path / "a.xyz").touch()
    with pytest.raises(dpm.InvalidArgumentError, match=r"the loader 'xyz' .* cannot be loaded"):
        data.load_array(tmp_path / "a.xyz")
