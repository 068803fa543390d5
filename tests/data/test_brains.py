"""Images of diffusion tensors: real ones against the numbers of dipy and nibabel, orders, masks, damage, memory."""

from __future__ import annotations

import gzip
import pathlib
import pickle
import struct
import tracemalloc

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import SPD, data
from dpmanifold.data import image_source, nifti
from dpmanifold.data.nifti import Voxels
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, SourceChangedError
from dpmanifold.sources import as_source

nibabel = pytest.importorskip("nibabel")
dti = pytest.importorskip("dipy.reconst.dti")

from dipy.core.gradients import gradient_table  # noqa: E402
from dipy.data import get_fnames  # noqa: E402
from dipy.io.gradients import read_bvals_bvecs  # noqa: E402
from dipy.io.utils import nifti1_symmat  # noqa: E402
from dipy.reconst.utils import convert_tensors  # noqa: E402

pytestmark = pytest.mark.security

PACKAGED = ["small_25", "small_64D", "small_101D"]
OWN = pathlib.Path(nibabel.__file__).parent / "tests" / "data"


def fitted(name):
    """dipy's own fit of one of the scans that lie in its package, and nothing is fetched."""
    image, bvals, bvecs = get_fnames(name=name)
    values, vectors = read_bvals_bvecs(bvals, bvecs)
    table = gradient_table(values, bvecs=vectors, b0_threshold=max(50, values.min()))
    return dti.TensorModel(table).fit(nibabel.load(image).get_fdata())


@pytest.fixture(scope="module", params=PACKAGED)
def fit(request):
    return fitted(request.param)


@pytest.fixture(scope="module")
def small():
    return fitted("small_64D")


def save(path, array, dtype=np.float64, intent=0):
    image = nibabel.Nifti1Image(np.asarray(array, dtype=dtype), np.eye(4))
    image.header["intent_code"] = intent
    image.to_filename(path)
    return path


def saved(path, fit, order):
    """Tensors of a fit in a tool's order, by dipy's own conversion."""
    lower = dti.lower_triangular(fit.quadratic_form)
    if order == "symmetric":
        nifti1_symmat(lower, np.eye(4)).to_filename(path)
        return path
    if order == "camino":  # the tensor in FSL's order behind an exit code and the logarithm of S0
        six = convert_tensors(lower, "dipy", "fsl")
        return save(path, np.concatenate([np.zeros((*six.shape[:-1], 1)), np.full((*six.shape[:-1], 1), 6.2), six], -1))
    return save(path, convert_tensors(lower, "dipy", order))


def read(source, **bound):
    """All records of a source, with their units and labels."""
    found = [block for piece in source.bound(SPD(3), **bound) for block in piece.blocks()]
    join = [None if any(part is None for part in one) else np.concatenate(one) for one in zip(*found, strict=True)]
    return dict(zip(("records", "units", "labels"), join, strict=True))


def sort(tensors):
    return tensors[np.lexsort(tensors.reshape(len(tensors), -1).T)]


# -------------------------------------------------------------------- dipy's scans in every order


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("order", ["dipy", "fsl", "mrtrix", "camino", "symmetric"])
def test_fits_of_dipy_come_back_from_every_order(tmp_path, fit, order, suffix):
    path = saved(tmp_path / f"t{suffix}", fit, order)
    # What dipy itself makes of the six numbers: exactly symmetric, as a file of a triangle is.
    expected = dti.from_lower_triangular(dti.lower_triangular(fit.quadratic_form)).reshape(-1, 3, 3)
    given = None if order == "symmetric" else order
    np.testing.assert_array_equal(data.load_tensors(path, order=given), expected)
    np.testing.assert_array_equal(sort(read(data.from_nifti(path, order=given))["records"]), sort(expected))


def test_orders_are_not_one_another(tmp_path, small):
    """A test that would pass in a wrong order says nothing."""
    expected = small.quadratic_form.reshape(-1, 3, 3)
    path = saved(tmp_path / "t.nii", small, "mrtrix")
    for wrong in ("dipy", "fsl", "row"):
        assert not np.allclose(data.load_tensors(path, order=wrong), expected, rtol=1e-3, atol=0)


def test_whole_matrices_keep_rows_and_columns(tmp_path):
    """Not symmetric on purpose: that is how a transposition would show."""
    matrices = np.random.default_rng(0).standard_normal((2, 3, 4, 3, 3))
    path = save(tmp_path / "t.nii.gz", matrices)
    np.testing.assert_array_equal(data.load_tensors(path), matrices.reshape(-1, 3, 3))


def test_a_fit_is_a_source(fit):
    expected = fit.quadratic_form.reshape(-1, 3, 3)
    np.testing.assert_array_equal(read(data.from_tensorfit(fit))["records"], expected)
    taken = np.arange(len(expected)).reshape(fit.shape) % 3 == 0
    got = read(data.from_tensorfit([fit, fit], mask=[taken, None]), units=["a", "b"], labels=[1, 2])
    np.testing.assert_array_equal(got["records"], np.concatenate([expected[taken.reshape(-1)], expected]))
    assert got["units"].tolist() == ["a"] * int(taken.sum()) + ["b"] * len(expected)
    assert set(got["labels"].tolist()) == {1, 2}


def test_a_fit_given_as_x_is_taken(small, monkeypatch):
    expected = small.quadratic_form.reshape(-1, 3, 3)
    for given, count in ((small, 1), ([small], 1), ((small, small), 2)):
        source = as_source(given)
        assert len(source) == count
        np.testing.assert_array_equal(read(source)["records"], np.concatenate([expected] * count))
    assert as_source([np.eye(3)]) is None
    monkeypatch.setattr(image_source, "_VOXELS", 7)  # a row of the grid at a time
    np.testing.assert_array_equal(read(as_source(small))["records"], expected)


def test_voxels_that_were_not_fitted_are_left_out_by_nonzero(small):
    mask = np.zeros(small.shape, dtype=bool)
    mask[1:3, 2:, :2] = True
    scan, bvals, bvecs = get_fnames(name="small_64D")
    table = gradient_table(read_bvals_bvecs(bvals, None)[0], bvecs=read_bvals_bvecs(None, bvecs)[1], b0_threshold=50)
    fit = dti.TensorModel(table).fit(nibabel.load(scan).get_fdata(), mask=mask)
    expected = fit.quadratic_form[mask]
    np.testing.assert_array_equal(read(data.from_tensorfit(fit, mask=mask))["records"], expected)
    np.testing.assert_array_equal(read(data.from_tensorfit(fit, mask="nonzero"), units=["a"])["records"], expected)
    assert len(read(data.from_tensorfit(fit))["records"]) == mask.size
    with pytest.raises(InvalidArgumentError, match="nothing would cover it"):
        data.from_tensorfit(fit, mask="nonzero").bound(SPD(3))
    for wrong, says in ((mask[:2], "the mask has the grid"), (np.zeros(mask.shape), "the mask is empty")):
        with pytest.raises(InvalidDataError, match=says):
            data.from_tensorfit(fit, mask=wrong)
    for wrong in ("typo", mask.astype(complex), [mask, mask]):
        with pytest.raises(InvalidArgumentError, match="mask must be"):
            data.from_tensorfit(fit, mask=wrong)
    with pytest.raises(InvalidArgumentError, match="fits must be fits of dipy's tensor model, got ndarray"):
        data.from_tensorfit([np.eye(3)])


def test_fits_of_models_that_extend_the_tensor_are_fits(monkeypatch):
    from dipy.reconst.dki import DiffusionKurtosisModel
    from dipy.reconst.fwdti import FreeWaterTensorModel

    scan, bvals, bvecs = get_fnames(name="small_101D")
    values, vectors = read_bvals_bvecs(bvals, bvecs)
    table = gradient_table(values, bvecs=vectors, b0_threshold=max(50, values.min()))
    signal = nibabel.load(scan).get_fdata()[:3, :2, :2]
    mask = np.ones((3, 2, 2), dtype=bool)
    mask[0], mask[1, 0, 0] = False, False
    monkeypatch.setattr(image_source, "_VOXELS", 4)  # so that a part has nothing but what was not fitted
    for model in (DiffusionKurtosisModel, FreeWaterTensorModel):
        fit = model(table).fit(signal, mask=mask)
        expected = fit.quadratic_form
        assert not expected[0].any(), "nothing was fitted there"
        np.testing.assert_array_equal(
            read(data.from_tensorfit(fit, mask="nonzero"), units=["a"])["records"], expected[mask]
        )
        np.testing.assert_array_equal(read(data.from_tensorfit(fit))["records"], expected.reshape(-1, 3, 3))


# -------------------------------------------------------------------- nibabel's images


@pytest.mark.parametrize("name", ["anatomical.nii", "functional.nii", "example4d.nii.gz", "example_nifti2.nii.gz"])
@pytest.mark.parametrize("size", [7, 1000, 65_536])
def test_numbers_of_nibabels_images_are_nibabels(name, size):
    """Whole numbers of both byte orders with scaling, floats, NIfTI-1 and 2."""
    path = OWN / name
    if not path.exists():
        pytest.skip("this build of nibabel comes without its test images")
    image = Voxels(path)
    expected = nibabel.load(path).get_fdata()
    got = np.concatenate(list(image.blocks(size))) if len(image) // size < 3000 else None
    if got is None:
        got = np.concatenate([block for block, _ in zip(image.blocks(size), range(100), strict=False)])
    flat = expected.reshape(-1, image.volumes, order="F")
    np.testing.assert_array_equal(got, flat[: len(got)])


@pytest.mark.parametrize("name", ["anatomical.nii", "functional.nii", "example4d.nii.gz", "example_nifti2.nii.gz"])
def test_nibabels_images_hold_no_tensors(name):
    if not (OWN / name).exists():
        pytest.skip("this build of nibabel comes without its test images")
    with pytest.raises(InvalidDataError, match=rf"{name}: tensors are .*Fit them first"):
        data.load_tensors(OWN / name)


def test_connectivity_is_no_image():
    path = OWN / "row_major.dconn.nii"
    if not path.exists():
        pytest.skip("this build of nibabel comes without its test images")
    with pytest.raises(InvalidDataError, match="it holds no voxels"):
        data.load_tensors(path)


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "u1", "<f4", ">f4", "<f8", ">f8", "<i4", "<i8"])
@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.25, -3.0), (1e-3, 0.5)])
def test_scaled_numbers_are_nibabels(tmp_path, dtype, slope, shift):
    raw = np.random.default_rng(1).integers(0, 100, (3, 4, 5, 6)).astype(dtype)
    header = nibabel.Nifti1Header(endianness=dtype[0] if dtype[0] in "<>" else "<")
    header.set_data_dtype(raw.dtype)
    header.set_data_shape(raw.shape)
    header.set_slope_inter(slope, shift)
    path = tmp_path / "t.nii"
    with open(path, "wb") as file:
        header.write_to(file)
        file.write(b"\0" * (int(header["vox_offset"]) - file.tell()))
        file.write(raw.tobytes(order="F"))
    expected = nibabel.load(path).get_fdata()
    assert not np.array_equal(expected, raw) or (slope, shift) == (1.0, 0.0)
    got = np.concatenate(list(Voxels(path).blocks(11)))
    np.testing.assert_array_equal(got, expected.reshape(-1, 6, order="F"))
    np.testing.assert_array_equal(data.load_tensors(path, order="row")[:, 0, 1], expected[..., 1].reshape(-1))


# -------------------------------------------------------------------- reading in parts


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("unpacked", [0, 2**26])
def test_the_size_of_parts_leaves_no_trace(tmp_path, small, monkeypatch, suffix, unpacked):
    """Small images are unpacked into memory, large ones read by a reader per volume: the same numbers."""
    monkeypatch.setattr(nifti, "_UNPACKED", unpacked)
    path = saved(tmp_path / f"t{suffix}", small, "fsl")
    expected = nibabel.load(path).get_fdata().reshape(-1, 6, order="F")
    for size in (1, 13, 10**6):
        np.testing.assert_array_equal(np.concatenate(list(Voxels(path).blocks(size))), expected)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_memory_is_bounded(tmp_path, monkeypatch, suffix):
    """An image of 38 MB is read in 4 MB, packed or not."""
    monkeypatch.setattr(nifti, "_UNPACKED", 2**20)
    monkeypatch.setattr(nifti.Voxels.blocks, "__defaults__", (4096,))
    values = np.zeros((100, 100, 80, 6))
    values[..., [0, 3, 5]] = 1.0
    path = save(tmp_path / f"t{suffix}", values)
    mask = save(tmp_path / "m.nii.gz", np.arange(800_000).reshape(100, 100, 80) % 2, np.uint8)
    del values
    pieces = data.from_nifti(path, order="fsl", mask=mask).bound(SPD(3), units=["a"])
    tracemalloc.start()
    count = sum(len(block.records) for piece in pieces for block in piece.blocks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400_000
    assert peak < 4e6


def test_pieces_are_pickled_read_again_and_say_nothing(tmp_path, small):
    paths = [saved(tmp_path / f"sub-ann{i}.nii.gz", small, "fsl") for i in range(2)]
    source = data.from_nifti(paths, order="fsl", per_image={"person": ["ann", "bob"], "group": [1, 2]})
    assert (source.rows, len(source), source.names) == (None, 2, ["person", "group"])
    pieces = source.bound(SPD(3, metric="riemann"), units="person", labels="group")
    assert [repr(piece) for piece in pieces] == ["ImagePiece()", "ImagePiece()"]
    assert "ann" not in repr(vars(pieces[0])["_image"])
    for piece in (pieces[0], pickle.loads(pickle.dumps(pieces[0]))):
        for _ in range(2):
            (block,) = piece.blocks()
            assert set(block.units.tolist()) == {"ann"}
            assert set(block.labels.tolist()) == {1}
            assert block.records.shape == (small.quadratic_form.size // 9, 3, 3)
    fit = pickle.loads(pickle.dumps(data.from_tensorfit(small).bound(SPD(3), units=["ann"])[0]))
    assert repr(fit) == "ImagePiece()"
    assert next(iter(fit.blocks())).units[0] == "ann"


def test_a_file_that_changes_is_noticed(tmp_path, small):
    path = saved(tmp_path / "t.nii", small, "fsl")
    mask = save(tmp_path / "m.nii", np.ones(small.shape))
    (piece,) = data.from_nifti(path, order="fsl", mask=mask).bound(SPD(3), units=["a"])
    assert list(piece.blocks())
    save(mask, np.ones(small.shape), np.uint8)
    with pytest.raises(SourceChangedError, match=r"m\.nii: it was changed"):
        list(piece.blocks())
    path.unlink()
    with pytest.raises(SourceChangedError, match=r"t\.nii: it was changed or removed"):
        list(piece.blocks())


def test_nonzero_takes_voxels_with_a_tensor(tmp_path, small):
    tensors = dti.lower_triangular(small.quadratic_form)
    tensors[:3] = 0.0
    path = save(tmp_path / "t.nii.gz", tensors)
    source = data.from_nifti(path, order="dipy", mask="nonzero")
    got = read(source, units=["a"])["records"]
    np.testing.assert_array_equal(sort(got), sort(dti.from_lower_triangular(tensors[3:]).reshape(-1, 3, 3)))
    with pytest.raises(InvalidArgumentError, match="nothing would cover it"):
        source.bound(SPD(3))
    empty = data.from_nifti(save(tmp_path / "zero.nii", 0 * tensors), order="dipy", mask="nonzero")
    with pytest.raises(InvalidDataError, match=r"zero\.nii: all of its tensors are 0"):
        read(empty, units=["a"])
    # Camino's exit code and S0 are no part of the tensor.
    background = np.concatenate([np.full((*tensors.shape[:3], 2), -1.0), tensors], axis=-1)
    camino = data.from_nifti(save(tmp_path / "camino.nii", background), order="camino", mask="nonzero")
    assert len(read(camino, units=["a"])["records"]) == len(got)


# -------------------------------------------------------------------- what is refused


def test_wrong_images_are_refused_with_their_name(tmp_path, small):
    good = saved(tmp_path / "good.nii.gz", small, "fsl")
    for shape in ((4, 4, 4), (4, 4, 4, 5), (4, 4, 4, 7), (4, 4, 4, 12), (4, 4, 4, 2, 6), (4, 4, 4, 1, 5), (4, 4)):
        bad = save(tmp_path / "bad.nii.gz", np.ones(shape))
        with pytest.raises(InvalidDataError, match=r"bad\.nii\.gz: tensors are"):
            data.from_nifti([good, bad], order="fsl")
    for dtype in (np.complex64, np.complex128):
        with pytest.raises(InvalidDataError, match=r"bad\.nii\.gz: its numbers are complex"):
            data.from_nifti([good, save(bad, np.ones((4, 4, 4, 6)), dtype)], order="fsl")
    colours = np.zeros((4, 4, 4, 6), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    nibabel.Nifti1Image(colours, np.eye(4)).to_filename(bad)
    with pytest.raises(InvalidDataError, match="its numbers are colours"):
        data.load_tensors(bad)
    for order, says in (
        (None, "order is needed"), ("typo", "order must be one of"), ("camino", 'Give order="dipy"')
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=says):
            data.from_nifti(good, order=order)
    eight = save(tmp_path / "eight.nii", np.ones((2, 2, 2, 8)))
    for order in (None, "fsl"):
        with pytest.raises(InvalidArgumentError, match='order must be "camino" for'):
            data.load_tensors(eight, order=order)


def test_wrong_lists_are_refused(tmp_path, small):
    paths = [saved(tmp_path / f"{i}.nii", small, "fsl") for i in range(2)]
    mask = save(tmp_path / "m.nii", np.ones(small.shape))
    with pytest.raises(InvalidArgumentError, match="there are no images"):
        data.from_nifti([], order="fsl")
    with pytest.raises(InvalidArgumentError, match="paths must be a list"):
        data.from_nifti(7, order="fsl")
    with pytest.raises(InvalidArgumentError, match="one for each of 2, got 3"):
        data.from_nifti(paths, order="fsl", mask=[mask] * 3)
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        data.from_nifti(paths, order="fsl", mask=tmp_path / "none.nii")
    with pytest.raises(InvalidDataError, match="would count twice"):
        data.from_nifti([*paths, paths[0]], order="fsl")
    link = tmp_path / "link.nii"
    link.symlink_to(paths[0])
    with pytest.raises(InvalidDataError, match="would count twice"):
        data.from_nifti([*paths, link], order="fsl")
    source = data.from_nifti(paths, order="fsl", mask=mask, per_image={"person": ["a"], "group": [1, 2]})
    for units, says in (
        (["a"], "units must have one value for each of the 2 images, got 1 of them"),
        (["a", None], "missing id at index 1"),
        (["a", "a "], "units"),
        (3, "one value for each of the 2 images, got 3"),
        ("nobody", "units 'nobody' is no column of these images. There are 'person', 'group'"),
        ("person", r"per_image\['person'\] must have one value"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            source.bound(SPD(3), units=units)
    with pytest.raises((InvalidArgumentError, InvalidDataError), match="Sphere"):
        source.bound(dpm.Sphere(2), units=["a", "b"])


def test_masks_of_another_grid_or_none_are_refused(tmp_path, small):
    path = saved(tmp_path / "t.nii", small, "fsl")
    for shape in ((2, 2, 2), (*small.shape, 2), small.shape[:2], (*small.shape[:2], 99)):
        mask = save(tmp_path / "m.nii.gz", np.ones(shape))
        with pytest.raises(InvalidDataError, match=r"m\.nii\.gz: the mask has the grid"):
            data.from_nifti(path, order="fsl", mask=mask)
    empty = data.from_nifti(path, order="fsl", mask=save(tmp_path / "m.nii", np.zeros(small.shape)))
    with pytest.raises(InvalidDataError, match=r"m\.nii: the mask is empty"):
        read(empty)
    nothing = data.from_nifti(path, order="fsl", mask=save(tmp_path / "n.nii", np.full(small.shape, np.nan)))
    with pytest.raises(InvalidDataError, match=r"n\.nii: the mask is empty"):
        read(nothing)


def test_gaps_are_passed_on(tmp_path, small):
    tensors = dti.lower_triangular(small.quadratic_form)
    tensors[0, 0, 0, 2] = np.nan
    got = read(data.from_nifti(save(tmp_path / "t.nii", tensors), order="dipy"))["records"]
    assert np.isnan(got).any(axis=(1, 2)).sum() == 1


@pytest.mark.parametrize("unpacked", [0, 2**26])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_damage_is_noticed_wherever_it_is(tmp_path, small, monkeypatch, suffix, unpacked):
    """Truncated anywhere, a byte changed in what is packed, the checksum at the end."""
    monkeypatch.setattr(nifti, "_UNPACKED", unpacked)
    path = saved(tmp_path / f"t{suffix}", small, "fsl")
    whole = path.read_bytes()
    cuts = [0, 10, 347, 360, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 4, len(whole) - 1]
    damaged = [whole[:cut] for cut in cuts]
    if suffix == ".nii.gz":
        wrong_sum = bytearray(whole)
        wrong_sum[-8] ^= 1
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 16
        damaged += [bytes(wrong_sum), bytes(flipped), gzip.decompress(whole), whole[:-4] + b"\0\0\0\0"]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(InvalidDataError, match=r"t\.nii.*Copy or write it again"):
            read(data.from_nifti(path, order="fsl"))
        with pytest.raises(InvalidDataError, match=r"t\.nii"):
            data.load_tensors(path, order="fsl")
    path.write_bytes(whole)
    assert read(data.from_nifti(path, order="fsl"))["records"].shape[1:] == (3, 3)


def test_a_header_that_promises_too_much_is_refused_before_memory_is_asked_for(tmp_path, small):
    for suffix in (".nii", ".nii.gz"):
        path = saved(tmp_path / f"t{suffix}", small, "fsl")
        content = bytearray(path.read_bytes() if suffix == ".nii" else gzip.decompress(path.read_bytes()))
        content[42:48] = struct.pack("<3h", 32767, 32767, 32767)
        path.write_bytes(bytes(content) if suffix == ".nii" else gzip.compress(bytes(content)))
        tracemalloc.start()
        with pytest.raises(InvalidDataError, match="damaged"):
            data.load_tensors(path, order="fsl")
        assert tracemalloc.get_traced_memory()[1] < 2e7
        tracemalloc.stop()


def test_damaged_headers_give_an_image_or_a_refusal(tmp_path, small):
    path = saved(tmp_path / "t.nii", small, "fsl")
    whole = path.read_bytes()
    rng, refused = np.random.default_rng(3), []
    for _ in range(300):
        content = bytearray(whole)
        for place in rng.integers(0, 352, rng.integers(1, 4)):
            content[place] = rng.integers(256)
        path.write_bytes(bytes(content))
        try:
            read(data.from_nifti(path, order="fsl"))
        except (InvalidDataError, InvalidArgumentError) as problem:
            refused.append("t.nii" in str(problem))
    assert all(refused)
    assert 0 < len(refused) < 300


# -------------------------------------------------------------------- Camino without a header


def camino(path, tensors, codes=0.0):
    """Big-endian doubles, one voxel after the other, the first axis fastest."""
    flat = np.moveaxis(tensors, (0, 1, 2), (2, 1, 0)).reshape(-1, 3, 3)
    upper = flat[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    head = np.column_stack([np.broadcast_to(codes, len(flat)), np.full(len(flat), 6.2)])
    path.write_bytes(np.hstack([head, upper]).astype(">f8").tobytes())
    return path


def test_caminos_own_files(tmp_path, small):
    path = camino(tmp_path / "dt.Bdouble", small.quadratic_form)
    form = dti.from_lower_triangular(dti.lower_triangular(small.quadratic_form))
    in_file = np.moveaxis(form, (0, 1, 2), (2, 1, 0)).reshape(-1, 3, 3)
    got = data.load_array(path)
    np.testing.assert_allclose(got, in_file, rtol=1e-12, atol=1e-18)
    np.testing.assert_array_equal(data.load_array(path, order="camino"), got)
    with pytest.raises(InvalidArgumentError, match='order must be "camino" for'):
        data.load_array(path, order="fsl")
    inside = np.random.default_rng(0).uniform(size=small.shape) < 0.5
    mask = save(tmp_path / "m.nii.gz", inside)
    np.testing.assert_array_equal(data.load_array(path, mask=mask), got[inside.ravel(order="F")])
    with pytest.raises(InvalidDataError, match="the mask has the grid"):
        data.load_array(path, mask=save(mask, np.ones((2, 2, 2))))
    with pytest.raises(InvalidDataError, match="exit code"):
        data.load_array(camino(path, small.quadratic_form, 0.5))
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:100]):
        path.write_bytes(content)
        with pytest.raises(InvalidDataError, match=r"dt\.Bdouble: Camino's tensors are 8 numbers"):
            data.load_array(path)


def test_ids_in_another_order_than_the_images_are_refused(tmp_path, small):
    people = ["sub-02", "sub-01", "sub-03"]
    paths = [saved(tmp_path / f"{person}_tensor.nii.gz", small, "fsl") for person in people]
    source = data.from_nifti(paths, order="fsl")
    assert len(source.bound(SPD(3), people)) == 3
    assert len(source.bound(SPD(3), ["02", "01", "03"])) == 3
    assert len(source.bound(SPD(3), ["ann", "bob", "cid"])) == 3, "files are named otherwise"
    assert len(source.bound(SPD(3), ["01", "ann", "bob"])) == 3, "not every file is named after an id"
    for other in (sorted(people), ["01", "02", "03"]):
        with pytest.raises(InvalidDataError, match="units are in another order than the images"):
            source.bound(SPD(3), other)


def test_a_number_per_image_is_a_column_of_the_images(tmp_path, small):
    paths = [saved(tmp_path / f"{number}.nii.gz", small, "fsl") for number in range(3)]
    ball, ages = dpm.Ball(SPD(3), 1e-3 * np.eye(3), 3.0), [31.0, 42.0, 53.0]
    asked = {"units": "person", "covariate_range": (20, 80), "rng": 7, "confirm": True, "invalid": "center"}
    source = data.from_nifti(paths, order="fsl", per_image={"age": ages, "person": ["ann", "bob", "cid"]})
    with pytest.raises(InvalidArgumentError, match=r"one number per image is a column.*per_image"):
        dpm.private_regression(source, ages, ball, dpm.GDP(1.0), **asked)
    assert dpm.private_regression(source, "age", ball, dpm.GDP(1.0), **asked).n == 3
