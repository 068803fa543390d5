"""Messages as data: modules that see records take literal templates, and every surface words them in its own way."""

import ast
import pathlib
import pickle

import pytest

import dpmanifold
from dpmanifold import errors
from dpmanifold.cli.failures import OptionWording
from dpmanifold.errors import (
    WITHHELD,
    Argument,
    Either,
    InvalidArgumentError,
    InvalidDataError,
    Message,
    Names,
    Public,
    Wording,
    message_from_record,
    message_to_record,
)
from dpmanifold.service.web.pages.words import FormWording

pytestmark = pytest.mark.security

ROOT = pathlib.Path(dpmanifold.__file__).parent
# What holds records, files or what stands in them. Others see public numbers and arguments alone.
PACKAGES = ("data", "manifolds", "estimators")
MODULES = [
    "ball", "_cells", "_check", "_ids", "_merged_ids", "cli/checking",
    "frechet/reading", "frechet/record_blocks",
    "frechet/statistics", "frechet/points_per_unit", "ledger/datasets", "ledger/fingerprints",
    "ledger/population", "service/canonical", "service/registering",
    "service/staging", "sources", "stats/asking", "stats/by_class", "stats/comparison", "stats/content",
    "stats/curator", "stats/inputs", "stats/k_sample", "stats/lda", "stats/marks", "stats/means",
    "stats/pair", "stats/registered_data", "stats/regression", "stats/samples", "stats/two_sample",
]  # fmt: skip
RAISED = {
    name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, errors.DPManifoldError)
} | {"Message", "bad_file"}


def seeing_records():
    """The files of modules that see records."""
    found = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [*found, *(ROOT / f"{module}.py" for module in MODULES)]


def not_literal(text):
    """The lines on which a message is made of something else than literals."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISED:
            place = 1 if node.func.id == "bad_file" else 0
            template = node.args[place] if len(node.args) > place else None
            if template is None or not all(map(_is_literal, _alternatives(template))):
                found.append(node.lineno)
    return found


def _alternatives(node):
    return [*_alternatives(node.body), *_alternatives(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _is_literal(node):
    constant = isinstance(node, ast.Name) and (node.id.isupper() or node.id == "template")  # a parameter of bad_file
    attribute = isinstance(node, ast.Attribute) and node.attr == "template"  # of a message that was made before
    return constant or attribute or (isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.parametrize("path", seeing_records(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_messages_about_records_have_literal_templates(path):
    assert not not_literal(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "line",
    [
        'raise InvalidDataError(f"{name} is wrong")',
        'raise InvalidDataError("a" + value)',
        "raise InvalidArgumentError(str(problem))",
        'raise bad_file(path, f"line {line}")',
        'raise InvalidDataError("a" if x else f"{y}")',
        "raise InvalidDataError(text)",
    ],
)
def test_other_templates_are_seen(line):
    assert not_literal(line) == [1]


SAID = Message(
    '`units` holds {entry!r} in line {line:,} of {file}: {reason} Columns are {names}. {remedy} Or `invalid="center"`.',
    entry="HIV+",
    line=Public(1234),
    file="ann.csv",
    reason=Message("not a {kind} ({value:.2g}).", kind=Public("number"), value=0.123456),
    names=Names(["x", "y"]),
    remedy=Either("Call data.load.", Message("Give `columns`.")),
)


class Nothing(Wording):
    def private(self, value, text):
        return WITHHELD


def test_python_is_told_all():
    assert SAID == (
        "units holds 'HIV+' in line 1,234 of ann.csv: not a number (0.12). Columns are 'x', 'y'. Call data.load. Or "
        'invalid="center".'
    )
    assert SAID.argument == "units"
    assert pickle.loads(pickle.dumps(SAID)).values == SAID.values


def test_a_surface_has_its_own_words():
    assert OptionWording().message(SAID).startswith("--units holds 'HIV+'")
    assert OptionWording().message(SAID).endswith("Give --columns. Or --invalid center.")
    assert OptionWording({"units": "--owners"}).message(SAID).startswith("--owners holds")
    assert FormWording().message(SAID).startswith('"Column of ids" holds')


def test_private_values_are_left_out_of_nested_messages_as_well():
    assert Nothing().message(SAID) == (
        f"units holds {WITHHELD} in line 1,234 of {WITHHELD}: not a number ({WITHHELD}). Columns are {WITHHELD}. "
        f'{WITHHELD} Or invalid="center".'
    )


def test_errors_that_are_values_are_worded_with_the_error():
    inner = InvalidDataError("{entry!r} is wrong.", entry="HIV+")
    outer = InvalidDataError("{file}: {problem}", file=Public("a.csv"), problem=inner)
    assert str(outer) == "a.csv: 'HIV+' is wrong."
    assert Nothing().message(outer) == f"a.csv: {WITHHELD} is wrong."
    foreign = InvalidDataError("{file}: {problem}", file=Public("a.csv"), problem=ValueError("HIV+"))
    assert Nothing().message(foreign) == f"a.csv: {WITHHELD}"


def test_records_keep_what_a_wording_shows():
    record = message_to_record(SAID, Nothing())
    assert "HIV" not in str(record)
    assert "ann" not in str(record)
    found = message_from_record(record)
    assert found == Nothing().message(SAID)
    assert FormWording().message(found).startswith('"Column of ids"')


@pytest.mark.parametrize(
    "record",
    [
        {}, {"template": 1, "values": {}}, {"template": "{a}", "values": [1]}, {"template": "{a:>99999}", "values": {}},
        {"template": "{a!r}", "values": {}}, {"template": "{", "values": {"a": "b"}},
        {"template": "{a}", "values": {"a": 3}},
    ],
)  # fmt: skip
def test_records_that_hold_no_message_are_refused(record):
    with pytest.raises((ValueError, TypeError, KeyError)):
        message_from_record(record)


def test_an_error_is_pickled_with_what_it_is_made_of():
    error = InvalidArgumentError("{name} must be {most}.", name=Argument("radius"), most=Public(3))
    found = pickle.loads(pickle.dumps(error))
    assert (str(found), found.argument, found.message.values) == ("radius must be 3.", "radius", error.message.values)
