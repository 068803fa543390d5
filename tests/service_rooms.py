"""A service in a folder: three people, a population, and records of which some are registered."""

import pathlib
from unittest import mock

import numpy as np

from dpmanifold import GDP, SPD, Ball
from dpmanifold.service import accounts
from dpmanifold.service.service import Service
from dpmanifold.service.settings import Settings

PASSWORD = "four words of no sense"
PEOPLE = {"ada": "analyst", "bob": "analyst", "sam": "steward", "ann": "auditor"}
BALL = Ball(SPD(2), np.eye(2), 2.0, source="an atlas")


def settings_in(folder, **environ):
    """Settings of a service in a folder, some of them as the environment would say them."""
    path = pathlib.Path(folder) / "dpm-service.toml"
    Settings.write_example(path)
    return Settings.read(path, environ)


def service_in(folder, **environ):
    """A service with an account of each role, and another analyst."""
    with mock.patch.multiple(accounts, ROUNDS=1, MEMORY=8, LANES=1):  # what is tested is not how long hashing takes
        service = Service.create(settings_in(folder, **environ))
    for name, role in PEOPLE.items():
        service.accounts.add(name, role, PASSWORD)
    return service


def desk_of(service, name):
    return service.desk(service.accounts.find(name))


def tensors(n, seed=0):
    """Records near the centre of the ball."""
    rng = np.random.default_rng(seed)
    parts = 0.2 * rng.standard_normal((n, 2, 2))
    return np.eye(2) + parts @ parts.swapaxes(1, 2)


def furnish(service, n=60):
    """A population of people with a registered data set by class and by age, and a grant for ada; nothing for bob."""
    sam = desk_of(service, "sam")
    sam.make_population("cohort", GDP("2"), "participant")
    records, people = tensors(2 * n), [f"person-{number // 2}" for number in range(2 * n)]
    labels = ["left" if number % 4 < 2 else "right" for number in range(2 * n)]
    service.ledger.population("cohort").register(
        "dti", records, BALL, units=people, labels=labels, classes=["left", "right"], invalid="center",
        covariate=np.linspace(20, 80, 2 * n), covariate_range=(0.0, 100.0),
    )  # fmt: skip
    sam.grant("cohort", "ada", GDP("1"), "the study")
    return service


def write_tensors(service, n, **more):
    """Records below the root, as a steward would put them there: tensors.npy, or tensors.npz with what goes along."""
    root = service.settings.root
    if not more:
        np.save(root / "tensors.npy", tensors(n))
    else:
        np.savez(root / "tensors.npz", records=tensors(n), **{name: np.asarray(value) for name, value in more.items()})
