"""The tenant's side of Minerva: step back, earn and spend credits, and ask when to begin.

    import minerva

    with minerva.deprioritized("idle"):  # only the gaps that others leave
        backup()

    with minerva.coordinated(bytes=500 << 20, deadline=20):  # waits until it fits in with what others do
        load()

    with minerva.job("sort", bytes=40 << 30):  # of jobs on one disk the shortest goes first
        sort()

    with minerva.debt("rebuild", service=600, deadline=86400) as debt:  # in the gaps, told when
        for step in range(600):
            debt.wait()
            rebuild(step)
            debt.report(done=step + 1)

    minerva.boost(seconds=30)
    print(minerva.credits().held)

    with minerva.tagged(200):  # in a guest: the requests of this thread go before those with less
        lookup()

    with minerva.deferred("/data/out.bin") as file:  # at the pool's speed; it is moved to its place when the disk there is quiet
        file.write(result)
    with minerva.cache.open("scratch.bin", "wb") as file:  # a file of the tenant's own tree in memory
        file.write(result)

The functions use one client, which finds its server when it is first used; `connect` makes another. `minerva.aio` has the same
for programs with an event loop. Where there is no server, nothing is asked and nothing fails: the program is told once by a
warning (`NoServerWarning`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence

from . import cache as cache
from ._address import PORT_DEFAULT, Credentials
from ._client import Client, connect
from ._errors import (
    AddressError,
    Busy,
    CredentialsError,
    KeyReused,
    MinervaError,
    NoServerWarning,
    NoThread,
    NotAllowed,
    NotCommitted,
    NotEnoughCredits,
    NotIdentified,
    NotKnown,
    NotSeenYet,
    OutOfRange,
    Refused,
    Stopping,
    TooLate,
    TooMany,
    UnknownDevice,
    UnknownOperation,
    UnknownProcess,
    UnknownTenant,
    Unreachable,
    UnservedWarning,
)
from ._holding import Debt, Held, Job
from ._operation import Coordinated
from ._tagged import tag_ioprio, tagged
from ._types import Access, AccessWord, Begun, Boost, BoostUnderWay, CreditEntry, Description, Level, LevelWord
from ._types import Credits as Credits
from ._types import OperationUnderWay, ScheduleEntry
from .cache import deferred

__all__ = [
    "PORT_DEFAULT",
    "Access",
    "AccessWord",
    "AddressError",
    "Begun",
    "Boost",
    "BoostUnderWay",
    "Busy",
    "Client",
    "Coordinated",
    "CreditEntry",
    "Credentials",
    "CredentialsError",
    "Credits",
    "Debt",
    "Description",
    "Held",
    "Job",
    "KeyReused",
    "Level",
    "LevelWord",
    "MinervaError",
    "NoServerWarning",
    "NoThread",
    "NotAllowed",
    "NotCommitted",
    "NotEnoughCredits",
    "NotIdentified",
    "NotKnown",
    "NotSeenYet",
    "OperationUnderWay",
    "OutOfRange",
    "Refused",
    "ScheduleEntry",
    "Stopping",
    "TooLate",
    "TooMany",
    "UnknownDevice",
    "UnknownOperation",
    "UnknownProcess",
    "UnknownTenant",
    "Unreachable",
    "UnservedWarning",
    "boost",
    "cache",
    "connect",
    "coordinated",
    "credits",
    "debt",
    "deferred",
    "deprioritized",
    "describe",
    "job",
    "set_level",
    "set_schedule",
    "tag_ioprio",
    "tagged",
]

_client: Client | None = None
_lock = threading.Lock()


def _after_fork() -> None:
    """The thread that may have held the lock, looking for the server, is not in the child."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _default() -> Client:
    """The client that the functions share."""
    global _client
    with _lock:
        if _client is None:
            _client = connect()
        return _client


def describe() -> Description:
    """As `Client.describe`."""
    return _default().describe()


def set_level(level: Level | LevelWord, *, seconds: float | None = None, process: int | None = None) -> Level:
    """As `Client.set_level`."""
    return _default().set_level(level, seconds=seconds, process=process)


def set_schedule(entries: Sequence[ScheduleEntry], time_zone: str = "") -> Level:
    """As `Client.set_schedule`."""
    return _default().set_schedule(entries, time_zone)


def credits(entries: int = 0) -> Credits:
    """As `Client.credits`."""
    return _default().credits(entries)


def boost(
    *, seconds: float | None = None, slices: int | None = None, device: str = "", request_id: str | None = None
) -> Boost:
    """As `Client.boost`."""
    return _default().boost(seconds=seconds, slices=slices, device=device, request_id=request_id)


@contextlib.contextmanager
def deprioritized(level: Level | LevelWord = Level.LOW, *, strict: bool = False) -> Iterator[Held]:
    """As `Client.deprioritized`."""
    # Inside, so that a decorated function looks for its server when it is called and not when its module is imported.
    with _default().deprioritized(level, strict=strict) as held:
        yield held


@contextlib.contextmanager
def job(name: str, bytes: int | None = None, *, strict: bool = False) -> Iterator[Job]:
    """As `Client.job`."""
    with _default().job(name, bytes, strict=strict) as held:
        yield held


@contextlib.contextmanager
def debt(
    name: str,
    service: float,
    *,
    tied_bytes: int = 0,
    deadline: float | None = None,
    device: str = "",
    path: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> Iterator[Debt]:
    """As `Client.debt`."""
    with _default().debt(
        name, service, tied_bytes=tied_bytes, deadline=deadline, device=device, path=path, strict=strict
    ) as held:
        yield held


@contextlib.contextmanager
def coordinated(
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
    """As `Client.coordinated`."""
    with _default().coordinated(
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
