"""From images to private class means in one command: time and memory.

Run: python benchmarks/images.py FILE.npz (arrays `images` and `labels`, classes 0 to 9), for instance MNIST's 60,000
training images. Without a file 60,000 images of noise stand in.
"""

from __future__ import annotations

import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else noise(pathlib.Path(folder) / "noise.npz")
        words = f"class-means {path} --images --key images --labels labels --classes 0..9 --units each-record".split()
        words += f"--epsilon 0.5 --delta 1e-5 --refine --out {folder}/means".split()
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dpmanifold.cli", *words], check=True)
        elapsed = time.perf_counter() - started
    # Linux counts kilobytes.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{elapsed:.1f} s, peak memory {peak:.0f} MB")


def noise(path: pathlib.Path) -> pathlib.Path:
    images = np.random.default_rng(0).integers(0, 256, (60_000, 28, 28), dtype=np.uint8)
    np.savez(path, images=images, labels=np.arange(60_000) % 10)
    return path


if __name__ == "__main__":
    main()
