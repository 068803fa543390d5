"""A cluster of this machine, started once for this folder and ended with it: an idle one costs a tenth of a core."""

import pytest


@pytest.fixture(scope="package")
def cluster():
    """Two workers in processes of their own."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),  # on a busy machine workers start slowly
        distributed.LocalCluster(**settings, silence_logs=50) as started,
    ):
        yield started


@pytest.fixture
def client(cluster):
    """An active client, as a user has one."""
    import distributed

    with distributed.Client(cluster) as connected:
        yield connected
