"""What both kinds of client know of their server."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable

from ._address import Address, Credentials
from ._errors import MinervaError, NoServer, NoServerWarning, Status, UnservedWarning
from ._find import Found, find

PATIENCE_SECONDS = 10.0
"""Requests are sent again for so long: a daemon that is restarted is back by then."""

LOOK_PERIOD_SECONDS = 30.0
"""A client without a server looks for one again at a call, so long after it looked last."""

LOOK_SECONDS_MAX = 0.1
"""A call waits no longer for that: whoever listens at a socket of this machine is found by then."""

TELL_SECONDS_MAX = 1.0
"""A program that is done with its operation, or begins it alone, waits no longer for the server to hear of it."""

SILENT_SECONDS = 1.0
"""A server that says no says so sooner. One from which nothing comes for so long hangs, and what it said before counts no longer."""

LATE_SECONDS = 1.0
"""A server, or the cache's service, that kept a question so long made the deadline too near, and not the program."""

REPORT_SECONDS = 1.0
"""How far work is, is told no more often."""

_OPTIONS: tuple[tuple[str, str | int], ...] = (
    # Connections are tried again as often as requests are, and often enough that a server that is back is found before the patience ends.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # What is sent again, and when, is decided in one place.
    ("grpc.enable_retries", 0),
    # The server is on this machine or its host: a proxy is for other traffic.
    ("grpc.enable_http_proxy", 0),
    # A peer that was switched off is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)

# Over a Unix socket grpcio would send the socket's path, escaped, as the server's name; servers in Rust refuse it as none.
_UNIX_OPTIONS = (*_OPTIONS, ("grpc.default_authority", "minervad.invalid"))

_FORKED = "this process was forked from one that used Minerva already; use it in one of them only, or start with spawn"

# Whose lines say nothing of what a warning is about: this package's, and what stands between it and its caller.
_NOT_THE_PROGRAM = frozenset({"minerva", "contextlib", "asyncio"})

_warned = False
_warned_unserved = False
# Set in a process that was forked from one in which grpcio ran for us: its threads are not there, and calls would hang or fail.
_forked = False
_used = False


def _after_fork() -> None:
    global _forked
    _forked = _used


os.register_at_fork(after_in_child=_after_fork)
# Unless told, the core of grpcio prepares for forks and its Python half does not: a child then often dies of SIGSEGV as it is born.
# It does without the connection anyway. Read when the first channel is made.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def is_cut_off() -> bool:
    """Whether this process was forked after Minerva was used in its parent, and must do without."""
    if _forked:
        warn_once(_FORKED)
    return _forked


def warn_once(absence: str) -> None:
    """Says once in a process that there is no server."""
    global _warned
    if not _warned:
        _warned = True
        text = f"Minerva is not there: {absence}. Levels and boosts have no effect, and coordinated work begins at once."
        warnings.warn(text, NoServerWarning, stacklevel=_stack_level())


def warn_unserved_once(refusal: MinervaError) -> None:
    """Says once in a process that the server does not serve it."""
    global _warned_unserved
    if not _warned_unserved:
        _warned_unserved = True
        text = f"Minerva does not serve this program: {refusal} It goes on without; strict=True makes this an exception."
        warnings.warn(text, UnservedWarning, stacklevel=_stack_level())


def _stack_level() -> int:
    """Of a warning, so that it shows the line of the program that called this package, by whichever way."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_PROGRAM:
        level, frame = level + 1, frame.f_back
    return level


class Server:
    """Where the server is and how to speak to it."""

    def __init__(self, found: Found, address: Address, credentials: Credentials, patience_seconds: float) -> None:
        self.target = address.target
        self.options = _OPTIONS if address.is_tcp else _UNIX_OPTIONS
        self.address = str(address)
        self.channel_credentials = credentials.for_channel(address)
        self.metadata = credentials.metadata(address)
        # Half of what clocks and locks take: what would end later has no end.
        self.patience_seconds = min(max(patience_seconds, 0.0), threading.TIMEOUT_MAX / 2)
        self.has_agent = found.agent is not None
        self.revive: Callable[[float | None], None] = found.revive
        """Starts the agent again, if it was one and is gone; takes no longer than some seconds."""
        self.is_served = False
        """The server itself has answered, not only an agent that knows none."""

    def absence(self, status: Status) -> NoServer | None:
        """That there is no server at all, if that is what the status says. One that was there is away, and comes back."""
        if self.is_served or not status.says_no_server:
            return None
        return NoServer(status.details.rstrip("."))


def look(address: str | None, credentials: Credentials | None, patience_seconds: float) -> Server | str:
    """The server, or why there is none."""
    global _used
    if is_cut_off():
        return _FORKED
    found = find(address, os.environ)
    if found.address is None:
        return found.absence
    _used = True
    return Server(found, found.address, credentials or Credentials.from_environment(), patience_seconds)


class Search:
    """Where a client looks for its server, and when it looks again."""

    def __init__(self, address: str | None, credentials: Credentials | None, patience_seconds: float) -> None:
        self._asked = (address, credentials, patience_seconds)
        self._looked = -math.inf
        self._lock = threading.Lock()
        self.is_over = False
        """The client is closed: what is found from here on is not for it."""

    def look(self) -> Server | str:
        """The server, or why there is none."""
        self.put_off()
        return look(*self._asked)

    def is_due(self) -> bool:
        """Whether to look again now; one of several that ask is told so."""
        with self._lock:
            is_due = not self.is_over and time.monotonic() - self._looked >= LOOK_PERIOD_SECONDS
            if is_due:
                self._looked = time.monotonic()
            return is_due

    def again(self) -> Server | None:
        """The server, if it is there now."""
        # An error is for somebody to mend; this program goes on without, as before.
        with contextlib.suppress(MinervaError):
            found = self.look()
            return found if isinstance(found, Server) else None
        return None

    def put_off(self) -> None:
        """The server was found to be absent now."""
        self._looked = time.monotonic()

    def end(self) -> None:
        """The client is closed."""
        self.is_over = True


def new_key() -> str:
    """A key that nobody else chooses."""
    return str(uuid.uuid4())
