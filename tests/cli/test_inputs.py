"""What a command reads is never written over: by no name, through no link, and not with --force."""

import os
import pathlib

import numpy as np
import pytest

import dpmanifold as dpm
from cli.shared import MEAN, tensors

pytestmark = pytest.mark.security

FREE = [word for word in MEAN[2:] if word not in ("--center", "0.7")]


@pytest.fixture
def inputs(folder, invoke):
    """Write one file of every kind that is read; says what they hold."""
    np.save("ids.npy", np.arange(200) % 50)
    np.save("labels.npy", np.arange(200) % 2)
    np.save("center.npy", 0.7 * np.eye(3))
    table = np.column_stack([np.arange(200) % 50, tensors().reshape(200, 9)[:, [0, 1, 2, 4, 5, 8]]])
    np.savetxt("table.csv", table, delimiter=",", header="who,xx,xy,xz,yy,yz,zz", comments="", fmt="%.12g")
    invoke("ball", "a.npy", "--public", "--space", "spd", "--out", "ball.json")
    invoke(*MEAN, "--out", "mean.json")
    os.mkdir("images")
    for name in ("one.npy", "two.npy"):
        np.save(f"images/{name}", np.zeros(3))
    os.mkdir("means")
    os.link("labels.npy", "means/mean-1.json")
    return {path: path.read_bytes() for path in pathlib.Path().rglob("*") if path.is_file()}


PROMISE = ["--units", "each-record", "--mu", "1"]
READS = {
    "data": ["mean", "{}", *MEAN[2:]],
    "center": ["mean", "a.npy", *FREE, "--center", "{}"],
    "ball": ["mean", "a.npy", "--space", "spd", *PROMISE, "--ball", "{}"],
    "units": ["mean", "a.npy", "--space", "spd", "--units", "{}", "--center", "0.7", "--radius", "2.5", "--mu", "1"],
    "column": ["mean", "a.npy", "--space", "spd", "--units", "{}:who", "--radius", "2.5", "--mu", "1"],
    "about": ["variance", "a.npy", *MEAN[2:], "--about", "{}"],
    "second group": ["two-sample-test", "a.npy", "{}", *MEAN[2:]],
    "region": ["region", "{}", *MEAN[2:]],
    "interval": ["variance-interval", "{}", *MEAN[2:]],
    "ball's data": ["ball", "{}", *MEAN[2:]],
    "ball's centre": ["ball", "a.npy", *FREE, "--center", "{}"],
    "public ball": ["ball", "{}", "--public", "--space", "spd"],
}
FILES = {
    "center": "center.npy", "ball's centre": "center.npy", "ball": "ball.json", "units": "ids.npy",
    "column": "table.csv", "about": "mean.json", "second group": "b.npy",
}  # fmt: skip


@pytest.mark.parametrize("way", ["same name", "other spelling", "symbolic link", "hard link"])
@pytest.mark.parametrize("what", READS)
def test_no_input_is_written_over(inputs, folder, invoke, what, way):
    read = FILES.get(what, "a.npy")
    target = {"same name": read, "other spelling": f"means/../{read}"}.get(way, "link.json")
    if way == "symbolic link":
        os.symlink(read, target)
    if way == "hard link":
        os.link(read, target)
    words = [word.format(read) for word in READS[what]]
    result = invoke(*words, "--out", target, "--force", code=2)
    assert "and would be lost" in result.stderr
    assert {path: path.read_bytes() for path in inputs} == inputs


@pytest.mark.parametrize("option", ["--npy", "--picture", "--html"])
def test_no_other_output_is_an_input_either(inputs, invoke, option):
    name = {"--npy": "a.npy", "--picture": "link.png", "--html": "link.html"}[option]
    if option != "--npy":
        os.symlink("a.npy", name)
    assert "would be lost" in invoke(*MEAN, "--out", "new.json", option, name, "--force", code=2).stderr
    assert {path: path.read_bytes() for path in inputs} == inputs


def test_commands_that_draw_descriptors_and_classes(inputs, invoke):
    os.link("mean.json", "twin.html")
    os.link("ball.json", "twin.png")
    for words in (
        ["show", "mean.json", "--html", "twin.html"],
        [
            "plan",
            "--space",
            "spd",
            "--size",
            "3",
            "-n",
            "9",
            "--mu",
            "1",
            "--ball",
            "ball.json",
            "--picture",
            "twin.png",
        ],
        ["descriptors", "a.npy", "--out", "a.npy"],
        ["descriptors", "a.npy", "--out", "new.npy", "--ball", "a.npy"],
        ["class-means", "a.npy", *MEAN[2:], "--labels", "labels.npy", "--classes", "0,1", "--out", "means"],
    ):
        assert "would be lost" in invoke(*words, "--force", code=2).stderr
    refused = invoke("descriptors", "images", "--out", "images/new.npy", "--force", code=2)
    assert "lies in the folder" in refused.stderr
    assert {path: path.read_bytes() for path in inputs} == inputs


def test_two_outputs_are_not_one_file(folder, invoke):
    pathlib.Path("one.json").write_text("{}")
    os.link("one.json", "two.npy")
    os.symlink("one.json", "three.html")
    for words in (["--npy", "two.npy"], ["--html", "three.html"], ["--npy", "./one.json"]):
        assert "one file twice" in invoke(*MEAN, "--out", "one.json", *words, "--force", code=2).stderr
    assert pathlib.Path("one.json").read_text() == "{}"


def test_an_output_that_is_nobodys_input_may_be_forced(folder, invoke):
    invoke(*MEAN, "--out", "mean.json")
    before = pathlib.Path("mean.json").read_text()
    invoke(*MEAN, "--out", "mean.json", code=2)
    invoke(*MEAN, "--out", "mean.json", "--force")
    assert pathlib.Path("mean.json").read_text() != before


def test_papers_do_not_write_into_their_data(folder, invoke):
    for words in (["--out", "."], ["--out", "new", "--pages", str(folder)]):
        refused = invoke("reproduce", "reimherr2021", "--quick", "--data", ".", *words, code=2)
        assert "the folder of the data" in refused.stderr


def test_stacks_of_points_are_one_space(invoke, folder):
    """By the first axis, by sizes, or in full; columns of a table too."""
    space = dpm.Product([dpm.SPD(2)] * 4)
    X = space.exp_coords(space.origin, 0.1 * np.random.default_rng(0).standard_normal((60, space.dim)))
    np.save("stacks.npy", X)
    np.savetxt("stacks.csv", X.reshape(60, 16), delimiter=",", header=",".join(f"c{i}" for i in range(16)), comments="")
    rest = ("--units", "each-record", "--radius", "2", "--mu", "1", "--out")
    invoke("mean", "stacks.npy", "--space", "product:spd", *rest, "a.json")
    invoke("mean", "stacks.csv", "--space", "product:spd", "--size", "4,2", *rest, "b.json")
    invoke("mean", "stacks.csv", "--space", "Product([SPD(2)] * 4)", *rest, "c.json")
    for name in ("a.json", "b.json", "c.json"):
        assert dpm.Release.load(name).ball.space == space
        invoke("verify", name)
    for words, said in (
        (("--space", "product:spd"), "--size must be given for --space product:spd"),
        (("--space", "product:spd", "--size", "4"), "the number of factors and then theirs, as in 50,3"),
        (("--space", "product:torus"), "--space must be one of"),
    ):
        result = invoke("mean", "stacks.csv", *words, *rest, "d.json", code=2)
        assert said in " ".join(result.output.split())
