"""The image sets of the paper, as they usually lie in a folder, and the descriptors of one class."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.data import descriptors_in_blocks, load_images, load_labels
from dpmanifold_papers.framework import Row, data_file

ETA = 1e-6
CLASSES = 4


@dataclass(frozen=True)
class ImageFile:
    """Where images and their labels stand.

    Attributes
    ----------
    images, labels : files of the data folder; the same one where it holds both
    split : of an archive with several
    """

    images: str
    labels: str
    split: str | None = None

    def there(self, data: pathlib.Path) -> bool:
        """Return whether both files are in the folder."""
        return (data / self.images).is_file() and (data / self.labels).is_file()


def _archive(name: str, split: str | None = None) -> tuple[ImageFile, ...]:
    return (ImageFile(name, name, split),)


def _idx(folder: str) -> list[tuple[ImageFile, ...]]:
    """Return the files of MNIST and its relatives as they are published, gzipped and not."""
    images, labels = f"{folder}/train-images-idx3-ubyte", f"{folder}/train-labels-idx1-ubyte"
    return [(ImageFile(images + end, labels + end),) for end in (".gz", "")]


@dataclass(frozen=True)
class ImageSet:
    """An image set: the ways in which it may be stored, the first of which is asked for; each may be several files."""

    name: str
    options: Sequence[tuple[ImageFile, ...]]
    source: str
    classes: int = CLASSES

    def files(self, data: pathlib.Path | None) -> tuple[ImageFile, ...] | None:
        """Return the files that are there, or None."""
        if data is None:
            return None
        return next((option for option in self.options if all(file.there(data) for file in option)), None)

    @property
    def asked_for(self) -> str:
        """The file a user is told about."""
        return self.options[0][0].images


SETS = {
    one.name: one
    for one in (
        ImageSet("MNIST", [_archive("mnist_train.npz"), *_idx("mnist")], "arrays images and labels; yann.lecun.com"),
        ImageSet(
            "Fashion-MNIST",
            [_archive("fashion_mnist_train_classes0to3.npz"), _archive("fashion_mnist_train.npz"),
             *_idx("fashion-mnist")],
            "arrays images and labels; github.com/zalandoresearch/fashion-mnist",
        ),
        ImageSet("PneumoniaMNIST", [_archive("pneumoniamnist.npz", "train")], "medmnist.com", classes=2),
        ImageSet("OCTMNIST", [_archive("octmnist.npz", "train")], "medmnist.com"),
        ImageSet("PathMNIST", [_archive("pathmnist.npz", "train")], "medmnist.com"),
        ImageSet(
            "KMNIST",
            [(ImageFile("kmnist-train-imgs.npz", "kmnist-train-labels.npz"),), *_idx("kmnist")],
            "codh.rois.ac.jp/kmnist",
        ),
        ImageSet(
            "CIFAR-10",
            [tuple(ImageFile(*2 * [f"cifar-10-batches-bin/data_batch_{i}.bin"]) for i in range(1, 6))],
            "binary version; www.cs.toronto.edu/~kriz/cifar.html",
        ),
    )
}  # fmt: skip
# The ones a full run is expected to have; the others are used where they are.
EXPECTED = ("MNIST", "Fashion-MNIST", "PneumoniaMNIST")


def class_descriptors(name: str, label: int, most: int | None, data: pathlib.Path | None) -> FloatArray | None:
    """Return the covariance descriptors of one class, (n, 9, 9) or (n, 11, 11), the first `most` of them.

    None if the folder does not hold the set, though it holds another one; an error if it holds none.
    """
    chosen = SETS[name]
    files = chosen.files(data)
    if files is None:
        if not any(other.files(data) for other in SETS.values()):
            data_file(data, chosen.asked_for, chosen.source)
        return None
    assert data is not None
    images = [_of_class(str(data), file, label)[:most] for file in files]
    joined = images[0] if len(images) == 1 else np.concatenate(images)
    return descriptors_in_blocks(joined[:most], ETA)


@lru_cache(maxsize=2)
def _labels(data: str, file: ImageFile) -> Array:
    return np.asarray(load_labels(pathlib.Path(data, file.labels), split=file.split))


def _of_class(data: str, file: ImageFile, label: int) -> Array:
    mine = np.flatnonzero(_labels(data, file) == label)
    return load_images(pathlib.Path(data, file.images), split=file.split)[mine]


def missing_row(name: str) -> Row:
    """Return the row of a set that the folder does not hold."""
    return {"dataset": name, "missing": SETS[name].asked_for}


def split_missing(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Return rows of numbers, and the names of the sets that were not there."""
    found = [row for row in rows if not row.get("missing")]
    return found, list(dict.fromkeys(row["dataset"] for row in rows if row.get("missing")))


def absent_note(names: list[str]) -> str:
    """Say which sets were not there, for the end of a caption."""
    if not names:
        return ""
    files = ", ".join(f"{name} ({SETS[name].asked_for})" for name in names)
    return f"; not in the data folder: {files}"
