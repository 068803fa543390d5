"""What whoever holds the data is told: how many records do not count as they are.

That is told before anything is spent. Registered data are opened after it, so that it is told then, and so is why a
release was lost that was paid for.

A ball in the wrong place, a unit of measurement off by a thousand or columns in another order move every record to the
edge or the centre of the ball, and the release is then about the ball. Nobody can see that from the release. So the
curator is told, and where most records are concerned the question is refused unless it is confirmed.

A notice is data about the data and not private: it goes to the curator's own function, and is kept nowhere. So is the
refusal: whoever may ask again and again with other balls learns from it where most records lie, at no cost. Where
somebody else than the curator asks, `confirm=True` must be set for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public


@dataclass(frozen=True)
class Notice:
    """How many records were moved or replaced. NOT PRIVATE: for the curator alone.

    Attributes
    ----------
    records : how many there are
    clipped : how many lie outside the ball (or on its edge) and count as points of its edge
    replaced : how many were no points of the space and count as the centre (`invalid="center"`)
    group : which records, where there are several groups
    problem : why a release was lost that was paid for; else empty
    elsewhere : other populations of the ledger with which the same records are registered, in text; else empty
    beyond : of how many the covariate lies outside its range and counts as the nearer end (regressions)
    unnumbered : of how many the covariate is no number and counts as the middle of the range (`invalid="center"`)
    unlabelled : of how many the private label is none of the classes and counts as the first (`invalid="center"`)

    Examples
    --------
    >>> print(Notice(200, 3, 0))
    3 of 200 records lie outside the ball and count as points of its edge.
    """

    records: int
    clipped: int
    replaced: int
    group: str = ""
    problem: str = ""
    elsewhere: str = ""
    beyond: int = 0
    unnumbered: int = 0
    unlabelled: int = 0

    @property
    def most(self) -> bool:
        """Whether more than half of the records, of their covariates or labels do not count as they are."""
        most = max(self.clipped + self.replaced, self.beyond + self.unnumbered, self.unlabelled)
        return 2 * most > self.records

    @property
    def most_records(self) -> bool:
        """Whether more than half of the records do not count as they are."""
        return 2 * (self.clipped + self.replaced) > self.records

    def __str__(self) -> str:
        if self.problem:
            return f"The release is lost: {self.problem}"
        if self.elsewhere:
            return (
                f"The same records are registered with {self.elsewhere}: whoever is in both populations is protected "
                "by the sum of both caps."
            )
        told = (
            (self.clipped, "records lie outside the ball and count as points of its edge"),
            (self.replaced, "records are no points of the space and count as the ball's centre"),
            (self.beyond, "covariates lie outside their range and count as its nearer end"),
            (self.unnumbered, "covariates are no numbers and count as the middle of their range"),
            (self.unlabelled, "labels are none of the classes and count as the first of them"),
        )
        # How many were clipped is said even of none, unless records were replaced.
        parts = [
            f"{count:,} of {self.records:,} {what}"
            for place, (count, what) in enumerate(told)
            if count or (place == 0 and not self.replaced)
        ]
        return (f"{self.group}: " if self.group else "") + "; ".join(parts) + "."


Curator = Callable[[Notice], None]
"""A function that is told: before anything is spent, or after it where data are registered or a release is lost."""


@dataclass(frozen=True)
class Told:
    """Whom to tell about records that do not count as they are, and whether to go on if most do not."""

    curator: Curator | None = None
    confirm: bool = False

    def __post_init__(self) -> None:
        if self.curator is not None and not callable(self.curator):
            raise InvalidArgumentError(
                "`curator` must be a function that takes a Notice, or None, got {got}.", got=shown(self.curator)
            )
        if not isinstance(self.confirm, bool):
            raise InvalidArgumentError("`confirm` must be True or False, got {got}.", got=shown(self.confirm))

    def tell(self, notice: Notice) -> None:
        """Tell the curator; refuse to go on where most records are concerned, unless that was confirmed."""
        if self.curator is not None:
            self.curator(notice)
        if notice.most and not self.confirm:
            # Numbers for whoever asked for them alone: an error may end in a log.
            whose = f"the {notice.group}'s records" if notice.group else "the records"
            what, about = f"More than half of {whose} lie outside the ball or are no points of the space.", "ball"
            check = "the order of the columns, the units of measurement, the centre and the radius"
            if 2 * notice.unlabelled > notice.records:
                what, about = "More than half of the labels are none of the classes.", "first class"
                check = "which column holds the labels, and the names of the classes"
            elif not notice.most_records:
                what, about = "More than half of the covariates lie outside covariate_range or are no numbers.", "range"
                check = "which column it is, its unit of measurement and the range"
            raise InvalidDataError(
                "{detail} The release would describe the {about} and not the records. Check {check}; "
                "`confirm=True` goes on all the same. Nothing was spent.",
                detail=Public(what if self.curator is None else notice),
                about=Public(about),
                check=Public(check),
            )
