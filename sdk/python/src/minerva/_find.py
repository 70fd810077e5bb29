"""Finds the server, and starts `minerva-agent` where none listens but one can be reached, as in a guest."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import shutil
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ._address import PORT_DEFAULT, Address
from ._apart import in_background
from ._errors import AddressError

# A host's, the same in its containers, and the agent's.
_SOCKETS = ("/run/minerva/tenant.sock", "/run/minerva/tenant/tenant.sock", "/run/minerva/agent.sock")
# A server that does not take the connection in this time is taken for absent.
_CONNECT_SECONDS_MAX = 5.0
# An agent that does not listen by then is given up; an agent that nobody uses ends by itself.
_START_SECONDS_MAX = 5.0
_TRY_PERIOD_SECONDS = 0.02
_IDLE_EXIT = "60s"


@dataclass(frozen=True)
class Agent:
    """An agent that can be started."""

    program: str
    upstream: str
    """The server that it speaks to."""
    socket: str
    """Where it shall listen."""

    def start(self, seconds: float = math.inf) -> None:
        """Returns when it listens, and waits no longer for it than so. Of several that are started at a time, one stays, and serves all."""
        _own_directory(os.path.dirname(self.socket))
        child = subprocess.Popen(
            [self.program, "--socket", self.socket, "--idle-exit", _IDLE_EXIT],
            env={**os.environ, "MINERVA_UPSTREAM": self.upstream},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # It serves other programs too: an interrupt at this one's terminal is not meant for it.
            start_new_session=True,
        )
        # Somebody must wait for it, so that it is no zombie if it ends before this program.
        in_background(child.wait)
        end = time.monotonic() + min(seconds, _START_SECONDS_MAX)
        while not _listens(self.socket, end - time.monotonic()):
            if time.monotonic() > end:
                raise FileNotFoundError(
                    errno.ENOENT, f"{self.program} was started and does not listen", self.socket
                )
            time.sleep(_TRY_PERIOD_SECONDS)


@dataclass(frozen=True)
class Found:
    """A server, or why there is none."""

    address: Address | None
    absence: str = ""
    agent: Agent | None = None
    """Started again when nobody listens at the address any more."""

    def revive(self, seconds: float | None = None) -> None:
        """Called when the connection was lost: the agent may have ended. It takes no longer than so."""
        if self.agent is None:
            return
        end = time.monotonic() + (math.inf if seconds is None else seconds)
        try:
            if not _listens(self.agent.socket, end - time.monotonic()):
                self.agent.start(end - time.monotonic())
        except OSError:
            # The request is tried again anyway, and says what was wrong if that is in vain.
            return


def find(address: str | None, environment: Mapping[str, str]) -> Found:
    """The server at `address`, else as the environment says. An error is what somebody has to mend; a server that is merely
    not there is none."""
    own_socket = _own_socket(environment)
    text = address or environment.get("MINERVA_ADDRESS") or None
    if text is not None:
        asked = Address.parse(text)
        if asked.scheme == "vsock":
            return _through_agent(_agent(environment, str(asked), own_socket), f"grpcio does not speak {asked}")
        reason = _try(asked)
        return Found(None, reason) if reason else Found(asked)
    for path in (*_SOCKETS, own_socket):
        if _is_trusted(path) and _listens(path):
            agent = _agent(environment, None, own_socket) if path == own_socket else None
            return Found(Address("unix", path=path), agent=agent)
    return _through_agent(_agent(environment, None, own_socket), "no server listens on this machine")


def _through_agent(agent: Agent | None, why: str) -> Found:
    if agent is None:
        return Found(None, f"{why}, and there is no minerva-agent to reach one")
    try:
        if not (_is_trusted(agent.socket) and _listens(agent.socket)):
            agent.start()
    except OSError as error:
        return Found(None, f"{why}, and {agent.program} could not be started: {error}")
    return Found(Address("unix", path=agent.socket), agent=agent)


def _try(address: Address, seconds: float = math.inf) -> str:
    """Why nobody is there, or takes the connection within some seconds; empty when somebody does."""
    try:
        if address.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                # 0 would be another kind of socket, which does not wait at all.
                probe.settimeout(min(max(seconds, 0.001), _CONNECT_SECONDS_MAX))
                probe.connect(address.path)
        else:
            socket.create_connection((address.host, address.port), _CONNECT_SECONDS_MAX).close()
    except PermissionError as error:
        raise AddressError(f"not allowed to use {address}: {error.strerror}") from error
    except OSError as error:
        return f"nobody listens at {address} ({error.strerror or error})"
    return ""


def _listens(path: str, seconds: float = math.inf) -> bool:
    """Whether somebody listens whom this user may ask, and takes the connection within some seconds."""
    try:
        return not _try(Address("unix", path=path), seconds)
    except AddressError:
        return False


def _own_socket(environment: Mapping[str, str]) -> str:
    directory = environment.get("XDG_RUNTIME_DIR")
    return f"{directory}/minerva/agent.sock" if directory else f"/tmp/minerva-{os.geteuid()}/agent.sock"


def _agent(environment: Mapping[str, str], upstream: str | None, own_socket: str) -> Agent | None:
    program = environment.get("MINERVA_AGENT")
    if program is None:
        program = shutil.which("minerva-agent", path=environment.get("PATH", ""))
    if upstream is None:
        upstream = environment.get("MINERVA_UPSTREAM") or None
    if upstream is None and _is_guest_with_vsock():
        upstream = f"vsock:{socket.VMADDR_CID_HOST}:{PORT_DEFAULT}"
    # An empty MINERVA_AGENT starts none.
    return Agent(program, upstream, own_socket) if program and upstream else None


def _is_guest_with_vsock() -> bool:
    """A guest's number is above those of the hypervisor (0), of the machine itself (1) and of the host (2)."""
    try:
        with open("/dev/vsock", "rb") as device:
            answer = fcntl.ioctl(device, socket.IOCTL_VM_SOCKETS_GET_LOCAL_CID, bytes(4))
    except OSError:
        return False
    (cid,) = struct.unpack("I", answer)
    return bool(socket.VMADDR_CID_HOST < cid < socket.VMADDR_CID_ANY)


def _own_directory(directory: str) -> None:
    """Makes the directory of the socket, and accepts none in which others could put a socket of theirs."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if not _is_own(directory):
        raise PermissionError(errno.EACCES, "belongs to somebody else or lets others write", directory)


def _is_own(directory: str) -> bool:
    found = os.lstat(directory)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_trusted(path: str) -> bool:
    """In a directory that belongs to the system or to this user."""
    if not path.startswith("/tmp/"):
        return True
    try:
        return _is_own(os.path.dirname(path))
    except OSError:
        return False
