"""A service for a team: stewards register data, analysts ask, auditors read; nobody but a worker opens records."""
