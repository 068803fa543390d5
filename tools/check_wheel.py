"""Check an installed wheel: the kernels are in it, run at every level of this machine, and agree with numpy.

For wheels that are to be handed out; an install from source may do without the kernels, and says so.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np

import dpmanifold
from dpmanifold import linalg

# Relative to the largest entry. The logarithms of these matrices are known to a few units in the last place.
TOLERANCE = 1e-12


def main() -> None:
    """Exit with a sentence if something is missing or wrong."""
    place = pathlib.Path(dpmanifold.__file__).parent
    if not linalg.available():
        sys.exit(f"{place}: the wheel has no kernels, or they cannot be loaded.")
    generator = np.random.default_rng(1)
    for k in (2, 3, 9, 30):
        factors = generator.standard_normal((100, k, k))
        matrices = factors @ factors.swapaxes(1, 2) + np.eye(k)
        with linalg.backend("numpy"):
            expected = linalg.logm(matrices)
        for name in linalg.backends():
            with linalg.backend(name):
                error = np.abs(linalg.logm(matrices) - expected).max() / np.abs(expected).max()
            if not error <= TOLERANCE:
                sys.exit(f"{name}: logarithms of {k} x {k} matrices are off by {error:.1e}.")
    version = subprocess.run([sys.executable, "-m", "dpmanifold.cli", "--version"], check=True, capture_output=True)
    print(version.stdout.decode().strip(), "from", place, "with", ", ".join(linalg.backends()))


if __name__ == "__main__":
    main()
