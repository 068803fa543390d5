"""What benchmarks/frontier.py is made of: one module for each claim, each with run(quick)."""
