"""The connection of a program with an event loop to its server."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import grpc
import grpc.aio

from . import _link
from ._apart import in_background
from ._errors import MinervaError, Status, closed
from ._link import Server
from ._retry import Attempts
from .v1.participation_pb2_grpc import ParticipationStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Result = TypeVar("_Result")


# What goes on in the background; an event loop by itself keeps no task alive.
_tasks: set[asyncio.Task[None]] = set()


def as_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Begins work that goes on in the background."""
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def apart_from_loop(work: Callable[[], _Result]) -> _Result:
    """Does it in a thread of its own; in place where no more threads may be started. Those of the loop's executor are the program's, and
    may all be busy for long, or wait for this very loop."""
    done: concurrent.futures.Future[_Result] = concurrent.futures.Future()

    def run() -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    if in_background(run) is None:
        run()
    return await asyncio.wrap_future(done)


async def unless_closed(call: Awaitable[_Result], request_id: str = "") -> _Result:
    """What a call comes to. grpcio cancels its calls when it closes a client, which to the task that waits for one looks as if somebody
    had cancelled it. A task of the call's own tells the two apart."""
    (outcome,) = await asyncio.gather(call, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError):
        raise closed(request_id)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class Link:
    """A channel to a server, and the patience with it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.process = os.getpid()
        credentials = server.channel_credentials
        if credentials is None:
            self.channel = grpc.aio.insecure_channel(server.target, server.options)
        else:
            self.channel = grpc.aio.secure_channel(server.target, credentials, server.options)
        self.stub = ParticipationStub(self.channel)

    async def call(
        self, method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response], request: _Request, request_id: str = ""
    ) -> _Response:
        """Sends a request until it is answered, refused for good, or the patience is over."""
        attempts = Attempts(self.server, request_id, time.monotonic())
        while True:
            try:
                left = attempts.left(time.monotonic())
                call = method(request, timeout=left, metadata=self.server.metadata)
                answer = await unless_closed(call, request_id)
                self.server.is_served = True
                return answer
            except grpc.aio.AioRpcError as error:
                wait = attempts.failed(Status.of(error), time.monotonic())
            await asyncio.sleep(wait)
            await self.revive(attempts.left(time.monotonic()))

    async def revive(self, seconds: float | None = None) -> None:
        """Starts the agent again, if it was one and is gone; takes no longer than so."""
        if self.server.has_agent:
            await apart_from_loop(functools.partial(self.server.revive, seconds))

    def telling(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        after: asyncio.Task[None] | None = None,
    ) -> asyncio.Task[None]:
        """Sends what the program need not know the answer to in the background, once `after` is over."""

        async def send() -> None:
            if after is not None:
                await asyncio.wait({after})
            # An operation that is over by another way, or a server that is gone, is nothing to the program.
            with contextlib.suppress(MinervaError, grpc.aio.UsageError):
                await self.call(method, request)

        return as_task(send())

    async def tell(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        after: asyncio.Task[None] | None = None,
    ) -> None:
        """The same, and waits for it, unless that takes long."""
        await asyncio.wait({self.telling(method, request, after)}, timeout=_link.TELL_SECONDS_MAX)
