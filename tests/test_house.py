"""The house's rules, read off the source: a space's facts are asked of the space, a statistic's of the statistic.

Who adds a space or a statistic then writes one file, because no other file knows their names.
"""

import ast
import dataclasses
import inspect
import pathlib

import pytest

import dpmanifold
from dpmanifold import manifolds
from dpmanifold.mechanisms import MECHANISMS

ROOT = pathlib.Path(dpmanifold.__file__).parent
SOURCES = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)
SPACES = {
    name
    for name, entry in vars(manifolds).items()
    if isinstance(entry, type) and issubclass(entry, manifolds.Manifold) and entry is not manifolds.Manifold
}


def names_in(node):
    """Every name that an expression is made of, attributes by their last part."""
    return {part.id if isinstance(part, ast.Name) else part.attr
            for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))}  # fmt: skip


def lines_about_a_space(source):
    """Return the lines that ask which space something is."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and names_in(node.func) & {"isinstance", "issubclass"}:
            found += [node.lineno] if len(node.args) > 1 and names_in(node.args[1]) & SPACES else []
        elif isinstance(node, ast.MatchClass) and names_in(node.cls) & SPACES:
            found.append(node.lineno)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(isinstance(part, ast.Call) and names_in(part.func) == {"type"} for part in sides)
            asks = asks or any(isinstance(part, ast.Attribute) and part.attr == "__class__" for part in sides)
            found += [node.lineno] if asks and set().union(*map(names_in, sides)) & SPACES else []
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and names_in(node.func) >= {"get"}):
            keys = [node.slice] if isinstance(node, ast.Subscript) else node.args
            found += [node.lineno] if any(is_type_of_a_space(key) for key in keys) else []
    return sorted(found)


def is_type_of_a_space(node):
    return (
        isinstance(node, ast.Call) and names_in(node.func) == {"type"} and names_in(node) & {"space", "factor", "frame"}
    )


def lines_about_a_mechanism(source):
    """Return the lines with a mechanism's name as a text of its own: whoever needs a mechanism asks for its facts."""
    names = {mechanism.name for mechanism in MECHANISMS}
    texts = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return sorted(node.lineno for node in texts if isinstance(node.value, str) and node.value in names)


def is_statistic(node):
    return (isinstance(node, ast.Attribute) and node.attr == "statistic") or (
        isinstance(node, ast.Name) and node.id == "statistic"
    )


def holds_text(node):
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node))


def lines_about_a_statistic(source):
    """Return the lines that ask which statistic something is: comparisons with a name, tables and matches by name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found += [node.lineno] if any(map(is_statistic, sides)) and any(map(holds_text, sides)) else []
        elif isinstance(node, ast.Match):
            found += [node.lineno] if is_statistic(node.subject) else []
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
            found += [node.lineno] if is_statistic(node.slice) else []
    return sorted(found)


def places(paths, search):
    return [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in search(path.read_text(encoding="utf-8"))]


def test_no_room_asks_which_space_it_is_given():
    """Nor does one space ask for another; what is registered is."""
    assert places(SOURCES, lines_about_a_space) == []


def test_no_room_asks_which_mechanism_it_is_given():
    """But for the files in which mechanisms have their names."""
    outside = [path for path in SOURCES if path.relative_to(ROOT).parts[0] != "mechanisms"]
    assert places(outside, lines_about_a_mechanism) == []
    assert places([ROOT / "mechanisms" / "riemannian.py"], lines_about_a_mechanism)


def test_no_room_asks_which_statistic_it_is_given():
    """But for the file in which a statistic stands, alone or with those of its family."""
    homes = {pathlib.Path(inspect.getfile(type(entry))) for entry in library_statistics()}
    assert len(homes) >= 5
    assert places([path for path in SOURCES if path not in homes], lines_about_a_statistic) == []


def library_statistics():
    """The library's own; other tests may have registered theirs."""
    return [entry for entry in dpmanifold.STATISTICS.own() if type(entry).__module__.startswith("dpmanifold.")]


READING = {"size", "columns", "array", "order", "coordinates", "normalize", "mask"}
# What forms call arguments, and which words of a steward a message may repeat, decided name by name.
WORDINGS = {"service/web/pages/words.py", "service/redaction.py"}


def lines_about_reading(source):
    """Return the lines that list how files become records: classes and displays with most of a selection's fields."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = set()
        if isinstance(node, ast.ClassDef):
            names = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            names = {part.value for part in parts if isinstance(part, ast.Constant)}
        found += [node.lineno] if len(names & READING) > 3 else []
    return found


def test_what_a_registration_says_is_listed_once():
    """In `data.Selection`, which the command line, the service, the ledger and Python read."""
    assert {field.name for field in dataclasses.fields(dpmanifold.data.Selection)} >= READING
    found = {place.partition(":")[0] for place in places(SOURCES, lines_about_reading)}
    assert found == {"data/selection.py"} | WORDINGS


@pytest.mark.parametrize(
    "source",
    [
        "class How:\n    columns: str\n    order: str\n    mask: str\n    array: str",
        "words = {'size': None, 'columns': None, 'array': None, 'order': None}",
        "('columns', 'order', 'coordinates', 'mask')",
    ],
)
def test_the_search_sees_a_second_list_of_what_is_read(source):
    assert len(lines_about_reading(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(space, Sphere)",
        "isinstance(ball.space, (manifolds.SPD, Hyperbolic))",
        "issubclass(kind, KendallShapes)",
        "type(space) is Euclidean",
        "space.__class__ == SPD",
        "match space:\n    case SPD(metric='riemann'):\n        pass",
        "SAMPLERS[type(space)]",
        "EMBEDDINGS.get(type(ball.space))",
    ],
)
def test_the_search_sees_what_asks_for_a_space(source):
    assert len(lines_about_a_space(source)) == 1


@pytest.mark.parametrize(
    "source", ["isinstance(space, Manifold)", "space.is_flat", "space == Sphere(2)", "SPD(3)", "type(space).__name__"]
)
def test_the_search_lets_other_things_be(source):
    assert lines_about_a_space(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "release.statistic == 'mean'",
        "'ball' != self.statistic",
        "statistic in ('mean', 'variance')",
        "match release.statistic:\n    case 'mean':\n        pass",
        "{'mean': 1}[release.statistic]",
    ],
)
def test_the_search_sees_what_asks_for_a_statistic(source):
    assert len(lines_about_a_statistic(source)) == 1


@pytest.mark.parametrize("source", ["STATISTICS[release.statistic]", "a.statistic == b.statistic", "x == 'mean'"])
def test_the_search_lets_statistics_be(source):
    assert lines_about_a_statistic(source) == []


# ------------------------------------------------------------------------------------------- storage says it once


def calls_of(source, *names):
    """Return the lines that call something of one of these names: `sqlite3.connect` as much as `connect`."""
    wanted = [set(name.split(".")) for name in names]
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return sorted(call.lineno for call in calls if any(one <= names_in(call.func) for one in wanted))


def lines_that_open_a_database(source):
    return calls_of(source, "create_engine", "sqlite3.connect", "psycopg.connect")


def lines_that_lock_a_file(source):
    return calls_of(source, "flock", "lockf", "msvcrt.locking")


def lines_about_links(source):
    """Return the lines that say how entries are chained: what links them, and what the first one names."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            found += (
                [node.lineno] if [getattr(side, "value", 0) for side in (node.left, node.right)] == ["0", 64] else []
            )
        elif isinstance(node, ast.FunctionDef):
            found += [node.lineno] if node.name in ("hash_in", "place_after") else []
        elif isinstance(node, ast.ClassDef):
            fields = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
            is_chained = any("Chained" in names_in(base) for base in node.bases)
            found += [node.lineno] if {"prev", "hash"} <= fields and not is_chained else []
        elif isinstance(node, ast.Call) and names_in(node.func) & {"sha256", "sha256_of", "sha256_of_bytes", "blake2b"}:
            said = set().union(*map(names_in, node.args), set())
            found += [node.lineno] if said & {"prev", "previous", "before", "last"} else []
    return sorted(found)


ONCE = {
    "databases": (lines_that_open_a_database, {"postgres.py", "sqlite.py"}),
    "locks": (lines_that_lock_a_file, {"locks.py"}),
    "chains": (lines_about_links, {"chain.py"}),
}


@pytest.mark.parametrize("what", ONCE)
def test_storage_says_it_once(what):
    """The client's journal apart, which is on machines that have no SQLAlchemy."""
    search, homes = ONCE[what]
    found = {path for path in SOURCES if search(path.read_text(encoding="utf-8")) and path.name != "journal.py"}
    assert found == {ROOT / "storage" / name for name in homes}


@pytest.mark.parametrize(
    ("what", "source"),
    [
        ("databases", "sqlalchemy.create_engine(address)"),
        ("databases", "with sqlite3.connect(path) as connection:\n    pass"),
        ("databases", "contextlib.closing(psycopg.connect(address))"),
        ("locks", "fcntl.flock(handle, fcntl.LOCK_EX)"),
        ("locks", "fcntl.lockf(handle, fcntl.LOCK_EX)"),
        ("chains", "FIRST = '0' * 64"),
        ("chains", "class Line:\n    prev: str\n    hash: str"),
        ("chains", "hashlib.sha256((before.hash + body).encode())"),
        ("chains", "sha256_of([prev, body])"),
        ("chains", "class Line(Chained):\n    def hash_in(self, log): ..."),
    ],
)
def test_the_search_sees_what_says_it_again(what, source):
    assert len(ONCE[what][0](source)) == 1


@pytest.mark.parametrize(
    ("what", "source"),
    [
        ("databases", "self.engine.connect()"),
        ("locks", "fcntl.fcntl(handle, fcntl.F_FULLFSYNC)"),
        ("chains", "class Line(Chained):\n    prev: str\n    hash: str"),
        ("chains", "sha256_of([content, facts])"),
    ],
)
def test_the_search_lets_others_be(what, source):
    assert ONCE[what][0](source) == []
