"""From files and raw data to points of a space, and the public balls that hold them whatever the data are."""

from dpmanifold.data._files import DataFile
from dpmanifold.data.bids import from_bids, is_bids
from dpmanifold.data.connectivity import correlation_ball, from_connectivity
from dpmanifold.data.coordinates import from_coordinates, to_coordinates
from dpmanifold.data.dataset import Dataset
from dpmanifold.data.descriptors import covariance_descriptors, descriptor_ball, descriptors_in_blocks, iter_blocks
from dpmanifold.data.eeg import drop_reference, eeg_ball, eeg_covariances, remove_average_reference
from dpmanifold.data.formats import LOADERS, as_records, load_array, load_column, open_file
from dpmanifold.data.frames import from_frame
from dpmanifold.data.image_source import from_tensorfit
from dpmanifold.data.images import load_images, load_labels
from dpmanifold.data.inspection import FileFound, Inspection, inspect_files
from dpmanifold.data.landmarks import landmark_links, load_landmarks, specimen_column
from dpmanifold.data.mne_epochs import EpochsSource, from_epochs, from_epochs_files
from dpmanifold.data.nifti import from_nifti, load_tensors
from dpmanifold.data.readers import READERS
from dpmanifold.data.selection import Selection
from dpmanifold.data.steady import from_blocks, from_zarr
from dpmanifold.data.study import Study
from dpmanifold.data.table_files import Table

__all__ = [
    "LOADERS",
    "READERS",
    "DataFile",
    "Dataset",
    "EpochsSource",
    "FileFound",
    "Inspection",
    "Selection",
    "Study",
    "Table",
    "as_records",
    "correlation_ball",
    "covariance_descriptors",
    "descriptor_ball",
    "descriptors_in_blocks",
    "drop_reference",
    "eeg_ball",
    "eeg_covariances",
    "from_bids",
    "from_blocks",
    "from_connectivity",
    "from_coordinates",
    "from_epochs",
    "from_epochs_files",
    "from_frame",
    "from_nifti",
    "from_tensorfit",
    "from_zarr",
    "inspect_files",
    "is_bids",
    "iter_blocks",
    "landmark_links",
    "load_array",
    "load_column",
    "load_images",
    "load_labels",
    "load_landmarks",
    "load_tensors",
    "open_file",
    "remove_average_reference",
    "specimen_column",
    "to_coordinates",
]
