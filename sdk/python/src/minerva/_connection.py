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
from ._apart import apart, in_background
from ._errors import MinervaError, Status
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

    def call(
        self, method: grpc.UnaryUnaryMultiCallable[_Request, _Response], request: _Request, request_id: str = ""
    ) -> _Response:
        """Sends a request until it is answered, refused for good, or the patience is over."""
        attempts = Attempts(self.server, request_id, time.monotonic())
        while True:
            try:
                left = attempts.left(time.monotonic())
                answer = apart(functools.partial(method, request, timeout=left, metadata=self.server.metadata))
                self.server.is_served = True
                return answer
            except grpc.RpcError as error:
                wait = attempts.failed(Status.of(error), time.monotonic())
            time.sleep(wait)
            self.server.revive(attempts.left(time.monotonic()))

    def tell(
        self,
        method: grpc.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        after: Callable[[], object] | None = None,
        is_awaited: bool = True,
    ) -> Callable[[], object] | None:
        """Sends what the program need not know the answer to, once `after` has returned, and goes on with it in the background if that
        takes long or is not awaited. What returns when it was sent, if it was not by now."""

        def send() -> None:
            if after is not None:
                after()
            # An operation that is over by another way, or a server that is gone, is nothing to the program.
            with contextlib.suppress(MinervaError, ValueError):
                self.call(method, request)

        told = in_background(send)
        if told is not None:
            told.wait(_link.TELL_SECONDS_MAX if is_awaited else 0.0)
            return told.wait
        # The end of the process says it all; before that, what can be said in place.
        if not sys.is_finalizing():
            with contextlib.suppress(grpc.RpcError, ValueError):
                method(request, timeout=_link.TELL_SECONDS_MAX, metadata=self.server.metadata)
        return None


def status_of_stream(error: grpc.RpcError) -> Status:
    """How a stream ended. The error is the call itself: its traceback would keep it until the garbage collector runs, in any thread."""
    error.__traceback__ = None
    return Status.of(error)
