"""Settings shared by all tests."""

from hypothesis import HealthCheck, settings

# Derandomised: a run is repeatable, and a failure is a failure for everyone. The laws are inherited by one class
# per space on purpose, which hypothesis would otherwise take for a mistake.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.differing_executors],
)
settings.load_profile("repeatable")
