"""The service: its database, its ledger, and a desk for whoever has signed in."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, final

from dpmanifold.files import Closable
from dpmanifold.ledger import Ledger
from dpmanifold.service.accounts import Accounts, Actor
from dpmanifold.service.credentials import Logins, Tokens
from dpmanifold.service.forecasts import Forecasts
from dpmanifold.service.service_database import Database
from dpmanifold.service.settings import Settings

if TYPE_CHECKING:
    from dpmanifold.service.desk import Desk

PRINCIPAL = "service"
"""In whose name the service opens the ledger; it spends in the names of analysts."""


@final
class Service(Closable):
    """What the web process and the worker share; neither holds anything that the other does not read from disk.

    Parameters
    ----------
    settings : where everything is

    Attributes
    ----------
    database, ledger : the two places that remember
    accounts, logins, tokens : who may sign in, who has, and with what
    forecasts : plans and curves, which are public and kept for a while
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.database)
        self.database.prepare()
        self.ledger = Ledger.open(
            settings.ledger, witness=settings.witness, secret=settings.secret, principal=PRINCIPAL
        )
        self.accounts = Accounts(self.database)
        self.logins = Logins(self.database, settings.login_hours)
        self.tokens = Tokens(self.database)
        self.forecasts = Forecasts()

    @staticmethod
    def create(settings: Settings) -> Service:
        """Make folders, tables and ledger where there are none, and return the service.

        A ledger on PostgreSQL is its owner's to make, who is not the one that writes to it: `dpm ledger create`.
        """
        settings.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.vault.mkdir(parents=True, exist_ok=True, mode=0o700)
        files = [settings.database, settings.ledger, settings.witness, settings.secret]
        for where in (path for path in files if path is not None and "://" not in str(path)):
            pathlib.Path(where).parent.mkdir(parents=True, exist_ok=True)
        if "://" not in settings.ledger and not pathlib.Path(settings.ledger).exists():
            Ledger.create(
                settings.ledger, witness=settings.witness, secret=settings.secret, principal=PRINCIPAL
            ).close()
        return Service(settings)

    def desk(self, actor: Actor) -> Desk:
        """Return what one person may do."""
        from dpmanifold.service.desk import Desk

        return Desk(self, actor)

    def close(self) -> None:
        """Close what is open."""
        self.ledger.close()
        self.database.close()
