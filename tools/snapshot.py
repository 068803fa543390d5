"""Record what the library answers, so that a change which should not change answers can be compared with its parent.

    python tools/snapshot.py compare HEAD~1           # that commit against the working tree
    python tools/snapshot.py record FILE              # what the installed package answers, as JSON

Recorded are, for every query on several spaces with several options, of arrays, sources and registered data: the
result's record, whether it verifies, a few alterations of it, and the request that a ledger writes down; plans; the
refusals of a table of bad arguments; signatures and command-line options. Random words follow from the name of a case,
so that exact draws can be compared bit by bit; each query is drawn in double precision too.

`compare` checks the commit out beside the working tree and runs this file against both. Numbers, verdicts and whether
something is refused must be equal. Texts that differ are printed as one table. Keys and classes that were renamed on
purpose are listed in RENAMED.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent

RENAMED: dict[str, str] = {
    "neighbours": "adjacency",
    "promise": "privacy",
    "shape skipped": "noise_shape_skipped",
    "refine skipped": "refinement_skipped",
    "reference to centre": "reference_to_center",
    "excess subtracted": "excess_subtracted",
    "weight of the count": "count_weight",
    "weight of the second moment": "second_moment_weight",
    "weight of the squared length": "squared_length_weight",
    "weight of the fourth power": "fourth_power_weight",
    "weight of the third power": "third_power_weight",
    "number of components": "n_components",
    "number of classes": "n_classes",
    "about the frechet mean": "about_frechet_mean",
    "tangent gap": "tangent_gap",
    "revealed error": "revealed_error",
    "revealed share clipped": "revealed_clipped_share",
    "count noise": "count_noise",
    "units inside": "units_inside",
    "center of the ball": "ball_center_mechanism",
    "mechanism in the released ball": "mechanism_in_released_ball",
    "units by class": "units_by_class",
    "of grant": "of_grant",
    "rests on": "rests_on",
    "by name": "by_name",
    "freedom": "dof",
    "can_tell": "is_identifiable",
    "dominated_by": "dominant_source",
    "parts_percent": "variance_shares_percent",
    "corrected_distance": "bias_corrected_distance",
    "needed_promise": "required_privacy",
    "needed_units": "required_units",
    "shrink": "shrinkage",
    "shape": "noise_shape",
    **{
        f"group {group}: {name}": f"group_{group}_{name}"
        for group in range(1, 5)
        for name in ("mechanism", "shrinkage", "refine", "noise_shape", "ball_center_mechanism")
    },
    **{f"mean of the covariate to the power {power}": f"covariate_moment_{power}" for power in range(1, 5)},
}
"""Keys of records and names of classes of errors that have other names since the commit compared with."""

N = 400
SEED = 7


# -------------------------------------------------------------------- the package under test


def named(module: Any, *names: str) -> Any:
    """Return the first of these attributes that the module has: public names may change between commits."""
    return next(getattr(module, name) for name in names if hasattr(module, name))


def private_calls(dpm: Any) -> dict[str, Callable[..., Any]]:
    """Return the private calls by the names that this file has for them."""
    return {
        "mean": dpm.private_mean,
        "class means": named(dpm, "private_class_means", "private_means"),
        "median": dpm.private_median,
        "variance": dpm.private_variance,
        "variance interval": named(dpm, "private_variance_interval", "private_interval"),
        "region": dpm.private_region,
        "two-sample test": named(dpm, "private_two_sample_test", "private_test"),
        "k-sample test": named(dpm, "private_k_sample_test", "private_groups"),
        "lda": named(dpm, "private_lda", "private_classes"),
        "pga": named(dpm, "private_pga", "private_components"),
        "regression": dpm.private_regression,
        "ball": dpm.private_ball,
        "statistic": dpm.private_statistic,
    }


@contextlib.contextmanager
def seeded_words(case: str) -> Iterator[None]:
    """Have the operating system's random words follow from the name of a case."""
    source = next(
        vars(module)["SystemSource"]
        for name, module in list(sys.modules.items())
        if name.startswith("dpmanifold.noise.") and "SystemSource" in vars(module)
    )
    generator = np.random.default_rng(list(hashlib.sha256(case.encode()).digest()))
    original = source._words
    source._words = lambda self, n: generator.integers(0, 2**64, n, dtype=np.uint64)
    try:
        yield
    finally:
        source._words = original


# -------------------------------------------------------------------- data


class Setting:
    """A ball with records in it, who owns them, and what else is known of them."""

    def __init__(self, dpm: Any, space: Any, center: Any, radius: float, fill: float = 0.7, n: int = N) -> None:
        self.ball = dpm.Ball(space, center, radius, source="snapshot")
        rng = np.random.default_rng(SEED)
        directions = rng.standard_normal((n, space.dim))
        lengths = fill * radius * rng.random((n, 1)) / np.linalg.norm(directions, axis=1, keepdims=True)
        self.X = space.project(space.exp_coords(self.ball.center, directions * lengths))
        self.people = np.array([f"person {index // 2}" for index in range(n)])
        self.labels = np.array(["a", "b", "c"])[np.arange(n) // 2 % 3]
        self.two_labels = np.array(["a", "b"])[np.arange(n) // 2 % 2]
        self.covariate = np.linspace(20.0, 80.0, n)


def settings(dpm: Any) -> dict[str, Setting]:
    """Return the balls to ask about."""
    pair = dpm.Product([dpm.Sphere(2), dpm.Euclidean(1)])
    return {
        "plane": Setting(dpm, dpm.Euclidean(2), [0.0, 0.0], 2.0),
        "line": Setting(dpm, dpm.Euclidean(1), [0.0], 50.0, fill=0.02),
        "solid": Setting(dpm, dpm.Euclidean(3), [0.0, 0.0, 0.0], 0.5),
        "sphere": Setting(dpm, dpm.Sphere(2), [0.0, 0.6, 0.8], 0.6, fill=0.1),
        "tensors": Setting(dpm, dpm.SPD(2), np.eye(2), 2.0),
        "affine tensors": Setting(dpm, dpm.SPD(2, metric="riemann"), np.eye(2), 1.0),
        "hyperbolic": Setting(dpm, dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.0),
        "shapes": Setting(dpm, dpm.KendallShapes(4), dpm.KendallShapes(4).origin, 0.3),
        "pairs": Setting(dpm, pair, pair.origin, 0.5),
    }


# What each query is asked, besides records, ball, guarantee and units: (call, options, what stands beside the records).
QUERIES: list[tuple[str, dict[str, Any], str]] = [
    ("mean", {}, ""),
    ("mean", {"refine": True}, ""),
    ("mean", {"estimand": "tangent"}, ""),
    ("mean", {"estimand": "extrinsic"}, ""),
    ("mean", {"mechanism": "riemannian-laplace"}, ""),
    ("mean", {"mechanism": "wrapped-gaussian"}, ""),
    ("mean", {"mechanism": "kng"}, ""),
    ("mean", {"noise_shape": "private"}, ""),
    ("mean", {"shrinkage": "james-stein"}, ""),
    ("class means", {}, "classes"),
    ("class means", {"refine": True}, "classes"),
    ("median", {}, ""),
    ("median", {"refine": False}, ""),
    ("variance", {}, ""),
    ("variance interval", {}, ""),
    ("variance interval", {"refine": True, "level": 0.9}, ""),
    ("region", {}, ""),
    ("region", {"refine": True}, ""),
    ("region", {"estimand": "tangent", "level": 0.9}, ""),
    ("two-sample test", {}, "groups"),
    ("two-sample test", {"estimand": "tangent"}, "groups"),
    ("two-sample test", {"refine": True}, "groups"),
    ("k-sample test", {}, "classes"),
    ("k-sample test", {"estimand": "tangent", "level": 0.9}, "classes"),
    ("k-sample test", {"refine": True}, "classes"),
    ("lda", {}, "classes"),
    ("lda", {"labels_public": True}, "classes"),
    ("lda", {"refine": True}, "classes"),
    ("pga", {}, ""),
    ("pga", {"count": 1, "level": 0.9}, ""),
    ("pga", {"refine": True}, ""),
    ("regression", {}, "covariate"),
    ("regression", {"covariate_public": True}, "covariate"),
    ("regression", {"refine": True}, "covariate"),
    ("ball", {}, ""),
    ("ball", {"coverage": 0.5}, ""),
    ("statistic", {"statistic": "joint moments"}, ""),
    ("statistic", {"statistic": "second moment"}, ""),
    ("statistic", {"statistic": "variance"}, ""),
]


def guarantees(dpm: Any) -> dict[str, Any]:
    """Return one guarantee of each kind."""
    return {
        "GDP": dpm.GDP("1"),
        "PureDP": dpm.PureDP(2.0),
        "ZCDP": dpm.ZCDP(0.5),
        "ApproxDP": dpm.ApproxDP(1.0, 1e-6),
    }


# -------------------------------------------------------------------- what is recorded


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it, numbers as their exact text."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, complex):
        return [value.real.hex(), value.imag.hex()]
    return value.hex() if isinstance(value, float) else str(value) if isinstance(value, int) else repr(value)


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or how it refuses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call()
        except Exception as problem:
            found = {"refused": type(problem).__name__, "message": str(problem)}
    said = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
    return {**found, "warnings": said} if said else found


def record_of(dpm: Any, result: Any) -> Any:
    """Return a result's own record and what `verify` says of it and of altered copies of it."""
    if isinstance(result, dict):
        return {"classes": [[plain(name), record_of(dpm, release)] for name, release in result.items()]}
    record = json.loads(json.dumps(result.to_dict()))
    without = {name: entry for name, entry in record.items() if name != "answers"}
    return {
        "record": plain(_without_times(record)),
        "text": _lines(result),
        "verified": _verdict(dpm, result),
        "altered": [outcome(lambda change=change: _altered(dpm, without, change)) for change in _ALTERATIONS],
    }


def _lines(result: Any) -> list[str]:
    """Return what is shown of a result, line by line, without the number of a ledger."""
    return re.sub(r"of ledger [0-9a-f]+", "of ledger", repr(result)).splitlines()


def _without_times(record: Any) -> Any:
    """Return a record without what differs from run to run: hashes and ids of a ledger."""
    if isinstance(record, dict):
        return {key: _without_times(value) for key, value in record.items() if key not in ("receipt", "hash", "ledger")}
    return [_without_times(entry) for entry in record] if isinstance(record, list) else record


def _verdict(dpm: Any, result: Any) -> Any:
    found = dpm.verify(result)
    return {"ok": found.ok, "wrong": plain(found.wrong)}


def _altered(dpm: Any, record: Any, change: Callable[[Any], None]) -> Any:
    changed = json.loads(json.dumps(record))
    change(changed)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "altered.json")
        path.write_text(json.dumps(changed), encoding="utf-8")
        return _verdict(dpm, dpm.load(path))


def _first_release(record: Any) -> Any:
    """Return the first release in a record: what states a scale."""
    if isinstance(record, dict):
        if "scale" in record:
            return record
        record = list(record.values())
    if isinstance(record, list):
        return next((found for entry in record if (found := _first_release(entry)) is not None), None)
    return None


def _scale_times(factor: float) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        _first_release(record)["scale"] *= factor

    return change


def _more_units(record: Any) -> None:
    _first_release(record)["n"] += 1


def _drawn_elsewhere(record: Any) -> None:
    _first_release(record)["draws"][0]["numbers"][0] += 1e6


_ALTERATIONS = (_scale_times(0.5), _scale_times(1.0 + 1e-12), _more_units, _drawn_elsewhere)


class Asking:
    """The queries about one setting, in each of the ways in which records are given."""

    def __init__(self, dpm: Any, where: str, setting: Setting, ledger: Any) -> None:
        self.dpm, self.where, self.setting, self.ledger = dpm, where, setting, ledger
        self.calls = private_calls(dpm)

    def arguments(self, query: str, options: dict[str, Any], beside: str, form: str, population: Any) -> Any:
        """Return what comes before the ball, and the keywords that go with it."""
        s = self.setting
        if form == "registered":
            public = {key: value for key, value in options.items() if key.endswith("_public")}
            return self._registered(
                beside, population, {"labels_public": False, **public} if query == "lda" else public
            )
        units = {"units": s.people}
        if beside == "groups":
            halves = [np.flatnonzero(s.two_labels == name) for name in ("a", "b")]
            groups = tuple(self._given(form, half) for half in halves)
            return groups, {"units": tuple(s.people[half] for half in halves)}
        X = self._given(form, np.arange(len(s.X)))
        if beside == "classes":
            return (X, s.labels), {**units, "classes": ["a", "b", "c"]}
        if beside == "covariate":
            return (X, s.covariate), {**units, "covariate_range": (18.0, 90.0)}
        return (X,), units

    def _given(self, form: str, rows: Any) -> Any:
        X = self.setting.X[rows]
        if form == "array":
            return X
        cuts = [X[start : start + 37] for start in range(0, len(X), 37)]
        return self.dpm.data.from_blocks(lambda: iter(cuts), rows=len(X))

    def _registered(
        self, beside: str, population: Any, public: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        s, words = self.setting, {}
        if beside in ("classes", "groups"):
            labels = s.labels if beside == "classes" else s.two_labels
            words = {"labels": labels, "classes": sorted(set(labels.tolist())), **public}
        if beside == "covariate":
            words = {"covariate": s.covariate, "covariate_range": (18.0, 90.0), **public}
        data = population.register(f"{beside or 'plain'}", s.X, s.ball, units=s.people, **words)
        after: dict[str, Any] = {"units": None}
        if beside == "covariate":
            after["covariate_range"] = None
        if beside in ("classes", "groups"):
            after["classes"] = words["classes"]
        return ((data, None) if beside else (data,)), after

    def case(self, name: str, options: dict[str, Any], beside: str, form: str, arithmetic: str, guarantee: Any) -> Any:
        """Return what one private call answers."""
        terms: dict[str, Any] = {"arithmetic": arithmetic}
        population = None
        if form == "registered":
            population = self.ledger.population(f"p{len(self.ledger.populations())}", self.dpm.GDP("1000"), "person")
            terms["budget"], terms["key"] = population, "key"
        elif arithmetic == "float":
            terms["rng"] = SEED
        first, known = self.arguments(name, options, beside, form, population)
        seen = sum(1 for _ in self.ledger.entries()) if population is not None else 0
        result = self.calls[name](*first, self.setting.ball, guarantee, **known, **options, **terms)
        found = record_of(self.dpm, result)
        if population is not None:
            found["entries"] = [
                plain({"kind": entry.kind, "request": _request(entry)}) for entry in self.ledger.entries(seen + 1)
            ]
        return found


def _request(entry: Any) -> Any:
    facts = entry.facts
    return {key: facts[key] for key in ("request", "privacy", "label", "what") if key in facts}


def results(dpm: Any) -> Iterator[tuple[str, Any]]:
    """Yield what private calls answer, by the name of the case."""
    kinds = guarantees(dpm)
    with tempfile.TemporaryDirectory() as folder, dpm.Ledger.create(os.path.join(folder, "snapshot.db")) as ledger:
        for where, setting in settings(dpm).items():
            asking = Asking(dpm, where, setting, ledger)
            for name, options, beside in QUERIES:
                ways = [("array", "exact", "GDP"), ("array", "float", "GDP"), ("source", "exact", "GDP")]
                ways += [("registered", "exact", "GDP")]
                ways += [("array", "auto", kind) for kind in kinds if kind != "GDP"]
                for form, arithmetic, kind in ways:
                    said = ", ".join(f"{key}={value}" for key, value in options.items())
                    case = f"{name}({said}), {where}, {form}, {arithmetic}, {kind}"
                    asked = (name, options, beside, form, arithmetic, kinds[kind])
                    with seeded_words(case):
                        yield case, outcome(lambda ask=asking.case, asked=asked: ask(*asked))


# The names that plans go by: the private call's, and what it was before.
_PLANNED = {
    "variance interval": ("variance-interval", "interval"),
    "two-sample test": ("two-sample-test", "test"),
    "k-sample test": ("k-sample-test", "groups"),
    "lda": ("lda", "classes"),
    "pga": ("pga", "components"),
}


def plans(dpm: Any) -> Iterator[tuple[str, Any]]:
    """Yield what plans forecast, by the name of the case."""
    for where, setting in settings(dpm).items():
        for kind, guarantee in guarantees(dpm).items():
            for name, options, beside in QUERIES:
                if name in ("class means", "statistic"):
                    continue
                new, before = _PLANNED.get(name, (name, name))
                statistic = new if hasattr(dpm, f"private_{new.replace('-', '_')}") else before
                n = (160, 240) if beside == "groups" else [100, 100, 200] if name == "k-sample test" else N
                words = {key: value for key, value in options.items() if key != "level"}
                words |= {"classes": 3} if name == "lda" else {}
                case = f"plan of {name}({words}), {where}, {kind}"
                asked = (n, setting.ball, guarantee)
                yield case, outcome(lambda a=asked, s=statistic, w=words: _plan(dpm.plan(*a, statistic=s, **w)))


def _plan(found: Any) -> Any:
    return {"record": plain(found.to_dict()), "text": repr(found).splitlines()}


def refusals(dpm: Any) -> Iterator[tuple[str, Any]]:
    """Yield how bad arguments are refused, by the name of the case."""
    where = settings(dpm)
    plane, tensors = where["plane"], where["tensors"]
    calls = private_calls(dpm)
    nan = plane.X.copy()
    nan[3] = np.nan
    far = plane.X + 100.0
    singular = tensors.X.copy()
    singular[5] = 0.0
    each, gdp = dpm.EACH_RECORD, dpm.GDP(1.0)

    def ask(name: str, *first: Any, ball: Any = plane.ball, privacy: Any = gdp, units: Any = each, **rest: Any) -> Any:
        return record_of(dpm, calls[name](*first, ball, privacy, units=units, rng=SEED, **rest))

    X, labels, t = plane.X, plane.labels, plane.covariate
    spoiled = labels.astype(object)
    spoiled[2] = "d"
    table: dict[str, Callable[[], Any]] = {
        "one dimension": lambda: ask("mean", X[:, 0]),
        "three columns": lambda: ask("mean", np.hstack([X, X[:, :1]])),
        "no records": lambda: ask("mean", X[:0]),
        "one record": lambda: ask("mean", X[:1]),
        "not a number": lambda: ask("mean", nan),
        "not a number, center": lambda: ask("mean", nan, invalid="center"),
        "invalid misspelt": lambda: ask("mean", X, invalid="drop"),
        "most are clipped": lambda: ask("mean", far),
        "most are clipped, confirmed": lambda: ask("mean", far, confirm=True),
        "a singular matrix": lambda: ask("mean", singular, ball=tensors.ball),
        "text": lambda: ask("mean", X.astype(str)),
        "units missing": lambda: calls["mean"](X, plane.ball, gdp),
        "units of another length": lambda: ask("mean", X, units=plane.people[:-1]),
        "units with a gap": lambda: ask("mean", X, units=[None, *plane.people[1:]]),
        "units by a column": lambda: ask("mean", X, units="person"),
        "ball of another kind": lambda: ask("mean", X, ball=2.0),
        "ball on another space": lambda: ask("mean", X, ball=tensors.ball),
        "guarantee of another kind": lambda: ask("mean", X, privacy=1.0),
        "mechanism unknown": lambda: ask("mean", X, mechanism="magic"),
        "mechanism that cannot": lambda: ask("mean", X, privacy=dpm.PureDP(1.0), mechanism="wrapped-gaussian"),
        "estimand unknown": lambda: ask("mean", X, estimand="mode"),
        "shape unknown": lambda: ask("mean", X, noise_shape="round"),
        "shrink unknown": lambda: ask("mean", X, shrinkage="a lot"),
        "arithmetic unknown": lambda: ask("mean", X, arithmetic="quick"),
        "budget of another kind": lambda: ask("mean", X, budget=3.0),
        "budget too small": lambda: ask("mean", X, budget=dpm.Budget(dpm.GDP(0.1))),
        "key without an account": lambda: ask("mean", X, key="mean-v1"),
        "pure region": lambda: ask("region", X, privacy=dpm.PureDP(1.0)),
        "level too large": lambda: ask("region", X, level=1.5),
        "interval of one": lambda: ask("variance interval", X[:2], level=0.0),
        "labels of another length": lambda: ask("class means", X, labels[:-1], classes=["a", "b", "c"]),
        "a label outside the classes": lambda: ask("class means", X, spoiled, classes=["a", "b", "c"]),
        "a class without records": lambda: ask("class means", X, labels, classes=["a", "b", "c", "d"]),
        "one class": lambda: ask("k-sample test", X, labels, classes=["a"]),
        "classes twice": lambda: ask("k-sample test", X, labels, classes=["a", "a"]),
        "people in two groups": lambda: ask(
            "k-sample test", X, np.tile(["a", "b"], len(X) // 2), classes=["a", "b"], units=plane.people
        ),
        "groups on other units": lambda: ask("two-sample test", X[:60], X[60:], units=(plane.people[:60],)),
        "lda of one class": lambda: ask("lda", X, labels, classes=["a"]),
        "lda with an unknown label": lambda: ask("lda", X, spoiled, classes=["a", "b", "c"]),
        "covariate outside its range": lambda: ask("regression", X, t, covariate_range=(30.0, 40.0)),
        "covariate of another length": lambda: ask("regression", X, t[:-1], covariate_range=(18.0, 90.0)),
        "covariate range reversed": lambda: ask("regression", X, t, covariate_range=(90.0, 18.0)),
        "covariate not a number": lambda: ask(
            "regression", X, np.where(np.arange(N) == 4, np.nan, t), covariate_range=(18.0, 90.0)
        ),
        "too many components": lambda: ask("pga", X, count=9),
        "coverage too large": lambda: ask("ball", X, coverage=2.0),
        "statistic unknown": lambda: ask("statistic", X, statistic="mode"),
        "statistic's option unknown": lambda: ask("statistic", X, statistic="variance", level=0.9),
        "plan of nothing": lambda: plain(dpm.plan(100, plane.ball, gdp, statistic="mode").to_dict()),
        "plan of one unit": lambda: plain(dpm.plan(1, plane.ball, gdp).to_dict()),
        "plan with an unknown option": lambda: plain(dpm.plan(100, plane.ball, gdp, colour="red").to_dict()),
        "radius too large": lambda: repr(dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 30.0)),
        "center off the space": lambda: repr(dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 2.0], 0.5)),
        "radius negative": lambda: repr(dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], -1.0)),
        "file that is none": lambda: record_of(dpm, dpm.load(__file__)),
    }
    for case, call in table.items():
        with seeded_words(case):
            yield f"refusal: {case}", outcome(lambda call=call: {"given": plain(call())})


def interfaces(dpm: Any) -> Iterator[tuple[str, Any]]:
    """Yield signatures of what is public, and the options of each command."""
    for name in sorted(dpm.__all__):
        item = getattr(dpm, name)
        if inspect.isfunction(item) or inspect.isclass(item):
            with contextlib.suppress(ValueError, TypeError):
                yield f"signature: {name}", {"text": str(inspect.signature(item))}
    import typer

    from dpmanifold.cli import app

    def walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        options = sorted(" ".join(one.opts) for one in command.params)
        yield f"command: {path}", {"text": options}
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{path} {name}")

    yield from walk(typer.main.get_command(app), "dpm")


def record() -> dict[str, Any]:
    """Return everything that is recorded of the package that Python finds."""
    import dpmanifold as dpm

    found: dict[str, Any] = {}
    for part in (results, plans, refusals, interfaces):
        for case, value in part(dpm):
            found[case] = value
    return found


# -------------------------------------------------------------------- comparing


class Differences:
    """What differs between two snapshots: values, which must not, and texts, which are listed."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.texts: Counter[tuple[str, str]] = Counter()

    def compare(self, old: Any, new: Any, place: str) -> None:
        """Compare two values of the same place."""
        if isinstance(old, dict) and isinstance(new, dict):
            old = {key if key in new else RENAMED.get(key, key): value for key, value in old.items()}
            for key in [*old, *(key for key in new if key not in old)]:
                if (key in old) != (key in new):
                    self.values.append(f"{place}/{key}: {'gone' if key in old else 'new'}")
                else:
                    self.compare(old[key], new[key], f"{place}/{key}")
        elif place.endswith("/text") and old != new:  # as it is printed: lines may be broken elsewhere
            self.texts["\n".join(old), "\n".join(new)] += 1
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                self.compare(one, other, f"{place}/{index}")
        elif isinstance(old, str) and isinstance(new, str) and not (_is_number(old) or _is_number(new)):
            if RENAMED.get(old, old) != new:
                self.texts[old, new] += 1
        elif old != new:
            self.values.append(f"{place}: {_short(old)} -> {_short(new)}")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?(\d+|0x[0-9a-f.]+p[-+]\d+|inf|nan)", text) is not None


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else text[:77] + "..."


def compare(old: dict[str, Any], new: dict[str, Any]) -> Differences:
    """Return the differences between two snapshots."""
    found = Differences()
    for case in [*old, *(case for case in new if case not in old)]:
        if case.startswith(("signature: ", "command: ")):
            if old.get(case) != new.get(case):
                found.texts[f"{case}: {old.get(case)}", f"{case}: {new.get(case)}"] += 1
        elif (case in old) != (case in new):
            found.values.append(f"{case}: {'gone' if case in old else 'new'}")
        else:
            found.compare(old[case], new[case], case)
    return found


def snapshot_of(tree: pathlib.Path) -> dict[str, Any]:
    """Return the snapshot of the package in a checkout, made by this file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "snapshot.json")
        environ = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, __file__, "record", str(out)], env=environ, check=True)
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[pathlib.Path]:
    """Check a commit out beside the working tree, with the compiled kernels of the working tree."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder, "tree")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            for library in ROOT.glob("src/dpmanifold/linalg/native/libdpmanifold_kernels.*"):
                shutil.copy(library, tree / library.relative_to(ROOT))
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def main() -> int:
    """Record or compare, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write what the installed package answers")
    recording.add_argument("file", type=pathlib.Path)
    comparing = commands.add_parser("compare", help="compare a commit, or a recorded file, with the working tree")
    comparing.add_argument("base", help="a commit, or a file that record wrote")
    comparing.add_argument("--words", type=pathlib.Path, help="write the table of texts that differ to this file")
    asked = parser.parse_args()
    if asked.command == "record":
        found = record()
        asked.file.write_text(json.dumps(found, indent=0), encoding="utf-8")
        refused = sum(isinstance(value, dict) and "refused" in value for value in found.values())
        print(f"{len(found):,} cases, of which {refused:,} are refusals, written to {asked.file}")
        return 0
    if pathlib.Path(asked.base).is_file():
        old = json.loads(pathlib.Path(asked.base).read_text(encoding="utf-8"))
    else:
        with checkout(asked.base) as tree:
            old = snapshot_of(tree)
    found = compare(old, snapshot_of(ROOT))
    table = "\n".join(f"{count:6d}  {a!r}\n     -> {b!r}" for (a, b), count in found.texts.most_common())
    if asked.words is not None:
        asked.words.write_text(table + "\n", encoding="utf-8")
    elif table:
        print(table)
    print("\n".join(found.values[:50]))
    print(f"{len(old):,} cases: {len(found.values):,} values differ, {len(found.texts):,} texts differ")
    return 1 if found.values else 0


if __name__ == "__main__":
    sys.exit(main())
