"""What both kinds of client know of their server."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from ._address import Address, Credentials
from ._errors import NoServerWarning
from ._find import Found, find

PATIENCE_SECONDS = 10.0
"""Requests are sent again for so long: a daemon that is restarted is back by then."""

_OPTIONS: tuple[tuple[str, str | int], ...] = (
    # Connections are tried again as often as requests are.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5000),
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

_warned = False
# Set in a process that was forked from one in which grpcio ran for us: its threads are not there, and calls would hang or fail.
_forked = False
_used = False


def _after_fork() -> None:
    global _forked
    _forked = _used


os.register_at_fork(after_in_child=_after_fork)


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
        warnings.warn(text, NoServerWarning, stacklevel=3)


class Server:
    """Where the server is and how to speak to it."""

    def __init__(self, found: Found, address: Address, credentials: Credentials, patience_seconds: float) -> None:
        self.target = address.target
        self.options = _OPTIONS if address.is_tcp else _UNIX_OPTIONS
        self.address = str(address)
        self.channel_credentials = credentials.for_channel(address)
        self.metadata = credentials.metadata(address)
        self.patience_seconds = patience_seconds
        self.revive: Callable[[], None] = found.revive


def look(address: str | None, credentials: Credentials | None, patience_seconds: float) -> Server | str:
    """The server, or why there is none."""
    global _used
    if is_cut_off():
        return _FORKED
    found = find(address, os.environ)
    if found.address is None:
        warn_once(found.absence)
        return found.absence
    _used = True
    return Server(found, found.address, credentials or Credentials.from_environment(), patience_seconds)
