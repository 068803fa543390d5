"""A recording layer within a process: which files it opens, writes and syncs, and what it commits, in order."""

from __future__ import annotations

import json
import os
import sys

from sqlalchemy import Connection


class Recorder:
    """Writes down commits, what the witness is told, when it is synced, and when the records are opened.

    It stays for as long as the process lives: made in a forked child, or not at all.

    Parameters
    ----------
    witness, records : paths
    """

    def __init__(self, witness, records):
        self.steps = []
        self._witness = os.stat(witness)
        write, sync, commit = os.write, os.fsync, Connection.commit

        def recorded_write(handle, content):
            written = write(handle, content)
            if self._is_witness(handle):
                kinds = [json.loads(line)["kind"] for line in bytes(content[:written]).splitlines()]
                self.steps.append(f"witness {' '.join(kinds)}")
            return written

        def recorded_sync(handle):
            sync(handle)
            if self._is_witness(handle) and self.steps and self.steps[-1].startswith("witness"):
                self.steps.append("sync")

        def recorded_commit(connection):
            commit(connection)
            self.steps.append("commit")

        def opening(event, given):
            if event == "open" and isinstance(given[0], str) and given[0] == str(records):
                self.steps.append("records")

        os.write, os.fsync, Connection.commit = recorded_write, recorded_sync, recorded_commit
        sys.addaudithook(opening)

    def _is_witness(self, handle):
        return os.path.samestat(os.fstat(handle), self._witness)
