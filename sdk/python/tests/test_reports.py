"""Reports of how far work is: the newest one counts, whatever became of those before it."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running
from test_aio import run, until

import minerva
import minerva.aio
from minerva import _link

NAMES = ["a", "b", "c", "d", "e"]
SECOND_NS = 10**9


def told(server: Running) -> list[tuple[str, int]]:
    """Each report: of what, and how many seconds are done."""
    return [(report.name, report.done_ns // SECOND_NS) for report in server.script.debt_reports]


def is_told(server: Running) -> bool:
    return {(name, 50) for name in NAMES} <= set(told(server))


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reports does not wait for a server that is away."""
    monkeypatch.setattr(_link, "TELL_SECONDS_MAX", 0.01)


def test_no_report_arrives_after_a_newer_one(server: Running, brief: None) -> None:
    with minerva.connect(server.address, patience_seconds=PATIENCE_SECONDS) as client:
        debts = [client.hold_debt(name, 50) for name in NAMES]
        server.kill()
        for debt in debts:
            # The end of it is told at once, and counts as new work if more comes to it.
            for done, service in ((10.0, 10.0), (20.0, 20.0), (50.0, 50.0)):
                debt.report(done, service=service)
        server.start()
        server.script.until("all is told", lambda: is_told(server))
        assert {done for _, done in told(server)} == {50}


def test_neither_with_an_event_loop(server: Running, brief: None) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address, patience_seconds=PATIENCE_SECONDS) as client:
            debts = [await client.hold_debt(name, 50) for name in NAMES]
            await asyncio.to_thread(server.kill)
            for debt in debts:
                for done, service in ((10.0, 10.0), (20.0, 20.0), (50.0, 50.0)):
                    await debt.report(done, service=service)
            server.start()
            await until(lambda: is_told(server))
            assert {done for _, done in told(server)} == {50}

    run(work())


@pytest.fixture
def barrier(server: Running, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Until it is set, no report is answered."""
    barrier, enter = threading.Event(), server.script._enter

    def entering(name: str, context: grpc.ServicerContext) -> None:
        enter(name, context)
        if name == "ReportDebt":
            assert barrier.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(server.script, "_enter", entering)
    return barrier


def test_what_is_reported_while_a_report_is_under_way_is_told_after_it(
    server: Running, barrier: threading.Event, brief: None
) -> None:
    with minerva.connect(server.address) as client, client.debt("a", 50) as debt:
        debt.report(10)
        server.script.until("it is under way", lambda: server.script.calls["ReportDebt"] == 1)
        debt.report(50)
        barrier.set()
        server.script.until("the end is told", lambda: len(server.script.debt_reports) == 2)
        assert told(server) == [("a", 10), ("a", 50)]


def test_and_with_an_event_loop(server: Running, barrier: threading.Event, brief: None) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client, client.debt("a", 50) as debt:
            await debt.report(10)
            await until(lambda: server.script.calls["ReportDebt"] == 1)
            await debt.report(50)
            barrier.set()
            await until(lambda: len(server.script.debt_reports) == 2)
            assert told(server) == [("a", 10), ("a", 50)]

    run(work())


def test_of_what_is_released_nothing_is_reported_any_more(server: Running, brief: None) -> None:
    with minerva.connect(server.address, patience_seconds=math.inf) as client:
        debt = client.hold_debt("a", 50)
        server.kill()
        debt.report(10)
        assert debt._reporter.locked()
        debt.release()
        end = time.monotonic() + PATIENCE_SECONDS / 2
        while debt._reporter.locked():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_nor_with_an_event_loop(server: Running, brief: None) -> None:
    async def work() -> None:
        async with await minerva.aio.connect(server.address, patience_seconds=math.inf) as client:
            debt = await client.hold_debt("a", 50)
            await asyncio.to_thread(server.kill)
            await debt.report(10)
            assert debt._reporter is not None and not debt._reporter.done()
            await debt.release()
            await asyncio.wait({debt._reporter})

    run(work())


def test_whoever_waits_hears_why_a_debt_has_ended_when_it_may_work(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, looked = list[minerva.MinervaError | None](), threading.Event()
    with minerva.connect(server.address) as client, client.debt("a", 50) as debt:
        changed = debt._changed

        def changing() -> None:
            changed()
            if debt.may_work:
                assert looked.wait(PATIENCE_SECONDS)

        monkeypatch.setattr(debt, "_changed", changing)

        def wait() -> None:
            debt.wait()
            seen.append(debt.ended)
            looked.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        server.script.is_replaced = True
        server.script.may_work.set()
        waiting.join()
    assert [str(ended) for ended in seen] == ["A later debt of this name took its place."]
