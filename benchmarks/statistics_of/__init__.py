"""What benchmarks/statistics.py is made of: one module for each statistic, each with run(quick).

A row has what, plain (without privacy), simple (the simplest private alternative), ours, goal and ok; None where there
is no figure, or where nothing is judged.
"""
