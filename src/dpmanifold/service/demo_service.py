"""A service to try out: three people, and data that are public anyway, in a folder that can be thrown away.

The data are scikit-learn's images of handwritten digits, each as the covariance matrix of what its pixels show: a
symmetric positive definite matrix, as a diffusion tensor and the connectivity of a brain are.
"""

from __future__ import annotations

import pathlib
import secrets
import socket
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpmanifold import data
from dpmanifold._check import optional_module
from dpmanifold.ball import Ball
from dpmanifold.data.specifications import EACH
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import GDP
from dpmanifold.service import registering
from dpmanifold.service.service import Service
from dpmanifold.service.settings import Settings

CONFIG = "dpm-service.toml"
PEOPLE = {"ada": "analyst", "sam": "steward", "ann": "auditor"}
POPULATION, DATASET, FILE = "digits", "descriptors", "digits/descriptors.npz"
_CENTER = "digits/center.npy"
CAP, GRANT = GDP("3"), GDP("2")
_ETA = 1e-3  # as in dpm demo: below it nothing of digits is worth keeping
_NOTE = (
    "1,797 images of handwritten digits (UCI, in scikit-learn), each as the covariance matrix of position, intensity "
    "and gradients: points of the space that diffusion tensors and connectivity matrices are in. They are public, and "
    "protected here as if they were not. The covariate is the share of ink."
)
_SLOT = 3.0  # seconds: nobody waits long in a demonstration

_SETTINGS = """\
# A demonstration of dpm service run, with public data.
[service]
title = "dpmanifold demo"
database = "state/service.db"

[web]
host = "127.0.0.1"
port = {port}
url = "http://127.0.0.1:{port}"

[ledger]
database = "state/ledger.db"
witness = "witness/ledger.witness"
secret = "vault/ledger.key"

[records]
root = "records"
vault = "vault"

[worker]
slot = {slot}
"""


@final
@dataclass(frozen=True)
class Demo:
    """What was set up.

    Attributes
    ----------
    config : the settings' file
    url : where to go
    passwords : by name; empty for a demonstration that was there already, whose passwords nobody keeps
    """

    config: pathlib.Path
    url: str
    passwords: dict[str, str]


def set_up(folder: pathlib.Path, port: int | None = None) -> Demo:
    """Set a demonstration up in a folder, or find the one that is there.

    Parameters
    ----------
    folder : an empty one or a new one, or one of an earlier demonstration
    port : of 127.0.0.1; a free one where it is not given
    """
    config = folder / CONFIG
    if config.exists():
        return Demo(config, Settings.read(config).url, {})
    if folder.exists() and any(folder.iterdir()):
        raise InvalidArgumentError(
            f"{folder} holds something else than a demonstration. Give an empty or a new folder."
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with config.open("x", encoding="utf-8") as file:
        file.write(_SETTINGS.format(port=port or _free_port(), slot=_SLOT))
    settings = Settings.read(config)
    with Service.create(settings) as service:
        passwords = {name: secrets.token_urlsafe(12) for name in PEOPLE}
        for name, role in PEOPLE.items():
            service.accounts.add(name, role, passwords[name])
        _furnish(service)
    return Demo(config, settings.url, passwords)


def _furnish(service: Service) -> None:
    """Register the data and grant a part of them, as a steward would."""
    ball = _write_records(service.settings.root)
    sam = service.accounts.find("sam")
    assert sam is not None
    desk = service.desk(sam)
    desk.make_population(POPULATION, CAP, "image")
    request: dict[str, Any] = {
        "path": FILE, "array": "descriptors", "space": repr(ball.space), "units": EACH,
        "radius": repr(float(ball.radius)), "center": _CENTER, "source": ball.source, "labels": "digit",
        "classes": [str(digit) for digit in range(10)], "labels_public": True, "covariate": "ink",
        "covariate_range": [0, 1],
    }  # fmt: skip
    asked = desk.register(POPULATION, DATASET, request)
    registering.registered(service, asked.id)
    found = desk.registration(asked.id)
    if found.state != "done":  # they are public
        raise InvalidArgumentError(f"the demonstration's data cannot be registered: {found.message}")
    desk.set_terms(f"{POPULATION}/{DATASET}", approval=False, slot=None, note=_NOTE)
    desk.grant(POPULATION, "ada", GRANT, "to try it out")


def _write_records(root: pathlib.Path) -> Ball:
    """Write the images' descriptors, their digits and how much ink they have; return the ball that holds them all."""
    digits = optional_module("sklearn.datasets", "all", "the demonstration").load_digits()
    images = digits.images / 16.0
    ball = data.descriptor_ball("gray", _ETA, image_size=(8, 8))
    target = root / FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    ink = images.mean(axis=(1, 2))
    np.savez(target, descriptors=data.descriptors_in_blocks(images, _ETA), digit=digits.target, ink=ink)
    np.save(root / _CENTER, np.asarray(ball.center))
    return ball


def _free_port() -> int:
    """Return 8000 if it is free, as people expect; else any that is."""
    for wanted in (8000, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise InvalidArgumentError("no port of 127.0.0.1 is free.")
