"""What regions, intervals and tests share: how they show themselves, and how they are written and read."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.codec import from_record, to_record
from dpmanifold.inference.estimate import features_of
from dpmanifold.manifolds import Manifold
from dpmanifold.privacy import Promise, cautions
from dpmanifold.release import CLIPPING_UNSTATED, FLOAT_TOLD, Release, not_promised, receipt_facts
from dpmanifold.result import Result
from dpmanifold.summary import all_told, told

C = TypeVar("C", bound="FromReleases")


class VarianceShares(NamedTuple):
    """What a squared width is made of, as shares that add up to 1.

    Parameters
    ----------
    noise : the noise on what is estimated; its size is public
    sampling : sampling, as much of it as cannot be noise
    allowance : the rest: the spread was released with noise too, and more of it than was seen is allowed for

    Examples
    --------
    >>> print(VarianceShares(0.25, 0.5, 0.25))
    25 % noise, 50 % sampling, 25 % allowance for the noisy spread
    >>> print(VarianceShares(0.25, 0.0, 0.75))
    25 % noise, 75 % allowance for the noisy spread, sampling hidden by the noise (more units still help)
    """

    noise: float
    sampling: float
    allowance: float

    @staticmethod
    def of(noise: float, sampling: float, total: float) -> VarianceShares:
        """Return the shares that two parts have in a total, the rest of which is allowance.

        Examples
        --------
        >>> VarianceShares.of(1.0, 2.0, 4.0)
        VarianceShares(noise=0.25, sampling=0.5, allowance=0.25)
        """
        first = min(1.0, noise / total)
        second = min(1.0 - first, sampling / total)
        return VarianceShares(first, second, 1.0 - first - second)

    @property
    def percent(self) -> tuple[int, int, int]:
        """The shares in whole per cent, which add up to 100 as well."""
        noise, until = round(100 * self.noise), round(100 * (self.noise + self.sampling))
        return noise, until - noise, 100 - until

    def __str__(self) -> str:
        noise, sampling, allowance = self.percent
        if sampling == 0:  # as much of it as cannot be noise: none was seen, which does not say that there is none
            hidden = "sampling hidden by the noise (more units still help)"
            return f"{noise} % noise, {allowance} % allowance for the noisy spread, {hidden}"
        return f"{noise} % noise, {sampling} % sampling, {allowance} % allowance for the noisy spread"


class FromReleases(Result):
    """Something that follows from releases which keep one promise together; its fields are what it is written by."""

    @property
    def ball(self) -> Ball:
        """The public ball."""
        ball: Ball = self.released[0].ball
        return ball

    @property
    def privacy(self) -> Promise:
        """What was promised to every unit, everything included."""
        promise: Promise = self.released[0].privacy
        return promise

    @property
    def private(self) -> bool:
        """False if a seed or a generator was used."""
        return all(one.private for release in self.released for one in (release, *release.steps))

    @property
    def is_exact(self) -> bool:
        """Whether all that it rests on was drawn exactly."""
        return all(release.is_exact for release in self.released)

    def to_dict(self, answers: bool = True) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        record = to_record(self)
        return record if answers else {name: entry for name, entry in record.items() if name != "answers"}

    @classmethod
    def from_dict(cls: type[C], record: dict[str, Any]) -> C:
        """Rebuild one from :meth:`to_dict`; what is not written there is refused."""
        found: C = from_record(cls, record)
        return found


class Conclusion(FromReleases):
    """A region, an interval or a test: something with a width, of which noise is a part."""

    @property
    @abstractmethod
    def variance_shares(self) -> VarianceShares:
        """What its squared width is made of: noise, sampling, and an allowance for the noise on the spread."""

    @property
    def privacy_share(self) -> float:
        """Share of the squared width that is there for privacy, in [0, 1]: noise and allowance.

        Sampling that the noise hides counts with it, so it is the most that privacy can be blamed for.
        """
        return 1.0 - self.variance_shares.sampling

    @property
    def dominant_source(self) -> str:
        """What limits the answer most: "sampling" or "privacy". From released numbers alone."""
        return "privacy" if self.privacy_share > 0.5 else "sampling"

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """Names and texts to show."""

    def arrays(self) -> dict[str, Array]:
        """Return the points among its facts as arrays, by the name of the fact: reports show them as tables."""
        return {}

    @abstractmethod
    def _numbers_told(self) -> dict[str, Any]:
        """Answers of this kind, by name."""

    def answers(self) -> dict[str, Any]:
        """Return what a person reads off it, for machines; None stands for a number that cannot be told.

        All of it follows from the releases in the record.
        """
        return {
            **self._numbers_told(),
            "variance_shares_percent": told(
                lambda: dict(zip(VarianceShares._fields, self.variance_shares.percent, strict=True))
            ),
            "notes": told(self.notes),
            **all_told(self, "privacy_share", "dominant_source", "private"),
        }

    @property
    @abstractmethod
    def _means(self) -> tuple[Release, ...]:
        """The released means it rests on."""

    def _worth(self) -> list[str]:
        """Say where the answer tells hardly more than the ball did; from public and released numbers alone."""
        return []

    def _tells_clipping(self, mean: Release) -> bool:
        """Whether it is told how far clipping to a refined ball may move this mean."""
        return True

    def notes(self) -> list[str]:
        """Say what a reader should know: how little it tells, the promise, and a ball that was found first."""
        found = self._worth()
        for mean in self._means:
            found += cautions(self.privacy, mean.n)
            found += mean.notes_on_the_ball()
            if mean.clipping is not None and self._tells_clipping(mean):
                found.append(
                    f"it is about the population clipped to the refined ball; the counts say that about "
                    f"{mean.clipping.outside:.1%} of the units lie outside, which moves a mean by about "
                    f"{mean.clipping.expected:.4g}, and at most by {mean.clipping.bound:.4g} with 99.9 %"
                )
        return list(dict.fromkeys(found))

    def facts(self) -> list[tuple[str, str]]:
        """Names and texts to show, notes included."""
        exact = "exact: all noise is ideal, rounded to public grids"
        return [
            *self._facts(),
            ("arithmetic", exact if self.is_exact else FLOAT_TOLD),
            *(("note", text) for text in self.notes()),
            *receipt_facts(*self.released),
            ("not covered", f"{not_promised(*self.released)}; {CLIPPING_UNSTATED}"),
        ]


class FromRelease(Conclusion):
    """A conclusion from one release, whose steps hold the others."""

    release: Release

    @property
    def released(self) -> tuple[Release, ...]:
        """The release it is computed from."""
        return (self.release,)

    @property
    def _means(self) -> tuple[Release, ...]:
        # Averages of features hold their mean themselves.
        return (self.release.mean_below if features_of(self.release) is None else self.release,)

    @property
    def space(self) -> Manifold:
        """The space of the data."""
        return self.ball.space

    @property
    def n(self) -> int:
        """How many units."""
        return self.release.n
