"""`python -m dpmanifold.cli` is the command `dpm`."""

from dpmanifold.cli import app

app(prog_name="dpm")
