"""An operation begins by its deadline, whatever the agent and the server do by then, and no patience is too long."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running
from test_client import wait

import minerva
import minerva.aio
from minerva import cache
from minerva.v1 import participation_pb2 as v1

LATE_SECONDS = PATIENCE_SECONDS / 3
"""What tests allow for a busy machine, and far below what is waited for too long."""


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server where the user's own agent would be. When it is gone, that is started, and does not listen."""
    program = tmp_path / "minerva-agent"
    program.write_text(f"#!/bin/sh\necho >> {tmp_path}/started\n")
    program.chmod(0o755)
    monkeypatch.setenv("MINERVA_AGENT", str(program))
    monkeypatch.setenv("MINERVA_UPSTREAM", "https://host:7420")
    (tmp_path / "runtime/minerva").mkdir(parents=True, mode=0o700)
    running = Running(tmp_path / "runtime/minerva/agent.sock")
    yield running
    running.kill()
    assert (tmp_path / "started").exists()


def test_an_agent_that_does_not_listen_delays_no_operation(gone: Running) -> None:
    with minerva.connect() as client:
        gone.kill()
        operation = client.coordinate(bytes=1, begin_by=1)
        assert operation.begun is minerva.Begun.IN_TIME and operation.waited_seconds < LATE_SECONDS


def test_neither_with_an_event_loop(gone: Running) -> None:
    async def work() -> None:
        async with await minerva.aio.connect() as client:
            await asyncio.to_thread(gone.kill)
            operation = await client.coordinate(bytes=1, begin_by=1)
            assert operation.begun is minerva.Begun.IN_TIME and operation.waited_seconds < LATE_SECONDS

    asyncio.run(work())


def test_nor_is_a_request_tried_for_longer_than_the_patience(gone: Running) -> None:
    with minerva.connect(patience_seconds=1) as client:
        gone.kill()
        begin = time.monotonic()
        with pytest.raises(minerva.Unreachable):
            client.describe()
        assert time.monotonic() - begin < LATE_SECONDS


def test_a_server_that_is_away_delays_no_operation_that_begins_without_it(server: Running) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address, patience_seconds=PATIENCE_SECONDS) as client:
            await asyncio.to_thread(server.kill)
            begin = time.monotonic()
            assert (await client.coordinate(bytes=1, begin_by=0.2)).begun is minerva.Begun.IN_TIME
            assert time.monotonic() - begin < LATE_SECONDS

    # The end of the patience would begin it too.
    with minerva.connect(server.address, patience_seconds=PATIENCE_SECONDS) as client:
        server.kill()
        begin = time.monotonic()
        assert client.coordinate(bytes=1, begin_by=0.2).begun is minerva.Begun.IN_TIME
        assert time.monotonic() - begin < LATE_SECONDS
    server.start()
    asyncio.run(work())


def test_the_server_hears_of_the_begin_before_the_end(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    script, heard = server.script, list[str]()
    script.answers = [wait(60)]
    enter = script._enter

    def entering(name: str, context: grpc.ServicerContext) -> None:
        if name == "Begin":
            time.sleep(0.2)
        heard.append(name)
        enter(name, context)

    monkeypatch.setattr(script, "_enter", entering)

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client, client.coordinated(bytes=1, begin_by=0.1):
            pass

    with minerva.connect(server.address) as client, client.coordinated(bytes=1, begin_by=0.1):
        pass
    asyncio.run(work())
    assert heard == ["Coordinate", "Begin", "Finish"] * 2


def test_an_event_loop_whose_executor_is_busy_has_its_client_all_the_same(server: Running) -> None:
    busy = threading.Event()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        occupied = loop.run_in_executor(None, busy.wait)
        try:
            async with await minerva.aio.connect(server.address) as client, client.coordinated(bytes=1) as operation:
                assert operation.begun is minerva.Begun.TOLD
        finally:
            busy.set()
            await occupied

    # What would hang is to end before the loop does, which waits for its executor.
    timer = threading.Timer(PATIENCE_SECONDS / 2, busy.set)
    timer.start()
    begin = time.monotonic()
    asyncio.run(work())
    timer.cancel()
    assert time.monotonic() - begin < LATE_SECONDS


@pytest.mark.parametrize("patience_seconds", [math.inf, threading.TIMEOUT_MAX, 0.0])
def test_a_patience_may_be_of_any_length(server: Running, patience_seconds: float) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address, patience_seconds=patience_seconds) as client:
            if patience_seconds:
                assert (await client.describe()).tenant == "vm4"
            async with client.deprioritized("low"), client.coordinated(bytes=1):
                pass

    with minerva.connect(server.address, patience_seconds=patience_seconds) as client:
        if patience_seconds:
            assert client.describe().tenant == "vm4"
        with client.deprioritized("low"), client.coordinated(bytes=1), client.debt("rebuild", 50) as debt:
            server.script.may_work.set()
            while patience_seconds and not debt.wait(math.inf):
                pytest.fail("it may work")
    asyncio.run(work())
    server.script.until("all is released", lambda: server.script.levels_held[v1.LEVEL_LOW] == 0)


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A service of the cache that takes questions and does not answer them."""
    monkeypatch.setattr(cache, "_PATIENCE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setenv(cache.SOCKET_VARIABLE, str(tmp_path / "cache.sock"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "cache.sock"))
        listener.listen()
        yield


def test_a_silent_service_of_the_cache_delays_no_operation(server: Running, silent: None, tmp_path: Path) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address, patience_seconds=PATIENCE_SECONDS) as client:
            check(
                await client.coordinate(
                    bytes=1, begin_by=0.2, access="sequential-write", path=tmp_path / "file", pool="stable"
                )
            )

    def check(operation: minerva.Coordinated | minerva.aio.Coordinated) -> None:
        assert operation.begun in (minerva.Begun.IN_TIME, minerva.Begun.TOLD)
        # What the service is waited for counts.
        assert 0.2 <= operation.waited_seconds < LATE_SECONDS

    with minerva.connect(server.address, patience_seconds=PATIENCE_SECONDS) as client:
        check(
            client.coordinate(bytes=1, begin_by=0.2, access="sequential-write", path=tmp_path / "file", pool="stable")
        )
    asyncio.run(work())
