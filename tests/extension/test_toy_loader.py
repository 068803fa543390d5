"""A format is one file, found by an entry point: Python and the command line read it without another line."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.data import LOADERS
from extension.toy_loader import XyzFile

TESTS = pathlib.Path(__file__).parents[1]


@pytest.fixture
def atoms(tmp_path):
    """Return a file of 200 places on the unit sphere, two of each atom."""
    places = dpm.Sphere(2).exp_coords([0.0, 0.0, 1.0], 0.1 * np.random.default_rng(0).standard_normal((200, 2)))
    lines = [" ".join([f"C{i // 2}", *map(repr, place)]) for i, place in enumerate(places.tolist())]
    path = tmp_path / "atoms.xyz"
    path.write_text("\n".join(["200", "a comment", *lines]) + "\n")
    return path, places


def test_without_it_the_format_is_not_known(atoms):
    with pytest.raises(dpm.InvalidArgumentError, match=r"not known. Known are .*\.npy.*\.csv.*\.nii\.gz"):
        data.load_array(atoms[0])


def test_an_entry_point_adds_a_format(atoms, offer):
    path, places = atoms
    offer(LOADERS, "xyz", XyzFile)
    np.testing.assert_array_equal(data.load_array(path), places)
    assert data.load_column(path, "name")[:3].tolist() == ["C0", "C0", "C1"]
    assert XyzFile not in LOADERS.own(), "another distribution's is not the library's own"
    with pytest.raises(dpm.InvalidArgumentError, match=r"columns means nothing .* It is for tables: \.csv"):
        data.load_array(path, columns="x")
    with pytest.raises(dpm.InvalidArgumentError, match=r"key means nothing .* It is for \.npz\."):
        data.load_array(path, key="x")


def test_a_format_of_the_library_stays_the_librarys(tmp_path, offer):
    class Impostor(XyzFile):
        suffixes = (".csv",)

    offer(LOADERS, "impostor", Impostor)
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n")
    assert data.load_array(path).tolist() == [[1.0], [2.0]]


def test_an_entry_point_that_cannot_be_loaded_is_named(atoms, offer, monkeypatch):
    offer(LOADERS, "xyz", None)
    from importlib import metadata

    point = metadata.entry_points(group="dpmanifold.loaders")[0]
    monkeypatch.setattr(point, "load", lambda: 1 / 0)
    with pytest.raises(dpm.InvalidArgumentError, match=r"the loader 'xyz' .* cannot be loaded"):
        data.load_array(atoms[0])


@pytest.mark.slow
def test_the_command_line_reads_it_once_the_distribution_is_installed(atoms, tmp_path):
    """In a process of its own, with nothing but the folder that an installation leaves behind."""
    path, _ = atoms
    info = tmp_path / "site" / "toy_loader-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-loader\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[dpmanifold.loaders]\nxyz = extension.toy_loader:XyzFile\n")
    words = ["mean", path, "--space", "sphere", "--units", "name", "--center", "0,0,1", "--radius", "0.6", "--mu", "1",
             "--out", tmp_path / "mean.json"]  # fmt: skip

    def launch(*folders):
        inherited = os.environ.get("PYTHONPATH", "")
        folders = [str(pathlib.Path(dpm.__file__).parents[1]), *map(str, folders), inherited]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
        command = [sys.executable, "-m", "dpmanifold.cli", *map(str, words)]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    refused = launch(TESTS)
    assert refused.returncode == 2
    assert "is not known" in refused.stderr
    done = launch(TESTS, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    release = dpm.load(tmp_path / "mean.json")
    assert (release.n, release.unit) == (100, "unit")
    assert dpm.verify(release).ok
