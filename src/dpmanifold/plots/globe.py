"""Directions: a released mean on the sphere S^2, beside a close-up of what surrounds it.

The camera and the shaded ellipsoids serve other pictures of three dimensions, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.plots import canvas
from dpmanifold.plots.spread import Spread, circle, draw_parts, ellipse, parent_release, spread_of
from dpmanifold.release import Release

_PAPER_SPHERE = np.array([0.93, 0.95, 0.97])
_PIXELS = 500
_MARGIN = 1.25  # the close-up is this much wider than what it shows


def sphere(result: Release | ConfidenceRegion, points: object = None) -> canvas.Figure:
    """Draw a mean or a region on S^2: the public ball's rim, the released mean and its confidence region.

    Left the globe, the far side dashed; right a close-up, with true distances from the released mean. Without a ball
    no error can be stated, and the mean is drawn alone.

    Parameters
    ----------
    result : release of a mean, or a region, on Sphere(2)
    points : PUBLIC points (n, 3) to draw along, labelled "public data"; never the private ones

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6)
    >>> X = ball.space.project([0.0, 0.0, 1.0] + 0.1 * np.random.default_rng(0).standard_normal((500, 3)))
    >>> figure = sphere(dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> figure.texts[2].get_text()
    'private release'
    """
    spread = spread_of(result, "sphere")
    ball = spread.release.ball
    if ball.space.picture != "sphere":
        raise InvalidArgumentError(f"sphere draws Sphere(2), got {ball.space!r}. Use tangent, which draws any space.")
    public = None if points is None else np.atleast_2d(ball.space.as_points(points, "points"))
    figure = canvas.released(spread.titled("on the sphere"), spread.sentence, [parent_release(result)], 4.5)
    if not spread.is_stated:
        only = figure.subplots()
        _globe(only, spread, camera_on(spread.center), public)
        return canvas.keyed(figure, only)
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    camera = camera_on(ball.center)
    _globe(left, spread, camera, public)
    _close_up(right, spread, camera, public)
    canvas.caption(left, "the whole sphere")
    canvas.caption(right, "close up")
    return canvas.keyed(figure, left, right)


def camera_on(center: Array) -> Camera:
    """Look at a ball a little from the side and from the equator, so that it looks round and north is up.

    Examples
    --------
    >>> camera = camera_on(np.array([1.0, 0.0, 0.0]))
    >>> bool(camera.in_front(np.array([1.0, 0.0, 0.0])) > 0.8)
    True
    """
    unit = center / np.linalg.norm(center)
    pole = np.array([0.0, 0.0, 1.0]) if abs(unit[2]) < 0.95 else np.array([0.0, 1.0, 0.0])
    east = np.cross(pole, unit)
    east = east / np.linalg.norm(east)
    north = np.cross(unit, east)
    return Camera.towards(unit + (-0.45 if unit[2] > 0.2 else 0.35) * north + 0.28 * east)


def _globe(axes: canvas.Axes, spread: Spread, camera: Camera, public: Array | None) -> None:
    ball = spread.release.ball
    radius = float(np.linalg.norm(ball.space.origin))
    around = bare_globe(axes, camera)
    if not ball.is_whole:
        rim = ball.space.exp_coords(ball.center, ball.radius * around) / radius
        draw_curve(axes, camera, rim, canvas.BALL, canvas.ball_name(ball), 1.4)
    if public is not None:
        seen = camera.in_front(public) >= 0
        dots = camera.on_paper(public[seen] / radius)
        axes.plot(*dots.T, ".", color=canvas.PUBLIC, markersize=3, alpha=0.7, label="public data")
    if spread.is_stated:
        edge = spread.move(ellipse(spread.shape)) / radius
        draw_curve(axes, camera, edge, canvas.ESTIMATE, spread.label, 1.4, filled=True)
    mean = camera.on_paper(spread.center / radius)
    # The mean is in the ball, and the ball faces the camera; without a ball the mean does.
    axes.plot(*mean, "o", color=canvas.BLACK, markersize=3.5, label=f"released {spread.what}")


def bare_globe(axes: canvas.Axes, camera: Camera) -> FloatArray:
    """Draw a globe with nothing on it; returns points on the unit circle, (241, 2), for whoever draws rims.

    Examples
    --------
    >>> bare_globe(canvas.figure_class()().subplots(), camera_on(np.array([1.0, 0.0, 0.0]))).shape
    (241, 2)
    """
    image = camera.shaded(np.eye(3), _PAPER_SPHERE, 1.01, _PIXELS, ambient=0.8)
    axes.imshow(image, extent=(-1.01, 1.01, -1.01, 1.01), origin="lower", interpolation="bilinear", zorder=0)
    _graticule(axes, camera)
    edge = circle(241)
    axes.plot(*edge.T, color=canvas.GREY, linewidth=0.8)
    canvas.square(axes, 1.2)
    axes.axis("off")
    return edge


def _graticule(axes: canvas.Axes, camera: Camera) -> None:
    """Draw meridians and parallels of the near side, and the three axes where they leave the sphere."""
    t = np.linspace(-np.pi, np.pi, 181)
    for latitude in np.deg2rad([-60, -30, 0, 30, 60]):
        ring = np.stack([np.cos(latitude) * np.cos(t), np.cos(latitude) * np.sin(t), np.full_like(t, np.sin(latitude))])
        draw_curve(axes, camera, ring.T, "#C4CAD0", None, 0.5, back=False)
    for longitude in np.deg2rad(np.arange(0, 180, 30)):
        ring = np.stack([np.cos(t) * np.cos(longitude), np.cos(t) * np.sin(longitude), np.sin(t)])
        draw_curve(axes, camera, ring.T, "#C4CAD0", None, 0.5, back=False)
    for name, axis in zip(("x", "y", "z"), np.eye(3), strict=True):
        start, end = camera.on_paper(axis), camera.on_paper(1.16 * axis)
        if camera.in_front(axis) >= 0:
            axes.plot(*np.stack([start, end]).T, color=canvas.INK, linewidth=0.8)
            x, y = camera.on_paper(1.24 * axis)
            axes.text(x, y, name, fontsize=8, ha="center", va="center", color=canvas.INK)


def draw_curve(
    axes: canvas.Axes,
    camera: Camera,
    points: FloatArray,
    color: str,
    label: str | None,
    width: float,
    *,
    back: bool = True,
    filled: bool = False,
) -> None:
    """Draw a curve on the sphere, solid on the near side and dashed on the far one.

    Examples
    --------
    >>> axes, camera = canvas.figure_class()().subplots(), camera_on(np.array([1.0, 0.0, 0.0]))
    >>> draw_curve(axes, camera, np.eye(3), canvas.BLUE, "a curve", 1.0)
    >>> axes.lines[0].get_label()
    'a curve'
    """
    paper, front = camera.on_paper(points), camera.in_front(points) >= 0
    if filled and front.all():
        axes.fill(*paper.T, color=color, alpha=0.25, linewidth=0)
    near = np.where(front[:, None], paper, np.nan)
    axes.plot(*near.T, color=color, linewidth=width, label=label)
    if back and not front.all():
        far = np.where(front[:, None], np.nan, paper)
        axes.plot(*far.T, color=color, linewidth=width, alpha=0.4, linestyle=(0, (3, 2)))


def _close_up(axes: canvas.Axes, spread: Spread, camera: Camera, public: Array | None) -> None:
    """Draw logarithms at the released mean, turned as the globe is."""
    ball, space = spread.release.ball, spread.release.ball.space
    unit = spread.center / np.linalg.norm(spread.center)
    right = camera.right - (camera.right @ unit) * unit
    right = right / np.linalg.norm(right)
    basis = np.stack([right, np.cross(unit, right)], axis=-1)

    def flat(points: Array) -> FloatArray:
        return np.asarray(space.log(np.broadcast_to(spread.center, points.shape), points) @ basis)

    axes.plot(*flat(space.exp_coords(ball.center, ball.radius * circle(361))).T, color=canvas.BALL, linewidth=1.4)
    if public is not None:
        axes.plot(*flat(public).T, ".", color=canvas.PUBLIC, markersize=4, alpha=0.7)
    edge = draw_parts(axes, spread, lambda shape: flat(spread.move(ellipse(shape))), (1.4, 1.2), None)
    axes.plot(0, 0, "o", color=canvas.BLACK, markersize=3.5)
    canvas.square(axes, _MARGIN * float(np.abs(edge).max()))
    axes.locator_params(axis="x", nbins=5)  # small distances have long labels
    canvas.tidy(axes, "distance", "distance", grid="both")


# -------------------------------------------------------------------- three dimensions on paper


# Where the light is, seen from the camera: over the left shoulder.
_LIGHT = np.array([-0.45, 0.6, 0.66])
AMBIENT = 0.45


@dataclass(frozen=True, eq=False)
class Camera:
    """An orthographic view: right and up on the paper, and towards the eye; orthonormal.

    Parameters
    ----------
    right, up, eye : unit vectors (3,)
    """

    right: FloatArray
    up: FloatArray
    eye: FloatArray

    @staticmethod
    def towards(eye: FloatArray) -> Camera:
        """Return the camera at `eye` that looks at the origin with the third axis up.

        Examples
        --------
        >>> Camera.towards(np.array([0.0, -1.0, 0.0])).right.round(6) + 0.0
        array([1., 0., 0.])
        """
        eye = eye / np.linalg.norm(eye)
        # From right above, the third axis is a point: the second one takes its place.
        upwards = np.array([0.0, 0.0, 1.0]) if abs(eye[2]) < 0.999 else np.array([0.0, 1.0, 0.0])
        right = np.cross(upwards, eye)
        right = right / np.linalg.norm(right)
        return Camera(right, np.cross(eye, right), eye)

    def on_paper(self, points: FloatArray) -> FloatArray:
        """Return where points (..., 3) are on the paper, (..., 2).

        Examples
        --------
        >>> Camera.towards(np.array([0.0, -1.0, 0.0])).on_paper(np.array([1.0, 5.0, 2.0])).round(6)
        array([1., 2.])
        """
        return np.asarray(points @ np.stack([self.right, self.up], axis=-1))

    def in_front(self, points: FloatArray) -> FloatArray:
        """Return how far points are towards the eye: above 0 is the near half.

        Examples
        --------
        >>> float(Camera.towards(np.array([0.0, -1.0, 0.0])).in_front(np.array([0.0, -2.0, 0.0])))
        2.0
        """
        return np.asarray(points @ self.eye)

    def shaded(
        self, matrix: FloatArray, color: FloatArray, half_width: float, pixels: int, ambient: float = AMBIENT
    ) -> FloatArray:
        """Return an image (pixels, pixels, 4) of the ellipsoid {x : x' matrix^-1 x <= 1}, bottom row first.

        Parameters
        ----------
        matrix : (3, 3), positive definite
        color : red, green and blue in [0, 1]
        half_width : half the width of the image, in units of x
        pixels : along each side
        ambient : brightness of the side away from the light, in [0, 1]

        Examples
        --------
        >>> image = Camera.towards(np.array([0.0, -1.0, 0.0])).shaded(np.eye(3), np.ones(3), 2.0, 40)
        >>> image.shape, float(image[0, 0, 3]), float(image[20, 20, 3])
        ((40, 40, 4), 0.0, 1.0)
        """
        turn = np.stack([self.right, self.up, self.eye])
        seen = turn @ matrix @ turn.T
        inverse = np.linalg.inv(seen)
        side = (np.arange(pixels) + 0.5) / pixels * 2 - 1
        x, y = np.meshgrid(half_width * side, half_width * side)
        outline = np.linalg.inv(seen[:2, :2])
        size = np.sqrt(outline[0, 0] * x * x + 2 * outline[0, 1] * x * y + outline[1, 1] * y * y)
        # The near end of the chord along the ray: inverse_33 z^2 + 2 cross z + rest = 0.
        cross = inverse[0, 2] * x + inverse[1, 2] * y
        rest = inverse[0, 0] * x * x + 2 * inverse[0, 1] * x * y + inverse[1, 1] * y * y - 1
        z = (-cross + np.sqrt(np.maximum(cross**2 - inverse[2, 2] * rest, 0.0))) / inverse[2, 2]
        normal = np.stack([x, y, z], axis=-1) @ inverse
        normal = normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300)
        light = np.maximum(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0.0)[..., None]
        painted = color * (ambient + (1 - ambient) * light) + (1 - ambient) / 4 * light**24
        # The edge fades over one pixel: `size` grows by one over the half axis there.
        pixel = 2 * half_width / pixels / np.sqrt(max(np.linalg.eigvalsh(seen[:2, :2])[0], 1e-300))
        alpha = np.clip((1 - size) / min(pixel, 1.0) + 0.5, 0.0, 1.0)[..., None]
        return np.concatenate([np.clip(painted, 0.0, 1.0), alpha], axis=-1)
