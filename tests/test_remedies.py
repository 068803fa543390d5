"""Messages name a remedy, and one that does what it is taken for."""

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli.failures import OptionWording
from dpmanifold.cli.main import app
from dpmanifold.data.specifications import center_of, space_of
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.SPD(3), np.eye(3), 1.0)


@pytest.mark.parametrize("invalid", ["raise", "center"])
def test_several_points_a_person_are_never_to_be_joined_without_their_ids(invalid):
    stacks = np.broadcast_to(np.eye(3), (4, 30, 3, 3))
    with pytest.raises(InvalidDataError) as told:
        dpm.private_mean(stacks, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, invalid=invalid)
    assert "take Product([SPD(3)] * 30); or reshape(-1, 3, 3) and repeat each person's id 30 times" in str(told.value)
    with pytest.raises(InvalidDataError, match=r"take Product\(\[SPD\(3\)\] \* 30\)") as told:
        dpm.data.as_records(stacks, dpm.SPD(3))
    assert 'take --space "Product([SPD(3)] * 30)"; or' in OptionWording().message(told.value)


@pytest.mark.parametrize(
    ("name", "shape"), [("spd", (30, 3, 3)), ("sphere", (30, 3)), ("euclidean", (5, 2)), ("kendall", (8, 12, 2))]
)
def test_the_command_line_names_the_product(name, shape):
    with pytest.raises(InvalidDataError, match=f"space product:{name} takes them together"):
        space_of(name, None, shape)
    assert space_of(f"product:{name}", None, shape).factors[0] == space_of(name, None, shape[1:])


def test_parts_of_a_product_are_counted_and_named():
    space = dpm.Product([dpm.SPD(3)] * 30)
    ball, parts = dpm.Ball(space, space.origin, 1.0), [np.broadcast_to(np.eye(3), (4, 3, 3))] * 30
    with pytest.raises(InvalidArgumentError, match=r"30 arrays, one for every factor, got 29"):
        dpm.private_mean(tuple(parts[:29]), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    unlike = (*parts[:7], parts[7][:3], *parts[8:])
    with pytest.raises(InvalidArgumentError, match=r"4 for factor 0, 3 for factor 7"):
        dpm.private_mean(unlike, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    with pytest.raises(InvalidArgumentError, match=r"got \(4,\), but \(3,\) in part 7\. Give every part of the same"):
        space.join(unlike)
    with pytest.raises(InvalidArgumentError, match="part 1 must have shape"):
        space.join((parts[0], np.eye(2), *parts[2:]))


def test_a_plan_speaks_of_refining_only_where_that_does_something():
    said = dpm.plan_mean(40, BALL, dpm.GDP(1.0)).verdict
    assert "a rough answer" in said
    assert "refine" not in said
    assert "would be skipped" in dpm.plan_mean(40, BALL, dpm.GDP(1.0), refine=True).refined.verdict
    wide = dpm.Ball(dpm.Euclidean(60), np.zeros(60), 1.0)
    assert dpm.plan_mean(150, wide, dpm.GDP(1.0)).verdict.endswith("A smaller ball may help: plan with refine=True.")
    assert dpm.plan_mean(150, wide, dpm.GDP(1.0), refine=True).refined.skipped is None


def test_a_public_ball_needs_two_points_that_differ_by_more_than_rounding():
    point = dpm.SPD(3).random_point(rng=1)
    for given in (point[None], np.stack([point, point]), np.stack([point, np.nextafter(point, 9.0)])):
        with pytest.raises(InvalidDataError, match=r"says nothing about a radius\. Give records of several people"):
            dpm.Ball.from_public(dpm.SPD(3), given)
    with pytest.raises(InvalidDataError, match="the size of rounding"):
        dpm.Ball.from_public(dpm.Euclidean(1), [[1e6], [1e6 + 1e-9]])
    assert dpm.Ball.from_public(dpm.Euclidean(1), [[1.0], [1.0 + 1e-9]], margin=0.0).radius < 1e-9


@pytest.mark.parametrize(
    ("space", "shape", "remedy"),
    [
        (dpm.SPD(3), (40, 6), r"data\.as_records\(array, space\) makes records of it: 6 for the upper triangle"),
        (dpm.SPD(3), (40, 5), "check the dimension"),
        (dpm.KendallShapes(12), (40, 24), "makes records of it: 24 columns x1, y1"),
        (dpm.Product([dpm.SPD(3)] * 30), (40, 30, 6), "makes records of it"),
        (dpm.Sphere(2), (40, 2), r"data\.from_coordinates\(array, name\) makes points of coordinates: lonlat, decinc"),
        (dpm.Sphere(5), (40, 5), "check the dimension"),
        (dpm.Hyperbolic(5), (40, 5), "coordinates: poincare, klein, halfspace"),
    ],
)
def test_other_forms_of_records_are_known(space, shape, remedy):
    ball = dpm.Ball(space, space.origin, 0.1)
    with pytest.raises(InvalidDataError, match=remedy):
        dpm.private_mean(np.ones(shape), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)


def test_one_number_is_a_centre_of_every_factor():
    assert np.array_equal(center_of(dpm.Product([dpm.SPD(3)] * 2), "0.7"), [0.7 * np.eye(3)] * 2)
    with pytest.raises(InvalidArgumentError, match="is no point of Product"):
        center_of(dpm.Product([dpm.Sphere(2)] * 2), "0.7")


def test_verify_and_units_name_what_is_meant():
    with pytest.raises(InvalidArgumentError, match=r"Read one from a file with dpmanifold\.load"):
        dpm.verify("x.json")
    with pytest.raises(InvalidArgumentError, match="EACH_RECORD says that nobody owns two records"):
        dpm.private_mean(np.zeros((9, 3, 3)) + np.eye(3), BALL, dpm.GDP(1.0), units="each_record")


def test_a_test_says_which_group_lies_outside():
    inside, outside = np.zeros((9, 3, 3)) + np.eye(3), np.zeros((9, 3, 3)) + 9.0 * np.eye(3)
    for groups, name in (((inside, outside), "second"), ((outside, inside), "first")):
        with pytest.raises(InvalidDataError, match=f"More than half of the {name} group's records lie outside"):
            dpm.private_two_sample_test(*groups, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD)


def test_a_budget_is_printed_without_the_last_digits_of_floats_and_says_on_which_side_they_are():
    budget = dpm.Budget(dpm.GDP(1.0))
    budget.spend(dpm.GDP(0.8))
    assert budget.remaining.mu < 0.6
    assert "remaining=just below GDP(mu=0.6)" in repr(budget)
    with pytest.raises(dpm.errors.BudgetError, match=r"has left, just below GDP\(mu=0\.6\).*Only the last digits"):
        budget.spend(dpm.GDP(0.6))


def test_several_numbers_are_not_one():
    ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    release = dpm.private_statistic(
        np.zeros((9, 1)), ball, dpm.GDP(1.0), statistic="joint moments", units=dpm.EACH_RECORD
    )
    assert release.title == "Release of private joint moments"
    assert "Private joint moments" in release.report()


def test_the_command_line_shrinks_as_it_is_told(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(-0.1, 0.1, (30, 6)))
    asked = ["mean", str(tmp_path / "x.npy"), "--space", "euclidean", "--units", "each-record", "--radius", "1"]
    found = {}
    for words in (["--shrinkage", "james-stein"], ["--shrinkage", "none"], ["--shrinkage", "much"]):
        out = tmp_path / "-".join(["out", *words, ".json"])
        done = CliRunner().invoke(app, [*asked, "--mu", "5", "--out", str(out), *words])
        found[words[-1]] = dpm.load(out).shrinkage if done.exit_code == 0 else done.output
    assert found.pop("much").count("must be one of auto, james-stein, none")
    assert found == {"james-stein": "james-stein", "none": ""}


@pytest.mark.parametrize(
    ("space", "shape"),
    [(dpm.SPD(3), (3, 3, 50)), (dpm.Euclidean(3), (3, 50)), (dpm.KendallShapes(4), (4, 2, 50))],
    ids=repr,
)
def test_records_along_the_last_axis_are_told_of(space, shape, tmp_path):
    ball = dpm.Ball(space, space.random_point(rng=0), 0.3)
    X = np.moveaxis(np.broadcast_to(dpm.data.as_records(_as_written(space), space), (50, *shape[:-1])), 0, -1)
    assert X.shape == shape
    np.save(tmp_path / "a.npy", X)
    for read in (
        lambda: dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD),
        lambda: dpm.data.as_records(X, space),
        lambda: dpm.data.Dataset(tmp_path).bound(space),
    ):
        with pytest.raises(InvalidDataError, match=r"give np\.moveaxis\(array, -1, 0\)"):
            read()
    moved = np.moveaxis(X, -1, 0)  # the remedy
    assert dpm.private_mean(moved, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, confirm=True, rng=0).n == 50


def _as_written(space):
    """One record as people write it: landmarks, not complex pre-shapes."""
    point = np.asarray(space.random_point(rng=1))
    return space.to_landmarks(point)[None] if hasattr(space, "to_landmarks") else point[None]


def test_landmarks_in_space_are_told_of():
    space, solid = dpm.KendallShapes(8), np.random.default_rng(0).standard_normal((20, 8, 3))
    ball = dpm.Ball(space, solid[0, :, :2], 0.3)
    for array in (solid, solid.reshape(20, 24)):
        with pytest.raises(InvalidDataError, match="shapes in the plane: of landmarks x, y, z give two coordinates"):
            dpm.private_mean(array, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
        with pytest.raises(InvalidDataError, match="shapes in the plane"):
            dpm.data.as_records(array, space)
    assert dpm.private_mean(solid[..., :2], ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, confirm=True, rng=0).n == 20


def test_a_radius_in_degrees_is_told_of():
    north = [0.0, 0.0, 1.0]
    with pytest.raises(InvalidArgumentError, match=r"below 0\.7854 .*, got 30: .* in degrees, give radians: 0\.5236"):
        dpm.Ball(dpm.Sphere(2), north, 30)
    assert dpm.Ball(dpm.Sphere(2), north, np.radians(30)).radius == pytest.approx(0.5236, abs=1e-4)
    with pytest.raises(InvalidArgumentError, match=r"unique\. Choose a smaller ball") as told:
        dpm.Ball(dpm.Sphere(2), north, 60.0)
    assert "degrees" not in str(told.value)  # 60 degrees are too many, too
    done = CliRunner().invoke(
        app, ["plan", "-n", "50", "--space", "sphere", "--size", "2", "--radius", "30", "--mu", "1"]
    )
    assert done.exit_code == 2
    assert "--radius must be below 0.7854" in done.stderr


def test_every_plan_has_a_best_draw():
    groups = (("two-sample-test", (50, 20)), ("k-sample-test", [50, 20]))
    for statistic, n in (("mean", 50), ("region", 50), ("variance", 50), *groups):
        plan = dpm.plan(n, BALL, dpm.GDP(1.0), statistic=statistic)
        assert f"with {plan.best.mechanism}" in plan.verdict
        assert f"{plan.best.error:.3g} (" in plan.verdict
    assert dpm.plan((50, 20), BALL, dpm.GDP(1.0), statistic="two-sample-test").best.group == "group 2 (20 units)"


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ('Give `units="participant_id"`.', "Give --units participant_id."),
        ('`units`: how many `mask="nonzero"` takes', "--units: how many --mask nonzero takes"),
        ("Choose the columns with `columns=`.", "Choose the columns with --columns."),
        ("Use it, or give `confirm=True`.", "Use it, or give --confirm."),
        ("`covariate=...` and `covariate_range=...`", "--covariate and --covariate-range"),
        ("`paths`: there is no file", "PATH: there is no file"),
    ],
)
def test_the_command_line_names_its_options(template, line):
    assert OptionWording().message(Message(template)) == line
