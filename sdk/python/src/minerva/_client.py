"""The client for programs without an event loop."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import grpc

from . import _wire, cache
from ._address import Credentials
from ._apart import apart, in_background
from ._connection import Link
from ._errors import UNSERVED, NoServer, UnknownDevice
from ._holding import Debt, Held, Job, Kept
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
from ._operation import Coordinated
from ._types import Access, AccessWord, Boost, Credits, Description, Level, LevelWord, ScheduleEntry
from .v1 import participation_pb2 as v1
from .v1.participation_pb2_grpc import ParticipationStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Holding = TypeVar("_Holding", bound="Kept[Any, Any]")


class Client:
    """A tenant's connection. Threads may share it; a child that the process forks may not, and does without."""

    def __init__(self, search: Search, server: Server | str) -> None:
        """For `minerva.connect`, which finds the server."""
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

    def close(self) -> None:
        """Closes the connection; what it holds is released. Who waits for an answer is told so (`Unreachable`)."""
        self._search.end()
        link = self._link
        # The end of the process closes it anyway.
        if link is not None and link.process == os.getpid() and not sys.is_finalizing():
            apart(link.close)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.close()
        except BaseException:
            # Interrupted, it may not have begun.
            self.close()
            raise

    def _there(self) -> Link | None:
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
        if server is None:
            return
        link = self._link = Link(server)
        # Looked at last, as `close` looks for the link last: one of the two finds the other.
        if self._search.is_over:
            self._link = None
            link.close()

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
                try:
                    self._take(held)
                except UNSERVED as refusal:
                    if strict:
                        raise
                    warn_unserved_once(refusal)
                yield held
            finally:
                held.release()
        except BaseException:
            # Once more, as it may be the release that was interrupted.
            held.release()
            raise

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
        asked = time.monotonic()
        request = _wire.coordinate_request(
            request_id or new_key(), bytes, deadline, begin_by, access, device, path, pool
        )
        written = None if path is None else cache.Written(os.fspath(path), pool, bytes)
        return self._begin(Coordinated(self._there(), request.request_id, written), request, asked)

    def _begin(self, operation: Coordinated, request: v1.CoordinateRequest, asked: float) -> Coordinated:
        """Returns when it may begin, by a word of the server or without one."""
        try:
            operation._ask(request, asked)
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
        asked = time.monotonic()
        request = _wire.coordinate_request(new_key(), bytes, deadline, begin_by, access, device, path, pool)
        written = None if path is None else cache.Written(os.fspath(path), pool, bytes)
        # It is there before it is asked for, so that an interrupt at any moment finds what to cancel.
        operation = Coordinated(self._there(), request.request_id, written)
        try:
            try:
                try:
                    self._begin(operation, request, asked)
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
        except BaseException:
            # Once more, as it may be the end that was interrupted.
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
