"""A person whose records lie in several files is one person: averaged as one, and moving a mean as one."""

import numpy as np
import pytest
from scaling.files import PERSON, matrices, triangles

from dpmanifold import GDP, private_mean, sensitivity
from dpmanifold.engines import ThreadEngine, using
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import prepare_records
from scale.made import METRICS, ball, cuts, dataset, hidden, tensors, write

pytestmark = pytest.mark.security

PEOPLE, FILES = 20, 5
METRIC = pytest.mark.parametrize("metric", METRICS)


def spread(metric, side):
    """Return triangles and people per file: person 0 has records in every file, everybody else in one.

    Person 0's records lie on one side of the ball or on the other; everything else is the same.
    """
    around = ball(metric)
    direction = np.zeros(around.space.dim)
    direction[0] = side * 0.999 * around.radius
    own = around.space.exp_coords(around.space.origin, direction)[np.triu_indices(3)]
    parts = []
    for number, others in enumerate(np.array_split(np.arange(1, PEOPLE), FILES)):
        ids = np.concatenate([[0, 0], np.repeat(others, 3)])
        rows = triangles(3 * len(others), seed=number)
        parts.append((np.concatenate([np.tile(own, (2, 1)), rows]), ids))
    return parts


def written(folder, kind, parts):
    values = np.concatenate([rows for rows, _ in parts])
    people = np.concatenate([ids for _, ids in parts])
    return write(folder, kind, values, people, np.r_[0, np.cumsum([len(rows) for rows, _ in parts])])


def per_file(parts):
    """The wrong way: whoever lies in two files counts twice."""
    return [(rows, ids + 1000 * number) for number, (rows, ids) in enumerate(parts)]


def moved(folder, kind, metric, change=lambda parts: parts):
    """Return how far person 0 moves the mean before noise, from one side of the ball to the other."""
    around, means = ball(metric), []
    for side in (1, -1):
        paths = written(folder / f"{side}", kind, change(spread(metric, side)))
        means.append(prepare_records(dataset(paths), around, PERSON, "raise", Told(confirm=True))[0].mean())
    return float(around.frame.dist(*means))


@METRIC
@pytest.mark.parametrize(("kind", "workers"), [("parquet", 1), ("csv", 2)])
def test_one_person_in_many_files_moves_a_mean_by_the_sensitivity_at_most(tmp_path, metric, kind, workers):
    allowed = sensitivity.of_mean(ball(metric), PEOPLE).value
    with using(ThreadEngine(workers)):
        right = moved(tmp_path / "right", kind, metric)
        wrong = moved(tmp_path / "wrong", kind, metric, per_file)
    assert 0.9 * allowed < right <= allowed  # the two sides are as far apart as the ball allows
    assert wrong > 2 * allowed  # grouped file by file, one person would count for five


@METRIC
def test_so_it_is_on_a_cluster(client, tmp_path, metric):
    assert moved(tmp_path, "parquet", metric) <= sensitivity.of_mean(ball(metric), PEOPLE).value


@METRIC
def test_people_are_counted_once(tmp_path, metric):
    paths = written(tmp_path, "parquet", spread(metric, 1))
    assert private_mean(dataset(paths), ball(metric), GDP(1.0), units=PERSON, rng=1).n == PEOPLE


@METRIC
def test_text_ids_cross_files_as_numbers_do(tmp_path, metric):
    values, numbers = tensors(400, PEOPLE)
    names = np.char.add("person ", numbers.astype(str))
    ends = cuts(len(values), FILES)
    by_number = hidden(matrices(values), ball(metric), numbers)
    for kind in ("parquet", "csv", "tsv"):
        paths = write(tmp_path / kind, kind, values, names, ends)
        assert hidden(dataset(paths), ball(metric), PERSON) == by_number
