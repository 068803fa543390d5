"""Working with a service from afar: the private calls by their names, with results that are checked when they arrive.

`dpmanifold.connect` gives a client. Records are never here: what is asked is the name of a data set, a promise and
options, and what comes back is a release. A request is on this machine's disk before it is on the network, so that an
answer that gets lost on the way is asked for again, and not paid for again.
"""

from dpmanifold.remote.client import Client, connect
from dpmanifold.remote.pending import AnswerError, Pending, StillPendingError
from dpmanifold.remote.transport import RemoteError

__all__ = ["AnswerError", "Client", "Pending", "RemoteError", "StillPendingError", "connect"]
