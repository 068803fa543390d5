"""From files and raw data to points of a space, and the public balls that hold them whatever the data are."""

from dpmanifold.data.blocks import descriptors_in_blocks, iter_blocks
from dpmanifold.data.coordinates import from_coordinates
from dpmanifold.data.dataset import Dataset
from dpmanifold.data.descriptor_ball import descriptor_ball
from dpmanifold.data.descriptors import covariance_descriptors
from dpmanifold.data.eeg import drop_reference, eeg_ball, eeg_covariances, remove_average_reference
from dpmanifold.data.formats import LOADERS, open_file
from dpmanifold.data.frames import from_frame
from dpmanifold.data.images import load_images, load_labels
from dpmanifold.data.inspection import FileFound, Inspection, inspect_files
from dpmanifold.data.iterators import from_blocks
from dpmanifold.data.landmarks import load_landmarks, specimen_column
from dpmanifold.data.loaders import as_records, load_array, load_column
from dpmanifold.data.nifti import load_tensors
from dpmanifold.data.opened import DataFile
from dpmanifold.data.readers import READERS
from dpmanifold.data.tables import Table

__all__ = [
    "LOADERS",
    "READERS",
    "DataFile",
    "Dataset",
    "FileFound",
    "Inspection",
    "Table",
    "as_records",
    "covariance_descriptors",
    "descriptor_ball",
    "descriptors_in_blocks",
    "drop_reference",
    "eeg_ball",
    "eeg_covariances",
    "from_blocks",
    "from_coordinates",
    "from_frame",
    "inspect_files",
    "iter_blocks",
    "load_array",
    "load_column",
    "load_images",
    "load_labels",
    "load_landmarks",
    "load_tensors",
    "open_file",
    "remove_average_reference",
    "specimen_column",
]
