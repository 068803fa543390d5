"""Images and their labels from the files they usually come in: idx, npz, npy, CIFAR-10, folders of PNG and JPEG.

Pixels are not touched: what is uint8 in the file is uint8 here, and :func:`covariance_descriptors` scales it. Arrays
that stand as they are in a file are memory-mapped, so they may be larger than memory; :func:`descriptors_in_blocks`
goes through them. Nothing is ever unpickled.
"""

from __future__ import annotations

import gzip
import math
import pathlib
import struct
import zlib
from typing import Any

import numpy as np

from dpmanifold._check import Array, optional_module, shown
from dpmanifold.data._files import (
    ARRAY,
    PathLike,
    Stream,
    bad_file,
    checked_path,
    listed,
    no_option,
    plausible_size,
    read_exactly,
)
from dpmanifold.data.archives import archive_keys
from dpmanifold.data.formats import loader_of
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message, Names, Public

_SPLITS = ("train", "val", "test")
_IMAGE_KEYS = ("images", "x", "X")
_LABEL_KEYS = ("labels", "y", "Y")
# One record of CIFAR-10's binary version: a label, then 32 x 32 bytes each of red, green and blue.
_CIFAR_SIDE, _CIFAR_CLASSES = 32, 10
_CIFAR_RECORD = 1 + 3 * _CIFAR_SIDE**2
_PICTURES = (".png", ".jpg", ".jpeg")
# Pillow's modes that are 8-bit gray or RGB without transparency ("1": black and white; "P": a palette of colours).
_GRAY_MODES, _COLOUR_MODES = ("1", "L"), ("RGB", "P")
_NO_KEY = "It is for .npz."


def load_images(path: PathLike, key: str | None = None, split: str | None = None) -> Array:
    """Return images (n, h, w) or (n, h, w, 3), memory-mapped and read-only where the file allows it.

    | path | what it is | mapped |
    |---|---|---|
    | `train-images-idx3-ubyte`, also `.gz` | MNIST and its relatives | if not gzipped |
    | `.npz` | arrays `images`, `x`, or `train_images`, `x_train` (MedMNIST, Keras) and so on | if not compressed |
    | `.npy` | one array | yes |
    | `data_batch_1.bin` | CIFAR-10, binary version | yes |
    | a folder | its PNG and JPEG files, sorted by name, all of one size, all gray or all RGB; needs Pillow | no |

    An axis of length 1 at the end is dropped.

    Parameters
    ----------
    path : a file or a folder
    key : name of the array in an .npz file, where it is not one of the above
    split : "train", "val" or "test", for .npz files that hold several

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "breastmnist.npz")
    ...     np.savez(path, train_images=np.zeros((5, 28, 28), np.uint8), train_labels=np.zeros((5, 1), np.uint8))
    ...     images, labels = load_images(path, split="train"), load_labels(path, split="train")
    ...     print(type(images).__name__, images.shape, labels.shape)
    memmap (5, 28, 28) (5,)
    """
    found = checked_path(path)
    stored = _stored(found, key, split, "images")
    if stored is not None:
        return _as_images(stored, found)
    if found.is_dir():
        return _from_folder(found)
    suffix = found.suffix.lower()
    if suffix == ".bin":
        pixels = _cifar_records(found)[:, 1:].reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE)
        return np.moveaxis(pixels, 1, -1)
    if suffix in _PICTURES:
        raise InvalidArgumentError(
            "`path`: {name!r} is a single image. Name the folder that holds the images.", name=found.name
        )
    return _as_images(read_idx(found), found)


def load_labels(path: PathLike, key: str | None = None, split: str | None = None) -> Array:
    """Return the labels (n,) that belong to :func:`load_images`.

    From the same file for .npz (`labels`, `y`, `train_labels`, `y_train`, ...) and CIFAR-10's .bin, from the file of
    labels for idx (`train-labels-idx1-ubyte`, also .gz) and .npy. For labels in a table use `load_column`.

    Parameters
    ----------
    path, key, split : as for `load_images`; `key` names the array of labels

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "digits.npz")
    ...     np.savez(path, images=np.zeros((2, 8, 8), np.uint8), labels=np.array([3, 1]))
    ...     load_labels(path).tolist()
    [3, 1]
    """
    found = checked_path(path)
    stored = _stored(found, key, split, "labels")
    if stored is not None:
        return _as_labels(stored, found)
    if found.is_dir():
        raise InvalidArgumentError(
            "`path`: the folder {name!r} has no labels. Keep them in a table, in the order of the sorted file "
            "names, and read them with load_column.",
            name=found.name,
        )
    if found.suffix.lower() == ".bin":
        return _cifar_records(found)[:, 0]
    return _as_labels(read_idx(found), found)


def _stored(path: pathlib.Path, key: str | None, split: str | None, what: str) -> Array | None:
    """Return the array of images or labels in a file of arrays, or None where it is another kind of file."""
    kind = loader_of(path) if path.is_file() else None
    if kind is not None and "key" in kind.options:
        return kind(path).array(key=_chosen(path, key, split, what))
    no_option(key, "key", path, _NO_KEY)
    no_option(split, "split", path, _NO_KEY)
    return None if kind is None else kind(path).array()


def _chosen(path: pathlib.Path, key: str | None, split: str | None, what: str) -> str | None:
    """Return the name of the array of images or labels in an archive."""
    if key is not None:
        no_option(split, "split together with key", path, "The key says which array.")
        return key
    if split is not None and split not in _SPLITS:
        raise InvalidArgumentError('split must be "train", "val" or "test", got {got}.', got=shown(split))
    keys = archive_keys(path)
    letter = "x" if what == "images" else "y"
    by_split = {name: [k for k in (f"{name}_{what}", f"{letter}_{name}") if k in keys] for name in _SPLITS}
    if split is None:
        plain = [name for name in (_IMAGE_KEYS if what == "images" else _LABEL_KEYS) if name in keys]
        held = [name for name in _SPLITS if by_split[name]]
        if not plain and len(held) > 1:
            raise InvalidArgumentError("split is needed: {name!r} holds {held}.", name=path.name, held=Names(held))
        options = plain or [name for split_name in held for name in by_split[split_name]] or keys
    else:
        options = by_split[split]
    if len(options) != 1:
        raise InvalidArgumentError(
            "{key} is needed: which array of {name!r} are the {what}{detail}? It holds {value}.",
            key=ARRAY,
            name=path.name,
            what=Public(what),
            detail=Message(" of {split!r}", split=split) if split else Message(""),
            value=listed(keys) or "none",
        )
    return options[0]


def _as_images(array: Array, path: pathlib.Path) -> Array:
    """Return an array as images, or say why it cannot be."""
    if array.ndim == 4 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.dtype.kind not in "buif" or not (array.ndim == 3 or (array.ndim == 4 and array.shape[-1] == 3)):
        remedy = {
            1: "These may be labels: use load_labels",
            2: "Flat images need their sides: load_array, then reshape(-1, height, width)",
            4: "Volumes are not images, and channels go last: load_array, then np.moveaxis or a choice of slices",
        }
        raise bad_file(
            path,
            "images are numbers of shape (n, h, w) or (n, h, w, 3), this is {dtype} of shape {shape}. {get}.",
            dtype=array.dtype,
            shape=Public(array.shape),
            get=Public(remedy.get(array.ndim, "Name another array with key=")),
        )
    return array


def _as_labels(array: Array, path: pathlib.Path) -> Array:
    """Return an array as labels, or say why it cannot be."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise bad_file(
            path,
            "`labels` have shape (n,) or (n, 1), this is {shape}. Images are read by load_images; of several "
            "labels per image choose one: load_array(...)[:, 0].",
            shape=Public(array.shape),
        )
    return array


def _cifar_records(path: pathlib.Path) -> Array:
    """Map a batch of CIFAR-10's binary version, (n, 3073)."""
    size = path.stat().st_size
    records = None
    if size and size % _CIFAR_RECORD == 0:
        records = np.memmap(path, np.uint8, mode="r", shape=(size // _CIFAR_RECORD, _CIFAR_RECORD))
    if records is None or records[:, 0].max() >= _CIFAR_CLASSES:
        raise bad_file(
            path,
            "it is not a batch of CIFAR-10's binary version, {cifar_record} bytes per image with a label "
            "below {cifar_classes} first. Download it again, or convert it to .npy.",
            cifar_record=Public(_CIFAR_RECORD),
            cifar_classes=Public(_CIFAR_CLASSES),
        )
    return records


def _from_folder(folder: pathlib.Path) -> Array:
    """Read the PNG and JPEG files of a folder into one array; the first one decides about size and colour."""
    pillow = optional_module("PIL.Image", "images", "Reading PNG and JPEG files")
    files = sorted(
        (file for file in folder.iterdir() if file.suffix.lower() in _PICTURES and not file.name.startswith(".")),
        key=lambda file: file.name,
    )
    if not files:
        raise InvalidArgumentError(
            "`path`: the folder {name!r} holds no PNG or JPEG files itself. Name the folder they are in.",
            name=folder.name,
        )
    result: Array | None = None
    for index, file in enumerate(files):
        try:
            with pillow.open(file) as picture:
                shape = _picture_shape(picture, file)
                if result is None:
                    result = np.empty((len(files), *shape), dtype=np.uint8)
                if shape != result.shape[1:]:
                    raise bad_file(
                        file,
                        "its size and colours are {shape}, those of {name} {shape2}. Make all images of one size, all "
                        "gray or all RGB.",
                        shape=Public(shape),
                        name=files[0].name,
                        shape2=Public(result.shape[1:]),
                    )
                result[index] = np.asarray(picture.convert("L" if len(shape) == 2 else "RGB"))
        except InvalidDataError:
            raise
        # SyntaxError and ValueError are what Pillow raises for some broken PNG files.
        except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError):
            raise bad_file(file, "it is damaged, far too large or no PNG or JPEG. Repair or remove it.") from None
    assert result is not None
    return result


def _picture_shape(picture: Any, file: pathlib.Path) -> tuple[int, ...]:
    """Return (h, w) or (h, w, 3), known before any pixel is read."""
    width, height = picture.size
    if picture.mode in _GRAY_MODES:
        return (height, width)
    if picture.mode in _COLOUR_MODES and "transparency" not in picture.info:
        return (height, width, 3)
    raise bad_file(
        file,
        "it is neither 8-bit gray nor RGB without transparency (Pillow's mode {mode!r}). Convert it.",
        mode=Public(picture.mode),
    )


_UNSIGNED_BYTES = 8
_OTHER_TYPES = {9: "int8", 11: "int16", 12: "int32", 13: "float32", 14: "float64"}
_PICKLE = 0x80
_MOST_AXES = 4
_SIZE_FAULT = "its length does not agree with the sizes in its header: it is cut off or damaged. Download it again."


def read_idx(path: pathlib.Path) -> Array:
    """Return the bytes of an idx file with the shape its header states; a memory map unless it is gzipped.

    Everything the header says is held against the length of the file before memory is asked for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train-labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    ...     print(read_idx(path))
    [7 2 1]
    """
    try:
        if path.suffix.lower() != ".gz":
            with path.open("rb") as stream:
                shape = _read_shape(stream, path)
                start = stream.tell()
            size = math.prod(shape)
            if start + size != path.stat().st_size:
                raise bad_file(path, _SIZE_FAULT)
            return np.memmap(path, np.uint8, mode="r", offset=start, shape=shape) if size else np.empty(shape, np.uint8)
        with gzip.open(path, "rb") as packed:
            shape = _read_shape(packed, path)
            size = math.prod(shape)
            values = read_exactly(packed, size) if plausible_size(size, path.stat().st_size) else None
    except (OSError, EOFError, zlib.error):
        raise bad_file(path, "it cannot be unpacked: it is cut off or damaged. Download it again.") from None
    if values is None:
        raise bad_file(path, _SIZE_FAULT)
    return values.reshape(shape)


def _read_shape(stream: Stream, path: pathlib.Path) -> tuple[int, ...]:
    """Read the header: two zeros, a type, the number of axes, and their lengths."""
    magic = stream.read(4)
    if magic[:1] == bytes([_PICKLE]):
        raise bad_file(
            path,
            "it is a Python pickle, which is never opened because that could run any program. "
            "CIFAR-10 also comes as a binary version (.bin).",
        )
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in (_UNSIGNED_BYTES, *_OTHER_TYPES):
        raise bad_file(
            path,
            "it does not begin like an idx file (0, 0, type, axes). Images are read from idx, .npy, .npz, CIFAR-10's "
            ".bin and folders of PNG or JPEG files.",
        )
    if magic[2] in _OTHER_TYPES:
        raise bad_file(
            path,
            "it holds {other_types}, and only unsigned bytes are read. Convert it to .npy.",
            other_types=Public(_OTHER_TYPES[magic[2]]),
        )
    axes = magic[3]
    if not 1 <= axes <= _MOST_AXES:
        raise bad_file(path, "it has {axes} axes; images have 3 or 4, labels 1. Convert it to .npy.", axes=Public(axes))
    lengths = stream.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise bad_file(path, _SIZE_FAULT)
    return struct.unpack(f">{axes}I", lengths)
