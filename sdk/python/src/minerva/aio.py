"""The same for programs with an event loop.

    import minerva.aio

    async with minerva.aio.deprioritized("idle"):
        await backup()

    async with minerva.aio.coordinated(bytes=500 << 20, deadline=20):
        await load()

The functions use one client for each event loop, which finds its server when it is first used; `connect` makes another.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import grpc
import grpc.aio

from . import _wire, cache
from ._address import Credentials
from ._apart import in_background
from ._client import REPORT_SECONDS
from ._errors import UNSERVED, MinervaError, NoServer, Status, UnknownDevice, Unreachable, closed
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
    Description,
    Level,
    LevelWord,
    ScheduleEntry,
)
from ._types import Credits as _Credits
from ._waiting import Waiting
from .v1 import participation_pb2 as v1
from .v1.participation_pb2_grpc import ParticipationStub

if TYPE_CHECKING:
    # In the stubs only: at run time both halves of grpcio share a class.
    from .v1.participation_pb2_grpc import ParticipationAsyncStub

__all__ = [
    "Client",
    "Coordinated",
    "Debt",
    "Held",
    "Job",
    "boost",
    "connect",
    "coordinated",
    "credits",
    "debt",
    "deprioritized",
    "describe",
    "job",
    "set_level",
    "set_schedule",
]

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Result = TypeVar("_Result")

# What goes on in the background; an event loop by itself keeps no task alive.
_tasks: set[asyncio.Task[None]] = set()


def _in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def _apart(work: Callable[[], _Result]) -> _Result:
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


async def _unless_closed(call: Awaitable[_Result], request_id: str = "") -> _Result:
    """What a call comes to. grpcio cancels its calls when it closes a client, which to the task that waits for one looks as if somebody
    had cancelled it. A task of the call's own tells the two apart."""
    (outcome,) = await asyncio.gather(call, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError):
        raise closed(request_id)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class _Link:
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
                answer = await _unless_closed(call, request_id)
                self.server.is_served = True
                return answer
            except grpc.aio.AioRpcError as error:
                wait = attempts.failed(Status.of(error), time.monotonic())
            await asyncio.sleep(wait)
            await self.revive(attempts.left(time.monotonic()))

    async def revive(self, seconds: float | None = None) -> None:
        """Starts the agent again, if it was one and is gone; takes no longer than so."""
        if self.server.has_agent:
            await _apart(functools.partial(self.server.revive, seconds))

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

        return _in_background(send())

    async def tell(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        after: asyncio.Task[None] | None = None,
    ) -> None:
        """The same, and waits for it, unless that takes long."""
        await asyncio.wait({self.telling(method, request, after)}, timeout=TELL_SECONDS_MAX)


class _Kept(Generic[_Request, _Response]):
    """A stream that is open until it is released. When the server was away, it is opened again."""

    def __init__(
        self,
        link: _Link | None,
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
        self._keeper = _in_background(self._keep(self._link))
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
            await asyncio.wait({self._keeper}, timeout=TELL_SECONDS_MAX)

    async def _keep(self, link: _Link) -> None:
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

    async def _hold_once(self, link: _Link, backoff: Backoff) -> Status:
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
            await _unless_closed(listen())
            return Status(grpc.StatusCode.UNAVAILABLE, "the server ended the hold")
        except grpc.aio.AioRpcError as error:
            return Status.of(error)
        finally:
            call.cancel()


class Held(_Kept[v1.HoldLevelRequest, v1.HoldLevelResponse]):
    """A level that is held until it is released. When the server was away, the level is taken again."""

    def __init__(self, link: _Link | None, level: Level) -> None:
        """For `Client.hold`."""
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
        """For `Client.hold_job`."""
        super().__init__(link, lambda stub: stub.HoldJob, request)

    @property
    def place(self) -> tuple[int, int] | None:
        """As `minerva.Job.place`."""
        return _wire.place_of(self._last)


class Debt(_Kept[v1.HoldDebtRequest, v1.HoldDebtResponse]):
    """As `minerva.Debt`."""

    def __init__(self, link: _Link | None, request: v1.HoldDebtRequest) -> None:
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
        is_soon = now - self._reported < REPORT_SECONDS and not is_over
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


class Coordinated:
    """An operation that may begin."""

    def __init__(
        self, link: _Link | None, key: str, begun: Begun, waited_seconds: float, written: cache.Written | None = None
    ) -> None:
        self._link = link
        self.request_id = key
        """The key it was asked for under."""
        self.begun = begun
        """Why it begins."""
        self.waited_seconds = waited_seconds
        """How long it was held."""
        self._written = written
        self._begin: asyncio.Task[None] | None = None
        """Tells the server that it has begun by itself."""

    @property
    def path(self) -> str | None:
        """As `minerva.Coordinated.path`. The first time it asks the cache's service of this machine, and waits for the answer."""
        return None if self._written is None else self._written.placed()

    async def finish(self) -> None:
        """It is done; the measured time makes the next estimate better. Twice is as good as once."""
        link = self._end()
        if link is not None:
            await link.tell(link.stub.Finish, v1.FinishRequest(request_id=self.request_id), self._begin)

    async def cancel(self) -> None:
        """It will not be done, or not to its end."""
        link = self._end()
        if link is not None:
            await link.tell(link.stub.Cancel, v1.CancelRequest(request_id=self.request_id), self._begin)

    def _end(self) -> _Link | None:
        """Whom to tell: nobody the second time, or in a child of the process that asked."""
        link, self._link = self._link, None
        return link if link is not None and link.process == os.getpid() else None


class Client:
    """A tenant's connection, for one event loop."""

    def __init__(self, search: Search, server: Server | str) -> None:
        """For `minerva.aio.connect`, which finds the server."""
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

    async def close(self) -> None:
        """Closes the connection; what it holds is released."""
        self._search.end()
        if self._link is not None and self._link.process == os.getpid():
            await self._link.channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def _there(self) -> _Link | None:
        """The connection, unless there is no server or the process is another's child."""
        if is_cut_off():
            return None
        if self._link is None and self._search.is_due():
            # What takes longer goes on in the background, for later calls.
            await asyncio.wait({_in_background(self._look_again())}, timeout=LOOK_SECONDS_MAX)
        return self._link

    async def _look_again(self) -> None:
        server = await _apart(self._search.again)
        if server is not None:
            self._link = _Link(server)

    def _lose(self, absence: NoServer) -> None:
        """It turned out that there is an agent and no server."""
        self._link, self._absence = None, str(absence)
        self._search.put_off()
        warn_once(self._absence)

    async def _ask(
        self,
        method: Callable[[ParticipationAsyncStub], grpc.aio.UnaryUnaryMultiCallable[_Request, _Response]],
        request: _Request,
        request_id: str = "",
    ) -> _Response | None:
        """The answer; none where there is no server."""
        link = await self._there()
        if link is None:
            return None
        try:
            return await link.call(method(link.stub), request, request_id)
        except NoServer as absence:
            self._lose(absence)
            return None

    async def describe(self) -> Description:
        """As `minerva.Client.describe`."""
        answer = await self._ask(lambda stub: stub.Describe, v1.DescribeRequest())
        return Description() if answer is None else _wire.description_of(answer)

    async def set_level(
        self, level: Level | LevelWord, *, seconds: float | None = None, process: int | None = None
    ) -> Level:
        """As `minerva.Client.set_level`."""
        request = _wire.set_level_request(level, seconds, process)
        answer = await self._ask(lambda stub: stub.SetLevel, request)
        return Level.NORMAL if answer is None else _wire.level_of(answer.level)

    async def set_schedule(self, entries: Sequence[ScheduleEntry], time_zone: str = "") -> Level:
        """As `minerva.Client.set_schedule`."""
        request = _wire.schedule_request(entries, time_zone)
        answer = await self._ask(lambda stub: stub.SetSchedule, request)
        return Level.NORMAL if answer is None else _wire.level_of(answer.level)

    async def credits(self, entries: int = 0) -> _Credits:
        """As `minerva.Client.credits`."""
        request = v1.CreditsRequest(entries_max=entries)
        answer = await self._ask(lambda stub: stub.Credits, request)
        return _Credits() if answer is None else _wire.credits_of(answer)

    async def boost(
        self,
        *,
        seconds: float | None = None,
        slices: int | None = None,
        device: str = "",
        request_id: str | None = None,
    ) -> Boost:
        """As `minerva.Client.boost`."""
        request = _wire.boost_request(request_id or new_key(), seconds, slices, device)
        answer = await self._ask(lambda stub: stub.Boost, request, request.request_id)
        return Boost() if answer is None else _wire.boost_of(answer)

    async def hold(self, level: Level | LevelWord) -> Held:
        """As `minerva.Client.hold`."""
        held = Held(await self._there(), Level(level))
        try:
            await held._take()
        except NoServer as absence:
            self._lose(absence)
            return Held(None, Level(level))
        return held

    @contextlib.asynccontextmanager
    async def deprioritized(self, level: Level | LevelWord = Level.LOW, *, strict: bool = False) -> AsyncIterator[Held]:
        """As `minerva.Client.deprioritized`."""
        try:
            held = await self.hold(level)
        except UNSERVED as refusal:
            if strict:
                raise
            warn_unserved_once(refusal)
            held = Held(None, Level(level))
        try:
            yield held
        finally:
            await held.release()

    async def hold_job(self, name: str, bytes: int | None = None) -> Job:
        """As `minerva.Client.hold_job`."""
        request = _wire.job_request(name, bytes)
        job = Job(await self._there(), request)
        try:
            await job._take()
        except NoServer as absence:
            self._lose(absence)
            return Job(None, request)
        return job

    @contextlib.asynccontextmanager
    async def job(self, name: str, bytes: int | None = None, *, strict: bool = False) -> AsyncIterator[Job]:
        """As `minerva.Client.job`."""
        try:
            held = await self.hold_job(name, bytes)
        except UNSERVED as refusal:
            if strict:
                raise
            warn_unserved_once(refusal)
            held = Job(None, _wire.job_request(name, bytes))
        try:
            yield held
        finally:
            await held.release()

    async def hold_debt(
        self,
        name: str,
        service: float,
        *,
        tied_bytes: int = 0,
        deadline: float | None = None,
        device: str = "",
        path: str | os.PathLike[str] | None = None,
    ) -> Debt:
        """As `minerva.Client.hold_debt`."""
        request = _wire.debt_request(name, service, tied_bytes, deadline, device, path)
        debt = Debt(await self._there(), request)
        try:
            await debt._take()
        except NoServer as absence:
            self._lose(absence)
            return Debt(None, request)
        return debt

    @contextlib.asynccontextmanager
    async def debt(
        self,
        name: str,
        service: float,
        *,
        tied_bytes: int = 0,
        deadline: float | None = None,
        device: str = "",
        path: str | os.PathLike[str] | None = None,
        strict: bool = False,
    ) -> AsyncIterator[Debt]:
        """As `minerva.Client.debt`."""
        try:
            held = await self.hold_debt(
                name, service, tied_bytes=tied_bytes, deadline=deadline, device=device, path=path
            )
        except UNSERVED as refusal:
            if strict:
                raise
            warn_unserved_once(refusal)
            held = Debt(None, _wire.debt_request(name, service, tied_bytes, deadline, device, path))
        try:
            yield held
        finally:
            await held.release()

    async def coordinate(
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
        """As `minerva.Client.coordinate`. An operation whose wait is cancelled is cancelled on the server too."""
        key = request_id or new_key()
        request = await _apart(
            lambda: _wire.coordinate_request(key, bytes, deadline, begin_by, access, device, path, pool)
        )
        written = None if path is None else cache.Written(os.fspath(path), pool, bytes)
        link = await self._there()
        if link is None:
            return Coordinated(None, request.request_id, Begun.UNSERVED, 0.0, written and written.in_place())
        asked = time.monotonic()
        try:
            begun = await _wait(link, request)
        except NoServer as absence:
            self._lose(absence)
            return Coordinated(None, request.request_id, Begun.UNSERVED, 0.0, written and written.in_place())
        except asyncio.CancelledError:
            await link.tell(link.stub.Cancel, v1.CancelRequest(request_id=request.request_id))
            raise
        waited = time.monotonic() - asked
        if begun is Begun.IN_POOL:
            return Coordinated(None, request.request_id, begun, waited, written)
        operation = Coordinated(link, request.request_id, begun, waited, written and written.in_place())
        if begun is not Begun.TOLD:
            # It has begun, whether or not the server is there to hear of it.
            operation._begin = link.telling(link.stub.Begin, v1.BeginRequest(request_id=request.request_id))
        return operation

    @contextlib.asynccontextmanager
    async def coordinated(
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
    ) -> AsyncIterator[Coordinated]:
        """As `minerva.Client.coordinated`."""
        try:
            operation = await self.coordinate(
                bytes=bytes,
                deadline=deadline,
                begin_by=begin_by,
                access=access,
                device=device,
                path=path,
                pool=pool,
            )
        except UNSERVED as refusal:
            # A disk that the program named itself is its mistake.
            if strict or (device and isinstance(refusal, UnknownDevice)):
                raise
            warn_unserved_once(refusal)
            written = None if path is None else cache.Written(os.fspath(path))
            operation = Coordinated(None, new_key(), Begun.UNSERVED, 0.0, written)
        try:
            yield operation
        except BaseException:
            await operation.cancel()
            raise
        await operation.finish()


async def connect(
    address: str | None = None,
    *,
    credentials: Credentials | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Client:
    """As `minerva.connect`."""
    search = Search(address, credentials, patience_seconds)
    return Client(search, await _apart(search.look))


async def _wait(link: _Link, request: v1.CoordinateRequest) -> Begun:
    """Asks, and asks again under the same key when the server was away, until the operation begins."""
    server = link.server
    waiting = Waiting(server, request, time.monotonic())
    while True:
        status = await _listen(link, request, waiting)
        if waiting.begun(time.monotonic()) is None:
            await asyncio.sleep(waiting.ended(status, time.monotonic()))
        begun = waiting.begun(time.monotonic())
        if begun is not None:
            return begun
        await link.revive(waiting.left(time.monotonic()))


async def _listen(link: _Link, request: v1.CoordinateRequest, waiting: Waiting) -> Status:
    """One stream: until the operation may begin, the stream ends, or there is no more time for it."""
    call = link.stub.Coordinate(request, metadata=link.server.metadata)
    try:
        while True:
            left = waiting.left(time.monotonic())
            response = await _unless_closed(asyncio.wait_for(call.read(), left))
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


# Not by weak keys: a client has its loop, and would keep itself alive.
_clients: dict[asyncio.AbstractEventLoop, asyncio.Future[Client]] = {}


async def _default() -> Client:
    """The client that the functions of this event loop share. Those of loops that have ended go, and their connections with them."""
    loop = asyncio.get_running_loop()
    for ended in [other for other in list(_clients) if other.is_closed()]:
        _clients.pop(ended, None)
    made = _clients.get(loop)
    if made is None or (made.done() and (made.cancelled() or made.exception() is not None)):
        made = _clients[loop] = asyncio.ensure_future(connect())
    # Whoever stops waiting for it does not stop it for the others.
    return await asyncio.shield(made)


async def describe() -> Description:
    """As `Client.describe`."""
    return await (await _default()).describe()


async def set_level(
    level: Level | LevelWord, *, seconds: float | None = None, process: int | None = None
) -> Level:
    """As `Client.set_level`."""
    return await (await _default()).set_level(level, seconds=seconds, process=process)


async def set_schedule(entries: Sequence[ScheduleEntry], time_zone: str = "") -> Level:
    """As `Client.set_schedule`."""
    return await (await _default()).set_schedule(entries, time_zone)


async def credits(entries: int = 0) -> _Credits:
    """As `Client.credits`."""
    return await (await _default()).credits(entries)


async def boost(
    *, seconds: float | None = None, slices: int | None = None, device: str = "", request_id: str | None = None
) -> Boost:
    """As `Client.boost`."""
    return await (await _default()).boost(seconds=seconds, slices=slices, device=device, request_id=request_id)


@contextlib.asynccontextmanager
async def deprioritized(level: Level | LevelWord = Level.LOW, *, strict: bool = False) -> AsyncIterator[Held]:
    """As `Client.deprioritized`."""
    async with (await _default()).deprioritized(level, strict=strict) as held:
        yield held


@contextlib.asynccontextmanager
async def job(name: str, bytes: int | None = None, *, strict: bool = False) -> AsyncIterator[Job]:
    """As `minerva.Client.job`."""
    async with (await _default()).job(name, bytes, strict=strict) as held:
        yield held


@contextlib.asynccontextmanager
async def debt(
    name: str,
    service: float,
    *,
    tied_bytes: int = 0,
    deadline: float | None = None,
    device: str = "",
    path: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> AsyncIterator[Debt]:
    """As `minerva.Client.debt`."""
    async with (await _default()).debt(
        name, service, tied_bytes=tied_bytes, deadline=deadline, device=device, path=path, strict=strict
    ) as held:
        yield held


@contextlib.asynccontextmanager
async def coordinated(
    *,
    bytes: int,
    deadline: float | None = None,
    begin_by: float | None = None,
    access: Access | AccessWord = Access.SEQUENTIAL_READ,
    device: str = "",
    path: str | os.PathLike[str] | None = None,
    pool: cache.Pool | None = None,
    strict: bool = False,
) -> AsyncIterator[Coordinated]:
    """As `Client.coordinated`."""
    async with (await _default()).coordinated(
        bytes=bytes,
        deadline=deadline,
        begin_by=begin_by,
        access=access,
        device=device,
        path=path,
        pool=pool,
        strict=strict,
    ) as operation:
        yield operation
