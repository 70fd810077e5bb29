"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import grpc.aio

from . import _wire, cache
from ._address import Credentials
from ._aio_connection import Link, apart_from_loop, as_task
from ._aio_holding import Debt, Held, Job, Kept
from ._aio_operation import Coordinated
from ._errors import UNSERVED, NoServer, UnknownDevice
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
from ._types import Access, AccessWord, Boost, Credits, Description, Level, LevelWord, ScheduleEntry
from .v1 import participation_pb2 as v1

if TYPE_CHECKING:
    # In the stubs only: at run time both halves of grpcio share a class.
    from .v1.participation_pb2_grpc import ParticipationAsyncStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Holding = TypeVar("_Holding", bound="Kept[Any, Any]")


class Client:
    """A tenant's connection, for one event loop."""

    def __init__(self, search: Search, server: Server | str) -> None:
        """For `minerva.aio.connect`, which finds the server."""
        self._search = search
        self._link = Link(server) if isinstance(server, Server) else None
        self._absence = server if isinstance(server, str) else ""
        if isinstance(server, str):
            warn_once(server)

    @property
    def absence(self) -> str | None:
        """Why nothing that is asked has an effect; absent when there is a server."""
        return None if self._link else self._absence

    @property
    def address(self) -> str | None:
        """The server's."""
        return self._link.server.address if self._link else None

    async def close(self) -> None:
        """As `minerva.Client.close`."""
        self._search.end()
        if self._link is not None and self._link.process == os.getpid():
            await self._link.close()

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
        if server is not None and not self._search.is_over:
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

    async def credits(self, entries: int = 0) -> Credits:
        """As `minerva.Client.credits`."""
        request = v1.CreditsRequest(entries_max=entries)
        answer = await self._ask(lambda stub: stub.Credits, request)
        return Credits() if answer is None else _wire.credits_of(answer)

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

    async def _take(self, held: _Holding) -> _Holding:
        """Returns when it is held, or there turns out to be no server to hold it."""
        try:
            await held._take()
        except NoServer as absence:
            self._lose(absence)
        return held

    @contextlib.asynccontextmanager
    async def _while_held(self, held: _Holding, strict: bool) -> AsyncIterator[_Holding]:
        """Holds it while the body runs."""
        try:
            await self._take(held)
        except UNSERVED as refusal:
            if strict:
                raise
            warn_unserved_once(refusal)
        try:
            yield held
        finally:
            await held.release()

    async def hold(self, level: Level | LevelWord) -> Held:
        """As `minerva.Client.hold`."""
        return await self._take(Held(await self._there(), Level(level)))

    @contextlib.asynccontextmanager
    async def deprioritized(self, level: Level | LevelWord = Level.LOW, *, strict: bool = False) -> AsyncIterator[Held]:
        """As `minerva.Client.deprioritized`."""
        async with self._while_held(Held(await self._there(), Level(level)), strict) as held:
            yield held

    async def hold_job(self, name: str, bytes: int | None = None) -> Job:
        """As `minerva.Client.hold_job`."""
        request = _wire.job_request(name, bytes)
        return await self._take(Job(await self._there(), request))

    @contextlib.asynccontextmanager
    async def job(self, name: str, bytes: int | None = None, *, strict: bool = False) -> AsyncIterator[Job]:
        """As `minerva.Client.job`."""
        request = _wire.job_request(name, bytes)
        async with self._while_held(Job(await self._there(), request), strict) as held:
            yield held

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
        return await self._take(Debt(await self._there(), request))

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
        request = _wire.debt_request(name, service, tied_bytes, deadline, device, path)
        async with self._while_held(Debt(await self._there(), request), strict) as held:
            yield held

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
        asked, key = time.monotonic(), request_id or new_key()
        # Which disk a path lies on, the file system may take long to say.
        request = await apart_from_loop(
            lambda: _wire.coordinate_request(key, bytes, deadline, begin_by, access, device, path, pool)
        )
        written = None if path is None else cache.Written(os.fspath(path), pool, bytes)
        operation = Coordinated(await self._there(), key, written)
        try:
            await operation._ask(request, asked)
        except NoServer as absence:
            self._lose(absence)
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
            operation = Coordinated(None, new_key(), None if path is None else cache.Written(os.fspath(path)))
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
