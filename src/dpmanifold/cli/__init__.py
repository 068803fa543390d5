"""The command `dpm`: a thin shell over the library. It prints nothing that depends on private data."""

from dpmanifold.cli.main import app

__all__ = ["app"]
