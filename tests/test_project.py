"""What pyproject.toml declares: every requirement has a lower bound, which `make test-lowest` can install."""

import importlib.util
import pathlib
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def lower_bounds():
    spec = importlib.util.spec_from_file_location("lower_bounds", ROOT / "tools" / "lower_bounds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lower_bounds


@pytest.fixture
def project(tmp_path):
    def write(dependencies, extra=("numpy>=1.26",)):
        quoted = [", ".join(f'"{entry}"' for entry in entries) for entries in (dependencies, extra)]
        path = tmp_path / "pyproject.toml"
        path.write_text(
            f'[build-system]\nrequires = ["builder>=1.27"]\n[project]\nname = "us"\ndependencies = [{quoted[0]}]\n'
            f"[project.optional-dependencies]\nextra = [{quoted[1]}]\n"
        )
        return path

    return write


def test_every_requirement_of_ours_becomes_one_constraint(lower_bounds):
    lines = lower_bounds()
    names = [line.split("==")[0] for line in lines]
    assert names == sorted(set(names))
    assert {
        "numpy",
        "scipy",
        "typer",
        "rich",
        "matplotlib",
        "pytest",
        "scikit-build-core",
        "hatchling",
        "mkdocs",
    } <= set(names)
    assert not {"dpmanifold", "dpmanifold-papers"} & set(names)


def test_extras_and_ourselves_are_left_out(lower_bounds, project):
    assert lower_bounds(project(["scipy >= 1.11.1"], ["us[all]", "tool[python]>=0.26"])) == [
        "builder==1.27",
        "scipy==1.11.1",
        "tool==0.26",
    ]


@pytest.mark.parametrize(
    ("dependencies", "reason"),
    [
        (["scipy"], "no lower bound"),
        (["scipy>1.11"], "not of the form"),
        (["scipy>=1.11,<2"], "not of the form"),
        (["numpy>=2.0"], "two lower bounds"),
    ],
)
def test_a_requirement_that_cannot_be_tested_is_refused(lower_bounds, project, dependencies, reason):
    with pytest.raises(ValueError, match=reason):
        lower_bounds(project(dependencies))


def test_the_oldest_python_is_one_that_is_tested():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tested = [
        line.rsplit(" ", 1)[1]
        for line in package["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert package["requires-python"] == f">={tested[0]}"
