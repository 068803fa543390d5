"""Print the lower bounds that pyproject.toml declares as constraints for pip: numpy==1.26, ...

`make test-lowest` installs exactly these and runs the tests, so that a bound is a version that was seen to work.
"""

from __future__ import annotations

import pathlib
import re
import tomllib

PROJECT = pathlib.Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[[^\]]*\])?(?P<bound>>=[0-9.]+)?")


def lower_bounds(project: pathlib.Path = PROJECT) -> list[str]:
    """Return one line name==bound for everything that the package, its extras and its build ask for.

    Raises
    ------
    ValueError : a requirement has no lower bound, another form, or a second bound that disagrees
    """
    settings = tomllib.loads(project.read_text(encoding="utf-8"))
    package = settings["project"]
    groups = [package["dependencies"], *package["optional-dependencies"].values(), settings["build-system"]["requires"]]
    bounds: dict[str, str] = {}
    for requirement in (entry for group in groups for entry in group):
        found = REQUIREMENT.fullmatch(requirement.replace(" ", ""))
        if found is None:
            raise ValueError(f"{requirement!r} in {project.name} is not of the form name>=bound.")
        if found["name"] == package["name"]:  # an extra that names other extras
            continue
        if found["bound"] is None:
            raise ValueError(f"{requirement!r} in {project.name} has no lower bound. Write name>=bound.")
        bound = found["bound"].removeprefix(">=")
        if bounds.setdefault(found["name"].lower(), bound) != bound:
            raise ValueError(f"{found['name']} has two lower bounds in {project.name}. Write the same one twice.")
    return [f"{name}=={bound}" for name, bound in sorted(bounds.items())]


if __name__ == "__main__":
    print(*lower_bounds(), sep="\n")
