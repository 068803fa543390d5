"""Every query is written once: its name stands in its own file, and little else of the library knows it."""

import ast
import functools
import pathlib

import pytest
import queries_page

import dpmanifold as dpm
from dpmanifold.stats.query import Option, Query, query_named
from dpmanifold.stats.samples import Units

ROOT = pathlib.Path(dpm.__file__).parent
OWN = {
    "ball": "stats/ball_estimation.py",
    "class-means": "stats/means.py",
    "k-sample-test": "stats/k_sample.py",
    "lda": "stats/lda.py",
    "mean": "stats/means.py",
    "median": "stats/median.py",
    "pga": "stats/pga.py",
    "region": "stats/region.py",
    "regression": "stats/regression.py",
    "two-sample-test": "stats/two_sample.py",
    "variance": "stats/variance.py",
    "variance-interval": "stats/variance_interval.py",
}
# What these words are besides names of queries, and where they stand as such. "ball" is the argument of nearly every
# call and its key in JSON.
OTHERWISE = {
    "mean": {
        "features/maps.py": "a part of a vector",
        "frechet/__init__.py": "a function",
        "inference/estimate.py": "what noise lies about",
        "inference/principal_components.py": "a fact of a result",
        "inference/confidence_region.py": "a word of a note",
        "cli/public.py": "a row of the table of sensitivities",
        "mechanisms/registry.py": "what noise lies about",
        "mechanisms/riemannian.py": "what noise lies about",
        "plots/geodesic_plots.py": "a label of an axis",
        "plots/spread.py": "a word of a caption",
        "sensitivity.py": "the statistic",
        "stats/moment_chain.py": "what noise lies about",
        "stats/featured.py": "what an error is of",
        "stats/mean.py": "the statistic",
        "stats/mean_plan.py": "a word of a verdict",
    },
    "pga": {"stats/pga.py": "the page of a proof"},
    "median": {"frechet/__init__.py": "a function"},
    "region": {"inference/confidence_region.py": "a word of a note"},
    "regression": {"plots/__init__.py": "a function"},
    "variance": {
        "frechet/__init__.py": "a function",
        "inference/frechet_variance.py": "a fact of a result",
        "sensitivity.py": "the statistic",
    },
}


@functools.cache
def trees():
    files = [path for path in sorted(ROOT.rglob("*.py")) if path.stat().st_size]
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in files]


def texts(tree):
    """Every text of a module but docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_the_name_of_a_query_stands_in_its_own_file_alone():
    assert set(OWN) == {query.name for query in dpm.QUERIES.own()}
    every = {path: set(texts(tree)) for path, tree in trees()}
    found = {name: {path for path, words in every.items() if name in words} for name in OWN if name != "ball"}
    assert found == {name: {OWN[name], *OTHERWISE.get(name, ())} for name in found}


def known_by(tree):
    """Every name that the code of a module uses."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found | {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("pga", ("ComponentVariances", "COMPONENTS", "PGA")),
        ("lda", ("ClassMomentsAboutCenter", "CLASS_MOMENTS", "ClassPlan", "LDA")),
        ("k-sample-test", ("GroupsPlan", "K_SAMPLE")),
        ("regression", ("RegressionMoments", "REGRESSION", "RegressionPlan", "REGRESSION_QUERY")),
    ],
)
def test_a_query_lives_in_at_most_four_files(name, more):
    """Packages' tables of contents apart; the estimator of scikit-learn included."""
    query = query_named(name)
    own = {query.call.__name__, query.result.__name__, *more}
    files = [path for path, tree in trees() if not path.endswith("__init__.py") and own & known_by(tree)]
    assert OWN[name] in files
    assert len(files) <= 4, files


@pytest.mark.parametrize("query", dpm.QUERIES.own(), ids=lambda query: query.name)
def test_what_a_query_states_is_there(query):
    assert getattr(dpm, f"private_{query.name.replace('-', '_')}") is query.call
    assert all(name in dpm.STATISTICS for name in query.releases)
    assert query.plan_as in ("", *dpm.QUERIES.names())
    assert len({option.name for option in query.options}) == len(query.options)
    for option in query.options:
        if option.kind != "shape" and option.default is not None:
            assert option.checked(option.default) == option.default


def test_what_is_no_query_is_refused_with_the_names_that_there_are():
    with pytest.raises(dpm.InvalidArgumentError, match=r"must be one of mean, median, .* got 'no such'"):
        query_named("no such")
    with pytest.raises(dpm.InvalidArgumentError, match="must be one of mean"):
        query_named(3)
    assert query_named("second-moment").releases == ("second moment",)


def test_options_have_defaults_of_the_call():
    def private_thing(X, ball, privacy, *, units, level=0.8):
        """Release a thing."""

    query = Query("thing", "Thing", private_thing, Units, plan=len, options=(Option("level", "number", "", ""),))
    assert query.defaults == {"level": 0.8}
    assert query.checked({"level": 0.8}) == {}
    assert query.checked({"level": 1}) == {"level": 1.0}
    with pytest.raises(dpm.InvalidArgumentError, match="thing takes the options level, got 'count'"):
        query.checked({"count": 1})


def test_the_reference_page_is_made_from_the_table():
    """`python tools/queries_page.py` writes it anew."""
    assert queries_page.PAGE.read_text(encoding="utf-8") == queries_page.page()
