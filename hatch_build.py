"""Build hook: compile the native kernels into the package, or say that they were left out.

A machine without a C++ compiler still installs: everything then runs on numpy, more slowly.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("src", "dpmanifold", "linalg", "native")


def load_builder(root: Path) -> ModuleType:
    """Load build.py by path: the package itself cannot be imported before its dependencies are installed."""
    spec = importlib.util.spec_from_file_location("dpmanifold_native_build", root / NATIVE / "build.py")
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{NATIVE / 'build.py'} is missing from the source tree.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class KernelBuildHook(BuildHookInterface):
    """Compile into the wheel; for an editable install, next to the sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library; tag the wheel for this platform if that worked, as pure Python if not.

        `version` is "standard" or "editable". A standard build leaves the source tree alone: it may be read-only, and
        an editable install of another environment may live in it.
        """
        self.place = None
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        builder = load_builder(root)
        editable = version == "editable"
        if not editable:
            self.place = tempfile.mkdtemp(prefix="dpmanifold-")
        library = (root / NATIVE if editable else Path(self.place)) / builder.LIBRARY_NAME
        try:
            builder.build(library)
        except builder.CannotBuildError as problem:
            # A library left by an earlier build may not fit this source: better none.
            library.unlink(missing_ok=True)
            print(
                f"dpmanifold: the native kernels were left out: {problem}. The package works without them, on numpy "
                "and slower. To have them, install a C++ compiler (g++ or clang++, or set CXX) and install again with "
                "pip's options --force-reinstall --no-cache-dir.",
                file=sys.stderr,
            )
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"
        if not editable:
            place = Path("dpmanifold", "linalg", "native", library.name)
            build_data["force_include"][str(library)] = place.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what a standard build needed for a while."""
        if self.place is not None:
            shutil.rmtree(self.place, ignore_errors=True)


def _platform_tag() -> str:
    """Return the platform's wheel tag; the library knows nothing of Python, so any Python 3 will do."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
