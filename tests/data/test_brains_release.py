"""Releases of images: the same bits as of one array, everything refused before the budget is spent."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold import SPD, data
from dpmanifold.cli import app
from dpmanifold.engines import ThreadEngine, using

pytestmark = pytest.mark.security

nibabel = pytest.importorskip("nibabel")

PEOPLE = [f"sub-{i:02}" for i in range(30)]
GRID = (4, 3, 2)


def tensors_of(person, session=0):
    rng = np.random.default_rng([PEOPLE.index(person), session])
    return 1e-3 * SPD(3).exp_coords(np.diag([1.6, 0.4, 0.4]), 0.2 * rng.standard_normal((np.prod(GRID), 6)))


@pytest.fixture
def study(tmp_path):
    """Thirty people, ten of them scanned twice; a mask of half of the voxels beside each image."""
    rows, records, owners = [], [], []
    for person in PEOPLE:
        rows.append(f"{person}\t{'a' if PEOPLE.index(person) % 2 else 'b'}")
        for session in range(2 if PEOPLE.index(person) < 10 else 1):
            name = f"{person}_ses-{session}"
            place = tmp_path / person / f"ses-{session}" / "dwi"
            place.mkdir(parents=True)
            own = tensors_of(person, session)
            inside = np.arange(len(own)) % 2 == PEOPLE.index(person) % 2
            six = own[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
            six[~inside] = 0.0
            for what, values in (("tensor", six.reshape(*GRID, 6)), ("desc-brain_mask", inside.reshape(GRID))):
                image = nibabel.Nifti1Image(values.astype(float), np.eye(4))
                image.to_filename(place / f"{name}_{what}.nii.gz")
            records.append(own[inside])
            owners += [person] * int(inside.sum())
    (tmp_path / "participants.tsv").write_text("\n".join(["participant_id\tsite", *rows]) + "\n")
    return tmp_path, np.concatenate(records), np.array(owners)


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_a_folder_gives_the_bits_of_one_array(study, metric):
    root, records, owners = study
    ball = dpm.Ball(SPD(3, metric=metric), 0.7e-3 * np.eye(3), 2.5)
    whole = dpm.private_mean(records, ball, dpm.GDP(1.0), units=owners, rng=7)
    for source, units in (
        (data.from_bids(root, order="fsl"), "participant_id"),
        (data.from_bids(root, order="fsl", mask="nonzero"), "participant_id"),
        (data.from_nifti(sorted(root.glob("*/*/dwi/*_tensor.nii.gz")), order="fsl", mask="nonzero"), None),
    ):
        ids = units or [path.name[:6] for path in sorted(root.glob("*/*/dwi/*_tensor.nii.gz"))]
        for workers in (1, 2):
            with using(ThreadEngine(workers)):
                release = dpm.private_mean(source, ball, dpm.GDP(1.0), units=ids, rng=7)
            assert (release.n, release.unit) == (30, "unit")
            np.testing.assert_array_equal(release.value, whole.value)


def test_classes_come_from_the_table(study):
    root, records, owners = study
    ball = dpm.Ball(SPD(3), 0.7e-3 * np.eye(3), 2.5)
    labels = np.array(["a" if PEOPLE.index(owner) % 2 else "b" for owner in owners])
    whole = dpm.private_class_means(records, labels, ball, dpm.GDP(1.0), units=owners, classes=["a", "b"], rng=7)
    source = data.from_bids(root, order="fsl")
    asked = {"units": "participant_id", "classes": ["a", "b"], "rng": 7}
    means = dpm.private_class_means(source, "site", ball, dpm.GDP(1.0), **asked)
    for name, release in means.items():
        assert release.n == 15
        np.testing.assert_array_equal(release.value, whole[name].value)


def test_nothing_is_spent_on_what_cannot_be_read(study):
    root, _, _ = study
    ball = dpm.Ball(SPD(3), 0.7e-3 * np.eye(3), 2.5)
    budget = dpm.Budget(dpm.GDP(1.0))
    image = root / "sub-07" / "ses-1" / "dwi" / "sub-07_ses-1_tensor.nii.gz"
    whole = image.read_bytes()
    image.write_bytes(whole[:-6])
    source = data.from_bids(root, order="fsl")
    with pytest.raises(dpm.InvalidDataError, match=r"sub-07_ses-1_tensor\.nii\.gz: it is damaged"):
        dpm.private_mean(source, ball, dpm.GDP(1.0), units="participant_id", budget=budget)
    image.write_bytes(whole)
    with pytest.raises(dpm.errors.SourceChangedError, match=r"sub-07_ses-1_tensor\.nii\.gz"):
        dpm.private_mean(source, ball, dpm.GDP(1.0), units="participant_id", budget=budget)
    background = data.from_bids(root, order="fsl", mask=None)
    with pytest.raises(dpm.InvalidDataError, match="positive definite"):
        dpm.private_mean(background, ball, dpm.GDP(1.0), units="participant_id", budget=budget)
    with pytest.raises(dpm.InvalidArgumentError, match="units"):
        dpm.private_mean(data.from_bids(root, order="fsl"), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, budget=budget)
    # All of it is still there.
    good = data.from_bids(root, order="fsl")
    assert dpm.private_mean(good, ball, dpm.GDP(1.0), units="participant_id", budget=budget).n == 30


def test_fits_of_dipy_give_the_bits_of_one_array():
    dti = pytest.importorskip("dipy.reconst.dti")
    from dipy.core.gradients import gradient_table

    directions = np.vstack([np.zeros(3), np.eye(3), (1 - np.eye(3)) / np.sqrt(2)])
    model = dti.TensorModel(gradient_table(np.array([0.0] + 6 * [1000.0]), bvecs=directions))
    fits = []
    for person in PEOPLE:
        decay = np.einsum("ni,vij,nj->vn", directions, tensors_of(person), directions)
        fits.append(model.fit(100 * np.exp(-1000 * decay).reshape(*GRID, -1)))
    ball = dpm.Ball(SPD(3), 0.7e-3 * np.eye(3), 2.5)
    records = np.concatenate([fit.quadratic_form.reshape(-1, 3, 3) for fit in fits])
    whole = dpm.private_mean(records, ball, dpm.GDP(1.0), units=np.repeat(PEOPLE, np.prod(GRID)), rng=7)
    release = dpm.private_mean(fits, ball, dpm.GDP(1.0), units=PEOPLE, rng=7)
    np.testing.assert_array_equal(release.value, whole.value)
    fits[3].model_params[0, 0, 0] = 0.0
    with pytest.raises(dpm.InvalidDataError, match="fit 3"):
        dpm.private_mean(fits, ball, dpm.GDP(1.0), units=PEOPLE)


# -------------------------------------------------------------------- the command line


def command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


ABOUT = ["--space", "spd", "--center", 0.0007, "--radius", 2.5, "--mu", 1]


def test_the_command_line_takes_a_folder(study, tmp_path_factory):
    root, records, owners = study
    out = tmp_path_factory.mktemp("out")
    (root / "dataset_description.json").write_text('{"Name": "study", "BIDSVersion": "1.9.0"}')
    asked = [*ABOUT, "--order", "fsl", "--units", "participant_id"]
    done = command("mean", root, *asked, "--seed", 7, "--out", out / "mean.json")
    assert done.exit_code == 0, done.output
    ball = dpm.Ball(SPD(3), 0.0007 * np.eye(3), 2.5)
    whole = dpm.private_mean(records, ball, dpm.GDP(1.0), units=owners, rng=7)
    np.testing.assert_array_equal(dpm.Release.load(out / "mean.json").value, whole.value)
    done = command("class-means", root, *asked, "--labels", "site", "--classes", "a,b", "--out", out / "means.json")
    assert done.exit_code == 0, done.output
    checked = command("check", root, "--space", "spd", "--order", "fsl", "--units", "participant_id")
    assert checked.exit_code == 0, checked.output
    assert "40 files" in checked.output
    assert "30 units" in checked.output


def test_the_command_line_refuses_voxels_as_units_and_damage(study, tmp_path_factory):
    root, _, _ = study
    out = tmp_path_factory.mktemp("out") / "mean.json"
    (root / "dataset_description.json").write_text('{"Name": "study", "BIDSVersion": "1.9.0"}')
    refused = command("mean", root, *ABOUT, "--order", "fsl", "--units", "each-record", "--out", out)
    assert refused.exit_code == 2
    assert "participant_id" in refused.output
    assert command("mean", root, *ABOUT, "--units", "participant_id", "--out", out).exit_code == 2  # no order
    image = root / "sub-07" / "ses-1" / "dwi" / "sub-07_ses-1_tensor.nii.gz"
    image.write_bytes(image.read_bytes()[:-6])
    refused = command("mean", root, *ABOUT, "--order", "fsl", "--units", "participant_id", "--out", out)
    assert refused.exit_code == 3
    assert "sub-07_ses-1_tensor.nii.gz: it is damaged" in refused.output
    assert not out.exists()
