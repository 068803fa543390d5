"""The pages that people see. Every one asks a desk, and says nothing that the desk did not."""

from dpmanifold.service.web.pages import (
    account,
    auditor,
    browsing,
    entering,
    planning,
    registering,
    releasing,
    steward,
)

ROUTES = [
    *entering.ROUTES,
    *browsing.ROUTES,
    *planning.ROUTES,
    *releasing.ROUTES,
    *account.ROUTES,
    *steward.ROUTES,
    *registering.ROUTES,
    *auditor.ROUTES,
]
"""All routes of pages."""

__all__ = ["ROUTES"]
