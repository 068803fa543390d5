"""Ways in: compressed tables, orders of tensors, degrees, the Poincaré ball, images of tensors, long landmarks."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dpmanifold import SPD, Ball, Hyperbolic, KendallShapes, Release, Sphere, data
from dpmanifold.cli import app
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, MissingPackageError
from dpmanifold.manifolds.triangles import ORDERS

pytestmark = pytest.mark.security

RNG = np.random.default_rng(7)
TENSORS = SPD(3).random_point(60, rng=1)
PLACES = {
    "row": "xx xy xz yy yz zz",
    "fsl": "xx xy xz yy yz zz",
    "dipy": "xx xy yy xz yz zz",
    "mrtrix": "xx yy zz xy xz yz",
    "camino": "xx xy xz yy yz zz",
}


def six(order, tensors=TENSORS):
    """The six numbers of each tensor, by their names."""
    return np.stack([tensors[:, "xyz".index(i), "xyz".index(j)] for i, j in PLACES[order].split()], axis=1)


def table(names, rows, separator=","):
    return "\n".join([separator.join(names), *(separator.join(map(str, row)) for row in rows)]) + "\n"


def dpm(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# -------------------------------------------------------------------- tables


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".TSV", ".CSV.GZ"])
def test_tables_by_every_suffix(tmp_path, suffix):
    text = table(["id", "x1", "x2"], [["a, b", 1.0, 2.0], ["c", "", 4.0]], "\t")
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.lower().endswith(".gz") else text.encode())
    np.testing.assert_array_equal(data.load_array(path, columns="x1..x2"), [[1.0, 2.0], [np.nan, 4.0]])
    assert data.load_column(path, "id").tolist() == ["a, b", "c"]


def test_only_tabs_separate_a_tsv(tmp_path):
    """A name with commas in it must not turn a table of tabs into one of commas."""
    path = tmp_path / "x.tsv"
    path.write_text("a,b,c\td\n1\t2\n")
    np.testing.assert_array_equal(data.load_array(path), [[1.0, 2.0]])


def test_damaged_compressed_tables_are_refused(tmp_path):
    whole = gzip.compress(
        table(["x"], RNG.standard_normal((5000, 1)).tolist()).replace("[", "").replace("]", "").encode()
    )
    path = tmp_path / "x.csv.gz"
    for content in (whole[: len(whole) // 2], b"x\n1\n", whole[:100] + b"\0" * 50 + whole[150:], b""):
        path.write_bytes(content)
        with pytest.raises(InvalidDataError, match=r"x\.csv\.gz: .*\."):
            data.load_array(path)
    unknown = path.rename(tmp_path / "x.txt.gz")
    with pytest.raises(InvalidArgumentError, match=r"not known. Known are .*\.tsv\.gz"):
        data.load_array(unknown)


# -------------------------------------------------------------------- the order of a tensor's six numbers


@pytest.mark.parametrize("order", PLACES)
def test_tensors_in_every_order(order):
    assert set(PLACES) == set(ORDERS)
    np.testing.assert_array_equal(data.as_records(six(order), SPD(3), order), TENSORS)


@pytest.mark.parametrize("order", ["dipy", "mrtrix"])
def test_a_wrong_order_is_refused_and_the_right_one_named(order):
    assert not SPD(3).valid(data.as_records(six(order), SPD(3), "row")).all(), "the wrong order would be harmless"
    with pytest.raises(InvalidDataError, match=f'order="{order}" .{PLACES[order].replace(" ", ", ")}') as problem:
        data.as_records(six(order), SPD(3))
    assert 'order="row"' in str(problem.value)
    # Said, it is taken at its word.
    assert data.as_records(six(order), SPD(3), "row").shape == (60, 3, 3)


@pytest.mark.parametrize("seed", range(5))
def test_tensors_in_the_usual_order_are_taken(seed):
    tensors = SPD(3).random_point(300, rng=seed)
    np.testing.assert_array_equal(data.as_records(six("row", tensors), SPD(3)), tensors)
    # A few that are no tensors, or gaps, are the statistic's business.
    tensors[:100] = np.nan
    tensors[100:150] *= -1
    np.testing.assert_array_equal(data.as_records(six("row", tensors), SPD(3)), tensors)
    assert data.as_records(np.empty((0, 6)), SPD(3)).shape == (0, 3, 3)
    assert data.as_records(-six("row"), SPD(3)).shape == (60, 3, 3)  # wrong in every order: the space will say so


def test_an_order_that_means_nothing_is_refused():
    with pytest.raises(InvalidArgumentError, match="order must be one of row, fsl, dipy, mrtrix"):
        data.as_records(six("row"), SPD(3), "column")
    for array, space in ((TENSORS, SPD(3)), (np.zeros((2, 3)), Sphere(2)), (np.zeros((2, 6)), KendallShapes(3))):
        with pytest.raises(InvalidArgumentError, match="order means nothing"):
            data.as_records(array, space, "row")


def test_the_command_line_takes_an_order(tmp_path):
    path, out = tmp_path / "dti.csv", tmp_path / "mean.json"
    path.write_text(table([f"d{i}" for i in range(6)], six("mrtrix").tolist()))
    words = ["mean", path, "--space", "spd", "--units", "each-record", "--radius", 3, "--mu", 1, "--out", out]
    refused = dpm(*words)
    assert refused.exit_code == 3
    assert "--order mrtrix" in refused.output.replace("\n", " ")
    assert not out.exists()
    assert dpm(*words, "--order", "mrtrix").exit_code == 0
    assert dpm(*words, "--force", "--order", "typo").exit_code == 2


# -------------------------------------------------------------------- other coordinates


def test_longitude_and_latitude():
    """Greenwich on the equator, 90 degrees east, both poles, and Quito's meridian against the formula."""
    points = data.from_coordinates([[0, 0], [90, 0], [-90, 0], [77, 90], [0, -90], [180, 0], [30, 60]], "lonlat")
    expected = [
        [1, 0, 0],
        [0, 1, 0],
        [0, -1, 0],
        [0, 0, 1],
        [0, 0, -1],
        [-1, 0, 0],
        [np.sqrt(3) / 4, 1 / 4, np.sqrt(3) / 2],
    ]
    np.testing.assert_allclose(points, expected, atol=1e-15)
    assert Sphere(2).check(points) is None


def test_declination_and_inclination():
    """North and level, east and level, straight down; a field that dips north at 60 degrees."""
    points = data.from_coordinates([[0, 0], [90, 0], [0, 90], [360, 60]], "decinc")
    np.testing.assert_allclose(points, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0, np.sqrt(3) / 2]], atol=1e-15)


def test_distances_on_the_globe():
    """Paris to New York is 52.5 degrees of a great circle, by the haversine formula."""
    (lon, lat), (west, north) = np.radians([2.35, 48.85]), np.radians([-74.0, 40.71])
    half = np.sin((north - lat) / 2) ** 2 + np.cos(lat) * np.cos(north) * np.sin((west - lon) / 2) ** 2
    paris, new_york = data.from_coordinates(np.degrees([[lon, lat], [west, north]]), "lonlat")
    assert np.isclose(Sphere(2).dist(paris, new_york), 2 * np.arcsin(np.sqrt(half)), rtol=1e-12)


def test_the_poincare_ball_keeps_distances():
    space = Hyperbolic(3)
    inside = RNG.standard_normal((200, 3))
    inside *= (RNG.uniform(0, 0.999, 200) / np.linalg.norm(inside, axis=1))[:, None]
    points = data.from_coordinates(inside, "poincare")
    assert space.check(points) is None
    p, q = inside[:100], inside[100:]
    gap, room = ((p - q) ** 2).sum(axis=1), (1 - (p**2).sum(axis=1)) * (1 - (q**2).sum(axis=1))
    # Near the edge the textbook formula itself loses digits: hence 1e-9.
    np.testing.assert_allclose(space.dist(points[:100], points[100:]), np.arccosh(1 + 2 * gap / room), rtol=1e-9)
    np.testing.assert_array_equal(data.from_coordinates([[0.0, 0.0]], "poincare"), [[1.0, 0.0, 0.0]])


def test_rows_that_are_no_point_become_nan_and_touch_no_other():
    for rows, kind, bad in (
        ([[10.0, 20.0], [10.0, 91.0], [np.nan, 0.0], [1.0, 2.0]], "lonlat", [False, True, True, False]),
        ([[0.1, 0.2], [1.0, 0.0], [3.0, 4.0], [0.0, np.inf], [0.0, 0.0]], "poincare", [False, True, True, True, False]),
    ):
        points = data.from_coordinates(rows, kind)
        np.testing.assert_array_equal(np.isnan(points).all(axis=1), bad)
        for row, point in zip(rows, points, strict=True):
            if np.isfinite(point).all():
                np.testing.assert_array_equal(data.from_coordinates([row], kind)[0], point)


def test_wrong_coordinates_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"coordinates must be one of lonlat, decinc, .*, poincare, "):
        data.from_coordinates([[0.0, 0.0]], "latlon")
    with pytest.raises(InvalidDataError, match="longitude or declination first"):
        data.from_coordinates([[10.0, 120.0], [20.0, 150.0], [3.0, 4.0]], "lonlat")
    with pytest.raises(InvalidDataError, match="2 columns"):
        data.from_coordinates(np.zeros((3, 3)), "decinc")
    with pytest.raises(InvalidDataError, match="one row"):
        data.from_coordinates(np.zeros(3), "poincare")


@pytest.mark.parametrize(
    ("names", "extra"),
    [
        (["lon", "lat"], []), (["Longitude", "Latitude"], []), (["DEC", "INC"], []),
        (["a", "b"], ["--coordinates", "lonlat"]),
    ],
)  # fmt: skip
def test_the_command_line_knows_degrees_by_their_names(tmp_path, names, extra):
    path, out = tmp_path / "sites.csv", tmp_path / "mean.json"
    degrees = np.column_stack([40 + 5 * RNG.standard_normal(400), 30 + 5 * RNG.standard_normal(400)])
    path.write_text(table(["person", *names], [[i, *row] for i, row in enumerate(degrees.tolist())]))
    center = ",".join(map(repr, data.from_coordinates([[40.0, 30.0]], "lonlat")[0].tolist()))
    words = ["mean", path, "--space", "sphere", "--units", "person", "--radius", 0.5, f"--center={center}", "--mu", 2]
    columns = ["--columns", ",".join(names)] if extra else []
    done = dpm(*words, "--out", out, *extra, *columns)
    assert done.exit_code == 0, done.output
    value = Release.load(out).value
    assert Sphere(2).dist(value, data.from_coordinates([[40.0, 30.0]], "lonlat")[0]) < 0.05
    assert dpm(*words, "--out", out, "--force", "--coordinates", "poincare").exit_code == 2


def test_the_command_line_takes_the_poincare_ball(tmp_path):
    path, out = tmp_path / "nodes.tsv", tmp_path / "mean.json"
    path.write_text(table(["a", "b"], (0.1 * RNG.standard_normal((300, 2))).tolist(), "\t"))
    words = ["mean", path, "--space", "hyperbolic", "--units", "each-record", "--radius", 2, "--mu", 1, "--out", out]
    done = dpm(*words, "--coordinates", "poincare")
    assert done.exit_code == 0, done.output
    assert Hyperbolic(2).check(Release.load(out).value) is None


# -------------------------------------------------------------------- images of tensors


def image(path, array, intent=0):
    nibabel = pytest.importorskip("nibabel")
    made = nibabel.Nifti1Image(np.asarray(array, dtype=np.float64), np.eye(4))
    made.header["intent_code"] = intent
    made.to_filename(path)
    return path


GRID = (3, 4, 5)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_images_of_tensors(tmp_path, suffix):
    for order in PLACES:
        # Camino puts an exit code and the logarithm of S0 before the tensor.
        values = np.hstack([RNG.standard_normal((60, 2)), six(order)]) if order == "camino" else six(order)
        path = image(tmp_path / f"t{suffix}", values.reshape(*GRID, -1))
        np.testing.assert_array_equal(data.load_tensors(path, order=order), TENSORS)
    np.testing.assert_array_equal(data.load_tensors(image(path, six("row").reshape(*GRID, 6))), TENSORS)
    # The standard's symmetric matrices are lower triangles, row by row.
    np.testing.assert_array_equal(data.load_tensors(image(path, six("dipy").reshape(*GRID, 1, 6), 1005)), TENSORS)
    np.testing.assert_array_equal(data.load_tensors(image(path, TENSORS.reshape(*GRID, 3, 3))), TENSORS)
    with pytest.raises(InvalidDataError, match='order="mrtrix"'):
        data.load_tensors(image(path, six("mrtrix").reshape(*GRID, 6)))


def test_a_mask_chooses_voxels(tmp_path):
    tensors = TENSORS.copy()
    inside = RNG.uniform(size=60) < 0.4
    tensors[~inside] = 0.0  # background
    path = image(tmp_path / "t.nii.gz", six("row", tensors).reshape(*GRID, 6))
    for shape in (GRID, (*GRID, 1)):
        mask = image(tmp_path / "mask.nii", inside.reshape(shape))
        np.testing.assert_array_equal(data.load_tensors(path, mask), TENSORS[inside])
    with pytest.raises(
        InvalidDataError, match=r"small\.nii: the mask has the grid \(2, 2, 2\), the tensors \(3, 4, 5\)"
    ):
        data.load_tensors(path, image(tmp_path / "small.nii", np.ones((2, 2, 2))))
    with pytest.raises(InvalidDataError, match="the mask is empty"):
        data.load_tensors(path, image(tmp_path / "none.nii", np.zeros(GRID)))
    words = [
        "mean",
        path,
        "--space",
        "spd",
        "--units",
        "each-record",
        "--radius",
        3,
        "--mu",
        1,
        "--out",
        tmp_path / "m",
    ]
    done = dpm(*words, "--mask", mask)
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "m").read_text())["n"] == inside.sum()
    assert dpm(*words, "--force").exit_code == 3  # background is no tensor


def test_what_is_no_image_of_tensors_is_refused(tmp_path):
    path = image(tmp_path / "t.nii.gz", np.zeros((*GRID, 7)))
    with pytest.raises(InvalidDataError, match=r"this image is \(3, 4, 5, 7\)"):
        data.load_tensors(path)
    content = image(path, six("row").reshape(*GRID, 6)).read_bytes()
    for broken in (b"", b"nothing", content[: len(content) // 2]):
        path.write_bytes(broken)
        with pytest.raises(InvalidDataError, match=r"t\.nii\.gz: "):
            data.load_tensors(path)
    with pytest.raises(InvalidArgumentError, match="order means nothing"):
        data.load_tensors(image(path, TENSORS.reshape(*GRID, 3, 3)), order="fsl")
    np.testing.assert_array_equal(data.load_array(path), TENSORS)  # whole matrices: there is nothing to choose
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(InvalidArgumentError, match=r"\.nii and \.nii\.gz"):
        data.load_tensors(tmp_path / "t.csv")


def test_without_nibabel_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nibabel", None)
    (tmp_path / "t.nii").write_bytes(b"")
    with pytest.raises(MissingPackageError, match=r"dpmanifold\[nifti\]"):
        data.load_tensors(tmp_path / "t.nii")


# -------------------------------------------------------------------- long tables of landmarks


def long_table(people, count=3, specimens=40):
    """Rows per landmark: two specimens of each person, in no order."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) + 0.05 * RNG.standard_normal((specimens, count, 2))
    rows = [
        [f"s{i}", people[i // 2], j + 1, *points[i, j].tolist()]
        for i in range(specimens)
        for j in range(count)
    ]  # fmt: skip
    return [rows[i] for i in RNG.permutation(len(rows))]


def test_units_of_a_long_table_are_those_of_its_specimens(tmp_path):
    rows = long_table([f"p{i}" for i in range(20)])
    path = tmp_path / "long.csv"
    path.write_text(table(["id", "person", "landmark", "x", "y"], rows))
    owner = {row[0]: row[1] for row in rows}
    ids = data.load_landmarks(path)[1]
    assert data.specimen_column(path, "person").tolist() == [owner[name] for name in ids.tolist()]
    assert data.specimen_column(path, "id").tolist() == ids.tolist()
    template = tmp_path / "template.npy"
    np.save(template, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    words = [
        "mean",
        path,
        "--space",
        "kendall",
        "--center",
        template,
        "--radius",
        0.3,
        "--mu",
        5,
        "--out",
        tmp_path / "m",
    ]
    for units, n in (("person", 20), ("id", 40), ("each-record", 40)):
        done = dpm(*words, "--force", "--units", units)
        assert done.exit_code == 0, done.output
        assert json.loads((tmp_path / "m").read_text())["n"] == n


def test_a_specimen_of_two_people_is_refused(tmp_path):
    rows = [["a", 1, 1, 0, 0], ["a", 2, 2, 1, 0], ["a", 1, 3, 0, 1]]
    path = tmp_path / "long.csv"
    path.write_text(table(["id", "person", "landmark", "x", "y"], rows))
    with pytest.raises(InvalidDataError, match=r"long\.csv: the specimen that begins at record 0 .*'person'"):
        data.specimen_column(path, "person")
    with pytest.raises(InvalidArgumentError, match="'whom' is not in"):
        data.specimen_column(path, "whom")
    path.write_text("id,x1,y1\n1,0,0\n")
    assert data.specimen_column(path, "id") is None


def test_listed_landmarks_on_the_command_line_stay_as_listed(tmp_path):
    """Landmarks 3, 1, 2: the released shape has them in this order."""
    path, out = tmp_path / "wide.csv", tmp_path / "mean.json"
    shape = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    rows = (shape + 0.001 * RNG.standard_normal((200, 3, 2))).reshape(200, 6).tolist()
    path.write_text(table(["x1", "y1", "x2", "y2", "x3", "y3"], rows))
    turned = shape[[2, 0, 1]]
    words = ["mean", path, "--space", "kendall", "--units", "each-record", "--radius", 0.3, "--mu", 5, "--out", out]
    done = dpm(*words, "--columns", "x3,y3,x1,y1,x2,y2", "--center", ",".join(map(str, turned.ravel())))
    assert done.exit_code == 0, done.output
    space = KendallShapes(3)
    near, far = Ball(space, space.project(turned), 0.1), space.project(shape)
    value = Release.load(out).value
    assert near.contains(value)
    assert space.dist(value, far) > 0.1


def test_a_class_may_be_called_none_and_an_id_may_not(tmp_path):
    path = tmp_path / "scans.csv"
    rows = [[f"p{i}", "none" if i % 2 else "tumour", 0.01 * i] for i in range(40)]
    words = ["class-means", path, "--space", "euclidean", "--columns", "x", "--radius", 5, "--mu", 1]
    words += ["--units", "person", "--labels", "finding", "--classes", "none,tumour", "--out", tmp_path / "out"]
    path.write_text(table(["person", "finding", "x"], rows))
    done = dpm(*words)
    assert done.exit_code == 0, done.output
    rows[7][0] = "None"
    path.write_text(table(["person", "finding", "x"], rows))
    refused = dpm(*words, "--force")
    assert refused.exit_code == 3
    assert "line 9 has nothing, or a word such as NA" in " ".join(refused.output.split())


# -------------------------------------------------------------------- a table is read from front to back once


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("names", "space", "more"),
    [
        (["person", "class", "x1", "x2", "x3"], "sphere", ["--columns", "x*", "--normalize"]),
        (["person", "class", "lon", "lat"], "sphere", []),
        (["id", "person", "class", "x1", "y1", "x2", "y2", "x3", "y3"], "kendall", []),
        (["person", "class", "a", "b"], "euclidean", ["--columns", "a,b"]),
    ],
)
def test_a_command_reads_a_table_once(tmp_path, monkeypatch, suffix, names, space, more):
    text = [name for name in names if name in ("id", "person", "class")]
    rng = np.random.default_rng(0)
    rows = [[f"p{i // 2}"] * len(text) + rng.uniform(0.1, 1, len(names) - len(text)).tolist() for i in range(40)]
    for row in rows:
        row[text.index("class")] = "ab"[int(row[0][1:]) % 2]
    path, center = tmp_path / f"a{suffix}", tmp_path / "center.npy"
    content = table(names, rows).encode()
    path.write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    np.save(center, {"kendall": KendallShapes(3).to_landmarks(KendallShapes(3).origin)[None],
                     "sphere": np.eye(3)[:1], "euclidean": np.zeros((1, 2))}[space])  # fmt: skip
    read = []
    real = CsvTable.rows

    def counted(self, *arguments):
        read.append(str(self.path))
        return real(self, *arguments)

    monkeypatch.setattr(CsvTable, "rows", counted)
    about = ["--space", space, "--units", "person", "--center", center, "--radius", 0.3, "--mu", 1, "--confirm", *more]
    result = dpm("class-means", path, *about, "--labels", "class", "--classes", "a,b", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert read.count(str(path)) == 1  # its first line is looked at before


def test_columns_kept_or_not_are_the_same(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("who,x,why\n 7 ,1,a\n8,2,NA\n07,,none\n")
    kept, plain = data.open_file(path), data.open_file(path)
    for name in ("who", "why", "nobody"):
        kept.keep(name)
    for file in (kept, plain):
        np.testing.assert_array_equal(file.array(columns="x"), [[1.0], [2.0], [np.nan]])
        assert file.column("who").tolist() == ["7", "8", "07"]
        assert file.column("why", labels=True).tolist() == ["a", "NA", "none"]
        with pytest.raises(InvalidDataError, match="line 3 has nothing, or a word such as NA"):
            file.column("why")
        with pytest.raises(InvalidArgumentError, match="column 'nobody' is not in"):
            file.column("nobody")
