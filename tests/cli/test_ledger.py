"""dpm ledger, and private commands that pay from one: what the steward types, and what is refused."""

import json
import pathlib
import re
import sqlite3

import numpy as np
import pytest

import dpmanifold as dpm
from cli.shared import tensors
from dpmanifold.cli.failures import Terminated
from dpmanifold.ledger.settling import Settling

pytestmark = pytest.mark.security

BALL = ["--space", "spd", "--units", "each-record", "--center", "0.7", "--radius", "2.5"]
LEDGER = ["--ledger", "study.db", "--principal", "ada"]


@pytest.fixture
def study(invoke):
    """A ledger with the population cohort, cap GDP("1"), in the folder of the tests."""
    invoke("ledger", "create", "study.db", "--witness", "study.witness")
    invoke("ledger", "population", "add", "cohort", "--unit", "record", "--mu", "1", "--ledger", "study.db")
    return invoke


def mean(mu, out, *rest):
    return ["mean", "a.npy", *BALL, "--mu", mu, "--out", out, *LEDGER, *rest]


def standing(invoke):
    found = json.loads(invoke("ledger", "population", "list", "--ledger", "study.db", "--json").stdout)
    return found[0]


def one_paragraph(result):
    assert result.stderr.startswith("dpm: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_release_is_paid_for_and_carries_a_receipt(study):
    said = study(*mean("0.3", "mean.json", "--key", "mean-v1")).stdout
    assert "the same command with --key mean-v1 gives it again, at no cost" in said
    release = dpm.load("mean.json")
    assert release.privacy == dpm.GDP("0.3")
    assert release.receipt.population == "cohort"
    assert standing(study)["spent"] == dpm.GDP("0.3").to_dict()
    study("verify", "mean.json")
    study("verify", "mean.json", "--ledger", "study.db")


def test_the_same_key_gives_the_same_bytes_and_costs_nothing(study):
    study(*mean("0.3", "mean.json", "--key", "mean-v1"))
    said = study(*mean("0.3", "again.json", "--key", "mean-v1")).stdout
    assert said.endswith("Given again from the ledger: nothing was spent.\n")
    assert pathlib.Path("mean.json").read_bytes() == pathlib.Path("again.json").read_bytes()
    assert standing(study)["spent"] == dpm.GDP("0.3").to_dict()
    message = one_paragraph(study(*mean("0.2", "other.json", "--key", "mean-v1"), code=2))
    assert "--key" in message
    assert "mean-v1" in message
    assert not pathlib.Path("other.json").exists()


def test_without_a_key_one_is_made_and_told(study):
    said = study(*mean("0.3", "mean.json")).stdout
    key = said.rpartition("--key ")[2].split()[0]
    assert study("ledger", "status", key, *LEDGER).stdout.startswith(f"{key} of ada: released.")
    study(*mean("0.3", "again.json", "--key", key))
    assert pathlib.Path("mean.json").read_bytes() == pathlib.Path("again.json").read_bytes()


def test_what_does_not_fit_is_refused_with_4_and_binds_no_key(study):
    message = one_paragraph(study(*mean("1.1", "mean.json", "--key", "large"), code=4))
    assert "Nothing was spent" in message
    assert study("ledger", "status", "large", *LEDGER).stdout.startswith("large of ada: free.")
    assert standing(study)["spent"] is None


def test_ten_times_a_tenth_fills_the_cap(study):
    study("ledger", "population", "add", "other", "--unit", "record", "--epsilon", "0.3", "--ledger", "study.db")
    words = [*BALL, "--epsilon", "0.1", *LEDGER, "--population", "other"]
    for number in range(3):
        study("mean", "a.npy", *words, "--out", f"{number}.json")
    study("mean", "a.npy", *words, "--out", "3.json", code=4)
    both = json.loads(study("ledger", "population", "list", "--ledger", "study.db", "--json").stdout)
    assert both[1]["unspent"] is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--seed", "1"], "--seed makes a result NOT PRIVATE"),
        (["--reveal"], "--reveal makes a result NOT PRIVATE"),
        (["--population", "nobody"], "--population nobody: the ledger has no such population. It has cohort."),
    ],
)
def test_what_no_ledger_pays_for(study, words, reason):
    assert reason in one_paragraph(study(*mean("0.3", "mean.json", *words), code=2))
    assert standing(study)["spent"] is None


def test_a_mistyped_ledger_is_no_new_one(study, folder):
    words = ["mean", "a.npy", *BALL, "--mu", "0.3", "--out", "m.json", "--ledger", "studdy.db"]
    message = one_paragraph(study(*words, code=2))
    assert "studdy.db" in message
    assert "dpm ledger create" in message
    assert not list(folder.glob("studdy*"))
    study("ledger", "population", "history", code=2)  # --ledger is missing


def test_a_ledger_is_not_made_twice(study):
    assert "study.db" in one_paragraph(study("ledger", "create", "study.db", code=2))
    assert "already" in one_paragraph(
        study("ledger", "population", "add", "cohort", "--unit", "record", "--mu", "2", "--ledger", "study.db", code=2)
    )


def test_the_environment_names_ledger_and_population(study, monkeypatch):
    monkeypatch.setenv("DPM_LEDGER", "study.db")
    monkeypatch.setenv("DPM_POPULATION", "cohort")
    study("mean", "a.npy", *BALL, "--mu", "0.3", "--out", "mean.json")
    assert dpm.load("mean.json").receipt.population == "cohort"
    study("ball", "a.npy", "--public", "--space", "spd", "--out", "ball.json")  # costs nothing, and pays nothing


def test_a_key_is_a_releases_and_an_array_a_files(study):
    np.savez("both.npz", first=tensors(seed=0), second=tensors(seed=1))
    words = ["both.npz", *BALL, "--mu", "0.3"]
    assert "give --ledger as well" in study("mean", *words, "--key", "first", "--out", "1.json", code=2).stderr
    assert "--array is needed" in study("mean", *words, "--out", "2.json", code=2).stderr
    study("mean", *words, "--array", "first", "--out", "3.json", "--key", "k", *LEDGER)
    assert "--array is needed" in study("mean", *words, "--out", "4.json", "--key", "first", *LEDGER, code=2).stderr
    assert dpm.load("3.json").receipt is not None


def test_every_private_command_pays(study):
    cheap = [*BALL, "--mu", "0.1", *LEDGER]
    commands = {
        "variance": ["variance", "a.npy", *cheap],
        "region": ["region", "a.npy", *cheap],
        "interval": ["variance-interval", "a.npy", *cheap],
        "test": ["two-sample-test", "a.npy", "b.npy", *cheap],
        "statistic": ["statistic", "second-moment", "a.npy", *cheap],
        "ball": ["ball", "a.npy", *BALL[:4], "--radius", "6", "--mu", "0.2", *LEDGER],
    }
    for name, words in commands.items():
        study(*words, "--out", f"{name}.json", "--key", name)
    np.savez("c.npz", X=tensors(), y=np.arange(200) % 2)
    study(
        "class-means",
        "c.npz",
        "--array",
        "X",
        "--labels",
        "y",
        "--classes",
        "0,1",
        *cheap,
        "--out",
        "means",
        "--key",
        "means",
    )
    study("ledger", "export", "study.jsonl", "--ledger", "study.db")
    for where in ("study.db", "study.jsonl"):
        for name in commands:
            assert "what was drawn then, bit for bit" in study("verify", f"{name}.json", "--ledger", where).stdout
        said = study("verify", "means/mean-0.json", "--ledger", where).stdout
        assert ("NOT shown: that it is what was drawn" in said) == (where == "study.jsonl")
    page = json.loads(study("ledger", "population", "history", "--ledger", "study.db", "--json").stdout)
    assert [line["key"] for line in page["releases"]] == [*commands, "means"]
    assert {line["state"] for line in page["releases"]} == {"released"}


def test_grants_are_kept(study):
    assert "anybody may spend" in study("ledger", "population", "grants", "--ledger", "study.db").stdout
    study("ledger", "population", "grant", "ben", "--mu", "0.2", "--reason", "thesis", *LEDGER)
    study(*mean("0.1", "mean.json"), code=4)  # ada has none
    study("mean", "a.npy", *BALL, "--mu", "0.2", "--out", "mean.json", "--ledger", "study.db", "--principal", "ben")
    found = json.loads(study("ledger", "population", "grants", "--ledger", "study.db", "--json").stdout)
    granted = dpm.GDP("0.2").to_dict()
    assert found == [{"principal": "ben", "granted": granted, "spent": granted, "remaining": None}]


def test_a_cap_is_raised_with_a_reason(study):
    study("ledger", "population", "cap", "--mu", "2", *LEDGER, code=2)  # without one
    study("ledger", "population", "cap", "--mu", "2", "--reason", "second consent", *LEDGER)
    assert "second consent" in study("ledger", "population", "history", "--ledger", "study.db").stdout
    study("ledger", "population", "cap", "--mu", "1", "--reason", "less", *LEDGER, code=2)
    assert standing(study)["cap"] == dpm.GDP("2").to_dict()


def test_registered_data_are_known_by_name(study):
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER)
    found = json.loads(study("ledger", "dataset", "list", "--ledger", "study.db", "--json").stdout)
    assert [(one["name"], one["n"]) for one in found] == [("dti", 200)]
    study(*mean("0.3", "mean.json"))
    page = json.loads(study("ledger", "population", "history", "--ledger", "study.db", "--json").stdout)
    assert page["releases"][0]["data"] == [found[0]["id"]]


def test_the_picture_of_what_used_it_up(study):
    study(*mean("0.3", "mean.json"))
    study("ledger", "population", "history", "--ledger", "study.db", "--picture", "history.png")
    assert pathlib.Path("history.png").read_bytes().startswith(b"\x89PNG")
    study("ledger", "population", "history", "--ledger", "study.db", "--picture", "history.png", code=2)  # exists
    study("ledger", "population", "history", "--ledger", "study.db", "--picture", "study.db", "--force", code=2)
    rest = json.loads(
        study(
            "ledger", "population", "history", "--ledger", "study.db", "--after", "2", "--limit", "1", "--json"
        ).stdout
    )
    assert [entry["seq"] for entry in rest["entries"]] == [3]
    assert rest["next"] == 3


def test_a_restored_backup_is_refused_and_reconciled(study, folder):
    before = pathlib.Path("study.db").read_bytes()
    study(*mean("0.6", "mean.json", "--key", "mean-v1"))
    for part in folder.glob("study.db*"):
        if part.is_file():
            part.unlink()
    pathlib.Path("study.db").write_bytes(before)
    message = one_paragraph(study("ledger", "population", "list", "--ledger", "study.db", code=4))
    assert "witness" in message
    study(*mean("0.9", "other.json"), code=4)
    study("ledger", "reconcile", "--reason", "restored", "--ledger", "study.db")
    assert standing(study)["spent"] == dpm.GDP("0.6").to_dict()
    assert study("ledger", "status", "mean-v1", *LEDGER).stdout.startswith("mean-v1 of ada: lost.")
    study(*mean("0.9", "other.json"), code=4)
    study("ledger", "audit", "--ledger", "study.db")


def test_an_export_is_checked_without_the_database(study, folder):
    study(*mean("0.3", "mean.json"))
    study("ledger", "export", "study.jsonl", "--ledger", "study.db")
    for part in folder.glob("study.*"):
        if part.name != "study.jsonl" and part.is_file():
            part.unlink()
    assert json.loads(study("ledger", "verify-export", "study.jsonl", "--json").stdout)["ok"]
    study("verify", "mean.json", "--ledger", "study.jsonl")
    lines = pathlib.Path("study.jsonl").read_text().replace("9/100", "1/100")
    pathlib.Path("forged.jsonl").write_text(lines)
    study("ledger", "verify-export", "forged.jsonl", code=4)


def test_a_release_that_no_entry_paid_for_is_found(study):
    study(*mean("0.3", "mean.json"))
    study("mean", "a.npy", *BALL, "--mu", "0.3", "--out", "free.json")
    said = study("verify", "free.json", "--ledger", "study.db", code=4).stdout
    assert "no receipt" in said
    record = json.loads(pathlib.Path("mean.json").read_text())
    record["receipt"]["hash"] = 64 * "0"
    pathlib.Path("forged.json").write_text(json.dumps(record))
    found = json.loads(study("verify", "forged.json", "--ledger", "study.db", "--json", code=4).stdout)
    assert found["ok"]  # what it states is consistent
    assert found["ledger"]["wrong"]


def test_an_edited_entry_is_named(study):
    study(*mean("0.3", "mean.json"))
    with sqlite3.connect("study.db") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE entries SET body = replace(body, '9/100', '1/100') WHERE kind = 'spend'")
    database.close()
    found = study("ledger", "audit", "--ledger", "study.db", code=4)
    assert "(spend)" in found.output


def test_a_registered_data_set_is_opened_after_the_spend(study):
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER)
    study(*mean("0.3", "late.json", "--dataset", "dti", "--key", "k"))
    study(*mean("0.3", "raw.json", "--key", "k"))  # the same request
    assert pathlib.Path("late.json").read_bytes() == pathlib.Path("raw.json").read_bytes()
    bare = ["mean", "a.npy", *BALL[:4], "--mu", "0.1", "--out", "bare.json", *LEDGER, "--dataset", "dti@1"]
    study(*bare)  # the ball is registered
    assert dpm.load("bare.json").ball.radius == 2.5


def test_data_that_changed_lose_the_release_without_a_reason(study):
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER)
    np.save("a.npy", tensors(seed=3))
    message = one_paragraph(study(*mean("0.3", "mean.json", "--dataset", "dti", "--key", "k"), code=1))
    assert "lost" in message
    assert not any(word in message for word in ("registered", "a.npy", "fingerprint", "record"))
    assert study("ledger", "status", "k", *LEDGER).stdout.startswith("k of ada: lost.")
    assert standing(study)["spent"] == dpm.GDP("0.3").to_dict()
    assert not pathlib.Path("mean.json").exists()
    assert "LOST: mean of dti@1" in study("ledger", "population", "history", "--ledger", "study.db").stdout
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER)
    found = json.loads(study("ledger", "dataset", "list", "--ledger", "study.db", "--json").stdout)
    assert [one["id"] for one in found] == ["dti@1", "dti@2"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"--dataset": "eeg"}, "no data set 'eeg'"),
        ({"--dataset": "dti@x"}, "a version is a whole number"),
        ({"--space": "sphere"}, "--space sphere is not that of dti@1, SPD(3)"),
        ({"--units": "person"}, "each record is a unit"),
        ({"mean": "missing.npy"}, "missing.npy is not there"),
        ({"--invalid": "center"}, "--invalid must be raise, as dti@1 was registered"),
    ],
)
def test_words_that_cannot_be_about_the_data_set_cost_nothing(study, changes, reason):
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER)
    words = mean("0.3", "mean.json", "--dataset", "dti", "--invalid", "raise")
    for option, value in changes.items():
        words[words.index(option) + 1] = value
    assert reason in one_paragraph(study(*words, code=2))
    assert standing(study)["spent"] is None


def test_groups_and_classes_may_be_registered(study):
    for name in ("a", "b"):
        study("ledger", "dataset", "add", name, f"{name}.npy", *BALL, *LEDGER)
    words = ["two-sample-test", "a.npy", "b.npy", *BALL, "--mu", "0.3", "--out", "test.json", *LEDGER, "--dataset", "a"]
    assert "go together" in one_paragraph(study(*words, code=2))
    study(*words, "--other-dataset", "b")
    np.savez("c.npz", X=tensors(), y=np.arange(200) % 2)
    by_class = ["c.npz", "--array", "X", "--labels", "y", "--classes", "0,1", *BALL, *LEDGER]
    study("ledger", "dataset", "add", "c", *by_class)
    study("class-means", *by_class, "--mu", "0.1", "--out", "means", "--dataset", "c")
    page = json.loads(study("ledger", "population", "history", "--ledger", "study.db", "--json").stdout)
    assert [line["data"] for line in page["releases"]] == [["a@1", "b@1"], ["c@1"]]
    assert "--ledger" in one_paragraph(
        study("mean", "a.npy", *BALL, "--mu", "1", "--out", "m.json", "--dataset", "a", code=2)
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [("population", "cohort"), ("principal", "ada"), ("secret", "study.db.key"), ("dataset", "dti")],
)
def test_words_about_a_ledger_without_one_release_nothing(study, option, value, monkeypatch):
    words = ["mean", "a.npy", *BALL, "--mu", "0.3", "--out", "mean.json"]
    message = one_paragraph(study(*words, f"--{option}", value, code=2))
    assert f"--{option} is about a ledger" in message
    assert "Give --ledger" in message
    assert not pathlib.Path("mean.json").exists()
    if option == "population":
        monkeypatch.setenv("DPM_POPULATION", "cohort")
        assert "unset DPM_POPULATION" in one_paragraph(study(*words, code=2))


def test_a_key_without_a_ledger_is_not_dropped(study):
    message = one_paragraph(study("mean", "a.npy", *BALL, "--mu", "0.3", "--out", "m.json", "--key", "k1", code=2))
    assert "--ledger" in message
    assert "--array" in message
    assert not pathlib.Path("m.json").exists()


def test_bad_records_are_registered_to_count_as_the_center(study):
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER, "--invalid", "center")
    words = mean("0.3", "mean.json", "--dataset", "dti")
    assert "--invalid must be center" in one_paragraph(study(*words, "--invalid", "raise", code=2))
    study(*words)  # nothing said: as registered


@pytest.mark.parametrize(
    ("ending", "code"), [(KeyboardInterrupt(), 130), (Terminated(143), 143), (TypeError("Ann Smith"), 1)]
)
def test_an_interrupted_release_tells_its_key(study, monkeypatch, ending, code):
    def interrupted(self, order, work):
        raise ending

    monkeypatch.setattr(Settling, "settle", interrupted)
    message = one_paragraph(study(*mean("0.3", "mean.json", "--key", "mean-v1"), code=code))
    assert "The request has the key 'mean-v1'" in message
    assert "Ann" not in message
    (key,) = re.findall("key '([0-9a-f]{32})'", study(*mean("0.3", "mean.json"), code=code).stderr)
    assert key


def pasted(receipt_of, onto, name):
    """Write a release with the receipt of another one, and return the file's name."""
    receipt = json.loads(pathlib.Path(receipt_of).read_text())["receipt"]
    record = json.loads(pathlib.Path(onto).read_text())
    pathlib.Path(name).write_text(json.dumps({**record, "receipt": receipt}))
    return name


def test_a_receipt_that_was_pasted_is_found_by_ledger_and_export(study):
    study(*mean("0.3", "paid.json"))
    np.savez("c.npz", X=tensors(), y=np.arange(200) % 2)
    by_class = ["class-means", "c.npz", "--array", "X", "--labels", "y", "--classes", "0,1", *BALL, "--mu", "0.3"]
    study(*by_class, "--out", "paid", *LEDGER)
    study("ledger", "export", "study.jsonl", "--ledger", "study.db")
    np.save("few.npy", tensors(80))
    unpaid = {
        "other": ["mean", "b.npy", *BALL, "--mu", "0.3"],
        "much": ["mean", "a.npy", *BALL, "--mu", "0.25"],
        "few": ["mean", "few.npy", *BALL, "--mu", "0.3"],
        "spread": ["variance", "a.npy", *BALL, "--mu", "0.3"],
    }
    reasons = {
        "other": "not what was drawn",
        "much": "the release promises GDP",
        "few": "another number of units",
        "spread": "paid for a mean, and the release is of a variance",
    }
    for name, words in unpaid.items():
        study(*words, "--out", f"{name}.json")
        forged = pasted("paid.json", f"{name}.json", f"forged-{name}.json")
        for where in ("study.db", "study.jsonl"):
            assert reasons[name] in study("verify", forged, "--ledger", where, code=4).stdout
    study(*by_class[:-1], "0.2", "--out", "unpaid")
    forged = pasted("paid/mean-0.json", "unpaid/mean-1.json", "forged.json")
    assert "promises GDP" in study("verify", forged, "--ledger", "study.jsonl", code=4).stdout
    forged = pasted("paid/mean-0.json", "few.json", "forged.json")
    assert "another number of units" in study("verify", forged, "--ledger", "study.jsonl", code=4).stdout


@pytest.mark.parametrize(("kind", "old", "new"), [("spend", "ada", "eve"), ("drawn", "sha256", "sha255")])
def test_an_edited_entry_of_an_export_proves_nothing(study, kind, old, new):
    study(*mean("0.3", "mean.json"))
    study("ledger", "export", "study.jsonl", "--ledger", "study.db")
    lines = pathlib.Path("study.jsonl").read_text().splitlines(keepends=True)
    edited = [line.replace(old, new) if f'"kind":"{kind}"' in line else line for line in lines]
    assert edited != lines
    pathlib.Path("edited.jsonl").write_text("".join(edited))
    said = study("verify", "mean.json", "--ledger", "edited.jsonl", code=4).stdout
    assert f"({kind}) is not what was written" in said


def test_why_a_release_is_lost_is_for_whoever_asks_for_notices(study, monkeypatch):
    monkeypatch.setattr("dpmanifold.cli.command.on_a_terminal", lambda: True)
    study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER)
    study(*mean("0.1", "mean.json", "--dataset", "dti"))  # how many are clipped is not told either
    np.save("a.npy", tensors(seed=3))
    one_paragraph(study(*mean("0.1", "lost.json", "--dataset", "dti"), code=1))
    said = study(*mean("0.1", "lost.json", "--dataset", "dti", "--notice"), code=1).stderr
    assert "FOR THE CURATOR ALONE" in said
    assert "not those that were registered" in said
    assert "FOR THE CURATOR ALONE" in study(*mean("0.1", "raw.json")).stderr


def test_registering_says_what_each_record_asserts(study):
    assert "assert" not in study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER).stdout
    study("ledger", "population", "add", "people", "--unit", "participant", "--mu", "1", "--ledger", "study.db")
    said = study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER, "--population", "people").stdout
    assert "Each record counts as one participant: by this you assert that nobody has two." in said
    np.savez("d.npz", X=tensors(), person=np.arange(200) // 2)
    by_id = ["d.npz", "--array", "X", *["person" if word == "each-record" else word for word in BALL]]
    assert "assert" not in study("ledger", "dataset", "add", "ids", *by_id, *LEDGER, "--population", "people").stdout
    assert json.loads(
        study("ledger", "dataset", "add", "dti", "a.npy", *BALL, *LEDGER, "--population", "cohort", "--json").stdout
    )
