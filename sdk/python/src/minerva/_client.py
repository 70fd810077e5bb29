"""The client for programs without an event loop."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import grpc

from . import _wire, cache
from ._address import Credentials
from ._apart import Latch, apart, in_background
from ._errors import UNSERVED, MinervaError, NoServer, Status, UnknownDevice
from ._link import (
    LOOK_SECONDS_MAX,
    PATIENCE_SECONDS,
    TELL_SECONDS_MAX,
    Search,
    Server,
    is_cut_off,
    new_key,
    warn_once,
    warn_unserved_once,
)
from ._retry import Attempts, Backoff
from ._types import (
    Access,
    AccessWord,
    Begun,
    Boost,
    Credits,
    Description,
    Level,
    LevelWord,
    ScheduleEntry,
)
from ._waiting import Waiting
from .v1 import participation_pb2 as v1
from .v1.participation_pb2_grpc import ParticipationStub

REPORT_SECONDS = 1.0
"""How far work is, is told no more often."""

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Holding = TypeVar("_Holding", bound="_Kept[Any, Any]")


class _Link:
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
            told.wait(TELL_SECONDS_MAX if is_awaited else 0.0)
            return told.wait
        # The end of the process says it all; before that, what can be said in place.
        if not sys.is_finalizing():
            with contextlib.suppress(grpc.RpcError, ValueError):
                method(request, timeout=TELL_SECONDS_MAX, metadata=self.server.metadata)
        return None


class _Kept(Generic[_Request, _Response]):
    """A stream that is open until it is released. When the server was away, it is opened again."""

    def __init__(
        self,
        link: _Link | None,
        method: Callable[[ParticipationStub], grpc.UnaryStreamMultiCallable[_Request, _Response]],
        request: _Request,
    ) -> None:
        self._link = link
        self._method = method
        self._request = request
        self._last: _Response | None = None
        self._error: MinervaError | None = None
        self._refusal: MinervaError | None = None
        """What the server said to the last try, if it said no for now."""
        self._heard = Latch()
        self._released = Latch()
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
                # Nobody could hold it: it goes on without, as the interpreter ends.
                self._link = None
                return
            # A server that goes away meanwhile does not fail it: it is asked when it is back. One that refuses all the while does.
            is_heard = self._heard.wait(link.server.patience_seconds)
            error = self._error if is_heard else self._refusal
            if error is not None:
                raise error
        except BaseException:
            # Interrupted or refused, nobody has it who could release it.
            self.release()
            self._link, self._error = None, None
            raise

    def release(self) -> None:
        """Ends it. Twice is as good as once."""
        # A child of the process that holds it has a copy of this, and not the stream; and the end of a process ends it anyway.
        if self._link is None or self._link.process != os.getpid() or sys.is_finalizing():
            return
        self._released.open()
        apart(self._cancel)
        if self._over is not None:
            self._over.wait(TELL_SECONDS_MAX)

    def _cancel(self) -> None:
        call = self._call
        if call is not None:
            call.cancel()

    def _keep(self, link: _Link) -> None:
        backoff = Backoff()
        while not self._released.is_open:
            status = self._hold_once(link, backoff)
            self._last = None
            self._changed()
            if self._released.is_open:
                return
            self._error = link.server.absence(status)
            if self._error is None and not status.is_worth_another_try:
                self._error = status.refusal()
            if self._error is not None:
                self._heard.open()
                return
            self._refusal = status.refusal() if status.is_refusal else None
            self._released.wait(backoff.after(status))
            link.server.revive(None)

    def _asked(self) -> _Request:
        """What is asked for, when it is asked again too."""
        return self._request

    def _changed(self) -> None:
        """What was told last is another."""

    def _hold_once(self, link: _Link, backoff: Backoff) -> Status:
        """One stream, from its begin to its end."""
        try:
            self._call = call = self._method(link.stub)(self._asked(), metadata=link.server.metadata)
            if self._released.is_open:
                call.cancel()
            for change in call:
                backoff.reset()
                link.server.is_served = True
                self._last = change
                self._heard.open()
                self._changed()
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the hold")
        except grpc.RpcError as error:
            return _status_of_stream(error)
        except ValueError:
            # grpcio's way to say that the client was closed meanwhile.
            self._released.open()
            self._heard.open()
            return Status(grpc.StatusCode.CANCELLED)
        finally:
            self._call = None


def _status_of_stream(error: grpc.RpcError) -> Status:
    """How a stream ended. The error is the call itself: its traceback would keep it until the garbage collector runs, in any thread."""
    error.__traceback__ = None
    return Status.of(error)


class Held(_Kept[v1.HoldLevelRequest, v1.HoldLevelResponse]):
    """A level that is held until it is released. When the server was away, the level is taken again."""

    def __init__(self, link: _Link | None, level: Level) -> None:
        request = v1.HoldLevelRequest(level=_wire.level_number(level))
        super().__init__(link, lambda stub: stub.HoldLevel, request)

    @property
    def level(self) -> Level | None:
        """The level in force for the tenant, which others of it may have set further back; absent while the server is away, or
        when it does not let this one step back any more."""
        last = self._last
        return None if last is None else _wire.level_of(last.level)


class Job(_Kept[v1.HoldJobRequest, v1.HoldJobResponse]):
    """A batch job until it is released. When the server was away, that is said again."""

    def __init__(self, link: _Link | None, request: v1.HoldJobRequest) -> None:
        super().__init__(link, lambda stub: stub.HoldJob, request)

    @property
    def place(self) -> tuple[int, int] | None:
        """Its number in the order of the jobs on its disk, from 1, and how many there are; absent while none goes before
        another, or the server is away."""
        return _wire.place_of(self._last)


class Debt(_Kept[v1.HoldDebtRequest, v1.HoldDebtResponse]):
    """Work of the program's own that can wait, until it is released. When the server was away, it is registered again, as far as
    it is then."""

    def __init__(self, link: _Link | None, request: v1.HoldDebtRequest) -> None:
        self._waiting: list[SimpleQueue[None]] = []
        """Those that wait, who are told of each change."""
        self._owing = v1.ReportDebtRequest(
            name=request.name, service_ns=request.service_ns, tied_bytes=request.tied_bytes
        )
        self._reported = -math.inf
        within = request.done_within_ns if request.HasField("done_within_ns") else None
        self._due = None if within is None else time.monotonic() + within / 1e9
        self._is_asked = False
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
        self._owing = _wire.debt_report(self._owing, done, service, tied_bytes)
        link, now = self._link, time.monotonic()
        is_over = self._owing.done_ns >= self._owing.service_ns
        is_soon = now - self._reported < REPORT_SECONDS and not is_over
        if link is None or link.process != os.getpid() or self._error is not None or is_soon:
            return
        self._reported = now
        last = self._last
        self._owing.registration = 0 if last is None else last.registration
        link.tell(link.stub.ReportDebt, self._owing)

    def _asked(self) -> v1.HoldDebtRequest:
        if not self._is_asked:
            self._is_asked = True
            return self._request
        left = None if self._due is None else self._due - time.monotonic()
        return _wire.debt_again(self._request, self._owing, left)

    def _changed(self) -> None:
        for changes in list(self._waiting):
            changes.put(None)


class Coordinated:
    """An operation that may begin."""

    def __init__(self, link: _Link | None, key: str, written: cache.Written | None = None) -> None:
        self._link = link
        self.request_id = key
        """The key it was asked for under."""
        self.begun = Begun.UNSERVED
        """Why it begins."""
        self.waited_seconds = 0.0
        """How long it was held."""
        self._written = written
        self._before_end: Callable[[], object] | None = None
        """Returns when the server has heard all that it hears before the operation's end."""

    @property
    def path(self) -> str | None:
        """Where to write: the path that was given. Asked for the first time, it is by then a link to an empty file in the pool, if the
        operation goes there and the pool takes it; what was there before is gone."""
        if self._written is None:
            return None
        return (self._written if self.begun is Begun.IN_POOL else self._written.in_place()).placed()

    def finish(self) -> None:
        """It is done; the measured time makes the next estimate better. Twice is as good as once."""
        link = self._end()
        if link is not None:
            link.tell(link.stub.Finish, v1.FinishRequest(request_id=self.request_id), self._before_end)

    def cancel(self) -> None:
        """It will not be done, or not to its end."""
        link = self._end()
        if link is not None:
            link.tell(link.stub.Cancel, v1.CancelRequest(request_id=self.request_id), self._before_end)

    def _end(self) -> _Link | None:
        """Whom to tell: nobody the second time, or in a child of the process that asked."""
        link, self._link = self._link, None
        return link if link is not None and link.process == os.getpid() else None

    def _ask(self, request: v1.CoordinateRequest) -> None:
        """Returns when it may begin. What raises leaves nothing under way."""
        link, asked = self._link, time.monotonic()
        if link is None:
            return
        asking = _Asking(link, request)
        self._before_end = asking.end
        try:
            begun = asking.wait()
            self.begun, self.waited_seconds = begun or Begun.UNSERVED, time.monotonic() - asked
            if begun is Begun.IN_POOL or begun is None:
                # Nothing is under way on the server.
                self._link = None
            elif begun is not Begun.TOLD:
                # It has begun, whether or not the server is there to hear of it.
                begin = v1.BeginRequest(request_id=self.request_id)
                self._before_end = link.tell(link.stub.Begin, begin, asking.end, is_awaited=False)
        except MinervaError:
            # Refused, it is not under way.
            self._link = None
            in_background(asking.end)
            raise
        except BaseException:
            self.cancel()
            raise


class _Stream:
    """One question when an operation may begin. Another thread listens for the answers."""

    def __init__(self, link: _Link, request: v1.CoordinateRequest) -> None:
        self._link = link
        self._request = request
        self.heard: SimpleQueue[v1.CoordinateResponse | Status | Exception] = SimpleQueue()
        """The answers, and last how the stream ended, or why there was none."""
        self._call: grpc.Call | None = None
        self._is_begun = False
        self._is_ended = False
        self._over = Latch()

    def listen(self) -> None:
        """Until there is no more to hear."""
        self._is_begun = True
        try:
            if not self._is_ended:
                self.heard.put(self._listen())
        except Exception as error:
            self.heard.put(error)
        finally:
            self._over.open()

    def end(self) -> None:
        """Returns when nothing is asked any more. Not for the main thread."""
        self._is_ended = True
        # One that begins later than this asks nothing.
        if self._is_begun:
            call = self._call
            if call is not None:
                call.cancel()
            self._over.wait()

    def _listen(self) -> Status:
        try:
            self._call = call = self._link.stub.Coordinate(self._request, metadata=self._link.server.metadata)
            if self._is_ended:
                call.cancel()
            for response in call:
                self.heard.put(response)
                if response.WhichOneof("answer") in ("begin_now", "write_to_pool"):
                    call.cancel()
                    return Status(grpc.StatusCode.OK)
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the wait")
        except grpc.RpcError as error:
            return _status_of_stream(error)
        finally:
            self._call = None


class _Asking:
    """The wait of one operation, which another thread can end."""

    def __init__(self, link: _Link, request: v1.CoordinateRequest) -> None:
        self._link = link
        self._request = request
        self._waiting = Waiting(link.server, request, time.monotonic())
        self._stream = _Stream(link, request)

    def wait(self) -> Begun | None:
        """Asks, and asks again under the same key when the server was away, until the operation begins. None where nobody can listen for
        the answer, as the interpreter ends."""
        while True:
            self._stream = _Stream(self._link, self._request)
            if in_background(self._stream.listen) is None:
                return None
            status = self._listen(self._stream.heard)
            begun = self._waiting.begun(time.monotonic())
            if begun is None:
                time.sleep(self._waiting.ended(status, time.monotonic()))
                begun = self._waiting.begun(time.monotonic())
            if begun is not None:
                return begun
            self._link.server.revive(self._waiting.left(time.monotonic()))

    def end(self) -> None:
        """Returns when nothing is asked any more. Not for the main thread."""
        self._stream.end()

    def _listen(self, heard: SimpleQueue[v1.CoordinateResponse | Status | Exception]) -> Status:
        """Until the operation may begin, the stream ends, or there is no more time for it."""
        while (left := self._waiting.left(time.monotonic())) != 0:
            try:
                answer = heard.get(timeout=left)
            except Empty:
                continue
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, Status):
                return answer
            if self._waiting.answered(answer, time.monotonic()):
                return Status(grpc.StatusCode.OK)
        return Status(grpc.StatusCode.CANCELLED)


class Client:
    """A tenant's connection. Threads may share it; a child that the process forks may not, and does without."""

    def __init__(self, search: Search, server: Server | str) -> None:
        """For `minerva.connect`, which finds the server."""
        self._search = search
        self._link = _Link(server) if isinstance(server, Server) else None
        self._absence = server if isinstance(server, str) else ""

    @property
    def absence(self) -> str | None:
        """Why nothing that is asked has an effect; absent when there is a server."""
        return None if self._link else self._absence

    @property
    def address(self) -> str | None:
        """The server's."""
        return self._link.server.address if self._link else None

    def close(self) -> None:
        """Closes the connection; what it holds is released."""
        self._search.end()
        # The end of the process closes it anyway.
        if self._link is not None and self._link.process == os.getpid() and not sys.is_finalizing():
            apart(self._link.channel.close)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _there(self) -> _Link | None:
        """The connection, unless there is no server or the process is another's child."""
        # The threads that the interpreter has stopped by then may have locks of grpcio.
        if sys.is_finalizing() or is_cut_off():
            return None
        if self._link is None and self._search.is_due():
            # What takes longer goes on in the background, for later calls.
            looked = in_background(self._look_again)
            if looked is not None:
                looked.wait(LOOK_SECONDS_MAX)
        return self._link

    def _look_again(self) -> None:
        server = self._search.again()
        if server is not None:
            self._link = _Link(server)

    def _lose(self, absence: NoServer) -> None:
        """It turned out that there is an agent and no server."""
        self._link, self._absence = None, str(absence)
        self._search.put_off()
        warn_once(self._absence)

    def _take(self, held: _Holding) -> _Holding:
        """Returns when it is held, or there turns out to be no server to hold it."""
        try:
            held._take()
        except NoServer as absence:
            self._lose(absence)
        return held

    def _while_held(self, held: _Holding, strict: bool) -> Generator[_Holding, None, None]:
        """Holds it while the body runs. It is there before it is taken, so that an interrupt at any moment finds what to release."""
        try:
            try:
                self._take(held)
            except UNSERVED as refusal:
                if strict:
                    raise
                warn_unserved_once(refusal)
            yield held
        finally:
            held.release()

    def _ask(
        self,
        method: Callable[[ParticipationStub], grpc.UnaryUnaryMultiCallable[_Request, _Response]],
        request: _Request,
        request_id: str = "",
    ) -> _Response | None:
        """The answer; none where there is no server."""
        link = self._there()
        if link is None:
            return None
        try:
            return link.call(method(link.stub), request, request_id)
        except NoServer as absence:
            self._lose(absence)
            return None

    def describe(self) -> Description:
        """Who the server takes the caller for, what is in force for it, and what it may do."""
        answer = self._ask(lambda stub: stub.Describe, v1.DescribeRequest())
        return Description() if answer is None else _wire.description_of(answer)

    def set_level(
        self, level: Level | LevelWord, *, seconds: float | None = None, process: int | None = None
    ) -> Level:
        """Steps back for some seconds, until a process ends (0: this one), or until another level is set; comes back with
        `normal`. The level in force after it, which one that is held or scheduled may set further back."""
        request = _wire.set_level_request(level, seconds, process)
        answer = self._ask(lambda stub: stub.SetLevel, request)
        return Level.NORMAL if answer is None else _wire.level_of(answer.level)

    def set_schedule(self, entries: Sequence[ScheduleEntry], time_zone: str = "") -> Level:
        """Sets when to step back, by the clock on the wall, in place of the schedule before; none ends it. The time zone is an
        IANA name such as `Europe/Berlin`; empty, it is the server's. The level in force after it."""
        request = _wire.schedule_request(entries, time_zone)
        answer = self._ask(lambda stub: stub.SetSchedule, request)
        return Level.NORMAL if answer is None else _wire.level_of(answer.level)

    def credits(self, entries: int = 0) -> Credits:
        """What the account holds, and at most so many of its last entries."""
        request = v1.CreditsRequest(entries_max=entries)
        answer = self._ask(lambda stub: stub.Credits, request)
        return Credits() if answer is None else _wire.credits_of(answer)

    def boost(
        self,
        *,
        seconds: float | None = None,
        slices: int | None = None,
        device: str = "",
        request_id: str | None = None,
    ) -> Boost:
        """Buys high priority for some seconds, rounded up to whole slices, or for some slices; on one disk (`MAJ:MIN` of the
        host) or on all. Returns when the purchase is durable. Asked for twice under the same `request_id` it is bought once;
        the library itself sends it again so when the connection breaks."""
        request = _wire.boost_request(request_id or new_key(), seconds, slices, device)
        answer = self._ask(lambda stub: stub.Boost, request, request.request_id)
        return Boost() if answer is None else _wire.boost_of(answer)

    def hold(self, level: Level | LevelWord) -> Held:
        """Steps back until the answer is released; `deprioritized` does so by itself. Returns when the level is in force."""
        return self._take(Held(self._there(), Level(level)))

    @contextlib.contextmanager
    def deprioritized(self, level: Level | LevelWord = Level.LOW, *, strict: bool = False) -> Iterator[Held]:
        """Steps back while the body runs. Also a decorator. A program that the server does not serve runs on with a warning,
        `UnservedWarning`, once a process; if `strict`, that is an exception."""
        yield from self._while_held(Held(self._there(), Level(level)), strict)

    def hold_job(self, name: str, bytes: int | None = None) -> Job:
        """Is a batch job until the answer is released; `job` does so by itself."""
        request = _wire.job_request(name, bytes)
        return self._take(Job(self._there(), request))

    @contextlib.contextmanager
    def job(self, name: str, bytes: int | None = None, *, strict: bool = False) -> Iterator[Job]:
        """Is a batch job of this name while the body runs: of jobs on one disk the shortest goes first. `bytes` is what it will
        read and write in all; without it what earlier runs of the name did counts, and one that is far too small counts for
        nothing. Also a decorator. A program that the server does not serve runs on as with `deprioritized`."""
        request = _wire.job_request(name, bytes)
        yield from self._while_held(Job(self._there(), request), strict)

    def hold_debt(
        self,
        name: str,
        service: float,
        *,
        tied_bytes: int = 0,
        deadline: float | None = None,
        device: str = "",
        path: str | os.PathLike[str] | None = None,
    ) -> Debt:
        """Registers work that can wait until the answer is released; `debt` does so by itself."""
        request = _wire.debt_request(name, service, tied_bytes, deadline, device, path)
        return self._take(Debt(self._there(), request))

    @contextlib.contextmanager
    def debt(
        self,
        name: str,
        service: float,
        *,
        tied_bytes: int = 0,
        deadline: float | None = None,
        device: str = "",
        path: str | os.PathLike[str] | None = None,
        strict: bool = False,
    ) -> Iterator[Debt]:
        """Registers work that can wait while the body runs, which does it whenever it `may_work`: in the gaps that others leave on the
        disk below `path`, and in time for the deadline, some seconds from now. `service` is how many seconds all of it takes on a disk
        that nobody else uses; a guess will do. What is left of it ties `tied_bytes`. A program that the server does not serve runs
        on as with `deprioritized`."""
        request = _wire.debt_request(name, service, tied_bytes, deadline, device, path)
        yield from self._while_held(Debt(self._there(), request), strict)

    def coordinate(
        self,
        *,
        bytes: int,
        deadline: float | None = None,
        begin_by: float | None = None,
        access: Access | AccessWord = Access.SEQUENTIAL_READ,
        device: str = "",
        path: str | os.PathLike[str] | None = None,
        pool: cache.Pool | None = None,
        request_id: str | None = None,
    ) -> Coordinated:
        """Waits until an operation may begin, which the caller then finishes or cancels; `coordinated` does so by itself.
        An operation whose wait is interrupted is cancelled."""
        request = _wire.coordinate_request(
            request_id or new_key(), bytes, deadline, begin_by, access, device, path, pool
        )
        written = None if path is None else cache.Written(os.fspath(path), pool, bytes)
        return self._begin(Coordinated(self._there(), request.request_id, written), request)

    def _begin(self, operation: Coordinated, request: v1.CoordinateRequest) -> Coordinated:
        """Returns when it may begin, by a word of the server or without one."""
        try:
            operation._ask(request)
        except NoServer as absence:
            self._lose(absence)
        return operation

    @contextlib.contextmanager
    def coordinated(
        self,
        *,
        bytes: int,
        deadline: float | None = None,
        begin_by: float | None = None,
        access: Access | AccessWord = Access.SEQUENTIAL_READ,
        device: str = "",
        path: str | os.PathLike[str] | None = None,
        pool: cache.Pool | None = None,
        strict: bool = False,
    ) -> Iterator[Coordinated]:
        """Waits until an operation of so many bytes fits in with what others do, then runs the body. It should be done within
        `deadline` seconds, or have begun within `begin_by` seconds; without either it waits as long as the operator lets it.
        The wait ends in time whatever becomes of the server. A body that raises counts as not done. Also a decorator.

        The disk is `device`, as `MAJ:MIN` of the host, else that of `path`, by default the working directory. With `pool` the file
        at `path`, which the body writes, may go to that pool of the cache in place of its disk, where others use that: the body
        writes to the operation's `path`. A program that the
        server does not serve runs on with a warning, `UnservedWarning`, once a process; if `strict`, that is an exception."""
        request = _wire.coordinate_request(new_key(), bytes, deadline, begin_by, access, device, path, pool)
        written = None if path is None else cache.Written(os.fspath(path), pool, bytes)
        # It is there before it is asked for, so that an interrupt at any moment finds what to cancel.
        operation = Coordinated(self._there(), request.request_id, written)
        try:
            try:
                self._begin(operation, request)
            except UNSERVED as refusal:
                # A disk that the program named itself is its mistake.
                if strict or (device and isinstance(refusal, UnknownDevice)):
                    raise
                warn_unserved_once(refusal)
            yield operation
            operation.finish()
        except BaseException:
            operation.cancel()
            raise


def connect(
    address: str | None = None,
    *,
    credentials: Credentials | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Client:
    """Connects to the server at `address`, else where the environment says, else where one listens on this machine, else
    through an agent that is started. Without any it is a client that does nothing; an exception is what somebody has to
    mend, such as an address that cannot be read."""
    search = Search(address, credentials, patience_seconds)
    return Client(search, search.look())
