"""Which block device a path lies on."""

from __future__ import annotations

import os
import stat

_MOUNTS = "/proc/self/mountinfo"
_DEFERRED = ".deferred"
"""Where in a tenant's tree files wait."""


def of_path(path: str | os.PathLike[str] | None) -> str:
    """The block device of the file system that holds `path`, as `MAJ:MIN`; empty if it has none, such as a network's.

    Without a path it is the working directory, and then a failure is no error: the number is only a hint. A path that is not there
    yet stands for the nearest directory above it that is."""
    if path is None:
        try:
            return _of_existing(".")
        except OSError:
            return ""
    # What waits in a pool belongs to where its link is; other links are followed, also those that lead to nothing yet.
    nearest = os.path.abspath(os.path.dirname(path) or ".") if leads_to_pool(path) else os.path.realpath(path)
    while not os.path.lexists(nearest) and nearest != os.path.dirname(nearest):
        nearest = os.path.dirname(nearest)
    return _of_existing(nearest)


def leads_to_pool(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a link to a file that waits in a pool of the cache to be moved there."""
    try:
        return os.path.basename(os.path.dirname(os.readlink(path))) == _DEFERRED
    except OSError:
        return False


def _of_existing(path: str) -> str:
    status = os.stat(path)
    device = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    if os.major(device) != 0:
        return _text(device)
    # btrfs and others number their file systems themselves; the device stands in the table of mounts.
    source = _source_of_mount(_text(device))
    try:
        source_status = os.stat(source)
    except OSError:
        return ""
    return _text(source_status.st_rdev) if stat.S_ISBLK(source_status.st_mode) else ""


def _text(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _source_of_mount(number: str) -> str:
    """What is mounted as the file system of this number; see `proc_pid_mountinfo(5)`."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields, _, rest = line.partition(" - ")
                if fields.split(" ")[2:3] == [number]:
                    # `TYPE SOURCE OPTIONS`
                    return rest.split(" ")[1]
    except (OSError, IndexError):
        pass
    return ""
