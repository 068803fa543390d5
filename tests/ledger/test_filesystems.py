"""Where a SQLite file may lie: read off the mount table."""

from __future__ import annotations

import pathlib

import pytest

from dpmanifold.errors import DPManifoldError
from dpmanifold.ledger import Ledger
from dpmanifold.service.service_database import Database
from dpmanifold.storage.filesystems import filesystem_of, network_of, same_volume

pytestmark = pytest.mark.security

TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:40 / /mnt rw,relatime - xfs /dev/sdb1 rw
24 23 0:41 / /mnt/study rw,relatime shared:5 master:1 - nfs4 server:/study rw,vers=4.2
25 22 0:42 / /mnt/my\040disk rw,relatime - cifs //server/share rw
26 22 8:1 /srv/data /mnt/study/bound rw,relatime - ext4 /dev/sda1 rw
27 22 0:43 / /twice rw - nfs server:/a rw
28 22 0:44 / /twice rw - tmpfs tmpfs rw
29 22 0:45 / /home/ann/remote rw - fuse.sshfs ann@server: rw
30 22 0:46 / /mnt/back\134slash rw - smb3 //server/share rw
a line that means nothing
"""


@pytest.fixture
def mounts(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "mountinfo"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/study.db", "ext4"),
        ("/mnt/study.db", "xfs"),
        ("/mnt/study/study.db", "nfs4"),
        ("/mnt/study", "nfs4"),
        ("/mnt/studying/study.db", "xfs"),
        ("/mnt/study/bound/study.db", "ext4"),
        ("/mnt/my disk/study.db", "cifs"),
        ("/mnt/back\\slash/study.db", "smb3"),
        ("/twice/study.db", "tmpfs"),
        ("/mnt/xyz/../study/study.db", "nfs4"),
        ("/home/ann/remote/deep/study.db", "fuse.sshfs"),
    ],
)
def test_the_longest_mount_point_decides(mounts: pathlib.Path, path: str, kind: str) -> None:
    assert filesystem_of(path, mounts) == kind
    assert network_of(path, mounts) == (None if kind in ("ext4", "xfs", "tmpfs") else kind)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuseblk", "fuse.x", "ceph", "lustre"])
def test_network_file_systems_are_refused(tmp_path: pathlib.Path, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"1 1 8:1 / / rw - {kind} source rw\n")
    assert network_of(tmp_path / "study.db", table) == kind


@pytest.mark.parametrize("place", [Ledger, Database])
def test_who_would_be_on_one_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, place: type) -> None:
    monkeypatch.setattr("dpmanifold.storage.sqlite.network_of", lambda path: "nfs4")
    with pytest.raises(DPManifoldError, match=r"where SQLite's locks do not hold.*local disk.*PostgreSQL"):
        place(tmp_path / "study.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "apfs", "f2fs"])
def test_local_ones_are_not(tmp_path: pathlib.Path, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"1 1 8:1 / / rw - {kind} source rw\n")
    assert network_of(tmp_path / "study.db", table) is None


def test_links_are_followed_to_where_the_file_is(mounts: pathlib.Path, tmp_path: pathlib.Path) -> None:
    link = tmp_path / "study"
    link.symlink_to("/mnt/study")
    assert filesystem_of(link / "study.db", mounts) == "nfs4"
    (tmp_path / "study.db").symlink_to("/home/ann/remote/study.db")
    assert filesystem_of(tmp_path / "study.db", mounts) == "fuse.sshfs"


def test_without_a_table_nothing_is_known_and_nothing_refused(tmp_path: pathlib.Path) -> None:
    assert filesystem_of(tmp_path, tmp_path / "none") is None
    assert network_of(tmp_path, tmp_path / "none") is None


def test_the_table_of_this_machine_can_be_read(tmp_path: pathlib.Path) -> None:
    if pathlib.Path("/proc/self/mountinfo").exists():
        assert filesystem_of(tmp_path / "new.db")


def test_volumes(tmp_path: pathlib.Path) -> None:
    assert same_volume(tmp_path / "a" / "b", tmp_path / "c")
    shared = pathlib.Path("/dev/shm")
    if shared.is_dir() and shared.stat().st_dev != tmp_path.stat().st_dev:
        assert not same_volume(shared / "a", tmp_path / "a")
