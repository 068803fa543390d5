"""A mechanism is one file, found by an entry point: it gets plan, release, JSON, verify, the command line, the laws."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app
from dpmanifold.mechanisms import MECHANISMS, candidates, choose, get
from dpmanifold.noise import SimulationSource
from dpmanifold_example.cube_laplace import CUBE, CubeLaplace
from laws.mechanism_laws import MechanismLaws

BALL = dpm.Ball(dpm.SPD(2), np.diag([2.0, 1.0]), 1.5, source="the instrument's range")
pytestmark = pytest.mark.usefixtures("installed")


def records(n=400):
    return BALL.space.exp_coords(BALL.center, 0.3 * np.random.default_rng(0).standard_normal((n, 3)))


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.output


class TestCubeLaplace(MechanismLaws):
    name = "cube-laplace"


def test_the_plan_lists_it_and_auto_does_not_take_it(monkeypatch):
    plan = dpm.plan_mean(400, BALL, dpm.PureDP(1.0), everything=True)
    row = next(row for row in plan.rows if row.mechanism == "cube-laplace")
    assert row.scale == pytest.approx(CUBE.calibrate(BALL, 400, dpm.PureDP(1.0)).scale)
    assert "cube-laplace" not in {row.mechanism for row in dpm.plan_mean(400, BALL, dpm.PureDP(1.0)).rows}
    # Not even if it claimed to be the best there is.
    monkeypatch.setattr(CubeLaplace, "forecast", lambda self, ball, n, calibration: None)
    assert choose("auto", BALL, 400, dpm.PureDP(1.0))[0].name != "cube-laplace"
    assert CUBE not in candidates()


@pytest.mark.parametrize("privacy", [dpm.PureDP(1.0), dpm.ApproxDP(1.0, 1e-6), dpm.ZCDP(0.5), dpm.GDP(1.0)], ids=str)
def test_a_release_goes_to_json_and_back_and_is_verified(tmp_path, privacy):
    release = dpm.private_mean(records(), BALL, privacy, units=dpm.EACH_RECORD, mechanism="cube-laplace")
    assert release.private
    assert release.mechanism == "cube-laplace"
    assert "cube-laplace" in repr(release)
    release.save(tmp_path / "mean.json")
    again = dpm.load(tmp_path / "mean.json")
    assert dpm.verify(again).ok, dpm.verify(again).wrong
    assert not dpm.verify(replace(release, scale=0.9 * release.scale)).ok, "a wrong scale must be found"


def test_it_may_be_handed_over_as_it_is():
    release = dpm.private_mean(records(), BALL, dpm.PureDP(1.0), units=dpm.EACH_RECORD, mechanism=CUBE)
    assert release.mechanism == "cube-laplace"
    assert dpm.verify(release).ok
    assert get(CubeLaplace()).name == "cube-laplace"


def test_one_that_nobody_knows_can_be_used_and_is_not_verified(tmp_path, withdrawn):
    """A release states its name; whoever does not know the name can recompute nothing, and says so."""
    withdrawn(MECHANISMS)
    assert "cube-laplace" not in MECHANISMS
    release = dpm.private_mean(records(), BALL, dpm.PureDP(1.0), units=dpm.EACH_RECORD, mechanism=CUBE)
    assert release.mechanism == "cube-laplace"
    assert "cube-laplace" in repr(release)
    release.save(tmp_path / "mean.json")
    found = dpm.verify(dpm.load(tmp_path / "mean.json"))
    assert not found.ok
    assert "cube-laplace" in " ".join(found.wrong)


def test_a_file_says_which_distribution_is_missing(withdrawn, tmp_path):
    release = dpm.private_mean(records(), BALL, dpm.PureDP(1.0), units=dpm.EACH_RECORD, mechanism=CUBE)
    release.save(tmp_path / "mean.json")
    withdrawn(MECHANISMS)
    with pytest.raises(dpm.InvalidDataError, match=r"'cube-laplace' is not known here.*install the distribution"):
        dpm.load(tmp_path / "mean.json")


def test_a_name_means_one_thing():
    class Impostor(CubeLaplace):
        name = "wrapped-laplace"

    class Nobody(CubeLaplace):
        name = "auto"

    for other in (Impostor(), Nobody()):
        with pytest.raises(dpm.InvalidArgumentError, match="a name of its own"):
            choose(other, BALL, 400, dpm.PureDP(1.0))
    with pytest.raises(dpm.InvalidArgumentError, match="already a mechanism"):
        MECHANISMS.register("wrapped-laplace", Impostor())
    with pytest.raises(dpm.InvalidArgumentError, match="must be an instance of Mechanism"):
        MECHANISMS.register("cube", CubeLaplace)
    with pytest.raises(dpm.InvalidArgumentError, match="'cube-laplace' must be registered under that name"):
        MECHANISMS.register("alias", CUBE)


def test_what_it_cannot_do_it_refuses_before_anything_is_spent():
    sphere = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    budget = dpm.Budget(dpm.PureDP(1.0))
    with pytest.raises(dpm.PromiseError, match="it is written for flat spaces"):
        dpm.private_mean(
            np.tile([0.0, 0.0, 1.0], (40, 1)), sphere, dpm.PureDP(1.0), units=dpm.EACH_RECORD, mechanism=CUBE,
            budget=budget,
        )  # fmt: skip
    assert budget.spent is None


def test_noise_has_the_law_that_its_promise_rests_on():
    """The largest coordinate is Gamma(d + 1) times the maximum of uniforms, which is Gamma(d); 1e-6 false alarms."""
    from scipy import stats

    from laws.fit import assert_fits, rejects

    d, calibration = 3, CUBE.calibrate(BALL, 400, dpm.PureDP(1.0))
    draws = CUBE.law(BALL, calibration, np.zeros(d), None).sample(20_000, rng=SimulationSource(1))
    largest = np.abs(draws).max(axis=1) / calibration.scale
    assert_fits(largest, stats.gamma(d).cdf)
    assert rejects(largest, stats.gamma(d + 1).cdf)


def test_neighbours_densities_differ_by_epsilon_at_most():
    epsilon, rng = 1.0, np.random.default_rng(2)
    calibration = CUBE.calibrate(BALL, 40, dpm.PureDP(epsilon))
    step = rng.standard_normal(3)
    step *= calibration.sensitivity.value / np.linalg.norm(step)
    axis = np.array([calibration.sensitivity.value, 0.0, 0.0])
    one, two, far = (CUBE.law(BALL, calibration, mean, None) for mean in (np.zeros(3), step, axis))
    x = rng.standard_normal((10_000, 3))
    assert np.abs(one.logpdf(x) - two.logpdf(x)).max() <= epsilon
    # A shift along an axis uses epsilon up: a scale that is 1 % smaller would break the promise.
    assert 0.99 * epsilon < np.abs(one.logpdf(x) - far.logpdf(x)).max() <= epsilon * (1 + 1e-12)


def test_the_command_line_lists_uses_and_verifies_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", records())
    assert "cube-laplace" in run("mechanisms")
    rows = {row["name"]: row for row in json.loads(run("mechanisms", "--json"))}
    assert "sphere" not in " ".join(rows["cube-laplace"]["spaces"]).lower()
    run(
        "mean", "a.npy", "--space", "spd", "--units", "each-record", "--center", "1", "--radius", "3",
        "--epsilon", "1", "--mechanism", "cube-laplace", "--out", "a.json",
    )  # fmt: skip
    assert dpm.load("a.json").mechanism == "cube-laplace"
    assert "consistent" in run("verify", "a.json")
    assert "cube-laplace" in run("plan", "-n", 400, "--space", "spd", "--size", 2, "--radius", 3, "--epsilon", 1,
                                 "--all")  # fmt: skip


def test_a_new_process_finds_it():
    words = [sys.executable, "-m", "dpmanifold.cli", "mechanisms", "--json"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = [row["name"] for row in json.loads(said)]
    assert found == [*(one.name for one in MECHANISMS.own()), "cube-laplace"]


def test_one_that_cannot_be_hashed_and_changes_is_asked_anew():
    """A plain dataclass has no hash; and a forecast that was true of an object may not be true of it any more."""

    @dataclass
    class Changing(CubeLaplace):
        name: str = "changing-cube"
        stretch: float = 1.0

        def forecast(self, ball, n, calibration):
            return super().forecast(ball, n, replace(calibration, scale=self.stretch * calibration.scale))

    mechanism = Changing()
    with pytest.raises(TypeError, match="unhashable"):
        hash(mechanism)
    before = choose(mechanism, BALL, 400, dpm.PureDP(1.0))[2].mean
    mechanism.stretch = 2.0
    assert choose(mechanism, BALL, 400, dpm.PureDP(1.0))[2].mean == pytest.approx(2 * before)
