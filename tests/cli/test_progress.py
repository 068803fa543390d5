"""Bars: one display after a moment, on terminals and in notebooks, and nothing anywhere else."""

import concurrent.futures
import subprocess
import sys
import threading
import time
import types

import pytest
import rich.console

from cli.terminal import on_terminal
from dpmanifold import progress

# The room alone, which imports nothing of the library: a process starts in a moment.
HASTE = f"""
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("progress", {progress.__file__!r})
progress = importlib.util.module_from_spec(spec)
sys.modules["progress"] = progress
spec.loader.exec_module(progress)
progress._PATIENCE = 0.05
"""
NESTED = """
with progress.bar("clipping and solving"):
    time.sleep(0.5)
    for part in range(2):
        with progress.bar("reading", 7) as advance:
            advance(3)
            time.sleep(0.4)
            if part == 1:
                print("to the curator", file=sys.stderr)
    print("a result")
    time.sleep(0.3)
print("afterwards")
"""


@pytest.fixture(scope="module")
def nested():
    """What a terminal behind stderr alone saw."""
    return on_terminal(HASTE + NESTED)


@pytest.mark.slow
def test_a_bar_inside_another_takes_its_place_and_passes_are_numbered(nested):
    seen = nested
    assert seen.code == 0
    states = [line for line in seen.text.split("\n") if line.strip()]
    shown = [word for line in states for word in ("clipping", "reading ", "pass 2") if word in line]
    order = [word for place, word in enumerate(shown) if place == 0 or shown[place - 1] != word]
    assert order == ["clipping", "reading ", "pass 2", "clipping"]
    assert states.count("to the curator") == 1
    assert "3/7" in seen.text
    assert not any("clipping" in line and "reading" in line for line in states)  # one line, never two
    assert max(len(line) for line in states) <= 80


@pytest.mark.slow
def test_what_goes_to_stdout_stays_there_while_a_bar_is_shown(nested):
    assert nested.stdout == "a result\nafterwards\n"
    both = on_terminal(HASTE + NESTED, stdout=True)
    assert both.text.count("a result") == 1
    assert "reading" in both.text


def test_a_terminal_is_as_it_was_when_the_bar_is_done(nested):
    raw = nested.raw
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l")  # the cursor is back
    assert raw.endswith("\x1b[2K")  # the line is wiped


@pytest.mark.slow
def test_stderr_is_known_for_a_terminal_behind_a_bar():
    code = 'with progress.bar("work"):\n    time.sleep(0.5)\n    print(progress.on_a_terminal())'
    assert on_terminal(HASTE + code).stdout == "True\n"
    piped = subprocess.run([sys.executable, "-c", HASTE + code], capture_output=True, check=True)
    assert (piped.stdout, piped.stderr) == (b"False\n", b"")


SILENT = {
    "soon done": 'progress._PATIENCE = 5.0\nwith progress.bar("work"): time.sleep(0.2)',
    "quietly": 'with progress.quietly(), progress.bar("work"): time.sleep(0.5)',
    "quietly outside": 'with progress.quietly(), progress.quietly(False), progress.bar("work"): time.sleep(0.5)',
    "another thread": """
import threading
def inside():
    with progress.bar("INSIDE", 3): time.sleep(0.5)
with progress.bar("work"):
    one = threading.Thread(target=inside); one.start(); one.join()
""",
}


@pytest.fixture(scope="module")
def silent():
    """What terminals saw of every case, all at the same time: they sleep most of it."""
    with concurrent.futures.ThreadPoolExecutor(len(SILENT)) as pool:
        return dict(zip(SILENT, pool.map(lambda case: on_terminal(HASTE + SILENT[case]), SILENT), strict=True))


@pytest.mark.parametrize("case", SILENT)
def test_nothing_is_shown_where_nothing_should_be(silent, case):
    seen = silent[case]
    assert seen.code == 0
    assert ("INSIDE" not in seen.text) if case == "another thread" else seen.raw == ""


@pytest.mark.slow
def test_a_worker_process_shows_nothing_on_the_terminal_it_inherits():
    code = """
import multiprocessing
def inside():
    progress._PATIENCE = 0.05
    with progress.bar("INSIDE", 3): time.sleep(0.5)
one = multiprocessing.get_context("fork").Process(target=inside); one.start(); one.join()
"""
    assert on_terminal(HASTE + code).raw == ""


def test_nothing_is_written_where_stderr_is_no_terminal():
    without = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, HASTE + NESTED]
    with subprocess.Popen(without, stdout=subprocess.PIPE) as closed:  # while the other one sleeps
        piped = subprocess.run([sys.executable, "-c", HASTE + NESTED], capture_output=True, check=True)
        assert piped.stderr == b"to the curator\n"
        assert closed.stdout.read().endswith(b"a result\nafterwards\n")
    assert closed.returncode == 0


@pytest.mark.slow
def test_a_bar_that_an_error_left_open_ends_with_the_one_around_it():
    code = """
def pieces():
    with progress.bar("reading", 3) as advance:
        for piece in range(3):
            yield piece
            advance(1)
left = pieces()
try:
    with progress.bar("clipping and solving"):
        next(left); time.sleep(0.3)
        raise ValueError
except ValueError: pass
time.sleep(0.3)
print(threading.active_count(), len(progress._DISPLAY._bars))
left.close()
with progress.bar("again", 2): time.sleep(0.3)
"""
    seen = on_terminal(HASTE + "import threading\n" + code)
    assert seen.stdout == "1 0\n"
    assert "again" in seen.text


@pytest.fixture
def notebook(monkeypatch):
    """Pretend to be a notebook: what its cell shows, one after the other."""
    shown = []

    class Output:
        def update(self, what, raw=False):
            shown.append(what if raw else _as_text(what))

    def display(what, display_id):
        shown.append(_as_text(what))
        return Output()

    inside = types.ModuleType("IPython.display")
    inside.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "on_a_terminal", lambda: False)
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_NOTEBOOK_PACE", 0.05)
    return shown


def _as_text(what):
    """As a notebook that knows no HTML shows it."""
    return what._repr_mimebundle_([], [])["text/plain"]


def test_a_notebook_shows_bars_and_is_left_clean(notebook):
    threads = threading.active_count()
    with progress.bar("clipping and solving"):
        time.sleep(0.3)
        with progress.bar("reading", 7) as advance:
            advance(3)
            time.sleep(0.3)
    assert "clipping and solving" in notebook[0]
    assert any("reading" in text and "3/7" in text for text in notebook[1:-1])
    assert notebook[-1] == {"text/plain": ""}
    assert threading.active_count() <= threads
    before = len(notebook)
    with progress.quietly(), progress.bar("reading", 7):
        time.sleep(0.3)
    assert len(notebook) == before
