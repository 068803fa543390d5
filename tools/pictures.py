"""The pictures of the README and of the documentation's first page, drawn by the library from simulated people.

Each is a real release: its noise comes from the operating system, so that another run draws other pictures of the same
kind. Run `python tools/pictures.py` from the root of the repository; it writes docs/images/.
"""

import pathlib

import numpy as np
from matplotlib.figure import Figure

import dpmanifold as dpm

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images"
DOTS_PER_INCH = 150  # 975 pixels wide: sharp at the width of a page, and small as a file
PEOPLE = np.random.default_rng(20)  # simulated people, the same every time; the noise is not seeded

# Ten landmarks of a fish that swims to the left: nose, back, tail, belly.
FISH = np.array(
    [[-1.6, 0.0], [-1.0, 0.45], [-0.2, 0.62], [0.6, 0.4], [1.05, 0.12], [1.75, 0.55],
     [1.75, -0.5], [1.05, -0.12], [0.4, -0.42], [-0.7, -0.42]]
)  # fmt: skip


def directions() -> Figure:
    """300 people point at a target; the release is their mean direction with a 95 % confidence region."""
    space = dpm.Sphere(2)
    people = space.project([0.25, 0.12, 1.0] + 0.17 * PEOPLE.standard_normal((300, 3)))
    ball = dpm.Ball(space, [0.0, 0.0, 1.0], 0.7, source="the screen is seen within 40 degrees of the vertical")
    region = dpm.private_region(people, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    return dpm.plots.sphere(region, points=people)  # simulated, so that they may be shown


def tensors() -> Figure:
    """Return the mean diffusion tensor of white matter in 150 people, ten voxels each."""
    space = dpm.SPD(3)
    own = space.exp_coords(np.diag([1.6, 0.4, 0.4]), 0.2 * PEOPLE.standard_normal((150, 6)))
    voxels = space.exp_coords(np.repeat(own, 10, axis=0), 0.15 * PEOPLE.standard_normal((1500, 6)))
    ball = dpm.Ball(space, 0.7 * np.eye(3), 2.5, source="textbook diffusivities, 1e-3 mm^2/s")
    return dpm.plots.show(dpm.private_region(voxels, ball, dpm.GDP(1.0), units=np.repeat(np.arange(150), 10)))


def shapes() -> Figure:
    """Return the mean outline of 200 fish, ten landmarks each."""
    template = FISH + 0.04 * PEOPLE.standard_normal(FISH.shape)
    ball = dpm.Ball(dpm.KendallShapes(10), template, 0.25, source="published template of the genus")
    outlines = FISH + 0.07 * PEOPLE.standard_normal((200, *FISH.shape))
    return dpm.plots.show(dpm.private_region(outlines, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))


def plan() -> Figure:
    """Draw what a mean of 400 people's tensors would be worth, before any data are touched."""
    ball = dpm.Ball(dpm.SPD(3), 0.7 * np.eye(3), 2.5, source="textbook diffusivities, 1e-3 mm^2/s")
    return dpm.plots.show(dpm.plan_mean(400, ball, dpm.ApproxDP(1.0, 1e-6)))


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    for draw in (directions, tensors, shapes, plan):
        draw().savefig(FOLDER / f"{draw.__name__}.png", dpi=DOTS_PER_INCH, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
