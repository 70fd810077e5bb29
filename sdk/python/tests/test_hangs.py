"""A server that refuses for now, and then hangs or answers late."""

from __future__ import annotations

import asyncio
import random

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running

import minerva
import minerva.aio
from minerva import _link
from minerva._errors import Status
from minerva._retry import Attempts

FULL = (grpc.StatusCode.RESOURCE_EXHAUSTED, "16 operations wait or are under way.", "too-many")
LATE = (grpc.StatusCode.INVALID_ARGUMENT, "0.5 MB cannot be done within 1 ns.", "out-of-range")


@pytest.fixture(params=["untaken", "taken"])
def hanging(request: pytest.FixtureRequest, server: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server that does not answer who coordinates or holds a level, once it has no refusals left; it says so or not that it has taken
    what is asked."""
    script, enter = server.script, server.script._enter
    is_taken = request.param == "taken"

    def entering(name: str, context: grpc.ServicerContext) -> None:
        enter(name, context)
        if name in ("Coordinate", "HoldLevel"):
            if is_taken:
                context.send_initial_metadata(())
            script._until_closed(context)

    monkeypatch.setattr(script, "_enter", entering)
    if not is_taken:
        monkeypatch.setattr(_link, "SILENT_SECONDS", 0.01)
    return server


# Long enough for a refusal to arrive on a busy machine, and for the next question.
BRIEF_SECONDS = 3


def test_a_server_that_hangs_after_it_has_refused_is_away(hanging: Running) -> None:
    script = hanging.script
    with minerva.connect(hanging.address, patience_seconds=BRIEF_SECONDS) as client:
        script.failures = [FULL]
        operation = client.coordinate(bytes=1)
        assert operation.begun is minerva.Begun.UNSERVED
        operation.finish()
        script.failures = [FULL]
        held = client.hold("low")
        assert held.level is None
        held.release()
    assert (script.calls["Coordinate"], script.calls["HoldLevel"]) == (2, 2)


def test_and_with_an_event_loop(hanging: Running) -> None:
    script = hanging.script

    async def work() -> None:
        async with await minerva.aio.connect(hanging.address, patience_seconds=BRIEF_SECONDS) as client:
            script.failures = [FULL]
            operation = await client.coordinate(bytes=1)
            assert operation.begun is minerva.Begun.UNSERVED
            await operation.finish()
            script.failures = [FULL]
            held = await client.hold("low")
            assert held.level is None
            await held.release()

    asyncio.run(work())
    assert (script.calls["Coordinate"], script.calls["HoldLevel"]) == (2, 2)


def test_who_asks_again_asks_with_what_is_left_of_its_deadline(server: Running) -> None:
    script = server.script

    def check() -> None:
        first, second = script.within_ns
        # It waits for half of 100 ms at least.
        assert second <= first - 49 * 10**6
        script.within_ns.clear()
        script.failures = [FULL]

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            await (await client.coordinate(bytes=1, deadline=PATIENCE_SECONDS)).finish()
            check()
            await (await client.coordinate(bytes=1, begin_by=PATIENCE_SECONDS)).finish()
            check()

    script.failures = [FULL]
    with minerva.connect(server.address) as client:
        client.coordinate(bytes=1, deadline=PATIENCE_SECONDS).finish()
        check()
        client.coordinate(bytes=1, begin_by=PATIENCE_SECONDS).finish()
        check()
    asyncio.run(work())


def test_what_can_no_longer_be_done_in_time_for_want_of_an_answer_begins_at_once(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_link, "LATE_SECONDS", 0.04)
    script = server.script

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            script.failures = [FULL, LATE]
            operation = await client.coordinate(bytes=1, deadline=PATIENCE_SECONDS)
            assert operation.begun is minerva.Begun.IN_TIME
            await operation.finish()

    with minerva.connect(server.address) as client:
        script.failures = [FULL, LATE]
        operation = client.coordinate(bytes=1, deadline=PATIENCE_SECONDS)
        assert operation.begun is minerva.Begun.IN_TIME
        operation.finish()
        script.failures = [FULL, LATE]
        with pytest.raises(minerva.OutOfRange):
            client.coordinate(bytes=1, begin_by=PATIENCE_SECONDS)
        # What is refused at once cannot be meant.
        monkeypatch.setattr(_link, "LATE_SECONDS", PATIENCE_SECONDS)
        script.failures = [LATE]
        with pytest.raises(minerva.OutOfRange):
            client.coordinate(bytes=1, deadline=PATIENCE_SECONDS)
    monkeypatch.setattr(_link, "LATE_SECONDS", 0.04)
    asyncio.run(work())


@pytest.mark.parametrize("fraction", [0.5, 0.75, 1.0])
def test_who_has_some_time_tries_until_it_is_over_and_not_without_end(
    server: Running, monkeypatch: pytest.MonkeyPatch, fraction: float
) -> None:
    monkeypatch.setattr(random, "uniform", lambda _least, _most: fraction)
    with minerva.connect(server.address, patience_seconds=10) as client:
        assert client._link is not None
        attempts, now, tries = Attempts(client._link.server, "", 0.0), 0.0, 1
        with pytest.raises(minerva.Unreachable, match="is minervad running"):
            while True:
                now += attempts.failed(Status(grpc.StatusCode.UNAVAILABLE), now)
                tries += 1
        assert now > 9 and tries < 20
        later = Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "", {"minerva-refusal": "busy", "minerva-retry-after-ms": "10000"})
        with pytest.raises(minerva.Busy):
            Attempts(client._link.server, "", 0.0).failed(later, 1.0)


def test_a_refusal_is_told_also_when_the_last_try_was_not_answered(server: Running) -> None:
    silence, busy = Status(grpc.StatusCode.DEADLINE_EXCEEDED), Status(FULL[0], FULL[1], {"minerva-refusal": FULL[2]})
    with minerva.connect(server.address, patience_seconds=10) as client:
        assert client._link is not None
        for key, error in (("", minerva.TooMany), ("mine", minerva.Unreachable)):
            attempts = Attempts(client._link.server, key, 0.0)
            attempts.failed(busy, 1.0)
            with pytest.raises(error):
                attempts.failed(silence, 10.0)
        with pytest.raises(minerva.Unreachable):
            Attempts(client._link.server, "", 0.0).failed(silence, 10.0)
