"""Derivatives in the form of BIDS: who is found, who owns what, and what is refused before anything is read."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from dpmanifold import GDP, SPD, Ball, data, private_class_means, private_regression
from dpmanifold.errors import InvalidArgumentError, InvalidDataError

nibabel = pytest.importorskip("nibabel")
dti = pytest.importorskip("dipy.reconst.dti")

from dipy.core.gradients import gradient_table  # noqa: E402
from dipy.data import get_fnames  # noqa: E402
from dipy.io.gradients import read_bvals_bvecs  # noqa: E402

pytestmark = pytest.mark.security

PEOPLE = {"sub-01": "patient", "sub-02": "control", "sub-03": "patient"}


@pytest.fixture(scope="module")
def tensors():
    """Tensors (10, 10, 10, 3, 3) of a scan that lies in dipy's package."""
    scan, bvals, bvecs = get_fnames(name="small_64D")
    values, vectors = read_bvals_bvecs(bvals, bvecs)
    model = dti.TensorModel(gradient_table(values, bvecs=vectors, b0_threshold=50))
    form = model.fit(nibabel.load(scan).get_fdata()).quadratic_form
    return dti.from_lower_triangular(dti.lower_triangular(form))


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.Nifti1Image(np.asarray(array, dtype=np.float64), np.eye(4)).to_filename(path)
    return path


def six(part):
    """In the order of FSL."""
    return part[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def write_participants(root, rows=PEOPLE, head="participant_id\tdiagnosis\tage"):
    lines = [f"{person}\t{group}\t{30 + i}" for i, (person, group) in enumerate(rows.items())]
    (root / "participants.tsv").write_text("\n".join([head, *lines]) + "\n")


@pytest.fixture
def study(tmp_path, tensors):
    """Three people, the second with two sessions; a mask beside each image; slabs of a real scan."""
    root = tmp_path / "derivatives" / "dti"
    root.mkdir(parents=True)
    (root / "dataset_description.json").write_text(
        json.dumps({"Name": "tensors", "BIDSVersion": "1.9.0", "DatasetType": "derivative"})
    )
    write_participants(root)
    expected = {}
    for i, scan in enumerate(["sub-01", "sub-02_ses-a", "sub-02_ses-b", "sub-03"]):
        part = tensors[2 * i : 2 * i + 2]
        inside = np.random.default_rng(i).uniform(size=part.shape[:3]) < 0.5
        place = root.joinpath(*scan.split("_"), "dwi")
        save(place / f"{scan}_space-ACPC_desc-fit_tensor.nii.gz", six(part))
        save(place / f"{scan}_space-ACPC_desc-brain_mask.nii.gz", inside)
        save(place / f"{scan}_space-MNI_desc-brain_mask.nii.gz", np.ones((3, 3, 3)))
        (place / f"{scan}_space-ACPC_desc-fit_tensor.json").write_text("{}")
        expected.setdefault(scan[:6], []).append((part, inside))
    (root / "sub-01.html").write_text("a report")
    return root, expected


def read(source, units="participant_id", labels=None):
    """Records by unit, and the labels that go with them."""
    found = {}
    for piece in source.bound(SPD(3), units=units, labels=labels):
        for block in piece.blocks():
            for unit in set(block.units.tolist()):
                taken = block.units == unit
                found.setdefault(unit, []).append(
                    (block.records[taken], None if block.labels is None else set(block.labels[taken].tolist()))
                )
    return found


def count(parts):
    return sum(len(records) for records, _ in parts)


def sort(matrices):
    return matrices[np.lexsort(matrices.reshape(len(matrices), -1).T)]


def test_sessions_are_one_person_and_masks_lie_beside(study):
    root, expected = study
    source = data.from_bids(root, order="fsl")
    assert len(source) == 4
    assert source.names == ["participant_id", "diagnosis", "age"]
    got = read(source, labels="diagnosis")
    assert sorted(got) == sorted(PEOPLE)
    for person, parts in expected.items():
        matrices = np.concatenate([records for records, _ in got[person]])
        np.testing.assert_array_equal(sort(matrices), sort(np.concatenate([part[inside] for part, inside in parts])))
        assert {label for _, labels in got[person] for label in labels} == {PEOPLE[person]}


def test_other_columns_may_be_units(study):
    root, expected = study
    got = read(data.from_bids(root, order="fsl"), units="diagnosis")
    assert sorted(got) == ["control", "patient"]
    assert count(got["control"]) == sum(inside.sum() for _, inside in expected["sub-02"])


def test_a_voxel_is_never_a_unit(study):
    with pytest.raises(InvalidArgumentError, match='Give units="participant_id"'):
        data.from_bids(study[0], order="fsl").bound(SPD(3))


def test_entities_and_patterns_choose(study, tensors):
    root, _ = study
    for person in PEOPLE:
        save(root / person / "dwi" / f"{person}_space-MNI_desc-fit_tensor.nii.gz", six(tensors[:3, :3, :3]))
        save(root / person / "dwi" / f"{person}_space-MNI_desc-brain_mask.nii.gz", np.ones((3, 3, 3)))
    with pytest.raises(InvalidArgumentError, match="several kinds, 'space-ACPC_desc-fit_tensor', 'space-MNI_desc-fit"):
        data.from_bids(root, order="fsl")
    mni = data.from_bids(root, order="fsl", space="MNI")
    assert len(mni) == 3
    assert {person: sum(len(one[0]) for one in parts) for person, parts in read(mni).items()} == dict.fromkeys(
        PEOPLE, 27
    )
    assert len(data.from_bids(root, order="fsl", space="ACPC", ses="a")) == 1
    assert len(data.from_bids(root, order="fsl", pattern="*_space-ACPC_*_tensor.nii.gz")) == 4
    assert len(data.from_bids(root, order="fsl", pattern="*_space-ACPC_*_tensor")) == 4
    with pytest.raises(InvalidArgumentError, match="no image of tensors was found"):
        data.from_bids(root, order="fsl", space="nowhere")


@pytest.mark.parametrize(
    "name", ["dti", "desc-x_tensor", "model-tensor_param-diffusivity_dwimap", "param-tensor_dwimap"]
)
def test_names_that_are_known(tmp_path, tensors, name):
    save(tmp_path / "sub-x" / "dwi" / f"sub-x_{name}.nii", six(tensors[:2]))
    save(tmp_path / "sub-x" / "dwi" / "sub-x_param-fa_dwimap.nii", tensors[:2, ..., 0, 0])
    assert len(data.from_bids(tmp_path, order="fsl", mask=None, participants=False)) == 1


def test_masks(study, tmp_path, tensors):
    root, expected = study
    everything = read(data.from_bids(root, order="fsl", mask=None))
    assert count(everything["sub-01"]) == expected["sub-01"][0][1].size
    assert len(read(data.from_bids(root, order="fsl", mask="nonzero"))) == 3
    atlas = save(tmp_path / "atlas.nii.gz", np.ones(expected["sub-01"][0][1].shape))
    assert count(read(data.from_bids(root, order="fsl", mask=atlas))["sub-03"]) == expected["sub-03"][0][1].size
    same = read(data.from_bids(root, order="fsl", mask="*_desc-brain_mask.nii.gz"))
    assert count(same["sub-01"]) == expected["sub-01"][0][1].sum()
    with pytest.raises(InvalidArgumentError, match=r"mask: none of the files beside 'sub-01_.*match '\*_wm'"):
        data.from_bids(root, order="fsl", mask="*_wm")
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        data.from_bids(root, order="fsl", mask=tmp_path / "none.nii")
    place = root / "sub-03" / "dwi"
    save(place / "sub-03_space-ACPC_run-1_desc-brain_mask.nii.gz", np.ones((2, 10, 10)))  # of another run: not meant
    assert len(data.from_bids(root, order="fsl")) == 4
    save(place / "sub-03_space-ACPC_label-wm_desc-brain_mask.nii.gz", np.ones((2, 10, 10)))
    with pytest.raises(InvalidArgumentError, match="mask: 2 of the files beside 'sub-03_"):
        data.from_bids(root, order="fsl")
    for path in place.glob("*ACPC*_mask*"):
        path.unlink()
    with pytest.raises(InvalidArgumentError, match="mask: none of the files beside 'sub-03_"):
        data.from_bids(root, order="fsl")
    save(place / "sub-03_space-ACPC_desc-brain_mask.nii.gz", np.ones((2, 2, 2)))
    with pytest.raises(InvalidDataError, match=r"sub-03_space-ACPC_desc-brain_mask\.nii\.gz: the mask has the grid"):
        data.from_bids(root, order="fsl")


def test_the_curator_is_told_who_has_no_image(study):
    root, _ = study
    write_participants(root, {**PEOPLE, "sub-04": "control"})
    (root / "sub-05" / "anat").mkdir(parents=True)
    told = []
    data.from_bids(root, order="fsl", curator=told.append)
    assert told == ["2 of 5 participants have no image and are left out: 'sub-04', 'sub-05'."]
    data.from_bids(root, order="fsl", ses="a", curator=told.append)
    assert told[1].startswith("4 of 5 participants")


def test_participants(study, tmp_path):
    root, _ = study
    table = root / "participants.tsv"
    elsewhere = tmp_path / "raw.tsv"
    table.rename(elsewhere)
    with pytest.raises(InvalidArgumentError, match=r"there is no participants\.tsv in .*participants=False"):
        data.from_bids(root, order="fsl")
    assert data.from_bids(root, order="fsl", participants=False).names == ["participant_id"]
    assert read(data.from_bids(root, order="fsl", participants=elsewhere), labels="age")
    with pytest.raises(InvalidArgumentError, match="labels 'diagnosis' is no column of these images"):
        data.from_bids(root, order="fsl", participants=False).bound(SPD(3), "participant_id", "diagnosis")
    with pytest.raises(InvalidArgumentError, match="participants must be True, False or the name of a file, got 3"):
        data.from_bids(root, order="fsl", participants=3)
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        data.from_bids(root, order="fsl", participants=tmp_path / "none.tsv")
    write_participants(root, {person: PEOPLE[person] for person in ("sub-01", "sub-02")})
    with pytest.raises(
        InvalidDataError, match=r"participants\.tsv: there is no row for sub-03, of whom there is 'sub-03_"
    ):
        data.from_bids(root, order="fsl")
    table.write_text(table.read_text() + "sub-03\tpatient\t9\nsub-01\tpatient\t9\n")
    with pytest.raises(InvalidDataError, match=r"participants\.tsv: somebody has two rows"):
        data.from_bids(root, order="fsl")
    write_participants(root, head="person\tdiagnosis\tage")
    with pytest.raises(InvalidDataError, match=r"participants\.tsv: there is no column 'participant_id'"):
        data.from_bids(root, order="fsl")


@pytest.mark.parametrize("missing", ["n/a", "NA", ""])
def test_a_gap_in_a_column_is_what_it_is_in_every_table(study, missing):
    """Nobody owns an image by it, a public class cannot be known, a covariate counts as the middle of its range."""
    root, _ = study
    write_participants(root, {**PEOPLE, "sub-02": missing, "sub-09": "n/a"})
    source = data.from_bids(root, order="fsl")
    assert len(read(source)) == 3, "the column is not asked for"
    with pytest.raises(InvalidArgumentError, match="units has a missing id at index 1"):
        source.bound(SPD(3), units="diagnosis")
    ball = Ball(SPD(3), 1e-3 * np.eye(3), 3.0)
    asked = {"units": "participant_id", "rng": 7, "confirm": True}
    with pytest.raises(InvalidDataError, match="label"):
        private_class_means(source, "diagnosis", ball, GDP(1.0), classes=["patient", "control"], **asked)
    with pytest.raises(InvalidDataError, match='invalid="center"'):
        private_regression(source, "diagnosis", ball, GDP(1.0), covariate_range=(0, 1), **asked)
    found = private_regression(source, "diagnosis", ball, GDP(1.0), covariate_range=(0, 1), invalid="center", **asked)
    assert found.n == 3


def test_gaps_of_people_without_an_image_are_nobodys(study):
    root, _ = study
    write_participants(root, {**PEOPLE, "sub-09": "n/a"})
    assert len(read(data.from_bids(root, order="fsl"), labels="diagnosis")) == 3


def test_labels_are_text_whoever_is_in_the_table(study):
    """What one entry is must not decide of what kind the others are."""
    root, _ = study
    numbers = {person: "1" if group == "patient" else "2" for person, group in PEOPLE.items()}
    for rows in ({**numbers, "sub-09": "n/a"}, numbers):
        write_participants(root, rows)
        got = read(data.from_bids(root, order="fsl"), labels="diagnosis")
        assert {type(label) for parts in got.values() for _, labels in parts for label in labels} == {str}


def test_links(study, tmp_path):
    """As datalad keeps files: links are followed, a link that leads nowhere is named, nobody counts twice."""
    root, expected = study
    image = next((root / "sub-01" / "dwi").glob("*_tensor.nii.gz"))
    content = tmp_path / "annex" / "SHA256E-1.nii.gz"
    content.parent.mkdir()
    image.rename(content)
    image.symlink_to(content)
    got = read(data.from_bids(root, order="fsl"))
    assert count(got["sub-01"]) == expected["sub-01"][0][1].sum()
    write_participants(root, {**PEOPLE, "sub-04": "control"})
    other = root / "sub-04" / "dwi" / "sub-04_space-ACPC_desc-fit_tensor.nii.gz"
    other.parent.mkdir(parents=True)
    for link in (os.symlink, os.link):
        link(content, other)
        with pytest.raises(InvalidDataError, match=r"sub-04_.*: it is the same file as .*sub-01_.*count twice"):
            data.from_bids(root, order="fsl", mask=None)
        other.unlink()
    other.symlink_to(tmp_path / "not-fetched.nii.gz")
    with pytest.raises(InvalidDataError, match=r"sub-04_.*: its content is not here"):
        data.from_bids(root, order="fsl", mask=None)
    other.unlink()
    loop = root / "sub-04" / "ses-loop"
    loop.symlink_to(root, target_is_directory=True)  # nothing is searched without end
    assert len(data.from_bids(root, order="fsl")) == 4


def test_what_lies_in_the_wrong_place_is_refused(study):
    root, _ = study
    image = next((root / "sub-01" / "dwi").glob("*_tensor.nii.gz"))
    wrong = image.rename(image.with_name(image.name.replace("sub-01", "sub-03")))
    with pytest.raises(InvalidDataError, match=r"sub-03_.*: it lies in 'sub-01', and its name says another one"):
        data.from_bids(root, order="fsl")
    wrong.rename(image)
    session = next((root / "sub-02" / "ses-a" / "dwi").glob("*_tensor.nii.gz"))
    session.rename(session.with_name(session.name.replace("ses-a", "ses-b")))
    with pytest.raises(InvalidDataError, match=r"sub-02_ses-b.*: it lies in 'sub-02.ses-a'"):
        data.from_bids(root, order="fsl")


def test_an_image_packed_and_unpacked_counts_once(study, tensors):
    root, _ = study
    save(root / "sub-01" / "dwi" / "sub-01_space-ACPC_desc-fit_tensor.nii", six(tensors[:2]))
    with pytest.raises(InvalidDataError, match=r"with and without \.gz"):
        data.from_bids(root, order="fsl")


def test_damaged_and_wrong_images_are_named(study, tensors):
    root, _ = study
    image = next((root / "sub-03" / "dwi").glob("*_tensor.nii.gz"))
    whole = image.read_bytes()
    image.write_bytes(whole[: len(whole) // 2])
    source = data.from_bids(root, order="fsl")  # the header is whole
    with pytest.raises(InvalidDataError, match=r"sub-03_.*: it is damaged"):
        read(source)
    image.write_bytes(b"/annex/objects/SHA256E-s1234--abc.nii.gz\n")
    with pytest.raises(InvalidDataError, match=r"sub-03_.*: it is damaged"):
        data.from_bids(root, order="fsl")
    save(image, tensors[:2, ..., 0, :])
    with pytest.raises(InvalidDataError, match=r"sub-03_.*: tensors are"):
        data.from_bids(root, order="fsl")
    image.write_bytes(whole)
    with pytest.raises(InvalidArgumentError, match="order is needed"):
        data.from_bids(root)


def test_folders_that_are_none(study, tmp_path):
    root, _ = study
    assert data.is_bids(root)
    assert not data.is_bids(root / "sub-01")
    assert not data.is_bids(3)
    for wrong, says in ((tmp_path / "none", "there is no file"), (root / "participants.tsv", "is a file"), (3, "path")):
        with pytest.raises(InvalidArgumentError, match=says):
            data.from_bids(wrong, order="fsl")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidArgumentError, match="no image of tensors was found"):
        data.from_bids(empty, order="fsl")
