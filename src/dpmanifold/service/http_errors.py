"""What can go wrong at the desk, in words that are safe for whoever asked, and the status that each has over HTTP.

What does not exist, what belongs to somebody else and what a role may not do are one and the same error, so that nobody
learns from an answer what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, final

from dpmanifold.errors import DPManifoldError, Public


class ServiceError(DPManifoldError):
    """A request that is refused; the message is for whoever made it.

    Attributes
    ----------
    status : of the answer over HTTP
    kind : in a word, for programs
    headers : of the answer
    incident : under which number the log has more; empty where it has not
    """

    status: ClassVar[int] = 400
    kind: ClassVar[str] = "invalid"
    headers: Mapping[str, str] = MappingProxyType({})
    incident = ""


@final
class NotFound(ServiceError):
    """There is no such thing, or not for you; always in the same words."""

    status, kind = 404, "not-found"

    def __init__(self) -> None:
        super().__init__("There is nothing here, or nothing that you may see.")


@final
class NotSignedIn(ServiceError):
    """Nobody is known by what was shown."""

    status, kind = 401, "not-signed-in"
    headers = MappingProxyType({"www-authenticate": "Bearer"})


@final
class Forbidden(ServiceError):
    """The request did not come from a page of this service."""

    status, kind = 403, "forbidden"


@final
class Conflict(ServiceError):
    """The request contradicts something that stands already."""

    status, kind = 409, "conflict"


@final
class OverBudget(ServiceError):
    """It would cost more than is left. Nothing was spent."""

    status, kind = 409, "over-budget"


@final
class TooMany(ServiceError):
    """Too many attempts.

    Parameters
    ----------
    message : what to do
    retry_after : in how many seconds another attempt is taken
    """

    status, kind = 429, "too-many"

    def __init__(self, message: str, /, retry_after: int) -> None:
        super().__init__("{message}", message=message)
        self.retry_after = retry_after
        self.headers = {"retry-after": str(max(1, retry_after))}


@final
class Unavailable(ServiceError):
    """Something that the service needs does not answer."""

    status, kind = 503, "unavailable"


@final
class Broken(ServiceError):
    """What nobody foresaw; of it only a number is told."""

    status, kind = 500, "broken"

    def __init__(self, incident: str) -> None:
        super().__init__(
            "Something went wrong here. Whoever runs this service finds it in the log under {incident}.",
            incident=Public(incident),
        )
        self.incident = incident
