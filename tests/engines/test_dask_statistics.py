"""Private statistics on a cluster: what is hidden under the noise has the bits that it has here."""

import dask.array
import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import features
from dpmanifold.engines import DaskEngine, ThreadEngine, using
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import prepare_records
from engines.tasks import client_of
from laws.pieces import ListSource
from laws.spaces import BALLS

N, PEOPLE = 1500, 40
QUICK = [ball for ball in BALLS if ball.space == dpm.SPD(2, metric="riemann")]


def data(ball, seed=0):
    """Records all over the ball, some outside, and who owns them."""
    space, rng = ball.space, np.random.default_rng(seed)
    c = rng.standard_normal((N, space.dim))
    c *= ball.radius * (1.2 * rng.random(N) ** 0.5 / np.linalg.norm(c, axis=1))[:, None]
    return space.project(space.exp_coords(ball.center, c)), rng.integers(0, PEOPLE, N)


def hidden(X, ball, units):
    points = prepare_records(X, ball, units, "raise", Told(confirm=True))[0]
    return points.mean().tobytes(), features.average(points, features.JointMoments()).tobytes(), len(points)


def agrees(engine, ball):
    X, ids = data(ball)
    source = ListSource(X, ids, cuts=[400, 800], block=300)
    for here, there in ((dpm.EACH_RECORD, dpm.EACH_RECORD), (ids, "person")):
        with using(ThreadEngine(1)):
            expected = hidden(X, ball, here)
        with using(engine):
            assert hidden(source, ball, there) == expected


@pytest.mark.parametrize("ball", QUICK, ids=repr)
def test_hidden_means_have_the_same_bits(cluster, ball):
    agrees(cluster, ball)


@pytest.mark.slow
@pytest.mark.parametrize("ball", [ball for ball in BALLS if ball not in QUICK], ids=repr)
def test_hidden_means_have_the_same_bits_on_every_space(cluster, ball):
    agrees(cluster, ball)


class Cramped(DaskEngine):
    """Workers without room for points: every pass reads again."""

    def _look(self):
        slots = super()._look()
        self.room = 0
        return slots


def test_without_room_pieces_are_read_in_every_pass(cluster):
    agrees(Cramped(client_of(cluster)), QUICK[0])


def test_releases_with_a_seed_are_the_same(cluster):
    ball = QUICK[0]
    X, ids = data(ball)

    def released(source, units):
        release = dpm.private_mean(source, ball, dpm.GDP(1.0), units=units, rng=5, arithmetic="exact")
        return release.to_dict()

    expected = released(X, ids)
    with using(cluster):
        assert released(ListSource(X, ids, cuts=[1000]), "person") == expected


def test_arrays_of_dask(cluster):
    ball = QUICK[0]
    X, ids = data(ball)
    with using(ThreadEngine(1)):
        records, people = hidden(X, ball, dpm.EACH_RECORD), hidden(X, ball, ids)
    array, owners = dask.array.from_array(X, chunks=(500, *X.shape[1:])), dask.array.from_array(ids, chunks=500)
    with using(cluster):
        assert hidden(array, ball, dpm.EACH_RECORD) == records
        assert hidden(array, ball, owners) == people


@pytest.mark.slow
def test_frames_of_dask(cluster):
    import dask.dataframe
    import pandas as pd

    ball = QUICK[0]
    X, ids = data(ball)
    with using(ThreadEngine(1)):
        records, people = hidden(X, ball, dpm.EACH_RECORD), hidden(X, ball, ids)
    frame = pd.DataFrame(X.reshape(N, -1), columns=[f"x{i}" for i in range(X[0].size)])
    names = list(frame.columns)
    frame = dask.dataframe.from_pandas(frame.assign(person=ids), npartitions=3)
    array = client_of(cluster).persist(dask.array.from_array(X, chunks=(500, *X.shape[1:])))
    with using(cluster):
        assert hidden(frame[names], ball, dpm.EACH_RECORD) == records
        assert hidden(frame, ball, "person") == people
        assert hidden(array, ball, ids) == people
