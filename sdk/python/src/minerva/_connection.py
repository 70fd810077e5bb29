"""The connection of a program without an event loop to its server."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from . import _link
from ._apart import Latch, apart, in_background
from ._errors import MinervaError, Status, closed
from ._link import Server
from ._retry import Attempts
from .v1.participation_pb2_grpc import ParticipationStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Link:
    """A channel to a server, and the patience with it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.process = os.getpid()
        credentials = server.channel_credentials
        if credentials is None:
            self.channel = grpc.insecure_channel(server.target, server.options)
        else:
            self.channel = grpc.secure_channel(server.target, credentials, server.options)
        self.stub = ParticipationStub(self.channel)
        self._closed = Latch()
        self.opened_by_close: set[Latch] = set()
        """What threads wait for that have no more to wait for once it is closed."""

    @property
    def is_closed(self) -> bool:
        """Whether the program closed it. grpcio ends calls and refuses new ones then, as if the server or the program had been wrong."""
        return self._closed.is_open

    def close(self) -> None:
        """Not for the main thread. Twice is as good as once."""
        # First, so that whoever finds a call ended knows why.
        self._closed.open()
        for latch in list(self.opened_by_close):
            latch.open()
        self.channel.close()

    def pause(self, seconds: float) -> None:
        """Between two tries; no longer than it is open."""
        self._closed.wait(seconds)

    def call(
        self, method: grpc.UnaryUnaryMultiCallable[_Request, _Response], request: _Request, request_id: str = ""
    ) -> _Response:
        """Sends a request until it is answered, refused for good, or the patience is over."""
        return self.call_newest(method, lambda: request, request_id)

    def call_newest(
        self,
        method: grpc.UnaryUnaryMultiCallable[_Request, _Response],
        newest: Callable[[], _Request],
        request_id: str = "",
    ) -> _Response:
        """The same with a request that each try asks for."""
        attempts = Attempts(self.server, request_id, time.monotonic())
        while not self.is_closed:
            left = attempts.left(time.monotonic())
            try:
                answer = apart(functools.partial(method, newest(), timeout=left, metadata=self.server.metadata))
                self.server.is_served = True
                return answer
            except grpc.RpcError as error:
                status = Status.of(error)
            except ValueError:
                if not self.is_closed:
                    raise
                break
            if self.is_closed and status.is_broken:
                break
            self.pause(attempts.failed(status, time.monotonic()))
            if not self.is_closed:
                self.server.revive(attempts.left(time.monotonic()))
        raise closed(request_id)

    def try_once(self, method: grpc.UnaryUnaryMultiCallable[_Request, _Response], request: _Request) -> None:
        """In place, and for no longer than a program waits that need not know the answer."""
        with contextlib.suppress(grpc.RpcError, ValueError):
            method(request, timeout=_link.TELL_SECONDS_MAX, metadata=self.server.metadata)


def tell(
    send: Callable[[], object], in_place: Callable[[], object], is_awaited: bool = True
) -> Callable[[], object] | None:
    """Sends what the program need not know the answer to, and goes on with it in the background if that takes long or is not awaited. Where
    no more threads may be started, it is `in_place` that sends. What returns when it was sent, if it was not by now."""

    def sending() -> None:
        # An operation that is over by another way, or a server that is gone, is nothing to the program.
        with contextlib.suppress(MinervaError):
            send()

    told = in_background(sending)
    if told is not None:
        told.wait(_link.TELL_SECONDS_MAX if is_awaited else 0.0)
        return told.wait
    # The end of the process says it all; before that, what can be said in place.
    if not sys.is_finalizing():
        in_place()
    return None


def status_of_stream(error: grpc.RpcError) -> Status:
    """How a stream ended. The error is the call itself: its traceback would keep it until the garbage collector runs, in any thread."""
    error.__traceback__ = None
    return Status.of(error)
