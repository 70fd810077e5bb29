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
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from . import _wire, cache
from ._address import Credentials
from ._aio_connection import Link, apart_from_loop, as_task, unless_closed
from ._aio_holding import Debt, Held, Job
from ._errors import UNSERVED, NoServer, Status, UnknownDevice
from ._link import (
    LOOK_SECONDS_MAX,
    PATIENCE_SECONDS,
    Search,
    Server,
    is_cut_off,
    new_key,
    warn_once,
    warn_unserved_once,
)
from ._types import Access, AccessWord, Begun, Boost, Description, Level, LevelWord, ScheduleEntry
from ._types import Credits as _Credits
from ._waiting import Waiting
from .v1 import participation_pb2 as v1

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


class Coordinated:
    """An operation that may begin."""

    def __init__(
        self, link: Link | None, key: str, begun: Begun, waited_seconds: float, written: cache.Written | None = None
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

    def _end(self) -> Link | None:
        """Whom to tell: nobody the second time, or in a child of the process that asked."""
        link, self._link = self._link, None
        return link if link is not None and link.process == os.getpid() else None


class Client:
    """A tenant's connection, for one event loop."""

    def __init__(self, search: Search, server: Server | str) -> None:
        """For `minerva.aio.connect`, which finds the server."""
        self._search = search
        self._link = Link(server) if isinstance(server, Server) else None
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

    async def _there(self) -> Link | None:
        """The connection, unless there is no server or the process is another's child."""
        if is_cut_off():
            return None
        if self._link is None and self._search.is_due():
            # What takes longer goes on in the background, for later calls.
            await asyncio.wait({as_task(self._look_again())}, timeout=LOOK_SECONDS_MAX)
        return self._link

    async def _look_again(self) -> None:
        server = await apart_from_loop(self._search.again)
        if server is not None:
            self._link = Link(server)

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
        request = await apart_from_loop(
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
    return Client(search, await apart_from_loop(search.look))


async def _wait(link: Link, request: v1.CoordinateRequest) -> Begun:
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


async def _listen(link: Link, request: v1.CoordinateRequest, waiting: Waiting) -> Status:
    """One stream: until the operation may begin, the stream ends, or there is no more time for it."""
    call = link.stub.Coordinate(request, metadata=link.server.metadata)
    try:
        while True:
            left = waiting.left(time.monotonic())
            response = await unless_closed(asyncio.wait_for(call.read(), left))
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
