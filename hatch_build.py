"""Build hook: compile the native kernels into the package, or say that they were left out.

A machine without a C++ compiler still installs: everything then runs on numpy, more slowly.
"""

from __future__ import annotations

import importlib.util
import sys
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
    """Compile in place, which serves editable installs as well, and put the library into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library; tag the wheel for this platform if that worked, as pure Python if not.

        `version` is "standard" or "editable".
        """
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        builder = load_builder(root)
        library = root / NATIVE / builder.LIBRARY_NAME
        try:
            builder.build(library)
        except builder.CannotBuildError as problem:
            # A library left by an earlier build may not fit this source: better none.
            library.unlink(missing_ok=True)
            message = (
                f"dpmanifold: the native kernels were left out: {problem}. The package works without them, on numpy "
                "and slower. To have them, install a C++ compiler (g++ or clang++, or set CXX) and reinstall."
            )
            self.app.display_warning(message)
            print(message, file=sys.stderr)
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"
        if version != "editable":  # which finds the library where it was built
            place = Path("dpmanifold", "linalg", "native", library.name)
            build_data["force_include"][str(library)] = place.as_posix()


def _platform_tag() -> str:
    """Return the platform's wheel tag; the library knows nothing of Python, so any Python 3 will do."""
    import sysconfig

    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
