"""Registration in the worker: what stewards may name, what they are told, and what is left in the vault."""

import gzip
import json
import os
import pickle
import socket
import stat
import zipfile

import numpy as np
import pytest
from sqlalchemy import select

from dpmanifold import GDP
from dpmanifold.data import Selection
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, LedgerError
from dpmanifold.service import canonical, events, registering, staging, tables
from dpmanifold.service.staging import Staging, refuse_growing
from service_rooms import desk_of, service_in, tensors

pytestmark = pytest.mark.security

REQUEST = {"space": "spd", "units": "each-record", "radius": "2.0", "source": "an atlas"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("service")) as made:
        desk_of(made, "sam").make_population("cohort", GDP("2"), "participant")
        yield made


@pytest.fixture
def root(service):
    return service.settings.root


def asked(service, name, **request):
    """Register, in this process, and return what came of it."""
    desk = desk_of(service, "sam")
    made = desk.register("cohort", name, {**REQUEST, **request})
    registering.registered(service, made.id)
    return desk.registration(made.id)


def in_vault(service):
    return {path.name for path in service.settings.vault.iterdir()} - {"ledger.key", "notices"}


def table(root, name, records, extra=("subject", "age", "group")):
    """Write records with ids, ages and groups of two each."""
    heads = [*extra, "d11", "d12", "d21", "d22"]
    lines = [
        ",".join([f"s{number // 2}", str(20 + number), "ab"[number % 4 // 2], *map(repr, map(float, record.ravel()))])
        for number, record in enumerate(records)
    ]
    (root / name).write_text("\n".join([",".join(heads), *lines]) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------- what is registered


def test_a_table_with_all_that_is_beside(service, root):
    table(root, "all.csv", tensors(40))
    found = asked(
        service, "all", path="all.csv", columns="d*", units="subject", labels="group", classes=["a", "b"],
        labels_public=True, covariate="age", covariate_range=[0, 100],
    )  # fmt: skip
    assert (found.state, found.dataset) == ("done", "all@1")
    assert found.message == "Registered as all@1. All records lie in the ball."
    known = next(one for one in service.ledger.population("cohort").datasets() if one.id == "all@1")
    assert known.n == 20
    assert known.facts["units_by_class"] == [10, 10]
    assert known.about["invalid"] == "center"
    columns = canonical.open_folder(registering.folder_of(service, "cohort", "all@1"))
    assert np.array_equal(columns.records.reshape(40, 4)[:, 0], tensors(40)[:, 0, 0])
    assert columns.covariate[3] == 23.0
    assert list(columns.labels[:4]) == ["a", "a", "b", "b"]


def test_ids_of_another_file_below_the_root(service, root):
    np.save(root / "tensors.npy", tensors(10))
    (root / "people").mkdir()
    (root / "people" / "ids.csv").write_text("id\n" + "\n".join(f"p{n // 2}" for n in range(10)) + "\n")
    for units in ("people/ids.csv", "people/ids.csv:id"):
        found = asked(service, f"ids-{len(units)}", path="tensors.npy", units=units)
        assert found.state == "done", found.message
    assert service.ledger.population("cohort").datasets()[-1].n == 5


def test_a_center_is_numbers_or_a_file_below_the_root(service, root):
    np.save(root / "many.npy", tensors(11))
    np.save(root / "center.npy", 1.5 * np.eye(2))
    assert asked(service, "c1", path="many.npy", center="center.npy").state == "done"
    assert asked(service, "c2", path="many.npy", center="1.5").state == "done"
    assert "no file" in asked(service, "c3", path="many.npy", center="/etc/hostname").message


def test_a_folder_of_files(service, root):
    (root / "parts").mkdir()
    for part in range(2):
        table(root / "parts", f"{part}.csv", tensors(6, seed=part))
    found = asked(service, "parts", path="parts", columns="d*", units="each-record")
    assert found.state == "done", found.message
    columns = canonical.open_folder(registering.folder_of(service, "cohort", "parts@1"))
    assert len(columns.records) == 12


def test_the_same_records_are_one_version_and_changed_ones_the_next(service, root):
    np.save(root / "again.npy", tensors(8))
    first = asked(service, "again", path="again.npy")
    before = in_vault(service)
    assert asked(service, "again", path="again.npy").dataset == first.dataset == "again@1"
    assert in_vault(service) == before
    np.save(root / "again.npy", tensors(8, seed=5))
    assert asked(service, "again", path="again.npy").dataset == "again@2"
    assert len(in_vault(service)) == len(before) + 1
    assert registering.folder_of(service, "cohort", "again@1") != registering.folder_of(service, "cohort", "again@2")


def test_records_that_vanished_from_the_vault_are_registered_again(service, root):
    np.save(root / "gone.npy", tensors(9))
    asked(service, "gone", path="gone.npy")
    canonical.remove(service.settings.vault, registering.folder_of(service, "cohort", "gone@1").name)
    assert asked(service, "gone", path="gone.npy").dataset == "gone@1"
    assert canonical.open_folder(registering.folder_of(service, "cohort", "gone@1")).records.shape == (9, 2, 2)


def test_stewards_are_told_what_does_not_count_and_nobody_else_is(service, root):
    records = tensors(10)
    records[0] = np.nan
    records[1] *= 1e6
    np.save(root / "odd.npy", records)
    found = asked(service, "odd", path="odd.npy")
    assert found.message.startswith("Registered as odd@1. 1 of 10 records lie outside the ball")
    assert "1 of 10 records are no points" in found.message
    told = json.dumps([one.to_dict() for one in events.page(service.database, limit=1000)])
    assert "outside" not in told
    assert "outside" not in json.dumps([entry.facts for entry in service.ledger.entries()])


def test_most_records_outside_need_a_word(service, root):
    np.save(root / "far.npy", 1e5 * tensors(10))
    refused = asked(service, "far", path="far.npy")
    assert refused.state == "refused"
    assert refused.message.startswith("10 of 10 records lie outside the ball")
    assert refused.message.count("10 of 10") == 1
    assert asked(service, "far", path="far.npy", confirm=True).state == "done"


def test_private_labels_are_counted_nowhere(service, root):
    table(root, "hidden.csv", tensors(24))
    found = asked(
        service, "hidden", path="hidden.csv", columns="d*", units="subject", labels="group", classes=["a", "b"],
        labels_public=False,
    )  # fmt: skip
    assert found.state == "done", found.message
    assert "units_by_class" not in service.ledger.population("cohort").datasets()[-1].facts


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "path",
    ["../outside.npy", "/etc/passwd", "a/../../x.npy", "./x.npy", "", "a//b.npy", "..", ".", "x\0.npy", "a\\b.npy",
     ".hidden.npy", "*.npy", "missing.npy", "a/b/c.npy", 3],
)  # fmt: skip
def test_paths_that_are_none_below_the_root(service, root, path):
    before = in_vault(service)
    staged = Staging(root, service.settings.vault)
    with pytest.raises(InvalidArgumentError):
        staged.take(path, "path", "here")
    canonical.remove(service.settings.vault, "here")
    assert in_vault(service) == before


@pytest.fixture
def outside(tmp_path):
    np.save(tmp_path / "outside.npy", tensors(6))
    return tmp_path


def test_links_are_refused_wherever_they_stand(service, root, outside):
    (root / "link.npy").symlink_to(outside / "outside.npy")
    (root / "elsewhere").symlink_to(outside)
    (root / "with-link").mkdir()
    (root / "with-link" / "a.npy").symlink_to(outside / "outside.npy")
    (root / "dangling.npy").symlink_to(outside / "nothing")
    before = in_vault(service)
    for path in ("link.npy", "elsewhere/outside.npy", "elsewhere", "with-link", "with-link/a.npy", "dangling.npy"):
        found = asked(service, "linked", path=path)
        assert found.state == "refused"
        assert "is a link, a pipe or a device" in found.message
    assert in_vault(service) == before


def test_units_and_centers_are_no_way_out_of_the_root(service, root, outside):
    np.save(root / "inside.npy", tensors(6))
    (outside / "ids.csv").write_text("id\n" + "a\n" * 6)
    (root / "ids-link.csv").symlink_to(outside / "ids.csv")
    for units in (f"{outside}/ids.csv", f"{outside}/ids.csv:id", "../ids.csv", "ids-link.csv", "ids-link.csv:id"):
        found = asked(service, "sly", path="inside.npy", units=units)
        assert found.state == "refused", units
    for center in (str(outside / "outside.npy"), "../outside.npy", "ids-link.csv"):
        assert asked(service, "sly", path="inside.npy", center=center).state == "refused"


def test_pipes_sockets_and_devices_are_refused_at_once(service, root):
    os.mkfifo(root / "pipe.npy")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket.npy"))
        for path in ("pipe.npy", "socket.npy"):
            found = asked(service, "pipes", path=path)
            assert "is a link, a pipe or a device" in found.message
    (root / "pipe.npy").unlink()
    (root / "socket.npy").unlink()


def test_python_objects_are_never_loaded(service, root):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(root / "sprung"),)

    np.save(root / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(root / "trap.npz", a=np.array([Trap()], dtype=object))
    (root / "bare.npy").write_bytes(pickle.dumps(Trap()))
    for path in ("trap.npy", "trap.npz", "bare.npy"):
        assert asked(service, "trap", path=path).state == "refused"
    assert not (root / "sprung").exists()


def test_bombs_are_refused_before_they_are_unpacked(service, root, monkeypatch):
    monkeypatch.setattr(staging, "_NO_TROUBLE", 2**20)
    np.savez_compressed(root / "bomb.npz", a=np.zeros((2**20, 4)))
    with gzip.open(root / "bomb.csv.gz", "wb") as file:
        file.write(b"0,0,0,0\n" * 2**20)
    for path in ("bomb.npz", "bomb.csv.gz"):
        found = asked(service, "bomb", path=path, space="euclidean", radius="1")
        assert found.state == "refused"
        assert "far beyond its size" in found.message


def test_an_archive_of_many_arrays_is_refused_and_one_of_some_opened_once(tmp_path, monkeypatch):
    path = tmp_path / "some.npz"
    np.savez(path, **{f"a{number}": np.zeros(1) for number in range(20)})
    opened = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *given, **more):
            opened.append(given)
            super().__init__(*given, **more)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    refuse_growing(path)
    assert len(opened) == 1
    monkeypatch.setattr(staging, "_MOST_ARRAYS", 19)
    with pytest.raises(InvalidDataError, match="holds 20 arrays, more than 19"):
        refuse_growing(path)


def test_parquet_that_repeats_one_value_is_refused(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(staging, "_NO_TROUBLE", 2**20)
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"x": np.zeros(2**21)}), path)
    with pytest.raises(InvalidDataError, match="far beyond its size"):
        refuse_growing(path)


def test_what_is_larger_than_all_that_is_allowed_is_refused(service, root, monkeypatch):
    monkeypatch.setattr(staging, "LARGEST", 100)
    np.save(root / "large.npy", tensors(30))
    assert "more than" in asked(service, "large", path="large.npy").message


def test_what_a_file_lacks_is_said_in_words_of_the_form(service, root):
    table(root, "lacks.csv", tensors(6))
    assert (
        "column 'person' is not in" in asked(service, "lacks", path="lacks.csv", columns="d*", units="person").message
    )
    assert "space" in asked(service, "lacks", path="lacks.csv", columns="d*", space="moebius").message
    found = asked(service, "lacks", path="lacks.csv", columns="d*", radius="wide")
    assert found.message.startswith("radius must be a number")
    found = asked(service, "lacks", path="lacks.csv", columns="d*", covariate="age", covariate_range=None)
    assert "covariate_range" in found.message
    found = asked(service, "lacks", path="lacks.csv", columns="d*", labels="group", classes=["a"])
    assert "2 of 6 labels are none of the classes and count as the first of them" in found.message


def test_a_refusal_takes_its_place_back(service, root):
    np.save(root / "fails.npy", 1e5 * tensors(10, seed=3))
    before = in_vault(service)
    assert asked(service, "fails", path="fails.npy").state == "refused"
    assert in_vault(service) == before
    with service.database.reading() as connection:
        wanted = select(tables.files.c.dataset).where(tables.files.c.dataset == "cohort/fails@1")
        assert connection.execute(wanted).scalar() is None
    with pytest.raises(LedgerError, match="has no records"):
        registering.folder_of(service, "cohort", "fails@1")


def test_an_unexpected_error_is_for_the_vault_alone(service, root, monkeypatch):
    np.save(root / "tensors.npy", tensors(10))
    desk = desk_of(service, "sam")
    made = desk.register("cohort", "odd-error", {**REQUEST, "path": "tensors.npy"})

    def read(chosen, **rest):
        raise ZeroDivisionError("patient 17")

    monkeypatch.setattr(Selection, "open", read)
    registering.registered(service, made.id)
    found = desk.registration(made.id)
    assert "an unexpected ZeroDivisionError" in found.message
    assert "patient 17" not in found.message
    notice = service.settings.vault / "notices" / f"registration-{made.id}.txt"
    assert "patient 17" in notice.read_text(encoding="utf-8")
    assert stat.S_IMODE(notice.stat().st_mode) == 0o600


def test_what_was_at_work_when_a_worker_died_is_queued_anew(service):
    desk = desk_of(service, "sam")
    made = desk.register("cohort", "queued", {**REQUEST, "path": "tensors.npy"})
    assert registering.begun(service) == made.id
    (service.settings.vault / ".staging-left").mkdir()
    registering.begin_anew(service)
    assert desk.registration(made.id).state == "waiting"
    assert not (service.settings.vault / ".staging-left").exists()
