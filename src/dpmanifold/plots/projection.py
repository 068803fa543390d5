"""Seeing three dimensions on paper: an orthographic camera, and shaded ellipsoids by casting one ray per pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold._check import FloatArray

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
