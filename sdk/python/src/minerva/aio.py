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
from collections.abc import AsyncIterator, Sequence

from . import cache
from ._aio_client import Client, connect
from ._aio_holding import Debt, Held, Job
from ._aio_operation import Coordinated
from ._types import Access, AccessWord, Boost, Description, Level, LevelWord, ScheduleEntry
from ._types import Credits as _Credits

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
