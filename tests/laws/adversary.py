"""An adversary: searches for neighbouring data sets whose means are as far apart as possible."""

import numpy as np

from dpmanifold.frechet.statistics import problem_of


def largest_shift(ball, n, rng, **options):
    """Return the largest n * dist(mean, mean') that the search finds."""
    return worst_neighbours(ball, n, rng, **options)[0]


def worst_neighbours(ball, n, rng, clusters=3, population=48, generations=60):
    """Search for the largest n * dist(mean, mean') by differential evolution over clustered data.

    Returns it with the two data sets, shape (n, *space.shape) each.

    A candidate holds cluster positions, their weights and the two versions of the replaced record, all as
    coordinates at the ball's centre that are clipped to the ball; most of an extreme data set sits on its edge.
    """
    space = ball.space
    d = space.dim
    size = (clusters + 2) * d + clusters

    def places_and_numbers(candidates):
        """Cluster positions and both versions of the replaced record, and how many records each cluster holds."""
        places = candidates[:, : (clusters + 2) * d].reshape(-1, clusters + 2, d)
        length = np.linalg.norm(places, axis=2, keepdims=True)
        places = places * np.minimum(1, 1 / np.maximum(length, 1e-300)) * ball.radius * (1 - 1e-12)
        weights = np.exp(4 * candidates[:, (clusters + 2) * d :])
        shares = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        which = (np.arange(n - 1)[None, :, None] / (n - 1) >= shares[:, None, :-1]).sum(axis=2)
        return places, (which[:, :, None] == np.arange(clusters)).sum(axis=1)

    def score(candidates):
        places, numbers = places_and_numbers(candidates)
        # Equal records count once, with their number: a mean of n records from clusters + 1 of them.
        versions = [places[:, [*range(clusters), clusters + i]] for i in range(2)]
        X = space.project(space.exp_coords(ball.center, np.concatenate(versions).reshape(-1, d)))
        weights = np.tile(np.hstack([numbers, np.ones((len(candidates), 1))]), (2, 1)).ravel()
        sets = np.repeat(np.arange(2 * len(candidates)), clusters + 1)
        problem = problem_of(X, ball, weights, sets, None, 200)
        means = problem.to_user(problem.array())
        return n * space.dist(means[: len(candidates)], means[len(candidates) :])

    people = rng.uniform(-1.5, 1.5, (population, size))
    scores = score(people)
    for _ in range(generations):
        a, b, c = (people[rng.permutation(population)] for _ in range(3))
        best = people[np.argmax(scores)]
        base = np.where(rng.random((population, 1)) < 0.5, best, a)
        trial = np.where(rng.random((population, size)) < 0.8, base + 0.6 * (b - c), people)
        trial_scores = score(trial)
        better = trial_scores > scores
        people[better], scores[better] = trial[better], trial_scores[better]
    places, numbers = places_and_numbers(people[[np.argmax(scores)]])
    common = np.repeat(places[0, :clusters], numbers[0], axis=0)
    c = np.stack([np.concatenate([common, places[0, [clusters + i]]]) for i in range(2)])
    first, second = space.project(space.exp_coords(ball.center, c))
    return float(scores.max()), first, second
