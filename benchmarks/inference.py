"""Coverage and size of private regions, intervals and tests, beside the formulas of Jiang, Chang and Hu (2025).

Run: python benchmarks/inference.py [repetitions]; the default 1000 takes half an hour on two cores. With DPM_DATA set
to a folder that holds planar_landmarks.npz, the shapes are ape skulls; without it a population made up here.
"""

from __future__ import annotations

import math
import sys

import levels
import numpy as np

from dpmanifold_papers import coverage, jiang2025


def paper_tables(repetitions: int) -> None:
    mus = (*jiang2025.MU, math.inf)
    print(f"Coverage at 95 %, n = 600, {repetitions} repetitions; Monte Carlo error {0.218 / repetitions**0.5:.3f}")
    for name in jiang2025.DATA:
        table = jiang2025.coverage_table(name, repetitions, mus)
        for what, first in (("mean", 0), ("variance", 3)):
            print(f"\n{name}, {what}   (last column: without privacy)")
            print("mu                ", *(f"{mu:8g}" for mu in mus))
            print("coverage, paper   ", *(f"{x:8.3f}" for x in jiang2025.PAPER[name, what]))
            for title, offset in (("theirs", 0), ("ours", 6)):
                print(f"coverage, {title:<8}", *(f"{x:8.3f}" for x in table[:, first + offset]))
            width = "radius" if what == "mean" else "half width"
            print(f"{width + ', theirs':<18}", *(f"{x:8.5f}" for x in table[:, first + 1]))
            print(f"{width + ', ours':<18}", *(f"{x:8.5f}" for x in table[:, first + 7]))
            print(f"{'ratio':<18}", *(f"{x:8.3f}" for x in table[:, first + 7] / table[:, first + 1]))
            print(f"{'MD, theirs':<18}", *(f"{x:8.5f}" for x in table[:, first + 2]))
            print(f"{'MD, ours':<18}", *(f"{x:8.5f}" for x in table[:, first + 8]), flush=True)


def harder_cases(repetitions: int) -> None:
    print("\nCoverage of regions elsewhere, n = 600: mu, coverage, effective radius, share that is for privacy")
    for name in coverage.CASES:
        for mu in (0.1, 0.3, 1.0, 3.0):
            found = coverage.region_coverage(name, mu, repetitions).mean(axis=0)
            print(f"{name:<28} {mu:5g} {found[0]:8.3f} {found[1]:9.4f} {found[2]:7.2f}", flush=True)


def two_sample(repetitions: int) -> None:
    print("\nTwo-sample test at 5 %, 300 units in each group: share of rejections")
    shifts = coverage.SHIFTS
    for name in coverage.GROUPS:
        print(f"{name}: shift        ", *(f"{shift:7.2f}" for shift in shifts))
        rates = coverage.rejections(name, math.inf, repetitions, shifts)
        print("  Hotelling, no privacy ", *(f"{rate:7.3f}" for rate in rates))
        for mu in (0.3, 1.0, 3.0):
            rates = coverage.rejections(name, mu, repetitions, shifts)
            print(f"  mu = {mu:<18g}", *(f"{rate:7.3f}" for rate in rates), flush=True)


def every_level(repetitions: int) -> None:
    print("\nMisses and rejections over what the level allows, where noise on the covariance counts most; n = 1000")
    print("                              ", *(f"{level:7g}" for level in levels.LEVELS))
    sizes = [1 - level for level in levels.LEVELS]
    for d, relative, stretch in ((1, 0.25, 2.6), (2, 0.25, 1.8), (6, 0.15, 1.5)):
        for mu in (1.0, 10.0):
            data = levels.NormalData(d, mu, relative, 1)
            missed = levels.excess_misses(data, levels.LEVELS, repetitions)
            print(f"regions, d = {d}, mu = {mu:<12g}", *(f"{x:7.2f}" for x in missed), flush=True)
            rejected = levels.excess_rejections(data, sizes, 4 * repetitions, stretch)
            print(f"p-values, d = {d}, mu = {mu:<11g}", *(f"{x:7.2f}" for x in rejected), flush=True)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    np.set_printoptions(precision=4, suppress=True)
    paper_tables(wanted)
    harder_cases(wanted)
    two_sample(wanted)
    every_level(wanted)
