"""Compile the native kernels with the system's compiler: used by the package's build, and by hand.

`python src/dpmanifold/linalg/native/build.py` builds them in place. Imports nothing of the package and nothing
outside the standard library, because it runs before either is installed.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"

_SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
LIBRARY_NAME = f"libdpmanifold_kernels{_SUFFIX}"

# No -ffast-math: results must be those of the source. Contracting a*b + c is allowed because every lane of every
# block runs the same instructions, so it cannot make a result depend on where a matrix sits.
_FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fvisibility=hidden"]
_X86_LEVELS = {"level_avx2": ["-mavx2", "-mfma"], "level_avx512": ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mfma"]}


class CannotBuildError(RuntimeError):
    """No compiler, or one that failed; the text says which and what it said."""


def find_compiler() -> list[str]:
    """Return the C++ compiler's command: $CXX if set, else c++, g++ or clang++ from the path."""
    if sys.platform == "win32":
        raise CannotBuildError("they have not been tried on Windows")
    chosen = os.environ.get("CXX", "").strip()
    if chosen:
        try:
            command = shlex.split(chosen)
        except ValueError as problem:
            raise CannotBuildError(f"CXX is not a command, {chosen!r}: {problem}") from problem
        if shutil.which(command[0]) is None:
            raise CannotBuildError(f"the compiler named by CXX, {chosen!r}, was not found")
        return command
    for name in ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found]
    raise CannotBuildError("no C++ compiler was found (looked at CXX, c++, g++ and clang++)")


def build(target: Path | None = None, extra: Sequence[str] = ()) -> Path:
    """Compile the library to `target` (next to this file by default) and return where it is.

    Parameters
    ----------
    target : path of the library
    extra : further compiler flags, such as those of a sanitizer
    """
    target = HERE / LIBRARY_NAME if target is None else target
    compiler = find_compiler()
    levels = _X86_LEVELS if platform.machine().lower() in ("x86_64", "amd64") else {}
    flags = [
        *_FLAGS,
        "-fPIC",
        *(["-DDPM_X86_LEVELS"] if levels else []),
        *extra,
    ]
    with tempfile.TemporaryDirectory() as place:
        objects, running = [], []
        for name in ("dispatch", "level_baseline", *levels):
            output = str(Path(place) / f"{name}.o")
            command = [*compiler, *flags, *levels.get(name, []), "-c", str(SOURCES / f"{name}.cpp"), "-o", output]
            running.append((command, _start(command)))
            objects.append(output)
        outputs = [process.communicate()[0] for _, process in running]  # all of them, also if the first one failed
        for (command, process), output in zip(running, outputs, strict=True):
            _check(command, process.returncode, output)
        library = str(Path(place) / LIBRARY_NAME)
        command = [*compiler, *extra, "-shared", "-pthread", *objects, "-o", library]
        linking = _start(command)
        output = linking.communicate()[0]
        _check(command, linking.returncode, output)
        _put(library, target)
    return target


def _put(library: str, target: Path) -> None:
    """Move into place in one step: a process that has the old library open keeps it whole, and builds do not mix."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        number, fresh = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        os.close(number)
        try:
            shutil.copyfile(library, fresh)
            os.chmod(fresh, 0o755)
            os.replace(fresh, target)
        except OSError:
            os.unlink(fresh)
            raise
    except OSError as problem:
        raise CannotBuildError(f"the library could not be written to {target.parent}: {problem}") from problem


def _start(command: list[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as problem:
        raise CannotBuildError(f"{command[0]} could not be started: {problem}") from problem


def _check(command: list[str], code: int, output: str) -> None:
    if code != 0:
        tail = "\n".join(output.strip().splitlines()[-20:])
        raise CannotBuildError(f"{shlex.join(command)} failed with code {code}:\n{tail}")


if __name__ == "__main__":
    try:
        print(build(extra=sys.argv[1:]))
    except CannotBuildError as problem:
        sys.exit(f"the native kernels were not built: {problem}")
