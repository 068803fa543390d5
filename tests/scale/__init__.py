"""Large data at a small size: the same bits everywhere, hostile files, people who lie in several files."""
