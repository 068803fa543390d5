"""scikit-learn's own checks on vectors, and their equivalents on matrices, which scikit-learn does not check."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
from pyriemann.classification import MDM
from pyriemann.estimation import Covariances
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import dpmanifold as dpm
from dpmanifold import GDP, SPD, Ball, Budget, BudgetError, Euclidean, InvalidArgumentError, InvalidDataError
from dpmanifold.estimators import PrivateComponents, PrivateFrechetMean, PrivateLDA, PrivateMDM

BALL = Ball(SPD(3, metric="riemann"), np.eye(3), 3.0, source="simulation")
CLASSES = ["left", "right"]


def mean_model(privacy=None, ball=BALL, **changes):
    given = {"units": "each-record", "budget": None if "public_data" in changes else Budget(GDP(1.0))}
    return PrivateFrechetMean(ball, privacy or GDP(0.5), **{**given, **changes})


def class_model(privacy=None, ball=BALL, **changes):
    given = {"units": "each-record", "budget": None if "public_data" in changes else Budget(GDP(1.0))}
    return PrivateMDM(ball, privacy or GDP(0.5), **{**given, "classes": CLASSES, **changes})


def releases_of(model):
    return [model.release_] if isinstance(model, PrivateFrechetMean) else list(model.releases_.values())


def components_model(privacy=None, ball=BALL, **changes):
    given = {"units": "each-record", "budget": None if "public_data" in changes else Budget(GDP(1.0))}
    return PrivateComponents(ball, privacy or GDP(0.5), **{**given, **changes})


MODELS = pytest.mark.parametrize("make", [mean_model, class_model])


def epochs(n=120, samples=100, seed=0):
    """Trials (n, 3 channels, samples) of two classes that differ in which channel is loud."""
    rng = np.random.default_rng(seed)
    y = np.array(CLASSES)[rng.permutation(n) % 2]
    loud = np.where((y == "left")[:, None], [1.1, 1.0, 0.95], [0.95, 1.0, 1.1])
    return rng.standard_normal((n, 3, samples)) * loud[:, :, None], y


def matrices(n=120, seed=0):
    E, y = epochs(n, seed=seed)
    return Covariances().transform(E), y


# -------------------------------------------------------------------- scikit-learn's checks, on vectors

WIDTH = "the check's records do not have the three features of the public ball"
CLASS = "the check's labels are not those of the public list of classes"
# A ball and a list of classes are public knowledge, given in advance, and the checks bring records of many widths and
# labels of many names. Nothing else fails: the two classes below, told the width and the classes, pass every check.
BY_WIDTH = [
    "check_estimators_overwrite_params", "check_estimators_fit_returns_self", "check_readonly_memmap_input",
    "check_n_features_in_after_fitting", "check_positive_only_tag_during_fit", "check_estimators_dtypes",
    "check_dtype_object", "check_fit2d_1feature", "check_fit_idempotent", "check_fit_check_is_fitted",
    "check_n_features_in",
]  # fmt: skip
BY_WIDTH_OF_CLASSIFIERS = ["check_classifier_data_not_an_array", "check_classifiers_classes", "check_classifiers_train"]
BY_CLASS = [
    "check_pipeline_consistency", "check_estimators_nan_inf", "check_estimators_pickle", "check_transformer_general",
    "check_transformer_data_not_an_array", "check_transformer_preserve_dtypes",
]  # fmt: skip
EXPECTED_FAILED_CHECKS = {
    "PrivateFrechetMean": dict.fromkeys(BY_WIDTH, WIDTH),
    "PrivateComponents": dict.fromkeys(BY_WIDTH, WIDTH),
    "PrivateMDM": dict.fromkeys(BY_WIDTH + BY_WIDTH_OF_CLASSIFIERS, WIDTH) | dict.fromkeys(BY_CLASS, CLASS),
    # Classes that are listed and not there are nothing to it.
    "PrivateLDA": dict.fromkeys([*BY_WIDTH, *BY_WIDTH_OF_CLASSIFIERS, "check_decision_proba_consistency"], WIDTH),
}


def width_of(X):
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    except ValueError:
        return None
    return shape[1] if len(shape) == 2 and shape[1] > 0 else None


class OfAnyWidth:
    """Takes the dimension of its ball from the records, as no private release may."""

    def fit(self, X, y=None, units=None):
        given = self.ball
        self.ball = wide_ball(width_of(X) or 3)
        try:
            return super().fit(X, y, units)
        finally:
            self.ball = given


class MeanOfAnyWidth(OfAnyWidth, PrivateFrechetMean):
    pass


class ComponentsOfAnyWidth(OfAnyWidth, PrivateComponents):
    pass


class OfAnyClasses:
    """Takes the dimension of its ball and its classes from the records, as no private release may."""

    def fit(self, X, y, units=None):
        given = self.ball, self.classes
        self.ball = wide_ball(width_of(X) or 3)
        labels = np.asarray(y)
        if labels.ndim and labels.dtype.kind != "c":
            self.classes = np.unique(labels).tolist()
        try:
            return super().fit(X, y, units)
        finally:
            self.ball, self.classes = given


class MDMOfAnyClasses(OfAnyClasses, PrivateMDM):
    pass


class LDAOfAnyClasses(OfAnyClasses, PrivateLDA):
    pass


def wide_ball(d):
    return Ball(Euclidean(d), np.zeros(d), 100.0)


def checked_model(kind):
    more = {"classes": [0, 1, 2]} if issubclass(kind, (PrivateMDM, PrivateLDA)) else {}
    terms = {"public_data": True, "confirm": True, "random_state": 0}  # some checks bring far or equal records
    return kind(wide_ball(3), GDP(1e3), units="each-record", **terms, **more)


@pytest.mark.filterwarnings("default")  # the checks warn about what they skip
@parametrize_with_checks(
    [checked_model(kind) for kind in (MeanOfAnyWidth, ComponentsOfAnyWidth, MDMOfAnyClasses, LDAOfAnyClasses)]
)
def test_scikit_learn_checks_pass_once_width_and_classes_are_known(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [PrivateFrechetMean, PrivateComponents, PrivateMDM, PrivateLDA])
def test_scikit_learn_checks_fail_where_they_do_not_know_the_ball_or_the_classes(kind):
    expected = EXPECTED_FAILED_CHECKS[kind.__name__]
    results = check_estimator(checked_model(kind), expected_failed_checks=expected, on_fail=None)
    by_status = {status: {r["check_name"] for r in results if r["status"] == status} for status in ("failed", "xfail")}
    assert by_status == {"failed": set(), "xfail": set(expected)}
    assert sum(r["status"] == "passed" for r in results) >= 35


# -------------------------------------------------------------------- the same on matrices


@MODELS
def test_clone_and_params_share_one_budget(make):
    X, y = matrices()
    model = make()
    twin = clone(clone(model))
    assert twin.budget is model.budget
    assert model.get_params()["budget"] is model.budget
    assert clone(model).set_params(budget=model.budget).budget is model.budget
    assert twin.ball == model.ball
    twin.fit(X, y)
    assert model.budget.spent == GDP(0.5)
    in_pipeline = clone(make_pipeline(Covariances(), model))[-1]
    assert in_pipeline.budget is model.budget


@MODELS
def test_params_come_back_as_given(make):
    model = make()
    params = model.get_params()
    assert type(model)(**params).get_params() == params
    assert model.set_params(privacy=GDP(0.25)).privacy == GDP(0.25)
    assert "GDP(mu=0.25)" in repr(model)


@MODELS
def test_budget_cannot_leave_the_process_and_a_saved_model_cannot_be_fitted(make):
    X, y = matrices()
    model = make()
    unfitted = pickle.loads(pickle.dumps(model))
    with pytest.raises(BudgetError, match=r"stayed in the process.*n_jobs=1.*threading.*set_params"):
        unfitted.fit(X, y)
    unfitted.set_params(budget=Budget(GDP(1.0))).fit(X, y)
    for twin in (copy.copy(model), copy.deepcopy(model), copy.deepcopy(model.fit(X, y))):
        assert twin.budget is model.budget
    assert len(model.budget.history) == 1
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.budget is None
    assert model.budget is not None
    with pytest.raises(InvalidArgumentError, match="budget must be given"):
        loaded.fit(X, y)


@MODELS
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(lambda: 3, id="int"),
        pytest.param(lambda: np.random.RandomState(3), id="state"),
        pytest.param(lambda: np.random.default_rng(3), id="generator"),
    ],
)
def test_seeded_fits_repeat_and_are_marked_not_private(make, seed):
    X, y = matrices()
    first, second = (make(public_data=True, random_state=seed()).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    assert not any(release.private for release in releases_of(first))


def test_seeded_fit_is_the_function_with_that_seed():
    X, y = matrices()
    alone = dpm.private_mean(X, BALL, GDP(0.5), units=dpm.EACH_RECORD, rng=5)
    np.testing.assert_array_equal(mean_model(random_state=5).fit(X).mean_, alone.value)
    by_class = dpm.private_class_means(X, y, BALL, GDP(0.5), units=dpm.EACH_RECORD, classes=CLASSES, rng=5)
    model = class_model(random_state=5).fit(X, y)
    np.testing.assert_array_equal(model.means_, [by_class[name].value for name in CLASSES])


@MODELS
def test_unseeded_fits_differ_and_are_private(make):
    X, y = matrices()
    model = make()
    first = model.fit(X, y).transform(X)
    assert np.abs(first - clone(model).fit(X, y).transform(X)).max() > 0
    assert all(release.private for release in releases_of(model))


@MODELS
def test_wrong_shapes_are_refused_and_cost_nothing(make):
    X, y = matrices()
    model = make()
    for wrong in (X[:, :2, :2], X[:, 0], X[None], X[0, 0], X[:1], X[:0]):
        with pytest.raises(ValueError, match=r"shape|Expected 2D|minimum|inconsistent"):
            model.fit(wrong, y[: len(wrong)])
    assert model.budget.spent is None
    model.fit(X, y)
    for wrong in (X[:, :2, :2], X[:, 0], X[None], X[0, 0]):
        with pytest.raises(ValueError, match=r"shape|Expected 2D|features"):
            model.transform(wrong)
    with pytest.raises(InvalidDataError, match="index 4"):
        model.transform(np.where(np.arange(len(X))[:, None, None] == 4, np.nan, X))


@MODELS
def test_unfitted_and_refused_models_say_that_they_are_not_fitted(make):
    X, y = matrices()
    model = make(privacy=GDP(9.0))
    with pytest.raises(BudgetError):
        model.fit(X, y)
    for unfitted in (make(), model):
        for use in (unfitted.transform, getattr(unfitted, "predict", unfitted.transform)):
            with pytest.raises(NotFittedError):
                use(X)
        assert not hasattr(unfitted, "mean_" if make is mean_model else "means_")


@MODELS
def test_nothing_that_knows_the_data_is_kept_except_releases(make):
    X, y = matrices()
    model = make().fit(X, y)
    learnt = {name: value for name, value in vars(model).items() if name not in model.get_params()}
    assert learnt.pop("n_features_in_") == 3  # the size of the ball's matrices
    if make is class_model:
        assert learnt.pop("classes_").tolist() == CLASSES  # the public list
        assert list(learnt) == ["releases_"]
        assert all(type(release) is dpm.Release for release in model.releases_.values())
    else:
        assert list(learnt) == ["release_"]
        assert type(model.release_) is dpm.Release


def test_other_spaces_take_their_own_arrays():
    shapes = dpm.KendallShapes(4)
    ball = Ball(shapes, shapes.origin, 0.3)
    rng = np.random.default_rng(0)
    landmarks = shapes.to_landmarks(shapes.origin) + 0.05 * rng.standard_normal((60, 4, 2))
    y = np.repeat(CLASSES, 30)
    for X in (landmarks, shapes.project(landmarks)):
        model = class_model(ball=ball).fit(X, y)
        assert model.predict(X).shape == (60,)
        with pytest.raises(ValueError, match="features"):
            model.predict(X[:, :3])
        with pytest.raises(ValueError, match="y"):
            clone(model).fit(X, None)
    directions = dpm.Sphere(2)
    X = directions.project([0.0, 0.0, 1.0] + 0.05 * rng.standard_normal((900, 3)))
    model = mean_model(ball=Ball(directions, [0.0, 0.0, 1.0], 0.7), refine=True).fit(X)
    assert directions.check(model.mean_) is None
    assert model.release_.steps


# -------------------------------------------------------------------- what comes out


def test_transform_is_distance_or_tangent_coordinates():
    X, _ = matrices()
    model = mean_model().fit(X)
    np.testing.assert_allclose(model.transform(X)[:, 0], BALL.space.dist(model.mean_, X), rtol=1e-9)
    tangent = model.set_params(output="tangent").transform(X)
    np.testing.assert_allclose(np.linalg.norm(tangent, axis=1), BALL.space.dist(model.mean_, X), rtol=1e-9)
    assert model.get_feature_names_out().tolist() == [f"privatefrechetmean{i}" for i in range(6)]
    with pytest.raises(InvalidArgumentError, match="output"):
        mean_model(output="vectors").fit(X)


def test_predictions_follow_distances_and_sorted_classes():
    X, y = matrices()
    model = class_model(classes=CLASSES[::-1]).fit(X, y)
    assert model.classes_.tolist() == CLASSES
    distances = model.transform(X)
    np.testing.assert_allclose(distances[:, 1], BALL.space.dist(model.releases_["right"].value, X), rtol=1e-9)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    weights = np.exp(-(distances**2))
    np.testing.assert_allclose(proba, weights / weights.sum(axis=1, keepdims=True), rtol=1e-9)
    assert set(model.predict(X)) <= set(CLASSES)


def test_generous_budget_is_nearly_as_accurate_as_pyriemann():
    (X, y), (X_new, y_new) = matrices(400, seed=1), matrices(1000, seed=2)
    exact = MDM().fit(X, y).score(X_new, y_new)
    model = class_model(privacy=GDP(5.0), budget=Budget(GDP(5.0)), random_state=0)
    private = model.fit(X, y).score(X_new, y_new)
    assert 0.9 < exact < 1  # neither too hard nor too easy to tell anything
    assert private > exact - 0.03


def test_a_unit_in_both_classes_gets_a_share_for_each():
    X, y = matrices()
    alone = class_model().fit(X, y).releases_["left"]
    assert alone.share == GDP(0.5)
    persons = np.empty(120, dtype=int)
    persons[y == "left"] = np.arange((y == "left").sum())
    persons[y == "right"] = np.arange((y == "right").sum())
    paired = class_model(units=None).fit(X, y, units=persons).releases_["left"]
    assert paired.share.mu == pytest.approx(0.5 / np.sqrt(2), rel=1e-9)
    assert paired.privacy == GDP(0.5)


# -------------------------------------------------------------------- who pays


@MODELS
def test_without_budget_only_public_data_can_be_fitted(make):
    X, y = matrices()
    with pytest.raises(InvalidArgumentError, match=r"budget=dpm\.Budget.*public_data=True"):
        make(budget=None).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="contradict"):
        make(budget=Budget(GDP(1.0)), public_data=True).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="public_data must be True or False"):
        make(public_data=1).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="must be a Budget"):
        make(budget=GDP(1.0)).fit(X, y)
    assert make(public_data=True).fit(X, y).transform(X).shape[0] == len(X)


@MODELS
def test_a_fit_to_public_data_does_not_call_itself_private(make):
    X, y = matrices()
    more = {"refine": True} if make is mean_model else {}
    for release in releases_of(make(public_data=True, **more).fit(X, y)):
        assert not release.private
        assert not any(step.private for step in release.steps)
        assert "NOT PRIVATE" in repr(release)
        assert dpm.verify(release).ok
        assert not dpm.verify(release).private
    assert all(release.private for release in releases_of(make(**more).fit(X, y)))


@MODELS
def test_most_records_outside_the_ball_are_refused_unless_confirmed(make):
    X, y = matrices()
    small = Ball(SPD(3, metric="riemann"), 30 * np.eye(3), 0.5)
    budget = Budget(GDP(1.0))
    with pytest.raises(InvalidDataError, match="outside the ball"):
        make(ball=small, budget=budget).fit(X, y)
    assert budget.history == ()
    make(ball=small, budget=budget, confirm=True).fit(X, y)
    assert len(budget.history) == 1
    with pytest.raises(InvalidArgumentError, match="confirm must be True or False"):
        make(confirm="yes").fit(X, y)


def test_cross_validation_stops_when_the_budget_is_spent():
    E, y = epochs()
    budget = Budget(GDP(2.0))  # four fits of mu = 1
    pipeline = make_pipeline(Covariances(), class_model(privacy=GDP(1.0), budget=budget))
    with pytest.raises(BudgetError, match="nothing of GDP"):
        cross_val_score(pipeline, E, y, cv=5, error_score="raise")
    assert [entry.privacy for entry in budget.history] == [GDP(1.0)] * 4
    with pytest.raises(BudgetError):
        pipeline.fit(E, y)


def test_cross_validation_within_budget_scores_every_fold():
    E, y = epochs(300)
    budget = Budget(GDP(12.0))
    model = class_model(privacy=GDP(5.0), budget=budget, random_state=0)
    scores = cross_val_score(make_pipeline(Covariances(), model), E, y, cv=5, error_score="raise")
    assert scores.min() > 0.8
    assert len(budget.history) == 5


def test_default_error_score_hides_a_spent_budget_behind_a_warning():
    X, y = matrices()
    model = class_model(privacy=GDP(1.0), budget=Budget(GDP(2.0)))
    with pytest.warns(FitFailedWarning, match="BudgetError"):
        scores = cross_val_score(model, X, y, cv=5)
    assert np.isnan(scores).tolist() == [False] * 4 + [True]


def test_grid_search_spends_for_candidates_folds_and_the_refit():
    X, y = matrices()
    budget = Budget(GDP(3.0))
    model = class_model(privacy=GDP(1.0), budget=budget)
    grid = {"mechanism": ["auto", "wrapped-gaussian"]}
    search = GridSearchCV(model, grid, cv=4, error_score="raise").fit(X, y)
    assert search.best_estimator_.budget is budget
    assert len(budget.history) == 9
    with pytest.raises(BudgetError):
        GridSearchCV(model, grid, cv=4, error_score="raise").fit(X, y)


def test_threads_share_the_budget():
    X, y = matrices()
    budget = Budget(GDP(2.0))
    model = class_model(privacy=GDP(1.0), budget=budget)
    with joblib.parallel_config("threading", n_jobs=2), pytest.warns(FitFailedWarning):
        scores = cross_val_score(model, X, y, cv=5)
    assert np.isnan(scores).sum() == 1
    assert len(budget.history) == 4


@pytest.mark.slow
def test_processes_are_told_that_the_budget_stayed_behind_and_what_to_do():
    X, y = matrices()
    budget = Budget(GDP(2.0))
    model = class_model(privacy=GDP(1.0), budget=budget)
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(BudgetError, match=r"n_jobs=1, or threads"):
        cross_val_score(model, X, y, cv=2, error_score="raise")
    assert budget.history == ()


@MODELS
def test_refused_data_and_mechanisms_cost_nothing(make):
    X, y = matrices()
    model = make()
    X[7, 0, 0] = np.nan
    with pytest.raises(InvalidDataError, match="index 7"):
        model.fit(X, y)
    with pytest.raises(InvalidArgumentError, match="baseline"):
        make(mechanism="extrinsic-gaussian", budget=model.budget).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="ball must be a Ball"):
        make(ball=SPD(3), budget=model.budget).fit(X, y)
    assert model.budget.spent is None
    assert make(invalid="center").fit(X, y).transform(X[:5]).shape[0] == 5


@pytest.mark.parametrize("wrong", ["left", ["left", 1], [], [["left"]], None])
def test_classes_are_a_list_of_one_kind(wrong):
    X, y = matrices()
    with pytest.raises(InvalidArgumentError, match="classes must be a list"):
        class_model(classes=wrong).fit(X, y)


@pytest.mark.parametrize("public", [["left"], ["left", "right", "up"], ["left", "right", "right"]])
def test_classes_and_labels_must_agree(public):
    X, y = matrices()
    model = class_model(classes=public)
    with pytest.raises(ValueError, match=r"outside the public classes|no records|distinct"):
        model.fit(X, y)
    assert model.budget.spent is None


# -------------------------------------------------------------------- who owns a record


@MODELS
def test_units_must_be_said(make):
    X, y = matrices()
    with pytest.raises(InvalidArgumentError, match="units must say who owns each record"):
        make(units=None).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="in the constructor"):
        make(units=np.arange(120)).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="in the constructor"):
        make(units="each-person").fit(X, y)
    with pytest.raises(InvalidArgumentError, match="one id per record"):
        make(units=None).fit(X, y, units=np.arange(7))
    assert make(units=dpm.EACH_RECORD).fit(X, y).transform(X).shape[0] == 120


def test_ids_given_to_fit_count_more_than_the_constructor():
    X, _ = matrices()
    release = mean_model(units="each-record").fit(X, units=np.arange(120) // 4).release_
    assert (release.n, release.unit) == (30, "unit")


def test_units_are_routed_through_pipelines_and_cross_validation():
    E, y = epochs()
    persons = np.array([f"{label}{i % 20}" for i, label in enumerate(y)])
    with sklearn.config_context(enable_metadata_routing=True):
        model = class_model(units=None, budget=Budget(GDP(3.0))).set_fit_request(units=True)
        pipeline = make_pipeline(Covariances(), model)
        fitted = clone(pipeline).fit(E, y, units=persons)
        scores = cross_val_score(pipeline, E, y, cv=3, params={"units": persons}, error_score="raise")
        assert model.get_metadata_routing().fit.requests["units"] is True
    assert np.isfinite(scores).all()
    assert len(model.budget.history) == 4
    assert {release.unit for release in fitted[-1].releases_.values()} == {"unit"}
    assert sum(release.n for release in fitted[-1].releases_.values()) == len(np.unique(persons))


def test_units_reach_a_transformer_in_the_middle():
    E, y = epochs()
    with sklearn.config_context(enable_metadata_routing=True):
        step = mean_model(units=None, output="tangent").set_fit_request(units=True)
        pipeline = make_pipeline(Covariances(), step, LogisticRegression())
        pipeline.fit(E, y, units=np.arange(120) // 2)
    assert pipeline[1].release_.n == 60
    assert pipeline.predict(E).shape == (120,)


def test_units_pass_without_routing_by_the_name_of_the_step():
    E, y = epochs()
    pipeline = make_pipeline(Covariances(), class_model(units=None))
    pipeline.fit(E, y, privatemdm__units=np.array([f"{label}{i % 20}" for i, label in enumerate(y)]))
    assert pipeline[-1].releases_["left"].unit == "unit"
    with pytest.raises(InvalidArgumentError, match="who owns"):
        clone(pipeline).fit(E, y)


# -------------------------------------------------------------------- scikit-learn is optional


def test_package_needs_no_scikit_learn_and_the_module_says_how_to_get_it():
    code = (
        "import sys, dpmanifold\n"
        "assert not any(name.split('.')[0] == 'sklearn' for name in sys.modules)\n"
        "sys.modules['sklearn'] = None\n"
        "try:\n    import dpmanifold.estimators\n"
        "except ImportError as problem:\n    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "dpmanifold[sklearn]"' in done.stdout


# -------------------------------------------------------------------- components


def test_components_are_coordinates_along_released_directions():
    X = matrices()[0]
    model = components_model(n_components=2)
    found = model.fit(X).decomposition_
    assert model.release_ is found.release
    assert (found.level, components_model(level=0.8).fit(X).decomposition_.level) == (0.95, 0.8)
    assert np.array_equal(model.transform(X), found.scores(X))
    assert list(model.get_feature_names_out()) == ["privatecomponents0", "privatecomponents1"]
    assert model.components_.shape == (2, 6)
    assert np.array_equal(model.explained_variance_, found.variances)
    assert np.array_equal(model.explained_variance_ratio_, found.shares, equal_nan=True)
    assert model.budget.spent == GDP(0.5)
    loaded = pickle.loads(pickle.dumps(model))
    assert (loaded.budget, np.array_equal(loaded.transform(X), model.transform(X))) == (None, True)
    assert clone(model).budget is model.budget
    with pytest.raises(NotFittedError):
        components_model().transform(X)
    with pytest.raises(InvalidArgumentError, match="budget must be given"):
        components_model(budget=None).fit(X)


def test_components_of_public_data_do_not_call_themselves_private():
    model = components_model(public_data=True, refine=True).fit(matrices()[0])
    assert not model.release_.private
    assert not any(step.private for step in model.release_.steps)


def test_components_within_a_pipeline_and_with_ids():
    E, y = epochs()
    model = make_pipeline(Covariances(), components_model(), LogisticRegression())
    assert model.fit(E, y).predict(E).shape == y.shape
    assert components_model(units=None).fit(matrices()[0], units=np.arange(120) // 2).release_.n == 60
