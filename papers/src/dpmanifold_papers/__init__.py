"""The experiments of four papers, with the papers' own methods as baselines. What they return is not private."""
