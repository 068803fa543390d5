"""On which file system a file is: SQLite's locks and shared memory do not hold over a network."""

from __future__ import annotations

import os
import pathlib
import re

_MOUNTS = pathlib.Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")

# Over a network or into another system: two writers may not see each other's locks.
_REFUSED = re.compile(
    r"nfs[0-9]*|cifs|smb[0-9a-z]*|9p|fuse.*|ceph|lustre|afs|beegfs|gpfs|gfs2|ocfs2|glusterfs|vboxsf|vmhgfs|prl_fs"
)


def filesystem_of(path: str | os.PathLike[str], mounts: pathlib.Path = _MOUNTS) -> str | None:
    """Return the type of the file system on which a file is or would be, as the mount table has it; None if unknown.

    Symbolic links are followed, and the longest mount point above the file decides: of two in one place the later. A
    bind mount is of the type that it shows.

    Parameters
    ----------
    path : of a file or a folder, which need not exist
    mounts : the mount table, as Linux has it; other systems have none, and the answer is None

    Examples
    --------
    >>> filesystem_of("x", mounts=pathlib.Path("no such table")) is None
    True
    """
    try:
        table = mounts.read_bytes()
    except OSError:
        return None
    target = os.fsencode(os.path.realpath(path))
    best: tuple[int, str | None] = (0, None)
    for line in table.splitlines():
        # number, number, device, root, mount point, options, any number of fields, "-", type, source, options
        before, _, after = line.partition(b" - ")
        fields, kind = before.split(b" "), after.split(b" ")[0]
        if len(fields) < 6 or not kind:
            continue
        point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), fields[4])
        inside = target == point or target.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= best[0]:
            best = len(point), kind.decode("ascii", "replace")
    return best[1]


def network_of(path: str | os.PathLike[str], mounts: pathlib.Path = _MOUNTS) -> str | None:
    """Return the type of the file system of a SQLite file where its locks and shared memory cannot be relied on.

    Parameters
    ----------
    path : of the file, which need not exist
    mounts : see :func:`filesystem_of`

    Returns
    -------
    None where they can, or where nothing is known
    """
    kind = filesystem_of(path, mounts)
    return kind if kind is not None and _REFUSED.fullmatch(kind) else None


def same_volume(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two files, or the folders of files that do not exist, are on one volume.

    What puts back one puts back the other: a witness beside its database sees less.

    Examples
    --------
    >>> same_volume("a", "b")
    True
    """
    return _volume(one) == _volume(other)


def _volume(path: str | os.PathLike[str]) -> int:
    target = pathlib.Path(os.path.realpath(path))
    return next(place.stat().st_dev for place in (target, *target.parents) if place.exists())
