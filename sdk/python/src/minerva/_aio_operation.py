"""An operation of a program with an event loop, and how it waits until it may begin."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from . import cache
from ._aio_connection import Link, apart_from_loop, tell, telling, unless_closed
from ._errors import Status
from ._types import Begun
from ._waiting import Operation, Waiting
from .v1 import participation_pb2 as v1

if TYPE_CHECKING:
    # In the stubs only: at run time both halves of grpcio share a class.
    from .v1.participation_pb2_grpc import ParticipationAsyncStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Coordinated(Operation):
    """An operation that may begin."""

    def __init__(self, link: Link | None, key: str, written: cache.Written | None = None) -> None:
        super().__init__(key, written)
        self._link = link
        self._begin: asyncio.Task[None] | None = None
        """Tells the server that it has begun by itself."""

    async def finish(self) -> None:
        """It is done; the measured time makes the next estimate better. Twice is as good as once."""
        await self._end(lambda stub: stub.Finish, v1.FinishRequest(request_id=self.request_id))

    async def cancel(self) -> None:
        """It will not be done, or not to its end."""
        await self._end(lambda stub: stub.Cancel, v1.CancelRequest(request_id=self.request_id))

    async def _end(
        self,
        method: Callable[[ParticipationAsyncStub], grpc.aio.UnaryUnaryMultiCallable[_Request, _Response]],
        request: _Request,
    ) -> None:
        """Tells it to nobody the second time, or in a child of the process that asked."""
        link, self._link = self._link, None
        if link is not None and link.process == os.getpid():
            await tell(functools.partial(link.call, method(link.stub), request), self._begin)

    async def _ask(self, request: v1.CoordinateRequest, asked: float) -> None:
        """Returns when it may begin. What raises leaves nothing under way."""
        link = self._link
        if link is None:
            return
        waiting = Waiting(link.server, request, asked)
        if self._written is not None and self._written.pool is not None:
            left = waiting.left(time.monotonic())
            await apart_from_loop(functools.partial(self._written.offer, request, left))
        try:
            self.begun = await _wait(link, self.request_id, waiting)
        except asyncio.CancelledError:
            await self.cancel()
            raise
        except BaseException:
            # It is not under way.
            self._link = None
            raise
        self.waited_seconds = time.monotonic() - asked
        if self.begun is Begun.IN_POOL:
            # Nothing is under way on the server.
            self._link = None
        elif self.begun is not Begun.TOLD:
            # It has begun, whether or not the server is there to hear of it.
            begin = v1.BeginRequest(request_id=self.request_id)
            self._begin = telling(functools.partial(link.call, link.stub.Begin, begin))


async def _wait(link: Link, key: str, waiting: Waiting) -> Begun:
    """Asks, and asks again under the same key when the server was away, until the operation begins."""
    while True:
        status = await _listen(link, key, waiting)
        if waiting.begun(time.monotonic()) is None:
            await link.pause(waiting.ended(status, time.monotonic()), key)
        begun = waiting.begun(time.monotonic())
        if begun is not None:
            return begun
        await link.revive(waiting.left(time.monotonic()))


async def _listen(link: Link, key: str, waiting: Waiting) -> Status:
    """One stream: until the operation may begin, the stream ends, or there is no more time for it."""
    call = link.begin(link.stub.Coordinate, waiting.question(time.monotonic()), key)
    try:
        await unless_closed(asyncio.wait_for(call.initial_metadata(), waiting.left(time.monotonic())), key)
        waiting.taken()
        while True:
            left = waiting.left(time.monotonic())
            response = await unless_closed(asyncio.wait_for(call.read(), left), key)
            if not isinstance(response, v1.CoordinateResponse):
                return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the wait")
            if waiting.answered(response, time.monotonic()):
                return Status(grpc.StatusCode.OK)
    except asyncio.TimeoutError:
        return Status(grpc.StatusCode.CANCELLED)
    except grpc.aio.AioRpcError as error:
        return Status.of(error)
    finally:
        call.cancel()
