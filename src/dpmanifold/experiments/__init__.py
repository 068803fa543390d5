"""The papers' own methods, as baselines to compare with. What they return is not private."""
