"""EEG epochs as covariance matrices in microvolts^2, and the public balls that hold them.

Every map here takes one epoch, or one matrix, at a time: nothing is fitted across records (no whitening, no common
spatial filters, no shrinkage estimated from the data set), so nothing here costs privacy or needs a budget. Keep it
that way when you prepare data: filters fixed beforehand are fine, filters learnt from the epochs are not.
"""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np
from scipy.linalg import helmert

from dpmanifold._check import Array, FloatArray, numeric_array, positive_float, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.data.descriptors import ball_about_multiple, iter_blocks, smallest_ball
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public
from dpmanifold.linalg import symmetrize

_LOWEST_UV = 0.5  # what a good amplifier and its electrodes leave as noise
# Above this ratio of largest to smallest eigenvalue the rounding of a covariance (1e-16 of the largest, times some
# hundred channels) is no longer small beside the smallest.
_WORST_CONDITION = 1e12
_CENTER_PLACES = 4  # of the logarithm, so that all machines have the same centre
_BLOCK_VALUES = 2**20  # values of epochs held as float64 at once, 8 MB


def eeg_covariances(epochs: object, ridge_uv: float = 0.5, scale: float = 1.0) -> FloatArray:
    """Return one covariance matrix per epoch; (n, channels, samples) -> (n, channels, channels), in microvolts^2.

    Each channel's mean over the epoch is subtracted, products are divided by the number of samples, and ridge_uv^2 is
    added on the diagonal: as if every channel had independent noise of that rms. What is done to an epoch depends on
    that epoch alone. Values that are not finite are passed on, and are the statistic's business (`invalid=`).

    Parameters
    ----------
    epochs : samples in any unit; band-pass them first, or slow drifts decide the matrix
    ridge_uv : rms of the ridge in microvolts, at least 0; public. The ball depends on it: give `eeg_ball` the same
    scale : microvolts per unit of `epochs`. MNE-Python keeps volts: scale=1e6

    Notes
    -----
    Epochs in the average reference have no covariance along (1, ..., 1), however long they are. See
    :func:`remove_average_reference`.

    Examples
    --------
    >>> epochs = np.array([[[1.0, -1.0, 1.0, -1.0], [2.0, 2.0, -2.0, -2.0]]])
    >>> eeg_covariances(epochs, ridge_uv=0.5)
    array([[[1.25, 0.  ],
            [0.  , 4.25]]])
    """
    ridge, factor = _amplitude(ridge_uv, "ridge_uv"), positive_float(scale, "scale")
    array = _checked_epochs(epochs)
    channels, samples = array.shape[1:]
    result = np.empty((len(array), channels, channels))
    # Warnings of numpy would tell about single records.
    with np.errstate(all="ignore"):
        for part in iter_blocks(array, max(1, _BLOCK_VALUES // max(1, channels * samples))):
            block = np.array(array[part], dtype=np.float64, order="C")
            block *= factor
            block -= block.mean(axis=-1, keepdims=True)
            result[part] = symmetrize(block @ np.swapaxes(block, -1, -2) / samples)
    diagonal = np.arange(channels)
    result[:, diagonal, diagonal] += ridge**2
    return result


def drop_reference(epochs: object, channel: int = -1) -> Array:
    """Return epochs without one channel: the remedy for a channel that the others determine.

    - A channel that *is* the reference (flat zero): name it.
    - The average reference: the channels add up to 0, so that any one may go, by default the last. Nothing is lost, but
      the smallest eigenvalue may fall by up to the number of channels, and the channels are no longer alike;
      :func:`remove_average_reference` keeps all eigenvalues.

    The ball is then `eeg_ball(channels - 1, ...)`.

    Examples
    --------
    >>> drop_reference(np.zeros((10, 22, 250))).shape
    (10, 21, 250)
    """
    array = _checked_epochs(epochs)
    count = array.shape[1]
    if isinstance(channel, bool) or not isinstance(channel, Integral) or not -count <= channel < count:
        raise InvalidArgumentError(
            "channel must be the index of one of the {count} channels, got {got}.",
            count=Public(count),
            got=shown(channel),
        )
    if count < 2:
        raise InvalidArgumentError("epochs has one channel only: nothing would be left.")
    return np.delete(array, int(channel), axis=1)


def remove_average_reference(covariances: object) -> FloatArray:
    """Return covariances without the direction that the average reference empties; (..., k, k) -> (..., k-1, k-1).

    The average reference makes the channels add up to 0: the covariance is singular along (1, ..., 1), in every
    epoch. A ridge alone mends that badly. The matrices become invertible, but along that direction all have the ridge
    as their eigenvalue, and nothing else. It tells nothing, yet the ball must reach there: a direction at the far end
    of the range adds ln^2(centre/ridge) to the squared radius, and k more dimensions of noise to every release.

    Here H C H' is returned, H the k-1 orthonormal Helmert rows, all orthogonal to (1, ..., 1): fixed, known to
    everyone and the same for every record. A matrix C that is singular along (1, ..., 1) keeps its other eigenvalues,
    and a ridge r^2 I becomes r^2 I. A matrix that is not gets the average reference first: H C H' is the same before
    and after. For a picture in the channels, a mean M goes back as H' M H.

    The ball is `eeg_ball(k, ..., average_reference=True)`, with k the original number.

    Directions that a *fitted* cleaning took out (components of an ICA) differ from person to person. No fixed map
    removes them; there the ridge is what is left.

    Examples
    --------
    >>> epochs = np.random.default_rng(0).standard_normal((5, 4, 100))
    >>> epochs -= epochs.mean(axis=1, keepdims=True)
    >>> C = eeg_covariances(epochs, ridge_uv=0.0)
    >>> smaller = remove_average_reference(C)
    >>> smaller.shape, bool(np.allclose(np.linalg.eigvalsh(smaller), np.linalg.eigvalsh(C)[:, 1:]))
    ((5, 3, 3), True)
    """
    array = numeric_array(covariances, "covariances")
    if array.dtype.kind == "c" or array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 2:
        raise InvalidDataError(
            "covariances must be real matrices (..., k, k), k at least 2, got {dtype} of shape {shape}.",
            dtype=array.dtype,
            shape=Public(array.shape),
        )
    rows = helmert(array.shape[-1])
    with np.errstate(all="ignore"):
        return np.asarray(symmetrize(rows @ array @ rows.T))


def eeg_ball(
    channels: int,
    bound: str = "typical",
    lowest_uv: float | None = None,
    highest_uv: float = 200.0,
    ridge_uv: float = 0.5,
    average_reference: bool = False,
    metric: str = "logeuclid",
) -> Ball:
    """Return a public ball on SPD(channels) for what `eeg_covariances` makes, from amplitudes in microvolts rms.

    With r = `ridge_uv`, h = `highest_uv`, k = `channels`; an eigenvalue is the mean square of a combination of channels
    whose weights have unit length.

    - `bound="certain"` holds every epoch whose channels all have rms of at most h, flat and artefact-laden ones
      included: eigenvalues are at least r^2, and their excess over r^2 adds up to the trace, at most k h^2. So they
      lie in [r^2, k h^2 + r^2], and not all at its upper end.
    - `bound="typical"` assumes more: *every* unit combination of channels has rms from `lowest_uv` to h, so that all
      eigenvalues lie in [lowest^2 + r^2, h^2 + r^2]. Epochs beyond are clipped, as by any ball: that costs accuracy,
      never privacy.

    Both have the centre c I and the smallest radius for it that is certified. They follow from the amplitudes, and
    those from what amplifiers and heads are; never take them from the private epochs. No spectrum of a head is
    assumed, so radii are large (log-Euclidean and affine-invariant alike):

    | channels, highest, ridge | certain | typical |
    |---|---|---|
    | 8, 200, 0.5 | 18.0 | 16.0 |
    | 8, 50, 1 | 12.1 | 10.7 |
    | 22, 50, 1 | 20.1 | 17.8 |

    What makes them smaller: fewer channels (a chosen few, not a fitted projection), band-passed and artefact-free
    epochs (h of 50), a larger ridge; then `private_mean(..., refine=True)`, which looks for a smaller ball inside.

    Parameters
    ----------
    channels : the number of channels of the recording
    bound : "typical" or "certain"
    lowest_uv : for "typical" only; 0.5 if left out, about the noise of a good amplifier
    highest_uv : 200 if artefacts may be left, 50 for clean epochs
    ridge_uv : the ridge given to `eeg_covariances`
    average_reference : True for matrices from `remove_average_reference`: the ball is on SPD(channels - 1)
    metric : "logeuclid", or "riemann", where double precision refuses radii from about 17 on

    Notes
    -----
    The radius about c I is sqrt(sum ln^2(eigenvalue/c)) under both metrics, because c I commutes with everything. For
    "certain" the largest such sum is bounded by weak duality, as for image descriptors (theory: descriptors, Theorem
    4, with eta = r^2 and T = k h^2); for "typical" it is sqrt(k) times half the range of logarithms. In the average
    reference T stays k h^2, although one dimension is gone.

    Examples
    --------
    >>> ball = eeg_ball(8, bound="certain", highest_uv=50, ridge_uv=1.0)
    >>> ball.space, round(ball.radius, 2)
    (SPD(8), 12.14)
    >>> loud = np.zeros((1, 8, 4)) + 50 * np.array([1.0, -1.0, 1.0, -1.0])
    >>> ball.contains(eeg_covariances(loud, ridge_uv=1.0))
    array([ True])
    >>> print(eeg_ball(8, average_reference=True).source)
    EEG covariances, 8 channels in average reference, ridge 0.5 uV: combinations of channels between 0.5 and 200 uV rms
    """
    count = positive_int(channels, "channels", minimum=2 if average_reference else 1)
    size = count - 1 if average_reference else count
    highest, ridge = positive_float(highest_uv, "highest_uv"), _amplitude(ridge_uv, "ridge_uv")
    if bound == "certain":
        if lowest_uv is not None:
            raise InvalidArgumentError(
                'lowest_uv is an assumption of bound="typical" only. Drop it, or choose that bound.'
            )
        if ridge == 0:
            raise InvalidArgumentError('ridge_uv must be above 0 for bound="certain": a flat channel has no variance.')
        largest = count * highest**2
        _refuse_condition(ridge**2, largest + ridge**2)
        center, radius = smallest_ball(size, ridge**2, largest)
        reason = f"channels of at most {highest:g} uV rms, certified by duality (theory: descriptors)"
    elif bound == "typical":
        lowest = _LOWEST_UV if lowest_uv is None else positive_float(lowest_uv, "lowest_uv")
        if not lowest < highest:
            raise InvalidArgumentError(
                "lowest_uv must be below highest_uv, got {lowest:g} and {highest:g}.",
                lowest=Public(lowest),
                highest=Public(highest),
            )
        least, largest = lowest**2 + ridge**2, highest**2 + ridge**2
        _refuse_condition(least, largest)
        log_center = round((math.log(least) + math.log(largest)) / 2, _CENTER_PLACES)
        center = math.exp(log_center)
        radius = math.sqrt(size) * max(log_center - math.log(least), math.log(largest) - log_center)
        reason = f"combinations of channels between {lowest:g} and {highest:g} uV rms"
    else:
        raise InvalidArgumentError('bound must be "typical" or "certain", got {got}.', got=shown(bound))
    reference = " in average reference" if average_reference else ""
    source = f"EEG covariances, {count} channels{reference}, ridge {ridge:g} uV: {reason}"
    remedy = "Lower highest_uv, raise ridge_uv, take fewer channels"
    return ball_about_multiple(size, metric, center, radius, source, "amplitudes", remedy)


def _refuse_condition(least: float, largest: float) -> None:
    """Refuse ranges of eigenvalues that rounding of the covariances would blur."""
    if not largest <= _WORST_CONDITION * least:
        raise InvalidArgumentError(
            "highest_uv is too far above ridge_uv and lowest_uv: eigenvalues would differ by a factor of "
            "{largest:.3g}, and above {worst_condition:g} rounding decides the smallest. Are all in "
            "microvolts? Raise the ridge.",
            largest=Public(largest / least),
            worst_condition=Public(_WORST_CONDITION),
        )


def _amplitude(value: object, name: str) -> float:
    """Return an amplitude of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not (math.isfinite(value) and float(value) >= 0):
        raise InvalidArgumentError(
            "{name} must be a finite number of microvolts, at least 0, got {got}.",
            name=Argument(name),
            got=shown(value),
        )
    return float(value)


def _checked_epochs(epochs: object) -> Array:
    """Return epochs as an array of the dtype they came in, so that a memory map stays one."""
    array = (
        epochs
        if isinstance(epochs, np.ndarray) and not np.ma.isMaskedArray(epochs)
        else numeric_array(epochs, "epochs")
    )
    if array.dtype.kind not in "fiu" or array.ndim != 3 or min(array.shape[1:]) < 1:
        remedy = "One epoch is epochs[None]." if array.ndim == 2 else "Put channels before samples: np.swapaxes."
        raise InvalidDataError(
            "epochs must be real numbers of shape (n, channels, samples), got {dtype} of shape {shape}. {remedy}",
            dtype=array.dtype,
            shape=Public(array.shape),
            remedy=Public(remedy),
        )
    return array
