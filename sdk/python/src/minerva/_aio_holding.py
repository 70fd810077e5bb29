"""What a program with an event loop holds until it releases it: a level, a place as a batch job, work of its own that waits."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import grpc
import grpc.aio

from . import _link, _wire
from ._aio_connection import Link, as_task, is_set, telling, unless_closed
from ._errors import MinervaError, Status, Unreachable, closed
from ._keeping import Keeping, Owing
from ._types import Level
from .v1 import participation_pb2 as v1

if TYPE_CHECKING:
    # In the stubs only: at run time both halves of grpcio share a class.
    from .v1.participation_pb2_grpc import ParticipationAsyncStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Kept(Keeping[_Response], Generic[_Request, _Response]):
    """A stream that is open until it is released. When the server was away, it is opened again."""

    def __init__(
        self,
        link: Link | None,
        method: Callable[[ParticipationAsyncStub], grpc.aio.UnaryStreamMultiCallable[_Request, _Response]],
        request: _Request,
    ) -> None:
        super().__init__()
        self._link = link
        self._method = method
        self._request = request
        self._heard = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def _take(self) -> None:
        """Returns when it is held. What raises leaves nothing held."""
        link = self._link
        if link is None:
            return
        self._keeper = as_task(self._keep(link))
        # A server that goes away meanwhile does not fail it: it is asked when it is back. One that refuses all the while does.
        try:
            is_heard = await is_set(self._heard, link.server.patience_seconds)
            error = self._error if is_heard else self._refused(time.monotonic())
            if error is not None:
                raise error
        except BaseException:
            # Cancelled or refused, nobody has it who could release it.
            self._keeper.cancel()
            self._link, self._error = None, None
            raise

    async def release(self) -> None:
        """Ends it. Twice is as good as once."""
        # A child of the process that holds it has a copy of this, and not the stream.
        if self._link is None or self._link.process != os.getpid():
            return
        if self._keeper is not None:
            # The call ends with the task, and what is held with the call.
            self._keeper.cancel()
            await asyncio.wait({self._keeper}, timeout=_link.TELL_SECONDS_MAX)

    async def _keep(self, link: Link) -> None:
        """Until it is cancelled, refused for good, or its client closed."""
        try:
            while True:
                status = await self._hold_once(link)
                wait = self._stream_ended(link.server, status, is_closed=False)
                self._changed()
                if wait is None:
                    return
                await link.pause(wait)
                await link.revive()
        except Unreachable:
            self._error = closed()
        finally:
            self._last = None
            self._changed()
            self._heard.set()

    def _asked(self) -> _Request:
        """What is asked for, when it is asked again too."""
        return self._request

    def _changed(self) -> None:
        """What was told last is another."""

    async def _hold_once(self, link: Link) -> Status:
        """One stream, from its begin to its end; raises where the client is closed."""
        self._tried = time.monotonic()
        call = link.begin(self._method(link.stub), self._asked())

        async def listen() -> None:
            await call.initial_metadata()
            self._taken()
            async for change in call:
                self._told(link.server, change)
                self._heard.set()
                self._changed()

        try:
            await unless_closed(listen())
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the hold")
        except grpc.aio.AioRpcError as error:
            return Status.of(error)
        finally:
            call.cancel()


class Held(Kept[v1.HoldLevelRequest, v1.HoldLevelResponse]):
    """A level that is held until it is released. When the server was away, the level is taken again."""

    def __init__(self, link: Link | None, level: Level) -> None:
        """For `Client.hold`."""
        request = v1.HoldLevelRequest(level=_wire.level_number(level))
        super().__init__(link, lambda stub: stub.HoldLevel, request)

    @property
    def level(self) -> Level | None:
        """The level in force for the tenant, which others of it may have set further back; absent while the server is away, or
        when it does not let this one step back any more."""
        last = self._last
        return None if last is None else _wire.level_of(last.level)


class Job(Kept[v1.HoldJobRequest, v1.HoldJobResponse]):
    """A batch job until it is released. When the server was away, that is said again."""

    def __init__(self, link: Link | None, request: v1.HoldJobRequest) -> None:
        """For `Client.hold_job`."""
        super().__init__(link, lambda stub: stub.HoldJob, request)

    @property
    def place(self) -> tuple[int, int] | None:
        """As `minerva.Job.place`."""
        return _wire.place_of(self._last)


class Debt(Kept[v1.HoldDebtRequest, v1.HoldDebtResponse]):
    """As `minerva.Debt`."""

    def __init__(self, link: Link | None, request: v1.HoldDebtRequest) -> None:
        super().__init__(link, lambda stub: stub.HoldDebt, request)
        self._owing = Owing(request, time.monotonic())
        self._reporter: asyncio.Task[None] | None = None
        self._may = asyncio.Event()
        self._changed()

    @property
    def may_work(self) -> bool:
        """As `minerva.Debt.may_work`."""
        last = self._last
        if last is None or self._link is None or self._link.process != os.getpid():
            return True
        return last.may_work

    @property
    def ended(self) -> MinervaError | None:
        """As `minerva.Debt.ended`."""
        return self._error

    async def wait(self, seconds: float | None = None) -> bool:
        """As `minerva.Debt.wait`."""
        end = time.monotonic() + (math.inf if seconds is None else seconds)
        while not self.may_work and (left := end - time.monotonic()) > 0:
            await is_set(self._may, min(left, threading.TIMEOUT_MAX))
        return self.may_work

    async def report(self, done: float, *, service: float | None = None, tied_bytes: int | None = None) -> None:
        """As `minerva.Debt.report`."""
        self._owing.report(done, service, tied_bytes, time.monotonic())
        link = self._link
        if link is None or link.process != os.getpid() or self._error is not None or not self._owing.is_untold:
            return
        # One that is under way sends this too.
        if self._reporter is None or self._reporter.done():
            self._reporter = telling(functools.partial(self._report, link))
            await asyncio.wait({self._reporter}, timeout=_link.TELL_SECONDS_MAX)

    async def release(self) -> None:
        """As `minerva.Debt.release`."""
        if self._reporter is not None and self._link is not None and self._link.process == os.getpid():
            self._reporter.cancel()
        await super().release()

    async def _report(self, link: Link) -> None:
        """Tells how far it is for as long as there is more to tell; one task at a time, as what is told later would be undone by what
        arrives after it and is older."""
        while self._owing.is_untold:
            with contextlib.suppress(MinervaError):
                await link.call_newest(link.stub.ReportDebt, self._newest)

    def _newest(self) -> v1.ReportDebtRequest:
        """For a try to report; raises where the debt is no more."""
        newest = self._owing.newest(self._last)
        if self._error is not None:
            raise self._error
        return newest

    def _asked(self) -> v1.HoldDebtRequest:
        return self._owing.asked(time.monotonic())

    def _changed(self) -> None:
        if self.may_work:
            self._may.set()
        else:
            self._may.clear()
