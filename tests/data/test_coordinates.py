"""Coordinates of every system come back as they went, keep distances, and rows that are no points touch no others."""

import numpy as np
import pytest

from dpmanifold import SPD, Hyperbolic, InvalidArgumentError, InvalidDataError, Sphere
from dpmanifold.data import from_coordinates, to_coordinates
from dpmanifold.manifolds.coordinate_systems import ON_HYPERBOLOIDS, ON_SPHERES

pytestmark = pytest.mark.security

RNG = np.random.default_rng(5)
ANGLES = {
    "lonlat": ((-180, 180), (-90, 90)),
    "decinc": ((0, 360), (-90, 90)),
    "colatlon": ((0, 180), (-180, 180)),
    "strikedip": ((0, 360), (0, 180)),
}


def rows_of(name, count=500):
    """Rows of a system, without its edges."""
    unit = np.pi / 180 if name.endswith("radians") else 1.0
    low, high = np.array(ANGLES[name.removesuffix("-radians")], dtype=float).T
    return unit * RNG.uniform(low, high, (count, 2))


def spaces_of(name):
    return (Hyperbolic(2),) if ON_HYPERBOLOIDS[name].dim == 2 else (Hyperbolic(1), Hyperbolic(2), Hyperbolic(5))


@pytest.mark.parametrize("name", ON_SPHERES)
def test_angles_come_back(name):
    rows = rows_of(name)
    points = from_coordinates(rows, name)
    assert Sphere(2).check(points) is None
    back = to_coordinates(points, Sphere(2), name)
    np.testing.assert_allclose(back, rows, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(to_coordinates(points[3], Sphere(2), name), back[3])


@pytest.mark.parametrize("name", ON_SPHERES)
def test_every_direction_comes_back(name):
    points = Sphere(2).random_point(500, rng=1)
    points[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    back = from_coordinates(to_coordinates(points, Sphere(2), name), name)
    # Angles of up to 2 pi are rounded to 2^-51, twice.
    np.testing.assert_allclose(back, points, rtol=0, atol=2**-50 + 2**-51)


def test_radians_are_degrees_in_another_unit():
    for name in ("lonlat", "decinc", "colatlon"):
        rows = rows_of(name)
        points = from_coordinates(rows, name)
        np.testing.assert_allclose(from_coordinates(np.radians(rows), f"{name}-radians"), points, rtol=0, atol=1e-15)


def test_poles_and_the_date_line_have_one_name():
    ends = [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [-0.0, -0.0, 1.0], [-1.0, 0.0, 0.0], [-1.0, -0.0, 0.0]]
    expected = [[0, 90], [0, -90], [0, 90], [180, 0], [180, 0]]
    np.testing.assert_array_equal(to_coordinates(ends, Sphere(2), "lonlat"), expected)
    np.testing.assert_array_equal(to_coordinates(ends, Sphere(2), "decinc"), expected)
    north = Sphere(2).project([[1.0, -1e-20, 0.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    np.testing.assert_array_equal(to_coordinates(north, Sphere(2), "decinc")[:, 0], [0.0, 0.0, 270.0])
    # Both sides of the date line are close to each other.
    sides = from_coordinates([[179.999, 10.0], [-179.999, 10.0], [180.001, 10.0]], "lonlat")
    assert Sphere(2).dist(sides[0], sides[1]) < 4e-5
    np.testing.assert_allclose(sides[1], sides[2], rtol=0, atol=1e-15)


def test_close_to_a_pole_angles_keep_their_digits():
    """An arc sine of z = cos(1e-9) would give back a right angle."""
    rows = np.array([[30.0, 1e-9], [30.0, -1e-9]])
    near_pole = from_coordinates(np.abs(rows[:1, ::-1]), "colatlon")
    np.testing.assert_allclose(to_coordinates(near_pole, Sphere(2), "colatlon"), [[1e-9, 30.0]], rtol=1e-12)
    assert to_coordinates(near_pole, Sphere(2), "lonlat")[0, 1] <= 90.0


def test_declination_by_its_formula():
    declination, inclination = np.radians([[40.0, 200.0], [-35.0, 62.0]])
    expected = np.stack(
        [
            np.cos(inclination) * np.cos(declination),
            np.cos(inclination) * np.sin(declination),
            np.sin(inclination),
        ],
        axis=1,
    )
    points = from_coordinates(np.degrees([declination, inclination]).T, "decinc")
    np.testing.assert_allclose(points, expected, rtol=0, atol=1e-15)


def test_the_pole_of_a_plane_is_a_right_angle_from_all_that_lies_in_it():
    """The line of strike, and the line of steepest descent a quarter turn to its right."""
    strike, dip = rows_of("strikedip", 200).T
    pole = from_coordinates(np.stack([strike, dip], axis=1), "strikedip")
    level = from_coordinates(np.stack([strike, 0 * dip], axis=1), "decinc")
    s, d = np.radians([strike, dip])
    descent = np.stack([-np.cos(d) * np.sin(s), np.cos(d) * np.cos(s), np.sin(d)], axis=1)
    np.testing.assert_allclose((pole * level).sum(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose((pole * descent).sum(axis=1), 0, atol=1e-14)
    # A bed that strikes north and dips 30 degrees to the east has its pole 60 degrees down in the west.
    np.testing.assert_allclose(
        from_coordinates([[0.0, 30.0]], "strikedip"), from_coordinates([[270.0, 60.0]], "decinc"), atol=1e-15
    )


@pytest.mark.parametrize("name", ON_HYPERBOLOIDS)
def test_points_of_hyperbolic_space_come_back(name):
    for space in spaces_of(name):
        points = space.exp_coords(space.origin, 3 * RNG.standard_normal((300, space.dim)))
        points[0] = space.origin
        back = from_coordinates(to_coordinates(points, space, name), name)
        assert space.check(back) is None
        # At distance r the ball has room e^-r left, Klein's e^-2r: of that, roundings of 1e-16 are this much.
        rounding = 16 * np.finfo(float).eps * points[:, 0] ** (2 if name == "klein" else 1)
        assert (space.dist(back, points) <= rounding).all()


def distances(name, p, q):
    """The distance by the textbook formula of each model."""
    gap = ((p - q) ** 2).sum(axis=1)
    if name == "poincare":
        return np.arccosh(1 + 2 * gap / ((1 - (p**2).sum(axis=1)) * (1 - (q**2).sum(axis=1))))
    if name == "klein":
        room = (1 - (p**2).sum(axis=1)) * (1 - (q**2).sum(axis=1))
        return np.arccosh((1 - (p * q).sum(axis=1)) / np.sqrt(room))
    if name == "polar":
        (r, a), (s, b) = p.T, q.T
        return np.arccosh(np.cosh(r) * np.cosh(s) - np.sinh(r) * np.sinh(s) * np.cos(a - b))
    return np.arccosh(1 + gap / (2 * p[:, -1] * q[:, -1]))


@pytest.mark.parametrize("name", ON_HYPERBOLOIDS)
def test_each_model_has_its_own_distance(name):
    for space in spaces_of(name):
        points = space.exp_coords(space.origin, RNG.standard_normal((400, space.dim)))
        rows = to_coordinates(points, space, name)
        expected = space.dist(points[:200], points[200:])
        np.testing.assert_allclose(distances(name, rows[:200], rows[200:]), expected, rtol=1e-7)


def test_the_origin_of_every_model():
    for name, row in {"poincare": [0, 0], "klein": [0, 0], "halfplane": [0, 1], "halfspace": [0, 1]}.items():
        np.testing.assert_array_equal(from_coordinates([row], name), [[1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(to_coordinates(Hyperbolic(2).origin, Hyperbolic(2), "halfplane"), [0.0, 1.0])


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("lonlat", [0.0, 90.1]), ("decinc", [0.0, -91.0]), ("lonlat", [np.inf, 0.0]), ("colatlon", [-1.0, 0.0]),
        ("colatlon", [181.0, 0.0]), ("colatlon-radians", [3.2, 0.0]), ("strikedip", [0.0, -5.0]),
        ("lonlat-radians", [0.0, 1.6]), ("poincare", [0.6, 0.9]), ("poincare", [1.0, 0.0]), ("klein", [0.0, 1.0]),
        ("klein", [np.nan, 0.0]), ("halfplane", [3.0, 0.0]), ("halfspace", [3.0, -1.0]), ("halfplane", [np.inf, 1.0]),
        ("polar", [-1.0, 0.0]), ("polar", [1.0, np.nan]),
    ],
)  # fmt: skip
def test_rows_that_are_no_point_become_nan_or_are_refused_with_their_index(name, row):
    good = [0.2, 0.3]
    points = from_coordinates([good, row, good], name)
    np.testing.assert_array_equal(np.isnan(points).all(axis=1), [False, True, False])
    np.testing.assert_array_equal(points[[0, 2]], from_coordinates([good, good], name))
    with pytest.raises(InvalidDataError, match="the row at index 1 is "):
        from_coordinates([good, row, good], name, invalid="raise")


def test_latitudes_first_are_refused_unless_rows_are_judged_alone():
    rows = [[10.0, 120.0], [20.0, 150.0], [3.0, 4.0]]
    with pytest.raises(InvalidDataError, match="longitude or declination first"):
        from_coordinates(rows, "lonlat")
    alone = from_coordinates(rows, "lonlat", look=False)
    np.testing.assert_array_equal(np.isnan(alone).all(axis=1), [True, True, False])


def test_what_cannot_be_written_is_refused():
    refused = [
        (lambda: to_coordinates([1.0, 0.0, 0.0], Sphere(2), "poincare"), "must be one of lonlat, decinc"),
        (lambda: to_coordinates(np.eye(4)[0], Sphere(3), "lonlat"), "has no meaning on Sphere"),
        (lambda: to_coordinates(np.eye(2), SPD(2), "lonlat"), "has no meaning on SPD"),
        (lambda: to_coordinates([2.0, 0.0, 0.0], Sphere(2, curvature=0.25), "lonlat"), "curvature 1 or -1"),
        (lambda: to_coordinates([1.0, 0.0, 0.0], "sphere", "lonlat"), "space must be a space"),
        (lambda: from_coordinates([[0.0, 0.0]], "lonlat", invalid="skip"), "invalid must be"),
    ]
    for call, message in refused:
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(InvalidDataError, match="points: the vector at index 1 has length"):
        to_coordinates([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], Sphere(2), "lonlat")
