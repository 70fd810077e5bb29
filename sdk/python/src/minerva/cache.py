"""The cache's pool: files that are at their place at once and are moved there later, and files of the tenant's own tree.

    import minerva

    with minerva.deferred("/data/out.bin") as file:
        file.write(result)
    with minerva.cache.open("scratch.bin", "wb") as file:
        file.write(result)

A program is unharmed by the cache's absence: where no service answers, or it refuses, a deferred file is written to its place itself,
and one of the tree to a directory of the user's own below the directory of temporary files.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import math
import os
import socket as sockets
import stat
import tempfile
import time
from collections.abc import Iterator
from typing import IO, Any, Literal

from . import _device
from .v1 import participation_pb2 as v1

Pool = Literal["temporary", "stable"]

SOCKET_DEFAULT = "/run/minerva-fs/control.sock"
SOCKET_VARIABLE = "MINERVA_CACHE_SOCKET"
_PATIENCE_SECONDS = 10.0
_ANSWER_BYTES_MAX = 64 << 20
_PART_BYTES = 64 << 10


def _ask(request: dict[str, Any], seconds: float = math.inf) -> dict[str, Any] | None:
    """The service's answer; None where there is none that can be read, or that comes within some seconds."""
    end = time.monotonic() + min(seconds, _PATIENCE_SECONDS)
    try:
        with sockets.socket(sockets.AF_UNIX) as stream:
            stream.settimeout(_left(end))
            stream.connect(os.environ.get(SOCKET_VARIABLE, SOCKET_DEFAULT))
            stream.sendall(json.dumps(request).encode() + b"\n")
            line = bytearray()
            while not line.endswith(b"\n") and len(line) < _ANSWER_BYTES_MAX:
                # Each part may come late; all of them are to come in time.
                stream.settimeout(_left(end))
                part = stream.recv(_PART_BYTES)
                if not part:
                    break
                line += part
        answer = json.loads(line)
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _left(end: float) -> float:
    left = end - time.monotonic()
    # 0 would be another kind of socket, which does not wait at all.
    if left <= 0:
        raise TimeoutError
    return left


def _mask() -> int:
    """The mask of new files, which can be read without setting it, which other threads would see."""
    try:
        with builtins.open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except (OSError, ValueError, IndexError):
        pass
    return 0o022


def _permissions(place: str) -> int | None:
    """Of a new file at a place, which are those of the one that it replaces, also where that still waits; None where a link in place of
    what is there would be something else to others: what is no file of this user's alone, or a link that leads elsewhere than to what
    waits in a pool."""
    try:
        shown = os.lstat(place)
        if stat.S_ISLNK(shown.st_mode):
            if not _device.leads_to_pool(place):
                return None
            # What waits there is the file, and has its permissions.
            shown = os.stat(place)
    except FileNotFoundError:
        return 0o666 & ~_mask()
    is_own = stat.S_ISREG(shown.st_mode) and shown.st_nlink == 1 and shown.st_uid == os.geteuid()
    return shown.st_mode & 0o777 if is_own else None


def _place(path: str, pool: Pool, tenant: str | None, bytes: int) -> str | None:
    """What is to be written in place of the file; None where it is not deferred."""
    try:
        # Links on the way are followed as the kernel does, which `..` behind one would not be by the path's text.
        directory, name = os.path.split(os.fsdecode(path))
        place = os.path.join(os.path.realpath(directory), name)
        parent = os.stat(os.path.dirname(place))
        mode = _permissions(place)
        place.encode("utf-8")
    except (OSError, ValueError):
        return None
    if mode is None or name in ("", ".", ".."):
        return None
    answer = _ask(
        {
            "ask": "defer",
            "path": place,
            "directory": [parent.st_dev, parent.st_ino],
            "mode": mode,
            "pool": pool,
            "tenant": tenant,
            "bytes": bytes,
        }
    )
    if answer is None or answer.get("answer") != "deferring":
        return None
    data = answer.get("data")
    return data if isinstance(data, str) else None


class Written:
    """Where an operation writes its file: in the pool, where one is given and takes it."""

    def __init__(self, path: str, pool: Pool | None = None, bytes: int = 0) -> None:
        self._path = path
        self.pool = pool
        """The one that it may go to, until it is asked where it is."""
        self._bytes = bytes

    def offer(self, request: v1.CoordinateRequest, seconds: float | None) -> None:
        """Says in the request what the pool takes. Waits for the cache's service to tell, some seconds at most."""
        if self.pool is None:
            return
        offered = offer(self.pool, math.inf if seconds is None else seconds)
        if offered is not None:
            request.pool.left_bytes, request.pool.device = offered

    def in_place(self) -> Written:
        """The same, but not in a pool."""
        return Written(self._path)

    def placed(self) -> str:
        """The path, where the file in the pool is by then, empty, as a link. The link is what to write to, as the file below is gone from
        the pool once it was moved here."""
        pool, self.pool = self.pool, None
        if pool is not None:
            _place(self._path, pool, None, self._bytes)
        return self._path


@contextlib.contextmanager
def deferred(
    path: str | os.PathLike[str],
    mode: str = "wb",
    *,
    pool: Pool = "stable",
    tenant: str | None = None,
    bytes: int = 0,
    **options: Any,
) -> Iterator[IO[Any]]:
    """A new file at `path`, written at the pool's speed, in place of what was there.

    It is at its place at once, as a symbolic link, and is moved there once it is closed everywhere and its disk is quiet. `mode` is
    `w` or `x` with what `open` takes beside them, `options` the rest of what it takes. What waits in the pool `temporary` is lost by
    a restart of the machine. `bytes` is how long it is expected to become: it is not deferred where that has no room. Neither is what
    others would find changed: a pipe, a device, a link, another user's file, or one with further names.
    """
    if not set(mode) & {"w", "x"}:
        raise ValueError(f"a deferred file is a new one: mode {mode!r} does not write it")
    name = os.fspath(path)
    if "x" in mode:
        # Made here, so that of two programs one has it; what is deferred then takes its place.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        mode = mode.replace("x", "w")
    data = _place(name, pool, tenant, bytes)
    if data is not None:
        try:
            file = builtins.open(data, mode, **options)
        except OSError:
            data = None
    if data is None:
        file = builtins.open(name, mode, **options)
    with file:
        yield file


def offer(pool: Pool, seconds: float = math.inf) -> tuple[int, str] | None:
    """What a pool still takes, in bytes, and the disk that it lies on, empty for memory; None where no service answers, or not within
    some seconds, or the user is several tenants or none."""
    answer = _ask({"ask": "status"}, seconds)
    tenants = answer.get("tenants", []) if answer is not None and answer.get("answer") == "status" else []
    if len(tenants) != 1 or tenants[0].get("leaving"):
        return None
    shown = tenants[0][pool]
    return (int(shown.get("deferrable_bytes", 0)), str(shown.get("device", ""))) if shown["is_served"] else None


def tree(pool: Pool = "temporary") -> str:
    """The root of the tenant's own tree in a pool."""
    answer = _ask({"ask": "status"})
    if answer is not None and answer.get("answer") == "status":
        tenants = answer.get("tenants", [])
        if len(tenants) == 1:
            return str(tenants[0][pool]["path"])
    own = os.path.join(tempfile.gettempdir(), f"minerva-cache-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(own, 0o700)
    shown = os.lstat(own)
    if not stat.S_ISDIR(shown.st_mode) or shown.st_uid != os.getuid() or shown.st_mode & 0o077:
        raise PermissionError(f"{own} is not a directory of this user alone: remove it")
    return own


def open(path: str | os.PathLike[str], mode: str = "rb", *, pool: Pool = "temporary", **options: Any) -> IO[Any]:
    """Opens a file of the tenant's own tree in a pool, by its path in the tree."""
    inner = os.fspath(path)
    if os.path.isabs(inner) or ".." in inner.split("/"):
        raise ValueError(f"{inner!r} leads out of the tree: it has to be a path in it")
    return builtins.open(os.path.join(tree(pool), inner), mode, **options)
