"""A private mean of diffusion tensors: planned, released, checked. They are simulated, so errors may be shown."""

import numpy as np
from rich.console import Console

import dpmanifold as dpm


def simulated_tensors(people: int, per_person: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Diffusion tensors (in 1e-3 mm^2/s) of white matter along one fibre, several voxels per person."""
    space = dpm.SPD(3, metric="riemann")
    typical = np.diag([1.7, 0.4, 0.3])
    person = space.exp_coords(typical, 0.25 * rng.standard_normal((people, 6)))
    base = np.repeat(person, per_person, axis=0)
    voxels = space.exp_coords(base, 0.15 * rng.standard_normal((len(base), 6)))
    return space.project(voxels), np.repeat(np.arange(people), per_person)


def main() -> None:
    console = Console()
    people = 400
    tensors, person = simulated_tensors(people, 5, np.random.default_rng(7))
    ball = dpm.Ball(dpm.SPD(3), center=0.7 * np.eye(3), radius=2.5, source="textbook diffusivities, 1e-3 mm^2/s")
    privacy = dpm.GDP(1.0)
    console.print(f"{len(tensors)} simulated diffusion tensors of {people} people.\n")
    plan = dpm.plan_mean(people, ball, privacy, refine=True, fill=0.3)
    console.print(plan.table())
    console.print("\n".join(plan.sentences()) + "\n", highlight=False)
    mean = dpm.frechet.mean(tensors, ball.space, units=person).value
    console.print(f"Returning the ball's centre would be off by {ball.space.dist(ball.center, mean):.3f}.\n")
    for refine in (False, True):
        release = dpm.private_mean(tensors, ball, privacy, units=person, refine=refine)
        console.rule("with a ball found privately" if release.clipping else "with the public ball")
        console.print(release, highlight=False)
        truth = dpm.compare(release, tensors, units=person, public=True)
        console.print(f"  true error   {truth.error:.3f} (the data are simulated: on real data nobody may look)\n")
    console.print(dpm.verify(release), highlight=False)


if __name__ == "__main__":
    main()
