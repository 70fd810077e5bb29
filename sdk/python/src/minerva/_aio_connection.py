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
_Call = TypeVar("_Call")


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


async def is_set(event: asyncio.Event, seconds: float | None) -> bool:
    """Returns when it is set, or after some seconds; whether it is. Unlike `asyncio.wait_for` before Python 3.12, it does not lose a
    cancellation that comes as the event is set."""
    setting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({setting}, timeout=seconds)
    finally:
        setting.cancel()
    return event.is_set()


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
        self._closed = asyncio.Event()

    async def close(self) -> None:
        """Whoever waits for an answer, or until it asks again, is told so. Twice is as good as once."""
        self._closed.set()
        await self.channel.close()

    async def pause(self, seconds: float, request_id: str = "") -> None:
        """Between two tries; raises where it is closed."""
        if await is_set(self._closed, seconds):
            raise closed(request_id)

    def begin(
        self, method: Callable[..., _Call], request: object, request_id: str = "", timeout: float | None = None
    ) -> _Call:
        """A call; raises where it is closed."""
        try:
            return method(request, timeout=timeout, metadata=self.server.metadata)
        except grpc.aio.UsageError:
            raise closed(request_id) from None

    async def call(
        self, method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response], request: _Request, request_id: str = ""
    ) -> _Response:
        """Sends a request until it is answered, refused for good, or the patience is over."""
        return await self.call_newest(method, lambda: request, request_id)

    async def call_newest(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response],
        newest: Callable[[], _Request],
        request_id: str = "",
    ) -> _Response:
        """The same with a request that each try asks for."""
        attempts = Attempts(self.server, request_id, time.monotonic())
        while True:
            try:
                left = attempts.left(time.monotonic())
                call: Awaitable[_Response] = self.begin(method, newest(), request_id, left)
                answer = await unless_closed(call, request_id)
                self.server.is_served = True
                return answer
            except grpc.aio.AioRpcError as error:
                wait = attempts.failed(Status.of(error), time.monotonic())
            await self.pause(wait, request_id)
            await self.revive(attempts.left(time.monotonic()))

    async def revive(self, seconds: float | None = None) -> None:
        """Starts the agent again, if it was one and is gone; takes no longer than so."""
        if self.server.has_agent:
            await apart_from_loop(functools.partial(self.server.revive, seconds))


def telling(send: Callable[[], Awaitable[object]], after: asyncio.Task[None] | None = None) -> asyncio.Task[None]:
    """Sends what the program need not know the answer to in the background, once `after` is over."""

    async def sending() -> None:
        if after is not None:
            await asyncio.wait({after})
        # An operation that is over by another way, or a server that is gone, is nothing to the program.
        with contextlib.suppress(MinervaError):
            await send()

    return as_task(sending())


async def tell(send: Callable[[], Awaitable[object]], after: asyncio.Task[None] | None = None) -> None:
    """The same, and waits for it, unless that takes long."""
    await asyncio.wait({telling(send, after)}, timeout=_link.TELL_SECONDS_MAX)
