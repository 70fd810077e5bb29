"""What a program without an event loop holds until it releases it: a level, a place as a batch job, work of its own that waits."""

from __future__ import annotations

import _thread
import contextlib
import functools
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

import grpc

from . import _link, _wire
from ._apart import Latch, apart, in_background
from ._connection import Link, status_of_stream, tell
from ._errors import MinervaError, NoThread, Status, closed
from ._keeping import Keeping, Owing
from ._types import Level
from .v1 import participation_pb2 as v1
from .v1.participation_pb2_grpc import ParticipationStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Kept(Keeping[_Response], Generic[_Request, _Response]):
    """A stream that is open until it is released. When the server was away, it is opened again."""

    def __init__(
        self,
        link: Link | None,
        method: Callable[[ParticipationStub], grpc.UnaryStreamMultiCallable[_Request, _Response]],
        request: _Request,
    ) -> None:
        super().__init__()
        self._link = link
        self._method = method
        self._request = request
        self._heard = Latch()
        self._is_released = False
        self._stopped = Latch()
        """Opens when it is released, or its client closed."""
        self._over: Latch | None = None
        """Opens when its thread ends. Absent without one."""
        self._call: grpc.Call | None = None
        """Its last reference goes in that thread, as the end of a call takes a lock of grpcio."""

    def _take(self) -> None:
        """Returns when it is held. What raises leaves nothing held."""
        link = self._link
        if link is None:
            return
        try:
            self._over = in_background(functools.partial(self._keep, link))
            if self._over is None:
                raise NoThread
            # A server that goes away meanwhile does not fail it: it is asked when it is back. One that refuses all the while does.
            is_heard = self._heard.wait(link.server.patience_seconds)
            error = self._error if is_heard else self._refused(time.monotonic())
            if error is not None:
                raise error
        except BaseException:
            # Interrupted or refused, nobody has it who could release it.
            self._is_released = True
            self.release()
            self._link, self._error = None, None
            raise

    def release(self) -> None:
        """Ends it. Twice is as good as once."""
        # A child of the process that holds it has a copy of this, and not the stream; and the end of a process ends it anyway.
        if self._link is None or self._link.process != os.getpid() or sys.is_finalizing():
            return
        self._is_released = True
        self._stopped.open()
        if self._over is not None and self._over.is_open:
            return
        apart(self._cancel)
        if self._over is not None:
            self._over.wait(_link.TELL_SECONDS_MAX)

    def _cancel(self) -> None:
        call = self._call
        if call is not None:
            call.cancel()

    def _keep(self, link: Link) -> None:
        """Until it is released, refused for good, or its client closed."""
        link.opened_by_close.add(self._stopped)
        try:
            while not self._is_released:
                status = self._hold_once(link)
                if self._is_released:
                    break
                wait = self._stream_ended(link.server, status, link.is_closed)
                self._changed()
                if wait is None:
                    break
                if not self._stopped.wait(wait):
                    link.server.revive(None)
        finally:
            link.opened_by_close.discard(self._stopped)
            self._last = None
            self._changed()
            self._heard.open()

    def _asked(self) -> _Request:
        """What is asked for, when it is asked again too."""
        return self._request

    def _changed(self) -> None:
        """What was told last is another."""

    def _hold_once(self, link: Link) -> Status:
        """One stream, from its begin to its end."""
        try:
            self._tried = time.monotonic()
            self._call = call = self._method(link.stub)(self._asked(), metadata=link.server.metadata)
            if self._is_released:
                call.cancel()
            call.initial_metadata()
            self._taken()
            for change in call:
                self._told(link.server, change)
                self._heard.open()
                self._changed()
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the hold")
        except grpc.RpcError as error:
            return status_of_stream(error)
        except ValueError:
            if not link.is_closed:
                raise
            return Status(grpc.StatusCode.CANCELLED)
        finally:
            self._call = None


class Held(Kept[v1.HoldLevelRequest, v1.HoldLevelResponse]):
    """A level that is held until it is released. When the server was away, the level is taken again."""

    def __init__(self, link: Link | None, level: Level) -> None:
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
        super().__init__(link, lambda stub: stub.HoldJob, request)

    @property
    def place(self) -> tuple[int, int] | None:
        """Its number in the order of the jobs on its disk, from 1, and how many there are; absent while none goes before
        another, or the server is away."""
        return _wire.place_of(self._last)


class Debt(Kept[v1.HoldDebtRequest, v1.HoldDebtResponse]):
    """Work of the program's own that can wait, until it is released. When the server was away, it is registered again, as far as
    it is then."""

    def __init__(self, link: Link | None, request: v1.HoldDebtRequest) -> None:
        self._waiting: list[SimpleQueue[None]] = []
        """Those that wait, who are told of each change."""
        self._owing = Owing(request, time.monotonic())
        self._reporter = _thread.allocate_lock()
        """Of the one thread that reports. The main thread takes it not, as an interrupt might leave it held."""
        super().__init__(link, lambda stub: stub.HoldDebt, request)

    @property
    def may_work(self) -> bool:
        """Whether work may be done now. Where nobody is there to say so, it may, as in a child that the process forks. A program that
        works looks every few requests."""
        last = self._last
        if last is None or self._link is None or self._link.process != os.getpid():
            return True
        return last.may_work

    @property
    def ended(self) -> MinervaError | None:
        """Why the server has it registered no more, such as that a later debt of the same name took its place (`key-reused`). Then nobody
        says any more when work may be done, and whose place was taken leaves it to the other. None while it is registered, or will
        be again."""
        return self._error

    def wait(self, seconds: float | None = None) -> bool:
        """Returns when work may be done, or after some seconds; whether it may."""
        end = time.monotonic() + (math.inf if seconds is None else seconds)
        changes: SimpleQueue[None] = SimpleQueue()
        self._waiting.append(changes)
        try:
            while not self.may_work and (left := end - time.monotonic()) > 0:
                with contextlib.suppress(Empty):
                    changes.get(timeout=min(left, threading.TIMEOUT_MAX))
        finally:
            self._waiting.remove(changes)
        return self.may_work

    def report(self, done: float, *, service: float | None = None, tied_bytes: int | None = None) -> None:
        """So many seconds of it are done. `service` is all of it and `tied_bytes` what the rest ties, where that is not what it was.
        Told at most once a second, and the end of it at once."""
        self._owing.report(done, service, tied_bytes, time.monotonic())
        link = self._link
        if link is None or link.process != os.getpid() or self._error is not None or not self._owing.is_untold:
            return
        # One that is under way sends this too.
        if not self._reporter.locked():
            tell(
                functools.partial(self._report, link),
                lambda: link.try_once(link.stub.ReportDebt, self._owing.newest(self._last)),
            )

    def _report(self, link: Link) -> None:
        """Tells how far it is for as long as there is more to tell; one thread at a time, as what is told later would be undone by
        what arrives after it and is older. Not for the main thread."""
        while self._owing.is_untold and self._reporter.acquire(blocking=False):
            try:
                with contextlib.suppress(MinervaError):
                    link.call_newest(link.stub.ReportDebt, self._newest)
            finally:
                # Whoever reports from here on finds nobody under way, or is seen by the loop.
                self._reporter.release()

    def _newest(self) -> v1.ReportDebtRequest:
        """For a try to report; raises where the debt is no more."""
        newest = self._owing.newest(self._last)
        if self._is_released or self._error is not None:
            raise self._error or closed()
        return newest

    def _asked(self) -> v1.HoldDebtRequest:
        return self._owing.asked(time.monotonic())

    def _changed(self) -> None:
        for changes in list(self._waiting):
            changes.put(None)
