"""The laws every space obeys: one suite, inherited by the tests of each space.

A subclass gives `space`, how far base points may stray from the origin (`spread`), the longest vector to try
(`longest`) and, where conditioning enters, `kappa`. Hypothesis drives points, lengths and special directions.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpmanifold import Ball, InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds.base import EPS
from dpmanifold.testing import check_space

SEEDS = st.integers(0, 2**32 - 1)
UNIT = st.floats(0.0, 1.0)


def coordinates(space, seed, length):
    """Coordinates of a given length: a random direction, or, for every fifth seed, a frame direction."""
    rng = np.random.default_rng(seed)
    if seed % 5 == 0:
        c = np.zeros(space.dim)
        c[rng.integers(space.dim)] = rng.choice([-1.0, 1.0])
    else:
        c = rng.standard_normal(space.dim)
    return c / np.linalg.norm(c) * length


class SpaceLaws:
    """Laws of a Riemannian homogeneous space."""

    space = None
    spread = 1.0
    longest = 1.0

    def kappa(self, p):
        """Condition of a base point: what rounding of the stored point is multiplied by."""
        return 1.0

    def point(self, seed, share):
        return self.space.exp_coords(self.space.origin, coordinates(self.space, seed, share * self.spread))

    def triple(self, seed):
        return [self.point(seed + i, 0.2 + 0.3 * i) for i in range(3)]

    def same(self, p, q, tol):
        assert self.space.dist(p, q) <= tol

    # ------------------------------------------------------------ facts

    def test_its_facts_are_one_story(self):
        """The laws that the library ships (dpmanifold.testing); what follows is looked at more closely."""
        assert {law: wrong for law, wrong in check_space(self.space).items() if wrong is not None} == {}

    def test_equality_follows_the_parameters(self):
        import copy
        import pickle

        assert pickle.loads(pickle.dumps(self.space)) == self.space
        assert copy.deepcopy(self.space) == self.space
        assert hash(copy.copy(self.space)) == hash(self.space)

    @settings(max_examples=20)
    @given(SEEDS)
    def test_random_points_are_points(self, seed):
        points = self.space.random_point((2, 3), rng=seed)
        assert points.shape == (2, 3, *self.space.shape)
        assert self.space.check(points) is None
        assert self.space.random_point(rng=seed).shape == self.space.shape

    # ------------------------------------------------------------ metric

    @given(SEEDS)
    def test_distance_is_a_metric(self, seed):
        p, q, r = self.triple(seed)
        d = self.space.dist
        slack = 64 * EPS * max(map(self.kappa, (p, q, r))) + 1e-9
        assert d(p, q) >= 0
        assert d(p, p) <= slack
        assert abs(d(p, q) - d(q, p)) <= slack
        assert d(p, r) <= d(p, q) + d(q, r) + slack

    @given(SEEDS, UNIT, st.floats(-12, 0))
    def test_distance_to_exp_is_the_length(self, seed, share, exponent):
        p = self.point(seed, share)
        length = max(1e-12, self.longest * 10**exponent)
        q = self.space.exp_coords(p, coordinates(self.space, seed + 1, length))
        bound = 1e-8 * length + 16 * EPS * self.kappa(p)
        assert abs(self.space.dist(p, q) - length) <= bound

    @given(SEEDS, UNIT, st.floats(-12, 0))
    def test_log_undoes_exp(self, seed, share, exponent):
        p = self.point(seed, share)
        length = max(1e-12, self.longest * 10**exponent)
        c = coordinates(self.space, seed + 1, length)
        v = self.space.vector(p, c)
        back = self.space.log(p, self.space.exp(p, v))
        bound = 1e-8 * length + 16 * EPS * self.kappa(p)
        assert self.space.norm(p, back - v) <= bound
        assert np.linalg.norm(self.space.log_coords(p, self.space.exp_coords(p, c)) - c) <= bound

    @given(SEEDS)
    def test_exp_undoes_log(self, seed):
        p, q, _ = self.triple(seed)
        self.same(
            self.space.exp(p, self.space.log(p, q)),
            q,
            1e-8 + 64 * EPS * max(self.kappa(p), self.kappa(q)),
        )

    @given(SEEDS)
    def test_distance_is_norm_of_log(self, seed):
        p, q, _ = self.triple(seed)
        slack = 1e-9 + 64 * EPS * self.kappa(p)
        assert abs(self.space.norm(p, self.space.log(p, q)) - self.space.dist(p, q)) <= slack

    # ------------------------------------------------------------ frames and isometries

    @given(SEEDS)
    def test_coordinates_are_an_isometry(self, seed):
        p = self.point(seed, 0.7)
        c, e = coordinates(self.space, seed + 1, 1.0), coordinates(self.space, seed + 2, 2.0)
        v, w = self.space.vector(p, c), self.space.vector(p, e)
        slack = 1e-12 + 64 * EPS * self.kappa(p)
        np.testing.assert_allclose(self.space.coords(p, v), c, atol=slack, rtol=0)
        np.testing.assert_allclose(self.space.inner(p, v, w), c @ e, atol=4 * slack, rtol=0)
        np.testing.assert_allclose(self.space.norm(p, w), 2.0, atol=4 * slack, rtol=0)

    @given(SEEDS)
    def test_moving_to_the_origin_is_an_isometry(self, seed):
        p, q, r = self.triple(seed)
        space = self.space
        slack = 1e-9 + 256 * EPS * self.kappa(p) * max(self.kappa(q), self.kappa(r))
        self.same(space.to_origin(p, p), space.origin, slack)
        self.same(space.from_origin(p, space.origin), p, slack)
        moved_q, moved_r = space.to_origin(p, q), space.to_origin(p, r)
        assert abs(space.dist(moved_q, moved_r) - space.dist(q, r)) <= slack
        self.same(space.from_origin(p, moved_q), q, slack)
        np.testing.assert_allclose(space.log_coords(space.origin, moved_q), space.log_coords(p, q), atol=slack, rtol=0)

    # ------------------------------------------------------------ calculus

    def jacobian(self, p, c, step=1e-5):
        """Derivative of exp at coordinates c, in the frame at the end point, by central differences."""
        q = self.space.exp_coords(p, c)
        shifts = step * np.eye(self.space.dim)
        ahead = self.space.log_coords(q, self.space.exp_coords(p, c + shifts))
        behind = self.space.log_coords(q, self.space.exp_coords(p, c - shifts))
        return q, ((ahead - behind) / (2 * step)).T

    @settings(max_examples=30)
    @given(SEEDS, st.floats(0.05, 0.8))
    def test_volume_density_is_the_jacobian_of_exp(self, seed, share):
        p = self.point(seed, 0.3)
        c = coordinates(self.space, seed + 1, share * min(self.longest, 2.0))
        _, jacobian = self.jacobian(p, c)
        sign, log_det = np.linalg.slogdet(jacobian)
        assert abs(sign) == 1
        # Central differences with step 1e-5: about 1e-9 per entry.
        np.testing.assert_allclose(self.space.log_volume_density(c), log_det, atol=1e-6)

    @settings(max_examples=30)
    @given(SEEDS, st.floats(0.05, 0.8))
    def test_gauss_lemma(self, seed, share):
        p = self.point(seed, 0.3)
        c = coordinates(self.space, seed + 1, share * min(self.longest, 2.0))
        q, jacobian = self.jacobian(p, c)
        radial = -self.space.log_coords(q, p)
        np.testing.assert_allclose(radial @ jacobian, c, atol=1e-6)

    def test_the_hessian_diameter_grows_at_least_in_proportion(self):
        """What products of spaces rest on (theory: product)."""
        reaches = np.linspace(0.05, 0.45, 9) * min(self.longest, 3.0)
        shares = [self.space.hessian_diameter(float(reach)) / reach for reach in reaches]
        assert (np.diff(shares) >= -1e-9).all()

    # ------------------------------------------------------------ batches and types

    def test_batching_equals_looping(self):
        space = self.space
        p = np.stack([self.point(i, 0.5) for i in range(6)]).reshape(2, 3, *space.shape)
        q = np.stack([self.point(i + 50, 0.8) for i in range(6)]).reshape(2, 3, *space.shape)
        c = space.log_coords(p, q)
        v = space.log(p, q)
        calls = [
            (space.dist, p, q), (space.log, p, q), (space.log_coords, p, q), (space.to_origin, p, q),
            (space.from_origin, p, q), (space.exp_coords, p, c), (space.exp, p, v), (space.coords, p, v),
            (space.vector, p, c), (space.norm, p, v),
        ]  # fmt: skip
        for call, first, second in calls:
            together = call(first, second)
            apart = np.array([[call(first[i, j], second[i, j]) for j in range(3)] for i in range(2)])
            scale = 1 + np.abs(apart).max()
            np.testing.assert_allclose(together, apart, atol=1e-11 * scale, rtol=0)
        one_base = space.log_coords(p[0, 0], q)
        assert one_base.shape == (2, 3, space.dim)
        np.testing.assert_allclose(one_base[1, 2], space.log_coords(p[0, 0], q[1, 2]), atol=1e-10)
        for call in (space.log_volume_density, lambda c: space.hessian_spectrum(c)[0]):
            apart = np.array([[call(c[i, j]) for j in range(3)] for i in range(2)])
            np.testing.assert_allclose(call(c), apart, atol=1e-11)

    def test_empty_and_single_batches(self):
        space = self.space
        p = self.point(1, 0.5)
        none = np.zeros((0, *space.shape), dtype=space.dtype)
        assert space.check(none) is None
        assert space.dist(p, none).shape == (0,)
        assert space.log_coords(p, none).shape == (0, space.dim)
        assert space.exp_coords(p, np.zeros((0, space.dim))).shape == none.shape
        assert space.exp(p, none).shape == none.shape
        assert space.hessian_spectrum(np.zeros((0, space.dim)))[1].shape == (0, space.dim, space.dim)
        assert space.dist(p, p[None]).shape == (1,)

    def test_float32_points_are_taken(self):
        space = self.space
        single = np.complex64 if space.dtype.kind == "c" else np.float32
        p = np.stack([self.point(i, 0.5) for i in range(4)])
        taken = space.as_points(p.astype(single))
        assert taken.dtype == space.dtype
        assert space.check(taken) is None
        assert space.dist(p, taken).max() <= 1e-4

    # ------------------------------------------------------------ bad input

    def test_nan_is_named_by_index(self):
        p = np.stack([self.point(i, 0.5) for i in range(3)])
        p[1].flat[0] = np.nan
        with pytest.raises(InvalidDataError, match=r"NaN, infinite or not numbers at index 1"):
            self.space.as_points(p, "X")

    def test_wrong_shape_is_refused(self):
        with pytest.raises(InvalidDataError, match=r"X is not valid.*shape"):
            self.space.as_points(np.zeros((2, 77)), "X")
        with pytest.raises(InvalidArgumentError, match="p must have shape"):
            self.space.dist(np.zeros(77), np.zeros(77))
        with pytest.raises(InvalidArgumentError, match="c must have shape"):
            self.space.exp_coords(self.space.origin, np.zeros(77))

    def test_text_and_ragged_lists_are_refused(self):
        assert "numbers" in self.space.check(np.array(["a"]))
        assert "ragged" in self.space.check([[1.0], [1.0, 2.0]])

    # ------------------------------------------------------------ balls

    @settings(max_examples=40)
    @given(SEEDS, st.floats(0.05, 0.98), st.floats(0.0, 3.0))
    def test_clipping_lands_in_the_ball_along_the_geodesic(self, seed, share, beyond):
        space = self.space
        radius = share * min(space.radius_limit, 2.0)
        ball = Ball(space, self.point(seed, 0.6), radius)
        top = min(0.99 * space.injectivity_radius, radius * (1 + beyond))
        c = np.stack([coordinates(space, seed + i, top * i / 4) for i in range(5)])
        records = space.project(space.exp_coords(ball.center, c))
        clipped = ball.clip(records)
        assert (space.dist(ball.center, clipped) <= radius).all()
        assert ball.contains(clipped).all()
        np.testing.assert_array_equal(ball.clip(clipped), clipped)
        inside = space.dist(ball.center, records) <= radius
        np.testing.assert_array_equal(clipped[inside], records[inside])
        straight = c * np.minimum(1, radius / np.maximum(np.linalg.norm(c, axis=1), 1e-300))[:, None]
        slack = 1e-7 + 256 * EPS * self.kappa(ball.center)
        assert space.dist(clipped, space.exp_coords(ball.center, straight)).max() <= slack
        moved = ball.to_frame(records)
        assert (ball.frame.dist(ball.frame.origin, moved) <= radius).all()
        assert space.dist(ball.from_frame(moved), clipped).max() <= slack
