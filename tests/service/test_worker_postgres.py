"""The worker with both databases on PostgreSQL: the same outcomes, and copies that are its own tools' to make."""

import numpy as np
import pytest

from dpmanifold import GDP
from dpmanifold.ledger import Ledger
from dpmanifold.service import tables
from dpmanifold.service.backup import backup
from dpmanifold.service.checks import FAIL, findings
from dpmanifold.service.questions import Question
from service_rooms import desk_of, service_in, tensors
from service_worker import Crew, until

MEAN = Question("mean", GDP("0.1"))


@pytest.fixture
def service(cluster, tmp_path, monkeypatch):
    schema = cluster.new_schema()
    places = {"witness": tmp_path / "witness" / "ledger.witness", "secret": tmp_path / "vault" / "ledger.key"}
    (tmp_path / "vault").mkdir(mode=0o700)
    (tmp_path / "witness").mkdir()
    Ledger.create(cluster.address("owner", schema), writer="writer", principal="service", **places).close()
    environ = {
        "DPM_SERVICE_SERVICE_DATABASE": cluster.address("owner", cluster.new_schema()),
        "DPM_SERVICE_LEDGER_DATABASE": cluster.address("writer", schema),
        "DPM_SERVICE_WORKER_SLOT": "2",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)  # for the worker
    with service_in(tmp_path, **environ) as made:
        yield made


@pytest.mark.slow
def test_a_service_on_a_server_does_the_same(service, tmp_path):
    sam, ada = desk_of(service, "sam"), desk_of(service, "ada")
    sam.make_population("cohort", GDP("2"), "participant")
    sam.grant("cohort", "ada", GDP("1"), "the study")
    np.save(service.settings.root / "dti.npy", tensors(50))
    (tmp_path / "flags").mkdir()
    crew = Crew(service, tmp_path / "flags")
    try:
        crew.start()
        request = {"path": "dti.npy", "space": "spd", "units": "each-record", "radius": "2"}
        asked = sam.register("cohort", "dti", request)
        until(lambda: sam.registration(asked.id).state == "done")
        released = ada.ask("cohort/dti", MEAN, "one")
        until(lambda: ada.release(released.id).reported)
        crew.flag("open", "60")
        slow = ada.ask("cohort/dti", MEAN, "two")
        until(lambda: service.database.by_id(tables.releases, slow.id).state == "lost")
        assert not [one for one in findings(service.settings) if one.state == FAIL]
        found = backup(service.settings, tmp_path / "copy")
    finally:
        crew.kill()
    assert found.files == []
    assert sum("pg_dump" in remark for remark in found.remarks) == 2
