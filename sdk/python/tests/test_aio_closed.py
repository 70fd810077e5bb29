"""What a client of an event loop leaves when it is closed, or could not be made: errors of the library's, and no task that seems cancelled."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable

import pytest
from conftest import PATIENCE_SECONDS, Running
from test_aio import run, until
from test_client import wait
from test_closed import USES, asked as asked

import minerva
import minerva.aio
from minerva import _find, _link
from minerva._address import Address
from minerva.v1 import participation_pb2 as v1

async def asking(
    server: Running, asked: threading.Event, use: Callable[[minerva.aio.Client], Awaitable[object]]
) -> tuple[minerva.aio.Client, asyncio.Future[object]]:
    """A client, and what waits for its answer."""
    client = await minerva.aio.connect(server.address, patience_seconds=math.inf)
    waiting = asyncio.ensure_future(use(client))
    await until(asked.is_set)
    return client, waiting


@pytest.mark.parametrize(("use", "key"), USES)
def test_whose_client_is_closed_is_told_so_and_not_cancelled(
    server: Running, asked: threading.Event, use: Callable[[minerva.aio.Client], Awaitable[object]], key: str
) -> None:
    async def work() -> None:
        client, waiting = await asking(server, asked, use)
        await client.close()
        with pytest.raises(minerva.Unreachable, match="was closed") as raised:
            await waiting
        assert raised.value.request_id == key
        with pytest.raises(minerva.Unreachable, match="was closed") as raised:
            await use(client)
        assert raised.value.request_id == key

    run(work())


@pytest.mark.parametrize(("use", "key"), USES)
def test_who_is_cancelled_as_its_client_is_closed_is_cancelled(
    server: Running, asked: threading.Event, use: Callable[[minerva.aio.Client], Awaitable[object]], key: str
) -> None:
    async def work() -> None:
        client, waiting = await asking(server, asked, use)
        waiting.cancel()
        await client.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(work())


def test_who_is_cancelled_as_its_level_is_granted_is_cancelled(server: Running) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            held = minerva.aio.Held(client._link, minerva.Level.LOW)
            waiting = asyncio.ensure_future(held._take())
            heard = held._heard.set

            def hearing() -> None:
                heard()
                asyncio.get_running_loop().call_soon(waiting.cancel)

            setattr(held._heard, "set", hearing)
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await until(lambda: server.script.levels_held[v1.LEVEL_LOW] == 0)

    run(work())


def test_a_client_that_is_closed_while_it_looks_for_a_server_stays_closed(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_link, "LOOK_PERIOD_SECONDS", 0.0)
    monkeypatch.setattr(_link, "_warned", True)
    barrier = threading.Event()

    def find(address: str | None, environment: object) -> _find.Found:
        assert barrier.wait(PATIENCE_SECONDS)
        return _find.Found(Address.parse(server.address))

    async def work() -> None:
        client = await minerva.aio.connect("unix:/nonexistent/tenant.sock")
        monkeypatch.setattr(_link, "find", find)
        looking = asyncio.ensure_future(client._look_again())
        await asyncio.sleep(0.01)
        await client.close()
        barrier.set()
        await looking
        assert client.address is None and await client.describe() == minerva.Description()

    run(work())


def test_what_is_held_when_the_client_is_closed_has_ended(server: Running) -> None:
    async def work() -> None:
        client = await minerva.aio.connect(server.address)
        debt = await client.hold_debt("rebuild", 50)
        assert debt.ended is None and not debt.may_work
        await client.close()
        await debt.wait()
        await until(lambda: debt.ended is not None)
        await debt.release()

    run(work())


def test_a_loop_makes_another_client_when_the_first_could_not_be_made(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINERVA_ADDRESS", server.address)
    connect, failures = minerva.aio.connect, [OSError("no more files"), asyncio.CancelledError()]

    async def connecting() -> minerva.aio.Client:
        if failures:
            raise failures.pop(0)
        return await connect()

    monkeypatch.setattr(minerva.aio, "connect", connecting)

    async def work() -> None:
        with pytest.raises(OSError, match="no more files"):
            await minerva.aio.describe()
        with pytest.raises(asyncio.CancelledError):
            await minerva.aio.describe()
        assert (await minerva.aio.describe()).tenant == "vm4"
        assert await minerva.aio._default() is await minerva.aio._default()
        await (await minerva.aio._default()).close()

    run(work())


def test_whoever_waits_for_an_operation_meanwhile_is_told(server: Running) -> None:
    server.script.answers = [wait(600)]

    async def work() -> None:
        client = await minerva.aio.connect(server.address)
        waiting = asyncio.ensure_future(client.coordinate(bytes=1))
        await until(lambda: server.script.calls["Coordinate"] == 1)
        await asyncio.sleep(0.1)
        await client.close()
        with pytest.raises(minerva.Unreachable, match="was closed"):
            await waiting

    run(work())
