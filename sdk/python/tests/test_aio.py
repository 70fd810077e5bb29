"""The client for programs with an event loop, against a server whose answers the test chooses."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running, run_program
from test_client import now, wait

import minerva
import minerva.aio
from minerva.v1 import participation_pb2 as v1

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_SECONDS))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_everything_is_asked_and_answered(server: Running) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            assert client.address == server.address
            assert (await client.describe()).tenant == "vm4"
            assert (await client.credits(1)).held == 60.0
            assert await client.set_level("low", seconds=1) is minerva.Level.LOW
            assert await client.set_schedule([]) is minerva.Level.NORMAL
            server.script.losses = 2
            assert (await client.boost(seconds=2)).slices == 2
            assert len(server.script.purchases) == 1

    run(work())


def test_a_level_is_held_while_the_body_runs_and_taken_again(server: Running) -> None:
    held_now = server.script.levels_held

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            async with client.deprioritized("idle") as held:
                assert held.level is minerva.Level.IDLE and held_now[v1.LEVEL_IDLE] == 1
                await asyncio.to_thread(server.kill)
                await until(lambda: held.level is None)
                server.start()
                await until(lambda: held.level is minerva.Level.IDLE)
            await until(lambda: held_now[v1.LEVEL_IDLE] == 0)
            async with client.job("sort", bytes=500) as job:
                assert job.place == (2, 3)
            await until(lambda: not server.script.jobs)
            async with client.debt("rebuild", 50, tied_bytes=7, deadline=60) as debt:
                assert not debt.may_work
                await debt.report(10)
                told = [(report.done_ns, report.service_ns, report.tied_bytes) for report in server.script.debt_reports]
                assert told == [(10 * 10**9, 50 * 10**9, 7)], "what is not said is as before"
                assert not await debt.wait(0.01)
                server.script.may_work.set()
                assert await debt.wait(PATIENCE_SECONDS) and await debt.wait() and debt.may_work
            await until(lambda: not server.script.debts)
            server.script.failures = [(grpc.StatusCode.PERMISSION_DENIED, "not you", "not-allowed")]
            with pytest.raises(minerva.NotAllowed, match="not you"):
                async with client.deprioritized("low", strict=True):
                    pytest.fail("the body ran")

    run(work())


def test_an_operation_waits_to_be_told_survives_a_restart_and_is_finished(server: Running) -> None:
    script = server.script
    script.answers = [wait(60)]

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            waiting = asyncio.ensure_future(client.coordinate(bytes=1, deadline=50))
            await until(lambda: script.calls["Coordinate"] == 1)
            await asyncio.to_thread(server.kill)
            script.answers = [now()]
            server.start()
            operation = await waiting
            assert operation.begun is minerva.Begun.TOLD
            await operation.finish()
            await operation.finish()
            assert script.finished == [operation.request_id] and set(script.coordinate_keys) == set(script.finished)

    run(work())


def test_a_deadline_ends_the_wait_and_a_cancelled_wait_is_cancelled(server: Running) -> None:
    script = server.script
    script.answers = [wait(60)]

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            async with client.coordinated(bytes=1, begin_by=0.2) as operation:
                assert operation.begun is minerva.Begun.IN_TIME
            assert script.begun == script.finished == [operation.request_id]
            waiting = asyncio.ensure_future(client.coordinate(bytes=1, request_id="mine"))
            await until(lambda: script.calls["Coordinate"] == 2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert script.cancelled == ["mine"]

    run(work())


def test_functions_share_a_client_of_each_loop(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINERVA_ADDRESS", server.address)

    @minerva.aio.deprioritized("lowest")
    async def backup() -> int:
        return server.script.levels_held[v1.LEVEL_LOWEST]

    async def work() -> None:
        both = await asyncio.gather(minerva.aio.describe(), minerva.aio.credits())
        assert both[0].tenant == "vm4" and both[1].held == 60.0
        assert await backup() == 1
        async with minerva.aio.coordinated(bytes=1):
            pass
        async with minerva.aio.debt("rebuild", 50, deadline=60) as debt:
            await debt.report(10)
        assert [one.name for one in server.script.debt_reports] == ["rebuild"]
        server.script.debt_reports.clear()
        await (await minerva.aio._default()).close()

    run(work())
    run(work())


def test_a_client_is_let_go_when_its_loop_has_ended(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINERVA_ADDRESS", server.address)
    clients = []

    async def work() -> None:
        await minerva.aio.describe()
        clients.append(weakref.ref(await minerva.aio._default()))

    for _ in range(4):
        run(work())
    gc.collect()
    assert [client() is None for client in clients[:-1]] == [True] * 3


def test_who_is_refused_for_as_long_as_it_waits_runs_on_with_a_warning(server: Running) -> None:
    full = (grpc.StatusCode.RESOURCE_EXHAUSTED, "16 operations wait or are under way.", "too-many")

    async def work() -> None:
        # Long enough for the refusal to arrive on a busy machine.
        async with await minerva.aio.connect(server.address, patience_seconds=3) as client:
            server.script.failures = [full] * 100
            with pytest.warns(minerva.UnservedWarning, match="16 operations"):
                async with client.coordinated(bytes=1) as operation, client.deprioritized("low") as held:
                    assert (operation.begun, held.level) == (minerva.Begun.UNSERVED, None)
            with pytest.raises(minerva.TooMany):
                await client.hold_job("sort")
        # Here it is the deadline that ends the wait, not the patience.
        async with await minerva.aio.connect(server.address) as client:
            with pytest.raises(minerva.TooMany):
                await client.coordinate(bytes=1, begin_by=3)

    run(work())


@pytest.mark.filterwarnings("default")
def test_without_a_server_nothing_is_asked() -> None:
    async def work() -> None:
        async with minerva.aio.deprioritized("idle") as held, minerva.aio.coordinated(bytes=1, deadline=9) as operation:
            assert held.level is None and operation.begun is minerva.Begun.UNSERVED
        assert await minerva.aio.boost(seconds=30) == minerva.Boost()

    with pytest.warns(minerva.NoServerWarning):
        run(work())


# Forks in a program of its own: pytest's process has threads of the server in it.
FORK = """
import asyncio, os, sys, warnings, minerva, minerva.aio
from minerva import _aio_connection
warnings.simplefilter("error")
# The test looks at what was told when this has ended.
minerva._link.TELL_SECONDS_MAX = 60.0

async def work():
    client = await minerva.aio.connect(sys.argv[1])
    held = await client.hold("low")
    operation = await client.coordinate(bytes=1)
    other = await client.coordinate(bytes=1)
    child = os.fork()
    if child == 0:
        before = len(_aio_connection._tasks)
        await operation.finish()
        await other.cancel()
        await held.release()
        await client.close()
        os._exit(7 if len(_aio_connection._tasks) == before else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 7, code
    assert held.level is minerva.Level.LOW
    await operation.finish()
    await other.cancel()
    await held.release()
    await client.close()

asyncio.run(work())
"""


def test_a_forked_child_ends_nothing_of_its_parents(server: Running) -> None:
    run_program(sys.executable, "-c", FORK, server.address)
    assert (len(server.script.finished), len(server.script.cancelled)) == (1, 1)
    assert server.script.calls["HoldLevel"] == 1
