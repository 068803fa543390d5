"""A client of a service: the private calls by name, with a data set's name where records would be."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.files import Closable
from dpmanifold.mechanisms import Mechanism
from dpmanifold.privacy import Promise, promise_from_dict
from dpmanifold.privacy.promises import as_promise
from dpmanifold.release import Release
from dpmanifold.remote.journal import Journal
from dpmanifold.remote.pending import AnswerError, Expected, Pending, naming
from dpmanifold.remote.private_calls import BallGiven, PrivateCalls
from dpmanifold.remote.tokens import token_for
from dpmanifold.remote.transport import ConflictError, RemoteError, Transport, checked_url, entry, quoted
from dpmanifold.serialization import array_to_json, ball_from_dict
from dpmanifold.stats.means import MEAN_QUERY
from dpmanifold.stats.query import Query, query_named


def promise_record(privacy: Promise) -> dict[str, Any]:
    """Return a promise for a question: exact, text where it was typed as text.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> promise_record(GDP("0.3"))
    {'kind': 'GDP', 'mu': '0.3'}
    """
    return {"kind": type(as_promise(privacy)).__name__, **privacy.stated}


def options_record(query: Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a question: those that are not what is meant anyway.

    Examples
    --------
    >>> from dpmanifold.stats.query import query_named
    >>> options_record(query_named("region"), {"level": 0.9, "refine": False})
    {'level': 0.9}
    """
    return query.checked({name: _plain(name, value) for name, value in given.items()})


def _plain(name: str, value: Any) -> Any:
    """Return an option as JSON has it."""
    if isinstance(value, Mechanism):
        return value.name
    plain = value.item() if isinstance(value, np.generic) else value
    endless = isinstance(plain, float) and not math.isfinite(plain)
    if endless or not (plain is None or isinstance(plain, (bool, int, float, str))):
        raise InvalidArgumentError(f"{name} must be text or a number over the network, got {shown(value)}.")
    return plain


_MOST_PAGES = 200  # that are looked through


def connect(url: str, token: str | None = None, *, ca: str | os.PathLike[str] | None = None) -> Client:
    """Return a client of a service, by which private statistics are asked of data that stay where they are.

    Parameters
    ----------
    url : of the service: https://, or http:// on this machine
    token : made on the service's account page; else DPM_TOKEN in the environment, or what `dpm remote login` stored
    ca : a file with the certificates that the service's is checked against, where its maker is not generally known

    Examples
    --------
    >>> client = connect("https://data.example.org", token="dpm_...")
    >>> client
    Client('https://data.example.org')
    """
    where = checked_url(url)
    found, stored = token_for(where, token)
    return Client(Transport(where, found, ca if ca is not None else stored))


class Client(Closable, PrivateCalls):
    """What one account may do at a service. Made by :func:`dpmanifold.connect`; threads may share it.

    The private calls have the library's names without `private_`, and return what the library's own calls return: a
    :class:`~dpmanifold.Release`, a :class:`~dpmanifold.ConfidenceRegion` and so on. :meth:`ask` says what they share.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    # ---------------------------------------------------------------- what there is

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._transport.url

    @functools.cached_property
    def account(self) -> str:
        """The name of the account that the token is of."""
        return str(entry(self._transport.get("me"), "name", str))

    def datasets(self) -> list[dict[str, Any]]:
        """Return the data sets that can be asked: their names (`ref`), balls, numbers of units, and what is left."""
        return self._records("datasets")

    def dataset(self, ref: str) -> dict[str, Any]:
        """Return one data set, by its name "population/name", or in an earlier version by "population/name@version"."""
        found = self._transport.get(quoted("datasets", *_parts(ref)))
        if entry(found, "ref", str) != _latest(ref):
            raise AnswerError(f"the service was asked about {ref}, and tells about {shown(found['ref'])}.")
        return dict(found)

    def history(self, population: str) -> dict[str, Any]:
        """Return what used a population's cap up: its lines, those of others without their names."""
        page: dict[str, Any] = {}
        lines: list[Any] = []
        for _ in range(_MOST_PAGES + 1):
            page = self._transport.get(quoted("history", population), after=page.get("after"))
            lines += entry(page, "lines", list)
            if page.get("after") is None:
                break
        return {**page, "lines": lines}

    def releases(self, limit: int = 50, before: str | None = None) -> list[Pending[Any]]:
        """Return this account's releases, the newest first; `before` is the id where the page before ended."""
        return [self._handle(view) for view in self._records("releases", limit=limit, before=before)]

    def release(self, id: str) -> Pending[Any]:
        """Return the handle of a release: its `result()` is what was released."""
        return self._handle(self._transport.get(quoted("releases", id)))

    # ---------------------------------------------------------------- what it would be like

    def plan(
        self, dataset: str, privacy: Promise, *, statistic: str = MEAN_QUERY.name, ball: BallGiven = None,
        error: float | None = None, **options: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Return what to expect of a private call, as `dpm plan --json` states it. Costs nothing.

        Parameters
        ----------
        dataset, privacy, ball, options : as in the private calls
        statistic : which call: its name, or that of a registered statistic
        error : of a mean, also say what an expected error of this size needs
        """
        asked = self._request(statistic, dataset, privacy, ball, options)
        needs = {} if error is None else self._post("plans", {**asked, "error": error})
        return {**self._post("plans", asked), **needs}

    def price(
        self,
        dataset: str,
        privacy: Promise,
        *,
        statistic: str = MEAN_QUERY.name,
        ball: BallGiven = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return what a private call would cost, what is left before and after, and when it would be published.

        Refuses what the call itself would refuse. Costs nothing. Parameters are those of :meth:`plan`.
        """
        return dict(self._post("prices", self._request(statistic, dataset, privacy, ball, options)))

    # ---------------------------------------------------------------- private calls

    def ask(
        self, statistic: str, dataset: str, privacy: Promise, *, ball: BallGiven = None, key: str | None = None,
        wait: bool = True, timeout: float | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        """Ask for a release, wait until it is published, check it and return it. All private calls come to this.

        The request is on the disk, with its key, before it is sent. Whatever breaks before the answer is here, the same
        call asks under the same key again and pays nothing twice; once the answer was handed over, the same call is a
        new release, with a cost of its own.

        Parameters
        ----------
        statistic : which call: its name, or that of a registered statistic
        dataset : "population/name", the latest version of the data; or "population/name@version"
        privacy : PureDP, ApproxDP, ZCDP or GDP
        ball : another ball than the registered one: a public Ball, or one that was released at this service (its
            Release, handle or id)
        key : your name for this release; under it the service answers once
        wait : False to return a handle (:class:`Pending`) as soon as the request is taken
        timeout : how many seconds to wait for the publication at most; None waits for it, but not for an approval
        options : those of the library's call that are not about records; `about` is a released mean (its Release,
            handle or id)

        Raises
        ------
        BudgetError, InvalidArgumentError, PromiseError : as of the library's call; nothing was spent
        StillPendingError : it waits for a steward's approval, or the time was over; its `pending` is the handle
        ReleaseLostError : it was paid for, and nothing will be released under its key
        AnswerError : the service's answer does not hold, or is not what was asked
        RemoteError : the service cannot be reached or does not take the token; the message names the key
        """
        request = self._request(statistic, dataset, privacy, ball, options)
        kept = self._journal.key_for(request, key)
        with naming(kept):
            try:
                view = self._post("releases", {**request, "key": kept})
            except ConflictError as problem:
                raise InvalidArgumentError(
                    f"{problem} The key is {kept!r}: what was asked under it is in client.releases() (dpm remote "
                    "releases). For another release give `key=` (--key) a new name."
                ) from None
            if (entry(view, "key", str), entry(view, "ref", str)) != (kept, _latest(dataset)):
                raise AnswerError(f"the service was asked about {dataset}, and answers about something else.")
            pending = self._handle(view)
        return pending.result(timeout) if wait else pending

    def statistic(self, dataset: str, privacy: Promise, *, statistic: str, **terms: Any) -> Any:
        """Release any statistic by name, as :func:`dpmanifold.private_statistic`; further terms as in :meth:`ask`."""
        return self.ask(statistic, dataset, privacy, **terms)

    # ---------------------------------------------------------------- requests

    @functools.cached_property
    def _journal(self) -> Journal:
        return Journal.of(self.url, self.account)

    def _request(
        self, statistic: str, dataset: str, privacy: Promise, ball: BallGiven, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what is asked of which data set, ready for JSON."""
        query = query_named(statistic)
        _parts(dataset)
        said = dict(options)
        if said.get("about") is not None:
            said["about"] = self._id_of(said["about"], "about")
        question = {
            "statistic": query.name,
            "privacy": promise_record(privacy),
            "options": options_record(query, said),
            "ball": None if ball is None else self._ball_record(ball, dataset),
        }
        return {"dataset": dataset, "question": question}

    def _ball_record(self, ball: BallGiven, dataset: str) -> dict[str, Any]:
        if not isinstance(ball, Ball):
            return {"release": self._id_of(ball, "ball")}
        if ball.simulated:
            raise InvalidArgumentError("`ball` was found by a simulation, and a release in it is not private.")
        space = entry(self.dataset(dataset), "space", str)
        if repr(ball.space) != space:
            raise InvalidArgumentError(f"`ball` must be on the space of {dataset}, {space}, got one on {ball.space!r}.")
        return {"radius": ball.radius, "center": array_to_json(ball.center), "source": ball.source}

    def _id_of(self, thing: object, name: str) -> str:
        """Return the id of a release that was made at this service: given by itself, by its handle or as it is."""
        if isinstance(thing, str):
            return thing
        if isinstance(thing, Pending):
            return thing.id
        if isinstance(thing, Release) and thing.receipt is not None:
            wanted, last = thing.receipt.to_dict(), None
            for _ in range(_MOST_PAGES):
                page = self.releases(before=last)
                for one in page:
                    if one.view.get("receipt") == wanted:
                        return one.id
                if not page:
                    break
                last = page[-1].id
        raise InvalidArgumentError(
            f"{name} must have been released at this service: its id, its handle or the Release; got {shown(thing)}."
        )

    def _post(self, path: str, record: Mapping[str, Any]) -> Any:
        body = json.dumps(record, allow_nan=False).encode("utf-8")
        found = self._transport.post(path, body, str(record["dataset"]))
        if not isinstance(found, dict):
            raise RemoteError(f"{self.url} answers with something else than was asked: it may be of another version.")
        return found

    def _records(self, path: str, **query: Any) -> list[dict[str, Any]]:
        found = self._transport.get(path, **query)
        rows = found.get(path) if isinstance(found, dict) else found
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise RemoteError(f"{self.url} answers with something else than was asked: it may be of another version.")
        return rows

    # ---------------------------------------------------------------- answers

    def _handle(self, view: Any) -> Pending[Any]:
        return Pending(self._transport, lambda: self._journal, view, self._expected)

    def _expected(self, view: Mapping[str, Any]) -> Expected:
        """Return what an answer must be about: what was asked from here, where it was, and the data set as it is."""
        query, privacy = query_named(entry(view, "statistic", str)), promise_from_dict(entry(view, "privacy", dict))
        data, options, ball = self._data_of(view), entry(view, "options", dict), None
        noted = self._journal.find(entry(view, "key", str)) if view.get("analyst") == self.account else None
        if noted is not None:
            asked, question = noted.request["dataset"], noted.request["question"]
            stated = (view["ref"], query.name, promise_record(privacy))
            if (_latest(asked), question["statistic"], question["privacy"]) != stated:
                raise AnswerError("the service states another question than was asked under this key.")
            options, ball = question["options"], self._ball_of(question["ball"], data)
        classes, counts, beside = data.get("classes"), data.get("units_by_class"), data.get("covariate")
        return Expected(
            query,
            privacy,
            {**query.defaults, **options},
            entry(view, "population", str),
            view.get("receipt"),
            ball,
            data.get("n"),
            data.get("unit"),
            dict(zip(classes, counts, strict=False)) if classes and counts else None,
            tuple(beside["range"]) if isinstance(beside, dict) and "range" in beside else None,
        )

    def _data_of(self, view: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data set of a release, as long as it is the one that can be asked today."""
        try:
            found = self.dataset(entry(view, "ref", str))
        except InvalidArgumentError:  # it can be asked no longer, and what was released stays
            return {}
        return found if found.get("id") == view.get("dataset") else {}

    def _ball_of(self, said: Mapping[str, Any] | None, data: Mapping[str, Any]) -> Ball | None:
        """Return the ball that was asked for; None where it is not known any more."""
        try:
            if said is None:
                return ball_from_dict(data["ball"]) if "ball" in data else None
            if "release" in said:
                found = self.release(said["release"]).result()
                return found.value if isinstance(found, Release) and isinstance(found.value, Ball) else None
            return ball_from_dict({**said, "space": data["space"], "simulated": False}) if "space" in data else None
        except (InvalidDataError, KeyError, TypeError) as problem:
            raise AnswerError(f"the service states a ball that is none: {problem}") from None

    # ---------------------------------------------------------------- the object

    def close(self) -> None:
        """Let go of connections."""
        self._transport.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client holds a token, and is not pickled: connect again where it is needed.")


def _parts(ref: object) -> tuple[str, str]:
    """Return population and name of a data set."""
    population, slash, name = ref.partition("/") if isinstance(ref, str) else ("", "", "")
    if not (population and slash and name) or "/" in name:
        raise InvalidArgumentError(f'dataset must be "population/name", such as "cohort/dti", got {shown(ref)}.')
    return population, name


def _latest(ref: str) -> str:
    """Return the name of a data set without a version."""
    return ref.partition("@")[0]
