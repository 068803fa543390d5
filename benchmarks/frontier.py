"""Less error at the same promise: every way that is new beside the way that was taken before it, in one table.

    python benchmarks/frontier.py [sharp regions ...] [--quick] [--json FILE]

Each module of benchmarks/frontiers/ is one claim: its docstring says what is compared and how it was measured. Rows
have a figure for the way before, one for the new way, their ratio, the goal and whether it was met; a row without a
goal is reported, no more. Nothing here fails, unless a module does. With --quick everything is run with few
repetitions: figures that come from simulation are rough then, and their verdicts are not to be trusted.
"""

from __future__ import annotations

import claims
import frontiers

if __name__ == "__main__":
    claims.main(__doc__, frontiers, "Before and now", {"today": "before", "new": "now", "ratio": "ratio"})
