"""Means in the coordinates that people use, and links in pictures, on the command line; refused before the spend."""

import mne
import numpy as np
import pytest

from dpmanifold import data, load

SITES = ["--space", "sphere", "--units", "person", "--radius", "0.5", "--mu", "5", "--out", "mean.json"]
SHAPES = ["--space", "kendall", "--units", "each-record", "--radius", "0.2", "--mu", "2", "--center", "template.npy"]


@pytest.fixture
def sites(folder):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(200), 170 + 8 * rng.standard_normal(200), -40 + 5 * rng.standard_normal(200)])
    text = "\n".join(["person,a,b", *(f"{int(person)},{a!r},{b!r}" for person, a, b in rows.tolist())])
    (folder / "sites.csv").write_text(text + "\n")
    center = ",".join(map(repr, data.from_coordinates([[170.0, -40.0]], "lonlat")[0].tolist()))
    return ["sites.csv", "--columns", "a,b", f"--center={center}", *SITES]


@pytest.fixture
def shapes(folder):
    rng = np.random.default_rng(0)
    template = rng.standard_normal((5, 2))
    np.save("template.npy", template)
    np.save("shapes.npy", template + 0.03 * rng.standard_normal((150, 5, 2)))
    return ["shapes.npy", *SHAPES, "--out", "mean.json"]


@pytest.mark.parametrize("command", ["mean", "region"])
def test_a_mean_is_told_in_the_coordinates_of_the_data(invoke, sites, command):
    said = invoke(command, *sites, "--coordinates", "lonlat").stdout
    line = next(line for line in said.splitlines() if line.startswith("  lonlat  "))
    words = line.split()
    assert (words[1], words[3], words[5]) == ("longitude", "latitude", "degrees")
    released = data.to_coordinates(load("mean.json").number_or_array, load("mean.json").ball.space, "lonlat")
    np.testing.assert_allclose([float(words[2].rstrip(",")), float(words[4])], released, atol=1e-6)
    assert abs(released - [170, -40]).max() < 5
    again = invoke("show", "mean.json", "--coordinates", "decinc").stdout
    assert "  decinc       declination 1" in again
    assert "declination" not in invoke("show", "mean.json").stdout


def test_coordinates_that_a_result_has_not_are_refused(invoke, sites):
    invoke("mean", *sites, "--coordinates", "lonlat")
    assert "must be one of lonlat" in invoke("show", "mean.json", "--coordinates", "klein", code=2).output
    variance = [word if word != "mean.json" else "variance.json" for word in sites]
    said = invoke("variance", *variance, "--coordinates", "lonlat").stdout
    assert "longitude" not in said
    assert "which this is not" in invoke("show", "variance.json", "--coordinates", "lonlat", code=2).output


def test_links_are_drawn_or_refused_before_anything_is_spent(invoke, shapes, sites, folder):
    (folder / "links.txt").write_text("1 2\n2 5\n")
    for number, links in enumerate(("1-2-3-1, 4-5", "links.txt")):
        invoke("mean", *shapes, "--force", "--picture", f"{number}.png", "--links", links)
        assert (folder / f"{number}.png").stat().st_size > 5000
    (folder / "mean.json").unlink()
    for words, message in [
        (("--picture", "x.png", "--links", "1-6"), "names landmark 6, and there are 5"),
        (("--picture", "x.png", "--links", "none.txt"), "neither a file nor links"),
        (("--links", "1-2"), "Give both"),
    ]:
        assert message in " ".join(invoke("mean", *shapes, *words, code=2).output.split())
    about_sites = ["--coordinates", "lonlat", "--picture", "x.png", "--links", "1-2"]
    assert "means nothing in a picture on Sphere(2)" in invoke("mean", *sites, *about_sites, code=2).output
    assert "is the file read as --links" in " ".join(
        invoke(
            "mean", *shapes, "--picture", "x.png", "--links", "links.txt", "--npy", "links.txt", "--force", code=2
        ).output.split()
    )
    assert not (folder / "mean.json").exists()
    assert not (folder / "x.png").exists()


def test_a_result_is_shown_with_links(invoke, shapes, folder):
    invoke("region", *shapes)
    invoke("show", "mean.json", "--picture", "x.png", "--links", "1-3-5")
    assert (folder / "x.png").stat().st_size > 5000
    assert "names landmark 9" in invoke("show", "mean.json", "--picture", "y.png", "--links", "1-9", code=2).output
    assert not (folder / "y.png").exists()


def test_epochs_are_read_by_their_name(invoke, folder):
    """A file of MNE's is a table of covariances; who they are of stands in a file beside it."""
    rng = np.random.default_rng(0)
    info = mne.create_info(3, 250.0, "eeg", verbose="error")
    epochs = mne.EpochsArray(1e-5 * rng.standard_normal((80, 3, 250)), info, verbose="error")
    epochs.save("all-epo.fif", verbose="error")
    np.save("ids.npy", np.arange(80) // 2)
    words = ["--space", "spd", "--units", "ids.npy", "--center", "30", "--radius", "5", "--mu", "2", "--out", "m.json"]
    invoke("mean", "all-epo.fif", *words)
    assert load("m.json").n == 40
    assert load("m.json").value.shape == (3, 3)
