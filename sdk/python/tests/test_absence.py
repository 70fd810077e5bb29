"""Behind an agent that has no server, and what comes later; and what may have been done."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import grpc
import pytest
from conftest import PATIENCE_SECONDS, Running

import minerva
import minerva.aio
from minerva import _link
from minerva.v1 import participation_pb2 as v1

NO_SERVER = (grpc.StatusCode.UNAVAILABLE, "No server answers at vsock:2:7420 (refused).", "no-server")
NO_ANSWER = (grpc.StatusCode.DEADLINE_EXCEEDED, "There was no answer within 5 s.", "no-answer")
BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, "The server is busy.", "busy")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("first", ["describe", "set_level", "hold", "boost", "coordinate"])
def test_behind_an_agent_without_a_server_nothing_is_asked_twice(server: Running, first: str) -> None:
    server.script.failures = [NO_SERVER]
    with pytest.warns(minerva.NoServerWarning, match="vsock:2:7420") as warned, minerva.connect(server.address) as client:
        if first == "describe":
            assert client.describe() == minerva.Description()
        elif first == "set_level":
            assert client.set_level("low") is minerva.Level.NORMAL
        elif first == "hold":
            assert client.hold("idle").level is None
        elif first == "boost":
            assert client.boost(seconds=1) == minerva.Boost()
        else:
            assert client.coordinate(bytes=1).begun is minerva.Begun.UNSERVED
        assert client.absence is not None and "vsock:2:7420" in client.absence
        # The next is not sent: it would be answered.
        assert client.credits() == minerva.Credits()
    assert len(warned) == 1 and server.script.calls.total() == 1


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("first", ["describe", "hold", "coordinate"])
def test_the_same_with_an_event_loop(server: Running, first: str) -> None:
    server.script.failures = [NO_SERVER]

    async def work() -> None:
        async with await minerva.aio.connect(server.address) as client:
            if first == "describe":
                assert await client.describe() == minerva.Description()
            elif first == "hold":
                assert (await client.hold("idle")).level is None
            else:
                assert (await client.coordinate(bytes=1)).begun is minerva.Begun.UNSERVED
            assert await client.credits() == minerva.Credits()

    with pytest.warns(minerva.NoServerWarning, match="vsock:2:7420") as warned:
        asyncio.run(asyncio.wait_for(work(), PATIENCE_SECONDS))
    assert len(warned) == 1 and server.script.calls.total() == 1


@pytest.mark.filterwarnings("default")
def test_a_server_that_comes_later_is_found_by_a_later_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_link, "LOOK_PERIOD_SECONDS", 0.0)
    address = f"unix:{tmp_path}/later.sock"
    end = time.monotonic() + PATIENCE_SECONDS

    async def work() -> None:
        async with await minerva.aio.connect(address) as late:
            assert late.absence is not None
            running = Running(tmp_path / "later.sock")
            # It looks no longer than a moment, so that a busy machine may take more than one call.
            while (await late.describe()).tenant != "vm4":
                assert time.monotonic() < end
            with minerva.connect(address) as client:
                # What an agent says once does not count for ever.
                running.script.failures = [NO_SERVER]
                assert client.boost(slices=1) == minerva.Boost()
                while client.boost(slices=1).slices != 1:
                    assert time.monotonic() < end
                assert client.absence is None
        running.kill()

    with pytest.warns(minerva.NoServerWarning):
        client = minerva.connect(address)
        asyncio.run(work())
    # One that is closed stays so.
    client.close()
    assert client.describe() == minerva.Description()


def test_a_server_that_was_there_is_away_and_not_absent(server: Running) -> None:
    with minerva.connect(server.address) as client:
        client.describe()
        server.script.failures = [NO_SERVER] * 2
        assert client.credits().held == 60.0
    # Long enough for the first answer to arrive on a busy machine.
    with minerva.connect(server.address, patience_seconds=3) as client:
        client.describe()
        server.script.failures = [NO_SERVER] * 100
        with pytest.raises(minerva.Unreachable):
            client.boost(slices=1)


def test_what_may_have_been_done_is_asked_again_under_its_key(server: Running) -> None:
    server.script.failures = [NO_ANSWER] * 2
    with minerva.connect(server.address) as client:
        assert client.boost(slices=2).slices == 2
        assert server.script.calls["Boost"] == 3
    assert len(server.script.boost_keys) == 3 and len(set(server.script.boost_keys)) == 1


@pytest.mark.parametrize("later", [NO_ANSWER, BUSY])
def test_and_is_not_called_refused(server: Running, later: tuple[grpc.StatusCode, str, str]) -> None:
    server.script.failures = [NO_ANSWER] + [later] * 100

    async def work() -> None:
        async with await minerva.aio.connect(server.address, patience_seconds=3) as client:
            with pytest.raises(minerva.Unreachable) as raised:
                await client.boost(slices=2)
            assert {raised.value.request_id} == set(server.script.boost_keys)

    with minerva.connect(server.address, patience_seconds=3) as client:
        with pytest.raises(minerva.Unreachable, match="under the request_id") as raised:
            client.boost(slices=2, request_id="mine")
        assert raised.value.request_id == "mine" and set(server.script.boost_keys) == {"mine"}
    server.script.boost_keys.clear()
    server.script.failures = [NO_ANSWER] + [later] * 100
    asyncio.run(work())


def test_what_a_newer_server_says_is_no_error(server: Running) -> None:
    # Field 1,000, three bytes long, and a level that nobody here knows.
    newer = v1.DescribeResponse(tenant="vm4", level=99)  # type: ignore[arg-type]
    server.script.description = v1.DescribeResponse.FromString(
        newer.SerializeToString() + bytes([0xC2, 0x3E, 3, 1, 2, 3])
    )
    with minerva.connect(server.address) as client:
        assert (client.describe().tenant, client.describe().level) == ("vm4", minerva.Level.NORMAL)


def test_a_server_that_does_not_know_a_request_is_too_old(server: Running) -> None:
    server.script.failures = [(grpc.StatusCode.UNIMPLEMENTED, "Method not found!", "")]
    with minerva.connect(server.address) as client:
        with pytest.raises(minerva.Refused, match="too old for this request: it needs a newer minervad"):
            client.set_schedule([])
        assert client.describe().tenant == "vm4"
