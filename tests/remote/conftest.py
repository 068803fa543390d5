"""What the tests of the client share: a service of their own, a home of their own, and no long pauses."""

import time

import pytest

import dpmanifold as dpm
from dpmanifold.remote import pending, transport
from remote.fake_service import TOKEN, FakeService, serving


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Keep journals and tokens in a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DPM_TOKEN", raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Collect the pauses between attempts, and make them short."""
    made = []

    def shortly(seconds):
        made.append(seconds)
        time.sleep(min(seconds, 0.01))

    monkeypatch.setattr(transport, "_sleep", shortly)
    monkeypatch.setattr(pending, "_sleep", shortly)
    return made


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def url(service):
    with serving(service) as where:
        yield where


@pytest.fixture
def client(url):
    with dpm.connect(url, TOKEN) as found:
        yield found
