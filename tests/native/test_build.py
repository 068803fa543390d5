"""How the package is built: with the kernels, without a compiler, and so that PYTHONPATH chooses the checkout."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dpmanifold.linalg.native import library

ROOT = Path(__file__).resolve().parents[2]
NATIVE = Path("src", "dpmanifold", "linalg", "native")
BUILD = "from scikit_build_core import build; getattr(build, 'build_{}')('{}')"

pytest.importorskip("scikit_build_core")


@pytest.fixture
def source(tmp_path):
    """A copy of what is built, with a library of earlier sources in it."""
    copy = tmp_path / "source"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("libdpm*", "__pycache__"))
    for name in ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    (copy / NATIVE / library.LIBRARY_NAME).write_bytes(b"old")
    return copy


def build(source, kind, **environment):
    """Build a wheel with the backend; returns what was said and the wheel's name and files."""
    wheels = source.parent / "wheels"
    wheels.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind, wheels)],
        cwd=source,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        return done.stdout + done.stderr, wheel.name, {name: archive.read(name) for name in archive.namelist()}


def in_wheel(name):
    return (NATIVE / name).relative_to("src").as_posix()


def failing_compiler(tmp_path):
    script = tmp_path / "c++"
    script.write_text("#!/bin/sh\necho cannot compile today >&2\nexit 1\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [True, False], ids=["no compiler", "one that fails"])
def test_a_wheel_without_a_compiler_is_pure_and_says_what_it_lacks(source, tmp_path, missing):
    compiler = "no-such-compiler" if missing else failing_compiler(tmp_path)
    said, name, files = build(source, "wheel", CXX=compiler)
    assert "native kernels were left out" in said
    assert ("no-such-compiler" if missing else "cannot compile today") in said
    assert "--force-reinstall" in said
    assert name.endswith("py3-none-any.whl")
    assert in_wheel("library.py") in files
    assert in_wheel(library.LIBRARY_NAME) not in files
    assert (source / NATIVE / library.LIBRARY_NAME).read_bytes() == b"old"  # the source tree is left alone
    assert not (source / "build").exists()


def test_an_editable_install_without_a_compiler_works_and_removes_an_old_library(source):
    said, _, files = build(source, "editable", CXX="no-such-compiler")
    assert "native kernels were left out" in said
    assert files["dpmanifold_checkout.pth"].decode().strip() == str(source / "src")
    assert not (source / NATIVE / library.LIBRARY_NAME).exists()


def test_pythonpath_goes_before_an_editable_install(tmp_path):
    """Who works on several checkouts with one environment gets the one that was named."""
    (tmp_path / "dpmanifold").mkdir()
    (tmp_path / "dpmanifold" / "__init__.py").write_text("")
    code = "import dpmanifold; print(dpmanifold.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)


def test_every_source_file_is_built():
    named = set(re.findall(r"\$\{NATIVE\}/src/(\w+\.cpp)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")))
    assert named == {file.name for file in (ROOT / NATIVE / "src").glob("*.cpp")}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no compiler")
def test_a_wheel_carries_the_library_and_the_sources_for_cards_alone(source, tmp_path):
    """Compiled without optimisation, which takes a minute and which the environment of these tests was built with."""
    recipe = source / "CMakeLists.txt"
    flags = recipe.read_text(encoding="utf-8")
    assert flags.count(" -O3 ") == 1
    recipe.write_text(flags.replace(" -O3 ", " -O0 "), encoding="utf-8")
    _, name, files = build(source, "wheel")
    assert "-py3-none-" in name
    assert not name.endswith("any.whl")
    assert not [file for file in files if file.endswith((".cpp", ".pth"))]
    for needed in ("card.cu", "card_images.cu", "team.hpp", "poles.inc"):  # compiled where the card is
        assert in_wheel(f"src/{needed}") in files
    found = tmp_path / library.LIBRARY_NAME
    found.write_bytes(files[in_wheel(library.LIBRARY_NAME)])
    assert library.load(found) is not None
