"""Refusals of a registration: what reaches the database has no value of a record and no path of the vault."""

import stat

import numpy as np
import pytest

from dpmanifold import GDP
from dpmanifold.errors import WITHHELD, InvalidDataError, Message, Names, Public
from dpmanifold.service import registering
from dpmanifold.service.redaction import Redaction
from service_rooms import desk_of, service_in, tensors

pytestmark = pytest.mark.security

REQUEST = {"space": "spd", "size": "2", "units": "each-record", "radius": "2.5", "source": "an atlas"}
HEAD = "subject,diagnosis,age,weight,d11,d12,d21,d22"
SECRETS = ("HIV", "Smith", "O'Neil", "73", "61.25", "nowhere", "sub-")  # of the files below, in whatever form


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("service")) as made:
        desk_of(made, "sam").make_population("cohort", GDP("2"), "participant")
        furnish(made.settings.root)
        yield made


def furnish(root):
    """Write files in all formats, with secrets where messages might have them."""
    rows = ["Jon Smith,HIV+,73,61.25,1,0,0,1", "Sue O'Neil,the HIV one,73,61.25,1,0,0,1", "Max,O'Neil,73,61.25,1,0,0,1"]
    (root / "clinic.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    (root / "headless.csv").write_text("Jon Smith,HIV+,73\nSue O'Neil,none,73\n")
    (root / "ids.csv").write_text("Jon Smith\nSue O'Neil\nMax\n")
    (root / "ragged.csv").write_text(f"{HEAD}\nJon Smith,HIV+,73\n")
    np.save(root / "tensors.npy", tensors(3))
    for name, labels in {
        "text": ["HIV+", "a'HIV\"b", "none"], "bytes": [b"HIV+", b"HIV'", b"none"], "whole": [73, 73, 73],
        "decimal": [61.25] * 3, "flag": [True, False, True],
    }.items():  # fmt: skip
        np.savez(root / f"{name}.npz", records=tensors(3), labels=np.array(labels), ids=np.array([61.25, 73, 0.5]))
    (root / "Jon Smith").mkdir()
    (root / "Jon Smith" / "HIV+.csv").write_text(f"{HEAD}\nJon Smith,HIV+,x73,61.25,1,0,zero,1\n")
    (root / "parts").mkdir()
    (root / "parts" / "Smith 73.csv").write_text("d11,d12,d21,d22\n1,0,nowhere,1\n")
    (root / "parts" / "a-HIV.csv").write_text("d11,d12,d22\n1,0,1\n")
    (root / "shapes.tps").write_text("LM=3\n0 0\n1 0\n73 nowhere\nID=Jon Smith\n")
    (root / "bids" / "sub-Smith73" / "dwi").mkdir(parents=True)
    (root / "bids" / "sub-Smith73" / "dwi" / "sub-Smith73_tensor.nii.gz").write_bytes(b"HIV+")
    (root / "bids" / "participants.tsv").write_text("participant_id\tdiagnosis\nsub-ONeil\tHIV+\n")
    (root / "bids" / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.0"}')


CLINIC = {"path": "clinic.csv", "columns": "d11,d12,d21,d22"}
ASKED = {
    "label": {**CLINIC, "labels": "diagnosis", "classes": ["zzz", "yyy"]},
    "name": {**CLINIC, "labels": "subject", "classes": ["zzz", "yyy"]},
    "age": {**CLINIC, "labels": "age", "classes": ["1", "2"]},
    "weight": {**CLINIC, "labels": "weight", "classes": ["1", "2"]},
    "guesses": {**CLINIC, "labels": "diagnosis", "classes": ["a", "b"], "source": "HIV+,O'Neil,none"},
    "words": {"path": "clinic.csv", "columns": "subject,diagnosis,d21,d22"},
    "range": {**CLINIC, "covariate": "subject", "covariate_range": [0, 100]},
    "headless": {"path": "headless.csv", "columns": "a,b"},
    "headless units": {"path": "tensors.npy", "units": "ids.csv:id"},
    "headless ids": {"path": "tensors.npy", "units": "ids.csv"},
    "ragged": {"path": "ragged.csv", "columns": "d11,d12,d21,d22"},
    "units": {"path": "text.npz", "array": "records", "units": "ids"},
    "key": {"path": "text.npz", "array": "nothing"},
    "shape": {"path": "text.npz", "array": "ids"},
    **{
        f"{name} labels": {"path": f"{name}.npz", "array": "records", "labels": "labels", "classes": ["zzz", "yyy"]}
        for name in ("text", "bytes", "whole", "decimal", "flag")
    },
    "folder": {"path": "Jon Smith", "columns": "d11,d12,d21,d22"},
    "parts": {"path": "parts"},
    "tps": {"path": "shapes.tps", "space": "kendall", "size": "3"},
    "bids": {"path": "bids", "size": "3"},
    "format": {"path": "bids/dataset_description.json"},
    "center": {**CLINIC, "center": "ids.csv"},
}


def asked(service, request):
    desk = desk_of(service, "sam")
    made = desk.register("cohort", "probe", {**REQUEST, **request})
    registering.registered(service, made.id)
    return desk.registration(made.id)


def leaks(found, request, vault):
    """Return the secrets in a message that are not the steward's own words."""
    own = "".join(str(value) for name, value in request.items() if name in ("path", "columns"))
    words = found.message.replace(found.id, "").replace("confirm=True", "")  # pages say it in their words
    return [one for one in (*SECRETS, str(vault), ".staging", "--", "True", "False") if one in words and one not in own]


@pytest.mark.parametrize("name", ASKED)
def test_no_refusal_tells_a_value_of_a_record_or_a_path_of_the_vault(service, name):
    found = asked(service, ASKED[name])
    assert found.state == "refused", found.message
    assert not leaks(found, ASKED[name], service.settings.vault), found.message
    notice = service.settings.vault / "notices" / f"registration-{found.id}.txt"
    assert notice.exists() == (WITHHELD in found.message)
    if notice.exists():
        assert found.message.endswith(f"The whole message is in the vault, notices/{notice.name}.")
        assert stat.S_IMODE(notice.stat().st_mode) == 0o600


def test_messages_as_they_are_would_be_found_out(service, monkeypatch):
    monkeypatch.setattr(Redaction, "private", lambda self, value, text: text)
    found = {name for name, request in ASKED.items() if leaks(asked(service, request), request, service.settings.vault)}
    assert found >= {"headless", "headless units", "parts", "bids"}


def test_labels_are_counted_and_never_shown(service, monkeypatch):
    """Not even in messages as they are."""
    monkeypatch.setattr(Redaction, "private", lambda self, value, text: text)
    for name in ("label", "name", "age", "weight", "guesses", "text labels", "bytes labels", "whole labels"):
        assert "3 of 3 labels are none of the classes" in asked(service, ASKED[name]).message


def test_the_vault_has_the_whole_message(service):
    found = asked(service, ASKED["parts"])
    assert WITHHELD in found.message
    notice = service.settings.vault / "notices" / f"registration-{found.id}.txt"
    assert "a-HIV.csv" in notice.read_text(encoding="utf-8")


def test_what_stays_in_a_message(tmp_path):
    (tmp_path / "clinic.csv").write_text("age,a b\n1,2\n")
    redaction = Redaction({"path": "clinic.csv", "radius": "2.5"})
    redaction.copied(tmp_path / "clinic.csv", "clinic.csv")
    said = Message(
        "column {column!r} of {file}, {copy}, line {line}: {value:.3g}, {text!r}, {radius}, {names}, {other}",
        column="age", file="clinic.csv", copy=str(tmp_path / "clinic.csv"), line=Public(7), value=0.125, text="HIV+",
        radius="2.5", names=Names(["a b", "HIV+", "Smith"]), other=ValueError("61.25"),
    )  # fmt: skip
    assert redaction.message(said) == (
        f"column 'age' of clinic.csv, clinic.csv, line 7: {WITHHELD}, {WITHHELD}, 2.5, 'a b', {WITHHELD}, {WITHHELD}"
    )


def test_a_first_line_that_may_be_a_record_has_no_names(tmp_path):
    (tmp_path / "ages.csv").write_text("73,Smith\n61,Max\n")
    redaction = Redaction({"path": "ages.csv"})
    redaction.copied(tmp_path / "ages.csv", "ages.csv")
    said, withheld = redaction.record(InvalidDataError("there is {names}.", names=Names(["73", "Smith"])))
    assert withheld
    assert said == {"template": "there is {names}.", "values": {"names": WITHHELD}}
