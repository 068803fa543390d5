"""What is asked after a mean: every statistic beside the same without privacy and beside the simplest private way.

    python benchmarks/statistics.py [groups classes ...] [--quick] [--json FILE]

Each module of benchmarks/statistics_of/ is one statistic: its docstring says what is compared and how it was measured.
Rows have a figure without privacy, one for the simplest private alternative, one for ours (what users call), the goal
and whether it was met; a row without a goal is reported, no more. Nothing here fails, unless a module does. With
--quick everything is run with few repetitions: figures are rough then, and their verdicts are not to be trusted.
"""

from __future__ import annotations

import pathlib
import sys

# The standard library has a module of this name. Whoever runs a script of this folder finds this file before that one:
# the folder goes to the end of the path, and an import is answered with the module that was meant.
_HERE = str(pathlib.Path(__file__).resolve().parent)
sys.path[:] = [*(entry for entry in sys.path if str(pathlib.Path(entry).resolve()) != _HERE), _HERE]

if __name__ == "__main__":
    import claims
    import statistics_of

    figures = {"plain": "without privacy", "simple": "simplest private", "ours": "ours"}
    claims.main(__doc__, statistics_of, "What is asked next", figures)
elif __name__ == "statistics":
    del sys.modules[__name__]
    import statistics  # noqa: F401  # takes this one's place
