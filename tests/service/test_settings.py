"""Settings: one file, the environment in its place, and nothing that would speak in the clear to others."""

import pytest

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service.settings import PREFIX, Settings, is_loopback

pytestmark = pytest.mark.security


@pytest.fixture
def read(tmp_path):
    def written(text="", **environ):
        path = tmp_path / "dpm-service.toml"
        path.write_text(text, encoding="utf-8")
        return Settings.read(path, {f"{PREFIX}{name}": value for name, value in environ.items()})

    return written


def test_an_empty_file_is_a_service_on_this_machine(read, tmp_path):
    found = read()
    assert (found.host, found.port, found.url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")
    assert found.database == str(tmp_path / "state/service.db")
    assert found.root == tmp_path / "records"
    assert found.is_local
    assert found.certificate is None


def test_the_example_is_what_an_empty_file_means(tmp_path, read):
    path = tmp_path / "example.toml"
    Settings.write_example(path)
    example = Settings.read(path, {})
    told = read()
    assert (example.title, example.slot, example.body_limit) == (told.title, told.slot, told.body_limit)
    assert path.stat().st_mode & 0o007 == 0
    with pytest.raises(InvalidArgumentError, match="is there already"):
        Settings.write_example(path)


def test_the_environment_comes_first(read):
    found = read(
        "[web]\nport = 1\n", WEB_PORT="8443", WEB_HOSTS="one.org, Two.org:81", SERVICE_APPROVAL="true",
        WORKER_SLOT="2.5", SERVICE_DATABASE="postgresql://u:hush@h/d", CONFIG="elsewhere.toml",
    )  # fmt: skip
    assert (found.port, found.slot, found.approval) == (8443, 2.5, True)
    assert found.hosts[:2] == ("one.org", "two.org:81")
    assert found.database == "postgresql://u:hush@h/d"
    assert "hush" not in repr(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[web]\nprot = 1\n", r"\[web\] has no prot. It has: host, port"),
        ("[wep]\nport = 1\n", r"no table \[wep\]. There are: service, web"),
        ("port = 1\n", "no table"),
        ("[web]\nport = true\n", "web.port must be a whole number"),
        ("[web]\nport = 70000\n", "at most 65535"),
        ("[web]\nhosts = 3\n", "web.hosts must be a list"),
        ("[worker]\nslot = -1\n", "worker.slot must be a number above 0"),
        ("[worker]\nslot = nan\n", "worker.slot must be a number above 0"),
        ("[service]\napproval = 1\n", "must be true or false"),
        ("[service]\ntitle = 3\n", "must be text"),
        ("[web]\ncertificate = 'a.pem'\n", "go together"),
        ("[web]\nurl = 'ftp://x'\n", "must be an address"),
        ("[web]\nurl = 'http://127.0.0.1:port'\n", "port that is a number"),
        ("not toml", "are not TOML"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(read, text, words):
    with pytest.raises(InvalidArgumentError, match=words):
        read(text)


def test_unknown_variables_are_refused_by_name(read):
    with pytest.raises(InvalidArgumentError, match="DPM_SERVICE_WEB_PROT, which sets nothing"):
        read(WEB_PROT="1")


def test_a_database_that_cannot_be_read_is_not_repeated(read):
    with pytest.raises(InvalidArgumentError, match=r"service\.database") as told:
        read(SERVICE_DATABASE="postgresql://u:secret\n@h/d")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "stats.example.org"])
@pytest.mark.parametrize("proxy", [False, True])
def test_others_are_served_by_tls_alone(read, host, proxy):
    with pytest.raises(InvalidArgumentError, match="in the clear"):
        read(f"[web]\nhost = '{host}'\nbehind_proxy = {str(proxy).lower()}\n")


def test_tls_serves_everybody(read):
    found = read("[web]\nhost = '0.0.0.0'\nport = 443\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\n"
                 "url = 'https://stats.example.org'\n")  # fmt: skip
    assert found.certificate is not None
    assert found.hosts == ("stats.example.org",)


def test_a_proxy_speaks_for_a_socket(read, tmp_path):
    found = read("[web]\nhost = 'unix:run/web.sock'\nbehind_proxy = true\nurl = 'https://stats.example.org:443/'\n")
    assert found.host == f"unix:{tmp_path / 'run/web.sock'}"
    assert found.is_local
    assert found.url == "https://stats.example.org:443"
    assert found.hosts == ("stats.example.org",)


def test_the_address_of_others_is_never_http(read):
    with pytest.raises(InvalidArgumentError, match="must start with https"):
        read("[web]\nurl = 'http://stats.example.org'\n")


def test_loopback_is_told_from_the_rest():
    assert [is_loopback(host) for host in ("127.3.2.1", "::1", "LOCALHOST")] == [True] * 3
    assert [is_loopback(host) for host in ("0.0.0.0", "localhost.evil.org", "127.0.0.1.evil.org", "")] == [False] * 4
