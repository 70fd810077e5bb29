"""What a program with an event loop holds until it releases it: a level, a place as a batch job, work of its own that waits."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import grpc
import grpc.aio

from . import _link, _wire
from ._aio_connection import Link, as_task, unless_closed
from ._errors import MinervaError, Status, Unreachable, closed
from ._retry import Backoff
from ._types import Level
from .v1 import participation_pb2 as v1

if TYPE_CHECKING:
    # In the stubs only: at run time both halves of grpcio share a class.
    from .v1.participation_pb2_grpc import ParticipationAsyncStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Kept(Generic[_Request, _Response]):
    """A stream that is open until it is released. When the server was away, it is opened again."""

    def __init__(
        self,
        link: Link | None,
        method: Callable[[ParticipationAsyncStub], grpc.aio.UnaryStreamMultiCallable[_Request, _Response]],
        request: _Request,
    ) -> None:
        self._link = link
        self._method = method
        self._request = request
        self._last: _Response | None = None
        self._error: MinervaError | None = None
        self._refusal: MinervaError | None = None
        """What the server said to the last try, if it said no for now."""
        self._heard = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def _take(self) -> None:
        if self._link is None:
            return
        self._keeper = as_task(self._keep(self._link))
        # A server that goes away meanwhile does not fail it: it is asked when it is back. One that refuses all the while does.
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._heard.wait(), self._link.server.patience_seconds)
            error = self._error if self._heard.is_set() else self._refusal
            if error is not None:
                raise error
        except BaseException:
            self._keeper.cancel()
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
        backoff = Backoff()
        try:
            while True:
                status = await self._hold_once(link, backoff)
                self._last = None
                self._changed()
                self._error = link.server.absence(status)
                if self._error is None and not status.is_worth_another_try:
                    self._error = status.refusal()
                if self._error is not None:
                    self._heard.set()
                    return
                self._refusal = status.refusal() if status.is_refusal else None
                await asyncio.sleep(backoff.after(status))
                await link.revive()
        except (Unreachable, grpc.aio.UsageError):
            # The client was closed meanwhile; the second is grpcio's way to say so of a new call.
            self._error = closed()
            self._heard.set()
        finally:
            self._last = None
            self._changed()

    def _asked(self) -> _Request:
        """What is asked for, when it is asked again too."""
        return self._request

    def _changed(self) -> None:
        """What was told last is another."""

    async def _hold_once(self, link: Link, backoff: Backoff) -> Status:
        """One stream, from its begin to its end."""
        call = self._method(link.stub)(self._asked(), metadata=link.server.metadata)

        async def listen() -> None:
            async for change in call:
                backoff.reset()
                link.server.is_served = True
                self._last = change
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
        """For `Client.hold_debt`."""
        super().__init__(link, lambda stub: stub.HoldDebt, request)
        self._owing = v1.ReportDebtRequest(
            name=request.name, service_ns=request.service_ns, tied_bytes=request.tied_bytes
        )
        self._reported = -math.inf
        within = request.done_within_ns if request.HasField("done_within_ns") else None
        self._due = None if within is None else time.monotonic() + within / 1e9
        self._is_asked = False
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

    async def wait(self) -> None:
        """Returns when work may be done."""
        if not self.may_work:
            await self._may.wait()

    async def report(self, done: float, *, service: float | None = None, tied_bytes: int | None = None) -> None:
        """As `minerva.Debt.report`."""
        self._owing = _wire.debt_report(self._owing, done, service, tied_bytes)
        link, now = self._link, time.monotonic()
        is_over = self._owing.done_ns >= self._owing.service_ns
        is_soon = now - self._reported < _link.REPORT_SECONDS and not is_over
        if link is None or link.process != os.getpid() or self._error is not None or is_soon:
            return
        self._reported = now
        last = self._last
        self._owing.registration = 0 if last is None else last.registration
        await link.tell(link.stub.ReportDebt, self._owing)

    def _asked(self) -> v1.HoldDebtRequest:
        if not self._is_asked:
            self._is_asked = True
            return self._request
        left = None if self._due is None else self._due - time.monotonic()
        return _wire.debt_again(self._request, self._owing, left)

    def _changed(self) -> None:
        if self.may_work:
            self._may.set()
        else:
            self._may.clear()
