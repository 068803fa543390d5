"""A budget that survives: one account for each population, over scripts, crashes, colleagues and years."""
