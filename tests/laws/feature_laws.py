"""A pair search that every feature map inherits: how far apart two images can be, by brute force and ascent."""

import numpy as np


def widest_pair(features, dim, rng, pairs=96, rounds=120):
    """Return the largest |phi(v) - phi(w)| that the search finds, and the pair.

    Random pairs, pairs of unit vectors, opposite ones and ones of special lengths; then every pair is moved by random
    steps that shrink, and keeps what is better.
    """
    v, w = (_clipped(rng.normal(size=(pairs, dim))) * rng.random((pairs, 1)) ** (1 / dim) for _ in range(2))
    quarter = pairs // 4
    v[:quarter], w[:quarter] = _clipped(1e9 * v[:quarter]), _clipped(1e9 * w[:quarter])
    w[quarter : 2 * quarter] = -v[quarter : 2 * quarter] * rng.random((quarter, 1))
    v[quarter : 2 * quarter] = _clipped(1e9 * v[quarter : 2 * quarter])
    w[:8], v[:8] = -v[:8], _clipped(1e9 * v[:8])
    best = _apart(features, v, w)
    for step in np.geomspace(0.5, 1e-7, rounds):
        moved = [_clipped(x + step * rng.normal(size=x.shape)) for x in (v, w)]
        found = _apart(features, *moved)
        better = found > best
        v[better], w[better], best[better] = moved[0][better], moved[1][better], found[better]
    top = int(np.argmax(best))
    return float(best[top]), v[top], w[top]


def _clipped(v):
    return v / np.maximum(1.0, np.linalg.norm(v, axis=1, keepdims=True))


def _apart(features, v, w):
    return np.linalg.norm(features.of(v) - features.of(w), axis=1)


def broken_laws(features, dim, rng):
    """Return what is wrong with a feature map, in words; empty if nothing is."""
    found, v, w = widest_pair(features, dim, rng)
    diameter, longest = features.diameter(dim), features.longest(dim)
    wrong = []
    # Rounding of the search itself: a few units in the last place of numbers of this size.
    if found > diameter * (1 + 1e-13):
        wrong.append(f"two images are {found!r} apart, more than {diameter!r}")
    if found < 0.99 * diameter:
        wrong.append(f"the diameter is stated as {diameter!r}, and no pair is farther apart than {found!r}")
    x = _clipped(rng.normal(size=(64, dim)) * rng.choice([1e-200, 1e-3, 1.0, 1e3], (64, 1)))
    images = features.of(x)
    if images.shape != (64, features.size(dim)) or features.units(dim, 2.0).shape != (features.size(dim),):
        wrong.append("its images have another size than it says")
    if np.linalg.norm(images, axis=1).max() > longest * (1 + 1e-13):
        wrong.append("an image is longer than it says")
    alone = np.concatenate([features.of(x[i : i + 1]) for i in range(64)])
    parts = np.concatenate([features.of(x[:7]), features.of(x[7:40]), features.of(x[40:])])
    if not (np.array_equal(alone, images) and np.array_equal(parts, images)):
        wrong.append("a vector alone has other features than among others")
    for t in (1.0 + 1e-3, 1.5):
        if np.linalg.norm(features.of(t * v[None]) - features.of(t * w[None])) > t**features.degree * diameter:
            wrong.append("it grows faster than its degree says")
    return wrong
